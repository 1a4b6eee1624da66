#include "storage/directory_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace tidemark::storage {
namespace {

constexpr std::size_t directory_name_max = 255;
constexpr std::string_view damaged_infix = ".damaged-";
constexpr std::array suffixes = {FileSuffix::cleaned, FileSuffix::swap, FileSuffix::deleted};
constexpr std::array kinds = {FileKind::log, FileKind::offset_index, FileKind::time_index, FileKind::transaction_index, FileKind::snapshot};

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number n{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || n < 0) return std::nullopt;
    return n;
}

std::string renamed(const TopicPartition& partition, Uuid unique, std::string_view suffix, bool cut) {
    const auto tail = "-" + std::to_string(partition.partition) + "." + unique.hex() + std::string(suffix);
    auto topic = std::string_view(partition.topic);
    if (cut) topic = topic.substr(0, directory_name_max - tail.size());
    return std::string(topic) + tail;
}

bool has_space(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

}  // namespace

std::string live_directory_name(const TopicPartition& partition) { return partition.text(); }
std::string deleted_directory_name(const TopicPartition& partition, Uuid unique) { return renamed(partition, unique, "-delete", true); }
std::string stray_directory_name(const TopicPartition& partition, Uuid unique) { return renamed(partition, unique, "-stray", true); }
std::string future_directory_name(const TopicPartition& partition, Uuid unique) { return renamed(partition, unique, "-future", false); }

Result<ParsedDirectory> parse_directory_name(std::string_view name) {
    const Error not_ours{Errc::invalid_argument, "\"" + std::string(name) + "\" is not the directory of a partition"};
    ParsedDirectory parsed;
    auto live = name;
    for (const auto& [suffix, kind] : {std::pair{std::string_view("-delete"), DirectoryKind::deleted},
                                       std::pair{std::string_view("-future"), DirectoryKind::future},
                                       std::pair{std::string_view("-stray"), DirectoryKind::stray}}) {
        if (!name.ends_with(suffix)) continue;
        const auto dot = name.rfind('.');
        // <topic>-<partition>.<unique><suffix>, each of them at least one character.
        if (dot == std::string_view::npos || dot + 1 >= name.size() - suffix.size() || has_space(name)) return not_ours;
        live = name.substr(0, dot);
        parsed.kind = kind;
    }
    const auto dash = live.rfind('-');
    if (dash == std::string_view::npos || dash == 0) return not_ours;
    const auto partition = number_of<std::int32_t>(live.substr(dash + 1));
    if (!partition) return not_ours;
    parsed.partition = {std::string(live.substr(0, dash)), *partition};
    return parsed;
}

std::string_view extension(FileKind kind) {
    switch (kind) {
        case FileKind::log: return ".log";
        case FileKind::offset_index: return ".index";
        case FileKind::time_index: return ".timeindex";
        case FileKind::transaction_index: return ".txnindex";
        case FileKind::snapshot: return ".snapshot";
        case FileKind::other: break;
    }
    return "";
}

std::string_view suffix_text(FileSuffix suffix) {
    switch (suffix) {
        case FileSuffix::none: break;
        case FileSuffix::cleaned: return ".cleaned";
        case FileSuffix::swap: return ".swap";
        case FileSuffix::deleted: return ".deleted";
    }
    return "";
}

std::string segment_file_name(Offset offset, FileKind kind, FileSuffix suffix) {
    std::array<char, 24> digits{};
    const int n = std::snprintf(digits.data(), digits.size(), "%020lld", static_cast<long long>(offset.value));
    std::string name(digits.data(), static_cast<std::size_t>(n));
    name += extension(kind);
    name += suffix_text(suffix);
    return name;
}

ParsedFile parse_file_name(std::string_view name) {
    ParsedFile parsed;
    for (const auto suffix : suffixes) {
        if (!name.ends_with(suffix_text(suffix))) continue;
        parsed.suffix = suffix;
        name.remove_suffix(suffix_text(suffix).size());
        break;
    }
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) return parsed;
    const auto offset = number_of<std::int64_t>(name.substr(0, dot));
    if (!offset) return parsed;
    for (const auto kind : kinds) {
        if (name.substr(dot) != extension(kind)) continue;
        parsed.kind = kind;
        parsed.offset = Offset{*offset};
    }
    return parsed;
}

std::string damaged_file_name(Offset base, Timestamp now) {
    return segment_file_name(base, FileKind::log) + std::string(damaged_infix) + std::to_string(now.value);
}

std::optional<Offset> parse_damaged_file_name(std::string_view name) {
    const auto infix = name.find(damaged_infix);
    if (infix == std::string_view::npos) return std::nullopt;
    const auto parsed = parse_file_name(name.substr(0, infix));
    return parsed.kind == FileKind::log && parsed.suffix == FileSuffix::none ? std::optional(parsed.offset) : std::nullopt;
}

}  // namespace tidemark::storage
