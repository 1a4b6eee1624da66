/// Key → offset of its latest record, for the dirty part of one log: what a pass knows while it rewrites.
///
/// A hash table of fixed capacity over key hashes; the keys themselves are not kept. Slots come in groups of sixteen, with
/// one byte of each hash beside the slots, so that a look-up touches one or two cache lines at a load of 0.9 (the
/// arrangement is that of Abseil's Swiss tables):
///
///     tags   | 16 bytes: 0 empty, else 0x80 | 7 bits of the hash |  …        1 byte a slot
///     slots  | hash 8 | hash 7 | offset − base, 40 bits | note, 24 bits | …   23 bytes a slot
///
/// A note says which batch the record stands in (live_records.h); where offsets span more than 40 bits there are none.
///
/// Source: cleaner 4. Kafka's own map differs inside only; which keys fit is the same when `slots` and `load` are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cleaner/key_hash.h"

namespace tidemark::cleaner {

inline constexpr std::int64_t offset_map_slot_bytes = 24;

struct OffsetMapOptions {
    std::int64_t buffer_bytes = 134'217'728;   ///< of one thread: log.cleaner.dedupe.buffer.size / log.cleaner.threads
    double load = 0.9;                         ///< log.cleaner.io.buffer.load.factor, which is this map's despite its name
};

/// Threads: one at a time. Memory: none before prepare(), none after release(); pages are touched as keys arrive.
class OffsetMap {
public:
    OffsetMap(OffsetMapOptions, HashKey);

    /// (int)(slots × load), the number of keys it takes: Kafka's limit, whatever is allocated.
    std::int64_t limit() const { return limit_; }
    std::int64_t slots() const { return slots_; }
    std::int64_t size() const { return size_; }
    /// size() / slots(): what Kafka's buffer utilisation gauge shows.
    double utilization() const { return static_cast<double>(size_) / static_cast<double>(slots_); }
    bool full() const { return size_ >= limit_; }

    /// Empties it and makes room for a key at each offset of [base, end), or for limit() keys if that is less. Only such
    /// offsets will be put.
    void prepare(Offset base, Offset end);
    void release();

    KeyHash hash(Bytes key) const noexcept { return hash_key(key_, key); }
    /// Asks for the cache line of the tags that the calls below want of this hash.
    void prefetch(const KeyHash&) const noexcept;
    /// Looks at the tags, and asks for the slot that put() or get() will come to. Some keys ahead of them, some behind the above.
    void prefetch_slot(const KeyHash&) const noexcept;
    /// What put() replaced: an earlier record of the key.
    struct Replaced {
        Offset offset{};
        std::uint32_t note = 0;                // as it was given; 0 where there are no notes
    };
    static constexpr std::uint32_t note_max = (1u << 24) - 1;
    /// The last put of a key wins. Precondition: !full(), and an offset that prepare() was told of.
    std::optional<Replaced> put(const KeyHash&, Offset, std::uint32_t note = 0) noexcept;
    std::optional<Offset> get(const KeyHash&) const noexcept;

    /// The last offset that the map speaks for, records without a key and gaps included; -1 after prepare().
    Offset latest_offset() const { return latest_; }
    void set_latest_offset(Offset offset) { latest_ = offset; }

private:
    std::size_t group_of(const KeyHash&) const noexcept;
    std::uint64_t packed(Offset, std::uint32_t note) const noexcept;
    Replaced unpacked(std::uint64_t) const noexcept;

    const HashKey key_;
    const std::int64_t slots_;
    const std::int64_t limit_;
    std::int64_t size_ = 0;
    Offset latest_{-1};
    Offset base_{0};
    bool has_notes_ = true;
    std::int64_t room_ = 0;                    // keys that prepare() promised
    std::size_t groups_ = 0;                   // allocated
    struct Free {
        void operator()(std::byte*) const noexcept;
    };
    using Memory = std::unique_ptr<std::byte[], Free>;
    static Memory allocate(std::size_t bytes);

    Memory tags_;
    Memory entries_;
};

}  // namespace tidemark::cleaner
