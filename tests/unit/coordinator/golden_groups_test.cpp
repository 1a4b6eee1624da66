// Directories that Apache Kafka wrote: what is replayed from them is what Kafka answers, and records written again have the
// same bytes. The data lie beside the project ($TIDEMARK_SHARED or ../shared, golden-coordinator).
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "protocol/messages/group_metadata_key.h"
#include "tests/support/coordinator/test_groups.h"
#include "tests/support/golden.h"

namespace tidemark::test {
namespace {

namespace json = boost::json;
using testing::UnorderedElementsAreArray;

std::string hex(Bytes bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
    return text;
}

std::vector<std::byte> bytes_of(std::string_view text) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoi(std::string{text.substr(i, 2)}, nullptr, 16)));
    return bytes;
}

/// A coordinator over the logs of a case.
class GoldenGroups {
public:
    explicit GoldenGroups(const std::filesystem::path& directory) : expected(json::parse(content_of(directory / "expect.json")).as_object()) {
        metadata::Image image;
        image.offset = Offset{1};
        const auto add = [&](const std::string& topic, const Uuid& id, int partitions) {
            auto made = std::make_shared<metadata::Topic>(metadata::Topic{.name = topic, .id = id, .partitions = {}});
            for (int i = 0; i < partitions; ++i) made->partitions[i].leader = 1;
            image.topics[topic] = made;
            image.topics_by_id[id] = made;
        };
        add(std::string{group_topic}, Uuid::of(50), 3);
        for (const auto& [topic, id] : expected.at("state").at("topicIds").as_object()) {
            if (topic != group_topic) add(std::string{topic}, *Uuid::parse(id.as_string()), 3);
        }
        coordinator = std::make_unique<GroupCoordinator>(RuntimeOptions{.topic = std::string{group_topic}},
                                                         RuntimeParts{.clock = clock,
                                                                      .open_journal =
                                                                          [directory](const TopicPartition& partition) {
                                                                              auto journal = std::make_shared<MemoryJournal>();
                                                                              const auto raw = content_of(directory / "data" / partition.text() / "00000000000000000000.log");
                                                                              journal->add_raw(as_bytes(raw));
                                                                              return journal;
                                                                          },
                                                                      .executor = [](std::function<void()> job) { job(); }},
                                                         GroupOptions{});
        coordinator->image_changed(std::make_shared<const metadata::Image>(std::move(image)), GroupOptions{});
    }

    json::object expected;
    ManualClock clock;
    std::unique_ptr<GroupCoordinator> coordinator;
};

std::string offset_text(std::string_view topic, std::int64_t partition, std::int64_t offset, std::int64_t epoch, std::string_view metadata) {
    return fmt::format("{}-{} {} epoch {} '{}'", topic, partition, offset, epoch, metadata);
}

class GoldenCase : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const auto found = golden_directory(std::filesystem::path{"golden-coordinator"} / GetParam());
        if (!found) GTEST_SKIP() << no_golden_data;
        directory = *found;
    }
    std::filesystem::path directory;
};

TEST_P(GoldenCase, IsReplayedToWhatKafkaAnswers) {
    GoldenGroups groups{directory};
    std::vector<std::string> expected_list, listed;
    // Where Kafka wrote something when it opened the directory, what it had answered before.
    const auto* state = groups.expected.contains("stateBeforeKill") ? "stateBeforeKill" : "state";
    for (const auto& value : groups.expected.at(state).at("groups").as_array()) {
        const auto& group = value.as_object();
        const std::string id{group.at("group").as_string()};
        expected_list.push_back(id + " " + std::string{group.at("state").as_string()} + " " + std::string{group.at("protocolType").as_string()});

        Asked<std::vector<protocol::DescribeGroupsResponse::DescribedGroup>> described;
        groups.coordinator->describe({id}, 6, described.reply());
        const auto& found = described->front();
        EXPECT_EQ(found.group_state, std::string{group.at("state").as_string()}) << id;
        EXPECT_EQ(found.protocol_data, std::string{group.at("protocol").as_string()}) << id;
        std::vector<std::string> expected_members, members;
        for (const auto& each : group.at("members").as_array()) {
            const auto& member = each.as_object();
            const auto* instance = member.at("instanceId").if_string();
            expected_members.push_back(fmt::format("{} {} {} {} {} {}", std::string_view{member.at("memberId").as_string()}, instance != nullptr ? std::string_view{*instance} : "-",
                                                   std::string_view{member.at("clientId").as_string()}, std::string_view{member.at("clientHost").as_string()},
                                                   std::string_view{member.at("metadata").as_string()}, std::string_view{member.at("assignment").as_string()}));
        }
        for (const auto& member : found.members) {
            members.push_back(fmt::format("{} {} {} {} {} {}", member.member_id, member.group_instance_id.value_or("-"), member.client_id, member.client_host, hex(member.member_metadata), hex(member.member_assignment)));
        }
        EXPECT_THAT(members, UnorderedElementsAreArray(expected_members)) << id;

        Asked<std::vector<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>> fetched;
        groups.coordinator->fetch({{.group_id = id, .topics = std::nullopt}}, 9, true, fetched.reply());
        std::vector<std::string> expected_offsets, offsets;
        for (const auto& each : group.at("offsets").as_array()) {
            const auto& offset = each.as_object();
            expected_offsets.push_back(offset_text(offset.at("topic").as_string(), offset.at("partition").as_int64(), offset.at("offset").as_int64(), offset.at("leaderEpoch").as_int64(), offset.at("metadata").as_string()));
        }
        for (const auto& topic : fetched->front().topics) {
            for (const auto& p : topic.partitions) {
                if (p.error_code == ErrorCode::none) offsets.push_back(offset_text(topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata.value_or("")));
            }
        }
        EXPECT_THAT(offsets, UnorderedElementsAreArray(expected_offsets)) << id;
    }
    Asked<protocol::ListGroupsResponse> list;
    groups.coordinator->list({}, list.reply());
    for (const auto& group : list->groups) listed.push_back(group.group_id + " " + group.group_state + " " + group.protocol_type);
    EXPECT_THAT(listed, UnorderedElementsAreArray(expected_list));
}

TEST_P(GoldenCase, RecordsWrittenAgainHaveTheSameBytes) {
    using namespace protocol;
    const auto partitions = json::parse(content_of(directory / "records.json")).as_object();
    int compared = 0;
    const auto again = [&](const auto& key, const auto& record, auto read) {
        EXPECT_EQ(hex(key_bytes(key).value()), std::string{record.at("key").as_string()});
        if (const auto* value = record.at("value").if_string()) {
            EXPECT_EQ(hex(read(bytes_of(*value))), std::string{*value});
        }
        ++compared;
    };
    for (const auto& [partition, records] : partitions) {
        if (!std::string_view{partition}.starts_with(group_topic)) continue;
        for (const auto& each : records.as_array()) {
            const auto& record = each.as_object();
            if (!record.contains("type")) continue;   // markers
            const auto key = bytes_of(record.at("key").as_string());
            const auto type = record_type_of(key).value();
            if (type == OffsetCommitKey::record_type) {
                again(read_key<OffsetCommitKey>(key).value(), record, [](Bytes value) { return value_bytes(read_value<OffsetCommitValue>(value).value(), load_be<std::int16_t>(value.data())).value(); });
            } else if (type == GroupMetadataKey::record_type) {
                again(read_key<GroupMetadataKey>(key).value(), record, [](Bytes value) {
                    const auto read = read_value<GroupMetadataValue>(value).value();
                    EXPECT_EQ(load_be<std::int16_t>(value.data()), 3);
                    // By way of what memory makes of it, too; Kafka's order of members is its own.
                    if (read.members.size() <= 1) {
                        EXPECT_EQ(hex(*ClassicGroup::from_record("g", read)->metadata_record().value), hex(value));
                    }
                    return value_bytes(read, 3).value();
                });
            }
        }
    }
    EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Kafka, GoldenCase, testing::Values("classic-groups", "transactions-ongoing", "transactions-prepared"), [](const auto& played) {
    std::string name{played.param};
    std::ranges::replace(name, '-', '_');
    return name;
});

}  // namespace
}  // namespace tidemark::test
