#include "record/batch.h"

#include <array>
#include <limits>

#include "record/control.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
using ::testing::HasSubstr;

const std::vector<Rec> three = {{.offset = 0, .timestamp = 1, .key = "a", .value = "v"},
                                {.offset = 1, .timestamp = 2, .key = "b", .value = "v"},
                                {.offset = 2, .timestamp = 3, .key = "c", .value = "v"}};

TEST(Batch, ReadsBackItsHeader) {
    const Buffer bytes = build({.base_offset = Offset{0}, .leader_epoch = 2, .producer_id = 5, .producer_epoch = 6, .base_sequence = 7}, three);
    const BatchView batch = view(bytes);
    EXPECT_EQ(batch.magic(), 2);
    EXPECT_FALSE(batch.is_legacy());
    EXPECT_EQ(batch.size(), bytes.size());
    EXPECT_EQ(batch.record_count(), 3);
    EXPECT_EQ(batch.last_offset(), Offset{2});
    EXPECT_EQ(batch.next_offset(), Offset{3});
    EXPECT_EQ(batch.base_timestamp(), Timestamp{1});
    EXPECT_EQ(batch.max_timestamp(), Timestamp{3});
    EXPECT_EQ(batch.timestamp_type(), TimestampType::create_time);
    EXPECT_EQ(batch.producer_id(), 5);
    EXPECT_TRUE(batch.has_producer_id());
    EXPECT_EQ(batch.producer_epoch(), 6);
    EXPECT_EQ(batch.base_sequence(), 7);
    EXPECT_EQ(batch.last_sequence(), 9);
    EXPECT_EQ(batch.leader_epoch(), 2);
    EXPECT_FALSE(batch.is_transactional());
    EXPECT_FALSE(batch.is_control());
    EXPECT_FALSE(batch.is_compressed());
    EXPECT_TRUE(batch.crc_matches());
    const auto records = records_of(bytes);
    for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].sequence, 7 + static_cast<int>(i));
}

TEST(Batch, LegacyEntriesHaveNoProducerAndNoEpoch) {
    const Buffer v0 = build({.magic = 0, .base_offset = Offset{9}}, {{.offset = 9, .key = "k"}});
    EXPECT_EQ(view(v0).max_timestamp(), no_timestamp);
    EXPECT_EQ(view(v0).timestamp_type(), TimestampType::none);
    const Buffer v1 = build({.magic = 1, .timestamp_type = TimestampType::log_append_time, .log_append_time = Timestamp{77}, .base_offset = Offset{9}},
                            {{.offset = 9, .timestamp = 5, .key = "k"}});
    EXPECT_EQ(view(v1).max_timestamp(), Timestamp{77});
    EXPECT_EQ(view(v1).timestamp_type(), TimestampType::log_append_time);
    for (const Buffer* bytes : {&v0, &v1}) {
        const BatchView batch = view(*bytes);
        EXPECT_TRUE(batch.is_legacy());
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_EQ(batch.last_offset(), Offset{9});
        EXPECT_EQ(batch.leader_epoch(), no_leader_epoch);
        EXPECT_EQ(batch.producer_id(), no_producer_id);
        EXPECT_EQ(batch.producer_epoch(), -1);
        EXPECT_EQ(batch.base_sequence(), -1);
        EXPECT_EQ(batch.last_sequence(), -1);
        EXPECT_EQ(batch.record_count(), std::nullopt);
        EXPECT_FALSE(batch.is_transactional());
        EXPECT_FALSE(batch.is_control());
        EXPECT_FALSE(batch.delete_horizon());
    }
}

TEST(Batch, SequencesWrapToZero) {
    const Buffer bytes = build({.producer_id = 1, .producer_epoch = 0, .base_sequence = 2147483646}, three);
    EXPECT_EQ(view(bytes).last_sequence(), 0);
    const auto records = records_of(bytes);
    EXPECT_EQ(records[0].sequence, 2147483646);
    EXPECT_EQ(records[1].sequence, 2147483647);
    EXPECT_EQ(records[2].sequence, 0);

    EXPECT_EQ(increment_sequence(0, 0), 0);
    EXPECT_EQ(increment_sequence(5, 10), 15);
    EXPECT_EQ(increment_sequence(2147483647, 0), 2147483647);
    EXPECT_EQ(increment_sequence(2147483647, 1), 0);
    EXPECT_EQ(increment_sequence(2147483647, 2147483647), 2147483646);
    EXPECT_EQ(decrement_sequence(5, 5), 0);
    EXPECT_EQ(decrement_sequence(0, 1), 2147483647);
    EXPECT_EQ(decrement_sequence(3, 5), 2147483646);
    EXPECT_EQ(decrement_sequence(2147483647, 2147483647), 0);
}

TEST(Batch, EveryFlippedByteBehindTheCrcIsSeen) {
    for (const std::int8_t magic : std::array<std::int8_t, 3>{0, 1, 2}) {
        const std::vector<Rec> one = {{.offset = 0, .timestamp = magic == 0 ? -1 : 5, .key = "key", .value = "value"}};
        const Buffer good = build({.magic = magic}, one);
        const std::size_t covered_from = magic == 2 ? 21 : 17;  // the magic itself would make another format
        for (std::size_t at = covered_from; at < good.size(); ++at) {
            Buffer bad = good;
            bad[at] ^= std::byte{0x55};
            EXPECT_FALSE(view(bad).crc_matches()) << "magic " << int{magic} << " byte " << at;
        }
    }
}

TEST(Batch, ParseRefusesWhatIsNoEntry) {
    const Buffer good = build({}, three);
    const auto context = [](const Buffer& bytes) {
        const auto parsed = BatchView::parse(bytes);
        EXPECT_FALSE(parsed);
        if (parsed) return std::string{};
        EXPECT_EQ(parsed.error().code, Errc::corrupt);
        return parsed.error().context;
    };
    EXPECT_THAT(context({}), HasSubstr("too few"));
    EXPECT_THAT(context(Buffer(good.begin(), good.begin() + 16)), HasSubstr("too few"));
    EXPECT_THAT(context(Buffer(good.begin(), good.end() - 1)), HasSubstr("are there"));
    for (const std::int32_t size : {13, 0, -1, std::numeric_limits<std::int32_t>::min()}) {
        Buffer bad = good;
        store_be(bad.data() + 8, size);
        EXPECT_THAT(context(bad), HasSubstr("below the smallest")) << size;
    }
    for (const std::int8_t magic : std::array<std::int8_t, 3>{3, 127, -1}) {
        Buffer bad = good;
        store_be(bad.data() + 16, magic);
        EXPECT_THAT(context(bad), HasSubstr("unknown magic"));
    }
    for (const auto& [magic, size] : {std::pair{2, 48}, std::pair{1, 21}}) {
        Buffer bad = good;
        store_be(bad.data() + 8, std::int32_t{size});
        store_be(bad.data() + 16, static_cast<std::int8_t>(magic));
        EXPECT_THAT(context(bad), HasSubstr("too few for magic"));
    }
    Buffer longest = good;
    store_be(longest.data() + 8, std::numeric_limits<std::int32_t>::max());
    EXPECT_THAT(context(longest), HasSubstr("are there"));
}

TEST(Batch, LyingOffsetsDoNotOverflow) {
    const Buffer bytes = raw_batch({.base_offset = std::numeric_limits<std::int64_t>::max(), .last_offset_delta = 5, .count = 0});
    EXPECT_EQ(view(bytes).last_offset().value, std::numeric_limits<std::int64_t>::min() + 4);
    EXPECT_EQ(view(bytes).next_offset().value, std::numeric_limits<std::int64_t>::min() + 5);
}

TEST(BatchCursor, StopsAtTheEndAndBeforeACutEntry) {
    Buffer bytes = build({.magic = 1}, {{.offset = 0, .timestamp = 1, .key = "k"}});
    const auto first_size = bytes.size();
    append_bytes(bytes, build({}, three));
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
        BatchCursor cursor{Bytes{bytes}.first(size)};
        std::size_t count = 0;
        while (cursor.next().value()) ++count;
        const std::size_t whole = size < first_size ? 0 : size < bytes.size() ? 1 : 2;
        EXPECT_EQ(count, whole) << size;
        EXPECT_EQ(cursor.rest().size(), size - (whole == 0 ? 0 : whole == 1 ? first_size : bytes.size()));
    }
}

TEST(BatchCursor, ReportsWhatIsCorrupt) {
    const Buffer good = build({}, three);
    Buffer zeros(100);
    EXPECT_EQ(BatchCursor{zeros}.next().error().code, Errc::corrupt);
    Buffer short_zeros(12);
    EXPECT_EQ(BatchCursor{short_zeros}.next().error().code, Errc::corrupt) << "the size field is enough";
    Buffer bad_magic = good;
    bad_magic[16] = std::byte{3};
    EXPECT_EQ(BatchCursor{bad_magic}.next().error().code, Errc::corrupt);
    store_be(bad_magic.data() + 8, std::int32_t{1 << 30});
    EXPECT_EQ(BatchCursor{bad_magic}.next().error().code, Errc::corrupt) << "also when the entry is cut";
    Buffer small = good;
    store_be(small.data() + 8, std::int32_t{20});
    EXPECT_EQ(BatchCursor{small}.next().error().code, Errc::corrupt);
}

TEST(InPlace, OffsetAndEpochLeaveTheCrcRight) {
    for (const Codec codec : all_codecs) {
        Buffer bytes = build({.codec = codec}, three);
        in_place::set_base_offset(bytes, Offset{40});
        in_place::set_leader_epoch(bytes, 12);
        const BatchView batch = view(bytes);
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_EQ(batch.leader_epoch(), 12);
        EXPECT_EQ(batch.last_offset(), Offset{42});
        const auto records = records_of(bytes);
        for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].offset, 40 + static_cast<int>(i));
    }
}

TEST(InPlace, AppendTimeIsEveryRecordsTimestamp) {
    for (const Codec codec : all_codecs) {
        Buffer bytes = build({.codec = codec,
                              .producer_id = 1,
                              .producer_epoch = 1,
                              .base_sequence = 1,
                              .transactional = true,
                              .delete_horizon = Timestamp{5}},
                             three);
        in_place::set_max_timestamp(bytes, TimestampType::log_append_time, Timestamp{999});
        const BatchView batch = view(bytes);
        EXPECT_TRUE(batch.crc_matches());
        EXPECT_EQ(batch.timestamp_type(), TimestampType::log_append_time);
        EXPECT_EQ(batch.max_timestamp(), Timestamp{999});
        EXPECT_EQ(batch.codec(), codec);
        EXPECT_TRUE(batch.is_transactional());
        EXPECT_EQ(batch.delete_horizon(), Timestamp{5});
        for (const Rec& record : records_of(bytes)) EXPECT_EQ(record.timestamp, 999);

        in_place::set_max_timestamp(bytes, TimestampType::create_time, Timestamp{3});
        EXPECT_TRUE(view(bytes).crc_matches());
        const auto records = records_of(bytes);
        for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].timestamp, three[i].timestamp);
    }
}

TEST(InPlace, TheCrcIsLeftAloneWhenNothingChanges) {
    Buffer bytes = build({}, three);
    bytes[17] ^= std::byte{1};
    in_place::set_max_timestamp(bytes, TimestampType::create_time, Timestamp{3});
    EXPECT_FALSE(view(bytes).crc_matches());
    in_place::set_max_timestamp(bytes, TimestampType::create_time, Timestamp{4});
    EXPECT_TRUE(view(bytes).crc_matches());
}

TEST(InPlaceDeathTest, RefusesATypeThatIsNone) {
    Buffer bytes = build({}, three);
    EXPECT_DEATH(in_place::set_max_timestamp(bytes, TimestampType::none, Timestamp{1}), "type");
}

RecordView control_record(Bytes key, std::optional<Bytes> value = {}) {
    RecordView record;
    record.key = key;
    record.value = value;
    return record;
}

TEST(Control, KeysAndValuesAreChecked) {
    EXPECT_EQ(control_type(control_record(from_hex("00000000"))).value(), ControlType::abort);
    const Buffer later_version = from_hex("0007000100ff");
    EXPECT_EQ(control_type(control_record(later_version)).value(), ControlType::commit) << "later versions are read as version 0";
    const Buffer later_type = from_hex("00000007");
    EXPECT_EQ(control_type(control_record(later_type)).value(), ControlType::unknown);
    const Buffer negative_type = from_hex("0000ffff");
    EXPECT_EQ(control_type(control_record(negative_type)).value(), ControlType::unknown);
    for (std::int16_t type = 0; type <= 6; ++type) {
        const auto key = control_key(static_cast<ControlType>(type));
        EXPECT_EQ(control_type(control_record(key)).value(), static_cast<ControlType>(type));
    }

    const Buffer cut = from_hex("000000"), negative = from_hex("ffff0000");
    EXPECT_EQ(control_type(control_record(cut)).error().code, Errc::invalid_record);
    EXPECT_EQ(control_type(control_record(negative)).error().code, Errc::invalid_record);
    EXPECT_EQ(control_type(RecordView{}).error().code, Errc::invalid_record);

    const Buffer key = from_hex("00000001"), value = from_hex("0000000000ff"), long_value = from_hex("000500000100aabb");
    EXPECT_EQ(transaction_marker(control_record(key, value)).value().coordinator_epoch, 255);
    EXPECT_EQ(transaction_marker(control_record(key, long_value)).value().coordinator_epoch, 256);
    const Buffer cut_value = from_hex("0000000000"), negative_value = from_hex("ffff00000001"), other = from_hex("00000002");
    EXPECT_EQ(transaction_marker(control_record(key, cut_value)).error().code, Errc::invalid_record);
    EXPECT_EQ(transaction_marker(control_record(key, negative_value)).error().code, Errc::invalid_record);
    EXPECT_EQ(transaction_marker(control_record(key)).error().code, Errc::invalid_record);
    EXPECT_EQ(transaction_marker(control_record(other, value)).error().code, Errc::invalid_record);
}

}  // namespace
}  // namespace tidemark::record
