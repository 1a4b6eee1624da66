/// Records of the internal logs: against bytes that Apache Kafka 4.4.0 wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "protocol/coordinator_record.h"
#include "protocol/messages/leader_change_message.h"
#include "protocol/messages/offset_commit_key.h"
#include "protocol/messages/offset_commit_value.h"
#include "protocol/messages/snapshot_footer_record.h"
#include "protocol/messages/snapshot_header_record.h"
#include "protocol/messages/transaction_log_key.h"
#include "protocol/metadata_record.h"
#include "tests/support/protocol/all_messages.h"
#include "tests/support/protocol/schema.h"
#include "tests/unit/protocol/support.h"

namespace tidemark::protocol {
namespace {

using testing::HasSubstr;

/// The value of a golden record of the metadata log (metadata-log 2.3), checked to be written back the same.
template <class Record>
Record golden(std::string_view notation, std::int16_t version) {
    const auto bytes = bytes_of(notation);
    const auto versioned = read_versioned_metadata_record(bytes);
    if (!versioned) {
        ADD_FAILURE() << versioned.error().message();
        return {};
    }
    EXPECT_EQ(versioned->version, version);
    const auto written = metadata_record_value(versioned->record, version);
    EXPECT_TRUE(written && hex(*written) == hex(bytes));
    EXPECT_EQ(type_of(versioned->record), Record::record_type);
    EXPECT_STREQ(name_of(versioned->record), Record::message_name);
    return std::get<Record>(versioned->record);
}

TEST(MetadataRecord, ReadsAndWritesWhatKafkaWrote) {
    const Uuid topic_id{[] {
        std::array<std::byte, 16> id{};
        const auto bytes = bytes_of("dc9c7691 00000000 00000000 5b9af40e");
        std::copy(bytes.begin(), bytes.end(), id.begin());
        return id;
    }()};
    EXPECT_EQ(golden<FeatureLevelRecord>("01 0c 00  11 'metadata.version' 0021 00", 0),
              (FeatureLevelRecord{.name = "metadata.version", .feature_level = 33}));
    EXPECT_EQ(golden<TopicRecord>("01 02 00  02 't' dc9c7691 00000000 00000000 5b9af40e 00", 0), (TopicRecord{.name = "t", .topic_id = topic_id}));
    EXPECT_EQ(golden<ConfigRecord>("01 04 00  02 02 't' 0d 'retention.ms' 03 '-1' 00", 0),
              (ConfigRecord{.resource_type = 2, .resource_name = "t", .name = "retention.ms", .value = "-1"}));
    EXPECT_EQ(golden<PartitionRecord>("01 03 02  00000000 dc9c7691 00000000 00000000 5b9af40e 02 00000001 02 00000001 01 01"
                                      "00000001 00000000 00000000 02 00000000 00000000 00000000 00000007 00", 2),
              (PartitionRecord{.partition_id = 0, .topic_id = topic_id, .replicas = {1}, .isr = {1}, .leader = 1, .leader_epoch = 0, .partition_epoch = 0,
                               .directories = {Uuid::of(7)}}));
    EXPECT_EQ(golden<BrokerRegistrationChangeRecord>("01 11 00 00000001 000000000000000f 01 00 01 ff", 0),
              (BrokerRegistrationChangeRecord{.broker_id = 1, .broker_epoch = 15, .fenced = -1}));
    EXPECT_EQ(golden<NoOpRecord>("01 14 00 00", 0), NoOpRecord{});
    EXPECT_EQ(golden<EndTransactionRecord>("01 18 00 00", 0), EndTransactionRecord{});
    EXPECT_EQ(golden<BeginTransactionRecord>("01 17 00 01 00 12 12 'Bootstrap records'", 0), BeginTransactionRecord{.name = "Bootstrap records"});
}

TEST(MetadataRecord, RefusesWhatItMustNotSkip) {
    struct Case {
        std::string_view bytes;
        Errc code;
        std::string_view text;
    };
    for (const auto& [notation, code, text] : {
             Case{"", Errc::corrupt, "1 bytes expected"},
             Case{"00 14 00 00", Errc::unsupported, "frame version 0"},
             Case{"02 14 00 00", Errc::unsupported, "frame version 2"},
             Case{"01 63 00 00", Errc::unsupported, "type 99"},
             Case{"01 808004 00 00", Errc::unsupported, "type 65536"},
             Case{"01 14 01 00", Errc::unsupported, "NoOpRecord has no version 1"},
             Case{"01 14 808004 00", Errc::unsupported, "version 65536"},
             Case{"01 14 00", Errc::corrupt, "NoOpRecord version 0: 1 bytes expected"},
             Case{"01 14 00 00 00", Errc::corrupt, "NoOpRecord: 1 bytes behind the record"},
         }) {
        const auto bytes = bytes_of(notation);
        const auto record = read_metadata_record(bytes);
        ASSERT_FALSE(record) << notation;
        EXPECT_EQ(record.error().code, code) << notation;
        EXPECT_THAT(record.error().message(), HasSubstr(std::string(text)));
    }
}

TEST(MetadataRecord, KeepsTagsOfNewerWriters) {
    const auto bytes = bytes_of("01 02 00  02 't' 00000000 00000000 00000000 00000001 01 07 02 aabb");
    const auto record = read_metadata_record(bytes);
    ASSERT_TRUE(record) << record.error().message();
    EXPECT_EQ(std::get<TopicRecord>(*record).unknown_tags, (UnknownTags{{.number = 7, .value = bytes_of("aabb")}}));
    EXPECT_EQ(hex(*metadata_record_value(*record, 0)), hex(bytes));
}

TEST(ControlRecord, ReadsAndWritesWhatKafkaWrote) {
    const auto bytes = bytes_of("0000 00000001 02 00000001 00 02 00000001 00 00");
    Reader reader{Bytes(bytes)};
    const auto change = parse<LeaderChangeMessage>(reader, 0);
    ASSERT_TRUE(change) << change.error().message();
    EXPECT_EQ(*change, (LeaderChangeMessage{.leader_id = 1, .voters = {{.voter_id = 1}}, .granting_voters = {{.voter_id = 1}}}));
    EXPECT_EQ(hex(*encode(*change, 0)), hex(bytes));
    EXPECT_EQ(hex(*encode(SnapshotFooterRecord{}, 0)), "000000");
    EXPECT_EQ(hex(*encode(SnapshotHeaderRecord{.last_contained_log_timestamp = 5}, 0)), "0000000000000000000500");
}

TEST(CoordinatorRecord, FramesKeysAndValues) {
    const OffsetCommitKey key{.group = "g", .topic = "t", .partition = 3};
    const auto bytes = key_bytes(key);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(hex(*bytes), hex(bytes_of("0001 0001'g' 0001't' 00000003")));
    EXPECT_EQ(*record_type_of(*bytes), OffsetCommitKey::record_type);
    EXPECT_EQ(*read_key<OffsetCommitKey>(*bytes), key);
    EXPECT_EQ(read_key<TransactionLogKey>(*bytes).error().code, Errc::corrupt);
    EXPECT_EQ(record_type_of({}).error().code, Errc::corrupt);
    const OffsetCommitValue value{.offset = 5, .metadata = "m", .commit_timestamp = 6};
    const auto value4 = value_bytes(value, 4);
    ASSERT_TRUE(value4);
    EXPECT_EQ(hex(*value4).substr(0, 4), "0004");
    EXPECT_EQ(*read_value<OffsetCommitValue>(*value4), value);
    EXPECT_EQ(read_value<OffsetCommitValue>(bytes_of("0005 00")).error().code, Errc::unsupported);
    EXPECT_EQ(read_value<OffsetCommitValue>(bytes_of("00")).error().code, Errc::corrupt);
}

std::optional<std::filesystem::path> shared_directory() {
    const char* const named = std::getenv("TIDEMARK_SHARED");
    for (const std::filesystem::path candidate : {named ? named : "", "../shared"}) {  // tests run in the source root
        if (!candidate.empty() && std::filesystem::is_directory(candidate / "golden-coordinator")) return candidate;
    }
    return std::nullopt;
}

/// The schema's message of that kind and record type; `transactions`: from the transaction log, whose types start again.
const schema::Message* record_schema(const std::vector<schema::Message>& all, std::string_view kind, std::int64_t type, bool transactions) {
    for (const auto& message : all) {
        if (message.kind == kind && message.key == type && message.name.starts_with("TransactionLog") == transactions &&
            !message.name.starts_with("ShareSnapshot") && !message.name.starts_with("ShareUpdate")) {
            return &message;
        }
    }
    return nullptr;
}

TEST(CoordinatorRecord, ReadsAndWritesWhatKafkaWrote) {
    const auto shared = shared_directory();
    if (!shared) GTEST_SKIP() << "NO GOLDEN DATA: set TIDEMARK_SHARED";
    const auto schemas = schema::read("protocol/schemas");
    std::size_t records = 0;
    for (const auto& directory : std::filesystem::directory_iterator(*shared / "golden-coordinator")) {
        std::ifstream file(directory.path() / "records.json");
        if (!file) continue;
        const auto json = boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
        for (const auto& [partition, list] : json.as_object()) {
            for (const auto& item : list.as_array()) {
                const auto& record = item.as_object();
                const auto text_of = [&](const char* name) -> std::optional<std::string> {
                    const auto* value = record.if_contains(name);
                    return value && value->is_string() ? std::optional(std::string(value->as_string())) : std::nullopt;
                };
                const auto key = text_of("key");
                if (!key || record.contains("control")) continue;
                SCOPED_TRACE(directory.path().filename().string() + " " + std::string(partition) + ": " + boost::json::serialize(record));
                auto bytes = bytes_of(*key);
                const auto type = record_type_of(bytes);
                ASSERT_TRUE(type);
                const auto check = [&](std::string_view kind, std::vector<std::byte>& whole, std::int16_t version) {
                    const auto* found = record_schema(schemas, kind, *type, partition.starts_with("__transaction"));
                    ASSERT_TRUE(found) << kind << " " << *type;
                    const auto result = find_message(found->name)->round_trip(MutableBytes(whole).subspan(2), version);
                    ASSERT_TRUE(result) << result.error().message();
                    ASSERT_TRUE(result->written);
                    EXPECT_EQ(hex(*result->written), hex(Bytes(whole).subspan(2)));
                };
                check("key", bytes, 0);
                if (const auto value = text_of("value")) {
                    auto value_data = bytes_of(*value);
                    check("value", value_data, load_be<std::int16_t>(value_data.data()));
                }
                ++records;
            }
        }
    }
    EXPECT_GT(records, 100u);
}

}  // namespace
}  // namespace tidemark::protocol
