#include "record/varint.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using testing::from_hex;
using testing::to_hex;

TEST(Varint, HasKafkasBytes) {
    struct Case {
        std::int64_t value;
        const char* hex;
    };
    for (const auto& [value, hex] : {Case{0, "00"}, Case{-1, "01"}, Case{1, "02"}, Case{2, "04"}, Case{63, "7e"}, Case{64, "8001"},
                                     Case{-64, "7f"}, Case{-65, "8101"}, Case{500, "e807"}, Case{2147483647, "feffffff0f"},
                                     Case{-2147483647 - 1, "ffffffff0f"}}) {
        std::vector<std::byte> bytes;
        append_varint(bytes, static_cast<std::int32_t>(value));
        EXPECT_EQ(to_hex(bytes), hex);
        EXPECT_EQ(varint_bytes(static_cast<std::int32_t>(value)), bytes.size());
        std::size_t at = 0;
        EXPECT_EQ(read_varint(bytes, &at), value);
        EXPECT_EQ(at, bytes.size());

        bytes.clear();
        append_varlong(bytes, value);
        EXPECT_EQ(to_hex(bytes), hex);
        EXPECT_EQ(varlong_bytes(value), bytes.size());
        at = 0;
        EXPECT_EQ(read_varlong(bytes, &at), value);
        EXPECT_EQ(at, bytes.size());
    }
}

TEST(Varint, LongsOfEveryLengthComeBack) {
    for (int shift = 0; shift < 64; ++shift) {
        for (const std::uint64_t base : {std::uint64_t{1} << shift, (std::uint64_t{1} << shift) - 1, ~(std::uint64_t{1} << shift)}) {
            const auto value = static_cast<std::int64_t>(base);
            std::vector<std::byte> bytes;
            append_varlong(bytes, value);
            EXPECT_EQ(varlong_bytes(value), bytes.size()) << value;
            std::size_t at = 0;
            EXPECT_EQ(read_varlong(bytes, &at), value);
            const auto small = static_cast<std::int32_t>(value);
            bytes.clear();
            append_varint(bytes, small);
            EXPECT_EQ(varint_bytes(small), bytes.size()) << small;
            at = 0;
            EXPECT_EQ(read_varint(bytes, &at), small);
        }
    }
}

TEST(Varint, RefusesWhatGoesOnTooLongOrIsCut) {
    std::size_t at = 0;
    EXPECT_FALSE(read_varint(from_hex("ffffffffff01"), &at));
    EXPECT_FALSE(read_varlong(from_hex("ffffffffffffffffffff01"), &at));
    EXPECT_FALSE(read_varint(from_hex("80"), &at));
    EXPECT_FALSE(read_varint(from_hex(""), &at));
    EXPECT_FALSE(read_varlong(from_hex("ffff"), &at));
    EXPECT_EQ(at, 0U) << "a refused varint does not move the position";
    EXPECT_TRUE(read_varlong(from_hex("ffffffffffffffffff01"), &at));
    EXPECT_EQ(at, 10U);
    at = 7;
    EXPECT_FALSE(read_varint(from_hex("00"), &at)) << "a position behind the end";
}

}  // namespace
}  // namespace tidemark::record
