/// Where a pass writes: cleaned segments, one after another, in as few writes as possible.
///
/// Batches that stay as they are are written from the buffer they were read into, a run of neighbours at a time; rebuilt
/// ones are collected. Source: cleaner 7, D16.
#pragma once

#include "storage/log.h"
#include "storage/segment.h"

namespace tidemark::cleaner {

/// Life:    open(), add…() in offset order, settle() before the read buffer changes, finish(); or discard() after an error.
/// Threads: one.
class Output {
public:
    struct Options {
        std::int64_t buffer_bytes = 262'144;
        std::int64_t index_bytes_max = 0;        ///< segment.index.bytes
        std::int64_t index_interval_bytes = 0;
        bool overflow_continues = true;          ///< D16: a full segment is followed by another
    };
    Output(storage::Log& log, std::vector<std::byte>& buffer, const Options& options) : log_(log), options_(options), buffer_(buffer) { buffer_.clear(); }

    Result<> open(Offset base);
    /// A batch as it was read; its bytes must stay until settle(). `horizon`: its delete horizon, when it holds something
    /// that a later pass removes for it.
    Result<> add_unchanged(const record::BatchView&, std::optional<Timestamp> horizon);
    /// A batch that was made; its bytes are copied.
    Result<> add_built(const record::BatchView&, std::optional<Timestamp> horizon);
    /// An entry for the transaction index of the segment that takes the marker at its last offset, or of the last one.
    void add_aborted(const storage::AbortedTransaction& aborted) { aborted_.push_back(aborted); }
    /// What add_unchanged() was given is written or copied now.
    Result<> settle();
    /// Writes the rest, seals and syncs. `modified`: of the last source. `first_append`: of the oldest source.
    Result<storage::SegmentList> finish(Timestamp modified, Timestamp first_append);
    void discard();

    std::int64_t bytes() const { return bytes_; }

private:
    using Batch = storage::Segment::AppendedBatch;
    struct Pending {
        Batch batch;
        Offset first;                            // where a new segment for it may begin
        std::optional<Timestamp> horizon;
    };
    /// What the indexes of the segment at hand hold, batch by batch (append-and-read 6), to know when they are full.
    struct Forecast {
        std::int64_t bytes = 0, since_entry = 0, offset_entries = 0, time_entries = 0;
        Timestamp largest = no_timestamp, last_entry = no_timestamp;
    };

    static Pending pending(const record::BatchView&, std::optional<Timestamp> horizon);
    bool take_room(const Batch&);
    Result<> write(Bytes, std::span<const Pending>);
    Result<> append(Bytes, std::span<const Pending>);
    Result<> write_aborted(std::optional<Offset> up_to);
    Result<> flush_buffer();

    storage::Log& log_;
    const Options options_;
    std::vector<std::byte>& buffer_;
    std::vector<Pending> buffered_;              // what buffer_ holds
    Bytes run_;                                  // neighbours in the read buffer
    std::vector<Pending> run_batches_;
    std::vector<Batch> scratch_;
    std::vector<storage::AbortedTransaction> aborted_;
    storage::SegmentList segments_;
    std::vector<std::optional<Timestamp>> horizons_;   // the earliest of each segment
    Forecast forecast_;
    std::int64_t bytes_ = 0;
};

}  // namespace tidemark::cleaner
