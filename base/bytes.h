/// Big-endian loads and stores, and views of text as bytes. Nothing here checks bounds: callers have.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tidemark {

template <std::integral T>
constexpr T byte_swapped(T v) noexcept {
    if constexpr (sizeof(T) == 1) return v;
    else if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(static_cast<std::uint16_t>(v)));
    else if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(static_cast<std::uint32_t>(v)));
    else return static_cast<T>(__builtin_bswap64(static_cast<std::uint64_t>(v)));
}

/// The big-endian integer at `from`, which need not be aligned.
template <std::integral T>
T load_be(const std::byte* from) noexcept {
    T v;
    std::memcpy(&v, from, sizeof v);
    return std::endian::native == std::endian::little ? byte_swapped(v) : v;
}

template <std::integral T>
void store_be(std::byte* to, T v) noexcept {
    if (std::endian::native == std::endian::little) v = byte_swapped(v);
    std::memcpy(to, &v, sizeof v);
}

template <std::integral T>
void append_be(std::vector<std::byte>& to, T v) {
    const auto at = to.size();
    to.resize(at + sizeof v);
    store_be(to.data() + at, v);
}

inline void append_bytes(std::vector<std::byte>& to, Bytes from) { to.insert(to.end(), from.begin(), from.end()); }

inline Bytes as_bytes(std::string_view text) noexcept { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }
inline std::string_view as_text(Bytes bytes) noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
inline std::vector<std::byte> to_vector(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

inline bool equal(Bytes a, Bytes b) noexcept { return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0); }

}  // namespace tidemark
