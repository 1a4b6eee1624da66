#include "base/uuid.h"

#include <sys/random.h>

#include "base/assert.h"

namespace tidemark {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

Uuid Uuid::random() {
    Uuid u;
    do {
        const auto got = ::getrandom(u.bytes.data(), u.bytes.size(), 0);
        TM_ASSERT(got == static_cast<ssize_t>(u.bytes.size()));
        u.bytes[6] = (u.bytes[6] & std::byte{0x0f}) | std::byte{0x40};
        u.bytes[8] = (u.bytes[8] & std::byte{0x3f}) | std::byte{0x80};
    } while (u.text().front() == '-');
    return u;
}

std::optional<Uuid> Uuid::parse(std::string_view text) {
    if (text.size() != 22) return std::nullopt;
    Uuid u;
    std::uint32_t bits = 0;
    int held = 0;
    std::size_t out = 0;
    for (const char c : text) {
        const auto at = alphabet.find(c);
        if (at == std::string_view::npos) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(at);
        held += 6;
        if (held >= 8) {
            held -= 8;
            u.bytes[out++] = static_cast<std::byte>(bits >> held & 0xff);
        }
    }
    if ((bits & 0xf) != 0) return std::nullopt;  // the last four bits carry nothing
    return u;
}

std::string Uuid::text() const {
    std::string s;
    std::uint32_t bits = 0;
    int held = 0;
    for (const auto b : bytes) {
        bits = bits << 8 | std::to_integer<std::uint32_t>(b);
        held += 8;
        while (held >= 6) {
            held -= 6;
            s += alphabet[bits >> held & 0x3f];
        }
    }
    s += alphabet[bits << (6 - held) & 0x3f];
    return s;
}

std::string Uuid::hex() const {
    std::string s;
    for (const auto b : bytes) {
        s += "0123456789abcdef"[std::to_integer<unsigned>(b) >> 4];
        s += "0123456789abcdef"[std::to_integer<unsigned>(b) & 0xf];
    }
    return s;
}

}  // namespace tidemark
