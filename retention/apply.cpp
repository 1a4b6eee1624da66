#include "retention/apply.h"

#include "storage/segment.h"

namespace tidemark::retention {
namespace {

/// Consecutive deletions by the same rule go together, with the reason of the first.
std::size_t run_of_one_rule(const std::vector<Deletion>& deletions, std::size_t from) {
    auto to = from + 1;
    while (to < deletions.size() && deletions[to].rule == deletions[from].rule) ++to;
    return to - from;
}

}  // namespace

Decision decide_trusting(const LogState& state, const storage::LogConfig& config, Timestamp now, const Differences& differences, bool trusts_clock) {
    if (trusts_clock) return decide(state, config, now, differences);
    // Only what does not depend on the clock; the minimum timestamp is an absolute one.
    auto timeless = config;
    timeless.retention_ms.reset();
    return decide(state, timeless, now, differences);
}

Result<LogState> read_log_state(const storage::Log& log) {
    LogState state;
    const auto config = log.config();
    const bool needs_timestamps = config->deletes && (config->retention_ms || config->retention_min_timestamp);
    const auto segments = log.segments();
    state.log_start_offset = log.log_start_offset();
    state.high_watermark = log.high_watermark();
    state.log_end_offset = log.log_end_offset();
    for (const auto& segment : *segments) {
        SegmentState s;
        s.base_offset = segment->base_offset();
        s.bytes = segment->bytes();
        if (needs_timestamps) {
            TM_TRY(const auto largest, segment->largest_timestamp());
            using Source = storage::LargestTimestamp::Source;
            if (largest.source == Source::records) s.largest_record_timestamp = largest.value;
            s.timestamps_unknown = largest.source == Source::not_yet_known;
            TM_TRY(s.modified, segment->modified());
        }
        state.segments.push_back(s);
    }
    return state;
}

Result<Applied> apply_retention(storage::Log& log, Timestamp now, const Differences& differences, bool trusts_clock) {
    const auto config = log.config();
    TM_TRY(auto state, read_log_state(log));
    auto decision = decide_trusting(state, *config, now, differences, trusts_clock);
    if (!decision.deletions.empty() && decision.deletions.back().segment + 1 == state.segments.size()) {
        // The active segment goes as well. Sealed first and judged again: what came in meanwhile must not go unseen.
        TM_TRYV(log.roll());
        TM_TRY(state, read_log_state(log));
        decision = decide_trusting(state, *config, now, differences, trusts_clock);
    }
    for (std::size_t i = 0; i < decision.deletions.size();) {
        const auto count = run_of_one_rule(decision.deletions, i);
        TM_TRYV(log.delete_oldest_segments(count, decision.deletions[i].text()));
        i += count;
    }
    return Applied{std::move(state), std::move(decision)};
}

}  // namespace tidemark::retention
