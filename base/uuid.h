/// 16 bytes, written by Kafka as 22 characters of base64url.
#pragma once

#include <array>
#include <compare>
#include <cstring>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tidemark {

struct Uuid {
    std::array<std::byte, 16> bytes{};

    friend bool operator==(const Uuid&, const Uuid&) = default;
    friend auto operator<=>(const Uuid&, const Uuid&) = default;
    bool is_zero() const { return *this == Uuid{}; }

    /// A random one (version 4) from the system's random source whose text does not begin with '-', as Kafka's.
    static Uuid random();
    /// The UUID whose 128 bits are the number n: Kafka reserves 0 (none, migrating), 1 (metadata topic, unassigned), 2 (lost).
    static constexpr Uuid of(unsigned char n) { Uuid u; u.bytes[15] = std::byte{n}; return u; }
    /// Nothing unless `text` is 22 characters of base64url.
    static std::optional<Uuid> parse(std::string_view text);
    std::string text() const;
    /// 32 lower-case hex digits, as in the names of `-delete` directories.
    std::string hex() const;
};

}  // namespace tidemark

template <>
struct std::hash<tidemark::Uuid> {
    std::size_t operator()(const tidemark::Uuid& u) const noexcept {
        std::size_t h;
        std::memcpy(&h, u.bytes.data(), sizeof h);
        return h;
    }
};
