#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

#include "base/bytes.h"

namespace tidemark {
namespace {

std::vector<std::byte> repeated(unsigned char value, std::size_t count) { return std::vector<std::byte>(count, std::byte{value}); }

std::vector<std::byte> counting_up(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i);
    return bytes;
}

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
    return bytes;
}

/// Bit by bit, as the definition says.
std::uint32_t by_definition(Bytes data) {
    std::uint32_t crc = 0xffffffff;
    for (const auto b : data) {
        crc ^= std::to_integer<std::uint32_t>(b);
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

TEST(Crc32c, HasTheKnownValues) {
    auto counting_down = counting_up(32);
    std::reverse(counting_down.begin(), counting_down.end());
    const struct {
        std::vector<std::byte> data;
        std::uint32_t crc;
    } table[] = {
        {{}, 0},
        {to_vector(as_bytes("123456789")), 0xe3069283},  // the catalogue's check value
        {repeated(0x00, 32), 0x8a9136aa},                // RFC 3720, B.4
        {repeated(0xff, 32), 0x62a8ab43},
        {counting_up(32), 0x46dd794e},
        {counting_down, 0x113fdb5c},
    };
    for (const auto& [data, crc] : table) {
        EXPECT_EQ(crc32c(data), crc) << data.size() << " bytes";
        EXPECT_EQ(crc32c_portable(data), crc) << data.size() << " bytes";
    }
}

// Every length around the lanes of 256 and 8192 bytes, at every alignment.
TEST(Crc32c, AgreesWithTheDefinitionAtEveryLengthAndAlignment) {
    std::mt19937_64 random(1);
    const auto data = random_bytes(random, 3 * 8192 + 3 * 256 + 64);
    std::vector<std::size_t> lengths(40);
    std::iota(lengths.begin(), lengths.end(), 0u);
    for (const std::size_t around : {256u, 3 * 256u, 6 * 256u, 8192u, 3 * 8192u, 3 * 8192u + 3 * 256u}) {
        for (std::size_t length = around - 9; length <= around + 9; ++length) lengths.push_back(length);
    }
    for (const auto length : lengths) {
        for (std::size_t shift = 0; shift < 8; ++shift) {
            const auto piece = Bytes(data).subspan(shift, length);
            const auto expected = by_definition(piece);
            ASSERT_EQ(crc32c(piece), expected) << length << " bytes from " << shift;
            ASSERT_EQ(crc32c_portable(piece), expected) << length << " bytes from " << shift;
        }
    }
}

TEST(Crc32c, ContinuesWhereverTheDataIsCut) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 300; ++round) {
        const auto data = random_bytes(random, random() % 60'000);
        const auto cut = random() % (data.size() + 1);
        const auto front = Bytes(data).first(cut);
        const auto back = Bytes(data).subspan(cut);
        const auto whole = crc32c_portable(data);
        ASSERT_EQ(crc32c(data), whole) << "round " << round;
        ASSERT_EQ(crc32c(back, crc32c(front)), whole) << data.size() << " bytes cut at " << cut;
        ASSERT_EQ(crc32c_portable(back, crc32c_portable(front)), whole) << data.size() << " bytes cut at " << cut;
    }
}

TEST(Crc32c, SeesEveryFlippedBit) {
    auto data = counting_up(1000);
    const auto before = crc32c(data);
    for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
        data[bit / 8] ^= std::byte{1} << bit % 8;
        ASSERT_NE(crc32c(data), before) << "bit " << bit;
        data[bit / 8] ^= std::byte{1} << bit % 8;
    }
}

}  // namespace
}  // namespace tidemark
