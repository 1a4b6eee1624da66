// AlterConfigs and IncrementalAlterConfigs: wire-behaviour 11. A resource at a time:
//   1. the request itself: keys given twice, nulls, operations that do not exist
//   2. the new overrides: what stands there, changed by the operations
//   3. whether the resource may have them, then whether it exists
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "metadata/changes.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;

constexpr std::string_view min_isr = "min.insync.replicas";
constexpr std::int64_t metrics_interval_ms_min = 100, metrics_interval_ms_max = 3'600'000;

Outcome refuse(ErrorCode code, std::string text) { return {code, std::move(text)}; }
Outcome invalid_request(std::string text) { return refuse(ErrorCode::invalid_request, std::move(text)); }
Outcome invalid_config(std::string text) { return refuse(ErrorCode::invalid_config, std::move(text)); }

bool is_known_op(std::int8_t op) { return op >= static_cast<std::int8_t>(AlterOp::set) && op <= static_cast<std::int8_t>(AlterOp::subtract); }

std::optional<ConfigScope> scope_of(ResourceType type) {
    switch (type) {
        case ResourceType::topic: return ConfigScope::topic;
        case ResourceType::broker: return ConfigScope::broker;
        case ResourceType::group: return ConfigScope::group;
        case ResourceType::client_metrics: return ConfigScope::client_metrics;
        case ResourceType::broker_logger: break;
    }
    return std::nullopt;
}

// --- step 1 --------------------------------------------------------------------------------------------------------

Outcome check_request(const AlterConfigs& request) {
    std::set<std::string_view> keys;
    std::vector<std::string_view> nulls;
    for (const ConfigChange& change : request.changes) {
        if (!keys.insert(change.key).second) return invalid_request("Error due to duplicate config keys");
        if (!change.value && change.op != static_cast<std::int8_t>(AlterOp::remove)) nulls.push_back(change.key);
    }
    if (!nulls.empty()) return invalid_request(fmt::format("Null value not supported for : {}", fmt::join(nulls, ", ")));
    for (const ConfigChange& change : request.changes) {
        if (!is_known_op(change.op)) return {ErrorCode::unknown_server_error, std::nullopt};
    }
    return {};
}

// --- step 2 --------------------------------------------------------------------------------------------------------

std::vector<std::string> elements_of(std::string_view list) {
    std::vector<std::string> elements;
    while (!list.empty()) {
        const std::size_t comma = list.find(',');
        std::string_view element = list.substr(0, comma);
        while (!element.empty() && element.front() == ' ') element.remove_prefix(1);
        while (!element.empty() && element.back() == ' ') element.remove_suffix(1);
        if (!element.empty()) elements.emplace_back(element);
        if (comma == std::string_view::npos) break;
        list.remove_prefix(comma + 1);
    }
    return elements;
}

/// The list with `change` added or taken away.
std::string changed_list(std::string_view current, const ConfigChange& change) {
    auto elements = elements_of(current);
    for (const std::string& element : elements_of(*change.value)) {
        if (change.op == static_cast<std::int8_t>(AlterOp::subtract)) std::erase(elements, element);
        else if (std::ranges::find(elements, element) == elements.end()) elements.push_back(element);
    }
    return fmt::format("{}", fmt::join(elements, ","));
}

/// The value that appending starts from when there is no override: what holds without it.
std::string inherited_list(const ConfigLayers& layers, ResourceType type, const std::string& key) {
    if (type == ResourceType::topic) {
        const auto defaults = topic_defaults(layers);
        const auto found = defaults.find(key);
        return found == defaults.end() ? std::string() : found->second;
    }
    return broker_string(layers, key);
}

Outcome apply_operations(const ConfigLayers& layers, const AlterConfigs& request, ConfigMap& overrides) {
    const auto type = static_cast<ResourceType>(request.resource_type);
    if (request.replace_all) overrides.clear();
    for (const ConfigChange& change : request.changes) {
        switch (static_cast<AlterOp>(change.op)) {
            case AlterOp::set: overrides[change.key] = *change.value; break;
            case AlterOp::remove: overrides.erase(change.key); break;
            case AlterOp::append:
            case AlterOp::subtract: {
                // Kafka knows the types of topic and broker keys only when it comes to lists.
                const bool splits = type == ResourceType::topic || type == ResourceType::broker;
                const ConfigKey* key = splits ? find_config_key(*scope_of(type), change.key) : nullptr;
                const bool append = static_cast<AlterOp>(change.op) == AlterOp::append;
                if (key == nullptr || key->type != ConfigType::list) {
                    if (type == ResourceType::broker) return invalid_config(fmt::format("Config value {} is not allowed for config key: {}", append ? "append" : "subtract", change.key));
                    return invalid_config(fmt::format("Can't {} to key {} because its type is not LIST.", append ? "APPEND" : "SUBTRACT", change.key));
                }
                const auto current = overrides.find(change.key);
                overrides[change.key] = changed_list(current == overrides.end() ? inherited_list(layers, type, change.key) : current->second, change);
                break;
            }
        }
    }
    return {};
}

// --- step 3 --------------------------------------------------------------------------------------------------------

Outcome check_topic(const ChangeContext& context, const ConfigLayers& layers, const std::string& name, const ConfigMap& before, const ConfigMap& after) {
    if (name.empty()) return invalid_request("Default topic resources are not allowed.");
    if (auto problem = topic_name_problem(name)) return refuse(ErrorCode::invalid_topic_exception, *std::move(problem));
    ConfigMap judged = after;
    // Keys of a later Kafka that stand there already do not stand in the way.
    std::erase_if(judged, [&](const auto& entry) { return before.contains(entry.first) && find_config_key(ConfigScope::topic, entry.first) == nullptr; });
    if (auto problem = topic_config_problem(layers, judged)) return invalid_config(*std::move(problem));
    if (context.image.find(name) == nullptr) return refuse(ErrorCode::unknown_topic_or_partition, fmt::format("The topic '{}' does not exist.", name));
    return {};
}

/// Kafka lets a pool of threads grow and shrink by half and double at a time; the same here, so that its tools' scripts
/// meet the same limits.
Outcome check_threads(const ConfigLayers& now, std::string_view key, std::int64_t wanted) {
    const std::int64_t current = broker_integer(now, key);
    if (wanted == current) return {};
    const bool cleaner = key == "log.cleaner.threads";
    const auto text = [&](std::string_view cleaner_text, std::string_view other_text) {
        if (cleaner) return invalid_request(fmt::format("Log cleaner threads cannot be {} the current value {}", cleaner_text, current));
        return invalid_request(fmt::format("Dynamic thread count update validation failed for {}={}, value should {} the current value {}", key, wanted, other_text, current));
    };
    if (wanted < 1) return invalid_request(fmt::format("Invalid value {} for configuration {}: Value must be at least 1", wanted, key));
    if (wanted < current / 2) return text("reduced to less than half", "be at least half");
    if (wanted > current * 2) return text("increased to more than double", "not be greater than double");
    return {};
}

Outcome check_broker_name(const ChangeContext& context, const std::string& name) {
    if (name.empty()) return {};
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size()) return invalid_request(fmt::format("Node id must be an integer, but it is: {}", name));
    if (id != context.node_id) return invalid_request(fmt::format("Unexpected broker id, expected {}, but received {}", context.node_id, name));
    return {};
}

Outcome check_broker(const ChangeContext& context, const ConfigLayers& layers, const AlterConfigs& request, const ConfigMap& before, const ConfigMap& after) {
    const bool is_default = request.resource_name.empty();
    std::set<std::string> fixed, per_broker, per_listener;
    for (const auto& [key, value] : after) {
        const auto old = before.find(key);
        if (old != before.end() && old->second == value) continue;   // what stands there already is not judged again
        const ConfigKey* known = find_config_key(ConfigScope::broker, key);
        if (known == nullptr) continue;                              // other software's
        if (known->mode == UpdateMode::read_only) fixed.insert(key);
        if (known->mode == UpdateMode::per_broker && is_default) per_broker.insert(key);
        if (known->mode == UpdateMode::per_broker && (key.starts_with("ssl.") || key.starts_with("sasl."))) per_listener.insert(key);
    }
    if (!fixed.empty()) return invalid_request(fmt::format("Cannot update these configs dynamically: [{}]", fmt::join(fixed, ", ")));
    if (!per_listener.empty()) {
        return invalid_request(fmt::format("These security configs can be dynamically updated only per-listener using the listener prefix: [{}]", fmt::join(per_listener, ", ")));
    }
    if (!per_broker.empty()) {
        return invalid_request(fmt::format("Cannot update these configs at default cluster level, broker id must be specified: [{}]", fmt::join(per_broker, ", ")));
    }
    for (const auto& [key, value] : after) {
        const auto old = before.find(key);
        const ConfigKey* known = find_config_key(ConfigScope::broker, key);
        if (known == nullptr || (old != before.end() && old->second == value)) continue;
        const auto parsed = parse_config_value(*known, value);
        if (!parsed.has_value()) return invalid_request(parsed.error().context);
        if (known->type == ConfigType::int32 && (key.ends_with(".threads") || key == "num.recovery.threads.per.data.dir" || key == "num.replica.fetchers")) {
            if (auto wrong = check_threads(layers, key, parsed->integer); !wrong.ok()) return wrong;
        }
    }
    if (context.image.feature("eligible.leader.replicas.version") >= 1) {
        const std::string key(min_isr);
        if (!is_default && (before.contains(key) || after.contains(key))) return invalid_config("Broker-level min.insync.replicas cannot be altered while ELR is enabled.");
        const bool touched = request.replace_all || std::ranges::any_of(request.changes, [](const ConfigChange& change) { return change.key == min_isr; });
        if (is_default && touched && !after.contains(key)) return invalid_config("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.");
    }
    ConfigLayers changed = layers;
    (is_default ? changed.cluster : changed.broker) = after;
    // As config_layers() would: keys of other software do not count.
    for (ConfigMap* layer : {&changed.cluster, &changed.broker}) {
        std::erase_if(*layer, [](const auto& entry) {
            const ConfigKey* key = find_config_key(ConfigScope::broker, entry.first);
            return key == nullptr || !parse_config_value(*key, entry.second).has_value();
        });
    }
    const auto old_problems = broker_contradictions(layers);
    for (std::string& problem : broker_contradictions(changed)) {
        if (std::ranges::find(old_problems, problem) == old_problems.end()) return invalid_request(std::move(problem));
    }
    return {};
}

Outcome check_client_metrics(const std::string& name, const ConfigMap& overrides) {
    if (name.empty()) return invalid_request("Subscription name can't be empty");
    for (const auto& [key, value] : overrides) {
        const ConfigKey* known = find_config_key(ConfigScope::client_metrics, key);
        if (known == nullptr) return invalid_request(fmt::format("Unknown client metrics configuration: {}", key));
        const auto parsed = parse_config_value(*known, value);
        if (!parsed.has_value()) return invalid_config(parsed.error().context);
        if (key == "interval.ms" && (parsed->integer < metrics_interval_ms_min || parsed->integer > metrics_interval_ms_max)) {
            return invalid_request(fmt::format("Invalid value {} for interval.ms, interval must be between {} and {} (1 hour)", parsed->integer, metrics_interval_ms_min,
                                               metrics_interval_ms_max));
        }
        if (key != "match") continue;
        static const std::set<std::string, std::less<>> attributes{"client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port"};
        for (const std::string& pattern : parsed->list) {
            const std::size_t equals = pattern.find('=');
            if (equals == std::string::npos || !attributes.contains(std::string_view(pattern).substr(0, equals))) return invalid_config(fmt::format("Illegal client matching pattern: {}", pattern));
        }
    }
    return {};
}

Outcome check_group(const ConfigLayers& layers, const std::string& name, const ConfigMap& overrides) {
    if (name.empty()) return invalid_request("Default group resources are not allowed.");
    for (const auto& [key, value] : overrides) {
        if (find_config_key(ConfigScope::group, key) == nullptr) return invalid_config(fmt::format("Unknown group config name: {}", key));
    }
    for (const auto& [key, value] : overrides) {
        const auto parsed = parse_config_value(*find_config_key(ConfigScope::group, key), value);
        if (!parsed.has_value()) return invalid_config(parsed.error().context);
        // The broker's own limits: consumer.session.timeout.ms lies within group.consumer.{min,max}.session.timeout.ms.
        const std::size_t dot = key.find('.');
        if (dot == std::string::npos) continue;
        const std::string protocol = key.substr(0, dot), rest = key.substr(dot + 1);
        const auto limit = [&](std::string_view which) -> std::optional<std::int64_t> {
            const std::string limit_key = fmt::format("group.{}.{}.{}", protocol, which, rest);
            if (find_config_key(ConfigScope::broker, limit_key) == nullptr) return std::nullopt;
            return broker_integer(layers, limit_key);
        };
        const auto min = limit("min"), max = limit("max");
        if (min && max && (parsed->integer < *min || parsed->integer > *max)) return invalid_config(fmt::format("{} must be in the range {} to {} inclusive.", key, *min, *max));
    }
    for (const std::string_view protocol : {"consumer", "share", "streams"}) {
        const auto effective = [&](std::string_view rest) -> std::int64_t {
            const std::string key = fmt::format("{}.{}", protocol, rest);
            if (const auto found = overrides.find(key); found != overrides.end()) return parse_config_value(*find_config_key(ConfigScope::group, key), found->second)->integer;
            return broker_integer(layers, "group." + key);
        };
        if (effective("session.timeout.ms") <= effective("heartbeat.interval.ms")) {
            return invalid_config(fmt::format("{0}.session.timeout.ms must be greater than {0}.heartbeat.interval.ms", protocol));
        }
    }
    return {};
}

// --- all together --------------------------------------------------------------------------------------------------

Outcome plan_resource(const ChangeContext& context, const ConfigLayers& layers, const AlterConfigs& request, std::vector<protocol::MetadataRecord>& records) {
    const auto type = static_cast<ResourceType>(request.resource_type);
    if (!scope_of(type)) return invalid_request(fmt::format("Unknown resource type {}", request.resource_type));
    if (auto wrong = check_request(request); !wrong.ok()) return wrong;
    if (type == ResourceType::broker) {
        if (auto wrong = check_broker_name(context, request.resource_name); !wrong.ok()) return wrong;
    }
    const ConfigMap& before = context.image.overrides(type, request.resource_name);
    ConfigMap after = before;
    if (auto wrong = apply_operations(layers, request, after); !wrong.ok()) return wrong;
    Outcome checked;
    switch (type) {
        case ResourceType::topic: checked = check_topic(context, layers, request.resource_name, before, after); break;
        case ResourceType::broker: checked = check_broker(context, layers, request, before, after); break;
        case ResourceType::client_metrics: checked = check_client_metrics(request.resource_name, after); break;
        case ResourceType::group: checked = check_group(layers, request.resource_name, after); break;
        case ResourceType::broker_logger: break;   // not stored
    }
    if (!checked.ok()) return checked;

    bool min_isr_changed = false;
    const auto write = [&](const std::string& key, std::optional<std::string> value) {
        min_isr_changed |= key == min_isr;
        records.emplace_back(protocol::ConfigRecord{.resource_type = request.resource_type, .resource_name = request.resource_name, .name = key, .value = std::move(value)});
    };
    for (const auto& [key, value] : after) {
        const auto old = before.find(key);
        if (old == before.end() || old->second != value) write(key, value);
    }
    for (const auto& [key, value] : before) {
        if (!after.contains(key)) write(key, std::nullopt);
    }
    if (min_isr_changed && context.image.feature("eligible.leader.replicas.version") >= 1) {
        records.emplace_back(protocol::ClearElrRecord{.topic_name = type == ResourceType::topic ? request.resource_name : std::string()});
    }
    return {};
}

}  // namespace

std::optional<std::string> topic_config_problem(const ConfigLayers& layers, const ConfigMap& overrides) {
    for (const auto& [key, value] : overrides) {
        if (find_config_key(ConfigScope::topic, key) == nullptr) return fmt::format("Unknown topic config name: {}", key);
    }
    for (const auto& [key, text] : overrides) {
        const auto value = parse_config_value(*find_config_key(ConfigScope::topic, key), text);
        if (!value.has_value()) return value.error().context;
        if (key == "remote.storage.enable" && value->boolean) {
            return "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.";
        }
    }
    return topic_contradiction(layers, overrides);
}

Plan<Outcome> plan_alter_configs(const ChangeContext& context, const std::vector<AlterConfigs>& requests) {
    Plan<Outcome> plan;
    const ConfigLayers layers = config_layers(context.image, context.node_id, context.file);
    for (const AlterConfigs& request : requests) {
        const auto same = [&](const AlterConfigs& other) { return other.resource_type == request.resource_type && other.resource_name == request.resource_name; };
        if (std::ranges::count_if(requests, same) > 1) plan.answers.push_back(invalid_request("Each resource must appear at most once."));
        else plan.answers.push_back(plan_resource(context, layers, request, plan.records));
    }
    return plan;
}

}  // namespace tidemark::metadata
