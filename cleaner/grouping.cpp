#include "cleaner/grouping.h"

#include <limits>

namespace tidemark::cleaner {

std::vector<Group> group(std::span<const SegmentSize> segments, const GroupLimits& limits) {
    std::vector<Group> groups;
    std::int64_t bytes = 0, offset_index = 0, time_index = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const auto& s = segments[i];
        // Its real last offset plays no part, and an empty segment has none (KAFKA-12889).
        const auto last = (i + 1 < segments.size() ? segments[i + 1].base_offset : limits.end) - 1;
        const bool joins = !groups.empty() && bytes + s.bytes <= limits.bytes_max &&
                           offset_index + s.offset_index_bytes <= limits.index_bytes_max && time_index + s.time_index_bytes <= limits.index_bytes_max &&
                           (s.bytes == 0 || last - segments[groups.back().first].base_offset <= std::numeric_limits<std::int32_t>::max());
        if (!joins) {
            groups.push_back({i, 0});
            bytes = offset_index = time_index = 0;
        }
        ++groups.back().count;
        bytes += s.bytes;
        offset_index += s.offset_index_bytes;
        time_index += s.time_index_bytes;
    }
    return groups;
}

}  // namespace tidemark::cleaner
