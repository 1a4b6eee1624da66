/// Text as Java sees it: the UTF-16 code units of a UTF-8 string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

/// Calls `with` for each unit. Bytes that are not UTF-8 count as U+FFFD each, as Java decodes them.
template <class Function>
void for_each_utf16_unit(std::string_view text, Function&& with) {
    constexpr std::uint32_t replacement = 0xFFFD;
    for (std::size_t i = 0; i < text.size();) {
        const auto first = static_cast<unsigned char>(text[i]);
        const std::size_t length = first < 0x80 ? 1 : first >= 0xC2 && first < 0xE0 ? 2 : first >= 0xE0 && first < 0xF0 ? 3 : first >= 0xF0 && first < 0xF5 ? 4 : 0;
        std::uint32_t point = length == 1 ? first : length == 0 ? replacement : first & (0x7Fu >> length);
        std::size_t used = 1;
        for (; used < length && i + used < text.size(); ++used) {
            const auto next = static_cast<unsigned char>(text[i + used]);
            if ((next & 0xC0) != 0x80) break;
            point = point << 6 | (next & 0x3F);
        }
        const bool surrogate_or_beyond = (point >= 0xD800 && point < 0xE000) || point > 0x10FFFF;
        const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
        if (length != 0 && (used < length || surrogate_or_beyond || overlong)) {
            point = replacement;
            used = 1;
        }
        i += used;
        if (point < 0x10000) {
            with(static_cast<std::uint16_t>(point));
        } else {
            with(static_cast<std::uint16_t>(0xD800 + ((point - 0x10000) >> 10)));
            with(static_cast<std::uint16_t>(0xDC00 + ((point - 0x10000) & 0x3FF)));
        }
    }
}

/// How many there are: Java's String.length().
inline std::size_t utf16_units(std::string_view text) {
    std::size_t units = 0;
    for_each_utf16_unit(text, [&units](std::uint16_t) { ++units; });
    return units;
}

}  // namespace tidemark
