/// SipHash-2-4 with 128 bits of result: the offset map's idea of a key.
///
/// Two keys with the same hash are one key to the cleaner, which then deletes the older record. So the hash must be one
/// that a client cannot steer: it is keyed, with a key that every process draws anew.
/// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", and the authors' 128-bit variant.
#pragma once

#include <array>
#include <compare>
#include <cstdint>

#include "base/bytes.h"

namespace tidemark::cleaner {

struct KeyHash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

struct HashKey {
    std::uint64_t k0 = 0;
    std::uint64_t k1 = 0;
    /// From the system's random source.
    static HashKey random();
};

KeyHash hash_key(const HashKey&, Bytes key) noexcept;

}  // namespace tidemark::cleaner
