#include "storage/segments_file.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace tidemark::storage {
namespace {

constexpr std::string_view first_line = "tidemark-segments 1\n";
constexpr std::string_view last_key = "crc32c ";

std::optional<std::int64_t> number_of(std::string_view text) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return n;
}

/// One line; false when it is none of ours.
bool parse_line(std::string_view line, SegmentsFile& into) {
    std::array<std::string_view, 10> words;
    std::size_t n = 0;
    while (!line.empty()) {
        const auto end = std::min(line.find(' '), line.size());
        if (n == words.size()) return false;
        words[n++] = line.substr(0, end);
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    if (n != words.size()) return false;
    std::array<std::int64_t, 7> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto number = number_of(words[i + 1]);
        if (!number) return false;
        numbers[i] = *number;
    }
    SegmentMemory memory{.bytes = numbers[2],
                         .modified = Timestamp{numbers[3]},
                         .next_offset = Offset{numbers[4]},
                         .largest = {Timestamp{numbers[5]}, Offset{numbers[6]}},
                         .first_append = {},
                         .earliest_delete_horizon = {}};
    if (words[8] != "-") {
        const auto time = number_of(words[8]);
        if (!time) return false;
        memory.first_append = Timestamp{*time};
    }
    if (words[9] == "none") {
        memory.earliest_delete_horizon.emplace();
    } else if (words[9] != "-") {
        const auto time = number_of(words[9]);
        if (!time) return false;
        memory.earliest_delete_horizon = std::optional(Timestamp{*time});
    }
    into[{std::string(words[0]), static_cast<std::int32_t>(numbers[0])}][Offset{numbers[1]}] = memory;
    return true;
}

}  // namespace

std::string format_segments_file(const SegmentsFile& logs) {
    std::string text(first_line);
    for (const auto& [partition, segments] : logs) {
        for (const auto& [base, m] : segments) {
            const auto first_append = m.first_append ? std::to_string(m.first_append->value) : "-";
            const auto horizon = !m.earliest_delete_horizon ? "-" : !*m.earliest_delete_horizon ? "none" : std::to_string((*m.earliest_delete_horizon)->value);
            text += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", partition.topic, partition.partition, base.value, m.bytes, m.modified.value,
                                m.next_offset.value, m.largest.timestamp.value, m.largest.offset.value, first_append, horizon);
        }
    }
    return text + fmt::format("{}{:08x}\n", last_key, crc32c(as_bytes(text)));
}

Result<SegmentsFile> parse_segments_file(std::string_view text) {
    const Error corrupt{Errc::corrupt, std::string(file_name::segments)};
    if (!text.starts_with(first_line)) return corrupt;
    const auto tail = text.rfind(last_key);
    if (tail == std::string_view::npos || tail == 0 || text[tail - 1] != '\n') return corrupt;
    if (text.substr(tail) != fmt::format("{}{:08x}\n", last_key, crc32c(as_bytes(text.substr(0, tail))))) return corrupt;
    SegmentsFile logs;
    for (auto lines = text.substr(first_line.size(), tail - first_line.size()); !lines.empty();) {
        const auto end = lines.find('\n');
        if (end == std::string_view::npos || !parse_line(lines.substr(0, end), logs)) return corrupt;
        lines.remove_prefix(end + 1);
    }
    return logs;
}

LogMemory memory_of(const Log& log) {
    LogMemory memory;
    const auto list = log.segments();
    for (const auto& segment : *list) {
        const auto known = segment->known();
        if (!known) continue;
        const auto modified = segment->modified();
        if (!modified) continue;
        memory[segment->base_offset()] = {.bytes = segment->bytes(),
                                          .modified = *modified,
                                          .next_offset = known->next_offset,
                                          .largest = known->largest,
                                          .first_append = segment->first_append_time(),
                                          .earliest_delete_horizon = segment->earliest_delete_horizon()};
    }
    return memory;
}

}  // namespace tidemark::storage
