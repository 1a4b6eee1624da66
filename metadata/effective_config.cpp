#include "metadata/effective_config.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace tidemark::metadata {
namespace {

/// What of a dynamic layer counts: keys that may be changed at that level, with valid values, and keys nobody here knows.
ConfigMap valid_dynamic(const ConfigMap& overrides, UpdateMode least) {
    ConfigMap valid;
    for (const auto& [name, text] : overrides) {
        const ConfigKey* key = find_config_key(ConfigScope::broker, name);
        if (key != nullptr && (key->mode < least || !parse_config_value(*key, text).has_value())) continue;
        valid.emplace(name, text);
    }
    return valid;
}

std::optional<ConfigValue> parsed(const ConfigKey& key, const ConfigMap& values) {
    const auto found = values.find(std::string(key.name));
    if (found == values.end()) return std::nullopt;
    auto value = parse_config_value(key, found->second);
    if (!value.has_value()) return std::nullopt;
    return *std::move(value);
}

/// The topic key's value from the strongest broker key that has one, in the topic key's unit; else the topic key's default.
std::optional<std::string> inherited_text(const ConfigLayers& layers, const ConfigKey& topic_key) {
    for (const BrokerSynonym& synonym : broker_synonyms(topic_key.name)) {
        const auto value = broker_value(layers, synonym.broker_key);
        if (!value) continue;
        if (topic_key.name == "retention.ms" && value->integer < 0) return "-1";
        return synonym.factor == 1 ? value->text : std::to_string(value->integer * synonym.factor);
    }
    if (!topic_key.default_value) return std::nullopt;
    return std::string(*topic_key.default_value);
}

/// A topic's value for each key: its own where valid, else what the broker says.
class TopicValues {
public:
    TopicValues(const ConfigLayers& layers, const ConfigMap& overrides) : layers_(layers), overrides_(overrides) {}

    std::optional<ConfigValue> find(std::string_view name) const {
        const ConfigKey* key = find_config_key(ConfigScope::topic, name);
        TM_ASSERT(key != nullptr);
        if (auto own = parsed(*key, overrides_)) return own;
        const auto text = inherited_text(layers_, *key);
        if (!text) return std::nullopt;
        auto value = parse_config_value(*key, *text);
        // A broker value may lie outside the topic key's range (flush.ms of a negative interval); the default then holds.
        if (!value.has_value()) value = parse_config_value(*key, key->default_value.value_or(""));
        TM_ASSERT(value.has_value());
        return *std::move(value);
    }
    std::int64_t integer(std::string_view name) const { return get(name).integer; }
    bool boolean(std::string_view name) const { return get(name).boolean; }
    double fraction(std::string_view name) const { return get(name).fraction; }
    std::string text(std::string_view name) const { return get(name).text; }
    std::vector<std::string> list(std::string_view name) const { return get(name).list; }

private:
    ConfigValue get(std::string_view name) const {
        auto value = find(name);
        TM_ASSERT(value.has_value());
        return *std::move(value);
    }
    const ConfigLayers& layers_;
    const ConfigMap& overrides_;
};

std::optional<record::Codec> codec_of(std::string_view compression_type) {
    using record::Codec;
    if (compression_type == "uncompressed") return Codec::none;
    if (compression_type == "gzip") return Codec::gzip;
    if (compression_type == "snappy") return Codec::snappy;
    if (compression_type == "lz4") return Codec::lz4;
    if (compression_type == "zstd") return Codec::zstd;
    return std::nullopt;   // "producer"
}

std::optional<std::int64_t> limited(std::int64_t value) {
    if (value < 0) return std::nullopt;
    return value;
}

/// Every level at which one of `names` is set, strongest first. As Kafka, what stands before the first entry of `name`
/// itself is left out, so a default log.retention.hours alone does not show under retention.ms.
std::vector<ConfigSynonym> synonyms_of(const ConfigLayers& layers, std::string_view name, bool sensitive) {
    const auto names = equivalent_broker_keys(name);
    std::vector<ConfigSynonym> all;
    const auto add = [&](std::string_view synonym, std::optional<std::string> value, ConfigSource source) {
        if (sensitive) value.reset();
        all.push_back({std::string(synonym), std::move(value), source});
    };
    const auto add_layer = [&](const ConfigMap& layer, ConfigSource source) {
        for (const std::string_view synonym : names) {
            if (const auto found = layer.find(std::string(synonym)); found != layer.end()) add(synonym, found->second, source);
        }
    };
    add_layer(layers.broker, ConfigSource::dynamic_broker);
    add_layer(layers.cluster, ConfigSource::dynamic_default_broker);
    add_layer(layers.file, ConfigSource::static_broker);
    for (const std::string_view synonym : names) {
        const ConfigKey* key = find_config_key(ConfigScope::broker, synonym);
        if (key != nullptr && key->default_value) add(synonym, std::string(*key->default_value), ConfigSource::default_config);
    }
    auto first = all.begin();
    while (first != all.end() && first->name != name) ++first;
    all.erase(all.begin(), first);
    return all;
}

DescribedConfig described(const ConfigKey& key) {
    DescribedConfig config;
    config.name = key.name;
    config.type = key.type;
    config.sensitive = key.sensitive();
    config.documentation = key.documentation;
    return config;
}

DescribedConfig describe_broker_key(const ConfigLayers& layers, std::string_view name) {
    const ConfigKey* key = find_config_key(ConfigScope::broker, name);
    DescribedConfig config;
    if (key != nullptr) {
        config = described(*key);
        config.read_only = key->mode == UpdateMode::read_only;
        if (!config.sensitive) {
            if (auto value = broker_value(layers, name)) config.value = std::move(value->text);
        }
    } else {
        config.name = name;
        config.type_known = false;
        config.read_only = true;
        config.sensitive = true;   // nobody here can tell
    }
    config.synonyms = synonyms_of(layers, name, config.sensitive);
    if (!config.synonyms.empty()) config.source = config.synonyms.front().source;
    return config;
}

}  // namespace

ConfigLayers config_layers(const Image& image, std::int32_t broker_id, ConfigMap file) {
    return {.broker = valid_dynamic(image.overrides(ResourceType::broker, std::to_string(broker_id)), UpdateMode::per_broker),
            .cluster = valid_dynamic(image.overrides(ResourceType::broker, ""), UpdateMode::cluster_wide),
            .file = std::move(file)};
}

std::optional<std::string> broker_text(const ConfigLayers& layers, std::string_view name) {
    const std::string key_name(name);
    for (const ConfigMap* layer : {&layers.broker, &layers.cluster, &layers.file}) {
        if (const auto found = layer->find(key_name); found != layer->end()) return found->second;
    }
    const ConfigKey* key = find_config_key(ConfigScope::broker, name);
    if (key == nullptr || !key->default_value) return std::nullopt;
    return std::string(*key->default_value);
}

std::optional<ConfigValue> broker_value(const ConfigLayers& layers, std::string_view name) {
    const ConfigKey* key = find_config_key(ConfigScope::broker, name);
    TM_ASSERT(key != nullptr);
    const auto text = broker_text(layers, name);
    if (!text) return std::nullopt;
    auto value = parse_config_value(*key, *text);
    TM_ASSERT(value.has_value());
    return *std::move(value);
}

std::int64_t broker_integer(const ConfigLayers& layers, std::string_view key) {
    const auto value = broker_value(layers, key);
    TM_ASSERT(value.has_value());
    return value->integer;
}

bool broker_boolean(const ConfigLayers& layers, std::string_view key) {
    const auto value = broker_value(layers, key);
    TM_ASSERT(value.has_value());
    return value->boolean;
}

double broker_fraction(const ConfigLayers& layers, std::string_view key) {
    const auto value = broker_value(layers, key);
    TM_ASSERT(value.has_value());
    return value->fraction;
}

std::string broker_string(const ConfigLayers& layers, std::string_view key) {
    auto value = broker_value(layers, key);
    return value ? std::move(value->text) : std::string();
}

std::vector<std::string> broker_list(const ConfigLayers& layers, std::string_view key) {
    auto value = broker_value(layers, key);
    return value ? std::move(value->list) : std::vector<std::string>();
}

ConfigMap topic_defaults(const ConfigLayers& layers) {
    ConfigMap defaults;
    const ConfigMap no_overrides;
    const TopicValues values(layers, no_overrides);
    for (const ConfigKey& key : config_keys(ConfigScope::topic)) {
        if (auto value = values.find(key.name)) defaults.emplace(key.name, std::move(value->text));
    }
    return defaults;
}

storage::LogConfig log_config(const ConfigLayers& layers, const ConfigMap& topic_overrides) {
    const TopicValues topic(layers, topic_overrides);
    storage::LogConfig config;
    config.segment_bytes = topic.integer("segment.bytes");
    if (const auto test_size = topic.find("internal.segment.bytes")) config.segment_bytes = test_size->integer;
    config.segment_ms = topic.integer("segment.ms");
    config.segment_jitter_ms = topic.integer("segment.jitter.ms");
    config.segment_index_bytes = topic.integer("segment.index.bytes");
    config.index_interval_bytes = topic.integer("index.interval.bytes");
    config.preallocate = topic.boolean("preallocate");
    config.file_delete_delay_ms = topic.integer("file.delete.delay.ms");
    config.flush_messages = topic.integer("flush.messages");
    config.flush_ms = topic.integer("flush.ms");
    config.max_message_bytes = topic.integer("max.message.bytes");
    config.max_decompressed_message_bytes = static_cast<std::int32_t>(topic.integer("max.decompressed.message.bytes"));
    config.compression = {.codec = codec_of(topic.text("compression.type")),
                          .gzip_level = static_cast<int>(topic.integer("compression.gzip.level")),
                          .lz4_level = static_cast<int>(topic.integer("compression.lz4.level")),
                          .zstd_level = static_cast<int>(topic.integer("compression.zstd.level"))};
    config.timestamp_type = topic.text("message.timestamp.type") == "LogAppendTime" ? record::TimestampType::log_append_time : record::TimestampType::create_time;
    config.timestamp_before_max_ms = topic.integer("message.timestamp.before.max.ms");
    config.timestamp_after_max_ms = topic.integer("message.timestamp.after.max.ms");
    config.compacts = false;
    config.deletes = false;
    for (const std::string& policy : topic.list("cleanup.policy")) {
        config.compacts |= policy == "compact";
        config.deletes |= policy == "delete";
    }
    config.retention_ms = limited(topic.integer("retention.ms"));
    config.retention_bytes = limited(topic.integer("retention.bytes"));
    const std::int64_t min_timestamp = topic.integer("log.retention.mintimestamp");
    config.retention_min_timestamp = min_timestamp > 0 ? std::optional(Timestamp{min_timestamp}) : std::nullopt;
    config.min_cleanable_dirty_ratio = topic.fraction("min.cleanable.dirty.ratio");
    config.min_compaction_lag_ms = topic.integer("min.compaction.lag.ms");
    config.max_compaction_lag_ms = topic.integer("max.compaction.lag.ms");
    config.delete_retention_ms = topic.integer("delete.retention.ms");
    return config;
}

std::vector<std::string> broker_contradictions(const ConfigLayers& layers) {
    std::vector<std::string> problems;
    for (const std::string_view key : {"log.retention.ms", "log.retention.minutes", "log.retention.hours"}) {
        const auto value = broker_value(layers, key);
        if (!value) continue;
        if (value->integer == 0) problems.push_back(fmt::format("{} must be unlimited (-1) or, greater than or equal to 1", key));
        break;   // the others do not count
    }
    const std::int64_t min_lag = broker_integer(layers, "log.cleaner.min.compaction.lag.ms"), max_lag = broker_integer(layers, "log.cleaner.max.compaction.lag.ms");
    if (min_lag > max_lag) {
        problems.push_back(fmt::format("conflict topic config setting log.cleaner.min.compaction.lag.ms ({}) > log.cleaner.max.compaction.lag.ms ({})", min_lag, max_lag));
    }
    const std::int64_t threads = broker_integer(layers, "log.cleaner.threads"), buffer = broker_integer(layers, "log.cleaner.dedupe.buffer.size");
    if (threads > 0 && buffer / threads <= 1024 * 1024) {
        problems.push_back(std::string("log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."));
    }
    return problems;
}

std::optional<std::string> topic_contradiction(const ConfigLayers& layers, const ConfigMap& topic_overrides) {
    const TopicValues topic(layers, topic_overrides);
    const std::int64_t min_lag = topic.integer("min.compaction.lag.ms"), max_lag = topic.integer("max.compaction.lag.ms");
    if (min_lag > max_lag) return fmt::format("conflict topic config setting min.compaction.lag.ms ({}) > max.compaction.lag.ms ({})", min_lag, max_lag);
    return std::nullopt;
}

std::vector<DescribedConfig> describe_topic(const ConfigLayers& layers, const ConfigMap& overrides) {
    std::vector<DescribedConfig> all;
    const TopicValues values(layers, overrides);
    for (const ConfigKey& key : config_keys(ConfigScope::topic)) {
        if (key.internal) continue;
        DescribedConfig config = described(key);
        if (auto value = values.find(key.name)) config.value = std::move(value->text);
        if (overrides.contains(config.name)) config.synonyms.push_back({config.name, config.value, ConfigSource::topic});
        if (const auto broker_keys = broker_synonyms(key.name); !broker_keys.empty()) {
            auto inherited = synonyms_of(layers, broker_keys.front().broker_key, config.sensitive);
            config.synonyms.insert(config.synonyms.end(), std::make_move_iterator(inherited.begin()), std::make_move_iterator(inherited.end()));
        }
        if (!config.synonyms.empty()) config.source = config.synonyms.front().source;
        all.push_back(std::move(config));
    }
    return all;
}

std::vector<DescribedConfig> describe_broker(const ConfigLayers& layers) {
    std::map<std::string, DescribedConfig> all;
    for (const ConfigKey& key : config_keys(ConfigScope::broker)) {
        if (!key.internal && !key.dynamic_only) all.emplace(key.name, describe_broker_key(layers, key.name));
    }
    for (const ConfigMap* layer : {&layers.broker, &layers.cluster, &layers.file}) {
        for (const auto& [name, text] : *layer) {
            if (!all.contains(name)) all.emplace(name, describe_broker_key(layers, name));
        }
    }
    std::vector<DescribedConfig> sorted;
    for (auto& [name, config] : all) sorted.push_back(std::move(config));
    return sorted;
}

std::vector<DescribedConfig> describe_cluster_default(const ConfigLayers& layers) {
    std::vector<DescribedConfig> all;
    for (const auto& [name, text] : layers.cluster) {
        DescribedConfig config = describe_broker_key(layers, name);
        std::erase_if(config.synonyms, [](const ConfigSynonym& synonym) { return synonym.source != ConfigSource::dynamic_default_broker; });
        config.source = config.synonyms.empty() ? ConfigSource::default_config : ConfigSource::dynamic_default_broker;
        if (!config.sensitive) config.value = text;
        all.push_back(std::move(config));
    }
    return all;
}

std::vector<DescribedConfig> describe_group(const ConfigLayers& layers, const ConfigMap& overrides) {
    std::vector<DescribedConfig> all;
    for (const ConfigKey& key : config_keys(ConfigScope::group)) {
        if (key.internal) continue;
        DescribedConfig config = described(key);
        const auto broker_key = group_broker_synonym(key.name);
        if (auto own = parsed(key, overrides)) {
            config.value = std::move(own->text);
            config.synonyms.push_back({config.name, config.value, ConfigSource::group});
        } else if (broker_key) {
            if (auto value = broker_value(layers, *broker_key)) config.value = std::move(value->text);
        } else if (key.default_value) {
            config.value = std::string(*key.default_value);
        }
        if (broker_key) {
            auto inherited = synonyms_of(layers, *broker_key, config.sensitive);
            config.synonyms.insert(config.synonyms.end(), std::make_move_iterator(inherited.begin()), std::make_move_iterator(inherited.end()));
        } else if (key.default_value) {
            config.synonyms.push_back({config.name, std::string(*key.default_value), ConfigSource::default_config});
        }
        if (!config.synonyms.empty()) config.source = config.synonyms.front().source;
        all.push_back(std::move(config));
    }
    return all;
}

std::vector<DescribedConfig> describe_client_metrics(const ConfigMap& overrides) {
    std::vector<DescribedConfig> all;
    for (const ConfigKey& key : config_keys(ConfigScope::client_metrics)) {
        DescribedConfig config = described(key);
        if (key.default_value) config.value = std::string(*key.default_value);
        if (auto own = parsed(key, overrides)) {
            config.value = std::move(own->text);
            config.source = ConfigSource::client_metrics;
            config.synonyms.push_back({config.name, config.value, ConfigSource::client_metrics});
        }
        all.push_back(std::move(config));
    }
    return all;
}

}  // namespace tidemark::metadata
