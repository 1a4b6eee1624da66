#include "metadata/own_settings.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "metadata/config_schema.h"

namespace tidemark::metadata {
namespace {

constexpr std::string_view file_name = "tidemark-topic-settings";

}  // namespace

OwnSettings own_settings_of(const Image& image) {
    OwnSettings settings;
    for (const auto& [resource, overrides] : image.configs) {
        if (resource.type != ResourceType::topic) continue;
        const Topic* topic = image.find(resource.name);
        if (topic == nullptr) continue;
        for (const auto& [key, value] : overrides) {
            const ConfigKey* known = find_config_key(ConfigScope::topic, key);
            if (known == nullptr || !known->ours) continue;
            if (auto parsed = parse_config_value(*known, value); parsed.has_value()) settings[{topic->id, key}] = std::move(parsed->text);
        }
    }
    return settings;
}

Result<OwnSettings> read_own_settings(io::FileSystem& files, const io::Path& directory) {
    OwnSettings settings;
    const auto content = io::read_whole(files, io::join(directory, file_name));
    if (!content.has_value()) {
        if (content.error().code == Errc::not_found) return settings;
        return content.error();
    }
    std::string_view rest = as_text(*content);
    while (!rest.empty()) {
        const std::size_t end = rest.find('\n');
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
        std::string_view field[4];
        for (auto& part : field) {
            const std::size_t tab = line.find('\t');
            part = line.substr(0, tab);
            line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
        }
        const auto id = Uuid::parse(field[0]);
        const std::string key(field[2]);
        const ConfigKey* known = find_config_key(ConfigScope::topic, key);
        if (!id || known == nullptr || !known->ours) continue;
        if (auto parsed = parse_config_value(*known, field[3]); parsed.has_value()) settings[{*id, key}] = std::move(parsed->text);
    }
    return settings;
}

Result<> write_own_settings(io::FileSystem& files, const io::Path& directory, const Image& image, const OwnSettings& settings) {
    std::string text;
    for (const auto& [key, value] : settings) {
        const Topic* topic = image.find(key.first);
        text += fmt::format("{}\t{}\t{}\t{}\n", key.first.text(), topic == nullptr ? "" : topic->name, key.second, value);
    }
    return io::replace_content(files, io::join(directory, file_name), as_bytes(text));
}

}  // namespace tidemark::metadata
