#include "base/crc32c.h"

#include <array>

namespace tidemark {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;  // reflected

constexpr auto make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t c = i;
        for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
        table[i] = c;
    }
    return table;
}

constexpr auto table = make_table();

}  // namespace

std::uint32_t crc32c_portable(Bytes data, std::uint32_t crc) noexcept {
    crc = ~crc;
    for (const auto b : data) crc = table[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ crc >> 8;
    return ~crc;
}

std::uint32_t crc32c(Bytes data, std::uint32_t crc) noexcept { return crc32c_portable(data, crc); }

}  // namespace tidemark
