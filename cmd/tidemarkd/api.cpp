#include "cmd/tidemarkd/api.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cmd/cleaner_json.h"
#include "cmd/retention_json.h"
#include "config/config.h"
#include "metrics/process.h"
#include "metrics/storage_metrics.h"
#include "storage/repair.h"

namespace tidemark {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

Response json_answer(const json::value& value) {
    return {.status = 200, .content_type = std::string(http::json_type), .body = json::serialize(value) + "\n"};
}

json::value or_null(const std::optional<Timestamp>& value) { return value ? json::value(value->value) : json::value(nullptr); }

// --- reading ---------------------------------------------------------------------------------------------------------

json::object broker_of(const ApiParts& parts) {
    const auto image = parts.controller.image();
    json::array listeners;
    for (const auto& listener : parts.server.listeners()) listeners.push_back({{"name", listener.name}, {"host", listener.host}, {"port", listener.port}});
    json::array directories;
    for (const auto& directory : parts.logs.directories())
        directories.push_back({{"path", directory.path}, {"id", directory.directory_id.text()}, {"offline", directory.offline}, {"logs", directory.logs},
                               {"capacity_bytes", directory.total_bytes}, {"available_bytes", directory.usable_bytes}});
    json::object features;
    for (const auto& [name, level] : image->features) features[name] = level;
    return {{"version", TIDEMARK_VERSION}, {"node_id", parts.logs.identity().node_id}, {"cluster_id", parts.logs.identity().cluster_id},
            {"listeners", std::move(listeners)}, {"log_directories", std::move(directories)}, {"features", std::move(features)}};
}

json::object configs_of(const metadata::Image& image, const std::string& topic) {
    json::object configs;
    for (const auto& [key, value] : image.overrides(metadata::ResourceType::topic, topic)) configs[key] = value;
    return configs;
}

json::object topics_of(const ApiParts& parts) {
    const auto image = parts.controller.image();
    json::array topics;
    for (const auto& [name, topic] : image->topics)
        topics.push_back({{"name", name}, {"id", topic->id.text()}, {"partitions", topic->partitions.size()}, {"configs", configs_of(*image, name)}});
    return {{"topics", std::move(topics)}};
}

json::object partition_of(const ApiParts& parts, const TopicPartition& partition, const metadata::Partition& facts) {
    json::object object{{"partition", partition.partition}, {"leader", facts.leader}, {"leader_epoch", facts.leader_epoch}};
    const auto log = parts.logs.find(partition);
    object["online"] = log != nullptr;
    if (!log) return object;
    const auto stats = log->stats();
    object["log_start_offset"] = stats.log_start_offset.value;
    object["last_stable_offset"] = stats.last_stable_offset.value;
    object["high_watermark"] = stats.high_watermark.value;
    object["log_end_offset"] = stats.log_end_offset.value;
    object["recovery_point"] = stats.recovery_point.value;
    object["bytes"] = stats.bytes;
    object["segments"] = stats.segments;
    object["producers"] = stats.producers;
    return object;
}

Response topic_answer(const ApiParts& parts, const Request& request) {
    const auto name = request.path.substr(std::string_view{"/api/v1/topics/"}.size());
    const auto image = parts.controller.image();
    const auto* topic = image->find(name);
    if (topic == nullptr) return http::json_error(404, "there is no topic " + name);
    json::array partitions;
    for (const auto& [number, facts] : topic->partitions) partitions.push_back(partition_of(parts, {name, number}, facts));
    return json_answer(json::object{{"name", name}, {"id", topic->id.text()}, {"configs", configs_of(*image, name)}, {"partitions", std::move(partitions)}});
}

json::object cleaner_of(const ApiParts& parts) {
    const auto stats = parts.cleaner.stats();
    const auto options = parts.cleaner.options();
    json::array logs;
    for (const auto& planned : parts.cleaner.plan()) logs.push_back(to_json(planned));
    return {{"threads", options->threads}, {"backoff_ms", options->backoff_ms}, {"cleanings", stats.passes}, {"failed_cleanings", stats.failed_passes},
            {"logs_beyond_max_compaction_lag", stats.lag.logs_delayed}, {"max_delay_ms", stats.lag.max_delay_ms}, {"logs", std::move(logs)}};
}

/// What `?set.KEY=VALUE` asks to try: topic keys above every topic's own, broker keys above the broker's.
struct Trial {
    metadata::ConfigLayers layers;
    metadata::ConfigMap topic;
    bool is_asked = false;

    /// What the log would have to go by; its own settings when nothing is tried.
    Result<storage::LogConfig> config_of(const storage::Log& log, const metadata::Image& image) const {
        if (!is_asked) return *log.config();
        const auto& name = log.partition().topic;
        auto overrides = image.overrides(metadata::ResourceType::topic, name);
        for (const auto& [key, value] : topic) overrides[key] = value;
        if (!topic.empty()) {
            if (const auto wrong = metadata::topic_contradiction(layers, overrides)) return Error{Errc::invalid_argument, name + ": " + *wrong};
        }
        return metadata::log_config(layers, overrides);
    }
};

Result<Trial> trial_of(const ApiParts& parts, const Request& request) {
    constexpr std::string_view prefix = "set.";
    Trial trial{.layers = parts.layers(), .topic = {}};
    for (const auto& [name, value] : request.query) {
        if (!name.starts_with(prefix)) continue;
        trial.is_asked = true;
        const auto key = name.substr(prefix.size());
        using metadata::ConfigScope;
        bool known = false;
        for (const auto scope : {ConfigScope::topic, ConfigScope::broker}) {
            const auto* schema = metadata::find_config_key(scope, key);
            if (schema == nullptr) continue;
            TM_TRYV(metadata::parse_config_value(*schema, value));
            (scope == ConfigScope::topic ? trial.topic : trial.layers.broker)[key] = value;
            known = true;
            break;
        }
        if (known) continue;
        const auto similar = metadata::similar_config_keys(ConfigScope::topic, key);
        return Error{Errc::invalid_argument, fmt::format("there is no setting {}{}", key, similar.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(similar, ", ")))};
    }
    return trial;
}

Result<json::object> retention_of(const ApiParts& parts, const Request& request) {
    TM_TRY(const auto trial, trial_of(parts, request));
    const auto image = parts.controller.image();
    const auto topic = request.query.find("topic");
    const bool segments = request.query.contains("segments");
    const auto differences = config::retention_options(trial.layers).differences;
    const auto clock = parts.clock_trust.stats();
    const auto stats = parts.retention.stats();
    json::array logs;
    for (const auto& log : parts.logs.logs()) {
        const auto& partition = log->partition();
        if (topic != request.query.end() && topic->second != partition.topic) continue;
        TM_TRY(const auto config, trial.config_of(*log, *image));
        const auto plan = retention::plan(*log, config, parts.clock.now(), differences, clock.trusted);
        if (!plan) continue;   // it is on its way out, or its directory is offline
        auto object = to_json(*plan, segments);
        const auto own = std::ranges::lower_bound(stats.partitions, partition, {}, &retention::PartitionStats::partition);
        object["deleted"] = to_json(own != stats.partitions.end() && own->partition == partition ? own->deleted : decltype(own->deleted){});
        const auto ages = log->stats();
        object["oldest_timestamp"] = or_null(ages.oldest_timestamp);
        object["newest_timestamp"] = or_null(ages.newest_timestamp);
        logs.push_back(std::move(object));
    }
    return json::object{{"clock_trusted", clock.trusted}, {"clock_reason", clock.reason}, {"next_run", parts.retention.next_run().value}, {"runs", stats.runs},
                        {"deleted", to_json(stats.deleted)}, {"logs", std::move(logs)}};
}

Response retention_answer(const ApiParts& parts, const Request& request) {
    auto answer = retention_of(parts, request);
    return answer ? json_answer(*std::move(answer)) : http::json_error(400, answer.error().context);
}

bool is_ready(const ApiParts& parts) {
    if (!parts.loops_alive()) return false;
    for (const auto& directory : parts.logs.directories())
        if (directory.offline) return false;
    return true;
}

constexpr std::string_view index_page =
    "tidemarkd\n\n"
    "/metrics              Prometheus\n"
    "/healthz              200 while the event loops are alive\n"
    "/readyz               200 while clients are served and no log directory is offline\n"
    "/api/v1/broker        who this is\n"
    "/api/v1/topics        names, ids, settings\n"
    "/api/v1/topics/NAME   partitions with their offsets and sizes\n"
    "/api/v1/cleaner       what is cleaned next, and why\n"
    "/api/v1/retention     what is deleted next, and what was: ?topic=NAME&segments=yes&set.KEY=VALUE\n";

// --- changing --------------------------------------------------------------------------------------------------------

/// topic and partition of a query; nothing when one is missing or no number.
std::optional<TopicPartition> partition_in(const Request& request) {
    const auto topic = request.query.find("topic"), partition = request.query.find("partition");
    if (topic == request.query.end() || partition == request.query.end()) return std::nullopt;
    TopicPartition named{topic->second, 0};
    const auto& digits = partition->second;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), named.partition);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return named;
}

Response clean(const ApiParts& parts, const Request& request) {
    const auto partition = partition_in(request);
    if (!partition) return http::json_error(400, "say which: ?topic=NAME&partition=NUMBER");
    const auto log = parts.logs.find(*partition);
    if (!log) return http::json_error(404, "there is no log " + partition->text());
    if (const auto roll = request.query.find("roll"); roll != request.query.end() && roll->second == "yes") {
        if (const auto rolled = log->roll(); !rolled) return http::json_error(500, rolled.error().message());
    }
    return json_answer(json::object{{"requested", partition->text()}, {"request", parts.cleaner.request(*partition)}});
}

/// How far a request is: what `tidemark clean --wait` asks again and again.
Response clean_progress(const ApiParts& parts, const Request& request) {
    const auto partition = partition_in(request);
    if (!partition) return http::json_error(400, "say which: ?topic=NAME&partition=NUMBER");
    const auto stats = parts.cleaner.partition(*partition);
    json::object answer{{"requests_done", stats ? stats->requests_done : 0}, {"result", stats ? stats->request_result : ""}};
    if (stats && stats->progress) {
        answer["bytes_read"] = stats->progress->bytes_read;
        answer["bytes_total"] = stats->progress->bytes_total;
    }
    return json_answer(answer);
}

Response repair(const ApiParts& parts, const Request& request) {
    const auto partition = partition_in(request);
    const auto how = request.query.find("how");
    if (!partition || how == request.query.end() || (how->second != "restore" && how->second != "drop")) {
        return http::json_error(400, "say which and how: ?topic=NAME&partition=NUMBER&how=restore|drop");
    }
    const auto repaired = parts.logs.repair(*partition, how->second == "restore" ? storage::Repair::restore : storage::Repair::drop);
    if (repaired) return json_answer(json::object{{"batches", repaired->batches}, {"records", repaired->records}, {"log_end_offset", repaired->end.value}});
    const auto code = repaired.error().code;
    return http::json_error(code == Errc::not_found ? 404 : code == Errc::invalid_argument ? 409 : 500, repaired.error().message());
}

}  // namespace

http::Router reading_router(const ApiParts& parts) {
    http::Router router;
    router.add("GET", "/", [](const Request&) { return Response{.body = std::string(index_page)}; });
    router.add("GET", "/metrics", [&exposition = parts.exposition](const Request&) { return Response{.content_type = metrics::Exposition::content_type, .body = exposition.text()}; });
    router.add("GET", "/healthz", [parts](const Request&) { return parts.loops_alive() ? Response{.body = "ok\n"} : Response{.status = 503, .body = "an event loop does not move\n"}; });
    router.add("GET", "/readyz", [parts](const Request&) { return is_ready(parts) ? Response{.body = "ready\n"} : Response{.status = 503, .body = "not ready, see the log\n"}; });
    router.add("GET", "/api/v1/broker", [parts](const Request&) { return json_answer(broker_of(parts)); });
    router.add("GET", "/api/v1/topics", [parts](const Request&) { return json_answer(topics_of(parts)); });
    router.add("GET", "/api/v1/topics/", [parts](const Request& request) { return topic_answer(parts, request); });
    router.add("GET", "/api/v1/cleaner", [parts](const Request&) { return json_answer(cleaner_of(parts)); });
    router.add("GET", "/api/v1/retention", [parts](const Request& request) { return retention_answer(parts, request); });
    return router;
}

http::Router loading_router(const storage::LogManager& logs) {
    const auto exposition = std::make_shared<metrics::Exposition>();
    exposition->add([] { return metrics::build_families(); });
    exposition->add([] { return metrics::families_of(metrics::read_process_stats()); });
    exposition->add([&logs] { return metrics::families_of(logs.directories()); });
    http::Router router;
    router.add("GET", "/metrics", [exposition](const Request&) { return Response{.content_type = metrics::Exposition::content_type, .body = exposition->text()}; });
    router.add("GET", "/healthz", [](const Request&) { return Response{.body = "ok\n"}; });
    router.add("GET", "/readyz", [&logs](const Request&) {
        std::size_t left = 0;
        for (const auto& directory : logs.directories()) left += directory.loading;
        return Response{.status = 503, .body = "loading, " + std::to_string(left) + " logs to go\n"};
    });
    return router;
}

http::Router admin_router(const ApiParts& parts) {
    http::Router router;
    router.add("GET", "/v1/status", [parts](const Request&) {
        auto status = broker_of(parts);
        status["state"] = is_ready(parts) ? "serving" : "not ready";
        return json_answer(status);
    });
    router.add("POST", "/v1/clean", [parts](const Request& request) { return clean(parts, request); });
    router.add("GET", "/v1/clean", [parts](const Request& request) { return clean_progress(parts, request); });
    router.add("POST", "/v1/repair", [parts](const Request& request) { return repair(parts, request); });
    router.add("POST", "/v1/retention", [parts](const Request& request) {
        parts.retention.run();
        return retention_answer(parts, request);
    });
    router.add("POST", "/v1/clock/confirm", [parts](const Request&) {
        parts.clock_trust.confirm();
        return json_answer(json::object{{"clock_trusted", parts.clock_trust.trusted()}});
    });
    return router;
}

}  // namespace tidemark
