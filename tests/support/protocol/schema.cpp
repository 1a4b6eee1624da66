#include "tests/support/protocol/schema.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tidemark::protocol::schema {
namespace {

VersionRange range(const std::string& text) {
    if (text == "none") return {};
    const auto number = [](const std::string& digits) { return static_cast<std::int16_t>(std::stoi(digits)); };
    if (text.back() == '+') return {number(text), 32767};
    const auto dash = text.find('-');
    return {number(text), number(dash == std::string::npos ? text : text.substr(dash + 1))};
}

Field field(const std::vector<std::string>& words) {
    Field f{.name = words.at(0), .type = words.at(1), .versions = range(words.at(2))};
    if (f.type.starts_with("[]")) {
        f.is_array = true;
        f.type.erase(0, 2);
    }
    for (std::size_t i = 3; i < words.size(); ++i) {
        const auto& word = words[i];
        const auto value = word.substr(word.find('=') + 1);
        if (word.starts_with("null=")) {
            f.null = range(value);
        } else if (word.starts_with("tag=")) {
            f.tag = static_cast<std::uint32_t>(std::stoul(value));
            f.tagged = range(value.substr(value.find(':') + 1));
        } else if (word.starts_with("default=")) {
            f.default_value = value;
        } else if (word == "inflexible") {
            f.is_inflexible = true;
        } else if (word != "ignorable" && word != "key") {
            throw std::runtime_error("schema: " + word);
        }
    }
    return f;
}

Message message(const std::vector<std::string>& words) {
    Message m{.kind = words.at(0), .name = words.at(1)};
    for (const auto& word : words) {
        const auto value = word.substr(word.find('=') + 1);
        if (word.starts_with("key=")) m.key = static_cast<std::int16_t>(std::stoi(value));
        if (word.starts_with("versions=")) m.versions = range(value);
        if (word.starts_with("flexible=")) m.flexible = range(value);
    }
    return m;
}

void read_file(const std::string& path, std::vector<Message>& to) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    std::vector<std::string> owners;  // owners[d]: the structure that lines of depth d + 1 belong to; "" is the message
    for (std::string line; std::getline(file, line);) {
        std::istringstream stream(line);
        std::vector<std::string> words;
        for (std::string word; stream >> word;) words.push_back(word);
        if (words.empty() || words[0].starts_with("#")) continue;
        const auto depth = line.find_first_not_of(' ') / 2;
        if (depth == 0) {
            to.push_back(message(words));
            owners = {""};
            continue;
        }
        owners.resize(depth);
        auto& m = to.back();
        if (words[0] == "struct") {
            m.structs[words.at(1)];
            owners.push_back(words[1]);
            continue;
        }
        auto f = field(words);
        owners.push_back(f.type);
        auto& members = owners[depth - 1].empty() ? m.fields : m.structs[owners[depth - 1]];
        members.push_back(std::move(f));
    }
}

}  // namespace

const std::vector<Field>* Message::structure(std::string_view type) const {
    const auto at = structs.find(type);
    return at == structs.end() ? nullptr : &at->second;
}

std::vector<Message> read(const std::string& folder) {
    std::vector<Message> all;
    for (const auto* name : {"messages", "data", "metadata", "coordinator"}) read_file(folder + "/" + name + ".schema", all);
    return all;
}

}  // namespace tidemark::protocol::schema
