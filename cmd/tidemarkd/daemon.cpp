#include "cmd/tidemarkd/daemon.h"

#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cmd/tidemarkd/api.h"
#include "cmd/tidemarkd/audit_entries.h"
#include "cmd/tidemarkd/changes.h"
#include "cmd/tidemarkd/service.h"
#include "http/server.h"
#include "io/posix_file_system.h"
#include "metadata/local_controller.h"
#include "storage/audit_trail.h"
#include "storage/directory_names.h"
#include "storage/log_directory.h"
#include "metrics/cleaner_metrics.h"
#include "metrics/daemon_metrics.h"
#include "metrics/exposition.h"
#include "metrics/group_metrics.h"
#include "metrics/process.h"
#include "metrics/retention_metrics.h"
#include "metrics/storage_metrics.h"

namespace tidemark {
namespace {

constexpr std::chrono::seconds drain_time{30};
constexpr std::chrono::minutes load_time_max{60};
constexpr std::chrono::milliseconds tick_time_max{1000};

/// The advertised addresses spelled out: registration, answers and the first message say the same.
void fill_advertised(std::vector<daemon::Listener>& listeners) {
    for (auto& listener : listeners) {
        if (!listener.advertised_host.empty()) continue;
        const bool wildcard = listener.host.empty() || listener.host == "0.0.0.0" || listener.host == "::";
        char name[256] = {};
        if (wildcard && ::gethostname(name, sizeof name - 1) == 0) listener.advertised_host = name;
        else listener.advertised_host = listener.host;
    }
}

std::vector<metadata::BrokerRegistration::Endpoint> endpoints_of(const std::vector<daemon::Listener>& listeners) {
    std::vector<metadata::BrokerRegistration::Endpoint> endpoints;
    for (const auto& listener : listeners)
        endpoints.push_back({.listener = listener.name, .host = listener.advertised_host, .port = listener.advertised_port != 0 ? listener.advertised_port : listener.port, .security_protocol = 0});
    return endpoints;
}

/// Keys whose values differ, set or unset.
std::vector<std::string> changed_keys(const metadata::ConfigMap& before, const metadata::ConfigMap& after) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : after)
        if (const auto was = before.find(key); was == before.end() || was->second != value) keys.push_back(key);
    for (const auto& [key, value] : before)
        if (!after.contains(key)) keys.push_back(key);
    return keys;
}

bool may_change(const std::string& key) {
    const auto* schema = metadata::find_config_key(metadata::ConfigScope::broker, key);
    return schema != nullptr && schema->mode != metadata::UpdateMode::read_only;
}

}  // namespace

/// Declared in the order in which they start, so that a failed start is taken apart in reverse.
struct Daemon::Parts {
    explicit Parts(config::Config given) : config(std::move(given)) { fill_advertised(config.daemon.listeners); }

    config::Config config;
    io::PosixFileSystem files;
    SystemClock clock;
    std::unique_ptr<storage::LogManager> logs;
    std::unique_ptr<storage::AuditTrail> audit;    // none: switched off
    std::unique_ptr<Changes> changes;
    std::unique_ptr<metadata::LocalController> controller;
    std::unique_ptr<retention::ClockTrust> clock_trust;
    std::unique_ptr<cleaner::CleanerPool> cleaner;
    std::unique_ptr<retention::Scheduler> retention;
    std::jthread retention_thread;
    std::unique_ptr<daemon::Server> server;
    metrics::Exposition exposition;
    std::unique_ptr<http::Server> http;
    bool leads = false;                        // logs are loaded and the controller has begun: both are to be closed

    Result<> open_storage();
    Result<> open_first_door();
    Result<> open_metadata();
    void start_cleaner_and_retention();
    Result<> open_server();
    Result<> open_http();
    void tick_retention(const std::stop_token&);
    bool loops_alive() const;
};

Result<> Daemon::Parts::open_storage() {
    storage::LogManager::Identity expected{.cluster_id = config.cluster_id, .node_id = config.node_id};
    TM_TRY(logs, storage::LogManager::open(files, clock, config.storage, expected));
    const auto& trail = config.audit;
    const auto path = trail.file.empty() ? io::join(logs->metadata_directory(), storage::file_name::audit_trail) : trail.file;
    if (trail.enable) audit = std::make_unique<storage::AuditTrail>(files, clock, storage::AuditTrailOptions{.path = path, .bytes_max = trail.bytes_max});
    return {};
}

/// Loading may take long after a crash: whoever watches is told how far it is, until open_http() opens the whole.
Result<> Daemon::Parts::open_first_door() {
    if (!config.http.listener || config.http.listener->port == 0) return {};
    http = std::make_unique<http::Server>();
    const auto result = http->listen_tcp(config.http.listener->host, config.http.listener->port, loading_router(*logs));
    if (!result) return in_context(result.error(), "http.listener");
    http->start();
    return {};
}

/// The metadata log says which logs there should be and with which settings, so it is read before they are loaded. Only
/// then does the controller take the lead: from there on a change makes and removes logs.
Result<> Daemon::Parts::open_metadata() {
    const metadata::ConfigLayers layers{.broker = {}, .cluster = {}, .file = config.file};
    metadata::LocalControllerOptions options{.node_id = config.node_id,
                                             .log = metadata::metadata_log_options(layers, logs->metadata_directory()),
                                             .directory_ids = {},
                                             .endpoints = endpoints_of(config.daemon.listeners),
                                             .rack = config.daemon.rack,
                                             .file = config.file};
    options.log.make_room = [this] { logs->metadata_log_directory().give_up_reserve(); };
    for (const auto& directory : logs->directories()) options.directory_ids.push_back(directory.directory_id);
    TM_TRY(controller, metadata::LocalController::open(files, clock, std::move(options)));

    changes = std::make_unique<Changes>(*logs, config.node_id, config.file);
    service::extend_timeout(load_time_max);
    TM_TRY(const auto loaded, logs->load(changes->applier().lookup(controller->image())));
    std::unordered_map<TopicPartition, Uuid> found;
    for (const auto& log : logs->logs()) found.emplace(log->partition(), log->log_dir().id());
    controller->assign_directories(found);
    controller->add_listener(changes.get());
    TM_TRYV(controller->start());
    leads = true;
    TM_TRYV(controller->raise_leader_epochs(loaded.lost_records));  // before anybody asks for them or appends
    changes->applier().resume(*controller->image());
    logs->start();
    return {};
}

void Daemon::Parts::start_cleaner_and_retention() {
    const auto layers = metadata::config_layers(*controller->image(), config.node_id, config.file);
    clock_trust = std::make_unique<retention::ClockTrust>(files, logs->metadata_directory(), clock, config::retention_options(layers));
    clock_trust->start();
    const auto trusted = [this] { return clock_trust->trusted(); };
    const auto cleaned = [this](const cleaner::PassReport& report) { if (audit) audit->add(audit_entry(report)); };
    cleaner = std::make_unique<cleaner::CleanerPool>(*logs, clock, config::cleaner_options(layers), [this](storage::Log& log) { return retention->apply(log); }, cleaned, trusted);
    const retention::Scheduler::Guard guard{.pause_if_idle = [this](const TopicPartition& p) { return cleaner->pause_if_idle(p); },
                                            .resume = [this](const TopicPartition& p) { if (const auto r = cleaner->resume(p); !r) log_warning("[{}] {}", p, r.error().message()); }};
    const auto deleted = [this](const retention::SegmentReport& report) {
        const auto log = logs->find(report.partition);
        if (audit && log) audit->add(audit_entry(report, clock.now(), log->config()->file_delete_delay_ms));
    };
    retention = std::make_unique<retention::Scheduler>(*logs, clock, config::retention_options(layers), guard, deleted, trusted);
    changes->attach({.cleaner = cleaner.get(), .retention = retention.get(), .server = nullptr});
    cleaner->start();
    retention_thread = std::jthread{[this](const std::stop_token& stop) { tick_retention(stop); }};
}

/// Scheduler and controller look at the clock themselves; here they are only asked often enough.
void Daemon::Parts::tick_retention(const std::stop_token& stop) {
    name_this_thread("retention");
    std::mutex mutex;
    std::condition_variable_any stopped;
    const auto pause = std::min(tick_time_max, std::chrono::milliseconds{config.retention.check_interval_ms});
    std::unique_lock lock{mutex};
    while (!stopped.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
        clock_trust->tick();
        retention->tick();
        controller->tick();   // snapshots of the metadata log by time
    }
}

Result<> Daemon::Parts::open_server() {
    daemon::Parts parts{.logs = *logs, .controller = *controller, .clock = clock, .alive = {}, .file_config = config.file};
    if (service::watchdog_interval()) parts.alive = [] { service::alive(); };
    auto options = config.daemon;
    // systemd wants to hear from us twice in its interval.
    if (const auto interval = service::watchdog_interval()) options.loop_beat_ms = std::max<std::int64_t>(1, std::min<std::int64_t>(options.loop_beat_ms, interval->count() / 1000 / 2));
    TM_TRY(server, daemon::Server::open(parts, options));
    changes->attach({.cleaner = cleaner.get(), .retention = retention.get(), .server = server.get()});
    server->start();
    return {};
}

bool Daemon::Parts::loops_alive() const {
    for (const auto& loop : server->stats().loops)
        if (loop.lag_seconds * 1000 > static_cast<double>(config.daemon.loop_stalled_ms)) return false;
    return true;
}

Result<> Daemon::Parts::open_http() {
    if (!config.http.listener && config.http.admin_socket.empty()) return {};
    const metrics::Cardinality cardinality{.per_partition = config.http.metrics_per_partition, .partitions_max = config.http.metrics_partitions_max};
    exposition.add([] { return metrics::build_families(); });
    exposition.add([] { return metrics::families_of(metrics::read_process_stats()); });
    exposition.add([this] { return metrics::families_of(server->stats()); });
    exposition.add([this, cardinality] { return metrics::families_of(server->group_stats(), cardinality); });
    exposition.add([this, cardinality] { return metrics::storage_families(*logs, cardinality); });
    exposition.add([this, cardinality] { return metrics::families_of(cleaner->stats(), cardinality); });
    exposition.add([this, cardinality] { return metrics::families_of(retention->stats(), cardinality); });
    exposition.add([this] { return metrics::families_of(clock_trust->stats()); });

    const ApiParts api{.clock = clock, .logs = *logs, .controller = *controller, .cleaner = *cleaner, .retention = *retention, .clock_trust = *clock_trust, .server = *server,
                       .exposition = exposition, .loops_alive = [this] { return loops_alive(); },
                       .layers = [this] { return metadata::config_layers(*controller->image(), config.node_id, changes->file()); }};
    http.reset();   // the first door
    http = std::make_unique<http::Server>();
    if (config.http.listener) {
        const auto result = http->listen_tcp(config.http.listener->host, config.http.listener->port, reading_router(api));
        if (!result) return in_context(result.error(), "http.listener");
    }
    if (!config.http.admin_socket.empty()) {
        const auto result = http->listen_unix(config.http.admin_socket, admin_router(api));
        if (!result) return in_context(result.error(), "admin.socket");
    }
    http->start();
    return {};
}

Daemon::Daemon(config::Config config) : parts_(std::make_unique<Parts>(std::move(config))) {}
Daemon::~Daemon() = default;

Result<> Daemon::start() {
    TM_TRYV(parts_->open_storage());
    TM_TRYV(parts_->open_first_door());
    TM_TRYV(parts_->open_metadata());
    parts_->start_cleaner_and_retention();
    TM_TRYV(parts_->open_server());
    return parts_->open_http();
}

void Daemon::reload(config::Config config) {
    auto& parts = *parts_;
    for (const auto& key : changed_keys(parts.config.file, config.file)) {
        if (may_change(key)) {
            log_info("settings: {} has changed", key);
            continue;
        }
        log_warning("settings: {} has changed and holds from the next start on", key);
        // The old value goes on being shown, because it goes on to hold.
        config.file.erase(key);
        if (const auto was = parts.config.file.find(key); was != parts.config.file.end()) config.file.emplace(key, was->second);
    }
    parts.config.file = config.file;
    parts.controller->set_file(config.file);
    parts.changes->set_file(std::move(config.file), *parts.controller->image());
}

bool Daemon::stop() {
    auto& parts = *parts_;
    bool clean = true;
    if (parts.http) parts.http->stop();
    if (parts.server && !parts.server->stop(drain_time)) {
        log_warning("some connections were cut after {} seconds", drain_time.count());
        clean = false;
    }
    parts.retention_thread = {};
    if (parts.cleaner) parts.cleaner->stop();
    if (parts.changes) parts.changes->detach();
    if (!parts.leads) return clean;

    const auto broker_epoch = parts.controller->stop();
    if (!broker_epoch) log_error("the metadata log could not be closed: {}", broker_epoch.error().message());
    service::extend_timeout(load_time_max);
    if (const auto result = parts.logs->close(broker_epoch ? *broker_epoch : -1); !result) {
        log_error("not all logs could be closed: {}", result.error().message());
        clean = false;
    }
    return clean && broker_epoch.has_value();
}

std::string Daemon::welcome() const {
    const auto& parts = *parts_;
    const auto listener = parts.server->listeners().front();
    const bool wildcard = listener.host.empty() || listener.host == "0.0.0.0" || listener.host == "::";
    const auto address = fmt::format("{}:{}", wildcard ? "127.0.0.1" : listener.host, listener.port);
    auto text = fmt::format("tidemarkd {} serves {} at {} (cluster {}, node {}). Try:\n"
                            "    kcat -b {} -L\n"
                            "    seq 5 | kcat -b {} -P -t first && kcat -b {} -C -t first -e",
                            TIDEMARK_VERSION, fmt::join(parts.config.storage.log_dirs, ", "), address, parts.logs->identity().cluster_id, parts.config.node_id, address, address, address);
    if (const auto& door = parts.config.http.listener) text += fmt::format("\n    curl -s http://{}:{}/metrics", door->host.empty() || door->host == "0.0.0.0" ? "127.0.0.1" : door->host, parts.http->tcp_port());
    return text;
}

}  // namespace tidemark
