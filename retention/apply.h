/// From a Log to the plain values that the policy looks at, and from its decision to deleted segments.
#pragma once

#include <functional>

#include "retention/policy.h"
#include "storage/log.h"

namespace tidemark::retention {

/// Which times are read of segments that the page cache may not hold.
enum class Times : std::uint8_t {
    needed,               ///< by the rules that are on: nothing for policies without `delete`; file times where records have none
    needed_and_file,      ///< every file time as well: D8's `file-time`
    all,                  ///< whatever the policy: for those who want to show them
};

/// What policy.h looks at, of one log.
Result<LogState> read_log_state(const storage::Log&, Times = Times::needed);

/// One segment that went: for the log, the metrics and the audit trail.
struct SegmentReport {
    TopicPartition partition;
    Offset base_offset{};
    Offset end_offset{};                                ///< of the segment behind it, or the log's
    std::int64_t bytes = 0;
    std::int64_t records = 0;                           ///< offsets it spanned; of a compacted log, what its batches still held
    std::optional<Timestamp> largest_record_timestamp;
    std::optional<Timestamp> modified;                  ///< file time
    Deletion deletion;
    /// "segment 0 to 41 (1048576 bytes, 42 records, largest timestamp 1700000000000): retention.ms 1000: …".
    std::string text() const;
};

/// What retention did to one log: the log as it was judged, and what went of it.
struct Applied {
    LogState state;
    Decision decision;
};
/// Judges and deletes, one call of Log::delete_oldest_segments() per rule that fired; an active segment that goes is sealed
/// and judged again first. `trusts_clock` false (D23): only rules that do not ask what time it is. `deleted` is called for
/// each segment that left the log, also when the next could not.
Result<Applied> apply_retention(storage::Log&, Timestamp now, const Differences&, bool trusts_clock = true,
                                const std::function<void(const SegmentReport&)>& deleted = {});

/// The decision alone, with what a distrusted clock leaves of the rules.
Decision decide_trusting(const LogState&, const storage::LogConfig&, Timestamp now, const Differences&, bool trusts_clock);

}  // namespace tidemark::retention
