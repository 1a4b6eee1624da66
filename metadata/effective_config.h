/// What a setting is at the moment: layers of overrides over the broker's file over the defaults, and what the result
/// means to a log. Pure functions over an Image and the file's values.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/config_schema.h"
#include "metadata/image.h"
#include "storage/log_config.h"

namespace tidemark::metadata {

/// The broker's settings by where they come from, the strongest first. Dynamic layers hold only what may be changed at
/// run time and is valid; what else the metadata log holds is ignored, as in Kafka.
struct ConfigLayers {
    ConfigMap broker;                     ///< overrides of this broker
    ConfigMap cluster;                    ///< cluster-wide overrides
    ConfigMap file;                       ///< as read at start
};
ConfigLayers config_layers(const Image&, std::int32_t broker_id, ConfigMap file);

/// The value of a broker key in these layers, or its default; nothing: null. As it was given, not in canonical form.
std::optional<std::string> broker_text(const ConfigLayers&, std::string_view key);
/// The same, parsed. Precondition: the key exists and its value is valid (a file is checked when it is read); null for
/// an unset key without default.
std::optional<ConfigValue> broker_value(const ConfigLayers&, std::string_view key);
/// For keys that have a default. Precondition: as broker_value(), of that type.
std::int64_t broker_integer(const ConfigLayers&, std::string_view key);
bool broker_boolean(const ConfigLayers&, std::string_view key);
double broker_fraction(const ConfigLayers&, std::string_view key);
/// "" when it is null.
std::string broker_string(const ConfigLayers&, std::string_view key);
std::vector<std::string> broker_list(const ConfigLayers&, std::string_view key);

/// What the layers say to a topic that sets nothing: each topic key with its value in canonical form (null ones absent).
/// log.retention.{ms,minutes,hours}, log.roll.{ms,hours} and the like are resolved to the topic key's unit.
ConfigMap topic_defaults(const ConfigLayers&);
/// A topic's settings in numbers. Overrides that are unknown or invalid are ignored.
storage::LogConfig log_config(const ConfigLayers&, const ConfigMap& topic_overrides);

/// What is wrong with a broker's file beyond single values: contradictions between keys. Texts name the keys.
std::vector<std::string> broker_contradictions(const ConfigLayers&);
/// What is wrong with a topic's overrides taken together with the broker's values, as Kafka says it; nothing when all is well.
std::optional<std::string> topic_contradiction(const ConfigLayers&, const ConfigMap& topic_overrides);

// --- DescribeConfigs -----------------------------------------------------------------------------------------------

/// The numbers are DescribeConfigs' ConfigSource.
enum class ConfigSource : std::int8_t {
    topic = 1, dynamic_broker = 2, dynamic_default_broker = 3, static_broker = 4, default_config = 5, broker_logger = 6, client_metrics = 7, group = 8,
};

struct ConfigSynonym {
    std::string name;
    std::optional<std::string> value;     ///< null when sensitive
    ConfigSource source = ConfigSource::default_config;
};

struct DescribedConfig {
    std::string name;
    std::optional<std::string> value;     ///< null when unset or sensitive
    ConfigType type = ConfigType::string;
    bool type_known = true;               ///< false for keys that other software stored: ConfigType 0
    bool read_only = false;
    bool sensitive = false;
    ConfigSource source = ConfigSource::default_config;
    std::vector<ConfigSynonym> synonyms;  ///< strongest first
    std::string_view documentation;
};

/// Sorted by name, internal keys left out.
std::vector<DescribedConfig> describe_topic(const ConfigLayers&, const ConfigMap& overrides);
std::vector<DescribedConfig> describe_broker(const ConfigLayers&);
/// Broker "": the cluster-wide overrides only.
std::vector<DescribedConfig> describe_cluster_default(const ConfigLayers&);
std::vector<DescribedConfig> describe_group(const ConfigLayers&, const ConfigMap& overrides);
std::vector<DescribedConfig> describe_client_metrics(const ConfigMap& overrides);

}  // namespace tidemark::metadata
