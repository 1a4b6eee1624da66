/// Counters that handlers and connections add to, and copies of them for metrics/.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "daemon/stats.h"
#include "protocol/api.h"
#include "protocol/error_code.h"

namespace tidemark::daemon {

using Count = std::atomic<std::uint64_t>;
inline void add(Count& to, std::uint64_t n = 1) { to.fetch_add(n, std::memory_order_relaxed); }

class LatencyHistogram {
public:
    void record(std::chrono::nanoseconds);
    Histogram read() const;

private:
    std::array<Count, latency_bounds.size() + 1> buckets_{};
    Count sum_ns_{0};
};

/// Of one API key.
class ApiCounters {
public:
    static constexpr std::size_t versions_max = 32;
    static constexpr std::int16_t error_code_max = 160;

    Count request_bytes{0}, answer_bytes{0};
    LatencyHistogram total, local;

    void count_request(std::int16_t version);
    /// none is not counted.
    void count_error(protocol::ErrorCode);
    void read(ApiStats& into) const;

private:
    std::array<Count, versions_max> by_version_{};
    std::array<Count, error_code_max + 2> errors_{};   // [code + 1]
};

struct TopicCounters {
    Count bytes_in{0}, bytes_out{0}, records_in{0}, produce_requests{0}, fetch_requests{0}, failed_produce_requests{0}, failed_fetch_requests{0};
};

/// Threads: all members from any thread.
class RequestStats {
public:
    RequestStats();

    /// Of an API that is in protocol's table.
    ApiCounters& api(protocol::ApiKey key) { return *apis_[static_cast<std::size_t>(key)]; }
    const ApiCounters& api(protocol::ApiKey key) const { return *apis_[static_cast<std::size_t>(key)]; }
    /// Made when it is first asked for. Ask only for topics that exist.
    std::shared_ptr<TopicCounters> topic(const std::string& name) EXCLUDES(mutex_);

    /// Forgets topics that `exists` denies, so that a late request cannot revive a deleted topic's series.
    std::map<std::string, TopicStats> topics(const std::function<bool(const std::string&)>& exists) EXCLUDES(mutex_);

    /// Clients by the software that ApiVersions named.
    void software_connected(const std::string& name, const std::string& version) EXCLUDES(mutex_);
    void software_disconnected(const std::string& name, const std::string& version) EXCLUDES(mutex_);
    std::map<std::pair<std::string, std::string>, std::size_t> client_software() const EXCLUDES(mutex_);

    Count connections_accepted{0}, connections_refused{0}, closed_idle{0}, closed_garbage{0}, closed_slow{0};
    Count bytes_received{0}, bytes_sent{0}, bytes_sent_from_files{0}, cold_reads{0}, cold_read_bytes{0};

private:
    std::vector<std::unique_ptr<ApiCounters>> apis_;   // by key; null where there is no API
    mutable Mutex mutex_;
    std::unordered_map<std::string, std::shared_ptr<TopicCounters>> topics_ GUARDED_BY(mutex_);
    std::map<std::pair<std::string, std::string>, std::size_t> software_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::daemon
