#include "record/filter.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "record/control.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
using Output = FilterOutcome::Output;

class Judge final : public RecordJudge {
public:
    explicit Judge(std::function<bool(const RecordView&)> keeps) : keeps_(std::move(keeps)) {}
    bool keeps(const BatchView&, const RecordView& record) override {
        ++asked;
        return keeps_(record);
    }
    int asked = 0;

private:
    std::function<bool(const RecordView&)> keeps_;
};

Judge keep_offsets(std::vector<std::int64_t> offsets) {
    return Judge{[offsets = std::move(offsets)](const RecordView& r) { return std::find(offsets.begin(), offsets.end(), r.offset.value) != offsets.end(); }};
}
Judge keep_all() {
    return Judge{[](const RecordView&) { return true; }};
}
Judge keep_none() {
    return Judge{[](const RecordView&) { return false; }};
}

struct Filtered {
    FilterOutcome outcome;
    Buffer bytes;
};

Filtered filter(const Buffer& source, Judge judge, const FilterOptions& options = {}) {
    BatchFilter filter;
    Filtered result;
    result.outcome = filter.filter(view(source), options, judge, result.bytes).value();
    return result;
}

const std::vector<Rec> three = {{.offset = 100, .timestamp = 1000, .key = "a", .value = "1"},
                                {.offset = 101, .timestamp = 1500, .key = "b", .value = std::nullopt},
                                {.offset = 102, .timestamp = 3000, .key = "c", .value = "3"}};

TEST(BatchFilter, KafkasVector) {
    const char* const source =
        "00000000000000640000004dffffffff02349083e300000000000200000000000003e80000000000000bb8ffffffffffffffffffffffffffff00000003100000000261"
        "0231001000e80702026201001200a01f040263023300";
    const char* const cleaned =
        "000000000000006400000046ffffffff0281843151004000000002000000000000ea600000000000000bb8ffffffffffffffffffffffffffff00000002120087920702"
        "026201001400cffa06040263023300";
    EXPECT_EQ(to_hex(build({.base_offset = Offset{100}}, three)), source);
    const Filtered result = filter(from_hex(source), keep_offsets({101, 102}), {.now = Timestamp{50000}, .delete_retention_ms = 10000});
    EXPECT_EQ(to_hex(result.bytes), cleaned);
    EXPECT_EQ(result.outcome.output, Output::rebuilt);
    EXPECT_EQ(result.outcome.records_read, 3);
    EXPECT_EQ(result.outcome.records_kept, 2);
    EXPECT_EQ(result.outcome.bytes_kept, result.bytes.size());
}

TEST(BatchFilter, SurvivorsKeepEverythingInEveryCodec) {
    std::vector<Rec> records;
    for (int i = 0; i < 3000; ++i) {
        records.push_back({.offset = 7 + i * 2,
                           .timestamp = 1'700'000'000'000 - i * 997 % 5000,
                           .key = "key" + std::to_string(i % 50),
                           .value = i % 7 == 0 ? std::nullopt : std::optional{std::string(static_cast<std::size_t>(i % 300), 'v')},
                           .headers = {{"h", std::to_string(i)}, {"", std::nullopt}},
                           .sequence = 10 + i * 2});
    }
    std::vector<Rec> kept;
    for (const Rec& record : records) {
        if (record.offset % 3 == 0) kept.push_back(record);
    }
    for (const Codec codec : all_codecs) {
        const Buffer source = build({.codec = codec,
                                     .base_offset = Offset{7},
                                     .leader_epoch = 67,
                                     .producer_id = 5,
                                     .producer_epoch = 6,
                                     .base_sequence = 10,
                                     .transactional = true,
                                     .last_offset = Offset{9000}},
                                    records);
        const Filtered result = filter(source, Judge{[](const RecordView& r) { return r.offset.value % 3 == 0; }}, {.now = Timestamp{1000}, .delete_retention_ms = 234});
        const BatchView batch = view(result.bytes);
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_EQ(batch.codec(), codec);
        EXPECT_EQ(batch.base_offset(), Offset{7});
        EXPECT_EQ(batch.last_offset(), Offset{9000});
        EXPECT_EQ(batch.leader_epoch(), 67);
        EXPECT_EQ(batch.producer_id(), 5);
        EXPECT_EQ(batch.producer_epoch(), 6);
        EXPECT_EQ(batch.base_sequence(), 10);
        EXPECT_TRUE(batch.is_transactional());
        EXPECT_EQ(batch.last_sequence(), view(source).last_sequence());
        EXPECT_EQ(batch.delete_horizon(), Timestamp{1234});
        EXPECT_EQ(records_of(result.bytes), kept);
    }
}

TEST(BatchFilter, DroppingTheFirstRecordMovesNoTimestamp) {
    const std::vector<Rec> unordered = {{.offset = 0, .timestamp = 1000, .key = "k1", .value = "v"},
                                        {.offset = 1, .timestamp = 10, .key = "k2", .value = "v"},
                                        {.offset = 2, .timestamp = 2000, .key = "k3", .value = "v"},
                                        {.offset = 3, .timestamp = 5, .key = "k4", .value = "v"}};
    for (const Codec codec : all_codecs) {
        const Buffer source = build({.codec = codec}, unordered);
        const Filtered result = filter(source, keep_offsets({1, 2, 3}));
        EXPECT_EQ(records_of(result.bytes), (std::vector<Rec>{unordered.begin() + 1, unordered.end()}));
        EXPECT_EQ(view(result.bytes).base_timestamp(), Timestamp{10});
        EXPECT_EQ(view(result.bytes).max_timestamp(), Timestamp{2000});
        EXPECT_FALSE(view(result.bytes).delete_horizon());
        EXPECT_EQ(view(filter(source, keep_offsets({1, 3})).bytes).max_timestamp(), Timestamp{10}) << "of the survivors";
    }
}

TEST(BatchFilter, UnchangedBatchesAreNotWritten) {
    for (const Codec codec : all_codecs) {
        const Buffer source = build({.codec = codec, .base_offset = Offset{100}}, {three[0], three[2]});
        const Filtered result = filter(source, keep_all());
        EXPECT_EQ(result.outcome.output, Output::unchanged);
        EXPECT_EQ(result.outcome.bytes_kept, source.size());
        EXPECT_TRUE(result.bytes.empty());
    }
}

TEST(BatchFilter, ATombstoneGetsItsHorizonOnce) {
    const Buffer source = build({.base_offset = Offset{100}}, three);
    const Filtered first = filter(source, keep_all(), {.now = Timestamp{50}, .delete_retention_ms = 7});
    EXPECT_EQ(first.outcome.output, Output::rebuilt);
    EXPECT_EQ(view(first.bytes).delete_horizon(), Timestamp{57});
    EXPECT_EQ(records_of(first.bytes), three);
    const Filtered second = filter(first.bytes, keep_all(), {.now = Timestamp{51}, .delete_retention_ms = 7});
    EXPECT_EQ(second.outcome.output, Output::unchanged) << "a horizon never moves";
    const Filtered third = filter(first.bytes, keep_offsets({100, 102}), {.now = Timestamp{60}, .delete_retention_ms = 7});
    EXPECT_EQ(view(third.bytes).delete_horizon(), Timestamp{57}) << "and stays when the tombstone is gone";
    EXPECT_EQ(records_of(third.bytes), (std::vector<Rec>{three[0], three[2]}));
    EXPECT_FALSE(view(filter(source, keep_offsets({100, 102})).bytes).delete_horizon()) << "the tombstone did not survive";
}

TEST(BatchFilter, AMarkerOfAnEmptyTransactionGetsAHorizon) {
    Buffer marker;
    write_marker({.offset = Offset{4}, .timestamp = Timestamp{11}, .leader_epoch = 2, .producer_id = 9, .producer_epoch = 1,
                  .marker = {.type = ControlType::commit, .coordinator_epoch = 347}},
                 marker);
    EXPECT_EQ(filter(marker, keep_all()).outcome.output, Output::unchanged);
    const Filtered result = filter(marker, keep_all(), {.marker_of_empty_transaction = true, .now = Timestamp{100}, .delete_retention_ms = 5});
    const BatchView batch = view(result.bytes);
    EXPECT_EQ(batch.delete_horizon(), Timestamp{105});
    EXPECT_TRUE(batch.is_control());
    EXPECT_TRUE(batch.is_transactional());
    EXPECT_EQ(batch.base_sequence(), -1);
    RecordReader reader;
    ASSERT_TRUE(reader.open(batch));
    const auto record = reader.next().value();
    EXPECT_EQ(record->timestamp, Timestamp{11});
    EXPECT_EQ(transaction_marker(*record).value().coordinator_epoch, 347);
    EXPECT_EQ(filter(result.bytes, keep_all(), {.marker_of_empty_transaction = true}).outcome.output, Output::unchanged);
}

TEST(BatchFilter, NoSurvivor) {
    const Buffer source = build({.base_offset = Offset{3}, .leader_epoch = 7, .producer_id = 23, .producer_epoch = 5, .base_sequence = 10, .transactional = true},
                                {{.offset = 3, .timestamp = 11, .key = "a"}, {.offset = 4, .timestamp = 12, .key = "b"}});
    const Filtered gone = filter(source, keep_none());
    EXPECT_EQ(gone.outcome.output, Output::nothing);
    EXPECT_EQ(gone.outcome.records_read, 2);
    EXPECT_TRUE(gone.bytes.empty());

    const Filtered kept = filter(source, keep_none(), {.retention = Retention::keep_when_empty});
    EXPECT_EQ(kept.outcome.output, Output::empty);
    EXPECT_EQ(kept.outcome.records_read, 2);
    EXPECT_EQ(kept.outcome.records_kept, 0);
    EXPECT_EQ(kept.outcome.bytes_kept, 61U);
    EXPECT_EQ(to_hex(kept.bytes),
              "00000000000000030000003100000007025160eb4a001000000001ffffffffffffffff000000000000000c000000000000001700050000000a00000000");
    EXPECT_EQ(view(kept.bytes).last_sequence(), 11);

    // Once empty, it goes on like that.
    const Filtered again = filter(kept.bytes, keep_all(), {.retention = Retention::keep_when_empty});
    EXPECT_EQ(again.outcome.output, Output::empty);
    EXPECT_EQ(again.outcome.records_read, 0);
    EXPECT_EQ(again.bytes, kept.bytes);
    EXPECT_EQ(filter(kept.bytes, keep_all()).outcome.output, Output::nothing);
}

TEST(BatchFilter, ARemovedBatchIsNotDecoded) {
    const Buffer broken = raw_batch({.count = 1000, .payload = from_hex("ffff")});
    Judge judge = keep_all();
    BatchFilter filter;
    Buffer bytes;
    const auto outcome = filter.filter(view(broken), {.retention = Retention::remove}, judge, bytes);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->output, Output::nothing);
    EXPECT_EQ(outcome->records_read, 0);
    EXPECT_EQ(judge.asked, 0);
}

TEST(BatchFilter, AnAlreadyCompactedBatchKeepsItsRange) {
    const Buffer source = build({.last_offset = Offset{10}},
                                {{.offset = 5, .timestamp = 1, .value = "x"}, {.offset = 8, .timestamp = 2, .value = "y"}, {.offset = 10, .timestamp = 3, .value = "z"}});
    const Filtered result = filter(source, keep_offsets({8}));
    EXPECT_EQ(view(result.bytes).base_offset(), Offset{0});
    EXPECT_EQ(view(result.bytes).last_offset(), Offset{10});
    EXPECT_EQ(records_of(result.bytes)[0].offset, 8);
}

TEST(BatchFilter, AppendTimeBatchesStayThat) {
    for (const Codec codec : all_codecs) {
        const Buffer source = build({.codec = codec, .timestamp_type = TimestampType::log_append_time, .log_append_time = Timestamp{7777}, .base_offset = Offset{100}}, three);
        const Filtered result = filter(source, keep_offsets({100}));
        EXPECT_EQ(view(result.bytes).timestamp_type(), TimestampType::log_append_time);
        EXPECT_EQ(view(result.bytes).max_timestamp(), Timestamp{7777});
        EXPECT_EQ(view(result.bytes).base_timestamp(), Timestamp{7777}) << "the records' own times are lost";
        EXPECT_EQ(records_of(result.bytes)[0].timestamp, 7777);
    }
}

TEST(BatchFilter, LegacyEntriesBecomeV2) {
    const Buffer wrapper = build({.magic = 1, .codec = Codec::gzip, .base_offset = Offset{100}}, three);
    const Filtered some = filter(wrapper, keep_offsets({101, 102}), {.now = Timestamp{10}, .delete_retention_ms = 5});
    const BatchView batch = view(some.bytes);
    EXPECT_EQ(batch.magic(), 2);
    EXPECT_EQ(batch.codec(), Codec::gzip);
    EXPECT_EQ(batch.base_offset(), Offset{101});
    EXPECT_EQ(batch.last_offset(), Offset{102});
    EXPECT_EQ(batch.leader_epoch(), no_leader_epoch);
    EXPECT_EQ(batch.producer_id(), no_producer_id);
    EXPECT_EQ(batch.delete_horizon(), Timestamp{15});
    EXPECT_EQ(records_of(some.bytes), (std::vector<Rec>{three[1], three[2]}));

    const Buffer v0 = build({.magic = 0, .base_offset = Offset{9}}, {{.offset = 9, .key = "k", .value = "v"}});
    const Filtered all = filter(v0, keep_all());
    EXPECT_EQ(all.outcome.output, Output::rebuilt) << "even when nothing goes";
    EXPECT_EQ(view(all.bytes).timestamp_type(), TimestampType::create_time);
    EXPECT_EQ(records_of(all.bytes)[0].timestamp, -1);

    Judge judge = keep_none();
    BatchFilter filter;
    Buffer bytes;
    EXPECT_EQ(filter.filter(view(v0), {.retention = Retention::keep_when_empty}, judge, bytes).error().code, Errc::invalid_record);
}

TEST(BatchFilter, BatchesThatCannotBeBuiltAreErrorsAndWriteNothing) {
    const auto record = [](std::int32_t offset_delta, std::int64_t timestamp_delta) {
        // A record by hand: attributes, deltas, null key, null value, no headers.
        Buffer bytes{std::byte{0}};
        for (std::uint64_t v : {static_cast<std::uint64_t>((timestamp_delta << 1) ^ (timestamp_delta >> 63)), static_cast<std::uint64_t>(offset_delta) << 1}) {
            for (; v >= 0x80; v >>= 7) bytes.push_back(static_cast<std::byte>(v | 0x80));
            bytes.push_back(static_cast<std::byte>(v));
        }
        append_bytes(bytes, from_hex("010100"));
        bytes.insert(bytes.begin(), static_cast<std::byte>(bytes.size() << 1));
        return bytes;
    };
    const auto error = [](const RawBatch& raw) {
        const Buffer source = raw_batch(raw);
        Judge judge{[first = true](const RecordView&) mutable { return !std::exchange(first, false); }};
        BatchFilter filter;
        Buffer bytes{std::byte{1}, std::byte{2}};
        const auto outcome = filter.filter(view(source), {}, judge, bytes);
        EXPECT_FALSE(outcome);
        EXPECT_EQ(bytes.size(), 2U);
        return outcome ? Errc::io : outcome.error().code;
    };
    const auto payload = [&](std::initializer_list<Buffer> records) {
        Buffer bytes;
        for (const Buffer& r : records) append_bytes(bytes, r);
        return bytes;
    };
    EXPECT_EQ(error({.last_offset_delta = 5, .count = 3, .payload = payload({record(0, 0), record(2, 0), record(1, 0)})}), Errc::invalid_record);
    EXPECT_EQ(error({.last_offset_delta = 5, .count = 3, .payload = payload({record(0, 0), record(2, 0), record(2, 0)})}), Errc::invalid_record);
    EXPECT_EQ(error({.last_offset_delta = 1, .count = 3, .payload = payload({record(0, 0), record(1, 0), record(9, 0)})}), Errc::invalid_record);
    EXPECT_EQ(error({.last_offset_delta = 5, .count = 2, .payload = payload({record(0, 0), record(1, -7)})}), Errc::invalid_record) << "negative timestamp";
    EXPECT_EQ(error({.last_offset_delta = -1, .count = 2, .payload = payload({record(0, 0), record(1, 0)})}), Errc::invalid_record);
    EXPECT_EQ(error({.base_offset = std::numeric_limits<std::int64_t>::max(), .last_offset_delta = 5, .count = 2, .payload = payload({record(0, 0), record(1, 0)})}),
              Errc::invalid_record);
    EXPECT_EQ(error({.attributes = attribute::transactional, .last_offset_delta = 5, .count = 2, .payload = payload({record(0, 0), record(1, 0)})}), Errc::invalid_record);
    EXPECT_EQ(error({.last_offset_delta = 5, .count = 3, .payload = payload({record(0, 0), record(1, 0)})}), Errc::invalid_record) << "a count that lies";
    EXPECT_EQ(error({.attributes = 5, .last_offset_delta = 5, .count = 2, .payload = payload({record(0, 0)})}), Errc::unsupported_compression);
}

TEST(BatchFilter, BatchesLargerThanWhatStaysInMemoryAreReadTwice) {
    // Highly compressible: 12 MB of records in a small batch.
    std::vector<Rec> records;
    for (int i = 0; i < 12; ++i) records.push_back({.offset = i, .timestamp = i, .key = std::to_string(i), .value = std::string(1'000'000, static_cast<char>('a' + i))});
    for (const Codec codec : real_codecs) {
        const Buffer source = build({.codec = codec}, records);
        const Filtered result = filter(source, keep_offsets({0, 5, 11}));
        EXPECT_EQ(records_of(result.bytes), (std::vector<Rec>{records[0], records[5], records[11]}));
    }
}

}  // namespace
}  // namespace tidemark::record
