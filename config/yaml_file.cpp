#include "config/yaml_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>

namespace tidemark::config {
namespace {

Position position_of(const YAML::Mark& mark) {
    if (mark.is_null()) return {};
    return {mark.line + 1, mark.column + 1};
}

class Flattener {
public:
    Flattener(YamlFile& to, const std::string& name) : to_(to), name_(name) {}

    void take_map(const YAML::Node& map, const std::string& prefix) {
        for (const auto& entry : map) {
            const auto at = position_of(entry.first.Mark());
            if (!entry.first.IsScalar() || entry.first.Scalar().empty()) {
                mistake(at, "a key must be a word");
                continue;
            }
            const auto key = prefix.empty() ? entry.first.Scalar() : prefix + "." + entry.first.Scalar();
            if (entry.second.IsMap()) take_map(entry.second, key);
            else take_value(key, at, entry.second);
        }
    }

private:
    void take_value(const std::string& key, Position at, const YAML::Node& value) {
        if (const auto [first, is_new] = seen_.emplace(key, at); !is_new) {
            return mistake(at, key + " was set already in line " + std::to_string(first->second.line));
        }
        if (value.IsNull()) return mistake(at, key + " has no value; leave it out to have the default, or write \"\" for an empty one");
        std::string text;
        if (value.IsSequence()) {
            for (const auto& element : value) {
                if (!element.IsScalar()) return mistake(position_of(element.Mark()), key + ": a list holds words only");
                text += (text.empty() ? "" : ",") + element.Scalar();
            }
        } else {
            text = value.Scalar();
        }
        to_.settings.push_back({key, std::move(text), at, position_of(value.Mark())});
    }

    void mistake(Position at, std::string text) { to_.mistakes.push_back({name_, at, std::move(text)}); }

    YamlFile& to_;
    const std::string& name_;
    std::map<std::string, Position> seen_;
};

}  // namespace

std::string Mistake::line() const {
    std::string where = file;
    if (at.line > 0) where += ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
    return where.empty() ? text : where + ": " + text;
}

YamlFile read_yaml(std::string_view text, const std::string& name) {
    YamlFile file;
    try {
        const auto documents = YAML::LoadAll(std::string(text));
        if (documents.size() > 1) file.mistakes.push_back({name, position_of(documents[1].Mark()), "only one YAML document, please: nothing behind a line of ---"});
        if (documents.empty() || documents[0].IsNull()) return file;
        if (!documents[0].IsMap()) {
            file.mistakes.push_back({name, position_of(documents[0].Mark()), "the file must be a list of `key: value`"});
            return file;
        }
        Flattener{file, name}.take_map(documents[0], "");
    } catch (const YAML::Exception& e) {
        file.mistakes.push_back({name, position_of(e.mark), "this is not YAML: " + e.msg});
    }
    return file;
}

std::string yaml_scalar(std::string_view value) {
    const auto plain = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '/' || c == '_' || c == '-' || c == ',' || c == '+'; };
    if (!value.empty() && value.front() != '-' && value.front() != ',' && std::ranges::all_of(value, plain)) return std::string(value);
    if (value.size() > 1 && value.front() == '-' && std::ranges::all_of(value.substr(1), [](char c) { return c >= '0' && c <= '9'; })) return std::string(value);
    std::string quoted = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (c == '\n') quoted += "\\n";
        else if (c == '\t') quoted += "\\t";
        else quoted += c;
    }
    return quoted + "\"";
}

}  // namespace tidemark::config
