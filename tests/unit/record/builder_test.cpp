#include "record/builder.h"

#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;

TEST(BatchBuilder, NothingAppendedIsNothingWritten) {
    for (const Codec codec : all_codecs) EXPECT_TRUE(build({.codec = codec}, {}).empty());
    EXPECT_TRUE(build({.magic = 1, .codec = Codec::gzip}, {}).empty());
    EXPECT_TRUE(build({.magic = 0}, {}).empty());
}

TEST(BatchBuilder, AppendsBehindWhatIsThere) {
    BatchBuilder builder;
    Buffer bytes;
    for (const std::int64_t base : {0, 10, 20}) {
        builder.start({.codec = Codec::lz4, .base_offset = Offset{base}});
        append(builder, {.offset = base, .timestamp = 1, .key = "k"});
        EXPECT_EQ(builder.record_count(), 1);
        builder.finish(bytes);
        EXPECT_EQ(builder.record_count(), 0);
    }
    const auto batches = all_batches(bytes);
    ASSERT_EQ(batches.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(batches[i].crc_matches());
        EXPECT_EQ(read_all(batches[i]).value()[0].offset, static_cast<std::int64_t>(i) * 10);
    }
}

TEST(BatchBuilder, UncompressedBytesAreExact) {
    BatchBuilder builder;
    builder.start({});
    EXPECT_EQ(builder.uncompressed_bytes(), v2_header_bytes);
    append(builder, {.offset = 5, .timestamp = 1, .key = "key", .value = "value", .headers = {{"h", "v"}}});
    const auto announced = builder.uncompressed_bytes();
    Buffer bytes;
    builder.finish(bytes);
    EXPECT_EQ(announced, bytes.size());
}

TEST(BatchBuilder, BaseTimestampIsTheFirstRecords) {
    const std::vector<Rec> unordered = {{.offset = 0, .timestamp = 1000}, {.offset = 1, .timestamp = 10}, {.offset = 2, .timestamp = 2000}, {.offset = 3, .timestamp = -1}};
    const Buffer bytes = build({}, unordered);
    EXPECT_EQ(view(bytes).base_timestamp(), Timestamp{1000});
    EXPECT_EQ(view(bytes).max_timestamp(), Timestamp{2000});
    EXPECT_EQ(records_of(bytes), unordered);
    EXPECT_EQ(view(build({}, {{.offset = 0, .timestamp = -1}})).max_timestamp(), no_timestamp);
}

TEST(BatchBuilder, ADeleteHorizonIsTheBaseAndChangesNoTimestamp) {
    const std::vector<Rec> records = {{.offset = 0, .timestamp = 5, .key = "a"}, {.offset = 1, .timestamp = 10, .key = "b"}, {.offset = 2, .timestamp = 15, .key = "c"}};
    for (const Codec codec : all_codecs) {
        const Buffer bytes = build({.codec = codec, .delete_horizon = Timestamp{100'000}}, records);
        EXPECT_EQ(view(bytes).delete_horizon(), Timestamp{100'000});
        EXPECT_EQ(view(bytes).base_timestamp(), Timestamp{100'000});
        EXPECT_EQ(view(bytes).max_timestamp(), Timestamp{15});
        EXPECT_EQ(records_of(bytes), records);
    }
    EXPECT_EQ(view(build({.delete_horizon = Timestamp{0}}, records)).delete_horizon(), Timestamp{0});
}

TEST(BatchBuilder, LogAppendTime) {
    const std::vector<Rec> records = {{.offset = 0, .timestamp = 5, .key = "a"}, {.offset = 1, .timestamp = 900, .key = "b"}};
    for (const Codec codec : all_codecs) {
        for (const std::int8_t magic : std::array<std::int8_t, 2>{1, 2}) {
            if (magic == 1 && (codec == Codec::zstd || codec == Codec::none)) continue;
            const Buffer bytes = build({.magic = magic, .codec = codec, .timestamp_type = TimestampType::log_append_time, .log_append_time = Timestamp{700}}, records);
            EXPECT_EQ(view(bytes).timestamp_type(), TimestampType::log_append_time);
            EXPECT_EQ(view(bytes).max_timestamp(), Timestamp{700});
            EXPECT_EQ(view(bytes).last_offset(), Offset{1});
            for (const Rec& record : records_of(bytes)) EXPECT_EQ(record.timestamp, 700);
        }
    }
}

TEST(BatchBuilder, ACompactedBatchKeepsItsRange) {
    const Buffer bytes = build({.base_offset = Offset{100}, .last_offset = Offset{110}}, {{.offset = 105, .timestamp = 1}});
    EXPECT_EQ(view(bytes).base_offset(), Offset{100});
    EXPECT_EQ(view(bytes).last_offset(), Offset{110});
    EXPECT_EQ(view(bytes).record_count(), 1);
    EXPECT_EQ(records_of(bytes)[0].offset, 105);
}

TEST(BatchBuilder, LegacyMessagesAreEntriesOfTheirOwn) {
    for (const std::int8_t magic : std::array<std::int8_t, 2>{0, 1}) {
        const std::vector<Rec> records = {{.offset = 7, .timestamp = magic == 0 ? -1 : 1, .key = "a"}, {.offset = 9, .timestamp = magic == 0 ? -1 : 2, .value = "b"}};
        const Buffer bytes = build({.magic = magic, .base_offset = Offset{7}}, records);
        const auto entries = all_batches(bytes);
        ASSERT_EQ(entries.size(), 2U);
        for (std::size_t i = 0; i < 2; ++i) {
            EXPECT_TRUE(entries[i].crc_matches());
            EXPECT_EQ(read_all(entries[i]).value(), std::vector<Rec>{records[i]});
        }
    }
}

TEST(BatchBuilder, BytesAreStable) {
    // One two-record batch for each format and codec. A change here changes what is on people's disks; a newer library can
    // be the reason, and then the golden test says whether Kafka's bytes are still met.
    struct Case {
        std::int8_t magic;
        Codec codec;
        std::uint32_t crc;
    };
    for (const auto& [magic, codec, crc] : {Case{0, Codec::none, 1978725405u},
                                          Case{0, Codec::gzip, 1780269490u},
                                          Case{0, Codec::snappy, 2901077588u},
                                          Case{0, Codec::lz4, 66944826u},
                                          Case{1, Codec::none, 2893412167u},
                                          Case{1, Codec::gzip, 1806222406u},
                                          Case{1, Codec::snappy, 2123175684u},
                                          Case{1, Codec::lz4, 3727317653u},
                                          Case{2, Codec::none, 459780038u},
                                          Case{2, Codec::gzip, 4088851738u},
                                          Case{2, Codec::snappy, 3818771459u},
                                          Case{2, Codec::lz4, 3165149424u},
                                          Case{2, Codec::zstd, 3917134361u}}) {
        std::vector<Rec> records = {{.offset = 0, .timestamp = 1000, .key = "key1", .value = "value1"},
                                    {.offset = 1, .timestamp = 2000, .key = "key2", .value = "value2"}};
        if (magic == 0) {
            for (Rec& record : records) record.timestamp = -1;
        }
        EXPECT_EQ(view(build({.magic = magic, .codec = codec}, records)).crc(), crc) << "magic " << int{magic} << " codec " << static_cast<int>(codec);
    }
}

using BatchBuilderDeathTest = ::testing::Test;

TEST(BatchBuilderDeathTest, BrokenPromisesStopTheProcess) {
    const auto start = [](const BatchOptions& options) {
        BatchBuilder builder;
        builder.start(options);
    };
    EXPECT_DEATH(start({.transactional = true}), "producer_id");
    EXPECT_DEATH(start({.producer_id = 1, .base_sequence = 0}), "producer_epoch");
    EXPECT_DEATH(start({.producer_id = 1, .producer_epoch = 0}), "base_sequence");
    EXPECT_DEATH(start({.timestamp_type = TimestampType::log_append_time}), "log_append_time");
    EXPECT_DEATH(start({.magic = 1, .codec = Codec::zstd}), "zstd");
    EXPECT_DEATH(start({.magic = 1, .delete_horizon = Timestamp{1}}), "delete_horizon");
    start({.producer_id = 1, .producer_epoch = 0, .transactional = true, .control = true});  // a marker has no sequence

    const auto append_all = [](const std::vector<Rec>& records) { build({.base_offset = Offset{5}}, records); };
    EXPECT_DEATH(append_all({{.offset = 4}}), "base_offset");
    EXPECT_DEATH(append_all({{.offset = 5}, {.offset = 5}}), "last_offset");
    EXPECT_DEATH(append_all({{.offset = 6}, {.offset = 5}}), "last_offset");
    EXPECT_DEATH(append_all({{.offset = 5 + (std::int64_t{1} << 31)}}), "offset");
    EXPECT_DEATH(append_all({{.offset = 5, .timestamp = -2}}), "timestamp");
}

TEST(CheckBuildable, SaysWhatStartWouldStopFor) {
    const auto check = [](RawBatch raw) {
        const Buffer bytes = raw_batch(raw);
        return check_buildable(view(bytes)).has_value();
    };
    EXPECT_TRUE(check({}));
    EXPECT_TRUE(check({.producer_id = 1, .producer_epoch = 0, .base_sequence = 0}));
    EXPECT_TRUE(check({.attributes = attribute::control | attribute::transactional, .producer_id = 1, .producer_epoch = 0}));
    EXPECT_FALSE(check({.attributes = attribute::transactional}));
    EXPECT_FALSE(check({.producer_id = -2}));
    EXPECT_FALSE(check({.producer_id = 1, .base_sequence = 0}));
    EXPECT_FALSE(check({.producer_id = 1, .producer_epoch = 0}));
}

}  // namespace
}  // namespace tidemark::record
