/// A segment's file in pieces that begin and end with a batch.
///
/// Source: cleaner 8. The buffer grows for a batch that does not fit: to the topic's max.message.bytes first, and to what
/// the batch's size field says when that is not enough (the limit may have been lowered since it was written), in
/// doubling steps; never for a size that the file does not hold.
#pragma once

#include <vector>

#include "io/file_system.h"

namespace tidemark::cleaner {

struct BufferLimits {
    std::int64_t bytes = 262'144;                 ///< of the buffer, when nothing is unusual
    std::int64_t topic_message_bytes_max = 0;     ///< max.message.bytes
    std::int64_t broker_message_bytes_max = 0;    ///< message.max.bytes
};

/// Life: for one walk over one file; the buffer is lent. Threads: one.
class ChunkReader {
public:
    ChunkReader(const io::File& file, FilePosition from, std::int64_t end, std::vector<std::byte>& buffer, const BufferLimits& limits);

    bool at_end() const { return at_.value >= end_; }
    FilePosition position() const { return at_; }
    /// Bytes from position() on; the last batch in them may be cut.
    Result<Bytes> read();
    /// `bytes` of them were whole batches, and dealt with. With none, the buffer grows for the batch at the front, and the
    /// next read() shows more of it. Errc::corrupt: that batch says a size that cannot be.
    Result<> advance(std::size_t bytes);

private:
    Result<> grow();
    Error corrupt(const char* what) const;

    const io::File& file_;
    FilePosition at_;
    const std::int64_t end_;
    std::vector<std::byte>& buffer_;
    const BufferLimits limits_;
    std::size_t held_ = 0;
};

}  // namespace tidemark::cleaner
