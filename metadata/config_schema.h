/// Every configuration key there is: Apache Kafka 4.4's, so that its tools find what they expect, and our own.
///
/// One table per kind of resource (config_keys.inc). A key that Tidemark does not use is accepted, stored and shown, and
/// says so in its documentation. What a key's value is at the moment: effective_config.h.
/// Threads: the tables are constants; everything here from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tidemark::metadata {

/// The numbers are DescribeConfigs' ConfigType.
enum class ConfigType : std::int8_t { boolean = 1, string = 2, int32 = 3, int16 = 4, int64 = 5, float64 = 6, list = 7, class_name = 8, password = 9 };

/// Who may change a broker key while the broker runs: nobody, an override of that broker, or cluster-wide ones too.
enum class UpdateMode : std::uint8_t { read_only, per_broker, cluster_wide };

enum class ConfigScope : std::uint8_t { broker, topic, group, client_metrics };

/// What a value must satisfy beyond its type.
struct ConfigRule {
    enum class Kind : std::uint8_t {
        any,
        at_least,            ///< min
        between,             ///< min..max, both allowed
        fraction,            ///< 0..fraction_max
        one_of,              ///< a word of `words`
        one_of_any_case,
        list,                ///< no empty elements, each of `words` when there are some; repeated ones are dropped
        non_empty,
        gzip_level,          ///< -1 or 1..9
        throttled_replicas,  ///< "*" or partition:broker pairs
        share_offset_reset,  ///< latest, earliest, by_duration:<ISO 8601>
    };
    Kind kind = Kind::any;
    std::int64_t min = 0, max = 0;
    double fraction_max = 0;
    std::string_view words = {};          ///< "a, b, c"
    bool empty_allowed = true;            ///< lists
};

struct ConfigKey {
    std::string_view name;
    ConfigType type = ConfigType::string;
    std::optional<std::string_view> default_value;   ///< nothing: null. As Kafka prints it.
    ConfigRule rule;
    UpdateMode mode = UpdateMode::read_only;         ///< broker keys
    bool used = false;                               ///< Tidemark acts on it
    bool internal = false;                           ///< settable, never listed
    bool dynamic_only = false;                       ///< only as an override at run time; listed when it is set
    bool ours = false;                               ///< not a key of Apache Kafka
    std::string_view documentation = {};             ///< never empty

    bool sensitive() const { return type == ConfigType::password; }
};

/// All keys of a scope, sorted by name, internal ones included.
std::span<const ConfigKey> config_keys(ConfigScope);
/// Null when there is no such key.
const ConfigKey* find_config_key(ConfigScope, std::string_view name);

/// The broker keys that stand for a topic key when a topic does not set it, strongest first: retention.ms is
/// log.retention.ms, log.retention.minutes, log.retention.hours.
struct BrokerSynonym {
    std::string_view broker_key;
    std::int64_t factor = 1;              ///< what its value is multiplied with for the topic key's unit
};
std::vector<BrokerSynonym> broker_synonyms(std::string_view topic_key);
/// The broker keys that mean the same in other units, the key itself among them, strongest first.
std::vector<std::string_view> equivalent_broker_keys(std::string_view broker_key);
/// The broker key that a group key falls back to, nothing when there is none.
std::optional<std::string_view> group_broker_synonym(std::string_view group_key);

/// A value that was accepted.
struct ConfigValue {
    std::string text;                     ///< as Kafka prints it: "0.50" reads "0.5", lists without blanks
    bool boolean = false;
    std::int64_t integer = 0;             ///< int16, int32, int64
    double fraction = 0;                  ///< float64
    std::vector<std::string> list;
};
/// Parses and checks `text` as Kafka does; the error's context is Kafka's text, for example
/// "Invalid value 0 for configuration segment.ms: Value must be at least 1".
Result<ConfigValue> parse_config_value(const ConfigKey&, std::string_view text);

/// "[0,...]", "[compact, delete]": what Kafka's documentation prints as valid values; "" when anything goes.
std::string valid_values(const ConfigKey&);

/// A double as Java prints it: "0.5", "1.0E-4", "1.7976931348623157E308".
std::string java_double_text(double);

/// Keys that look like `name`, nearest first, at most three: for "did you mean".
std::vector<std::string_view> similar_config_keys(ConfigScope, std::string_view name);

}  // namespace tidemark::metadata
