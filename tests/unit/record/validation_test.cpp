#include "record/validation.h"

#include <limits>

#include "record/control.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr std::int64_t now = 1'700'000'000'000;

const std::vector<Rec> three = {{.offset = 0, .timestamp = now - 10, .key = "a", .value = "1", .headers = {{"h", "v"}}},
                                {.offset = 1, .timestamp = now + 5, .key = "b", .value = std::nullopt},
                                {.offset = 2, .timestamp = now - 3, .key = "c", .value = "3"}};

std::vector<Rec> at(std::int64_t first, std::vector<Rec> records) {
    for (Rec& record : records) record.offset = first++;
    return records;
}

ValidationOptions options(const ValidationOptions& given = {}) {
    ValidationOptions result = given;
    result.now = Timestamp{now};
    return result;
}

/// analyze(), validate() and assign_offsets() at 500, epoch 9.
struct Attempt {
    Buffer request;
    std::vector<RecordError> rejected = {};
    Result<ValidatedRecords> result = Error{};

    explicit Attempt(Buffer bytes, const ValidationOptions& given = {}) : request(std::move(bytes)) {
        const auto info = analyze(request, {.origin = given.origin});
        if (!info) {
            result = info.error();
            return;
        }
        Validator validator;
        result = validator.validate(request, *info, options(given), &rejected);
        if (result) assign_offsets(*result, Offset{500}, 9);
    }
    bool in_place() const { return result->bytes().data() == request.data(); }
    BatchView batch() const { return BatchView::parse(result->bytes()).value(); }
    std::vector<Rec> records() const { return read_all(batch()).value(); }
    Errc code() const { return result ? Errc::io : result.error().code; }
};

void expect_assigned(const Attempt& run, std::int64_t count) {
    EXPECT_TRUE(run.batch().crc_matches());
    EXPECT_EQ(run.batch().base_offset(), Offset{500});
    EXPECT_EQ(run.batch().last_offset(), Offset{500 + count - 1});
    EXPECT_EQ(run.batch().leader_epoch(), 9);
    EXPECT_EQ(run.result->record_count(), count);
    EXPECT_EQ(run.result->first_offset(), Offset{500});
    EXPECT_EQ(run.result->last_offset(), Offset{500 + count - 1});
    EXPECT_EQ(run.result->next_offset(), Offset{500 + count});
}

// --- analyze ---------------------------------------------------------------------------------------------------------

TEST(Analyze, SumsUpTheHeaders) {
    Buffer bytes = build({.codec = Codec::gzip, .base_offset = Offset{10}, .leader_epoch = 3}, {{.offset = 10, .timestamp = 70}, {.offset = 12, .timestamp = 50}});
    append_bytes(bytes, build({.base_offset = Offset{20}, .leader_epoch = 4}, {{.offset = 20, .timestamp = 60}}));
    const auto whole = bytes.size();
    append_bytes(bytes, Bytes{bytes}.first(40));
    const auto info = analyze(bytes, {.origin = Origin::replication, .leader_epoch = 5}).value();
    EXPECT_EQ(info.valid_bytes, whole);
    EXPECT_EQ(info.batches, 2);
    EXPECT_EQ(info.first_offset, Offset{10});
    EXPECT_EQ(info.first_batch_last_offset, Offset{12});
    EXPECT_EQ(info.last_offset, Offset{20});
    EXPECT_EQ(info.last_leader_epoch, 4);
    EXPECT_EQ(info.max_timestamp, Timestamp{70});
    EXPECT_EQ(info.offset_of_max_timestamp, Offset{12}) << "shallow: the batch's last";
    EXPECT_EQ(info.source_codec, Codec::gzip);
    EXPECT_TRUE(info.offsets_rise);
}

TEST(Analyze, LegacySetsHaveNoFirstOffset) {
    Buffer bytes = build({.magic = 1, .base_offset = Offset{4}}, {{.offset = 4, .timestamp = 7}, {.offset = 3 + 2, .timestamp = 6}});
    const auto info = analyze(bytes, {}).value();
    EXPECT_EQ(info.first_offset, std::nullopt);
    EXPECT_EQ(info.first_batch_last_offset, Offset{4});
    EXPECT_EQ(info.last_offset, Offset{5});
    EXPECT_EQ(info.last_leader_epoch, no_leader_epoch);
}

TEST(Analyze, NothingIsNoError) {
    EXPECT_EQ(analyze({}, {}).value().valid_bytes, 0U);
    const Buffer cut(60);
    EXPECT_EQ(analyze(Bytes{build({}, three)}.first(60), {}).value().batches, 0);
}

TEST(Analyze, Refuses) {
    const Buffer good = build({}, three);
    const auto code = [](const Buffer& bytes, const AnalysisOptions& given = {}) {
        const auto info = analyze(bytes, given);
        return info ? Errc::io : info.error().code;
    };
    Buffer moved = good;
    in_place::set_base_offset(moved, Offset{1});
    EXPECT_EQ(code(moved), Errc::invalid_record) << "a client's offsets start at 0";
    EXPECT_EQ(code(moved, {.origin = Origin::coordinator}), Errc::io);

    EXPECT_EQ(code(good, {.origin = Origin::raft_leader, .leader_epoch = 4}), Errc::invalid_record);
    EXPECT_EQ(code(good, {.origin = Origin::raft_leader, .leader_epoch = -1}), Errc::io);

    const auto size = static_cast<std::int32_t>(good.size());
    EXPECT_EQ(code(good, {.batch_bytes_max = size}), Errc::io);
    EXPECT_EQ(code(good, {.batch_bytes_max = size - 1}), Errc::too_large);

    Buffer flipped = good;
    flipped.back() ^= std::byte{1};
    EXPECT_EQ(code(flipped), Errc::corrupt);
    Buffer bad_magic = good;
    bad_magic[16] = std::byte{9};
    EXPECT_EQ(code(bad_magic), Errc::corrupt);
    EXPECT_EQ(code(Buffer(20)), Errc::corrupt);
    EXPECT_EQ(code(raw_batch({.attributes = 6})), Errc::unsupported_compression);
}

TEST(Analyze, ReplicationStopsBeforeALaterEpoch) {
    Buffer bytes = build({.leader_epoch = 3}, three);
    const auto first = bytes.size();
    append_bytes(bytes, build({.base_offset = Offset{3}, .leader_epoch = 6}, at(3, three)));
    append_bytes(bytes, build({.base_offset = Offset{6}, .leader_epoch = 3}, at(6, three)));
    const auto info = analyze(bytes, {.origin = Origin::replication, .leader_epoch = 5}).value();
    EXPECT_EQ(info.batches, 1);
    EXPECT_EQ(info.valid_bytes, first);
    EXPECT_EQ(analyze(bytes, {.origin = Origin::replication, .leader_epoch = 6}).value().batches, 3);
}

TEST(Analyze, NoticesOffsetsThatDoNotRise) {
    Buffer bytes = build({}, three);
    append_bytes(bytes, build({.base_offset = Offset{2}}, at(2, {three[0]})));
    EXPECT_FALSE(analyze(bytes, {.origin = Origin::replication}).value().offsets_rise);
}

// --- in place --------------------------------------------------------------------------------------------------------

TEST(Validate, SameCodecStaysInPlace) {
    for (const Codec codec : all_codecs) {
        for (const auto& target : {std::optional<Codec>{}, std::optional{codec}}) {
            Attempt run{build({.codec = codec, .producer_id = 4, .producer_epoch = 2, .base_sequence = 8}, three), {.codec = target, .level = 1}};
            ASSERT_TRUE(run.result) << run.result.error().message();
            EXPECT_TRUE(run.in_place()) << "another level is no reason to rebuild";
            EXPECT_FALSE(run.result->rebuilt());
            expect_assigned(run, 3);
            EXPECT_EQ(run.result->max_timestamp(), Timestamp{now + 5});
            EXPECT_EQ(run.result->log_append_time(), std::nullopt);
            EXPECT_EQ(run.batch().codec(), codec);
            auto expected = at(500, three);
            for (int i = 0; i < 3; ++i) expected[static_cast<std::size_t>(i)].sequence = 8 + i;
            EXPECT_EQ(run.records(), expected);
        }
    }
}

TEST(Validate, TheHeadersLargestTimestampIsMadeTrue) {
    const std::vector<Rec> records = {{.offset = 0, .timestamp = now - 9000, .key = "a"}, {.offset = 1, .timestamp = now - 5000, .key = "b"}, {.offset = 2, .timestamp = now - 7000, .key = "c"}};
    for (const Codec codec : all_codecs) {
        for (const std::int64_t claimed : {std::int64_t{-1}, std::int64_t{0}, now + 999'999'999, now - 5000}) {
            Buffer bytes = build({.codec = codec}, records);
            store_be(bytes.data() + 35, claimed);
            fix_crc(bytes);
            Attempt run{bytes};
            ASSERT_TRUE(run.result);
            EXPECT_TRUE(run.in_place());
            expect_assigned(run, 3);
            EXPECT_EQ(run.batch().max_timestamp(), Timestamp{now - 5000});
            EXPECT_EQ(run.records(), at(500, records));
        }
    }
}

TEST(Validate, LogAppendTimeTopics) {
    for (const Codec codec : all_codecs) {
        for (const Codec target : all_codecs) {
            Attempt run{build({.codec = codec}, three), {.codec = target, .timestamp_type = TimestampType::log_append_time}};
            ASSERT_TRUE(run.result);
            EXPECT_EQ(run.in_place(), codec == target);
            expect_assigned(run, 3);
            EXPECT_EQ(run.batch().timestamp_type(), TimestampType::log_append_time);
            EXPECT_EQ(run.batch().max_timestamp(), Timestamp{now});
            EXPECT_EQ(run.batch().base_timestamp(), Timestamp{now - 10}) << "left as it was sent";
            EXPECT_EQ(run.result->log_append_time(), Timestamp{now});
            EXPECT_EQ(run.result->max_timestamp(), Timestamp{now});
            for (const Rec& record : run.records()) EXPECT_EQ(record.timestamp, now);
        }
    }
}

TEST(Validate, LogAppendTimeTopicsDoNotJudgeTimestamps) {
    Attempt run{build({}, {{.offset = 0, .timestamp = 1, .key = "a"}, {.offset = 1, .timestamp = now * 2, .key = "b"}}),
            {.timestamp_type = TimestampType::log_append_time, .before_max_ms = 0, .after_max_ms = 0}};
    EXPECT_TRUE(run.result);
}

TEST(Validate, AProducersAppendTimeBit) {
    const Buffer bytes = build({.timestamp_type = TimestampType::log_append_time, .log_append_time = Timestamp{now}}, three);
    Attempt reset{bytes};
    ASSERT_TRUE(reset.result) << "a CreateTime topic silently resets it";
    EXPECT_EQ(reset.batch().timestamp_type(), TimestampType::create_time);
    expect_assigned(reset, 3);
    Attempt refused{bytes, {.timestamp_type = TimestampType::log_append_time}};
    EXPECT_EQ(refused.code(), Errc::invalid_timestamp);
    EXPECT_EQ(refused.rejected.size(), 3U);
}

TEST(Validate, ControlBatchesOfACoordinatorStayAsTheyAre) {
    Buffer marker;
    write_marker({.timestamp = Timestamp{now}, .producer_id = 3, .producer_epoch = 1, .marker = {.type = ControlType::commit}}, marker);
    Attempt run{marker, {.origin = Origin::coordinator, .codec = Codec::zstd}};
    ASSERT_TRUE(run.result);
    EXPECT_TRUE(run.in_place());
    expect_assigned(run, 1);
    EXPECT_FALSE(run.batch().is_compressed());
    EXPECT_TRUE(run.batch().is_control());
}

// --- rebuilt ---------------------------------------------------------------------------------------------------------

TEST(Validate, AnotherCodecRebuilds) {
    for (const Codec source : all_codecs) {
        for (const Codec target : all_codecs) {
            if (source == target) continue;
            Attempt run{build({.codec = source, .producer_id = 4, .producer_epoch = 2, .base_sequence = 8, .transactional = true, .delete_horizon = Timestamp{3}}, three),
                    {.codec = target}};
            ASSERT_TRUE(run.result);
            EXPECT_TRUE(run.result->rebuilt());
            expect_assigned(run, 3);
            EXPECT_EQ(run.batch().codec(), target);
            EXPECT_EQ(run.batch().producer_id(), 4);
            EXPECT_EQ(run.batch().producer_epoch(), 2);
            EXPECT_EQ(run.batch().base_sequence(), 8);
            EXPECT_TRUE(run.batch().is_transactional());
            EXPECT_FALSE(run.batch().delete_horizon());
            EXPECT_EQ(run.batch().base_timestamp(), Timestamp{now - 10});
            EXPECT_EQ(run.result->max_timestamp(), Timestamp{now + 5});
            auto expected = at(500, three);
            for (int i = 0; i < 3; ++i) expected[static_cast<std::size_t>(i)].sequence = 8 + i;
            EXPECT_EQ(run.records(), expected);
        }
    }
}

TEST(Validate, TheTopicsLevelIsUsedWhenRebuilding) {
    std::vector<Rec> records;
    for (int i = 0; i < 2000; ++i) records.push_back({.offset = i, .timestamp = now, .key = std::to_string(i * 7919), .value = std::to_string(i * 104729)});
    std::size_t sizes[2];
    for (int i = 0; i < 2; ++i) {
        Attempt run{build({}, records), {.codec = Codec::zstd, .level = i == 0 ? 1 : 19}};
        sizes[i] = run.result->bytes().size();
    }
    EXPECT_GT(sizes[0], sizes[1]);
}

TEST(Validate, GapsBetweenInnerOffsets) {
    const std::vector<Rec> gaps = {{.offset = 0, .timestamp = now, .key = "a"}, {.offset = 2, .timestamp = now, .key = "b"}};
    for (const Codec codec : all_codecs) {
        Buffer bytes = build({.codec = codec, .last_offset = Offset{2}}, gaps);
        store_be(bytes.data() + 23, std::int32_t{1});  // as if they were contiguous
        fix_crc(bytes);
        Attempt run{bytes};
        ASSERT_TRUE(run.result);
        EXPECT_EQ(run.result->rebuilt(), codec != Codec::none) << "plain batches are not looked at that closely";
        expect_assigned(run, 2);
        if (codec != Codec::none) {
            EXPECT_EQ(run.batch().codec(), codec);
            EXPECT_EQ(run.records(), at(500, gaps));
        }
    }
}

TEST(Validate, OldFormatsBecomeOneV2Batch) {
    for (const std::int8_t magic : std::array<std::int8_t, 2>{0, 1}) {
        std::vector<Rec> records = three;
        for (Rec& record : records) {
            record.headers.clear();
            if (magic == 0) record.timestamp = -1;
        }
        for (const Codec codec : {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4}) {
            for (const auto& target : {std::optional<Codec>{}, std::optional{Codec::none}, std::optional{Codec::zstd}}) {
                Attempt run{build({.magic = magic, .codec = codec}, records), {.codec = target}};
                ASSERT_TRUE(run.result) << run.result.error().message();
                expect_assigned(run, 3);
                EXPECT_EQ(run.batch().magic(), 2);
                EXPECT_EQ(run.batch().codec(), target.value_or(codec));
                EXPECT_EQ(run.batch().timestamp_type(), TimestampType::create_time);
                EXPECT_EQ(run.records(), at(500, records));
                EXPECT_EQ(run.result->max_timestamp(), Timestamp{magic == 0 ? -1 : now + 5});
            }
        }
    }
}

TEST(Validate, RebuildingHasALimit) {
    const Buffer bytes = build({.codec = Codec::gzip}, {{.offset = 0, .timestamp = now, .value = std::string(5'000'000, 'x')}});
    EXPECT_EQ((Attempt{bytes, {.codec = Codec::zstd, .rebuild_bytes_max = 4'000'000}}.code()), Errc::too_large);
    EXPECT_TRUE((Attempt{bytes, {.codec = Codec::gzip, .rebuild_bytes_max = 4'000'000}}.result)) << "in place nothing is collected";
}

// --- refused ---------------------------------------------------------------------------------------------------------

TEST(Validate, OneBatchOnly) {
    for (const Codec codec : all_codecs) {
        Buffer two = build({.codec = codec}, three);
        append_bytes(two, build({.codec = codec}, three));
        EXPECT_EQ(Attempt{two}.code(), Errc::invalid_record);
    }
    Buffer wrappers = build({.magic = 1, .codec = Codec::gzip}, {{.offset = 0, .timestamp = now, .key = "a"}});
    append_bytes(wrappers, build({.magic = 1, .codec = Codec::gzip}, {{.offset = 0, .timestamp = now, .key = "a"}}));
    EXPECT_EQ(Attempt{wrappers}.code(), Errc::invalid_record);
    EXPECT_EQ(Attempt{Buffer{}}.code(), Errc::invalid_record) << "no batch at all";

    Buffer mixed = build({.magic = 0}, {{.offset = 0, .key = "a"}});
    append_bytes(mixed, build({.magic = 1}, {{.offset = 0, .timestamp = now, .key = "a"}}));
    EXPECT_EQ(Attempt{mixed}.code(), Errc::invalid_record) << "all of one format";
}

TEST(Validate, CountsAndOffsetsOfAClientsHeader) {
    struct Case {
        std::int32_t last_offset_delta, count;
    };
    for (const Codec codec : all_codecs) {
        for (const auto& [delta, count] : {Case{0, 3}, Case{15, 3}, Case{-3, 3}, Case{3, -3}, Case{-3, -3}, Case{0, 0}, Case{2, 0}, Case{3, 4}, Case{1, 2}, Case{-1, 0}}) {
            Buffer bytes = build({.codec = codec}, three);
            store_be(bytes.data() + 23, delta);
            store_be(bytes.data() + 57, count);
            fix_crc(bytes);
            Attempt run{bytes};
            EXPECT_EQ(run.code(), Errc::invalid_record) << delta << " " << count;
            EXPECT_TRUE(run.rejected.empty()) << "no single record is to blame";
        }
    }
}

TEST(Validate, ControlBatchesAndSequencesOfClients) {
    Buffer marker;
    write_marker({.timestamp = Timestamp{now}, .producer_id = 3, .producer_epoch = 1, .marker = {.type = ControlType::commit}}, marker);
    EXPECT_EQ(Attempt{marker}.code(), Errc::invalid_record);
    Buffer no_sequence = build({.producer_id = 3, .producer_epoch = 1, .base_sequence = 0}, three);
    store_be(no_sequence.data() + 53, std::int32_t{-1});
    fix_crc(no_sequence);
    EXPECT_EQ(Attempt{no_sequence}.code(), Errc::invalid_record);
    EXPECT_TRUE((Attempt{no_sequence, {.origin = Origin::coordinator}}.result));
    EXPECT_EQ((Attempt{no_sequence, {.origin = Origin::coordinator, .codec = Codec::gzip}}.code()), Errc::invalid_record) << "cannot be built again";
}

TEST(Validate, CompactedTopicsNeedKeys) {
    for (const Codec codec : all_codecs) {
        const std::vector<Rec> mixed = {{.offset = 0, .timestamp = now, .key = "a"}, {.offset = 1, .timestamp = now}, {.offset = 2, .timestamp = now, .key = ""}, {.offset = 3, .timestamp = now}};
        const Buffer bytes = build({.codec = codec}, mixed);
        Attempt run{bytes, {.compacted = true}};
        EXPECT_EQ(run.code(), Errc::invalid_record);
        ASSERT_EQ(run.rejected.size(), 2U);
        EXPECT_EQ(run.rejected[0].index, 1);
        EXPECT_EQ(run.rejected[1].index, 3);
        EXPECT_THAT(run.rejected[0].message, HasSubstr("key"));
        EXPECT_EQ(run.request, bytes) << "nothing has changed";
        EXPECT_TRUE(Attempt{bytes}.result);
    }
    EXPECT_TRUE((Attempt{build({}, {{.offset = 0, .timestamp = now, .key = ""}}), {.compacted = true}}.result)) << "an empty key is a key";
    EXPECT_EQ((Attempt{build({.magic = 1, .codec = Codec::gzip}, {{.offset = 0, .timestamp = now}}), {.compacted = true}}.code()), Errc::invalid_record);
}

TEST(Validate, TimestampsOutOfRange) {
    const ValidationOptions limits{.before_max_ms = 1000, .after_max_ms = 2000};
    struct Case {
        std::int64_t timestamp;
        bool good;
    };
    for (const auto& [timestamp, good] : {Case{now, true}, Case{now - 1000, true}, Case{now - 1001, false}, Case{now + 2000, true}, Case{now + 2001, false}, Case{-1, true}, Case{0, false}}) {
        for (const Codec codec : {Codec::none, Codec::lz4}) {
            Attempt run{build({.codec = codec}, {{.offset = 0, .timestamp = now, .key = "a"}, {.offset = 1, .timestamp = timestamp, .key = "b"}}), limits};
            EXPECT_EQ(run.result.has_value(), good) << timestamp - now;
            if (good) continue;
            EXPECT_EQ(run.code(), Errc::invalid_timestamp);
            ASSERT_EQ(run.rejected.size(), 1U);
            EXPECT_EQ(run.rejected[0].index, 1);
        }
    }
    const auto far = [](std::int64_t timestamp) { return Attempt{raw_batch({.base_timestamp = timestamp, .payload = from_hex("0c000000010100")})}.code(); };
    EXPECT_EQ(far(std::numeric_limits<std::int64_t>::max()), Errc::invalid_timestamp);
    EXPECT_EQ(far(std::numeric_limits<std::int64_t>::min()), Errc::invalid_timestamp) << "wraps to the far future, as Java does";
    EXPECT_EQ(far(now + 3'600'001), Errc::invalid_timestamp) << "one hour is the default";
}

TEST(Validate, ATimestampDecidesTheErrorOfTheBatch) {
    Attempt run{build({}, {{.offset = 0, .timestamp = now}, {.offset = 1, .timestamp = now * 2, .key = "b"}, {.offset = 2, .timestamp = now * 2}}), {.compacted = true}};
    EXPECT_EQ(run.code(), Errc::invalid_timestamp);
    ASSERT_EQ(run.rejected.size(), 3U);
    EXPECT_THAT(run.rejected[0].message, HasSubstr("key"));
    EXPECT_THAT(run.rejected[1].message, HasSubstr("timestamp"));
    EXPECT_THAT(run.rejected[2].message, HasSubstr("key")) << "the first reason counts";
}

TEST(Validate, TheListOfRefusalsHasAnEnd) {
    std::vector<Rec> records;
    for (int i = 0; i < 20'000; ++i) records.push_back({.offset = i, .timestamp = now});
    Attempt run{build({}, records), {.compacted = true}};
    EXPECT_EQ(run.rejected.size(), Validator::rejected_max);
    EXPECT_THAT(run.result.error().context, HasSubstr("20000"));
}

TEST(Validate, BrokenContents) {
    for (const Codec codec : all_codecs) {
        Buffer payload = from_hex("0c000000010100" "0c000002010100");
        Buffer packed = payload;
        if (codec != Codec::none) {
            packed.clear();
            compress(codec, payload, packed);
        }
        EXPECT_EQ(Attempt{raw_batch({.attributes = static_cast<std::uint16_t>(codec), .last_offset_delta = 2, .base_timestamp = now, .count = 3, .payload = packed})}.code(), Errc::invalid_record);
        EXPECT_EQ(Attempt{raw_batch({.attributes = static_cast<std::uint16_t>(codec), .base_timestamp = now, .count = 1, .payload = packed})}.code(), Errc::invalid_record);
        EXPECT_TRUE(Attempt(raw_batch({.attributes = static_cast<std::uint16_t>(codec), .last_offset_delta = 1, .base_timestamp = now, .count = 2, .payload = packed})).result);
    }
}

TEST(Validate, InnerMessagesOfOldWrappers) {
    // A v0 message inside a v1 wrapper is refused; so is one with a bad CRC, at once.
    const auto wrap = [](const Buffer& inner) {
        Buffer bytes(34);
        store_be(bytes.data() + 16, std::int8_t{1});
        bytes[17] = std::byte{1};
        store_be(bytes.data() + 18, now);
        store_be(bytes.data() + 26, std::int32_t{-1});
        compress(Codec::gzip, inner, bytes, {}, {.magic = 1});
        store_be(bytes.data() + 30, static_cast<std::int32_t>(bytes.size() - 34));
        store_be(bytes.data() + 8, static_cast<std::int32_t>(bytes.size() - log_overhead));
        fix_crc(bytes);
        return bytes;
    };
    Buffer inner = build({.magic = 1}, {{.offset = 0, .timestamp = now, .key = "a"}});
    EXPECT_TRUE(Attempt{wrap(inner)}.result);
    append_bytes(inner, build({.magic = 0, .base_offset = Offset{1}}, {{.offset = 1, .key = "b"}}));
    Attempt mixed{wrap(inner)};
    EXPECT_EQ(mixed.code(), Errc::invalid_record);
    ASSERT_EQ(mixed.rejected.size(), 1U);
    EXPECT_EQ(mixed.rejected[0].index, 1);
    EXPECT_THAT(mixed.rejected[0].message, HasSubstr("magic"));

    inner = build({.magic = 1}, {{.offset = 0, .timestamp = now, .key = "a"}});
    inner.back() ^= std::byte{1};
    EXPECT_EQ(Attempt{wrap(inner)}.code(), Errc::corrupt);
    EXPECT_EQ(Attempt{wrap(wrap(build({.magic = 1}, {{.offset = 0, .timestamp = now}})))}.code(), Errc::invalid_record) << "nested compression";
}

TEST(Validate, AValidatorServesManyRequests) {
    Validator validator;
    for (const Codec codec : all_codecs) {
        for (const Codec target : all_codecs) {
            Buffer bytes = build({.codec = codec}, three);
            const auto info = analyze(bytes, {}).value();
            Buffer bad = build({.codec = codec}, {{.offset = 0, .timestamp = now * 3}});
            EXPECT_FALSE(validator.validate(bad, analyze(bad, {}).value(), options({.codec = target})));
            auto result = validator.validate(bytes, info, options({.codec = target}));
            ASSERT_TRUE(result);
            assign_offsets(*result, Offset{7}, 1);
            EXPECT_EQ(read_all(BatchView::parse(result->bytes()).value()).value(), at(7, three));
        }
    }
}

}  // namespace
}  // namespace tidemark::record
