#include "retention/scheduler.h"

#include <algorithm>

#include "base/log.h"
#include "storage/log_directory.h"
#include "storage/segment.h"

namespace tidemark::retention {
namespace {

bool is_gone(const Error& error) { return error.code == Errc::storage_offline || error.code == Errc::not_found; }

}  // namespace

Scheduler::Scheduler(storage::LogManager& logs, const Clock& clock, RetentionOptions options, Guard guard, Observer observer, ClockTrust clock_trust)
    : logs_(logs), clock_(clock), guard_(std::move(guard)), observer_(std::move(observer)), clock_trust_(std::move(clock_trust)),
      options_(std::make_shared<const RetentionOptions>(options)), started_(clock.since_boot()) {}

std::chrono::milliseconds Scheduler::first_run() const { return started_ + std::chrono::milliseconds{options_.get()->initial_delay_ms}; }

Timestamp Scheduler::next_run() const {
    MutexLock lock(mutex_);
    return clock_.now() + std::max<std::int64_t>(0, (next_run_.value_or(first_run()) - clock_.since_boot()).count());
}

bool Scheduler::tick() {
    {
        MutexLock lock(mutex_);
        const auto now = clock_.since_boot();
        const auto options = options_.get();
        if (!next_run_) next_run_ = first_run();
        if (now < *next_run_) return false;
        // A run that was late does not make the next ones crowd.
        const std::chrono::milliseconds interval{std::max<std::int64_t>(1, options->check_interval_ms)};
        *next_run_ += interval * ((now - *next_run_) / interval + 1);
    }
    run();
    return true;
}

void Scheduler::run() {
    MutexLock running(run_mutex_);
    const auto began = clock_.since_boot();
    const auto logs = logs_.logs();
    for (const auto& log : logs) {
        if (log->config()->compacts) continue;
        const auto& partition = log->partition();
        if (guard_.pause_if_idle && !guard_.pause_if_idle(partition)) continue;
        if (const auto done = apply(*log); !done && !is_gone(done.error())) {
            log_error("[{}] deleting old segments: {}", partition, log->log_dir().handled(done.error(), "deleting old segments of " + partition.text()).message());
        }
        if (guard_.resume) guard_.resume(partition);
    }
    MutexLock lock(mutex_);
    // stats() passes over those that are gone: here it is about memory only.
    if (notes_.size() > logs.size()) std::erase_if(notes_, [&](const auto& entry) { return !logs_.find(entry.first); });
    ++totals_.runs;
    totals_.seconds += std::chrono::duration<double>(clock_.since_boot() - began).count();
}

Result<bool> Scheduler::apply(storage::Log& log) {
    const auto differences = options_.get()->differences;
    TM_TRY(const auto applied, apply_retention(log, clock_.now(), differences, trusts_clock(), [&](const SegmentReport& report) { deleted(log, report); }));
    note(log, applied, *log.config());
    // What the gauges show of its age is read here, so that a scrape reads nothing.
    const auto segments = log.segments();
    if (segments->front()->bytes() > 0) TM_TRYV(segments->front()->first_batch_timestamp());
    return !applied.decision.deletions.empty();
}

Result<Plan> plan(const storage::Log& log, const storage::LogConfig& config, Timestamp now, const Differences& differences, bool trusts_clock) {
    Plan plan{.partition = log.partition(), .config = config, .state = {}, .decision = {}, .forecasts = {}};
    TM_TRY(plan.state, read_log_state(log, Times::all));
    plan.decision = decide_trusting(plan.state, config, now, differences, trusts_clock);
    plan.forecasts = forecast(plan.state, plan.decision, config, now, differences);
    return plan;
}

void Scheduler::deleted(const storage::Log& log, const SegmentReport& report) {
    log_info("[{}] {}", report.partition, report.text());
    {
        MutexLock lock(mutex_);
        for (auto* by_rule : {&notes_of(log).stats.deleted, &totals_.deleted}) {
            auto& deleted = by_rule->at(static_cast<std::size_t>(report.deletion.rule));
            ++deleted.segments;
            deleted.bytes += static_cast<std::uint64_t>(report.bytes);
            deleted.records += static_cast<std::uint64_t>(report.records);
        }
    }
    if (observer_) observer_(report);
}

Scheduler::Notes& Scheduler::notes_of(const storage::Log& log) {
    auto& notes = notes_[log.partition()];
    if (notes.topic_id != log.topic_id()) notes = Notes{.topic_id = log.topic_id(), .stats = {}, .warned_about = {}};
    return notes;
}

void Scheduler::note(const storage::Log& log, const Applied& applied, const storage::LogConfig& config) {
    const auto& [state, decision] = applied;
    std::int64_t left = 0;
    for (auto i = decision.deletions.size(); i < state.segments.size(); ++i) left += state.segments[i].bytes;
    const auto future = decision.future.empty() ? std::nullopt : std::optional{state.segments[decision.future.front()].base_offset};
    bool is_news = false;
    {
        MutexLock lock(mutex_);
        auto& notes = notes_of(log);
        auto& stats = notes.stats;
        stats.future_segments = decision.future.size();
        stats.held_back = decision.held_back;
        stats.next_deletion = decision.next_deletion;
        const bool limited = config.retention_bytes && *config.retention_bytes > 0;
        stats.size_percent = limited ? static_cast<std::int32_t>(100 * static_cast<double>(left) / static_cast<double>(*config.retention_bytes)) : 0;
        is_news = std::exchange(notes.warned_about, future) != future;
    }
    if (future && is_news) warn_about_future(log, *future);
}

void Scheduler::warn_about_future(const storage::Log& log, Offset base) {
    const auto segments = log.segments();
    const auto segment = std::ranges::find(*segments, base, &storage::Segment::base_offset);
    if (segment == segments->end()) return;
    const auto largest = (*segment)->largest_entry();
    if (!largest) return;
    log_warning("[{}] segment {} has a timestamp in the future, {}, in the batch that ends at offset {}: neither it nor what follows is deleted by retention.ms before that time (log.retention.future.timestamps)",
                log.partition(), base.value, largest->timestamp.value, largest->offset.value);
}

void Scheduler::reconfigure(RetentionOptions options) { options_.put(std::make_shared<const RetentionOptions>(options)); }

SchedulerStats Scheduler::stats() const {
    MutexLock lock(mutex_);
    auto out = totals_;
    for (const auto& [partition, notes] : notes_) {
        if (const auto log = logs_.find(partition); !log || log->topic_id() != notes.topic_id) continue;   // deleted, perhaps made anew
        out.partitions.push_back(notes.stats);
        out.partitions.back().partition = partition;
    }
    std::ranges::sort(out.partitions, {}, &PartitionStats::partition);
    return out;
}

}  // namespace tidemark::retention
