// Replays the __consumer_offsets partitions that Kafka 4.4 wrote (golden-coordinator/consumer-groups) and compares the groups
// with what Kafka answered about them, and with the bytes that Kafka would write for them.
#include <boost/json.hpp>

#include <algorithm>
#include <map>

#include "tests/unit/coordinator/consumer_fixture.h"
#include "coordinator/group/consumer/subscription.h"
#include "coordinator/group/group_machine.h"
#include "tests/support/golden.h"

namespace tidemark::coordinator {
namespace {

namespace json = boost::json;

json::object read_json(const std::filesystem::path& path) { return json::parse(test::content_of(path)).as_object(); }

std::string text_of(const json::value& value) { return value.is_null() ? "" : std::string{value.as_string()}; }
std::int32_t number_of(const json::value& value) { return static_cast<std::int32_t>(value.as_int64()); }

std::vector<std::byte> bytes_of(const json::value& hex) {
    const std::string text{hex.as_string()};
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

std::map<std::string, std::vector<std::int32_t>> partitions_of(const json::value& assignment) {
    std::map<std::string, std::vector<std::int32_t>> result;
    for (const auto& topic : assignment.at("topicPartitions").as_array()) {
        for (const auto& partition : topic.at("partitions").as_array()) result[text_of(topic.at("topicName"))].push_back(number_of(partition));
    }
    return result;
}

std::map<std::string, std::vector<std::int32_t>> partitions_of(const protocol::ConsumerGroupDescribeResponse::Assignment& assignment) {
    std::map<std::string, std::vector<std::int32_t>> result;
    for (const auto& topic : assignment.topic_partitions) result[topic.topic_name] = topic.partitions;
    return result;
}

class GoldenConsumerGroups : public ::testing::Test {
protected:
    void SetUp() override {
        const auto directory = test::golden_directory("golden-coordinator/consumer-groups");
        if (!directory) GTEST_SKIP() << test::no_golden_data;
        state_ = read_json(*directory / "expect.json").at("state").as_object();
        world_.put_image([&](metadata::Image& image) {
            for (const auto& [name, id] : state_.at("topicIds").as_object()) {
                metadata::Topic topic{.name = name, .id = *Uuid::parse(text_of(id)), .partitions = {}};
                const auto count = topic.name == "data" ? 4 : topic.name == "other" ? 1 : 3;
                for (int i = 0; i < count; ++i) topic.partitions[i].replicas = {1};
                image.topics[topic.name] = image.topics_by_id[topic.id] = std::make_shared<metadata::Topic>(topic);
            }
        });
        for (const auto& [name, records] : read_json(*directory / "records.json")) {
            if (!name.starts_with("__consumer_offsets-")) continue;
            auto& machine = *(machines_[std::stoi(std::string{name.substr(name.find('-') + 1)})] = std::make_unique<GroupMachine>(std::make_shared<GroupOptions>()));
            for (const auto& record : records.as_array()) {
                const auto key = bytes_of(record.at("key"));
                const auto value = record.at("value").is_null() ? std::nullopt : std::optional{bytes_of(record.at("value"))};
                latest_[key] = value;
                const auto replayed = machine.replay(ReplayedRecord{.key = key, .value = value ? std::optional<Bytes>{*value} : std::nullopt, .offset = Offset{record.at("offset").as_int64()}});
                ASSERT_TRUE(replayed.has_value()) << replayed.error().message();
            }
            machine.loaded(world_);
        }
    }

    protocol::ConsumerGroupDescribeResponse::DescribedGroup describe(std::int32_t partition, const std::string& id) {
        protocol::ConsumerGroupDescribeResponse::DescribedGroup described;
        machines_.at(partition)->describe_consumer_group(world_, id, [&](auto coded) { described = *coded; });
        return described;
    }

    json::object state_;
    ConsumerCoordinator world_;   // for its image and clock
    std::map<std::int32_t, std::unique_ptr<GroupMachine>> machines_;
    std::map<std::vector<std::byte>, std::optional<std::vector<std::byte>>> latest_;
};

TEST_F(GoldenConsumerGroups, AreWhatKafkaSaysTheyAre) {
    std::size_t groups = 0;
    for (const auto& expected : state_.at("groups").as_array()) {
        const auto id = text_of(expected.at("group"));
        SCOPED_TRACE(id);
        const auto* group = machines_.at(number_of(expected.at("partition")))->groups().find(id);
        ASSERT_NE(group, nullptr);
        EXPECT_EQ(group->type(), expected.at("type") == "Consumer" ? GroupType::consumer : GroupType::classic);
        EXPECT_EQ(group->state_name(), text_of(expected.at("state")));
        EXPECT_EQ(group->protocol_type(), text_of(expected.at("protocolType")));
        ++groups;
        if (group->type() != GroupType::consumer) continue;

        const auto described = describe(number_of(expected.at("partition")), id);
        const auto& kafka = expected.at("describe");
        EXPECT_EQ(described.error_code, protocol::ErrorCode::none);
        EXPECT_EQ(described.group_state, text_of(kafka.at("groupState")));
        EXPECT_EQ(described.group_epoch, number_of(kafka.at("groupEpoch")));
        EXPECT_EQ(described.assignment_epoch, number_of(kafka.at("assignmentEpoch")));
        EXPECT_EQ(described.assignor_name, text_of(kafka.at("assignorName")));
        ASSERT_EQ(described.members.size(), kafka.at("members").as_array().size());
        for (const auto& member : kafka.at("members").as_array()) {
            const auto member_id = text_of(member.at("memberId"));
            SCOPED_TRACE(member_id);
            const auto ours = std::ranges::find(described.members, member_id, &protocol::ConsumerGroupDescribeResponse::Member::member_id);
            ASSERT_NE(ours, described.members.end());
            EXPECT_EQ(ours->instance_id.value_or(""), text_of(member.at("instanceId")));
            EXPECT_EQ(ours->rack_id.value_or(""), text_of(member.at("rackId")));
            EXPECT_EQ(ours->member_epoch, number_of(member.at("memberEpoch")));
            EXPECT_EQ(ours->client_id, text_of(member.at("clientId")));
            EXPECT_EQ(ours->client_host, text_of(member.at("clientHost")));
            std::vector<std::string> topics;
            for (const auto& topic : member.at("subscribedTopicNames").as_array()) topics.push_back(text_of(topic));
            EXPECT_THAT(ours->subscribed_topic_names, ::testing::UnorderedElementsAreArray(topics));
            EXPECT_EQ(ours->subscribed_topic_regex.value_or("null"), text_of(member.at("subscribedTopicRegex")));
            EXPECT_EQ(partitions_of(ours->assignment), partitions_of(member.at("assignment")));
            EXPECT_EQ(partitions_of(ours->target_assignment), partitions_of(member.at("targetAssignment")));
            EXPECT_EQ(ours->member_type, number_of(member.at("memberType")));
        }
    }
    std::size_t found = 0;
    for (const auto& [partition, machine] : machines_) found += machine->groups().size();
    EXPECT_EQ(found, groups);   // c-deleted is gone
    EXPECT_EQ(groups, 7u);
}

TEST_F(GoldenConsumerGroups, AreWrittenAsKafkaWritesThem) {
    std::size_t records = 0;
    for (const auto& [partition, machine] : machines_) {
        for (const auto& [id, group] : machine->groups()) {
            const auto* consumer = dynamic_cast<const ConsumerGroup*>(group.get());
            if (consumer == nullptr) continue;
            for (auto& record : records_of(*consumer)) {
                const auto kafka = latest_.find(record.key);
                ASSERT_NE(kafka, latest_.end()) << id << " type " << *protocol::record_type_of(record.key);
                ASSERT_TRUE(kafka->second.has_value());
                // Kafka lists topics in the order of a Java hash, so two of them may have changed places.
                if (record.value != kafka->second) {
                    EXPECT_EQ(id, "c-reconciling");
                    EXPECT_TRUE(std::ranges::is_permutation(*record.value, *kafka->second)) << id << " type " << *protocol::record_type_of(record.key);
                }
                ++records;
            }
        }
    }
    EXPECT_EQ(records, 37u);
}

TEST_F(GoldenConsumerGroups, HaveKafkasMetadataHashes) {
    for (const auto& [partition, machine] : machines_) {
        for (const auto& [id, group] : machine->groups()) {
            const auto* consumer = dynamic_cast<const ConsumerGroup*>(group.get());
            if (consumer == nullptr) continue;
            EXPECT_EQ(metadata_hash(*consumer, *world_.image()), consumer->metadata_hash()) << id;
        }
    }
}

TEST_F(GoldenConsumerGroups, LeaveNothingBehindTheirTombstones) {
    for (const auto& [partition, machine] : machines_) {
        std::vector<Record> tombstones;
        for (const auto& [id, group] : machine->groups()) {
            if (group->type() == GroupType::consumer) group->add_tombstones(tombstones);
        }
        for (const auto& record : tombstones) {
            const auto replayed = machine->replay(ReplayedRecord{.key = record.key, .value = std::nullopt});
            ASSERT_TRUE(replayed.has_value()) << replayed.error().message();
        }
        for (const auto& [id, group] : machine->groups()) EXPECT_EQ(group->type(), GroupType::classic) << id;
    }
}

}  // namespace
}  // namespace tidemark::coordinator
