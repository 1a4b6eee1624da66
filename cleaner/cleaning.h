/// One pass over one log: build the map, rewrite groups of segments, swap them in.
///
/// Source: cleaner 5 to 8, record-format 8, KIP-534; D5, D7, D16 of docs/differences.md.
#pragma once

#include <functional>

#include "cleaner/filter.h"
#include "cleaner/live_records.h"
#include "cleaner/offset_map.h"
#include "cleaner/options.h"
#include "cleaner/throttle.h"
#include "storage/segment.h"

namespace tidemark::cleaner {

/// What is to be done, as selection decided it.
struct PassRequest {
    Offset first_dirty{};
    Offset cleanable_end{};                      ///< base of a segment
    bool horizons_only = false;                  ///< D5: leave the dirty part, only let horizons act on the clean one
    bool horizons_expire = true;                 ///< false while the clock is not to be believed (D23)
    /// An erasing pass, of any log: only the segment that holds this offset, the log's start, is rewritten, without what lies
    /// below. The active segment is left alone, and so are segments that lie below as a whole: they are retention's.
    std::optional<Offset> erase_below = {};

    bool is_ordinary() const { return !horizons_only && !erase_below; }
};

struct PassOptions {
    std::int64_t buffer_bytes = 262'144;         ///< of the read buffer, and of the write buffer
    std::int64_t broker_message_bytes_max = 1'048'588;
    Differences differences = {};
    /// Told after each read how many bytes that was; both walks count.
    std::function<void(std::int64_t bytes)> progress = {};
};

/// What one pass did. The first group of numbers is counted as Kafka counts (cleaner 12).
struct PassStats {
    Offset end_offset{};                         ///< the new first dirty offset
    std::int64_t map_bytes_read = 0;
    std::int64_t map_messages_read = 0;
    std::int64_t bytes_read = 0;
    std::int64_t bytes_written = 0;
    std::int64_t messages_read = 0;
    std::int64_t messages_written = 0;
    std::int64_t invalid_messages_read = 0;      ///< records without a key, dropped
    double buffer_utilization = 0;

    std::int64_t superseded = 0;                 ///< records dropped because their key came again
    std::int64_t tombstones_removed = 0;
    std::int64_t expired = 0;                    ///< D7
    std::int64_t erased = 0;                     ///< records below the log's start
    std::int64_t aborted_batches = 0;            ///< data batches of aborted transactions, whole
    std::int64_t markers_removed = 0;
    std::int64_t segments_before = 0;
    std::int64_t segments_after = 0;
    bool map_was_full = false;
    double seconds = 0;
    record::Codec codec = record::Codec::none;   ///< of most of the bytes
};

/// What one thread keeps from pass to pass: the map, what it knows of batches, the buffers.
struct Workspace {
    OffsetMap map;
    LiveRecords live = LiveRecords{};
    std::vector<std::byte> read_buffer = {};
    std::vector<std::byte> write_buffer = {};
    record::RecordReader reader = record::RecordReader{};
    record::BatchFilter filter = record::BatchFilter{};
};

/// Asked at least once per buffer that is read: Errc::aborted to stop the pass.
using KeepGoing = std::function<Result<>()>;

/// Runs the pass. On an error the groups that were swapped in stay, the files of the one at hand are removed, and the first
/// dirty offset is to stay where it was: a second pass over the same records does no harm.
///
/// Errors: Errc::aborted (asked for, or a segment was split because its offsets do not fit: try again); storage_offline, io,
///         no_space of the disk; all others mean that the log cannot be cleaned as it is.
/// Threads: one pass per log and workspace at a time. Whoever truncates or removes the log stops the pass first.
Result<PassStats> run_pass(storage::Log&, const PassRequest&, const PassOptions&, Workspace&, Throttle&, const Clock&, const KeepGoing&);

/// A segment whose offsets do not fit their 31 bits (left by an old broker) becomes several (log-directory 7.5).
Result<> split_segment(storage::Log&, const std::shared_ptr<storage::Segment>&);

}  // namespace tidemark::cleaner
