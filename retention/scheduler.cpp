#include "retention/scheduler.h"

#include <algorithm>

#include "base/log.h"
#include "storage/log_directory.h"

namespace tidemark::retention {
namespace {

bool is_gone(const Error& error) { return error.code == Errc::storage_offline || error.code == Errc::not_found; }

Offset end_of(const LogState& log, std::size_t i) { return i + 1 < log.segments.size() ? log.segments[i + 1].base_offset : log.log_end_offset; }

}  // namespace

Scheduler::Scheduler(storage::LogManager& logs, const Clock& clock, RetentionOptions options, Guard guard, Observer observer, ClockTrust clock_trust)
    : logs_(logs), clock_(clock), guard_(std::move(guard)), observer_(std::move(observer)), clock_trust_(std::move(clock_trust)),
      options_(std::make_shared<const RetentionOptions>(options)), started_(clock.since_boot()) {}

bool Scheduler::tick() {
    {
        MutexLock lock(mutex_);
        const auto now = clock_.since_boot();
        const auto options = options_.get();
        if (!next_run_) next_run_ = started_ + std::chrono::milliseconds{options->initial_delay_ms};
        if (now < *next_run_) return false;
        // A run that was late does not make the next ones crowd.
        const std::chrono::milliseconds interval{std::max<std::int64_t>(1, options->check_interval_ms)};
        *next_run_ += interval * ((now - *next_run_) / interval + 1);
    }
    run();
    return true;
}

void Scheduler::run() {
    const auto began = clock_.since_boot();
    std::vector<std::shared_ptr<storage::Log>> paused;
    for (const auto& log : logs_.logs()) {
        if (log->config()->compacts) continue;
        if (guard_.pause_if_idle && !guard_.pause_if_idle(log->partition())) continue;
        paused.push_back(log);
    }
    for (const auto& log : paused) {
        const auto done = apply(*log);
        if (!done && !is_gone(done.error())) {
            log_error("[{}] deleting old segments: {}", log->partition(), log->log_dir().handled(done.error(), "deleting old segments of " + log->partition().text()).message());
        }
        if (guard_.resume) guard_.resume(log->partition());
    }
    forget_gone_partitions();
    MutexLock lock(mutex_);
    ++totals_.runs;
    totals_.seconds += std::chrono::duration<double>(clock_.since_boot() - began).count();
}

Result<bool> Scheduler::apply(storage::Log& log) {
    TM_TRY(const auto applied, apply_retention(log, clock_.now(), options_.get()->differences, trusts_clock()));
    const auto& [state, decision] = applied;
    warn_about_future(log, state, decision);
    for (const auto& deletion : decision.deletions) {
        const auto& segment = state.segments[deletion.segment];
        if (observer_) observer_({log.partition(), segment.base_offset, end_of(state, deletion.segment), segment.bytes, segment.largest_record_timestamp, segment.modified, deletion});
    }
    note(log, state, decision, *log.config());
    return !decision.deletions.empty();
}

Result<Plan> Scheduler::plan(const storage::Log& log, const storage::LogConfig* instead) const {
    TM_TRY(auto state, read_log_state(log));
    const auto config = log.config();
    auto decision = decide_trusting(state, instead ? *instead : *config, clock_.now(), options_.get()->differences, trusts_clock());
    return Plan{log.partition(), std::move(state), std::move(decision)};
}

void Scheduler::note(const storage::Log& log, const LogState& state, const Decision& decision, const storage::LogConfig& config) {
    MutexLock lock(mutex_);
    auto& stats = notes_[log.partition()].stats;
    stats.partition = log.partition();
    std::int64_t left = 0;
    for (const auto& segment : state.segments) left += segment.bytes;
    for (const auto& deletion : decision.deletions) {
        const auto bytes = state.segments[deletion.segment].bytes;
        left -= bytes;
        for (auto* deleted : {&stats.deleted, &totals_.deleted}) {
            auto& by_rule = deleted->at(static_cast<std::size_t>(deletion.rule));
            ++by_rule.segments;
            by_rule.bytes += static_cast<std::uint64_t>(bytes);
        }
    }
    stats.future_segments = decision.future.size();
    stats.held_back = decision.held_back;
    stats.next_deletion = decision.next_deletion;
    const bool limited = config.retention_bytes && *config.retention_bytes > 0;
    stats.size_percent = limited ? static_cast<std::int32_t>(100 * static_cast<double>(left) / static_cast<double>(*config.retention_bytes)) : 0;
}

void Scheduler::warn_about_future(const storage::Log& log, const LogState& state, const Decision& decision) {
    MutexLock lock(mutex_);
    auto& warned = notes_[log.partition()].warned_about;
    if (decision.future.empty()) {
        warned.reset();
        return;
    }
    const auto& segment = state.segments[decision.future.front()];
    if (std::exchange(warned, segment.base_offset) == segment.base_offset) return;
    log_warning("[{}] segment {} has a timestamp in the future, {}: neither it nor what follows is deleted by retention.ms before that time (log.retention.future.timestamps)",
                log.partition(), segment.base_offset.value, segment.largest_record_timestamp->value);
}

void Scheduler::forget_gone_partitions() {
    MutexLock lock(mutex_);
    std::erase_if(notes_, [&](const auto& entry) { return !logs_.find(entry.first); });
}

void Scheduler::reconfigure(RetentionOptions options) { options_.put(std::make_shared<const RetentionOptions>(options)); }

SchedulerStats Scheduler::stats() const {
    MutexLock lock(mutex_);
    auto out = totals_;
    for (const auto& [partition, notes] : notes_) {
        out.partitions.push_back(notes.stats);
        out.partitions.back().partition = partition;
    }
    std::ranges::sort(out.partitions, {}, &PartitionStats::partition);
    return out;
}

}  // namespace tidemark::retention
