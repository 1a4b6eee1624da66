/// `<base>.txnindex`: the transactions whose ABORT marker stands in the segment (log-directory 2.4).
///
///      0        2              10             18            26                  34
///      | vers.0 | producer id  | first offset | last offset | last stable offset |   last offsets rise
#pragma once

#include <optional>
#include <vector>

#include "storage/open_files.h"

namespace tidemark::storage {

struct AbortedTransaction {
    ProducerId producer_id = no_producer_id;
    Offset first_offset{};         ///< of the transaction
    Offset last_offset{};          ///< of the ABORT marker
    Offset last_stable_offset{};   ///< of the partition right after it
    friend bool operator==(const AbortedTransaction&, const AbortedTransaction&) = default;
};

inline constexpr std::size_t aborted_transaction_bytes = 34;
void encode(const AbortedTransaction&, std::byte* to);
/// Errc::corrupt: a version other than 0. A cut entry at the end is ignored.
Result<std::vector<AbortedTransaction>> decode_transaction_index(Bytes content);

/// The file exists only when there is something in it; few segments have one, so it is read whole when asked.
///
/// Threads: append, truncate and reset under the Log's append lock; const members from any thread.
class TransactionIndex {
public:
    TransactionIndex(OpenFiles& files, const SegmentPath& path) : file_(files, path, FileKind::transaction_index), base_(path.base()) {}

    /// Says whether the directory listing showed the file.
    void set_exists(bool exists) { exists_.store(exists, std::memory_order_release); }
    bool exists() const { return exists_.load(std::memory_order_acquire); }

    /// Errc::invalid_argument when the last offset does not rise. An error of the disk leaves the entry in memory, to be
    /// written with the next one or by sync() (D12): it is returned nevertheless.
    Result<> append(const AbortedTransaction&);
    Result<std::vector<AbortedTransaction>> all() const;

    struct Found {
        std::vector<AbortedTransaction> aborted;
        bool complete = false;     ///< an entry's last stable offset reached the bound: later segments add nothing
    };
    /// The entries that overlap [from, bound).
    Result<Found> search(Offset from, Offset bound) const;
    /// Drops everything from the first entry whose last offset ≥ `offset`.
    Result<> truncate_to(Offset offset);
    Result<> reset();
    /// Errc::corrupt: a last offset below the base, or a wrong version.
    Result<> check() const;
    /// Writes what could not be written before (a full disk), and syncs.
    Result<> sync();
    bool is_unsynced() const { return file_.is_unsynced(); }
    void close() { file_.close(); }

private:
    Result<std::vector<AbortedTransaction>> read() const;
    Result<> hold() REQUIRES(mutex_);
    Result<> write_pending() REQUIRES(mutex_);

    mutable LazyFile file_;
    const Offset base_;
    std::atomic<bool> exists_{false};
    mutable Mutex mutex_;
    std::optional<std::vector<AbortedTransaction>> held_ GUARDED_BY(mutex_);   // all entries, once it was written to
    std::size_t written_ GUARDED_BY(mutex_) = 0;                               // of those held
};

}  // namespace tidemark::storage
