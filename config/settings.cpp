// 1. the file's settings, then the command line's above them
// 2. each: is there such a key (or one like it)? its unit; its own parser
// 3. everything that is wrong is collected, so that one look is enough to mend a file
#include "config/settings.h"

#include <algorithm>

#include "config/units.h"
#include "metadata/config_schema.h"

namespace tidemark::config {
namespace {

using metadata::ConfigKey;
using metadata::ConfigScope;

std::string quoted_list(const std::vector<std::string_view>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    return text;
}

/// What an unknown key is answered with.
std::string unknown_key(const std::string& key) {
    // A topic's key in the broker's file is the most common mistake: name the broker's word for it.
    if (metadata::find_config_key(ConfigScope::topic, key) != nullptr) {
        std::vector<std::string_view> synonyms;
        for (const auto& synonym : metadata::broker_synonyms(key)) synonyms.push_back(synonym.broker_key);
        if (!synonyms.empty()) return key + " is a topic's setting; the broker's default for it is " + quoted_list(synonyms);
    }
    const auto similar = metadata::similar_config_keys(ConfigScope::broker, key);
    return "there is no setting " + key + (similar.empty() ? std::string{} : "; did you mean " + quoted_list(similar) + "?");
}

class Reader {
public:
    explicit Reader(ReadSettings& to) : to_(to) {}

    void take(const std::string& name, const std::string& given, Origin origin, Position key_at) {
        const auto* key = metadata::find_config_key(ConfigScope::broker, name);
        if (key == nullptr) return mistake(origin, key_at, unknown_key(name));
        const auto value = in_unit(unit_of(name), given);
        if (!value) return mistake(origin, origin.at, name + ": " + value.error().context);
        const auto checked = metadata::parse_config_value(*key, *value);
        if (!checked) return mistake(origin, origin.at, checked.error().context);
        if (!key->used) to_.warnings.push_back({origin.file, key_at, name + " is accepted for compatibility and has no effect"});
        to_.settings.insert_or_assign(name, Setting{key->sensitive() ? *value : checked->text, std::move(origin)});
    }

private:
    void mistake(const Origin& origin, Position at, std::string text) {
        to_.mistakes.push_back({origin.kind == Origin::Kind::command_line ? "--set" : origin.file, at, std::move(text)});
    }
    ReadSettings& to_;
};

}  // namespace

std::string Origin::text() const {
    switch (kind) {
        case Kind::default_value: return "default";
        case Kind::command_line: return "--set";
        case Kind::file: return at.line > 0 ? file + ":" + std::to_string(at.line) : file;
    }
    return {};
}

metadata::ConfigMap values_of(const Settings& settings) {
    metadata::ConfigMap map;
    for (const auto& [key, setting] : settings) map.emplace(key, setting.value);
    return map;
}

Origin origin_of(const Settings& settings, std::string_view key) {
    const auto found = settings.find(key);
    return found == settings.end() ? Origin{} : found->second.origin;
}

ReadSettings read_settings(const Sources& sources) {
    ReadSettings result;
    Reader reader{result};
    auto yaml = read_yaml(sources.file_text, sources.file_name);
    result.mistakes = std::move(yaml.mistakes);
    for (auto& setting : yaml.settings)
        reader.take(setting.key, setting.value, {.kind = Origin::Kind::file, .file = sources.file_name, .at = setting.value_at}, setting.at);
    std::ranges::stable_sort(result.mistakes, {}, &Mistake::at);
    for (const auto& text : sources.overrides) {
        const auto equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            result.mistakes.push_back({"--set", {}, "'" + text + "' is not key=value"});
            continue;
        }
        reader.take(text.substr(0, equals), text.substr(equals + 1), {.kind = Origin::Kind::command_line, .file = "--set", .at = {}}, {});
    }
    return result;
}

}  // namespace tidemark::config
