/// From a Log to the plain values that selection looks at.
#pragma once

#include "cleaner/selection.h"
#include "storage/log.h"

namespace tidemark::cleaner {

/// Reads what decide() needs and no more: of segments far below the first dirty offset only what is in memory.
/// `checkpoint`: as it is stored. The fields that only the pool knows (codec, last_horizon_pass) stay empty.
Result<LogState> read_log_state(const storage::Log&, std::optional<Offset> checkpoint);
/// The segments alone, in detail from the one before `first_dirty` on.
Result<std::vector<SegmentState>> read_segment_states(const storage::Log&, Offset first_dirty);

/// D5: reads the headers (and the records of batches with a horizon) of one segment, and tells the segment what it found:
/// the earliest horizon of a batch that still holds a tombstone or a marker. Returns the bytes looked at.
Result<std::int64_t> scan_for_horizons(storage::Segment&);

}  // namespace tidemark::cleaner
