#include "cleaner/chunk_reader.h"

#include <algorithm>

#include "record/batch.h"

namespace tidemark::cleaner {

ChunkReader::ChunkReader(const io::File& file, FilePosition from, std::int64_t end, std::vector<std::byte>& buffer, const BufferLimits& limits)
    : file_(file), at_(from), end_(end), buffer_(buffer), limits_(limits) {
    // Back to normal after a file with large batches.
    const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(limits.bytes, record::magic_end));
    if (buffer_.size() != bytes) {
        buffer_.resize(bytes);
        buffer_.shrink_to_fit();
    }
}

Result<Bytes> ChunkReader::read() {
    const auto wanted = std::min<std::int64_t>(static_cast<std::int64_t>(buffer_.size()), end_ - at_.value);
    TM_TRY(held_, file_.read(at_, MutableBytes(buffer_).first(static_cast<std::size_t>(wanted))));
    if (static_cast<std::int64_t>(held_) < wanted) return corrupt("the file is shorter than its segment");
    return Bytes(buffer_).first(held_);
}

Result<> ChunkReader::advance(std::size_t bytes) {
    at_ = at_ + static_cast<std::int64_t>(bytes);
    if (bytes == 0) return grow();
    return {};
}

Result<> ChunkReader::grow() {
    if (held_ < record::magic_end) {
        if (at_.value + static_cast<std::int64_t>(held_) >= end_) return corrupt("a batch is cut at the end of the segment");
        buffer_.resize(record::magic_end);
        return {};
    }
    const auto size = std::int64_t{load_be<std::int32_t>(buffer_.data() + 8)} + static_cast<std::int64_t>(record::log_overhead);
    if (size > end_ - at_.value) return corrupt("a batch is longer than what is left of the segment");
    const auto capacity = static_cast<std::int64_t>(buffer_.size());
    if (size <= capacity) return corrupt("a batch is not what its size says");
    auto limit = limits_.topic_message_bytes_max;
    if (capacity >= limit) limit = size;
    // Twice as much, but what one batch may have is enough.
    const auto next = std::min(2 * capacity, std::max(limit, limits_.broker_message_bytes_max));
    buffer_.resize(static_cast<std::size_t>(next > capacity ? next : size));
    return {};
}

Error ChunkReader::corrupt(const char* what) const { return {Errc::corrupt, "at " + std::to_string(at_.value) + ": " + what}; }

}  // namespace tidemark::cleaner
