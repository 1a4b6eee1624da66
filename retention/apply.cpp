#include "retention/apply.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/batch_reader.h"
#include "storage/segment.h"

namespace tidemark::retention {
namespace {

/// Consecutive deletions by the same rule go together, with the reason of the first.
std::size_t run_of_one_rule(const std::vector<Deletion>& deletions, std::size_t from) {
    auto to = from + 1;
    while (to < deletions.size() && deletions[to].rule == deletions[from].rule) ++to;
    return to - from;
}

Result<> read_timestamps(const storage::Segment& segment, SegmentState& into) {
    using Source = storage::LargestTimestamp::Source;
    TM_TRY(const auto largest, segment.largest_timestamp());
    if (largest.source == Source::records) into.largest_record_timestamp = largest.value;
    else into.modified = largest.value;
    into.timestamps_unknown = largest.source == Source::not_yet_known;
    return {};
}

Result<> read_all_times(const storage::Segment& segment, SegmentState& into) {
    TM_TRYV(read_timestamps(segment, into));
    TM_TRY(into.modified, segment.modified());
    return {};
}

/// Compaction leaves gaps, so that the offsets say too much.
Result<std::int64_t> count_records(const storage::Segment& segment) {
    TM_TRY(const auto file, segment.file());
    storage::HeaderWalk walk(*file, FilePosition{0}, segment.bytes());
    for (std::int64_t records = 0;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) return records;
        records += batch->records;
    }
}

/// What is to be said of a segment, while its files are there. What cannot be read is left out: it goes all the same.
SegmentReport report_of(const storage::Log& log, const LogState& state, const Deletion& deletion, const storage::Segment& segment, bool compacts) {
    auto seen = state.segments[deletion.segment];
    (void)read_all_times(segment, seen);
    const auto last = deletion.segment + 1 == state.segments.size();
    SegmentReport report{.partition = log.partition(),
                         .base_offset = seen.base_offset,
                         .end_offset = last ? state.log_end_offset : state.segments[deletion.segment + 1].base_offset,
                         .bytes = seen.bytes,
                         .records = 0,
                         .largest_record_timestamp = seen.largest_record_timestamp,
                         .modified = seen.modified,
                         .deletion = deletion};
    report.records = report.end_offset - report.base_offset;
    if (!compacts) return report;
    if (const auto counted = count_records(segment)) report.records = *counted;
    return report;
}

}  // namespace

std::string SegmentReport::text() const {
    const auto largest = largest_record_timestamp ? fmt::format("largest timestamp {}", largest_record_timestamp->value)
                         : modified               ? fmt::format("no timestamps, file time {}", modified->value)
                                                  : std::string{"no timestamps"};
    return fmt::format("segment {} to {} ({} bytes, {} records, {}): {}", base_offset.value, end_offset.value - 1, bytes, records, largest, deletion.text());
}

Decision decide_trusting(const LogState& state, const storage::LogConfig& config, Timestamp now, const Differences& differences, bool trusts_clock) {
    if (trusts_clock) return decide(state, config, now, differences);
    // Only what does not depend on the clock; the minimum timestamp is an absolute one.
    auto timeless = config;
    timeless.retention_ms.reset();
    return decide(state, timeless, now, differences);
}

Result<LogState> read_log_state(const storage::Log& log, Times times) {
    LogState state;
    const auto config = log.config();
    const bool needs_timestamps = config->deletes && (config->retention_ms || config->retention_min_timestamp);
    const auto segments = log.segments();
    state.log_start_offset = log.log_start_offset();
    state.high_watermark = log.high_watermark();
    state.log_end_offset = log.log_end_offset();
    state.segments.reserve(segments->size());
    for (const auto& segment : *segments) {
        auto& s = state.segments.emplace_back();
        s.base_offset = segment->base_offset();
        s.bytes = segment->bytes();
        const bool never_goes = s.bytes == 0 && segment == segments->back();
        if (times == Times::all || (needs_timestamps && times == Times::needed_and_file)) {
            TM_TRYV(read_all_times(*segment, s));
        } else if (needs_timestamps && !never_goes) {
            TM_TRYV(read_timestamps(*segment, s));
        }
    }
    return state;
}

Result<Applied> apply_retention(storage::Log& log, Timestamp now, const Differences& differences, bool trusts_clock,
                                const std::function<void(const SegmentReport&)>& deleted) {
    const auto config = log.config();
    const auto times = differences.future_timestamps_use_file_time ? Times::needed_and_file : Times::needed;
    TM_TRY(auto state, read_log_state(log, times));
    auto decision = decide_trusting(state, *config, now, differences, trusts_clock);
    if (!decision.deletions.empty() && decision.deletions.back().segment + 1 == state.segments.size()) {
        // The active segment goes as well. Sealed first and judged again: what came in meanwhile must not go unseen.
        const auto reasons = std::move(decision.deletions);
        TM_TRYV(log.roll());
        TM_TRY(state, read_log_state(log, times));
        decision = decide_trusting(state, *config, now, differences, trusts_clock);
        // The rule that let it go while it was active stays its reason.
        std::copy_n(reasons.begin(), std::min(reasons.size(), decision.deletions.size()), decision.deletions.begin());
    }
    for (std::size_t i = 0; i < decision.deletions.size();) {
        const auto count = run_of_one_rule(decision.deletions, i);
        const auto before = log.segments();
        std::vector<SegmentReport> reports;
        for (std::size_t n = 0; deleted && n < std::min(count, before->size()); ++n)
            reports.push_back(report_of(log, state, decision.deletions[i + n], *(*before)[n], config->compacts));
        const auto done = log.delete_oldest_segments(count, decision.deletions[i].text());
        // With an error of the disk they may have left the log all the same.
        if (const auto after = log.segments(); done || after->front() != before->front())
            for (const auto& report : reports) deleted(report);
        TM_TRYV(done);
        i += count;
    }
    return Applied{std::move(state), std::move(decision)};
}

}  // namespace tidemark::retention
