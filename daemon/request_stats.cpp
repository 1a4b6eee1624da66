#include "daemon/request_stats.h"

#include <algorithm>

namespace tidemark::daemon {

namespace {

std::uint64_t get(const Count& count) { return count.load(std::memory_order_relaxed); }

}  // namespace

void LatencyHistogram::record(std::chrono::nanoseconds time) {
    const auto seconds = std::chrono::duration<double>(time).count();
    const auto bucket = std::ranges::lower_bound(latency_bounds, seconds) - latency_bounds.begin();
    add(buckets_[static_cast<std::size_t>(bucket)]);
    add(sum_ns_, static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
}

Histogram LatencyHistogram::read() const {
    Histogram histogram;
    for (std::size_t i = 0; i < buckets_.size(); ++i) histogram.buckets[i] = get(buckets_[i]);
    histogram.sum_seconds = static_cast<double>(get(sum_ns_)) / 1e9;
    return histogram;
}

void ApiCounters::count_request(std::int16_t version) {
    add(by_version_[static_cast<std::size_t>(std::clamp<std::int16_t>(version, 0, versions_max - 1))]);
}

void ApiCounters::count_error(protocol::ErrorCode code) {
    const auto number = static_cast<std::int16_t>(code);
    if (number != 0 && number >= -1 && number <= error_code_max) add(errors_[static_cast<std::size_t>(number + 1)]);
}

void ApiCounters::read(ApiStats& into) const {
    into.request_bytes = get(request_bytes);
    into.answer_bytes = get(answer_bytes);
    into.total = total.read();
    into.local = local.read();
    for (std::size_t version = 0; version < by_version_.size(); ++version) {
        if (const auto n = get(by_version_[version])) {
            into.requests_by_version[static_cast<std::int16_t>(version)] = n;
            into.requests += n;
        }
    }
    for (std::size_t i = 0; i < errors_.size(); ++i) {
        if (const auto n = get(errors_[i])) into.errors[static_cast<std::int16_t>(static_cast<int>(i) - 1)] = n;
    }
}

RequestStats::RequestStats() {
    for (const auto& api : protocol::apis()) {
        apis_.resize(static_cast<std::size_t>(api.key) + 1);
        apis_.back() = std::make_unique<ApiCounters>();
    }
}

std::shared_ptr<TopicCounters> RequestStats::topic(const std::string& name) {
    MutexLock lock(mutex_);
    auto& counters = topics_[name];
    if (!counters) counters = std::make_shared<TopicCounters>();
    return counters;
}

void RequestStats::software_connected(const std::string& name, const std::string& version) {
    // What clients say of themselves becomes label values: a bounded number of them.
    constexpr std::size_t kinds_max = 200;
    MutexLock lock(mutex_);
    const auto at = software_.find({name, version});
    if (at != software_.end()) ++at->second;
    else ++software_[software_.size() < kinds_max ? std::pair{name, version} : std::pair<std::string, std::string>{"other", ""}];
}

void RequestStats::software_disconnected(const std::string& name, const std::string& version) {
    MutexLock lock(mutex_);
    auto at = software_.find({name, version});
    if (at == software_.end()) at = software_.find({"other", ""});
    if (at != software_.end() && --at->second == 0) software_.erase(at);
}

std::map<std::pair<std::string, std::string>, std::size_t> RequestStats::client_software() const {
    MutexLock lock(mutex_);
    return software_;
}

std::map<std::string, TopicStats> RequestStats::topics(const std::function<bool(const std::string&)>& exists) {
    std::map<std::string, TopicStats> all;
    MutexLock lock(mutex_);
    std::erase_if(topics_, [&](const auto& entry) { return !exists(entry.first); });
    for (const auto& [name, counters] : topics_) {
        all[name] = {.bytes_in = get(counters->bytes_in),
                     .bytes_out = get(counters->bytes_out),
                     .records_in = get(counters->records_in),
                     .produce_requests = get(counters->produce_requests),
                     .fetch_requests = get(counters->fetch_requests),
                     .failed_produce_requests = get(counters->failed_produce_requests),
                     .failed_fetch_requests = get(counters->failed_fetch_requests)};
    }
    return all;
}

}  // namespace tidemark::daemon
