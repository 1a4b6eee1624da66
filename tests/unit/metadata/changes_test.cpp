// Requests that change metadata: order of checks, codes and texts as a single Apache Kafka 4.4.0 broker answered them.
#include "metadata/changes.h"

#include <gmock/gmock.h>

#include "metadata/features.h"
#include "metadata/replay.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;
using testing::ElementsAre;
using testing::IsEmpty;

const Uuid directory = Uuid::of(9), other_directory = Uuid::of(8);

class Changes : public testing::Test {
protected:
    Changes() {
        using Feature = protocol::FeatureLevelRecord;
        apply({Feature{.name = "metadata.version", .feature_level = 33}, Feature{.name = "eligible.leader.replicas.version", .feature_level = 1}});
        apply(plan_create_topics(context(), {{.name = "x", .partitions = 2, .replication_factor = 1}, {.name = "a.b", .partitions = 1, .replication_factor = 1}}).records);
    }
    ChangeContext context() { return {.image = *image_, .file = file_, .node_id = 1, .directory_ids = directories_, .new_id = [this] { return Uuid::of(++ids_); }}; }
    void apply(const std::vector<protocol::MetadataRecord>& records) {
        ImageBuilder builder(image_);
        for (const auto& record : records) {
            const auto applied = builder.apply(record, image_->offset + 1);
            ASSERT_TRUE(applied.has_value()) << applied.error().message();
        }
        image_ = std::move(builder).build();
    }

    std::shared_ptr<const Image> image_ = std::make_shared<const Image>();
    ConfigMap file_;
    std::vector<Uuid> directories_{directory};
    unsigned char ids_ = 100;
};

std::string text_of(const Outcome& outcome) { return std::to_string(static_cast<int>(outcome.code)) + " " + outcome.message.value_or("null"); }

// --- features --------------------------------------------------------------------------------------------------------

TEST_F(Changes, UpdateFeaturesRefusals) {
    using Type = FeatureUpdateType;
    const struct {
        FeatureUpdate update;
        std::string text;
    } cases[] = {
        {{"nonsense", 1}, "nonsense. Local controller 1 does not support this feature."},
        {{"group.version", 9}, "group.version. Local controller 1 only supports versions 0-1"},
        {{"share.version", 1}, "share.version. Local controller 1 only supports versions 0-0"},
        {{"group.version", -1}, "group.version. A feature version cannot be less than 0."},
        {{"group.version", 1, Type::unknown}, "group.version. The controller does not support the given upgrade type."},
        {{"group.version", 1, Type{9}}, "group.version. The controller does not support the given upgrade type."},
        {{"group.version", 1, Type::safe_downgrade}, "group.version. Can't downgrade to a newer version."},
        {{"metadata.version", 20}, "metadata.version. Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."},
        {{"metadata.version", 32, Type::safe_downgrade}, "metadata.version. Refusing to perform the requested downgrade because it might delete metadata information."},
        {{"metadata.version", 32, Type::unsafe_downgrade}, "metadata.version. Unsafe metadata downgrade is not supported in this version."},
        {{"kraft.version", 1}, "kraft.version. The quorum of this node alone has static voters."},
    };
    for (const auto& c : cases) {
        // One that is refused takes the others with it.
        const auto plan = plan_update_features(context(), {{"transaction.version", 2}, c.update});
        EXPECT_THAT(plan.records, IsEmpty());
        EXPECT_TRUE(plan.answers.at(0).ok());
        EXPECT_EQ(text_of(plan.answers.at(1)), "95 Invalid update version " + std::to_string(c.update.level) + " for feature " + c.text);
    }
}

TEST_F(Changes, UpdateFeaturesWritesWhatDiffers) {
    apply(plan_update_features(context(), {{"transaction.version", 2}, {"group.version", 1}, {"eligible.leader.replicas.version", 1}}).records);
    EXPECT_EQ(image_->feature("transaction.version"), 2);
    EXPECT_EQ(image_->feature("group.version"), 1);
    EXPECT_THAT(plan_update_features(context(), {{"group.version", 1}}).records, IsEmpty());
    apply(plan_update_features(context(), {{"group.version", 0, FeatureUpdateType::unsafe_downgrade}}).records);
    EXPECT_EQ(image_->feature("group.version"), 0);
}

TEST_F(Changes, EligibleLeaderReplicasNeedTheirMetadataVersionAndMakeMinIsrTheClusters) {
    using Feature = protocol::FeatureLevelRecord;
    const auto broker = static_cast<std::int8_t>(ResourceType::broker);
    apply({Feature{.name = "metadata.version", .feature_level = 22}, Feature{.name = "eligible.leader.replicas.version", .feature_level = 0},
           protocol::ConfigRecord{.resource_type = broker, .resource_name = "1", .name = "min.insync.replicas", .value = "2"}});
    const FeatureUpdate elr{"eligible.leader.replicas.version", 1};
    EXPECT_FALSE(plan_update_features(context(), {elr}).answers.at(0).ok());
    apply(plan_update_features(context(), {elr, {"metadata.version", 25}}).records);
    EXPECT_EQ(image_->feature("eligible.leader.replicas.version"), 1);
    EXPECT_EQ(image_->overrides(ResourceType::broker, "").at("min.insync.replicas"), "2");
    EXPECT_FALSE(image_->overrides(ResourceType::broker, "1").contains("min.insync.replicas"));
}

// A downgrade is possible exactly where Kafka's own table of versions says that nothing was added in between.
TEST(Features, LosesMetadata) {
    EXPECT_TRUE(loses_metadata(33, 32));
    EXPECT_TRUE(loses_metadata(33, 7));
    EXPECT_FALSE(loses_metadata(31, 30));
    EXPECT_TRUE(loses_metadata(31, 29));
    EXPECT_FALSE(loses_metadata(29, 23));
    EXPECT_TRUE(loses_metadata(23, 22));
    EXPECT_FALSE(loses_metadata(22, 17));
    EXPECT_FALSE(loses_metadata(7, 7));
    EXPECT_FALSE(loses_metadata(25, 33));
}

// --- topics ----------------------------------------------------------------------------------------------------------

TEST_F(Changes, CreateTopicsRefusals) {
    using Configs = std::vector<std::pair<std::string, std::optional<std::string>>>;
    const auto configs = [](Configs list) { return NewTopic{.name = "y", .partitions = 1, .replication_factor = 1, .configs = std::move(list)}; };
    using Assignments = std::map<std::int32_t, std::vector<std::int32_t>>;
    const auto assigned = [](Assignments list, int partitions = -1, int factor = -1) {
        return NewTopic{.name = "y", .partitions = partitions, .replication_factor = static_cast<std::int16_t>(factor), .assignments = std::move(list)};
    };
    const std::string long_name(250, 'a');
    const struct {
        NewTopic topic;
        std::string answer;
    } cases[] = {
        {{.name = "x", .partitions = 1, .replication_factor = 1}, "36 Topic 'x' already exists."},
        {{.name = ""}, "17 Topic name is invalid: the empty string is not allowed"},
        {{.name = "."}, "17 Topic name is invalid: '.' is not allowed"},
        {{.name = ".."}, "17 Topic name is invalid: '..' is not allowed"},
        {{.name = "a/b"}, "17 Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
        {{.name = "../x"}, "17 Topic name is invalid: '../x' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
        {{.name = std::string("a\0b", 3)}, "17 Topic name is invalid: '" + std::string("a\0b", 3) + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
        {{.name = "é"}, "17 Topic name is invalid: 'é' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
        {{.name = long_name}, "17 Topic name is invalid: the length of '" + long_name + "' is longer than the max allowed length 249"},
        {{.name = "__cluster_metadata"}, "42 Creation of internal topic __cluster_metadata is prohibited."},
        {{.name = "a_b", .partitions = 1, .replication_factor = 1}, "17 Topic 'a_b' collides with existing topic: a.b"},
        {{.name = "a.b", .partitions = 1, .replication_factor = 1}, "36 Topic 'a.b' already exists."},
        {{.name = "y", .partitions = 0, .replication_factor = 1}, "37 Number of partitions was set to an invalid non-positive value."},
        {{.name = "y", .partitions = -2, .replication_factor = 1}, "37 Number of partitions was set to an invalid non-positive value."},
        {{.name = "y", .partitions = 1, .replication_factor = 0}, "38 Replication factor must be larger than 0, or -1 to use the default value."},
        {{.name = "y", .partitions = 1, .replication_factor = -2}, "38 Replication factor must be larger than 0, or -1 to use the default value."},
        {{.name = "y", .partitions = 0, .replication_factor = 0}, "38 Replication factor must be larger than 0, or -1 to use the default value."},
        {{.name = "y", .partitions = 1, .replication_factor = 2},
         "38 Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because only 1 broker(s) are registered or some brokers have all their log "
         "directories cordoned."},
        {{.name = "y", .partitions = 10'001, .replication_factor = 1}, "44 Excessively large number of partitions per request."},
        {{.name = "y", .partitions = 10'000, .replication_factor = 1}, "44 Unable to perform excessively large batch operation."},
        {assigned({{0, {1}}}, 1), "42 A manual partition assignment was specified, but numPartitions was not set to -1."},
        {assigned({{0, {1}}}, -1, 1), "42 A manual partition assignment was specified, but replication factor was not set to -1."},
        {assigned({{0, {1}}, {2, {1}}}), "39 partitions should be a consecutive 0-based integer sequence"},
        {assigned({{1, {1}}}), "39 partitions should be a consecutive 0-based integer sequence"},
        {assigned({{-1, {1}}}), "39 partitions should be a consecutive 0-based integer sequence"},
        {assigned({{0, {}}}), "39 The manual partition assignment includes an empty replica list."},
        {assigned({{0, {1, 1}}}), "39 The manual partition assignment includes the broker 1 more than once."},
        {assigned({{0, {7}}}), "39 The manual partition assignment includes broker 7, but no such broker is registered."},
        {assigned({{0, {1, 7}}}), "39 The manual partition assignment includes broker 7, but no such broker is registered."},
        {assigned({{0, {-1}}}), "39 The manual partition assignment includes broker -1, but no such broker is registered."},
        {configs({{"foo", "bar"}}), "40 Unknown topic config name: foo"},
        {configs({{"", "1"}}), "40 Unknown topic config name: "},
        {configs({{"segment.bytes", "x"}}), "40 Invalid value x for configuration segment.bytes: Not a number of type INT"},
        {configs({{"segment.bytes", "1"}}), "40 Invalid value 1 for configuration segment.bytes: Value must be at least 1048576"},
        {configs({{"segment.bytes", std::nullopt}}), "40 Null value not supported for topic configs: segment.bytes"},
        {configs({{"segment.ms", std::nullopt}, {"segment.bytes", std::nullopt}}), "40 Null value not supported for topic configs: segment.ms,segment.bytes"},
        {configs({{"min.compaction.lag.ms", "100"}, {"max.compaction.lag.ms", "10"}}), "40 conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)"},
        {configs({{"segment.ms", "x"}, {"aaa", "b"}}), "40 Unknown topic config name: aaa"},
        {configs({{"cleanup.policy", "foo"}}), "40 Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"},
        {configs({{"remote.storage.enable", "true"}}), "40 Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."},
        {{.name = "y", .partitions = 0, .replication_factor = 1, .configs = {{"segment.ms", "x"}}}, "40 Invalid value x for configuration segment.ms: Not a number of type LONG"},
        {configs({{"log.retention.mintimestamp", "-1"}}), "40 Invalid value -1 for configuration log.retention.mintimestamp: Value must be at least 0"},
    };
    for (const auto& c : cases) {
        const auto plan = plan_create_topics(context(), {c.topic});
        EXPECT_EQ(text_of(plan.answers.at(0).outcome), c.answer) << c.topic.name;
        EXPECT_TRUE(plan.answers.at(0).id.is_zero());
        EXPECT_EQ(plan.answers.at(0).partitions, -1);
        EXPECT_THAT(plan.records, IsEmpty());
    }
}

TEST_F(Changes, CreateTopicsAcceptsTheLimits) {
    const NewTopic cases[] = {
        {.name = std::string(249, 'a'), .partitions = 1, .replication_factor = 1},
        {.name = "y", .partitions = 9'999, .replication_factor = 1},
        {.name = "y", .assignments = {{0, {1}}, {1, {1}}}},
        {.name = "y", .partitions = 1, .replication_factor = 1, .configs = {{"cleanup.policy", ""}}},
        {.name = "y", .partitions = 1, .replication_factor = 1, .configs = {{"max.message.bytes", "0"}, {"min.insync.replicas", "5"}, {"retention.bytes", "-5"}}},
        {.name = "y", .partitions = 1, .replication_factor = 1, .configs = {{"segment.bytes", "x"}, {"segment.bytes", "1048576"}}},   // the last one counts
    };
    for (const auto& topic : cases) {
        const auto plan = plan_create_topics(context(), {topic});
        EXPECT_TRUE(plan.answers.at(0).outcome.ok()) << text_of(plan.answers.at(0).outcome);
        EXPECT_FALSE(plan.answers.at(0).outcome.message.has_value());
    }
}

TEST_F(Changes, CreateTopicsWritesOneBatch) {
    file_ = {{"num.partitions", "2"}};
    const auto plan = plan_create_topics(context(), {{.name = "y", .configs = {{"segment.ms", "5"}, {"min.insync.replicas", "1"}}}, {.name = "bad/name"}, {.name = "z", .partitions = 1}});
    EXPECT_TRUE(plan.answers[0].outcome.ok());
    EXPECT_EQ(plan.answers[0].partitions, 2);
    EXPECT_EQ(plan.answers[0].replication_factor, 1);
    EXPECT_FALSE(plan.answers[1].outcome.ok());
    EXPECT_TRUE(plan.answers[2].outcome.ok());
    std::vector<std::string> names;
    for (const auto& record : plan.records) names.push_back(protocol::name_of(record));
    EXPECT_THAT(names, ElementsAre("TopicRecord", "ConfigRecord", "ConfigRecord", "ClearElrRecord", "PartitionRecord", "PartitionRecord", "TopicRecord", "PartitionRecord"));
    const auto& partition = std::get<protocol::PartitionRecord>(plan.records[5]);
    EXPECT_EQ(partition, (protocol::PartitionRecord{.partition_id = 1, .topic_id = plan.answers[0].id, .replicas = {1}, .isr = {1}, .leader = 1, .leader_epoch = 0, .partition_epoch = 0,
                                                    .directories = {directory}}));
    apply(plan.records);
    EXPECT_EQ(image_->overrides(ResourceType::topic, "y").at("segment.ms"), "5");
}

TEST_F(Changes, TopicsOfOneRequestKnowOfEachOther) {
    const auto plan = plan_create_topics(context(), {{.name = "t"}, {.name = "t"}, {.name = "c.d"}, {.name = "c_d"}});
    EXPECT_EQ(text_of(plan.answers[0].outcome), "42 Duplicate topic name.");
    EXPECT_EQ(text_of(plan.answers[1].outcome), "42 Duplicate topic name.");
    EXPECT_TRUE(plan.answers[2].outcome.ok());
    EXPECT_EQ(text_of(plan.answers[3].outcome), "17 Topic 'c_d' collides with existing topic: c.d");
    // Together too large: nothing at all is created.
    const auto large = plan_create_topics(context(), {{.name = "y", .partitions = 5'000}, {.name = "z", .partitions = 5'001}});
    EXPECT_EQ(text_of(large.answers[0].outcome), "44 Excessively large number of partitions per request.");
    EXPECT_EQ(text_of(large.answers[1].outcome), "44 Excessively large number of partitions per request.");
}

TEST_F(Changes, PartitionsGoToTheEmptiestDirectory) {
    directories_ = {directory, other_directory};   // three partitions stand in the first one
    const auto plan = plan_create_topics(context(), {{.name = "y", .partitions = 5}});
    std::map<Uuid, int> counts;
    for (const auto& record : plan.records) {
        if (const auto* partition = std::get_if<protocol::PartitionRecord>(&record)) ++counts[partition->directories.at(0)];
    }
    EXPECT_EQ(counts[directory], 1);
    EXPECT_EQ(counts[other_directory], 4);
}

TEST_F(Changes, DeleteTopics) {
    const Uuid x = image_->find("x")->id, unknown = Uuid::of(77);
    const auto answers = [&](const std::vector<TopicToDelete>& topics) {
        std::vector<std::string> texts;
        const auto plan = plan_delete_topics(context(), topics);
        for (const auto& answer : plan.answers) texts.push_back(text_of(answer.outcome));
        texts.push_back(std::to_string(plan.records.size()));
        return texts;
    };
    EXPECT_THAT(answers({{.name = "nope"}}), ElementsAre("3 This server does not host this topic-partition.", "0"));
    EXPECT_THAT(answers({{.name = "a/b"}}), ElementsAre("3 This server does not host this topic-partition.", "0"));
    EXPECT_THAT(answers({{.id = unknown}}), ElementsAre("100 This server does not host this topic ID.", "0"));
    EXPECT_THAT(answers({{.name = "x", .id = unknown}}), ElementsAre("42 You may not specify both topic name and topic id.", "0"));
    EXPECT_THAT(answers({{}}), ElementsAre("42 Neither topic name nor id were specified.", "0"));
    EXPECT_THAT(answers({{.name = "x"}, {.name = "x"}}), ElementsAre("42 Duplicate topic name.", "42 Duplicate topic name.", "0"));
    EXPECT_THAT(answers({{.id = x}, {.id = x}}), ElementsAre("42 Duplicate topic id.", "42 Duplicate topic id.", "0"));
    EXPECT_THAT(answers({{.name = "x"}, {.id = x}}), ElementsAre("42 The provided topic name maps to an ID that was already supplied.", "42 The provided topic name maps to an ID that was already supplied.", "0"));
    const auto plan = plan_delete_topics(context(), {{.id = x}, {.name = "a.b"}});
    EXPECT_EQ(plan.answers[0].name, "x");
    EXPECT_EQ(plan.answers[1].id, image_->find("a.b")->id);
    apply(plan.records);
    EXPECT_THAT(image_->topics, IsEmpty());
}

TEST_F(Changes, CreatePartitions) {
    const auto answer = [&](NewPartitions topic) { return text_of(plan_create_partitions(context(), {std::move(topic)}).answers.at(0)); };
    using Lists = std::vector<std::vector<std::int32_t>>;
    EXPECT_EQ(answer({.topic = "x", .count = 2}), "37 Topic already has 2 partition(s).");
    EXPECT_EQ(answer({.topic = "x", .count = 1}), "37 The topic x currently has 2 partition(s); 1 would not be an increase.");
    EXPECT_EQ(answer({.topic = "x", .count = -1}), "37 The topic x currently has 2 partition(s); -1 would not be an increase.");
    EXPECT_EQ(answer({.topic = "nope", .count = 4}), "3 null");
    EXPECT_EQ(answer({.topic = "x", .count = 4, .assignments = Lists{{1}}}), "39 Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.");
    EXPECT_EQ(answer({.topic = "x", .count = 3, .assignments = Lists{}}), "39 Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.");
    EXPECT_EQ(answer({.topic = "x", .count = 3, .assignments = Lists{{}}}), "39 The manual partition assignment includes an empty replica list.");
    EXPECT_EQ(answer({.topic = "x", .count = 3, .assignments = Lists{{9}}}), "39 The manual partition assignment includes broker 9, but no such broker is registered.");
    EXPECT_EQ(answer({.topic = "x", .count = 3, .assignments = Lists{{1, 1}}}), "39 The manual partition assignment includes the broker 1 more than once.");
    EXPECT_EQ(answer({.topic = "x", .count = 20'000}), "44 Excessively large number of additional partitions per request.");
    EXPECT_EQ(answer({.topic = "x", .count = 3, .assignments = Lists{{1}}}), "0 null");
    const auto twice = plan_create_partitions(context(), {{.topic = "x", .count = 5}, {.topic = "x", .count = 6}});
    EXPECT_EQ(text_of(twice.answers[0]), "42 Duplicate topic name.");
    EXPECT_THAT(twice.records, IsEmpty());
    apply(plan_create_partitions(context(), {{.topic = "x", .count = 4}, {.topic = "a.b", .count = 2}}).records);
    EXPECT_EQ(image_->find("x")->partitions.size(), 4u);
    EXPECT_EQ(image_->find(TopicPartition{"x", 3})->leader, 1);
    EXPECT_EQ(image_->find("a.b")->partitions.size(), 2u);
}

// --- configs ---------------------------------------------------------------------------------------------------------

constexpr std::int8_t set = 0, remove = 1, append = 2, subtract = 3;
constexpr std::int8_t topic = 2, broker = 4, client_metrics = 16, group = 32;

TEST_F(Changes, AlterConfigsRefusals) {
    const std::string illegal = "Topic name is invalid: 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
    const struct {
        AlterConfigs request;
        std::string answer;
    } cases[] = {
        {{topic, "x", {{"cleanup.policy", append, "foo"}}}, "40 Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"},
        {{topic, "x", {{"segment.ms", append, "5"}}}, "40 Can't APPEND to key segment.ms because its type is not LIST."},
        {{topic, "x", {{"segment.ms", subtract, "5"}}}, "40 Can't SUBTRACT to key segment.ms because its type is not LIST."},
        {{topic, "x", {{"foo", append, "5"}}}, "40 Can't APPEND to key foo because its type is not LIST."},
        {{topic, "x", {{"segment.ms", set, std::nullopt}}}, "42 Null value not supported for : segment.ms"},
        {{topic, "x", {{"cleanup.policy", append, std::nullopt}}}, "42 Null value not supported for : cleanup.policy"},
        {{topic, "x", {{"segment.ms", set, std::nullopt}, {"segment.bytes", set, std::nullopt}}}, "42 Null value not supported for : segment.ms, segment.bytes"},
        {{topic, "x", {{"foo", set, "1"}}}, "40 Unknown topic config name: foo"},
        {{topic, "x", {{"segment.ms", 9, "1"}}}, "-1 null"},
        {{topic, "x", {{"segment.ms", -1, "1"}}}, "-1 null"},
        {{topic, "x", {{"segment.ms", set, "x"}}}, "40 Invalid value x for configuration segment.ms: Not a number of type LONG"},
        {{topic, "x", {{"min.compaction.lag.ms", set, "10"}, {"max.compaction.lag.ms", set, "5"}}}, "40 conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"},
        {{topic, "nope", {{"segment.ms", set, "5"}}}, "3 The topic 'nope' does not exist."},
        {{topic, "nope", {}}, "3 The topic 'nope' does not exist."},
        {{topic, "a/b", {{"segment.ms", set, "5"}}}, "17 " + illegal},
        {{topic, "", {{"segment.ms", set, "5"}}}, "42 Default topic resources are not allowed."},
        {{topic, "x", {{"segment.ms", set, "5000"}, {"segment.ms", remove, std::nullopt}}}, "42 Error due to duplicate config keys"},
        {{broker, "1", {{"num.partitions", set, "5"}}}, "42 Cannot update these configs dynamically: [num.partitions]"},
        {{broker, "1", {{"num.partitions", set, "5"}, {"node.id", set, "3"}}}, "42 Cannot update these configs dynamically: [node.id, num.partitions]"},
        {{broker, "", {{"listeners", set, "PLAINTEXT://:1"}}}, "42 Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
        {{broker, "2", {{"log.retention.ms", set, "5"}}}, "42 Unexpected broker id, expected 1, but received 2"},
        {{broker, "abc", {{"log.retention.ms", set, "5"}}}, "42 Node id must be an integer, but it is: abc"},
        {{broker, "-1", {{"log.retention.ms", set, "5"}}}, "42 Unexpected broker id, expected 1, but received -1"},
        {{broker, "", {{"log.retention.ms", set, "x"}}}, "42 Invalid value x for configuration log.retention.ms: Not a number of type LONG"},
        {{broker, "", {{"log.segment.bytes", set, "5"}}}, "42 Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576"},
        {{broker, "", {{"log.retention.ms", set, "0"}}}, "42 log.retention.ms must be unlimited (-1) or, greater than or equal to 1"},
        {{broker, "", {{"log.cleaner.threads", set, "9"}}}, "42 Log cleaner threads cannot be increased to more than double the current value 1"},
        {{broker, "", {{"num.io.threads", set, "100"}}}, "42 Dynamic thread count update validation failed for num.io.threads=100, value should not be greater than double the current value 8"},
        {{broker, "", {{"num.io.threads", set, "1"}}}, "42 Dynamic thread count update validation failed for num.io.threads=1, value should be at least half the current value 8"},
        {{broker, "", {{"log.cleaner.dedupe.buffer.size", set, "1000"}}}, "42 log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
        {{broker, "1", {{"min.insync.replicas", set, "1"}}}, "40 Broker-level min.insync.replicas cannot be altered while ELR is enabled."},
        {{broker, "", {{"min.insync.replicas", remove, std::nullopt}}}, "40 Cluster-level min.insync.replicas cannot be removed while ELR is enabled."},
        {{broker, "", {}, true}, "40 Cluster-level min.insync.replicas cannot be removed while ELR is enabled."},
        {{broker, "1", {{"log.retention.ms", set, std::nullopt}}}, "42 Null value not supported for : log.retention.ms"},
        {{broker, "", {{"log.retention.ms", append, "5"}}}, "40 Config value append is not allowed for config key: log.retention.ms"},
        {{broker, "1", {{"ssl.keystore.password", set, "secret"}}}, "42 These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.password]"},
        {{client_metrics, "cm", {{"foo", set, "60000"}}}, "42 Unknown client metrics configuration: foo"},
        {{client_metrics, "cm", {{"interval.ms", set, "x"}}}, "40 Invalid value x for configuration interval.ms: Not a number of type INT"},
        {{client_metrics, "cm", {{"interval.ms", set, "1"}}}, "42 Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)"},
        {{client_metrics, "", {{"interval.ms", set, "60000"}}}, "42 Subscription name can't be empty"},
        {{client_metrics, "cm", {{"match", set, "foo=bar"}}}, "40 Illegal client matching pattern: foo=bar"},
        {{client_metrics, "cm", {{"match", set, "client_id"}}}, "40 Illegal client matching pattern: client_id"},
        {{client_metrics, "cm", {{"metrics", append, "a.b"}}}, "40 Can't APPEND to key metrics because its type is not LIST."},
        {{group, "g", {{"foo", set, "50000"}}}, "40 Unknown group config name: foo"},
        {{group, "g", {{"consumer.session.timeout.ms", set, "x"}}}, "40 Invalid value x for configuration consumer.session.timeout.ms: Not a number of type INT"},
        {{group, "g", {{"consumer.session.timeout.ms", set, "1000"}}}, "40 consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive."},
        {{group, "g", {{"consumer.heartbeat.interval.ms", set, "1"}}}, "40 consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive."},
        {{group, "g", {{"consumer.assignment.interval.ms", set, "99999999"}}}, "40 consumer.assignment.interval.ms must be in the range 0 to 15000 inclusive."},
        {{group, "", {{"consumer.session.timeout.ms", set, "50000"}}}, "42 Default group resources are not allowed."},
        {{1, "g", {{"a", set, "1"}}}, "42 Unknown resource type 1"},
        {{99, "g", {{"a", set, "1"}}}, "42 Unknown resource type 99"},
        {{topic, "x", {{"segment.ms", set, std::nullopt}}, true}, "42 Null value not supported for : segment.ms"},
        {{topic, "x", {{"foo", set, "1"}}, true}, "40 Unknown topic config name: foo"},
    };
    for (const auto& c : cases) {
        const auto plan = plan_alter_configs(context(), {c.request});
        EXPECT_EQ(text_of(plan.answers.at(0)), c.answer) << static_cast<int>(c.request.resource_type) << " " << c.request.resource_name;
        EXPECT_THAT(plan.records, IsEmpty());
    }
}

TEST_F(Changes, AlterConfigsAccepted) {
    const AlterConfigs cases[] = {
        {topic, "x", {}},
        {topic, "x", {{"segment.ms", remove, std::nullopt}}},
        {topic, "x", {{"foo", remove, std::nullopt}}},
        {topic, "x", {{"cleanup.policy", subtract, "compact"}}},
        {topic, "x", {{"log.retention.mintimestamp", set, "1700000000000"}}},
        {broker, "1", {{"foo.bar", set, "5"}}},               // other software's own
        {broker, "1", {{"num.partitions", remove, std::nullopt}}},
        {broker, "1", {{"log.retention.ms", set, "-1"}}},
        {broker, "", {{"min.insync.replicas", set, "1"}}},
        {broker, "", {{"log.cleanup.policy", append, "compact"}}},
        {broker, "", {{"log.cleaner.threads", set, "2"}}},
        {broker, "1", {{"leader.replication.throttled.rate", set, "1000"}}},
        {client_metrics, "cm", {{"interval.ms", set, "60000"}, {"match", set, "client_id=.*"}, {"metrics", set, "a.b"}}},
        {group, "g", {{"consumer.session.timeout.ms", set, "50000"}}},
        {group, "g", {{"consumer.heartbeat.interval.ms", set, "15000"}, {"consumer.session.timeout.ms", set, "45000"}}},
    };
    for (const auto& request : cases) {
        const auto plan = plan_alter_configs(context(), {request});
        EXPECT_EQ(text_of(plan.answers.at(0)), "0 null") << static_cast<int>(request.resource_type) << " " << (request.changes.empty() ? "" : request.changes[0].key);
    }
}

TEST_F(Changes, ListsStartFromWhatHolds) {
    const auto alter = [&](std::int8_t op, const std::string& value) {
        const auto plan = plan_alter_configs(context(), {{topic, "x", {{"cleanup.policy", op, value}}}});
        EXPECT_TRUE(plan.answers[0].ok()) << text_of(plan.answers[0]);
        apply(plan.records);
        const auto& overrides = image_->overrides(ResourceType::topic, "x");
        return overrides.contains("cleanup.policy") ? overrides.at("cleanup.policy") : "none";
    };
    EXPECT_EQ(alter(append, "compact"), "delete,compact");
    EXPECT_EQ(alter(append, "compact"), "delete,compact");
    EXPECT_EQ(alter(subtract, "delete"), "compact");
    EXPECT_EQ(alter(subtract, "compact"), "");            // the empty list is an override of its own
    EXPECT_EQ(alter(subtract, "compact"), "");
    EXPECT_EQ(alter(append, "delete"), "delete");
}

TEST_F(Changes, OnlyChangedKeysAreWritten) {
    apply(plan_alter_configs(context(), {{topic, "x", {{"segment.ms", set, "5"}, {"retention.ms", set, "6"}}}}).records);
    EXPECT_THAT(plan_alter_configs(context(), {{topic, "x", {{"segment.ms", set, "5"}}}}).records, IsEmpty());
    const auto plan = plan_alter_configs(context(), {{topic, "x", {{"segment.ms", set, "7"}, {"retention.ms", remove, std::nullopt}}}});
    EXPECT_EQ(plan.records.size(), 2u);
    apply(plan.records);
    EXPECT_THAT(image_->overrides(ResourceType::topic, "x"), ElementsAre(std::pair("segment.ms", "7")));
    // AlterConfigs (33) replaces all.
    apply(plan_alter_configs(context(), {{topic, "x", {{"retention.ms", set, "8"}}, true}}).records);
    EXPECT_THAT(image_->overrides(ResourceType::topic, "x"), ElementsAre(std::pair("retention.ms", "8")));
    apply(plan_alter_configs(context(), {{topic, "x", {}, true}}).records);
    EXPECT_THAT(image_->overrides(ResourceType::topic, "x"), IsEmpty());
}

TEST_F(Changes, ChangesOfMinIsrClearTheElr) {
    const auto plan = plan_alter_configs(context(), {{topic, "x", {{"min.insync.replicas", set, "2"}}}, {broker, "", {{"min.insync.replicas", set, "3"}}}});
    std::vector<std::string> cleared;
    for (const auto& record : plan.records) {
        if (const auto* clear = std::get_if<protocol::ClearElrRecord>(&record)) cleared.push_back(clear->topic_name);
    }
    EXPECT_THAT(cleared, ElementsAre("x", ""));
}

TEST_F(Changes, ResourcesAreIndependentButNotTwice) {
    const auto plan = plan_alter_configs(context(), {{topic, "x", {{"segment.ms", set, "x"}}}, {topic, "a.b", {{"segment.ms", set, "9"}}}});
    EXPECT_FALSE(plan.answers[0].ok());
    EXPECT_TRUE(plan.answers[1].ok());
    EXPECT_EQ(plan.records.size(), 1u);
    const auto twice = plan_alter_configs(context(), {{topic, "x", {}}, {topic, "x", {}}});
    EXPECT_EQ(text_of(twice.answers[0]), "42 Each resource must appear at most once.");
    EXPECT_EQ(text_of(twice.answers[1]), "42 Each resource must appear at most once.");
}

TEST_F(Changes, KeysOfALaterKafkaDoNotStandInTheWay) {
    apply({protocol::ConfigRecord{.resource_type = topic, .resource_name = "x", .name = "key.of.kafka.9", .value = "1"}});
    EXPECT_TRUE(plan_alter_configs(context(), {{topic, "x", {{"segment.ms", set, "9"}}}}).answers[0].ok());
    EXPECT_TRUE(plan_alter_configs(context(), {{topic, "x", {{"key.of.kafka.9", remove, std::nullopt}}}}).answers[0].ok());
    EXPECT_FALSE(plan_alter_configs(context(), {{topic, "x", {{"key.of.kafka.9", set, "2"}}}}).answers[0].ok() &&
                 plan_alter_configs(context(), {{topic, "x", {{"key.of.kafka.8", set, "2"}}}}).answers[0].ok());
}

// --- leadership ------------------------------------------------------------------------------------------------------

TEST(Leadership, IsTakenWhereItIsMissing) {
    const Uuid id = Uuid::of(1);
    Partition fine;
    fine.replicas = fine.isr = {1};
    fine.leader = 1;
    fine.directories = {directory};
    EXPECT_EQ(plan_leadership(id, 0, fine, 1, directory, 33), std::nullopt);
    EXPECT_EQ(plan_leadership(id, 0, fine, 1, other_directory, 33)->directories, (std::vector<Uuid>{other_directory}));
    EXPECT_EQ(plan_leadership(id, 0, fine, 1, other_directory, 33)->leader, -2);   // the epoch stays
    Partition stopped = fine;   // as Apache Kafka leaves it: no leader, out of the ISR, eligible
    stopped.isr = {};
    stopped.leader = -1;
    stopped.elr = stopped.last_known_elr = {1};
    const auto change = plan_leadership(id, 3, stopped, 1, directory, 33);
    EXPECT_EQ(*change, (protocol::PartitionChangeRecord{.partition_id = 3, .topic_id = id, .isr = {{1}}, .leader = 1, .eligible_leader_replicas = {{}}, .last_known_elr = {{}}}));
    Partition recovering = fine;
    recovering.leader_recovery_state = 1;
    EXPECT_EQ(plan_leadership(id, 0, recovering, 1, directory, 33)->leader_recovery_state, 0);
    // Old record versions have no place for directories and ELR.
    EXPECT_EQ(plan_leadership(id, 0, fine, 1, other_directory, 16), std::nullopt);
    EXPECT_EQ(plan_leadership(id, 0, stopped, 1, directory, 22)->eligible_leader_replicas, std::nullopt);
}

}  // namespace
}  // namespace tidemark::metadata
