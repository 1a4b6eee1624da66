/// Strong types for the numbers that must not be mixed up, and the plain ones that Kafka's words name.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <cstddef>

namespace tidemark {

/// An int64 with a meaning. Differences and shifts are plain integers: `Offset + 1`, `Offset - Offset`.
template <class Tag>
struct Strong64 {
    std::int64_t value = 0;

    constexpr Strong64() = default;
    constexpr explicit Strong64(std::int64_t v) : value(v) {}

    friend constexpr auto operator<=>(Strong64, Strong64) = default;
    friend constexpr Strong64 operator+(Strong64 a, std::int64_t n) { return Strong64{a.value + n}; }
    friend constexpr Strong64 operator-(Strong64 a, std::int64_t n) { return Strong64{a.value - n}; }
    friend constexpr std::int64_t operator-(Strong64 a, Strong64 b) { return a.value - b.value; }
    constexpr Strong64& operator+=(std::int64_t n) { value += n; return *this; }
    constexpr Strong64& operator++() { ++value; return *this; }
};

/// Number of a record in its partition's log.
using Offset = Strong64<struct OffsetTag>;
/// Milliseconds since the epoch. Inside the record format -1 stands for "none"; our own signatures use std::optional.
using Timestamp = Strong64<struct TimestampTag>;
/// Byte offset in a file.
using FilePosition = Strong64<struct FilePositionTag>;

using ProducerId = std::int64_t;
using ProducerEpoch = std::int16_t;
using LeaderEpoch = std::int32_t;
using Sequence = std::int32_t;

inline constexpr Timestamp no_timestamp{-1};
inline constexpr ProducerId no_producer_id = -1;
inline constexpr LeaderEpoch no_leader_epoch = -1;

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

}  // namespace tidemark

template <class Tag>
struct std::hash<tidemark::Strong64<Tag>> {
    std::size_t operator()(tidemark::Strong64<Tag> v) const noexcept { return std::hash<std::int64_t>{}(v.value); }
};
