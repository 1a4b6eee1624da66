/// From settings to the options structs that each room declares, so that yaml-cpp stays here.
///
///   const auto loaded = config::load({.file_name = "tidemark.yaml", .file_text = …, .overrides = {"log.dirs=data"}});
///   if (!loaded.mistakes.empty()) …                       // each one says where it stands and what to do
///   storage::LogManager::open(…, loaded.config.storage, …);
///
/// Keys, units, ranges and defaults are Kafka's (metadata/config_schema.h); what changes over the wire is filled again
/// with the same functions from the layers that then hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cleaner/options.h"
#include "config/listeners.h"
#include "config/settings.h"
#include "daemon/options.h"
#include "metadata/effective_config.h"
#include "retention/options.h"
#include "storage/options.h"

namespace tidemark::config {

struct HttpSettings {
    std::optional<HostPort> listener;            ///< http.listener; nothing: none
    std::string admin_socket;                    ///< admin.socket; "": none
    bool metrics_per_partition = true;           ///< metrics.per.partition.enable
    std::size_t metrics_partitions_max = 10'000; ///< metrics.partitions.max
    friend bool operator==(const HttpSettings&, const HttpSettings&) = default;
};

struct LoggingSettings {
    std::string file;                            ///< logging.file; "": standard error or the journal
    std::string level = "info";                  ///< logging.level
};

struct AuditSettings {
    bool enable = true;                          ///< audit.trail.enable
    std::string file;                            ///< audit.trail.file; "": in the first log directory
    std::int64_t bytes_max = 64 << 20;           ///< audit.trail.bytes.max
};

/// Everything that the daemon is started with.
struct Config {
    std::int32_t node_id = 1;                    ///< node.id, or broker.id
    std::string cluster_id;                      ///< cluster.id; "": that of the directories, or a random one
    storage::StorageOptions storage;
    cleaner::CleanerOptions cleaner;
    retention::RetentionOptions retention;
    daemon::Options daemon;
    HttpSettings http;
    LoggingSettings logging;
    AuditSettings audit;
    metadata::ConfigMap file;                    ///< the layer below what was changed over the wire
};

storage::StorageOptions storage_options(const metadata::ConfigLayers&);
cleaner::CleanerOptions cleaner_options(const metadata::ConfigLayers&);
retention::RetentionOptions retention_options(const metadata::ConfigLayers&);
/// Without the listeners, which come from make_listeners().
daemon::Options daemon_options(const metadata::ConfigLayers&);

struct Loaded {
    Config config;                               ///< meaningful when there are no mistakes
    Settings settings;
    std::vector<Mistake> mistakes;
    std::vector<Mistake> warnings;
};
Loaded load(const Sources&);

/// What tidemarkd does without a file: data in ./data, clients on this machine only. The text of a file.
std::string_view built_in_file();
inline constexpr const char* built_in_name = "built-in";

/// `--print-config`: every key that has an effect, grouped by its first word, with the value that holds and, as a comment,
/// who set it. Reads back as a file.
std::string effective_yaml(const Settings&);

}  // namespace tidemark::config
