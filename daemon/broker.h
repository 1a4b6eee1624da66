/// What all handlers share.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "base/published.h"
#include "daemon/delayed_fetch.h"
#include "daemon/disk_pool.h"
#include "daemon/fetch_sessions.h"
#include "daemon/frame.h"
#include "daemon/options.h"
#include "daemon/request_stats.h"
#include "daemon/server.h"

namespace tidemark::daemon {

class Coordinators;

/// Where clients find this node, as a listener's requests are told.
struct Endpoint {
    std::string host;
    std::uint16_t port = 0;
};

/// Threads: all members from any thread.
class Broker {
public:
    Broker(Parts, const Options&);
    ~Broker();
    Broker(const Broker&) = delete;
    Broker& operator=(const Broker&) = delete;

    storage::LogManager& logs() { return parts_.logs; }
    metadata::Controller& controller() { return parts_.controller; }
    const Clock& clock() const { return parts_.clock; }
    /// The one to use for a whole request.
    std::shared_ptr<const metadata::Image> image() const { return parts_.controller.image(); }
    std::shared_ptr<const Options> options() const { return options_.get(); }
    void set_options(const Options&);
    std::shared_ptr<const metadata::ConfigMap> file_config() const { return file_config_.get(); }
    void set_file_config(metadata::ConfigMap file) { file_config_.put(std::make_shared<const metadata::ConfigMap>(std::move(file))); }
    const Parts& parts() const { return parts_; }

    std::int32_t node_id() const { return node_id_; }
    const std::string& cluster_id() const { return cluster_id_; }
    /// Of Options::listeners[index].
    const Endpoint& endpoint(std::size_t listener) const { return endpoints_[listener]; }
    /// The port that was bound, where options said 0.
    void set_bound_port(std::size_t listener, std::uint16_t port);

    DiskPool& disk() { return disk_; }
    DelayedFetches& delayed_fetches() { return delayed_fetches_; }
    FetchSessions& fetch_sessions() { return fetch_sessions_; }
    RequestStats& stats() { return stats_; }
    Coordinators& coordinators() { return *coordinators_; }
    FrameBudget& frame_budget() { return frame_budget_; }

    /// Whether an answer to `acks` waits for the disk (D10). acks=0 has no answer.
    bool waits_for_disk(std::int16_t acks) const;

    /// Begins to create a topic, with the broker's defaults where it says nothing, unless that is going on already.
    void create_topic_in_background(metadata::NewTopic) EXCLUDES(creating_mutex_);

    // Calls that exist: a Server ends after its last one, since they hold its connections.
    void call_begins() { calls_.fetch_add(1, std::memory_order_relaxed); }
    void call_ends() EXCLUDES(calls_mutex_);
    /// False when the time is over.
    bool wait_until_no_calls(std::chrono::steady_clock::time_point deadline) EXCLUDES(calls_mutex_);

private:
    const Parts parts_;
    Published<Options> options_;
    Published<metadata::ConfigMap> file_config_;
    const std::int32_t node_id_;
    const std::string cluster_id_;
    std::vector<Endpoint> endpoints_;   // constant after Server::open()
    FrameBudget frame_budget_;
    DelayedFetches delayed_fetches_;
    FetchSessions fetch_sessions_;
    RequestStats stats_;

    Mutex creating_mutex_;
    std::unordered_set<std::string> creating_ GUARDED_BY(creating_mutex_);

    std::atomic<std::size_t> calls_{0};
    Mutex calls_mutex_;
    Condition no_calls_;

    DiskPool disk_;   // its jobs use all of the above
    const std::unique_ptr<Coordinators> coordinators_;   // run on it, and stop before it
};

}  // namespace tidemark::daemon
