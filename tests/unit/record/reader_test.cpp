#include "record/record.h"

#include <sys/resource.h>

#include <functional>

#include "record/varint.h"
#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
using ::testing::HasSubstr;

/// A record's body, field by field, for shapes that no builder writes. Lengths default to what is there.
struct Body {
    std::int64_t timestamp_delta = 0;
    std::int32_t offset_delta = 0;
    std::optional<std::int32_t> key_length = {};
    std::string key = "k";
    std::optional<std::int32_t> value_length = {};
    std::string value = "v";
    std::int32_t header_count = 0;
    Buffer headers = {};
};

Buffer encode(const Body& body) {
    Buffer bytes{std::byte{0}};
    append_varlong(bytes, body.timestamp_delta);
    append_varint(bytes, body.offset_delta);
    append_varint(bytes, body.key_length.value_or(static_cast<std::int32_t>(body.key.size())));
    append_bytes(bytes, as_bytes(body.key));
    append_varint(bytes, body.value_length.value_or(static_cast<std::int32_t>(body.value.size())));
    append_bytes(bytes, as_bytes(body.value));
    append_varint(bytes, body.header_count);
    append_bytes(bytes, body.headers);
    return bytes;
}

Buffer with_length(const Buffer& body, std::optional<std::int32_t> length = {}) {
    Buffer bytes;
    append_varint(bytes, length.value_or(static_cast<std::int32_t>(body.size())));
    append_bytes(bytes, body);
    return bytes;
}

Buffer header(std::int32_t key_length, std::string_view key, std::int32_t value_length, std::string_view value) {
    Buffer bytes;
    append_varint(bytes, key_length);
    append_bytes(bytes, as_bytes(key));
    append_varint(bytes, value_length);
    append_bytes(bytes, as_bytes(value));
    return bytes;
}

/// The same payload, plain and in each codec.
void for_each_codec(const Buffer& payload, RawBatch batch, const std::function<void(const Buffer&)>& check) {
    for (const Codec codec : all_codecs) {
        SCOPED_TRACE("codec " + std::to_string(static_cast<int>(codec)));
        batch.attributes = static_cast<std::uint16_t>((batch.attributes & ~attribute::codec_mask) | static_cast<unsigned>(codec));
        batch.payload.clear();
        if (codec == Codec::none) batch.payload = payload;
        else compress(codec, payload, batch.payload);
        check(raw_batch(batch));
    }
}

void expect_invalid(const Buffer& payload, std::string_view why, RawBatch batch = {}) {
    for_each_codec(payload, batch, [&](const Buffer& bytes) {
        RecordReader reader;
        const auto records = read_all(view(bytes), reader);
        ASSERT_FALSE(records);
        EXPECT_EQ(records.error().code, Errc::invalid_record);
        EXPECT_THAT(records.error().context, HasSubstr(std::string{why}));
        EXPECT_EQ(reader.next().value(), std::nullopt) << "after an error the reader is at its end";
    });
}

TEST(RecordReader, ReadsEveryShapeOfARecord) {
    std::vector<Rec> records;
    std::int64_t offset = 50;
    for (const std::int64_t timestamp : {1000L, 0L, -1L, 9'000'000'000'000L}) {
        for (const auto& key : {std::optional<std::string>{}, std::optional<std::string>{""}, std::optional<std::string>{"key"}}) {
            for (const auto& value : {std::optional<std::string>{}, std::optional<std::string>{""}, std::optional<std::string>{std::string(300, 'x')}}) {
                records.push_back({.offset = offset++, .timestamp = timestamp, .key = key, .value = value});
                records.push_back({.offset = offset += 70,
                                   .timestamp = timestamp,
                                   .key = key,
                                   .value = value,
                                   .headers = {{"", ""}, {"name", "value"}, {"name", std::nullopt}, {std::string(200, 'h'), std::string(200, 'v')}}});
                ++offset;
            }
        }
    }
    RecordReader reader;
    for (const Codec codec : all_codecs) {
        const Buffer bytes = build({.codec = codec, .base_offset = Offset{50}}, records);
        EXPECT_EQ(read_all(view(bytes), reader).value(), records);
        EXPECT_EQ(view(bytes).record_count(), static_cast<std::int32_t>(records.size()));
    }
}

TEST(RecordReader, PlainRecordsAreViewsOnTheBatch) {
    const Buffer bytes = build({}, {{.offset = 0, .key = "key", .value = "value"}});
    RecordReader reader;
    ASSERT_TRUE(reader.open(view(bytes)));
    const auto record = reader.next().value();
    ASSERT_TRUE(record);
    EXPECT_GE(record->key->data(), bytes.data());
    EXPECT_LT(record->key->data(), bytes.data() + bytes.size());
    EXPECT_EQ(static_cast<std::size_t>(record->body_bytes), bytes.size() - v2_header_bytes - 1);
    EXPECT_EQ(record->content_bytes(), 8U);
    EXPECT_EQ(record->magic, 2);
}

TEST(RecordReader, CountAndContentsMustAgree) {
    Buffer two = with_length(encode({}));
    append_bytes(two, with_length(encode({.offset_delta = 1})));
    expect_invalid(two, "still remaining", {.count = 1});
    expect_invalid(two, "fewer records", {.count = 3});
    expect_invalid(two, "negative", {.count = -1});
    for_each_codec(two, {.count = 2}, [](const Buffer& bytes) { EXPECT_EQ(records_of(bytes).size(), 2U); });
    // Nothing is counted, nothing is looked at: what Kafka does.
    for_each_codec(two, {.count = 0}, [](const Buffer& bytes) { EXPECT_EQ(records_of(bytes).size(), 0U); });
}

TEST(RecordReader, LengthsMustBeThoseOfTheContents) {
    const Buffer good = encode({});
    const auto size = static_cast<std::int32_t>(good.size());
    expect_invalid(with_length(good, size - 1), "bad number of headers");
    expect_invalid(with_length(good, -1), "length -1");
    expect_invalid(with_length(good, size + 1), "length");
    expect_invalid(with_length(good, 2147483647), "length 2147483647");
    Buffer longer = good;
    longer.push_back(std::byte{0});
    expect_invalid(with_length(longer), "its length is not its contents'");
    expect_invalid(with_length({}), "no attributes");
    expect_invalid(from_hex("ffffffffff0000000000"), "bad length");
    expect_invalid(from_hex("80"), "bad length");

    expect_invalid(with_length(encode({.key_length = 100})), "its key exceeds it");
    expect_invalid(with_length(encode({.key_length = 2147483647})), "its key exceeds it");
    expect_invalid(with_length(encode({.value_length = 100})), "its value exceeds it");
    // A negative length of any size is a null.
    const Buffer nulls = with_length(encode({.key_length = -5, .key = "", .value_length = -2147483647 - 1, .value = ""}));
    for_each_codec(nulls, {}, [](const Buffer& bytes) {
        EXPECT_EQ(records_of(bytes), (std::vector<Rec>{{.offset = 0, .timestamp = 0}}));
    });

    // Varints that do not end.
    Buffer bad_timestamp{std::byte{0}};
    bad_timestamp.insert(bad_timestamp.end(), 10, std::byte{0xFF});
    bad_timestamp.insert(bad_timestamp.end(), 5, std::byte{0});
    expect_invalid(with_length(bad_timestamp), "bad timestamp delta");
    Buffer bad_offset{std::byte{0}, std::byte{0}};
    bad_offset.insert(bad_offset.end(), 5, std::byte{0xFF});
    bad_offset.insert(bad_offset.end(), 5, std::byte{0});
    expect_invalid(with_length(bad_offset), "bad offset delta");
}

TEST(RecordReader, EveryCutOfARecordIsInvalid) {
    const Buffer headers = header(1, "h", 1, "v");
    const Buffer good = encode({.timestamp_delta = 1 << 20, .offset_delta = 1 << 20, .header_count = 1, .headers = headers});
    for (std::size_t size = 0; size < good.size(); ++size) {
        const Buffer cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
        expect_invalid(with_length(cut), "record 0");
        expect_invalid(with_length(cut, static_cast<std::int32_t>(good.size())), "length");
    }
}

TEST(RecordReader, HeadersAreChecked) {
    const Buffer one = header(1, "h", 1, "v");
    const auto with = [](std::int32_t count, const Buffer& headers) { return with_length(encode({.header_count = count, .headers = headers})); };
    expect_invalid(with(-1, one), "bad number of headers");
    expect_invalid(with(5, one), "bad number of headers");  // more than bytes are left
    expect_invalid(with(2147483647, one), "bad number of headers");
    expect_invalid(with(2, one), "a header's key");
    expect_invalid(with(0, one), "its length is not its contents'");
    Buffer two = one;
    append_bytes(two, one);
    expect_invalid(with(1, two), "its length is not its contents'");
    expect_invalid(with(1, header(-1, "", 1, "v")), "a header's key is null");
    expect_invalid(with(1, header(9, "h", 1, "v")), "a header's key exceeds");
    expect_invalid(with(1, header(1, "h", 9, "v")), "a header's value exceeds");
    for_each_codec(with(1, header(1, "h", -7, "")), {}, [](const Buffer& bytes) {
        EXPECT_EQ(records_of(bytes)[0].headers, (decltype(Rec::headers){{"h", std::nullopt}}));
    });
}

TEST(RecordReader, DeltasWrapInsteadOfOverflowing) {
    const Buffer payload = with_length(encode({.timestamp_delta = 10, .offset_delta = 5}));
    const std::int64_t max = std::numeric_limits<std::int64_t>::max();
    for_each_codec(payload, {.base_offset = max, .base_timestamp = max, .base_sequence = 2147483647}, [&](const Buffer& bytes) {
        const auto records = records_of(bytes);
        EXPECT_EQ(records[0].offset, std::numeric_limits<std::int64_t>::min() + 4);
        EXPECT_EQ(records[0].timestamp, std::numeric_limits<std::int64_t>::min() + 9);
        EXPECT_EQ(records[0].sequence, 4);
    });
}

TEST(RecordReader, UnknownCodecsAreRefused) {
    for (std::uint16_t bits = 5; bits <= 7; ++bits) {
        const Buffer bytes = raw_batch({.attributes = bits, .payload = with_length(encode({}))});
        EXPECT_EQ(read_all(view(bytes)).error().code, Errc::unsupported_compression);
    }
}

TEST(RecordReader, BrokenStreamsAreInvalidRecords) {
    const Buffer payload = with_length(encode({.value = std::string(5000, 'x')}));
    for (const Codec codec : real_codecs) {
        SCOPED_TRACE(static_cast<int>(codec));
        RawBatch batch{.attributes = static_cast<std::uint16_t>(codec)};
        compress(codec, payload, batch.payload);
        const Buffer whole = batch.payload;
        for (std::size_t size = 0; size < whole.size(); ++size) {
            batch.payload.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
            const Buffer bytes = raw_batch(batch);
            const auto records = read_all(view(bytes));
            ASSERT_FALSE(records) << "cut after " << size << " of " << whole.size();
            EXPECT_EQ(records.error().code, Errc::invalid_record);
        }
    }
}

TEST(RecordReader, ALimitHoldsForCompressedRecordsBeforeMemoryIsTaken) {
    const Buffer good = with_length(encode({.value = std::string(100, 'x')}));
    for (const Codec codec : real_codecs) {
        RawBatch batch{.attributes = static_cast<std::uint16_t>(codec)};
        compress(codec, good, batch.payload);
        const Buffer bytes = raw_batch(batch);
        const auto body_bytes = static_cast<std::int32_t>(good.size()) - 2;
        RecordReader exact{{.record_bytes_max = body_bytes}};
        EXPECT_TRUE(read_all(view(bytes), exact));
        RecordReader less{{.record_bytes_max = body_bytes - 1}};
        EXPECT_THAT(read_all(view(bytes), less).error().context, HasSubstr("exceeds the limit"));
    }
    const Buffer plain = raw_batch({.payload = good});
    RecordReader less{{.record_bytes_max = 1}};
    EXPECT_TRUE(read_all(view(plain), less)) << "plain records are in memory anyway";
}

TEST(RecordReader, AClaimAloneTakesNoMemory) {
    // Two gigabytes claimed by a few bytes, within an address space that could not hold them.
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
#ifndef TIDEMARK_SANITIZED
    rlimit tight = before;
    tight.rlim_cur = 1U << 30;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
#endif
    expect_invalid(with_length(encode({}), 2147483639), "length 2147483639");
    const Buffer huge_key = with_length(encode({.key_length = 2147483647}));
    expect_invalid(huge_key, "its key exceeds it");
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

TEST(RecordReader, RewindStartsOver) {
    std::vector<Rec> records;
    for (int i = 0; i < 2000; ++i) records.push_back({.offset = i, .timestamp = i, .key = "k" + std::to_string(i), .value = std::string(500, 'v')});
    for (const Codec codec : all_codecs) {
        const Buffer bytes = build({.codec = codec}, records);
        for (const std::size_t keep : {std::size_t{0}, std::size_t{4} << 20}) {
            RecordReader reader{{.rewind_bytes_max = keep}};
            for (const int read_before : {0, 1, 1500, 2001}) {
                ASSERT_TRUE(reader.open(view(bytes)));
                for (int i = 0; i < read_before; ++i) ASSERT_TRUE(reader.next());
                ASSERT_TRUE(reader.rewind());
                std::vector<Rec> again;
                for (;;) {
                    const auto record = reader.next().value();
                    if (!record) break;
                    again.push_back(to_rec(*record));
                }
                EXPECT_EQ(again, records);
            }
        }
    }
    const Buffer wrapper = build({.magic = 1, .codec = Codec::gzip}, {{.offset = 0, .timestamp = 1, .key = "a"}, {.offset = 1, .timestamp = 2, .key = "b"}});
    RecordReader reader;
    ASSERT_TRUE(reader.open(view(wrapper)));
    ASSERT_TRUE(reader.next().value());
    ASSERT_TRUE(reader.rewind());
    EXPECT_EQ(reader.next().value()->offset, Offset{0});
}

TEST(RecordReader, RecordsLargerThanItsWindow) {
    std::string big;
    for (int i = 0; big.size() < 3'000'000; ++i) big += std::to_string(std::int64_t{i} * 7919);
    const std::vector<Rec> records = {{.offset = 0, .timestamp = 1, .key = "small"},
                                      {.offset = 1, .timestamp = 1, .key = "big", .value = big},
                                      {.offset = 2, .timestamp = 1, .key = "small", .value = "again"}};
    RecordReader reader;
    for (const Codec codec : all_codecs) {
        const Buffer bytes = build({.codec = codec}, records);
        EXPECT_EQ(read_all(view(bytes), reader).value(), records);
        const Buffer next = build({.codec = codec}, {records[0]});
        EXPECT_EQ(read_all(view(next), reader).value(), std::vector<Rec>{records[0]}) << "the reader goes on with small batches";
    }
}

// --- formats 0 and 1 -------------------------------------------------------------------------------------------------

const std::vector<Rec> legacy_three = {{.offset = 10, .timestamp = 100, .key = "a", .value = "1"},
                                       {.offset = 11, .timestamp = 300, .key = std::nullopt, .value = "2"},
                                       {.offset = 15, .timestamp = 200, .key = "c", .value = std::nullopt}};

std::vector<Rec> without_timestamps(std::vector<Rec> records) {
    for (Rec& record : records) record.timestamp = -1;
    return records;
}

TEST(LegacyReader, ReadsWrappersOfEveryCodec) {
    RecordReader reader;
    for (const Codec codec : {Codec::gzip, Codec::snappy, Codec::lz4}) {
        const Buffer v1 = build({.magic = 1, .codec = codec, .base_offset = Offset{10}}, legacy_three);
        EXPECT_EQ(view(v1).base_offset(), Offset{15}) << "a wrapper carries its last message's offset";
        EXPECT_EQ(view(v1).max_timestamp(), Timestamp{300});
        EXPECT_EQ(read_all(view(v1), reader).value(), legacy_three);
        EXPECT_EQ(first_offset(view(v1), reader).value(), Offset{10});
        const Buffer v0 = build({.magic = 0, .codec = codec, .base_offset = Offset{10}}, without_timestamps(legacy_three));
        EXPECT_EQ(read_all(view(v0), reader).value(), without_timestamps(legacy_three));
        EXPECT_EQ(first_offset(view(v0), reader).value(), Offset{10});

        Buffer moved = v1;
        store_be(moved.data(), std::int64_t{115});
        EXPECT_EQ(read_all(view(moved), reader).value()[0].offset, 110) << "the prefix's offset moves all inner ones";
    }
}

TEST(LegacyReader, AppendTimeOfTheWrapperWins) {
    const Buffer bytes = build({.magic = 1,
                                .codec = Codec::gzip,
                                .timestamp_type = TimestampType::log_append_time,
                                .log_append_time = Timestamp{777},
                                .base_offset = Offset{10}},
                               legacy_three);
    for (const Rec& record : records_of(bytes)) EXPECT_EQ(record.timestamp, 777);
}

/// An inner message of format 0 or 1, as bytes.
Buffer message(std::int8_t magic, std::int64_t offset, std::string_view value) {
    return build({.magic = magic, .base_offset = Offset{offset}}, {{.offset = offset, .timestamp = magic == 0 ? -1 : 50, .key = "k", .value = std::string{value}}});
}

/// A wrapper around any bytes; null value when nothing.
Buffer wrapper(std::int8_t magic, std::int64_t offset, std::optional<Buffer> inner, std::uint8_t codec = 1) {
    Buffer bytes(magic == 0 ? 26 : 34);
    store_be(bytes.data(), offset);
    store_be(bytes.data() + 16, magic);
    bytes[17] = std::byte{codec};
    std::size_t at = 18;
    if (magic == 1) {
        store_be(bytes.data() + at, std::int64_t{60});
        at += 8;
    }
    store_be(bytes.data() + at, std::int32_t{-1});
    Buffer value;
    if (inner && codec >= 1 && codec <= 4) compress(static_cast<Codec>(codec), *inner, value, {}, {.magic = magic});
    store_be(bytes.data() + at + 4, inner ? static_cast<std::int32_t>(value.size()) : -1);
    append_bytes(bytes, value);
    store_be(bytes.data() + 8, static_cast<std::int32_t>(bytes.size() - log_overhead));
    fix_crc(bytes);
    return bytes;
}

TEST(LegacyReader, RelativeOffsetsCountFromTheWrapper) {
    Buffer inner = message(1, 0, "a");
    append_bytes(inner, message(1, 1, "b"));
    append_bytes(inner, message(1, 4, "c"));  // a gap from an old compaction
    const auto offsets = [&](std::int8_t magic, std::int64_t offset) {
        std::vector<std::int64_t> result;
        const Buffer bytes = wrapper(magic, offset, inner);
        for (const Rec& record : records_of(bytes)) result.push_back(record.offset);
        return result;
    };
    EXPECT_EQ(offsets(1, 24), (std::vector<std::int64_t>{20, 21, 24}));
    EXPECT_EQ(offsets(1, 4), (std::vector<std::int64_t>{0, 1, 4}));
    EXPECT_EQ(offsets(1, 0), (std::vector<std::int64_t>{0, 1, 4})) << "as producers send them";
    EXPECT_EQ(offsets(0, 24), (std::vector<std::int64_t>{0, 1, 4})) << "format 0 stores absolute offsets";
    const Buffer low = wrapper(1, 3, inner);
    EXPECT_EQ(read_all(view(low)).error().code, Errc::invalid_record);
    EXPECT_THAT(read_all(view(low)).error().context, HasSubstr("below the last inner one"));
}

TEST(LegacyReader, Version1WrapperWithVersion0Messages) {
    // What an old cleaner left behind (KAFKA-4298).
    Buffer inner = message(0, 0, "a");
    append_bytes(inner, message(0, 1, "b"));
    const Buffer bytes = wrapper(1, 31, inner);
    RecordReader reader;
    ASSERT_TRUE(reader.open(view(bytes)));
    const auto first = reader.next().value();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->offset, Offset{30});
    EXPECT_EQ(first->timestamp, no_timestamp);
    EXPECT_EQ(first->magic, 0);
    EXPECT_EQ(reader.next().value()->offset, Offset{31});
    EXPECT_EQ(reader.next().value(), std::nullopt);
}

TEST(LegacyReader, RefusesBadWrappers) {
    const auto error = [](const Buffer& bytes) {
        const auto records = read_all(view(bytes));
        EXPECT_FALSE(records);
        return records ? Error{} : records.error();
    };
    EXPECT_THAT(error(wrapper(1, 5, std::nullopt)).context, HasSubstr("without a value"));
    EXPECT_THAT(error(wrapper(1, 5, Buffer{})).context, HasSubstr("without inner messages"));
    EXPECT_EQ(error(wrapper(1, 5, message(1, 0, "a"), 4)).code, Errc::unsupported_compression) << "zstd came with v2";
    EXPECT_EQ(error(wrapper(0, 5, message(0, 0, "a"), 4)).code, Errc::unsupported_compression);
    EXPECT_EQ(error(wrapper(1, 5, message(1, 0, "a"), 6)).code, Errc::unsupported_compression);

    Buffer inner = message(1, 0, "a");
    inner.back() ^= std::byte{1};
    EXPECT_EQ(error(wrapper(1, 5, inner)).code, Errc::corrupt);
    EXPECT_THAT(error(wrapper(1, 5, inner)).context, HasSubstr("wrong CRC"));
    EXPECT_THAT(error(wrapper(1, 5, wrapper(1, 5, message(1, 0, "a")))).context, HasSubstr("itself compressed"));
    inner = message(1, 0, "a");
    inner[16] = std::byte{2};
    fix_crc(inner);
    EXPECT_THAT(error(wrapper(1, 5, inner)).context, HasSubstr("magic 2"));
    inner = message(1, 0, "a");
    store_be(inner.data() + 8, std::int32_t{13});
    EXPECT_EQ(error(wrapper(1, 5, inner)).code, Errc::corrupt);
    store_be(inner.data() + 8, std::int32_t{2147483647});
    EXPECT_EQ(error(wrapper(1, 5, inner)).code, Errc::corrupt);
    inner = message(0, 0, "");
    inner[16] = std::byte{1};  // too short for format 1
    inner.resize(27);
    store_be(inner.data() + 8, std::int32_t{15});
    fix_crc(inner);
    EXPECT_EQ(error(wrapper(1, 5, inner)).code, Errc::invalid_record);
    inner = message(1, 0, "a");
    store_be(inner.data() + 26, std::int32_t{1000});  // the key's length
    fix_crc(inner);
    EXPECT_THAT(error(wrapper(1, 5, inner)).context, HasSubstr("exceeds"));
}

TEST(LegacyReader, ACutLastInnerMessageIsTheEnd) {
    Buffer inner = message(1, 0, "a");
    Buffer second = message(1, 1, "b");
    second.pop_back();
    append_bytes(inner, second);
    const Buffer bytes = wrapper(1, 8, inner);
    EXPECT_EQ(records_of(bytes).size(), 1U);
    EXPECT_EQ(records_of(bytes)[0].offset, 8);
}

TEST(LegacyReader, RefusesLengthsBeyondAPlainMessage) {
    for (const std::int8_t magic : std::array<std::int8_t, 2>{0, 1}) {
        const std::size_t key_at = magic == 0 ? 18 : 26;
        for (const std::size_t at : {key_at, key_at + 5}) {
            Buffer bytes = message(magic, 3, "v");
            store_be(bytes.data() + at, std::int32_t{50});
            fix_crc(bytes);
            EXPECT_EQ(read_all(view(bytes)).error().code, Errc::invalid_record);
            store_be(bytes.data() + at, std::int32_t{2147483647});
            EXPECT_EQ(read_all(view(bytes)).error().code, Errc::invalid_record);
        }
    }
}

}  // namespace
}  // namespace tidemark::record
