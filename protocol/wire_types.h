/// What the generated messages are made of, besides numbers, strings and vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.h"

namespace tidemark::protocol {

/// Both ends included. Empty when `min` is above `max`.
struct VersionRange {
    std::int16_t min = 0;
    std::int16_t max = -1;

    constexpr bool contains(std::int16_t version) const { return min <= version && version <= max; }
    constexpr bool empty() const { return min > max; }
    friend constexpr bool operator==(const VersionRange&, const VersionRange&) = default;
};

/// `flexible_from` of messages that never became flexible.
inline constexpr std::int16_t never_flexible = 32767;

/// A tagged field that this program does not know. It is kept and written back, so that a newer writer's fields survive.
struct UnknownTag {
    std::uint32_t number = 0;
    std::vector<std::byte> value = {};

    friend bool operator==(const UnknownTag&, const UnknownTag&) = default;
};
using UnknownTags = std::vector<UnknownTag>;

/// The record batches of one partition inside a message. They are never copied on their way in, and need not pass
/// through memory on their way out:
///   read     `bytes` is a slice of the frame that was read; it lives as long as the frame and may be changed in place
///   written  either `bytes`, which are copied into the output, or `elsewhere`: the output has a gap of that size
///            there (Encoded::gaps), which the sender fills with a piece of a file
struct Records {
    struct Elsewhere {
        std::uint32_t slice = 0;  ///< the sender's own number of what fills the gap
        std::size_t size = 0;     ///< in bytes

        friend bool operator==(const Elsewhere&, const Elsewhere&) = default;
    };

    MutableBytes bytes = {};
    std::optional<Elsewhere> elsewhere = {};  ///< set: `bytes` is empty

    std::size_t size() const { return elsewhere ? elsewhere->size : bytes.size(); }
    friend bool operator==(const Records& a, const Records& b) {
        return a.elsewhere == b.elsewhere && std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
    }
};

}  // namespace tidemark::protocol
