#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "protocol/reader.h"
#include "protocol/writer.h"
#include "tests/unit/protocol/support.h"

namespace tidemark::protocol {
namespace {

using testing::HasSubstr;

std::string written(void (*write)(Writer&)) {
    Writer writer;
    write(writer);
    auto bytes = std::move(writer).finish_bytes();
    return bytes ? hex(*bytes) : bytes.error().message();
}

TEST(Writer, WritesPrimitivesBigEndian) {
    EXPECT_EQ(written([](Writer& w) { w.boolean(true); w.boolean(false); }), "0100");
    EXPECT_EQ(written([](Writer& w) { w.int8(-2); }), "fe");
    EXPECT_EQ(written([](Writer& w) { w.int16(0x0102); w.uint16(0xfffe); }), "0102fffe");
    EXPECT_EQ(written([](Writer& w) { w.int32(-2); w.uint32(0x80000000u); }), "fffffffe80000000");
    EXPECT_EQ(written([](Writer& w) { w.int64(0x0102030405060708); }), "0102030405060708");
    EXPECT_EQ(written([](Writer& w) { w.float64(-2.5); }), "c004000000000000");
    EXPECT_EQ(written([](Writer& w) { w.uuid(Uuid::of(7)); }), "00000000000000000000000000000007");
}

TEST(Writer, WritesBothEncodingsOfLengths) {
    EXPECT_EQ(written([](Writer& w) { w.string("ab", false); w.string("ab", true); }), "00026162036162");
    EXPECT_EQ(written([](Writer& w) { w.nullable_string({}, false, true); w.nullable_string({}, true, true); }), "ffff00");
    EXPECT_EQ(written([](Writer& w) { w.bytes(as_bytes("ab"), false); w.bytes(as_bytes("ab"), true); }), "000000026162036162");
    EXPECT_EQ(written([](Writer& w) { w.nullable_bytes({}, false, true); w.nullable_bytes({}, true, true); }), "ffffffff00");
    EXPECT_EQ(written([](Writer& w) { w.array(std::vector<std::int16_t>{1, -1}, false, 0); }), "000000020001ffff");
    EXPECT_EQ(written([](Writer& w) { w.array(std::vector<std::string>{"a", ""}, true, 0); }), "03026101");
    EXPECT_EQ(written([](Writer& w) { w.nullable_array(std::optional<std::vector<Uuid>>(), true, 0, true); }), "00");
    EXPECT_EQ(written([](Writer& w) { w.nullable_array(std::optional<std::vector<Uuid>>(), false, 0, true); }), "ffffffff");
}

TEST(Writer, RefusesNullWhereTheVersionHasNone) {
    EXPECT_THAT(written([](Writer& w) { w.nullable_string({}, true, false); }), HasSubstr("invalid_argument: null string"));
    EXPECT_THAT(written([](Writer& w) { w.nullable_bytes({}, true, false); }), HasSubstr("invalid_argument: null bytes"));
    EXPECT_THAT(written([](Writer& w) { w.nullable_records({}, true, false); }), HasSubstr("invalid_argument: null records"));
    EXPECT_THAT(written([](Writer& w) { w.nullable_array(std::optional<std::vector<Uuid>>(), true, 0, false); }),
                HasSubstr("invalid_argument: null array"));
}

TEST(Writer, RefusesStringsThatTheirLengthCannotSay) {
    EXPECT_THAT(written([](Writer& w) { w.string(std::string(32768, 'x'), false); }), HasSubstr("too_large"));
    EXPECT_THAT(written([](Writer& w) { w.string(std::string(32768, 'x'), true); }), HasSubstr("too_large"));
    EXPECT_EQ(written([](Writer& w) { w.string(std::string(32767, 'x'), false); }).size(), 2u * (2 + 32767));
}

TEST(Writer, KeepsTheFirstRefusal) {
    EXPECT_EQ(written([](Writer& w) {
                  w.int8(1);
                  w.refuse(Errc::unsupported, "first");
                  w.nullable_string({}, true, false);
              }),
              "unsupported: first");
}

TEST(Writer, MakesRoomForTheSizeOfALongTag) {
    for (const std::size_t size : {0u, 1u, 127u, 128u, 300u, 16383u, 16384u}) {
        Writer writer;
        const auto begun = writer.begin_tag(5);
        for (std::size_t i = 0; i < size; ++i) writer.int8(static_cast<std::int8_t>(i));
        writer.end_tag(begun);
        const auto bytes = std::move(writer).finish_bytes();
        ASSERT_TRUE(bytes);
        Reader reader{*bytes};
        const auto tag = reader.begin_tag();
        EXPECT_EQ(tag.number, 5u);
        ASSERT_EQ(reader.remaining(), size);
        for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(reader.int8(), static_cast<std::int8_t>(i));
        reader.end_tag(tag);
        EXPECT_TRUE(reader.ok());
    }
}

TEST(Writer, LeavesGapsForRecordsThatAreElsewhere) {
    std::vector<std::byte> inline_records = bytes_of("aa bb");
    Writer writer;
    writer.int8(1);
    writer.records({.elsewhere = Records::Elsewhere{.slice = 7, .size = 300}}, true);
    writer.int8(2);
    writer.records({.bytes = inline_records}, true);
    writer.records({.elsewhere = Records::Elsewhere{.slice = 8, .size = 5}}, false);
    writer.records({.elsewhere = Records::Elsewhere{.slice = 9, .size = 0}}, true);
    const auto encoded = std::move(writer).finish();
    ASSERT_TRUE(encoded);
    EXPECT_EQ(hex(encoded->bytes), "01" "ad02" "02" "03aabb" "00000005" "01");
    ASSERT_EQ(encoded->gaps.size(), 2u);  // none for nothing
    EXPECT_EQ(encoded->gaps[0].at, 3u);
    EXPECT_EQ(encoded->gaps[0].slice, 7u);
    EXPECT_EQ(encoded->gaps[0].size, 300u);
    EXPECT_EQ(encoded->gaps[1].at, 11u);
    EXPECT_EQ(encoded->gaps[1].slice, 8u);
    EXPECT_EQ(encoded->size, encoded->bytes.size() + 305);
}

TEST(Writer, RefusesUnknownTagsOutOfOrder) {
    for (const std::uint32_t second : {3u, 4u}) {
        Writer writer;
        writer.unknown_tags({{.number = 4, .value = {}}, {.number = second, .value = {}}});
        const auto bytes = std::move(writer).finish_bytes();
        ASSERT_FALSE(bytes);
        EXPECT_EQ(bytes.error().code, Errc::invalid_argument);
    }
}

TEST(Reader, ReadsWhatTheWriterWrote) {
    Writer writer;
    writer.boolean(true);
    writer.int8(-3);
    writer.int16(-300);
    writer.uint16(65535);
    writer.int32(-70000);
    writer.uint32(4000000000u);
    writer.int64(std::numeric_limits<std::int64_t>::min());
    writer.float64(0.1);
    writer.uuid(Uuid::of(9));
    for (const std::uint32_t n : {0u, 127u, 128u, 16384u, 0xffffffffu}) writer.unsigned_varint(n);
    const auto bytes = std::move(writer).finish_bytes();
    ASSERT_TRUE(bytes);
    const GuardedBytes guarded{*bytes};
    Reader reader{guarded.get()};
    EXPECT_EQ(reader.boolean(), true);
    EXPECT_EQ(reader.int8(), -3);
    EXPECT_EQ(reader.int16(), -300);
    EXPECT_EQ(reader.uint16(), 65535);
    EXPECT_EQ(reader.int32(), -70000);
    EXPECT_EQ(reader.uint32(), 4000000000u);
    EXPECT_EQ(reader.int64(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(reader.float64(), 0.1);
    EXPECT_EQ(reader.uuid(), Uuid::of(9));
    for (const std::uint32_t n : {0u, 127u, 128u, 16384u, 0xffffffffu}) EXPECT_EQ(reader.unsigned_varint(), n);
    EXPECT_TRUE(reader.result());
    EXPECT_EQ(reader.remaining(), 0u);
}

/// The failure of one read, or "" if there was none.
std::string failure(std::string_view notation, void (*read)(Reader&)) {
    const GuardedBytes bytes{bytes_of(notation)};
    auto reader = Reader::of_frame(bytes.get());
    read(reader);
    const auto result = reader.result();
    return result ? "" : result.error().message();
}

TEST(Reader, RefusesWhatEndsEarly) {
    EXPECT_THAT(failure("", [](Reader& r) { r.int8(); }), HasSubstr("corrupt: 1 bytes expected, 0 left at byte 0"));
    EXPECT_THAT(failure("01", [](Reader& r) { r.int16(); }), HasSubstr("2 bytes expected, 1 left at byte 0"));
    EXPECT_THAT(failure("01020304050607", [](Reader& r) { r.int64(); }), HasSubstr("8 bytes expected, 7 left"));
    EXPECT_THAT(failure("00", [](Reader& r) { r.uuid(); }), HasSubstr("16 bytes expected"));
    EXPECT_THAT(failure("80", [](Reader& r) { r.unsigned_varint(); }), HasSubstr("1 bytes expected, 0 left at byte 1"));
    EXPECT_THAT(failure("0003 6162", [](Reader& r) { r.string(false); }), HasSubstr("string of 3 bytes, 2 left at byte 2"));
    EXPECT_THAT(failure("04 6162", [](Reader& r) { r.string(true); }), HasSubstr("string of 3 bytes, 2 left"));
    EXPECT_THAT(failure("04 6162", [](Reader& r) { r.bytes(true); }), HasSubstr("bytes of 3 bytes, 2 left"));
    EXPECT_THAT(failure("7fffffff 6162", [](Reader& r) { r.records(false); }), HasSubstr("records of 2147483647 bytes, 2 left"));
}

TEST(Reader, RefusesVarintsBeyond32Bits) {
    EXPECT_EQ(failure("ffffffff0f", [](Reader& r) { EXPECT_EQ(r.unsigned_varint(), 0xffffffffu); }), "");
    EXPECT_THAT(failure("ffffffff1f", [](Reader& r) { r.unsigned_varint(); }), HasSubstr("varint of more than 32 bits"));
    EXPECT_THAT(failure("ffffffffffffffffffff", [](Reader& r) { r.unsigned_varint(); }), HasSubstr("varint of more than 32 bits"));
}

TEST(Reader, RefusesLengthsBelowNull) {
    EXPECT_THAT(failure("fffe", [](Reader& r) { r.nullable_string(false, true); }), HasSubstr("string of -2 bytes"));
    EXPECT_THAT(failure("fffffffe", [](Reader& r) { r.nullable_bytes(false, true); }), HasSubstr("bytes of -2 bytes"));
    EXPECT_THAT(failure("80000000", [](Reader& r) {
                    std::vector<std::int32_t> to;
                    r.array(to, false, 0);
                }),
                HasSubstr("array of -2147483648 elements"));
}

TEST(Reader, TakesNullOnlyWhereAllowed) {
    EXPECT_EQ(failure("ffff", [](Reader& r) { EXPECT_FALSE(r.nullable_string(false, true)); }), "");
    EXPECT_THAT(failure("ffff", [](Reader& r) { r.nullable_string(false, false); }), HasSubstr("null string where none is allowed"));
    EXPECT_THAT(failure("ffff", [](Reader& r) { r.string(false); }), HasSubstr("null string"));
    EXPECT_THAT(failure("00", [](Reader& r) { r.bytes(true); }), HasSubstr("null bytes"));
    EXPECT_THAT(failure("00", [](Reader& r) { r.records(true); }), HasSubstr("null records"));
    EXPECT_EQ(failure("00", [](Reader& r) { EXPECT_FALSE(r.nullable_records(true, true)); }), "");
    EXPECT_THAT(failure("00", [](Reader& r) {
                    std::vector<Uuid> to;
                    r.array(to, true, 0);
                }),
                HasSubstr("null array"));
    EXPECT_EQ(failure("00", [](Reader& r) {
                  std::optional<std::vector<Uuid>> to{std::in_place};
                  r.nullable_array(to, true, 0, true);
                  EXPECT_FALSE(to);
              }),
              "");
}

TEST(Reader, RefusesStringsBeyondKafkasLimit) {
    std::vector<std::byte> bytes = bytes_of("818002");  // 32769: a string of 32768 bytes
    bytes.resize(bytes.size() + 32768, std::byte{'x'});
    Reader reader{Bytes(bytes)};
    EXPECT_FALSE(reader.nullable_string(true, true));
    EXPECT_THAT(reader.result().error().message(), HasSubstr("string of 32768 bytes"));
}

TEST(Reader, ComparesCountsWithTheBytesThatAreLeft) {
    const auto before = allocated_bytes();
    EXPECT_THAT(failure("7fffffff 0000", [](Reader& r) {
                    std::vector<std::int64_t> to;
                    r.array(to, false, 0);
                }),
                HasSubstr("array of 2147483647 elements, 2 bytes left"));
    EXPECT_THAT(failure("00000002 00000001 000000", [](Reader& r) {
                    std::vector<std::int32_t> to;
                    r.array(to, false, 0);
                }),
                HasSubstr("array of 2 elements, 7 bytes left"));
    EXPECT_THAT(failure("ffffffff0f 0000", [](Reader& r) { r.tag_count(); }), HasSubstr("4294967295 tagged fields"));
    EXPECT_LT(allocated_bytes() - before, 4096u);
}

TEST(Reader, YieldsNothingAfterAFailure) {
    const auto bytes = bytes_of("fffe 01 02 03 04");
    Reader reader{Bytes(bytes)};
    EXPECT_EQ(reader.nullable_string(false, true), "");
    EXPECT_EQ(reader.int8(), 0);
    EXPECT_EQ(reader.remaining(), 0u);
    EXPECT_THAT(reader.result().error().context, HasSubstr("at byte 2"));  // the first failure's place
}

TEST(Reader, ReadsRecordsAsASliceOfTheFrame) {
    auto frame = bytes_of("04 aabbcc 7f");
    auto reader = Reader::of_frame(frame);
    const auto records = reader.records(true);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records.bytes.data(), frame.data() + 1);
    records.bytes[0] = std::byte{0x11};
    EXPECT_EQ(hex(frame), "0411bbcc7f");
    EXPECT_EQ(reader.int8(), 0x7f);
}

TEST(Reader, KeepsUnknownTags) {
    const auto bytes = bytes_of("02  05 02 aabb  c801 00  77");
    Reader reader{Bytes(bytes)};
    UnknownTags tags;
    reader.unknown_tags(tags);
    EXPECT_TRUE(reader.ok());
    EXPECT_EQ(tags, (UnknownTags{{.number = 5, .value = bytes_of("aabb")}, {.number = 200, .value = {}}}));
    EXPECT_EQ(reader.int8(), 0x77);
}

TEST(Reader, HoldsATaggedFieldToItsSize) {
    EXPECT_THAT(failure("05 02 0001 02", [](Reader& r) {
                    const auto tag = r.begin_tag();
                    r.int8();
                    r.end_tag(tag);
                }),
                HasSubstr("tagged field 5 is larger than its value"));
    EXPECT_THAT(failure("05 02 0001 0203", [](Reader& r) {
                    const auto tag = r.begin_tag();
                    r.int32();  // the bytes are there, but behind the field
                    r.end_tag(tag);
                }),
                HasSubstr("4 bytes expected, 2 left"));
    EXPECT_THAT(failure("05 03 0001", [](Reader& r) { r.begin_tag(); }), HasSubstr("3 bytes expected, 2 left"));
}

TEST(Reader, BoundsTheMemoryOfManyEmptyTags) {
    std::vector<std::byte> bytes = bytes_of("c0843d");  // a million
    for (int i = 0; i < 1000000; ++i) append_bytes(bytes, bytes_of("05 00"));
    const auto before = allocated_bytes();
    Reader reader{Bytes(bytes)};
    UnknownTags tags;
    reader.unknown_tags(tags);
    EXPECT_FALSE(reader.ok());
    EXPECT_LE(allocated_bytes() - before, Reader::memory_max(bytes.size()));
}

}  // namespace
}  // namespace tidemark::protocol
