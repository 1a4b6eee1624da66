#include "daemon/broker.h"

#include <unistd.h>

#include <array>

#include "base/log.h"
#include "daemon/coordinators.h"

namespace tidemark::daemon {

namespace {

std::string machine_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? std::string{name.data()} : std::string{"localhost"};
}

bool is_wildcard(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::" || host == "[::]"; }

FetchSessions::Options session_options(const Limits& limits) { return {.sessions_max = limits.fetch_sessions_max, .evict_ms = limits.fetch_session_evict_ms}; }

}  // namespace

Broker::Broker(Parts parts, const Options& options)
    : parts_(std::move(parts)),
      options_(std::make_shared<const Options>(options)),
      file_config_(std::make_shared<const metadata::ConfigMap>(parts_.file_config)),
      node_id_(parts_.logs.identity().node_id),
      cluster_id_(parts_.logs.identity().cluster_id),
      frame_budget_(options.limits.queued_bytes_max),
      fetch_sessions_(session_options(options.limits)),
      disk_(std::max(options.disk_threads, 1)),
      coordinators_(std::make_unique<Coordinators>(*this)) {
    for (const auto& listener : options.listeners) {
        auto host = !listener.advertised_host.empty() ? listener.advertised_host : is_wildcard(listener.host) ? machine_name() : listener.host;
        endpoints_.push_back({std::move(host), listener.advertised_port != 0 ? listener.advertised_port : listener.port});
    }
}

Broker::~Broker() {
    coordinators_->stop();
    disk_.stop();
}

void Broker::set_options(const Options& options) {
    // Only what docs name as changeable while running; listeners and threads stay as they were opened.
    auto changed = *options_.get();
    changed.limits = options.limits;
    changed.auto_create_topics = options.auto_create_topics;
    changed.delete_topics = options.delete_topics;
    changed.verify_transactions = options.verify_transactions;
    frame_budget_.set_limit(changed.limits.queued_bytes_max);
    fetch_sessions_.set_options(session_options(changed.limits));
    options_.put(std::make_shared<const Options>(std::move(changed)));
}

void Broker::set_bound_port(std::size_t listener, std::uint16_t port) {
    auto changed = *options_.get();
    changed.listeners[listener].port = port;
    if (changed.listeners[listener].advertised_port == 0) endpoints_[listener].port = port;
    options_.put(std::make_shared<const Options>(std::move(changed)));
}

bool Broker::waits_for_disk(std::int16_t acks) const {
    switch (options_.get()->durability) {
        case storage::Durability::page_cache: return false;
        case storage::Durability::acks_all: return acks == -1;
        case storage::Durability::always: return acks != 0;
    }
    return true;
}

void Broker::create_topic_in_background(metadata::NewTopic topic) {
    const auto name = topic.name;
    {
        MutexLock lock(creating_mutex_);
        if (!creating_.insert(name).second) return;
    }
    disk_.submit([this, name, topic = std::move(topic)] {
        const auto created = controller().create_topics({topic}, false);
        if (created.size() == 1 && created.front().outcome.ok()) {
            log_info("[{}] created on first use, {} partitions", name, created.front().partitions);
        } else if (created.size() == 1 && created.front().outcome.code != protocol::ErrorCode::topic_already_exists) {
            static LogLimit limit{10'000};
            if (const auto held = limit.admit(); held >= 0) {
                log_warning("[{}] not created on first use: {} ({} more not shown)", name, created.front().outcome.message.value_or("no reason"), held);
            }
        }
        MutexLock lock(creating_mutex_);
        creating_.erase(name);
    });
}

void Broker::call_ends() {
    if (calls_.fetch_sub(1) != 1) return;
    MutexLock lock(calls_mutex_);
    no_calls_.notify_all();
}

bool Broker::wait_until_no_calls(std::chrono::steady_clock::time_point deadline) {
    MutexLock lock(calls_mutex_);
    while (calls_.load() != 0) {
        const auto left = deadline - std::chrono::steady_clock::now();
        if (left <= std::chrono::steady_clock::duration::zero()) return false;
        no_calls_.wait_for(calls_mutex_, left);
    }
    return true;
}

}  // namespace tidemark::daemon
