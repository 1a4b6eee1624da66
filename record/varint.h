/// Zig-zag varints of the record format (record-format 2.4). Inline: every record has five or more of them.
#pragma once

#include <vector>

#include "base/types.h"

namespace tidemark::record {

inline constexpr std::size_t varint_bytes_max = 5;
inline constexpr std::size_t varlong_bytes_max = 10;

namespace detail {

/// Base-128 of at most `bytes_max` bytes from `at`; nullptr when the bytes end or the last allowed one continues.
template <class Unsigned, std::size_t bytes_max>
inline const std::byte* read_groups(const std::byte* at, const std::byte* end, Unsigned* value) {
    Unsigned result = 0;
    for (std::size_t i = 0; i < bytes_max && at != end; ++i) {
        const auto group = static_cast<std::uint8_t>(*at++);
        result |= static_cast<Unsigned>(static_cast<Unsigned>(group & 0x7F) << (7 * i));
        if (group < 0x80) {
            *value = result;
            return at;
        }
    }
    return nullptr;
}

template <class Unsigned>
inline std::byte* write_groups(std::byte* to, Unsigned value) {
    for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80);
    *to++ = static_cast<std::byte>(value);
    return to;
}

inline std::uint32_t zigzag(std::int32_t v) { return (static_cast<std::uint32_t>(v) << 1) ^ static_cast<std::uint32_t>(v >> 31); }
inline std::uint64_t zigzag(std::int64_t v) { return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63); }
inline std::int32_t unzigzag(std::uint32_t v) { return static_cast<std::int32_t>((v >> 1) ^ (~(v & 1) + 1)); }
inline std::int64_t unzigzag(std::uint64_t v) { return static_cast<std::int64_t>((v >> 1) ^ (~(v & 1) + 1)); }

}  // namespace detail

/// Reads at `at` and returns where it ended; nullptr when the bytes end or the last allowed byte continues.
inline const std::byte* read_varint(const std::byte* at, const std::byte* end, std::int32_t* value) {
    std::uint32_t raw = 0;
    at = detail::read_groups<std::uint32_t, varint_bytes_max>(at, end, &raw);
    *value = detail::unzigzag(raw);
    return at;
}
inline const std::byte* read_varlong(const std::byte* at, const std::byte* end, std::int64_t* value) {
    std::uint64_t raw = 0;
    at = detail::read_groups<std::uint64_t, varlong_bytes_max>(at, end, &raw);
    *value = detail::unzigzag(raw);
    return at;
}

/// Reads at `*at`, moving it on; nothing when the bytes end or the last allowed byte continues (5 for int, 10 for long).
std::optional<std::int32_t> read_varint(Bytes bytes, std::size_t* at);
std::optional<std::int64_t> read_varlong(Bytes bytes, std::size_t* at);

/// Writes at `to`, which has room for varint_bytes() or varlong_bytes(); returns where it ended.
inline std::byte* write_varint(std::byte* to, std::int32_t v) { return detail::write_groups(to, detail::zigzag(v)); }
inline std::byte* write_varlong(std::byte* to, std::int64_t v) { return detail::write_groups(to, detail::zigzag(v)); }
void append_varint(std::vector<std::byte>& to, std::int32_t);
void append_varlong(std::vector<std::byte>& to, std::int64_t);

inline std::size_t varint_bytes(std::int32_t v) {
    return (static_cast<std::size_t>(38 - __builtin_clz(detail::zigzag(v) | 1))) / 7;
}
inline std::size_t varlong_bytes(std::int64_t v) {
    return (static_cast<std::size_t>(70 - __builtin_clzll(detail::zigzag(v) | 1))) / 7;
}

}  // namespace tidemark::record
