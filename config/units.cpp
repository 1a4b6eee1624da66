#include "config/units.h"

#include <array>
#include <optional>
#include <span>

namespace tidemark::config {
namespace {

__extension__ typedef __int128 Wide;

struct Factor {
    std::string_view word;
    std::int64_t factor;
};

constexpr std::array<Factor, 6> times{{{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}, {"w", 604'800'000}}};
constexpr std::array<Factor, 9> sizes{{{"B", 1}, {"KiB", 1LL << 10}, {"MiB", 1LL << 20}, {"GiB", 1LL << 30}, {"TiB", 1LL << 40}, {"kB", 1000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}, {"TB", 1'000'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string words_of(std::span<const Factor> factors) {
    std::string words;
    for (const auto& f : factors) words += (words.empty() ? "" : ", ") + std::string(f.word);
    return words;
}

/// whole.fraction × factor when that is a whole number below 2^63.
std::optional<std::int64_t> product(std::string_view whole, std::string_view fraction, std::int64_t factor) {
    std::int64_t value = 0;
    const auto shift_in = [&value](char digit) { return !__builtin_mul_overflow(value, std::int64_t{10}, &value) && !__builtin_add_overflow(value, std::int64_t{digit - '0'}, &value); };
    for (const char c : whole)
        if (!shift_in(c)) return std::nullopt;
    std::int64_t divisor = 1;
    for (const char c : fraction)
        if (!shift_in(c) || __builtin_mul_overflow(divisor, std::int64_t{10}, &divisor)) return std::nullopt;
    // The factor may hold the divisor's primes: multiply wide, then ask whether it divides.
    const auto wide = static_cast<Wide>(value) * factor;
    if (wide % divisor != 0 || wide / divisor > INT64_MAX) return std::nullopt;
    return static_cast<std::int64_t>(wide / divisor);
}

}  // namespace

Unit unit_of(std::string_view key) {
    if (key.ends_with(".ms")) return Unit::milliseconds;
    if (key.ends_with(".bytes") || key.ends_with(".buffer.size") || key.ends_with(".bytes.per.second")) return Unit::bytes;
    return Unit::none;
}

Result<std::string> in_unit(Unit unit, std::string_view text) {
    if (unit == Unit::none) return std::string(text);
    std::size_t n = 0;
    while (n < text.size() && is_digit(text[n])) ++n;
    const auto whole = text.substr(0, n);
    std::string_view fraction;
    if (n < text.size() && text[n] == '.') {
        const auto begin = ++n;
        while (n < text.size() && is_digit(text[n])) ++n;
        fraction = text.substr(begin, n - begin);
    }
    while (n < text.size() && text[n] == ' ') ++n;
    const auto word = text.substr(n);
    const bool has_unit = !whole.empty() && !word.empty() && is_letter(word.front());
    // "1.5E308" is a double that Kafka's own parser takes.
    if (!has_unit || ((word.front() == 'e' || word.front() == 'E') && word.size() > 1 && !is_letter(word[1]))) return std::string(text);

    const std::span<const Factor> factors = unit == Unit::milliseconds ? std::span<const Factor>{times} : std::span<const Factor>{sizes};
    for (const auto& f : factors) {
        if (f.word != word) continue;
        if (const auto value = product(whole, fraction, f.factor)) return std::to_string(*value);
        return Error{Errc::invalid_argument, "'" + std::string(text) + "' is not a whole number of " + (unit == Unit::bytes ? "bytes" : "milliseconds") + " below 2^63"};
    }
    return Error{Errc::invalid_argument, "'" + std::string(word) + "' is no unit here; there are " + words_of(factors)};
}

}  // namespace tidemark::config
