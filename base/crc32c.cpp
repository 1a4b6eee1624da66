// Portable: eight tables, eight bytes a step (slicing-by-8).
//
// SSE4.2: the crc32 instruction takes eight bytes but answers after three cycles, while one can start each cycle. So the data
// is cut into blocks of three equal lanes whose checksums run side by side:
//
// 1. Lane 0 goes on from the checksum so far, lanes 1 and 2 start at 0.
// 2. A lane's checksum is moved over the bytes of the lane behind it (as if that lane were zeros) and xored with its
//    checksum: the checksum is linear. Moving by n bytes multiplies by x^(8n) modulo the polynomial, four table lookups.
// 3. Long lanes first, then short ones, the rest byte by byte with one lane.
//
// In all of this, polynomials are reflected: the highest bit is the coefficient of x^0.

#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tidemark {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78;

constexpr std::uint32_t times_x(std::uint32_t a) { return (a & 1) != 0 ? a >> 1 ^ polynomial : a >> 1; }

using ByteTable = std::array<std::uint32_t, 256>;

/// table[k][b]: the checksum register after byte b and k bytes of zeros.
constexpr std::array<ByteTable, 8> make_tables() {
    std::array<ByteTable, 8> tables{};
    for (std::uint32_t b = 0; b < 256; ++b) {
        std::uint32_t c = b;
        for (int bit = 0; bit < 8; ++bit) c = times_x(c);
        tables[0][b] = c;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t b = 0; b < 256; ++b) tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
    }
    return tables;
}

constexpr auto tables = make_tables();

inline std::uint32_t add_byte(std::uint32_t crc, std::byte b) noexcept {
    return tables[0][(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ crc >> 8;
}

inline std::uint64_t load_little_endian(const std::byte* from) noexcept {
    std::uint64_t v;
    std::memcpy(&v, from, sizeof v);
    return std::endian::native == std::endian::little ? v : byte_swapped(v);
}

#if defined(__x86_64__)

constexpr std::size_t long_lane = 8192;
constexpr std::size_t short_lane = 256;

constexpr std::uint32_t multiplied(std::uint32_t a, std::uint32_t b) {
    std::uint32_t product = 0;
    for (std::uint32_t bit = 1u << 31; bit != 0; bit >>= 1) {
        if ((a & bit) != 0) product ^= b;
        b = times_x(b);
    }
    return product;
}

constexpr std::uint32_t x_to_the(std::size_t n) {
    std::uint32_t power = 1u << 31;   // x^0
    std::uint32_t square = 1u << 30;  // x^1, x^2, x^4 …
    for (; n != 0; n >>= 1) {
        if ((n & 1) != 0) power = multiplied(power, square);
        square = multiplied(square, square);
    }
    return power;
}

/// shift[k][b]: byte k of a checksum, moved over `bytes` bytes.
constexpr std::array<ByteTable, 4> make_shift(std::size_t bytes) {
    std::array<ByteTable, 4> shift{};
    const auto factor = x_to_the(8 * bytes);
    for (std::uint32_t k = 0; k < 4; ++k) {
        for (std::uint32_t b = 0; b < 256; ++b) shift[k][b] = multiplied(factor, b << 8 * k);
    }
    return shift;
}

constexpr auto over_long_lane = make_shift(long_lane);
constexpr auto over_short_lane = make_shift(short_lane);

inline std::uint32_t moved(const std::array<ByteTable, 4>& shift, std::uint32_t crc) noexcept {
    return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^ shift[3][crc >> 24];
}

/// Takes as many blocks of three lanes from the front of `data` as there are.
template <std::size_t lane>
__attribute__((target("sse4.2"))) std::uint32_t add_blocks(std::uint32_t crc, Bytes& data, const std::array<ByteTable, 4>& shift) noexcept {
    for (; data.size() >= 3 * lane; data = data.subspan(3 * lane)) {
        const std::byte* at = data.data();
        std::uint64_t lane_0 = crc, lane_1 = 0, lane_2 = 0;
        for (const std::byte* end = at + lane; at != end; at += 8) {
            lane_0 = _mm_crc32_u64(lane_0, load_little_endian(at));
            lane_1 = _mm_crc32_u64(lane_1, load_little_endian(at + lane));
            lane_2 = _mm_crc32_u64(lane_2, load_little_endian(at + 2 * lane));
        }
        crc = moved(shift, static_cast<std::uint32_t>(lane_0)) ^ static_cast<std::uint32_t>(lane_1);
        crc = moved(shift, crc) ^ static_cast<std::uint32_t>(lane_2);
    }
    return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(Bytes data, std::uint32_t crc) noexcept {
    crc = add_blocks<long_lane>(~crc, data, over_long_lane);
    crc = add_blocks<short_lane>(crc, data, over_short_lane);
    for (; data.size() >= 8; data = data.subspan(8)) crc = static_cast<std::uint32_t>(_mm_crc32_u64(crc, load_little_endian(data.data())));
    for (const auto b : data) crc = _mm_crc32_u8(crc, std::to_integer<unsigned char>(b));
    return ~crc;
}

#endif

}  // namespace

std::uint32_t crc32c_portable(Bytes data, std::uint32_t crc) noexcept {
    crc = ~crc;
    for (; data.size() >= 8; data = data.subspan(8)) {
        const auto v = load_little_endian(data.data()) ^ crc;
        const auto byte = [v](int k) { return static_cast<std::size_t>(v >> 8 * k & 0xff); };
        crc = tables[7][byte(0)] ^ tables[6][byte(1)] ^ tables[5][byte(2)] ^ tables[4][byte(3)] ^
              tables[3][byte(4)] ^ tables[2][byte(5)] ^ tables[1][byte(6)] ^ tables[0][byte(7)];
    }
    for (const auto b : data) crc = add_byte(crc, b);
    return ~crc;
}

std::uint32_t crc32c(Bytes data, std::uint32_t crc) noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return crc32c_sse42(data, crc);
#endif
    return crc32c_portable(data, crc);
}

}  // namespace tidemark
