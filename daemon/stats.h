/// Numbers of the broker side, as metrics/ reads them: each struct is a copy taken at one moment.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/transaction/stats.h"

namespace tidemark::daemon {

/// Upper bounds of the latency histograms' buckets in seconds; one more bucket holds what is above the last.
inline constexpr std::array<double, 17> latency_bounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30};

struct Histogram {
    std::array<std::uint64_t, latency_bounds.size() + 1> buckets{};   ///< not cumulative
    double sum_seconds = 0;
    std::uint64_t count() const {
        std::uint64_t n = 0;
        for (const auto bucket : buckets) n += bucket;
        return n;
    }
};

/// One API key. Time runs from the last byte of the request to the last byte of its answer given to the socket; a fetch's
/// wait for data is in it, as in Kafka's TotalTimeMs.
struct ApiStats {
    std::int16_t key = 0;
    std::string_view name;                            ///< Kafka's: "Produce", "Fetch", …
    std::uint64_t requests = 0;
    std::map<std::int16_t, std::uint64_t> requests_by_version = {};
    std::map<std::int16_t, std::uint64_t> errors = {};   ///< Kafka's error code → how often it was answered, without 0
    std::uint64_t request_bytes = 0, answer_bytes = 0;
    Histogram total = {}, local = {};                           ///< local: up to the moment the handler had done its own work
};

struct TopicStats {
    std::uint64_t bytes_in = 0, bytes_out = 0;        ///< records as they are stored
    std::uint64_t records_in = 0;
    std::uint64_t produce_requests = 0, fetch_requests = 0;
    std::uint64_t failed_produce_requests = 0, failed_fetch_requests = 0;
};

/// One group that this node coordinates.
struct GroupStats {
    std::string id, type, state;
    std::size_t members = 0;
    struct Partition {
        std::string topic;
        std::int32_t partition = 0;
        std::int64_t committed = -1;
        std::optional<std::int64_t> lag = {};         ///< to the high watermark; nothing where the log is gone
    };
    std::vector<Partition> partitions = {};
};

/// One event loop.
struct LoopStats {
    double lag_seconds = 0;                           ///< how late its last beat was
    double lag_seconds_max = 0;                       ///< since the stats were last taken
    std::size_t connections = 0;
};

struct ServerStats {
    std::size_t connections = 0;
    std::uint64_t connections_accepted = 0;
    std::uint64_t connections_refused = 0;            ///< by the limit per address
    std::uint64_t connections_closed_idle = 0;
    std::uint64_t connections_closed_garbage = 0;     ///< what came was not a request that is served
    std::uint64_t connections_closed_slow = 0;        ///< D26
    std::uint64_t bytes_received = 0, bytes_sent = 0;
    std::uint64_t bytes_sent_from_files = 0;          ///< the part of bytes_sent that went by sendfile
    std::uint64_t cold_reads = 0, cold_read_bytes = 0;
    std::int64_t queued_request_bytes = 0;
    std::size_t fetches_waiting = 0;
    std::size_t fetch_sessions = 0, fetch_session_partitions = 0;
    std::uint64_t fetch_sessions_evicted = 0;
    std::size_t disk_jobs_waiting = 0, disk_jobs_running = 0;
    coordinator::TransactionStats transactions = {};
    std::vector<LoopStats> loops = {};
    std::vector<ApiStats> apis = {};                     ///< every API that is served, by key
    std::map<std::string, TopicStats> topics = {};       ///< topics that exist now
    /// Client software as ApiVersions named it → connections open now.
    std::map<std::pair<std::string, std::string>, std::size_t> client_software = {};
};

}  // namespace tidemark::daemon
