// Log files that Apache Kafka wrote: every batch is read, agrees with Kafka's own dump, and is built again to the byte.
#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
namespace fs = std::filesystem;
namespace json = boost::json;

std::string text_of(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

Buffer bytes_of_file(const fs::path& path) {
    const std::string text = text_of(path);
    return to_vector(as_bytes(text));
}

std::optional<std::string> from_base64(const json::value& value) {
    if (value.is_null()) return std::nullopt;
    static constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0, held = 0;
    for (const char c : std::string_view{value.as_string()}) {
        if (c == '=') break;
        bits = bits << 6 | static_cast<unsigned>(alphabet.find(c));
        if ((held += 6) >= 8) out += static_cast<char>(bits >> (held -= 8) & 0xFF);
    }
    return out;
}

const char* codec_name(Codec codec) {
    switch (codec) {
        case Codec::none: return "none";
        case Codec::gzip: return "gzip";
        case Codec::snappy: return "snappy";
        case Codec::lz4: return "lz4";
        case Codec::zstd: return "zstd";
    }
    return "?";
}

const char* type_name(TimestampType type) {
    switch (type) {
        case TimestampType::none: return "NoTimestampType";
        case TimestampType::create_time: return "CreateTime";
        case TimestampType::log_append_time: return "LogAppendTime";
    }
    return "?";
}

struct Seen {
    int directories = 0, segments = 0, batches = 0, listed_records = 0, legacy = 0, compressed = 0, rebuilt = 0;
};

void compare_records(const BatchView& batch, const json::array& expected, Seen& seen) {
    const auto records = read_all(batch);
    ASSERT_TRUE(records) << records.error().message();
    ASSERT_EQ(records->size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const json::object& e = expected[i].as_object();
        const Rec& record = (*records)[i];
        EXPECT_EQ(record.offset, e.at("offset").to_number<std::int64_t>());
        EXPECT_EQ(record.timestamp, e.at("timestamp").to_number<std::int64_t>());
        EXPECT_EQ(record.key, from_base64(e.at("key")));
        EXPECT_EQ(record.value, from_base64(e.at("value")));
        const auto* headers = e.if_contains("headers");
        const std::size_t header_count = headers != nullptr ? headers->as_array().size() : 0;
        ASSERT_EQ(record.headers.size(), header_count);
        for (std::size_t h = 0; h < header_count; ++h) {
            const json::array& pair = headers->as_array().at(h).as_array();
            EXPECT_EQ(record.headers[h].first, pair.at(0).as_string());
            EXPECT_EQ(record.headers[h].second, from_base64(pair.at(1)));
        }
        ++seen.listed_records;
    }
}

/// Builds the batch anew from its records. Only what no builder can know is left out: a batch whose records were stamped
/// with the append time keeps the deltas that its producer wrote.
void compare_rebuilt(const BatchView& batch, Seen& seen) {
    const auto records = read_all(batch);
    ASSERT_TRUE(records) << records.error().message();
    if (batch.record_count() == 0) {
        Buffer written;
        write_empty_batch(batch, written);
        EXPECT_EQ(to_hex(written), to_hex(batch.bytes()));
        ++seen.rebuilt;
        return;
    }
    ASSERT_FALSE(records->empty());
    const bool append_time = batch.timestamp_type() == TimestampType::log_append_time;
    const BatchOptions options{
        .magic = batch.magic(),
        .codec = batch.codec(),
        .timestamp_type = batch.timestamp_type(),
        .log_append_time = append_time ? std::optional{batch.max_timestamp()} : std::nullopt,
        .base_offset = batch.is_legacy() ? Offset{records->front().offset} : batch.base_offset(),
        .leader_epoch = batch.leader_epoch(),
        .producer_id = batch.producer_id(),
        .producer_epoch = batch.producer_epoch(),
        .base_sequence = batch.base_sequence(),
        .transactional = batch.is_transactional(),
        .control = batch.is_control(),
        .delete_horizon = batch.delete_horizon(),
        .last_offset = batch.is_legacy() ? std::nullopt : std::optional{batch.last_offset()},
    };
    const Buffer rebuilt = build(options, *records);
    if (append_time) {
        EXPECT_EQ(records_of(rebuilt), *records);
        return;
    }
    EXPECT_EQ(to_hex(rebuilt), to_hex(batch.bytes()));
    ++seen.rebuilt;
}

void compare_batch(const BatchView& batch, const json::object& e, Seen& seen) {
    EXPECT_EQ(batch.size(), e.at("size").to_number<std::size_t>());
    EXPECT_EQ(batch.magic(), e.at("magic").to_number<int>());
    EXPECT_EQ(batch.attributes(), e.at("attributes").to_number<unsigned>());
    EXPECT_EQ(codec_name(batch.codec()), e.at("codec").as_string());
    EXPECT_EQ(type_name(batch.timestamp_type()), e.at("timestampType").as_string());
    EXPECT_EQ(batch.max_timestamp().value, e.at("maxTimestamp").to_number<std::int64_t>());
    EXPECT_EQ(batch.last_offset().value, e.at("lastOffset").to_number<std::int64_t>());
    EXPECT_EQ(batch.crc(), e.at("crc").to_number<std::uint32_t>());
    EXPECT_EQ(batch.crc_matches(), e.at("valid").as_bool());
    if (!batch.is_legacy()) {
        EXPECT_EQ(batch.leader_epoch(), e.at("leaderEpoch").to_number<LeaderEpoch>());
        EXPECT_EQ(batch.base_timestamp().value, e.at("baseTimestamp").to_number<std::int64_t>());
        EXPECT_EQ(batch.producer_id(), e.at("producerId").to_number<ProducerId>());
        EXPECT_EQ(batch.producer_epoch(), e.at("producerEpoch").to_number<ProducerEpoch>());
        EXPECT_EQ(batch.base_sequence(), e.at("baseSequence").to_number<Sequence>());
        EXPECT_EQ(batch.last_sequence(), e.at("lastSequence").to_number<Sequence>());
        EXPECT_EQ(batch.is_transactional(), e.at("transactional").as_bool());
        EXPECT_EQ(batch.is_control(), e.at("control").as_bool());
        EXPECT_EQ(batch.record_count(), e.at("count").to_number<std::int32_t>());
        const auto* horizon = e.if_contains("deleteHorizonMs");
        EXPECT_EQ(batch.delete_horizon(), horizon != nullptr ? std::optional{Timestamp{horizon->to_number<std::int64_t>()}} : std::nullopt);
    }
    ++seen.batches;
    seen.legacy += batch.is_legacy();
    seen.compressed += batch.is_compressed();
    if (!batch.crc_matches()) return;  // what is inside is anybody's guess
    RecordReader reader;
    const auto first = first_offset(batch, reader);
    ASSERT_TRUE(first) << first.error().message();
    EXPECT_EQ(first->value, e.at("baseOffset").to_number<std::int64_t>());
    if (!batch.is_legacy()) {
        const auto records = read_all(batch, reader);
        ASSERT_TRUE(records) << records.error().message();
        EXPECT_EQ(records->size(), static_cast<std::size_t>(*batch.record_count()));
        std::int64_t newest = records->empty() ? batch.max_timestamp().value : -1;
        for (const Rec& record : *records) newest = std::max(newest, record.timestamp);
        EXPECT_EQ(newest, batch.max_timestamp().value);
    }
    if (const auto* listed = e.if_contains("records")) compare_records(batch, listed->as_array(), seen);
    if (batch.magic() <= 2) compare_rebuilt(batch, seen);
}

void compare_segment(const fs::path& file, const json::object& segment, Seen& seen) {
    SCOPED_TRACE(file.string());
    const Buffer bytes = bytes_of_file(file);
    ASSERT_EQ(bytes.size(), segment.at("size").to_number<std::size_t>());
    const json::array& expected = segment.at("batches").as_array();
    std::size_t position = 0;
    for (const json::value& e : expected) {
        SCOPED_TRACE("position " + std::to_string(position));
        EXPECT_EQ(position, e.at("position").to_number<std::size_t>());
        const auto batch = BatchView::parse_stored(Bytes{bytes}.subspan(position));
        ASSERT_TRUE(batch) << batch.error().message();
        compare_batch(*batch, e.as_object(), seen);
        position += batch->size();
    }
    BatchCursor cursor{Bytes{bytes}.subspan(position)};
    const auto end = cursor.next();
    if (segment.contains("error")) {
        EXPECT_FALSE(end) << "Kafka finds the tail corrupt";
    } else {
        ASSERT_TRUE(end) << end.error().message();
        EXPECT_FALSE(*end);
        const auto* trailing = segment.if_contains("trailingBytes");
        EXPECT_EQ(cursor.rest().size(), trailing != nullptr ? trailing->to_number<std::size_t>() : 0);
    }
    ++seen.segments;
}

void compare_dump(const fs::path& directory, const json::object& dump, Seen& seen) {
    for (const json::value& segment : dump.at("segments").as_array()) {
        compare_segment(directory / segment.at("file").as_string().c_str(), segment.as_object(), seen);
    }
    ++seen.directories;
}

TEST(Golden, EveryBatchOfEveryCaseIsReadAndBuiltAgain) {
    const auto shared = shared_directory();
    if (!shared) GTEST_SKIP() << "NO GOLDEN DATA: set TIDEMARK_SHARED";
    Seen seen;
    for (const auto& entry : fs::directory_iterator{fs::path{*shared} / "golden"}) {
        const fs::path file = entry.path() / "expect.json";
        if (!fs::exists(file)) continue;
        SCOPED_TRACE(entry.path().filename().string());
        const json::value expected = json::parse(text_of(file));
        const std::string partition{expected.at("partition").as_string()};
        compare_dump(entry.path() / "before" / partition, expected.at("beforeDump").as_object(), seen);
        for (const json::value& action : expected.at("actions").as_array()) {
            const auto* dump = action.as_object().if_contains("dump");
            const auto* directory = action.as_object().if_contains("dir");
            if (dump == nullptr || directory == nullptr || !dump->is_object()) continue;
            const fs::path after = entry.path() / directory->as_string().c_str() / partition;
            if (fs::exists(after)) compare_dump(after, dump->as_object(), seen);
        }
        if (::testing::Test::HasFatalFailure()) return;
    }
    // The data are large and varied enough to mean something.
    EXPECT_GT(seen.directories, 139);
    EXPECT_GT(seen.batches, 1395);
    EXPECT_GT(seen.legacy, 40);
    EXPECT_GT(seen.compressed, 100);
    EXPECT_GT(seen.rebuilt, 1300);
    EXPECT_GT(seen.listed_records, 60);
    RecordProperty("batches", seen.batches);
    RecordProperty("rebuilt", seen.rebuilt);
    std::printf("%d directories, %d segments, %d batches (%d legacy, %d compressed, %d built again), %d listed records\n", seen.directories,
                seen.segments, seen.batches, seen.legacy, seen.compressed, seen.rebuilt, seen.listed_records);
}

TEST(Golden, LogsOfACoordinatorAndOfTheMetadataQuorumAreRead) {
    const auto shared = shared_directory();
    if (!shared) GTEST_SKIP() << "NO GOLDEN DATA: set TIDEMARK_SHARED";
    RecordReader reader;
    std::int64_t logs = 0, records = 0;
    for (const char* const part : {"golden-coordinator", "golden-metadata"}) {
        if (!fs::exists(fs::path{*shared} / part)) continue;
        for (const auto& entry : fs::recursive_directory_iterator{fs::path{*shared} / part}) {
            const auto extension = entry.path().extension();
            if (!entry.is_regular_file() || (extension != ".log" && extension != ".checkpoint") || entry.file_size() == 0) continue;
            if (!std::all_of(entry.path().stem().string().begin(), entry.path().stem().string().begin() + 1, ::isdigit)) continue;
            SCOPED_TRACE(entry.path().string());
            const Buffer bytes = bytes_of_file(entry.path());
            for (BatchCursor cursor{bytes};;) {
                const auto batch = cursor.next();
                if (!batch || !*batch) break;  // preallocated or torn tails are another test's
                EXPECT_TRUE((*batch)->crc_matches());
                const auto read = read_all(**batch, reader);
                ASSERT_TRUE(read) << read.error().message();
                EXPECT_EQ(read->size(), static_cast<std::size_t>(*(*batch)->record_count()));
                records += static_cast<std::int64_t>(read->size());
            }
            ++logs;
        }
    }
    EXPECT_GT(logs, 0);
    EXPECT_GT(records, 0);
}

}  // namespace
}  // namespace tidemark::record
