/// A YAML file of settings as a flat list: `log.retention.ms: 5` and `log: {retention: {ms: 5}}` are the same (D18).
///
/// Knows nothing of which keys there are: settings.h does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tidemark::config {

/// Both count from 1; 0 where there is no place in a file.
struct Position {
    int line = 0;
    int column = 0;
    friend auto operator<=>(const Position&, const Position&) = default;
};

/// Something that the user has to change. `file` is empty when the command line is meant.
struct Mistake {
    std::string file;
    Position at;
    std::string text;

    /// "tidemark.yaml:3:5: …".
    std::string line() const;
    friend bool operator==(const Mistake&, const Mistake&) = default;
};

struct YamlSetting {
    std::string key;                 ///< dotted
    std::string value;               ///< a list's elements joined by commas, as Kafka writes lists
    Position at;                     ///< of the key
    Position value_at;
    friend bool operator==(const YamlSetting&, const YamlSetting&) = default;
};

struct YamlFile {
    std::vector<YamlSetting> settings;   ///< in the file's order
    std::vector<Mistake> mistakes;       ///< what is not YAML, has no value, or stands there twice
};

/// `name` is what mistakes call the file. An empty text is a file without settings.
YamlFile read_yaml(std::string_view text, const std::string& name);

/// `value` as a YAML scalar that reads back the same.
std::string yaml_scalar(std::string_view value);

}  // namespace tidemark::config
