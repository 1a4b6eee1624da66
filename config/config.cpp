#include "config/config.h"

#include <algorithm>
#include <charconv>

#include "metadata/config_schema.h"

namespace tidemark::config {
namespace {

using metadata::broker_boolean;
using metadata::broker_fraction;
using metadata::broker_integer;
using metadata::broker_list;
using metadata::broker_string;
using metadata::ConfigLayers;

template <class Int>
Int narrow(std::int64_t value) { return static_cast<Int>(value); }  // the schema's type has bounded it

storage::Durability durability_of(const std::string& word) {
    if (word == "page-cache") return storage::Durability::page_cache;
    if (word == "always") return storage::Durability::always;
    return storage::Durability::acks_all;
}

std::vector<std::string> log_dirs_of(const ConfigLayers& layers) {
    auto dirs = broker_list(layers, "log.dirs");
    return dirs.empty() ? broker_list(layers, "log.dir") : dirs;
}

std::vector<std::string> split(std::string_view text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const auto end = std::min(text.find(',', at), text.size());
        auto part = text.substr(at, end - at);
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        if (!part.empty()) parts.emplace_back(part);
        at = end + 1;
    }
    return parts;
}

/// "10.0.0.1:5,example:7"; nothing when a part is not host:count.
std::optional<std::map<std::string, std::int32_t>> per_ip_overrides(const std::string& text) {
    std::map<std::string, std::int32_t> overrides;
    for (const auto& text_of_pair : split(text)) {
        const std::string_view pair = text_of_pair;
        const auto colon = pair.rfind(':');
        if (colon == std::string_view::npos || colon == 0) return std::nullopt;
        const auto digits = pair.substr(colon + 1);
        std::int32_t count = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
        if (error != std::errc{} || end != digits.data() + digits.size() || count < 0) return std::nullopt;
        overrides[std::string(pair.substr(0, colon))] = count;
    }
    return overrides;
}

ListenerSettings listener_settings(const ConfigLayers& layers) {
    return {.listeners = broker_list(layers, "listeners"),
            .advertised = broker_list(layers, "advertised.listeners"),
            .controller_names = broker_list(layers, "controller.listener.names"),
            .protocol_map = split(broker_string(layers, "listener.security.protocol.map"))};
}

/// Rules between keys, and those that only this program has. Each mistake stands where the key was set.
class Checker {
public:
    Checker(Loaded& to, const ConfigLayers& layers) : to_(to), layers_(layers) {}

    void check() {
        for (const auto& text : metadata::broker_contradictions(layers_)) mistake(key_in(text), text);
        check_directories();
        check_identity();
        if (!broker_string(layers_, "authorizer.class.name").empty())
            mistake("authorizer.class.name", "authorizer.class.name: there is no authorizer yet, everybody who can connect may do everything; leave it empty");
        if (!per_ip_overrides(broker_string(layers_, "max.connections.per.ip.overrides")))
            mistake("max.connections.per.ip.overrides", "max.connections.per.ip.overrides is a list of host:count");
        if (const auto listeners = make_listeners(listener_settings(layers_)); !listeners) {
            const auto& text = listeners.error().context;
            for (std::size_t at = 0; at <= text.size();) {
                const auto end = std::min(text.find('\n', at), text.size());
                const auto one = text.substr(at, end - at);
                mistake(one.starts_with("advertised") ? "advertised.listeners" : "listeners", one);
                at = end + 1;
            }
        }
        if (const auto text = broker_string(layers_, "http.listener"); !text.empty()) {
            if (const auto address = parse_host_port(text); !address) mistake("http.listener", "http.listener: " + address.error().context);
        }
    }

private:
    void check_directories() {
        const auto dirs = log_dirs_of(layers_);
        const char* key = to_.settings.contains("log.dirs") ? "log.dirs" : "log.dir";
        if (!to_.settings.contains("log.dirs") && !to_.settings.contains("log.dir")) mistake("log.dirs", "log.dirs is not set: say where the data is to be kept");
        for (auto i = dirs.begin(); i != dirs.end(); ++i)
            if (std::find(dirs.begin(), i, *i) != i) mistake(key, std::string(key) + ": " + *i + " stands there twice");
        const auto metadata_dir = broker_string(layers_, "metadata.log.dir");
        if (!metadata_dir.empty() && !dirs.empty() && metadata_dir != dirs.front())
            mistake("metadata.log.dir", "metadata.log.dir must be the first of log.dirs (" + dirs.front() + ") or unset: another place is not offered yet");
    }

    void check_identity() {
        const auto broker_id = broker_integer(layers_, "broker.id");
        if (broker_id >= 0 && to_.settings.contains("node.id") && broker_id != broker_integer(layers_, "node.id"))
            mistake("broker.id", "broker.id and node.id are the same thing and differ");
        const auto roles = broker_list(layers_, "process.roles");
        if (std::ranges::find(roles, "broker") == roles.end() || std::ranges::find(roles, "controller") == roles.end())
            mistake("process.roles", "process.roles: alone, this daemon is broker and controller; other roles are not offered yet");
    }

    /// The first key that was set and that the text names.
    std::string key_in(const std::string& text) const {
        for (const auto& [key, setting] : to_.settings)
            if (text.find(key) != std::string::npos) return key;
        return {};
    }

    void mistake(const std::string& key, std::string text) {
        const auto origin = origin_of(to_.settings, key);
        to_.mistakes.push_back({origin.kind == Origin::Kind::default_value ? std::string{} : origin.file, origin.at, std::move(text)});
    }

    Loaded& to_;
    const ConfigLayers& layers_;
};

}  // namespace

storage::StorageOptions storage_options(const ConfigLayers& layers) {
    storage::StorageOptions options;
    options.log_dirs = log_dirs_of(layers);
    options.durability = durability_of(broker_string(layers, "durability"));
    options.differences.keep_damaged_tail = broker_string(layers, "log.recovery.damaged") != "truncate";
    options.differences.exact_lookup = broker_boolean(layers, "log.lookup.exact");
    options.recovery_threads_per_dir = narrow<int>(broker_integer(layers, "num.recovery.threads.per.data.dir"));
    options.recovery_point_interval_ms = broker_integer(layers, "log.flush.offset.checkpoint.interval.ms");
    options.log_start_interval_ms = broker_integer(layers, "log.flush.start.offset.checkpoint.interval.ms");
    options.high_watermark_interval_ms = broker_integer(layers, "replica.high.watermark.checkpoint.interval.ms");
    options.flush_scheduler_interval_ms = broker_integer(layers, "log.flush.scheduler.interval.ms");
    options.initial_task_delay_ms = broker_integer(layers, "log.initial.task.delay.ms");
    options.partition_delete_delay_ms = broker_integer(layers, "log.segment.delete.delay.ms");
    options.producer_expiration_ms = broker_integer(layers, "producer.id.expiration.ms");
    options.producer_expiration_check_ms = broker_integer(layers, "producer.id.expiration.check.interval.ms");
    options.transaction_max_timeout_ms = broker_integer(layers, "transaction.max.timeout.ms");
    return options;
}

cleaner::CleanerOptions cleaner_options(const ConfigLayers& layers) {
    cleaner::CleanerOptions options;
    options.threads = broker_boolean(layers, "log.cleaner.enable") ? narrow<int>(broker_integer(layers, "log.cleaner.threads")) : 0;
    options.dedupe_buffer_bytes = broker_integer(layers, "log.cleaner.dedupe.buffer.size");
    options.io_buffer_bytes = broker_integer(layers, "log.cleaner.io.buffer.size");
    options.dedupe_buffer_load = broker_fraction(layers, "log.cleaner.io.buffer.load.factor");
    options.io_bytes_per_second_max = broker_fraction(layers, "log.cleaner.io.max.bytes.per.second");
    options.backoff_ms = broker_integer(layers, "log.cleaner.backoff.ms");
    options.message_bytes_max = broker_integer(layers, "message.max.bytes");
    options.differences.idle_roll = broker_boolean(layers, "log.roll.idle.enable");
    options.differences.deadline_schedule = broker_string(layers, "log.cleaner.schedule") == "deadline";
    options.differences.estimate_missing_timestamps = broker_string(layers, "log.cleaner.missing.timestamps") == "kip-354";
    options.differences.horizon_passes = broker_boolean(layers, "log.cleaner.horizon.trigger.enable");
    options.differences.record_expiry = broker_boolean(layers, "log.cleaner.record.expiry.enable");
    return options;
}

retention::RetentionOptions retention_options(const ConfigLayers& layers) {
    retention::RetentionOptions options;
    options.check_interval_ms = broker_integer(layers, "log.retention.check.interval.ms");
    options.initial_delay_ms = broker_integer(layers, "log.initial.task.delay.ms");
    options.clock_jump_max_ms = broker_integer(layers, "log.clock.jump.max.ms");
    options.clock_jump_grace_ms = broker_integer(layers, "log.clock.jump.grace.ms");
    options.differences.min_timestamp_uses_file_time = broker_string(layers, "log.retention.mintimestamp.fallback") == "file-time";
    options.differences.future_timestamps_use_file_time = broker_string(layers, "log.retention.future.timestamps") == "file-time";
    return options;
}

daemon::Options daemon_options(const ConfigLayers& layers) {
    daemon::Options options;
    options.listeners.clear();
    options.rack = metadata::broker_text(layers, "broker.rack");
    options.disk_threads = narrow<int>(broker_integer(layers, "num.io.threads"));
    options.backlog = narrow<int>(broker_integer(layers, "socket.listen.backlog.size"));
    options.send_buffer_bytes = narrow<int>(broker_integer(layers, "socket.send.buffer.bytes"));
    options.receive_buffer_bytes = narrow<int>(broker_integer(layers, "socket.receive.buffer.bytes"));
    options.durability = durability_of(broker_string(layers, "durability"));
    options.auto_create_topics = broker_boolean(layers, "auto.create.topics.enable");
    options.delete_topics = broker_boolean(layers, "delete.topic.enable");
    options.verify_transactions = broker_boolean(layers, "transaction.partition.verification.enable");
    // Kafka's default of three suits its threads; here a loop per processor is what unset means.
    for (const auto* layer : {&layers.broker, &layers.cluster, &layers.file})
        if (layer->contains("num.network.threads")) options.network_threads = narrow<int>(broker_integer(layers, "num.network.threads"));

    auto& limits = options.limits;
    limits.request_bytes_max = narrow<std::int32_t>(broker_integer(layers, "socket.request.max.bytes"));
    limits.queued_bytes_max = broker_integer(layers, "queued.max.request.bytes");
    limits.connections_max = narrow<std::int32_t>(broker_integer(layers, "max.connections"));
    limits.connections_per_ip_max = narrow<std::int32_t>(broker_integer(layers, "max.connections.per.ip"));
    limits.connections_per_ip_overrides = per_ip_overrides(broker_string(layers, "max.connections.per.ip.overrides")).value_or(std::map<std::string, std::int32_t>{});
    limits.idle_ms_max = broker_integer(layers, "connections.max.idle.ms");
    limits.fetch_bytes_max = narrow<std::int32_t>(broker_integer(layers, "fetch.max.bytes"));
    limits.fetch_sessions_max = narrow<std::int32_t>(broker_integer(layers, "max.incremental.fetch.session.cache.slots"));
    limits.partitions_per_answer_max = narrow<std::int32_t>(broker_integer(layers, "max.request.partition.size.limit"));
    limits.slice_held_ms_max = broker_integer(layers, "log.segment.delete.delay.ms");
    return options;
}

Loaded load(const Sources& sources) {
    Loaded loaded;
    auto read = read_settings(sources);
    loaded.settings = std::move(read.settings);
    loaded.mistakes = std::move(read.mistakes);
    loaded.warnings = std::move(read.warnings);
    const ConfigLayers layers{.broker = {}, .cluster = {}, .file = values_of(loaded.settings)};
    Checker{loaded, layers}.check();
    if (!loaded.mistakes.empty()) return loaded;

    auto& config = loaded.config;
    const auto broker_id = broker_integer(layers, "broker.id");
    config.node_id = narrow<std::int32_t>(broker_id >= 0 ? broker_id : broker_integer(layers, "node.id"));
    config.cluster_id = broker_string(layers, "cluster.id");
    config.storage = storage_options(layers);
    config.cleaner = cleaner_options(layers);
    config.retention = retention_options(layers);
    config.daemon = daemon_options(layers);
    auto listeners = *make_listeners(listener_settings(layers));
    config.daemon.listeners = std::move(listeners.clients);
    config.daemon.controller_listener = std::move(listeners.controller);
    if (const auto text = broker_string(layers, "http.listener"); !text.empty()) config.http.listener = *parse_host_port(text);
    config.http.admin_socket = broker_string(layers, "admin.socket");
    config.http.metrics_per_partition = broker_boolean(layers, "metrics.per.partition.enable");
    config.http.metrics_partitions_max = static_cast<std::size_t>(broker_integer(layers, "metrics.partitions.max"));
    config.logging = {.file = broker_string(layers, "logging.file"), .level = broker_string(layers, "logging.level")};
    config.audit = {.enable = broker_boolean(layers, "audit.trail.enable"), .file = broker_string(layers, "audit.trail.file"),
                    .bytes_max = broker_integer(layers, "audit.trail.bytes.max")};
    config.file = layers.file;
    return loaded;
}

std::string_view built_in_file() {
    return "log.dirs: data\n"
           "listeners: PLAINTEXT://127.0.0.1:9092\n"
           "http.listener: 127.0.0.1:9404\n";
}

std::string effective_yaml(const Settings& settings) {
    std::string yaml = "# The settings that hold, and who set them. Keys that Tidemark accepts without using them are left out unless set.\n";
    std::string_view group;
    const ConfigLayers layers{.broker = {}, .cluster = {}, .file = values_of(settings)};
    for (const auto& key : metadata::config_keys(metadata::ConfigScope::broker)) {
        const bool set = settings.contains(key.name);
        if (!set && (!key.used || key.internal)) continue;
        if (const auto word = key.name.substr(0, key.name.find('.')); word != group) {
            group = word;
            yaml += '\n';
        }
        const auto value = metadata::broker_text(layers, key.name);
        std::string line;
        if (key.sensitive() && value) line = "# " + std::string(key.name) + ": (hidden)";
        else if (!value) line = "# " + std::string(key.name) + ": (not set)";
        else line = std::string(key.name) + ": " + yaml_scalar(*value);
        if (line.size() < 64) line.resize(64, ' ');
        yaml += line + "  # " + origin_of(settings, key.name).text() + (key.used ? "" : ", no effect") + "\n";
    }
    return yaml;
}

}  // namespace tidemark::config
