// What each record does to an image (metadata-log 3), and which versions are written (3.1).
#include "metadata/replay.h"

#include <gmock/gmock.h>

namespace tidemark::metadata {
namespace {

using namespace protocol;
using testing::ElementsAre;
using testing::IsEmpty;

const Uuid id_1 = Uuid::of(101), id_2 = Uuid::of(102), directory = Uuid::of(9);

class Replay : public testing::Test {
protected:
    Result<> apply(const MetadataRecord& record) { return builder_.apply(record, Offset{next_++}); }
    void must(const MetadataRecord& record) {
        const auto applied = apply(record);
        ASSERT_TRUE(applied.has_value()) << applied.error().message();
    }
    void topic(const std::string& name, const Uuid& id, int partitions = 1) {
        must(TopicRecord{.name = name, .topic_id = id});
        for (int p = 0; p < partitions; ++p) {
            must(PartitionRecord{.partition_id = p, .topic_id = id, .replicas = {1}, .isr = {1}, .leader = 1, .leader_epoch = 0, .partition_epoch = 0, .directories = {directory}});
        }
    }
    const Image& image() const { return builder_.image(); }
    const Partition& partition(const std::string& name, int number = 0) const { return *image().find(TopicPartition{name, number}); }
    void refused(const MetadataRecord& record, Errc code = Errc::corrupt) {
        const auto applied = apply(record);
        ASSERT_FALSE(applied.has_value());
        EXPECT_EQ(applied.error().code, code) << applied.error().message();
    }

    ImageBuilder builder_;
    std::int64_t next_ = 0;
};

TEST_F(Replay, Features) {
    must(FeatureLevelRecord{.name = "metadata.version", .feature_level = 33});
    must(FeatureLevelRecord{.name = "group.version", .feature_level = 1});
    must(FeatureLevelRecord{.name = "kraft.version", .feature_level = 1});   // counts only as a control record
    EXPECT_EQ(image().metadata_version(), 33);
    must(FeatureLevelRecord{.name = "group.version", .feature_level = 0});
    EXPECT_EQ(image().features.size(), 1u);
    refused(FeatureLevelRecord{.name = "metadata.version", .feature_level = 34}, Errc::unsupported);
}
TEST_F(Replay, AMetadataVersionTooOld) { refused(FeatureLevelRecord{.name = "metadata.version", .feature_level = 6}, Errc::unsupported); }

TEST_F(Replay, TopicsAndTheirSettingsComeAndGo) {
    topic("a", id_1, 2);
    must(ConfigRecord{.resource_type = 2, .resource_name = "a", .name = "segment.ms", .value = "1"});
    must(ConfigRecord{.resource_type = 4, .resource_name = "", .name = "log.roll.ms", .value = "2"});
    EXPECT_EQ(image().find(id_1)->name, "a");
    EXPECT_EQ(image().find("a")->partitions.size(), 2u);
    must(RemoveTopicRecord{.topic_id = id_1});
    EXPECT_EQ(image().find("a"), nullptr);
    EXPECT_EQ(image().find(id_1), nullptr);
    EXPECT_THAT(image().overrides(ResourceType::topic, "a"), IsEmpty());
    EXPECT_EQ(image().overrides(ResourceType::broker, "").size(), 1u);
    topic("a", id_2);   // the name is free again
}
TEST_F(Replay, ANameTwice) {
    topic("a", id_1);
    refused(TopicRecord{.name = "a", .topic_id = id_2});
}
TEST_F(Replay, AnIdTwice) {
    topic("a", id_1);
    refused(TopicRecord{.name = "b", .topic_id = id_1});
}
TEST_F(Replay, PartitionOfAnUnknownTopic) { refused(PartitionRecord{.partition_id = 0, .topic_id = id_1}); }
TEST_F(Replay, ChangeOfAnUnknownTopic) { refused(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1}); }
TEST_F(Replay, ChangeOfAnUnknownPartition) {
    topic("a", id_1);
    refused(PartitionChangeRecord{.partition_id = 1, .topic_id = id_1});
}
TEST_F(Replay, RemovalOfAnUnknownTopic) { refused(RemoveTopicRecord{.topic_id = id_1}); }
TEST_F(Replay, ReplicasWithoutTheirDirectories) {
    must(TopicRecord{.name = "a", .topic_id = id_1});
    refused(PartitionRecord{.partition_id = 0, .topic_id = id_1, .replicas = {1, 2}, .directories = {directory}});
}
TEST_F(Replay, DirectoriesOfOldRecordsAreUnknown) {
    must(TopicRecord{.name = "a", .topic_id = id_1});
    must(PartitionRecord{.partition_id = 0, .topic_id = id_1, .replicas = {1}});
    EXPECT_THAT(partition("a").directories, ElementsAre(Uuid{}));
}

TEST_F(Replay, PartitionChanges) {
    topic("a", id_1);
    must(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .isr = {{}}, .eligible_leader_replicas = {{1}}, .last_known_elr = {{1}}});
    EXPECT_THAT(partition("a").isr, IsEmpty());
    EXPECT_THAT(partition("a").elr, ElementsAre(1));
    EXPECT_EQ(partition("a").leader, 1);
    EXPECT_EQ(partition("a").leader_epoch, 0);         // no leader in the record
    EXPECT_EQ(partition("a").partition_epoch, 1);
    must(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .leader = 1});
    EXPECT_EQ(partition("a").leader_epoch, 1);         // the same broker counts too
    EXPECT_EQ(partition("a").partition_epoch, 2);
    must(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .leader = -1, .leader_recovery_state = 1});
    EXPECT_EQ(partition("a").leader, -1);
    EXPECT_EQ(partition("a").leader_epoch, 2);
    EXPECT_EQ(partition("a").leader_recovery_state, 1);
    must(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .directories = {{Uuid::of(8)}}});
    EXPECT_THAT(partition("a").directories, ElementsAre(Uuid::of(8)));
    EXPECT_EQ(partition("a").leader_recovery_state, 1);
    must(ClearElrRecord{.topic_name = "a"});
    EXPECT_THAT(partition("a").elr, IsEmpty());
    EXPECT_THAT(partition("a").last_known_elr, IsEmpty());
}
TEST_F(Replay, ClearElrOfAllAndOfNone) {
    topic("a", id_1);
    must(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .eligible_leader_replicas = {{1}}});
    must(ClearElrRecord{});
    EXPECT_THAT(partition("a").elr, IsEmpty());
    refused(ClearElrRecord{.topic_name = "unknown"});
}

TEST_F(Replay, BrokersAreFencedOnlyInTheirEpoch) {
    must(RegisterBrokerRecord{.broker_id = 1, .incarnation_id = id_1, .broker_epoch = 7, .log_dirs = {directory}});
    EXPECT_TRUE(image().brokers.at(1).fenced);
    must(BrokerRegistrationChangeRecord{.broker_id = 1, .broker_epoch = 7, .fenced = -1});
    EXPECT_FALSE(image().brokers.at(1).fenced);
    must(BrokerRegistrationChangeRecord{.broker_id = 1, .broker_epoch = 7, .in_controlled_shutdown = 1});
    EXPECT_TRUE(image().brokers.at(1).in_controlled_shutdown);
    EXPECT_FALSE(image().brokers.at(1).fenced);
    must(FenceBrokerRecord{.id = 1, .epoch = 7});
    EXPECT_TRUE(image().brokers.at(1).fenced);
    must(UnfenceBrokerRecord{.id = 1, .epoch = 7});
    EXPECT_FALSE(image().brokers.at(1).fenced);
    EXPECT_THAT(image().brokers.at(1).log_dirs, ElementsAre(directory));
    must(UnregisterBrokerRecord{.broker_id = 1, .broker_epoch = 7});
    EXPECT_THAT(image().brokers, IsEmpty());
}
TEST_F(Replay, BrokerOfAnotherEpoch) {
    must(RegisterBrokerRecord{.broker_id = 1, .broker_epoch = 7});
    refused(BrokerRegistrationChangeRecord{.broker_id = 1, .broker_epoch = 8, .fenced = 1});
}
TEST_F(Replay, BrokerThatIsNotRegistered) { refused(BrokerRegistrationChangeRecord{.broker_id = 1, .broker_epoch = 8, .fenced = 1}); }

TEST_F(Replay, ProducerIdsOnlyGrow) {
    must(ProducerIdsRecord{.next_producer_id = 1000});
    must(ProducerIdsRecord{.next_producer_id = 3000});
    EXPECT_EQ(image().next_producer_id, 3000);
    refused(ProducerIdsRecord{.next_producer_id = 3000});
}

TEST_F(Replay, WhatIsNotOfferedIsKept) {
    must(UserScramCredentialRecord{.name = "bob", .mechanism = 1, .iterations = 4096});
    must(AccessControlEntryRecord{.id = id_1, .resource_type = 2, .resource_name = "a"});
    must(ClientQuotaRecord{.entity = {{.entity_type = "user", .entity_name = "bob"}, {.entity_type = "client-id", .entity_name = std::nullopt}}, .key = "producer_byte_rate", .value = 5});
    must(DelegationTokenRecord{.owner = "bob", .token_id = "t"});
    must(RegisterControllerRecord{.controller_id = 1, .incarnation_id = id_2});
    EXPECT_EQ(image().kept->scram.size(), 1u);
    EXPECT_EQ(image().kept->acls.at(id_1).resource_name, "a");
    EXPECT_EQ(image().kept->quotas.begin()->second.at("producer_byte_rate"), 5);
    EXPECT_EQ(image().kept->delegation_tokens.size(), 1u);
    EXPECT_EQ(image().kept->controllers.size(), 1u);
    must(RemoveUserScramCredentialRecord{.name = "bob", .mechanism = 1});
    must(RemoveAccessControlEntryRecord{.id = id_1});
    must(ClientQuotaRecord{.entity = {{.entity_type = "client-id", .entity_name = std::nullopt}, {.entity_type = "user", .entity_name = "bob"}}, .key = "producer_byte_rate", .remove = true});
    must(RemoveDelegationTokenRecord{.token_id = "t"});
    must(UnregisterControllerRecord{.controller_id = 1});
    EXPECT_EQ(*image().kept, KeptRecords{});
    refused(RemoveAccessControlEntryRecord{.id = id_1});
}
TEST_F(Replay, RemovalOfAnUnknownCredential) { refused(RemoveUserScramCredentialRecord{.name = "bob", .mechanism = 1}); }

TEST_F(Replay, TransactionsShowWhenTheyEnd) {
    must(BeginTransactionRecord{.name = "x"});
    topic("a", id_1);
    EXPECT_EQ(image().find("a"), nullptr);
    EXPECT_TRUE(builder_.in_transaction());
    EXPECT_EQ(image().offset, Offset{-1});
    must(EndTransactionRecord{});
    EXPECT_NE(image().find("a"), nullptr);
    EXPECT_EQ(image().offset, Offset{next_ - 1});
    must(BeginTransactionRecord{});
    topic("b", id_2);
    must(AbortTransactionRecord{.reason = "Controller failover"});
    EXPECT_EQ(image().find("b"), nullptr);
    EXPECT_FALSE(builder_.in_transaction());
    topic("b", id_2);
}
TEST_F(Replay, TransactionsDoNotNest) {
    must(BeginTransactionRecord{});
    refused(BeginTransactionRecord{});
}
TEST_F(Replay, AnEndWithoutABegin) { refused(EndTransactionRecord{}); }

TEST_F(Replay, ImagesDoNotChangeAfterwards) {
    topic("a", id_1);
    topic("b", id_2);
    must(AccessControlEntryRecord{.id = id_1});
    const auto before = std::move(builder_).build();
    ImageBuilder next(before);
    ASSERT_TRUE(next.apply(PartitionChangeRecord{.partition_id = 0, .topic_id = id_1, .leader = 1}, Offset{50}).has_value());
    ASSERT_TRUE(next.apply(RemoveAccessControlEntryRecord{.id = id_1}, Offset{51}).has_value());
    const auto after = std::move(next).build();
    EXPECT_EQ(before->find(TopicPartition{"a", 0})->leader_epoch, 0);
    EXPECT_EQ(after->find(TopicPartition{"a", 0})->leader_epoch, 1);
    EXPECT_EQ(before->kept->acls.size(), 1u);
    EXPECT_EQ(after->kept->acls.size(), 0u);
    EXPECT_EQ(before->find("b"), after->find("b"));    // shared
    EXPECT_EQ(after->find("a"), after->find(id_1));
    EXPECT_EQ(after->offset, Offset{51});
}

TEST_F(Replay, OtherRecordsMoveTheOffsetOnly) {
    must(NoOpRecord{});
    must(ZkMigrationStateRecord{});
    EXPECT_EQ(image().offset, Offset{1});
    builder_.pass(Offset{9});
    EXPECT_EQ(image().offset, Offset{9});
    EXPECT_TRUE(image().same_content(Image{}));
}

TEST(RecordVersion, FollowsTheMetadataVersion) {
    const auto broker = [](int mv) { return record_version(RegisterBrokerRecord{}, static_cast<std::int16_t>(mv)); };
    EXPECT_EQ(broker(33), 4);
    EXPECT_EQ(broker(30), 4);
    EXPECT_EQ(broker(29), 3);
    EXPECT_EQ(broker(17), 3);
    EXPECT_EQ(broker(16), 2);
    EXPECT_EQ(broker(8), 2);
    EXPECT_EQ(broker(7), 1);
    for (const int mv : {7, 16, 17, 22, 23, 33}) {
        const auto version = static_cast<std::int16_t>(mv);
        const std::int16_t expected = mv >= 23 ? 2 : mv >= 17 ? 1 : 0;
        EXPECT_EQ(record_version(PartitionRecord{}, version), expected) << mv;
        EXPECT_EQ(record_version(PartitionChangeRecord{}, version), expected) << mv;
    }
    EXPECT_EQ(record_version(BrokerRegistrationChangeRecord{.fenced = 1}, 33), 0);
    EXPECT_EQ(record_version(BrokerRegistrationChangeRecord{.in_controlled_shutdown = 1}, 33), 1);
    EXPECT_EQ(record_version(BrokerRegistrationChangeRecord{.log_dirs = {directory}}, 33), 2);
    EXPECT_EQ(record_version(BrokerRegistrationChangeRecord{.cordoned_log_dirs = {{}}}, 33), 3);
    EXPECT_EQ(record_version(TopicRecord{}, 33), 0);
}

/// Every metadata.version can hold its own snapshot: no field is left that its records have no place for.
TEST(SnapshotRecords, CanBeWrittenAtEveryMetadataVersion) {
    for (std::int16_t version = metadata_version_min; version <= metadata_version_max; ++version) {
        ImageBuilder builder;
        ASSERT_TRUE(builder.apply(FeatureLevelRecord{.name = "metadata.version", .feature_level = version}, Offset{0}).has_value());
        ASSERT_TRUE(builder.apply(TopicRecord{.name = "a", .topic_id = id_1}, Offset{1}).has_value());
        ASSERT_TRUE(builder.apply(PartitionRecord{.partition_id = 0, .topic_id = id_1, .replicas = {1}, .isr = {1}, .leader = 1, .directories = {directory}, .eligible_leader_replicas = {{1}}, .last_known_elr = {{1}}}, Offset{2}).has_value());
        ASSERT_TRUE(builder.apply(RegisterBrokerRecord{.broker_id = 1, .is_migrating_zk_broker = true, .log_dirs = {directory}, .cordoned_log_dirs = {{}}}, Offset{3}).has_value());
        const auto records = snapshot_records(builder.image());
        EXPECT_TRUE(std::holds_alternative<FeatureLevelRecord>(records.front()));
        for (const auto& record : records) {
            const auto value = metadata_record_value(record, record_version(record, version));
            EXPECT_TRUE(value.has_value()) << "metadata.version " << version << ": " << value.error().message();
        }
    }
}

}  // namespace
}  // namespace tidemark::metadata
