/// Which broker keys were set, to what, and by whom. The keys themselves, their types and ranges are
/// metadata/config_schema.h's; this is what a file and a command line make of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml_file.h"
#include "metadata/image.h"

namespace tidemark::config {

/// Where a value came from.
struct Origin {
    enum class Kind : std::uint8_t { default_value, file, command_line };
    Kind kind = Kind::default_value;
    std::string file;                    ///< for Kind::file; "built-in" when there was none
    Position at;                         ///< of the value
    /// "default", "tidemark.yaml:12", "--set".
    std::string text() const;
};

struct Setting {
    std::string value;                   ///< in Kafka's units and checked by its key's own parser
    Origin origin;
};

/// A file's content and the overrides that stand above it.
struct Sources {
    std::string file_name;               ///< "" for none
    std::string file_text;
    /// `key=value`, the later one wins.
    std::vector<std::string> overrides;
};

/// What was set, by key. A key that is not here has its default.
using Settings = std::map<std::string, Setting, std::less<>>;

/// As metadata/ wants it: the file layer of the broker's settings (DescribeConfigs' STATIC_BROKER_CONFIG).
metadata::ConfigMap values_of(const Settings&);
/// Of a key that may or may not be set.
Origin origin_of(const Settings&, std::string_view key);

struct ReadSettings {
    Settings settings;
    std::vector<Mistake> mistakes;       ///< all of them, in the file's order, the command line's last
    std::vector<Mistake> warnings;       ///< accepted, but without effect
};

/// Reads, checks each value, and names what is near an unknown key. Rules between keys are check()'s (config.h).
ReadSettings read_settings(const Sources&);

}  // namespace tidemark::config
