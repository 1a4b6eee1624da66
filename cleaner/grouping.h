/// Which segments of a pass are merged into one: a pure function over their sizes.
///
/// Source: cleaner 6. Sizes are those before the pass; what it removes makes room only for the next one.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"

namespace tidemark::cleaner {

struct SegmentSize {
    Offset base_offset{};
    std::int64_t bytes = 0;
    std::int64_t offset_index_bytes = 0;   ///< entries × 8, not the file's length
    std::int64_t time_index_bytes = 0;
};

struct GroupLimits {
    std::int64_t bytes_max = 0;            ///< segment.bytes
    std::int64_t index_bytes_max = 0;      ///< segment.index.bytes, for either index
    /// Where the cleanable part ends (CleaningDecision::cleanable_end): the last segment is taken to reach up to here.
    Offset end{};
};

/// Consecutive runs of `segments` as [first, count]; together they are all of them. A segment on its own always fits.
struct Group {
    std::size_t first = 0;
    std::size_t count = 0;
    friend bool operator==(const Group&, const Group&) = default;
};
std::vector<Group> group(std::span<const SegmentSize> segments, const GroupLimits&);

}  // namespace tidemark::cleaner
