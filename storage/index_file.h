/// What the offset index and the time index have in common: a file of fixed-size entries in rising order.
///
/// The active segment's file is as long as it may get (Kafka's form: segment.index.bytes, zeros at the end); its entries
/// are held in memory and written behind, a page at a time, and before every sync. A sealed one is as long as its
/// entries, and read by position: no mapping, no memory. Source: log-directory 2.3.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "storage/open_files.h"

namespace tidemark::storage {

/// Life:    start_empty() for a new or rebuilt one, load() for what a file holds. set_capacity() makes it writable.
/// Threads: append, trim, truncate, write and sync under the Log's append lock; const members from any thread.
class IndexFile {
public:
    IndexFile(OpenFiles& files, const SegmentPath& path, FileKind kind, std::size_t entry_bytes)
        : file_(files, path, kind), entry_bytes_(entry_bytes) {}

    /// Zero entries, room for `bytes_max`; a file that is there is emptied when the first entries are written or at trim().
    void start_empty(std::int64_t bytes_max) EXCLUDES(mutex_);
    /// Takes the length of the file for the number of entries. Errc::not_found when it is missing, Errc::corrupt when the
    /// length is no multiple of an entry's (`strict`; otherwise what is left over is not looked at, as in Kafka).
    Result<> load(bool strict) EXCLUDES(mutex_);
    bool is_loaded() const { return loaded_.load(std::memory_order_acquire); }
    /// Holds the entries in memory from here on, and lengthens the file at the next write (the segment becomes active).
    Result<> make_writable(std::int64_t bytes_max) EXCLUDES(mutex_);

    std::int64_t entries() const { return entries_.load(std::memory_order_acquire); }
    std::int64_t bytes() const { return entries() * static_cast<std::int64_t>(entry_bytes_); }
    /// How many fit: of a sealed one as many as there are.
    std::int64_t capacity() const { return capacity_.load(std::memory_order_acquire); }

    Result<> read(std::int64_t n, std::byte* entry) const EXCLUDES(mutex_);
    /// The number of entries at the front for which `is_before` holds; it must hold for a prefix of them.
    Result<std::int64_t> count_before(const std::function<bool(const std::byte*)>& is_before) const EXCLUDES(mutex_);

    /// Precondition: writable. The caller has checked the capacity.
    void append(const std::byte* entry) EXCLUDES(mutex_);
    /// Keeps the first `n`.
    Result<> truncate(std::int64_t n) EXCLUDES(mutex_);
    /// Writes what is only in memory. On an error the index counts as damaged (D12).
    Result<> write_pending() EXCLUDES(mutex_);
    bool has_many_pending() const EXCLUDES(mutex_);
    /// Writes all, cuts the file to its entries and lets the memory go: the segment is no longer active.
    Result<> trim() EXCLUDES(mutex_);
    Result<> sync() EXCLUDES(mutex_);
    void close() { file_.close(); }
    bool is_unsynced() const { return file_.is_unsynced(); }

private:
    Result<> write_pending_locked() REQUIRES(mutex_);

    mutable LazyFile file_;
    const std::size_t entry_bytes_;
    std::atomic<bool> loaded_{false};
    std::atomic<std::int64_t> entries_{0};
    std::atomic<std::int64_t> capacity_{0};
    mutable Mutex mutex_;
    bool resident_ GUARDED_BY(mutex_) = false;             // entries stand in memory_
    bool fresh_ GUARDED_BY(mutex_) = false;                // the file, if any, is to be emptied before it is written
    bool full_length_ GUARDED_BY(mutex_) = false;          // the file is as long as the capacity
    std::int64_t written_ GUARDED_BY(mutex_) = 0;          // entries that the file holds too
    std::vector<std::byte> memory_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::storage
