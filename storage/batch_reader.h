/// Walks the batches of a `.log` file by the rules of record-format 1.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "io/file_system.h"
#include "record/batch.h"

namespace tidemark::storage {

/// Where one batch stands, and what of its header the indexes and readers ask for.
struct BatchPosition {
    FilePosition position{};
    std::int64_t bytes = 0;
    Offset base_offset{};                    ///< legacy entries: their last offset
    Offset last_offset{};
    Timestamp max_timestamp = no_timestamp;
    std::int32_t records = 1;                ///< of the header; a legacy entry counts as one
    LeaderEpoch leader_epoch = no_leader_epoch;
    std::optional<Timestamp> delete_horizon = {};
    FilePosition end() const { return position + bytes; }
};

/// Headers only. Threads: one at a time; the file may grow meanwhile, `end` is where this walk stops.
class HeaderWalk {
public:
    HeaderWalk(const io::File& file, FilePosition from, std::int64_t end) : file_(file), at_(from), end_(end) {}
    /// Nothing at the end and before an incomplete last batch. Errc::corrupt: a size field below 14, a header that its size
    /// does not hold.
    Result<std::optional<BatchPosition>> next();
    /// Where the next batch begins.
    FilePosition position() const { return at_; }

private:
    const io::File& file_;
    FilePosition at_;
    const std::int64_t end_;
    FilePosition held_at_{};
    std::size_t held_ = 0;
    std::array<std::byte, 4096> buffer_;
};

/// Whole batches, read in large pieces. A v2 batch whose magic byte was damaged (nothing covers it) is shown with magic 2.
class BatchWalk {
public:
    BatchWalk(const io::File& file, FilePosition from, std::int64_t end, std::size_t buffer_bytes = 256 * 1024)
        : file_(file), at_(from), end_(end), buffer_bytes_(buffer_bytes) {}
    /// The next batch; its bytes are good until the next call. Nothing at the end and before an incomplete last batch.
    /// Errc::corrupt as HeaderWalk; the CRC is not looked at.
    Result<std::optional<record::BatchView>> next();
    /// Where the batch that next() returned begins, and where the one after it does.
    FilePosition position() const { return last_at_; }
    FilePosition next_position() const { return at_; }

private:
    /// At least `bytes` from at_ on stand in the buffer, or all there are.
    Result<> fill(std::size_t bytes);
    std::size_t available() const { return held_ - used_; }

    const io::File& file_;
    FilePosition at_;
    FilePosition last_at_{};
    const std::int64_t end_;
    const std::size_t buffer_bytes_;
    std::vector<std::byte> buffer_;
    std::size_t used_ = 0, held_ = 0;        // the unread part of the buffer
};

}  // namespace tidemark::storage
