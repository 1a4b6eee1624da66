#include "storage/checkpoint.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <charconv>
#include <functional>

#include "base/bytes.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t file_bytes_max = 256 << 20;

Error corrupt(std::string what) { return {Errc::corrupt, std::move(what)}; }

template <class Number>
std::optional<Number> number_of(std::string_view text) {
    Number n{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return n;
}

/// Takes the text up to the next line feed (or the end) off the front.
std::optional<std::string_view> take_line(std::string_view& text) {
    if (text.empty()) return std::nullopt;
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (true) {
        const auto begin = line.find_first_not_of(" \t");
        if (begin == std::string_view::npos) return words;
        line.remove_prefix(begin);
        const auto end = std::min(line.find_first_of(" \t"), line.size());
        words.push_back(line.substr(0, end));
        line.remove_prefix(end);
    }
}

/// The frame that all checkpoints share: version, count, entries. `entry` returns false for a line it cannot read.
Result<> parse_frame(std::string_view text, const std::function<bool(const std::vector<std::string_view>&)>& entry) {
    if (text.empty()) return {};
    const auto version = take_line(text);
    if (!version || *version != "0") return corrupt("version line \"" + std::string(version.value_or("")) + "\"");
    const auto count_line = take_line(text);
    const auto count = count_line ? number_of<std::int64_t>(*count_line) : std::nullopt;
    if (!count || *count < 0) return corrupt("no number of entries in line 2");
    std::int64_t read = 0;
    while (const auto line = take_line(text)) {
        if (!entry(words_of(*line))) return corrupt("line " + std::to_string(read + 3) + ": \"" + std::string(*line) + "\"");
        ++read;
    }
    if (read != *count) return corrupt(std::to_string(*count) + " entries announced, " + std::to_string(read) + " found");
    return {};
}

/// The file's text; nothing when it is missing.
Result<std::optional<std::string>> read_text(io::FileSystem& files, const io::Path& path) {
    auto content = io::read_whole(files, path, file_bytes_max);
    if (content) return std::optional(std::string(as_text(*content)));
    if (content.error().code == Errc::not_found) return std::optional<std::string>{};
    return in_context(std::move(content).error(), path);
}

Result<> write_text(io::FileSystem& files, const io::Path& path, std::string_view text) {
    auto written = io::replace_content(files, path, as_bytes(text));
    if (!written) return in_context(std::move(written).error(), path);
    return {};
}

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\f");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\f") - begin + 1);
}

}  // namespace

Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text) {
    OffsetCheckpoint checkpoint;
    TM_TRYV(parse_frame(text, [&](const std::vector<std::string_view>& words) {
        if (words.size() != 3) return false;
        const auto partition = number_of<std::int32_t>(words[1]);
        const auto offset = number_of<std::int64_t>(words[2]);
        if (!partition || !offset || *partition < 0) return false;
        // Two lines of one partition cannot both be right.
        return checkpoint.emplace(TopicPartition{std::string(words[0]), *partition}, Offset{*offset}).second;
    }));
    return checkpoint;
}

std::string format_offset_checkpoint(const OffsetCheckpoint& checkpoint) {
    std::string text = "0\n" + std::to_string(checkpoint.size()) + "\n";
    for (const auto& [partition, offset] : checkpoint) {
        text += partition.topic + " " + std::to_string(partition.partition) + " " + std::to_string(offset.value) + "\n";
    }
    return text;
}

Result<OffsetCheckpoint> read_offset_checkpoint(io::FileSystem& files, const io::Path& path) {
    TM_TRY(const auto text, read_text(files, path));
    if (!text) return OffsetCheckpoint{};
    auto parsed = parse_offset_checkpoint(*text);
    if (!parsed) return in_context(std::move(parsed).error(), path);
    return parsed;
}

Result<> write_offset_checkpoint(io::FileSystem& files, const io::Path& path, const OffsetCheckpoint& checkpoint) {
    return write_text(files, path, format_offset_checkpoint(checkpoint));
}

Result<std::vector<EpochStart>> parse_leader_epochs(std::string_view text) {
    std::vector<EpochStart> entries;
    TM_TRYV(parse_frame(text, [&](const std::vector<std::string_view>& words) {
        if (words.size() != 2) return false;
        const auto epoch = number_of<std::int32_t>(words[0]);
        const auto start = number_of<std::int64_t>(words[1]);
        if (!epoch || !start || *epoch < 0 || *start < 0) return false;
        entries.push_back({*epoch, Offset{*start}});
        return true;
    }));
    return entries;
}

std::string format_leader_epochs(const std::vector<EpochStart>& entries) {
    std::string text = "0\n" + std::to_string(entries.size()) + "\n";
    for (const auto& entry : entries) text += std::to_string(entry.epoch) + " " + std::to_string(entry.start.value) + "\n";
    return text;
}

Result<std::optional<std::vector<EpochStart>>> read_leader_epochs(io::FileSystem& files, const io::Path& path) {
    TM_TRY(const auto text, read_text(files, path));
    if (!text) return std::optional<std::vector<EpochStart>>{};
    auto parsed = parse_leader_epochs(*text);
    if (!parsed) return in_context(std::move(parsed).error(), path);
    return std::optional(*std::move(parsed));
}

Result<> write_leader_epochs(io::FileSystem& files, const io::Path& path, const std::vector<EpochStart>& entries) {
    return write_text(files, path, format_leader_epochs(entries));
}

Result<Uuid> parse_partition_metadata(std::string_view text) {
    const auto version = take_line(text);
    if (!version || *version != "version: 0") return corrupt("first line \"" + std::string(version.value_or("")) + "\"");
    const auto line = take_line(text);
    constexpr std::string_view key = "topic_id: ";
    const auto id = line && line->starts_with(key) ? Uuid::parse(line->substr(key.size())) : std::nullopt;
    if (!id || id->is_zero()) return corrupt("no topic id in \"" + std::string(line.value_or("")) + "\"");
    return *id;
}

std::string format_partition_metadata(Uuid topic_id) { return "version: 0\ntopic_id: " + topic_id.text(); }

Result<std::optional<Uuid>> read_partition_metadata(io::FileSystem& files, const io::Path& path) {
    TM_TRY(const auto text, read_text(files, path));
    if (!text) return std::optional<Uuid>{};
    auto parsed = parse_partition_metadata(*text);
    if (!parsed) return in_context(std::move(parsed).error(), path);
    return std::optional(*parsed);
}

Result<> write_partition_metadata(io::FileSystem& files, const io::Path& path, Uuid topic_id) {
    return write_text(files, path, format_partition_metadata(topic_id));
}

Result<MetaProperties> parse_meta_properties(std::string_view text) {
    std::map<std::string, std::string, std::less<>> values;
    while (const auto line = take_line(text)) {
        const auto entry = trimmed(*line);
        if (entry.empty() || entry.front() == '#' || entry.front() == '!') continue;
        const auto separator = entry.find_first_of("=:");
        const auto key = trimmed(entry.substr(0, separator));
        std::string value(separator == std::string_view::npos ? std::string_view{} : trimmed(entry.substr(separator + 1)));
        std::erase(value, '\\');  // the properties format escapes, for example, ':' and '='
        values[std::string(key)] = value;
    }
    const auto value_of = [&](std::string_view key) -> std::optional<std::string> {
        const auto found = values.find(key);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    };
    MetaProperties properties;
    const auto version = number_of<int>(value_of("version").value_or("0"));
    if (!version || *version < 0 || *version > 1) return corrupt("version " + value_of("version").value_or("") + " is not known");
    properties.version = *version;
    properties.cluster_id = value_of("cluster.id");
    if (const auto node = value_of(*version == 0 ? "broker.id" : "node.id")) {
        properties.node_id = number_of<std::int32_t>(*node);
        if (!properties.node_id) return corrupt("node id \"" + *node + "\"");
    }
    if (const auto directory = value_of("directory.id")) {
        properties.directory_id = Uuid::parse(*directory);
        if (!properties.directory_id) return corrupt("directory id \"" + *directory + "\"");
    }
    if (*version == 1 && (!properties.cluster_id || !properties.node_id)) return corrupt("cluster.id or node.id is missing");
    return properties;
}

std::string format_meta_properties(const MetaProperties& properties) {
    std::string text = "#\nversion=" + std::to_string(properties.version) + "\n";
    if (properties.cluster_id) text += "cluster.id=" + *properties.cluster_id + "\n";
    if (properties.node_id) text += std::string(properties.version == 0 ? "broker.id=" : "node.id=") + std::to_string(*properties.node_id) + "\n";
    if (properties.directory_id) text += "directory.id=" + properties.directory_id->text() + "\n";
    return text;
}

Result<std::optional<MetaProperties>> read_meta_properties(io::FileSystem& files, const io::Path& path) {
    TM_TRY(const auto text, read_text(files, path));
    if (!text) return std::optional<MetaProperties>{};
    auto parsed = parse_meta_properties(*text);
    if (!parsed) return in_context(std::move(parsed).error(), path);
    return std::optional(*std::move(parsed));
}

Result<> write_meta_properties(io::FileSystem& files, const io::Path& path, const MetaProperties& properties) {
    return write_text(files, path, format_meta_properties(properties));
}

std::string format_clean_shutdown(std::int64_t broker_epoch) {
    return "{\"version\":0,\"brokerEpoch\":" + std::to_string(broker_epoch) + "}";
}

std::optional<std::int64_t> parse_clean_shutdown(std::string_view text) {
    boost::system::error_code error;
    const auto value = boost::json::parse(text, error);
    if (error || !value.is_object()) return std::nullopt;
    const auto* epoch = value.get_object().if_contains("brokerEpoch");
    if (epoch == nullptr || !epoch->is_int64()) return std::nullopt;
    return epoch->get_int64();
}

}  // namespace tidemark::storage
