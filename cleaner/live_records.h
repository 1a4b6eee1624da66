/// Which records of the dirty part are the latest of their keys, as far as the walk that builds the map can tell: then the
/// second walk need not read (and decompress) a batch that stays whole or goes whole, nor ask the map about the others.
///
/// One bit per offset of a batch says that a later record has the same key. Only batches worth it are followed: of the
/// current format, with several records, above the first dirty offset, and as many as there is room for. What is said of
/// a batch is what the map would say only while offsets rise from record to record, as those of any log do; where they do
/// not, nothing is said of any batch.
#pragma once

#include <vector>

#include "record/batch.h"

namespace tidemark::cleaner {

/// Life:    clear(), the first walk, the second walk. Threads: one.
/// Memory:  at most bytes_max: 32 bytes a batch and a bit per offset it spans.
class LiveRecords {
public:
    struct Batch {
        Offset base_offset{};
        std::int32_t last_offset_delta = 0;
        std::int32_t records = 0;                ///< all of them
        std::int32_t keyless = 0;
        std::int32_t tombstones = 0;
        std::int32_t superseded = 0;
        std::uint32_t first_word = 0;            ///< of its bits
    };
    static constexpr std::int64_t bytes_max_default = 16 << 20;
    static constexpr std::int32_t records_min = 4;

    explicit LiveRecords(std::int64_t bytes_max = bytes_max_default) : bytes_max_(bytes_max) {}

    /// Forgets everything. Batches that begin below `first_dirty` will not be followed.
    void clear(Offset first_dirty);

    // --- first walk --------------------------------------------------------------------------------------------------

    /// The batch whose records come next. Its number, which the map keeps beside each key; 0: it is not followed.
    std::uint32_t begin(const record::BatchView&);
    /// Its next record, also when it is not followed.
    void add(Offset offset, bool has_key, bool is_tombstone) {
        if (offset <= last_ || offset > batch_end_) give_up();
        last_ = offset;
        if (!open_) return;
        auto& batch = batches_.back();
        ++batch.records;
        batch.keyless += has_key ? 0 : 1;
        batch.tombstones += is_tombstone ? 1 : 0;
    }
    /// A later record has the key of the one at `offset` in that batch.
    void supersede(std::uint32_t number, Offset offset);
    /// The walk ended inside the batch: nothing is known of it.
    void abandon();

    // --- second walk -------------------------------------------------------------------------------------------------

    /// What is known of a batch; nullptr when nothing. They are asked for in the order of the first walk.
    const Batch* find(const record::BatchView&);
    bool is_superseded(const Batch& batch, Offset offset) const {
        const auto bit = static_cast<std::uint64_t>(offset - batch.base_offset);
        return (bits_[batch.first_word + bit / 64] >> (bit % 64) & 1) != 0;
    }

private:
    bool is_worth_it(const record::BatchView&) const;
    void give_up();

    std::int64_t bytes_max_;
    std::vector<Batch> batches_;
    std::vector<std::uint64_t> bits_;
    Offset first_dirty_{};
    Offset last_{-1};                            // of the records that came
    Offset batch_end_{-1};                       // last offset of the batch at hand
    std::size_t next_ = 0;                       // of the second walk
    bool open_ = false;                          // the batch at hand is followed
    bool gave_up_ = false;
};

}  // namespace tidemark::cleaner
