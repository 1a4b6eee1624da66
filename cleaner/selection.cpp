// 1. The cleanable range: from the checkpoint, repaired where it lies outside the log, up to the least of last stable
//    offset, active segment and the first segment that is too young for min.compaction.lag.ms (KIP-58).
// 2. Per dirty segment an estimate of when its oldest record came; the earliest of them plus max.compaction.lag.ms is the
//    log's deadline (KIP-354).
// 3. Bytes below and in the range give the dirty ratio.
// 4. Eligible is what is past its deadline and has cleanable bytes, or is dirtier than its topic allows.
#include "cleaner/selection.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/assert.h"

namespace tidemark::cleaner {
namespace {

using Segments = std::span<const SegmentState>;

std::int64_t saturating_sub(std::int64_t a, std::int64_t b) {
    std::int64_t r;
    if (!__builtin_sub_overflow(a, b, &r)) return r;
    return b > 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
    std::int64_t r;
    if (!__builtin_add_overflow(a, b, &r)) return r;
    return b < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
}

/// Index of the segment that holds `offset`, or of the first when it lies below all.
std::size_t floor_index(Segments segments, Offset offset) {
    const auto above = std::ranges::upper_bound(segments, offset, {}, &SegmentState::base_offset);
    return above == segments.begin() ? 0 : static_cast<std::size_t>(above - segments.begin()) - 1;
}

/// The segments below the active one, from the one that holds `from` on; none when `from` lies in the active one.
Segments closed_from(Segments segments, Offset from) {
    const auto closed = segments.first(segments.size() - 1);
    if (from >= segments.back().base_offset) return {};
    return closed.subspan(floor_index(segments, from));
}

void decide_range(const LogState& log, const storage::LogConfig& config, Timestamp now, CleaningDecision& d) {
    d.first_dirty = log.checkpoint.value_or(log.log_start_offset);
    if (d.first_dirty < log.log_start_offset || d.first_dirty > log.log_end_offset) {
        d.repair_is_unexpected = d.first_dirty > log.log_end_offset || !config.deletes;
        d.first_dirty = log.log_start_offset;
        d.repaired_checkpoint = d.first_dirty;
    }
    Offset limit = log.segments.back().base_offset;
    if (log.last_stable_offset < limit) {
        limit = log.last_stable_offset;
        d.held_by = HeldBy::open_transaction;
    }
    if (config.min_compaction_lag_ms > 0) {
        const Timestamp young{saturating_sub(now.value, config.min_compaction_lag_ms)};
        const auto closed = closed_from(log.segments, d.first_dirty);
        const auto first = std::ranges::find_if(closed, [&](const SegmentState& s) { return s.largest_timestamp() > young; });
        if (first != closed.end() && first->base_offset < limit) {
            limit = first->base_offset;
            d.held_by = HeldBy::min_compaction_lag;
        }
    }
    d.first_uncleanable = std::max(d.first_dirty, limit);
    d.cleanable_end = log.segments[floor_index(log.segments, d.first_uncleanable)].base_offset;
}

/// D3, KIP-354: when the oldest record of segments[i] is taken to have come.
std::optional<Timestamp> estimate_at(Segments segments, std::size_t i, bool is_first_dirty, const storage::LogConfig& config, const Differences& differences) {
    const auto& segment = segments[i];
    if (segment.bytes == 0) return std::nullopt;
    if (!differences.estimate_missing_timestamps) return segment.first_batch_timestamp;
    // A clock from the future must not postpone a deadline.
    const Timestamp latest = segment.first_append.value_or(segment.modified);
    if (segment.first_batch_timestamp) return std::min(*segment.first_batch_timestamp, latest);
    if (segment.first_append) return segment.first_append;
    if (!is_first_dirty && i > 0) return std::min(segments[i - 1].largest_timestamp(), latest);
    const auto roll_limit = std::min(config.segment_ms, config.max_compaction_lag_ms);
    return std::min(Timestamp{saturating_sub(segment.largest_timestamp().value, roll_limit)}, latest);
}

void decide_deadline(const LogState& log, const storage::LogConfig& config, Timestamp now, const Differences& differences, CleaningDecision& d) {
    const auto closed = closed_from(log.segments, d.first_dirty);
    const auto first = log.segments.size() - 1 - closed.size();
    std::optional<Timestamp> earliest_held;
    for (std::size_t i = 0; i < closed.size(); ++i) {
        const auto estimate = estimate_at(log.segments, first + i, i == 0, config, differences);
        d.estimates.push_back(estimate);
        if (!estimate) continue;
        auto& earliest = closed[i].base_offset < d.cleanable_end ? d.earliest_cleanable : earliest_held;
        if (!earliest || *estimate < *earliest) earliest = estimate;
    }
    d.earliest_uncompacted = d.earliest_cleanable;
    if (earliest_held && (!d.earliest_uncompacted || *earliest_held < *d.earliest_uncompacted)) d.earliest_uncompacted = earliest_held;

    const auto lag = std::max<std::int64_t>(0, config.max_compaction_lag_ms);
    const auto until = saturating_sub(now.value, lag);
    const auto beyond = [&](std::optional<Timestamp> t) { return t && t->value < until ? saturating_sub(until, t->value) : 0; };
    d.delay_ms = beyond(d.earliest_uncompacted);
    d.overdue_ms = beyond(d.earliest_cleanable);
    if (config.max_compaction_lag_ms == storage::unlimited) return;
    if (d.earliest_cleanable) d.deadline = Timestamp{saturating_add(d.earliest_cleanable->value, lag)};
    if (earliest_held && (!d.earliest_cleanable || *earliest_held < *d.earliest_cleanable)) d.held_deadline = Timestamp{saturating_add(earliest_held->value, lag)};
}

void decide_bytes(const LogState& log, CleaningDecision& d) {
    const auto start = log.segments[floor_index(log.segments, std::min(d.first_dirty, d.cleanable_end))].base_offset;
    for (const auto& segment : log.segments) {
        if (segment.base_offset < d.first_dirty) d.clean_bytes += segment.bytes;
        if (segment.base_offset >= start && segment.base_offset < d.cleanable_end) d.cleanable_bytes += segment.bytes;
    }
}

/// D5: the longest expired horizon in the clean part, when a pass for it is allowed again.
std::optional<Timestamp> decide_horizon(const LogState& log, const storage::LogConfig& config, Timestamp now, std::int64_t backoff_ms, const CleaningDecision& d) {
    if (log.last_horizon_pass && saturating_sub(now.value, log.last_horizon_pass->value) < std::max(config.delete_retention_ms, backoff_ms)) return std::nullopt;
    std::optional<Timestamp> due;
    for (const auto& segment : Segments(log.segments).first(log.segments.size() - 1)) {
        if (segment.base_offset >= d.first_dirty) break;
        if (segment.earliest_horizon && *segment.earliest_horizon <= now && (!due || *segment.earliest_horizon < *due)) due = segment.earliest_horizon;
    }
    return due;
}

bool is_due(const Candidate& c, const CleaningSpeed& speed, Timestamp now) {
    const auto& d = *c.decision;
    if (!d.deadline || d.cleanable_bytes == 0) return false;
    return saturating_add(now.value, speed.milliseconds_for(d.total_bytes(), c.codec)) >= d.deadline->value;
}

std::optional<Why> reason(const Candidate& c, const CleaningSpeed& speed, Timestamp now, const Differences& differences) {
    const auto& d = *c.decision;
    if (d.total_bytes() == 0) return std::nullopt;
    if (differences.deadline_schedule) {
        if (d.overdue_ms > 0 && d.cleanable_bytes > 0) return Why::overdue;
        if (is_due(c, speed, now)) return Why::deadline_near;
    } else if (d.must_clean) {
        return Why::overdue;
    }
    if (d.above_ratio) return Why::dirty_ratio;
    if (differences.horizon_passes && d.horizon_due) return Why::horizon;
    return std::nullopt;
}

}  // namespace

const char* to_string(HeldBy v) noexcept {
    switch (v) {
        case HeldBy::active_segment: return "active segment";
        case HeldBy::open_transaction: return "open transaction";
        case HeldBy::min_compaction_lag: return "min.compaction.lag.ms";
    }
    return "?";
}

const char* to_string(Why v) noexcept {
    switch (v) {
        case Why::overdue: return "max.compaction.lag.ms exceeded";
        case Why::deadline_near: return "max.compaction.lag.ms near";
        case Why::dirty_ratio: return "dirty ratio";
        case Why::horizon: return "delete horizon passed";
        case Why::erasure: return "records below the log start";
    }
    return "?";
}

const char* to_string(IdleRoll v) noexcept {
    switch (v) {
        case IdleRoll::none: return "none";
        case IdleRoll::segment_ms: return "segment.ms";
        case IdleRoll::max_compaction_lag: return "max.compaction.lag.ms";
    }
    return "?";
}

CleaningDecision decide(const LogState& log, const storage::LogConfig& config, Timestamp now, std::int64_t backoff_ms, const Differences& differences) {
    TM_ASSERT(!log.segments.empty());
    CleaningDecision d;
    decide_range(log, config, now, d);
    decide_deadline(log, config, now, differences, d);
    decide_bytes(log, d);
    d.must_clean = d.delay_ms > 0 && d.cleanable_bytes > 0;
    d.above_ratio = d.ratio() > config.min_cleanable_dirty_ratio;   // false for NaN
    if (differences.horizon_passes) d.horizon_due = decide_horizon(log, config, now, backoff_ms, d);
    return d;
}

void CleaningSpeed::measured(record::Codec codec, std::int64_t bytes, double seconds) {
    if (bytes < 1 << 20 || seconds <= 0) return;
    auto& mean = bytes_per_second.at(static_cast<std::size_t>(codec));
    mean += (static_cast<double>(bytes) / seconds - mean) / 4;
}

std::int64_t CleaningSpeed::milliseconds_for(std::int64_t bytes, std::optional<record::Codec> codec) const {
    const auto speed = codec ? bytes_per_second.at(static_cast<std::size_t>(*codec)) : *std::ranges::min_element(bytes_per_second);
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(bytes) * 1000 / speed));
}

std::vector<Selected> schedule(std::span<const Candidate> candidates, const CleaningSpeed& speed, Timestamp now, const Differences& differences) {
    std::vector<Selected> chosen;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (const auto why = reason(candidates[i], speed, now, differences)) chosen.push_back({i, *why});
    }
    const auto before = [&](const Selected& a, const Selected& b) {
        const auto &x = *candidates[a.index].decision, &y = *candidates[b.index].decision;
        if (differences.deadline_schedule) {
            // Every overdue deadline is earlier than every one that is only near.
            const bool x_due = a.why <= Why::deadline_near, y_due = b.why <= Why::deadline_near;
            if (x_due != y_due) return x_due;
            if (x_due) return std::tie(*x.deadline, a.index) < std::tie(*y.deadline, b.index);
        }
        if (a.is_horizon_pass() != b.is_horizon_pass()) return b.is_horizon_pass();
        if (a.is_horizon_pass()) return std::tie(*x.horizon_due, a.index) < std::tie(*y.horizon_due, b.index);
        if (x.ratio() != y.ratio()) return x.ratio() > y.ratio();
        return a.index < b.index;
    };
    std::ranges::sort(chosen, before);
    return chosen;
}

std::optional<Selected> select_next(std::span<const Candidate> candidates, const CleaningSpeed& speed, Timestamp now, const Differences& differences) {
    const auto order = schedule(candidates, speed, now, differences);
    if (order.empty()) return std::nullopt;
    return order.front();
}

IdleRoll decide_idle_roll(std::span<const SegmentState> segments, Offset first_dirty, const storage::LogConfig& config,
                          std::optional<Timestamp> last_lag_roll, std::int64_t jitter_ms, Timestamp now, const Differences& differences) {
    TM_ASSERT(!segments.empty());
    const auto& active = segments.back();
    if (!differences.idle_roll || active.bytes == 0) return IdleRoll::none;
    const auto first_append = active.first_append.value_or(active.modified);
    if (saturating_sub(now.value, first_append.value) > config.segment_ms - jitter_ms) return IdleRoll::segment_ms;

    const auto lag = config.max_compaction_lag_ms;
    if (!config.compacts || lag == storage::unlimited || lag <= 0) return IdleRoll::none;
    if (last_lag_roll && saturating_sub(now.value, last_lag_roll->value) < lag) return IdleRoll::none;
    const auto last = segments.size() - 1;
    const bool is_first_dirty = floor_index(segments, first_dirty) == last;
    const auto earliest = estimate_at(segments, last, is_first_dirty, config, differences);
    return earliest && saturating_sub(now.value, earliest->value) > lag ? IdleRoll::max_compaction_lag : IdleRoll::none;
}

}  // namespace tidemark::cleaner
