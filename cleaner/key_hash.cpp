#include "cleaner/key_hash.h"

#include <bit>
#include <random>

namespace tidemark::cleaner {
namespace {

std::uint64_t load_le(const std::byte* from) noexcept {
    std::uint64_t v;
    std::memcpy(&v, from, sizeof v);
    return std::endian::native == std::endian::little ? v : byte_swapped(v);
}

struct SipState {
    std::uint64_t v0, v1, v2, v3;

    void round() noexcept {
        v0 += v1;
        v1 = std::rotl(v1, 13) ^ v0;
        v0 = std::rotl(v0, 32);
        v2 += v3;
        v3 = std::rotl(v3, 16) ^ v2;
        v0 += v3;
        v3 = std::rotl(v3, 21) ^ v0;
        v2 += v1;
        v1 = std::rotl(v1, 17) ^ v2;
        v2 = std::rotl(v2, 32);
    }
    void take(std::uint64_t word) noexcept {
        v3 ^= word;
        round();
        round();
        v0 ^= word;
    }
    std::uint64_t finish() noexcept {
        for (int i = 0; i < 4; ++i) round();
        return v0 ^ v1 ^ v2 ^ v3;
    }
};

}  // namespace

HashKey HashKey::random() {
    std::random_device source;
    const auto word = [&] { return std::uint64_t{source()} << 32 | source(); };
    return {word(), word()};
}

KeyHash hash_key(const HashKey& key, Bytes bytes) noexcept {
    SipState s{key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d ^ 0xee, key.k0 ^ 0x6c7967656e657261, key.k1 ^ 0x7465646279746573};
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, at += 8) s.take(load_le(at));
    std::uint64_t last = std::uint64_t{bytes.size()} << 56;
    for (std::size_t i = 0; i < left; ++i) last |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
    s.take(last);
    s.v2 ^= 0xee;
    const auto low = s.finish();
    s.v1 ^= 0xdd;
    const auto high = s.finish();
    return {low, high};
}

}  // namespace tidemark::cleaner
