/// A contiguous piece of a log: `<base offset>.log` and the indexes that carry its name.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "record/batch.h"
#include "storage/batch_reader.h"
#include "storage/offset_index.h"
#include "storage/time_index.h"
#include "storage/transaction_index.h"

namespace tidemark::storage {

inline constexpr std::int64_t segment_bytes_limit = 2'147'483'647;   ///< of the file
inline constexpr std::int64_t relative_offset_max = 2'147'483'647;   ///< of offset − base

/// What a segment takes from its log's settings when it is made or opened.
struct SegmentOptions {
    std::int64_t index_bytes_max = 10'485'760;
    std::int64_t index_interval_bytes = 4096;
    std::int64_t preallocate_bytes = 0;      ///< 0: the file grows as it is written
    std::int64_t roll_jitter_ms = 0;         ///< this segment's own: already drawn
    bool check_indexes = true;               ///< D13
    bool rebuild_missing_time_index = true;  ///< D9
};

/// A segment's largest timestamp as retention and the cleaner's lag compare it (KIP-33).
struct LargestTimestamp {
    enum class Source : std::uint8_t {
        records,          ///< of a batch
        file_time,        ///< no batch has one: the time of the `.log`
        not_yet_known,    ///< the time index is missing and its rebuild has not run (D9): nothing may be deleted by it
    };
    Timestamp value = no_timestamp;
    Source source = Source::file_time;
};

/// Life:    create() or open(); append() while active; become_inactive(); then read-only. Deleting its files is the Log's
///          decision. A cleaned one is made by Log::create_cleaned_segment(), filled, finish_cleaned(), swapped in.
/// Threads: append(), become_inactive(), truncate_to(), recover(), the renames: under the Log's append lock, or by the only
///          owner (cleaner, loader). Const members from any thread at the same time: they see whole batches only.
/// Disk:    docs/storage-format.md#segment-files
class Segment {
public:
    /// New and empty; stray files of the same names are removed first. Only the `.log` is made now.
    static Result<std::shared_ptr<Segment>> create(OpenFiles&, const Clock&, std::shared_ptr<const DirectoryPath>, Offset base,
                                                   const SegmentOptions&, FileSuffix = FileSuffix::none);
    /// Which of its files a directory listing showed.
    struct Found {
        bool offset_index = false, time_index = false, transaction_index = false;
    };
    /// Opens what is there. Nothing but the file's length is read. Errc::corrupt above 2 GiB.
    static Result<std::shared_ptr<Segment>> open(OpenFiles&, const Clock&, std::shared_ptr<const DirectoryPath>, Offset base,
                                                 const SegmentOptions&, const Found&, FileSuffix = FileSuffix::none);
    ~Segment();

    Offset base_offset() const { return path_.base(); }
    /// Of whole batches that were appended; what readers may read.
    std::int64_t bytes() const { return bytes_.load(std::memory_order_acquire); }
    io::Path log_path() const { return path_.of(FileKind::log); }
    const SegmentPath& path() const { return path_; }

    // --- what is in it -----------------------------------------------------------------------------------------------

    /// Last offset + 1, the base when it is empty. Read from behind the last index entry once, then remembered.
    Result<Offset> next_offset() const;
    /// Time of last modification of the `.log`.
    Result<Timestamp> modified() const;
    /// The largest of its batches' max timestamps; nothing when there is none ≥ 0. Not known without its time index
    /// (D9): then nothing as well, and largest_timestamp() tells.
    Result<std::optional<Timestamp>> largest_record_timestamp() const;
    Result<LargestTimestamp> largest_timestamp() const;
    /// The largest timestamp and the last offset of the first batch that has it; (-1, base) when there is none.
    Result<TimeIndex::Entry> largest_entry() const;
    /// The max timestamp of the first batch; nothing when it is < 0 or there is no batch.
    Result<std::optional<Timestamp>> first_batch_timestamp() const;
    /// Wall clock of the first append, as far as it is known (D3): of this process or of `tidemark-segments`.
    std::optional<Timestamp> first_append_time() const;
    void set_first_append_time(Timestamp);
    /// What `tidemark-segments` remembers of a sealed segment, so that nobody reads its files for it.
    void remember(Offset next_offset, TimeIndex::Entry largest);
    struct Known {
        Offset next_offset{};
        TimeIndex::Entry largest;
    };
    /// The same, as far as it is known without reading.
    std::optional<Known> known() const;
    struct KnownTimestamps {
        std::optional<Timestamp> first_batch, largest;
    };
    /// first_batch_timestamp() and largest_record_timestamp(), as far as they are known without reading.
    KnownTimestamps known_timestamps() const;
    /// What a scan found (D5): nothing = not scanned; inner nothing = no batch has a horizon.
    std::optional<std::optional<Timestamp>> earliest_delete_horizon() const;
    void set_earliest_delete_horizon(std::optional<Timestamp>);

    /// Logical sizes: entries × entry size.
    Result<std::int64_t> offset_index_bytes() const;
    Result<std::int64_t> time_index_bytes() const;
    Result<std::vector<AbortedTransaction>> aborted_transactions() const { return transaction_index_.all(); }
    Result<> check_transaction_index() const { return transaction_index_.check(); }
    Result<TransactionIndex::Found> aborted_between(Offset from, Offset bound) const { return transaction_index_.search(from, bound); }

    // --- reading -----------------------------------------------------------------------------------------------------

    /// The open `.log`; holding it keeps it open, and readable after the segment was deleted.
    Result<std::shared_ptr<const io::File>> file() const;
    /// The first batch whose last offset ≥ `target`; nothing when there is none.
    Result<std::optional<BatchPosition>> find(Offset target) const;
    /// The batch at a position that is known to begin one; nothing at the end.
    Result<std::optional<BatchPosition>> batch_at(FilePosition) const;
    /// Largest index entry ≤ `target`: where a scan for it begins.
    Result<OffsetIndex::Entry> index_lookup(Offset target) const;
    Result<std::optional<OffsetIndex::Entry>> index_first_at_or_after(FilePosition) const;
    Result<TimeIndex::Entry> time_lookup(Timestamp target) const;

    // --- writing -----------------------------------------------------------------------------------------------------

    /// What one appended batch means to the indexes.
    struct AppendedBatch {
        std::int64_t bytes = 0;
        Offset last_offset{};
        Timestamp max_timestamp = no_timestamp;
    };
    /// Appends whole batches in one write and indexes each. Errc::offset_overflow when the last offset does not fit,
    /// Errc::invalid_argument when the file would exceed 2 GiB or (with `index_must_fit`, the cleaner's) an index is full.
    /// Errc::io or no_space: the file was cut back to what it was; is_damaged() when even that failed.
    Result<> append(Bytes batches, const std::vector<AppendedBatch>& each, bool index_must_fit = false);
    /// As above; the batches are parsed for what the indexes need.
    Result<> append(Bytes batches, bool index_must_fit = false);
    Result<> append_aborted(const AbortedTransaction& aborted) { return transaction_index_.append(aborted); }

    struct RollQuestion {
        std::int64_t segment_bytes = 0;
        std::int64_t segment_ms = 0;             ///< with max.compaction.lag.ms already in it
        std::int64_t append_bytes = 0;
        Timestamp append_max_timestamp = no_timestamp;
        Offset append_last_offset{};
        Timestamp now{};
    };
    /// Append-and-read 5: whether the append needs a new segment.
    Result<bool> should_roll_for(const RollQuestion&);
    std::int64_t roll_jitter_ms() const { return options_.roll_jitter_ms; }
    Timestamp created_at() const { return Timestamp{created_at_.load(std::memory_order_relaxed)}; }

    /// Forces the last time entry and cuts the indexes (and a preallocated file) to what they hold. What fails now (a full
    /// disk) is tried again by sync().
    Result<> become_inactive() EXCLUDES(seal_mutex_);
    /// Opens both indexes for appends at full size: the last segment of a log that was loaded.
    Result<> become_active(const SegmentOptions&);
    /// Cuts at the first batch that contains or follows `offset`. Returns the bytes that went.
    Result<std::int64_t> truncate_to(Offset offset);

    /// Both indexes empty and writable, the transaction index gone: recovery appends to them batch by batch.
    Result<> reset_indexes();
    /// Adds what one batch at `position` means to the indexes, as append() does. Recovery's.
    Result<> index_batch(FilePosition position, const AppendedBatch&);
    /// Cuts the file to `bytes`, trims the indexes, forces the last time entry. Recovery's end.
    Result<> finish_recovery(std::int64_t bytes);
    /// D9, D13: one index from the records, put in place at once; the other files stay. Nobody appends meanwhile.
    Result<> rebuild_time_index() const EXCLUDES(lazy_mutex_);
    Result<> rebuild_offset_index() const EXCLUDES(lazy_mutex_);
    /// Whether a rebuild of the time index was asked for (by largest_timestamp() of a segment without it).
    bool wants_time_index() const { return wants_time_index_.load(std::memory_order_acquire); }
    bool time_index_is_missing() const { return time_index_missing_.load(std::memory_order_acquire); }

    /// The cleaner's last step: become_inactive(), everything synced, the three files' times set.
    Result<> finish_cleaned(Timestamp modified);

    // --- disk --------------------------------------------------------------------------------------------------------

    /// Data only: what an acknowledgement needs.
    Result<> sync_log();
    /// Log and indexes: what the recovery point needs.
    Result<> sync();
    bool is_unsynced() const { return log_.is_unsynced(); }
    void start_writeback() const;
    /// Writing failed and could not be undone: what is in the file is not known.
    bool is_damaged() const { return damaged_.load(std::memory_order_acquire); }

    /// Renames the four files, `.log` first; missing index files are passed over. What failed in the middle can be tried again.
    Result<> rename_files(FileSuffix from, FileSuffix to);
    /// Unlinks them, `.log` first; all are tried.
    Result<> remove_files();
    void close_files();
    /// Since when it is no longer part of its log, on Clock::since_boot() (D26); nothing while it is.
    std::optional<std::chrono::milliseconds> deleted_since() const;
    void mark_deleted(std::chrono::milliseconds since_boot);

private:
    Segment(OpenFiles&, const Clock&, std::shared_ptr<const DirectoryPath>, Offset base, const SegmentOptions&, FileSuffix);

    Result<bool> is_to_be_used(const Result<>& loaded, FileKind index) const;
    Result<> ensure_offset_index() const EXCLUDES(lazy_mutex_);
    Result<> ensure_time_index() const EXCLUDES(lazy_mutex_);
    Result<> check_without_timestamps() const;
    Result<> ensure_writable();
    Result<std::optional<TimeIndex::Entry>> largest_locked() const REQUIRES(lazy_mutex_);
    Result<> note_batch(FilePosition, const AppendedBatch&, bool index_must_fit) REQUIRES(lazy_mutex_);
    Result<std::optional<BatchPosition>> find_from(FilePosition from, Offset target, std::int64_t end) const;
    Error in_log(Error) const;

    OpenFiles& files_;
    const std::shared_ptr<OpenFiles> keeps_files_;  // nothing when its owner promises to outlive all segments
    const Clock& clock_;
    SegmentPath path_;                              // constant but for the suffix
    SegmentOptions options_;                        // changed by become_active() under the append lock
    mutable LazyFile log_;
    mutable OffsetIndex offset_index_;
    mutable TimeIndex time_index_;
    TransactionIndex transaction_index_;
    std::atomic<std::int64_t> bytes_{0};            // published after the bytes are written
    std::atomic<std::int64_t> created_at_;
    std::atomic<bool> damaged_{false};
    mutable std::atomic<bool> time_index_missing_{false};
    mutable std::atomic<bool> wants_time_index_{false};
    std::atomic<bool> writable_{false};             // both indexes take entries. Append lock
    std::atomic<bool> trim_wanted_{false};          // become_inactive() has not succeeded yet (D12)
    std::int64_t bytes_since_index_entry_ = 0;      // append lock
    std::atomic<std::int64_t> first_append_time_{-1};
    std::atomic<std::int64_t> deleted_since_{-1};
    std::atomic<bool> horizon_known_{false};
    std::atomic<std::int64_t> horizon_{-1};

    Mutex seal_mutex_ ACQUIRED_BEFORE(lazy_mutex_);
    mutable Mutex lazy_mutex_;                      // what is read from the files when first asked
    mutable bool offset_index_ready_ GUARDED_BY(lazy_mutex_) = false;
    mutable bool time_index_ready_ GUARDED_BY(lazy_mutex_) = false;
    mutable std::optional<Offset> next_offset_ GUARDED_BY(lazy_mutex_);
    mutable std::optional<TimeIndex::Entry> largest_ GUARDED_BY(lazy_mutex_);
    mutable std::optional<std::int64_t> first_batch_timestamp_ GUARDED_BY(lazy_mutex_);   // -1: it has none
};

}  // namespace tidemark::storage
