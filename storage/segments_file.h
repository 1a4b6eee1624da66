/// `tidemark-segments`: what a start, and the deadlines, need of sealed segments without reading them (D5).
///
///     tidemark-segments 1
///     orders 0 4711 1048576 1700000000000 5822 1699999999000 5800 1699999000000 -
///     topic, partition, base offset, bytes of the .log, its time, next offset, largest timestamp, its offset, first append
///     by the wall clock or '-', earliest delete horizon: '-' not scanned, 'none', or the time
///     crc32c 4b3f7a10
///
/// A line counts only while bytes and time of the file are still those. A file that cannot be read is worth nothing: it is
/// made anew.
#pragma once

#include "storage/recovery.h"

namespace tidemark::storage {

using SegmentsFile = std::map<TopicPartition, LogMemory>;

std::string format_segments_file(const SegmentsFile&);
/// Errc::corrupt.
Result<SegmentsFile> parse_segments_file(std::string_view text);

/// What is known of a log's segments; reads nothing of them but the file's time. Segments about which too little is known
/// are left out.
LogMemory memory_of(const Log&);

}  // namespace tidemark::storage
