/// The files that are open: a bounded number of descriptors, however many segments there are.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "io/file_system.h"
#include "storage/directory_names.h"

namespace tidemark::storage {

class LazyFile;

/// FileSystem::sync_directory(), Errc::io whatever the reason of a failure: nobody may try it again (D12).
Result<> sync_names_in(io::FileSystem&, const io::Path& directory);

/// Keeps at most about `open_max` files of LazyFiles open and closes those that were not used for longest (second chance).
/// One with unsynced writes is never closed: the system would report its failed write to nobody.
///
/// Threads: all members from any thread.
/// Life:    segments keep it when it is a shared_ptr's, since readers may keep segments for as long as they like.
class OpenFiles : public std::enable_shared_from_this<OpenFiles> {
public:
    explicit OpenFiles(io::FileSystem& file_system, std::size_t open_max = 512) : file_system_(file_system), open_max_(open_max) {}

    io::FileSystem& file_system() const { return file_system_; }
    std::size_t open_now() const { return open_now_.load(std::memory_order_relaxed); }
    /// Indexes that were missing or in doubt and were made anew from the records (D9, D13).
    std::uint64_t indexes_rebuilt() const { return indexes_rebuilt_.load(std::memory_order_relaxed); }
    void count_rebuilt_index() { indexes_rebuilt_.fetch_add(1, std::memory_order_relaxed); }

private:
    friend class LazyFile;
    void opened(const LazyFile&) EXCLUDES(mutex_);
    void closed(const LazyFile&) EXCLUDES(mutex_);

    io::FileSystem& file_system_;
    const std::size_t open_max_;
    std::atomic<std::size_t> open_now_{0};
    std::atomic<std::uint64_t> indexes_rebuilt_{0};
    Mutex mutex_;
    std::list<const LazyFile*> open_ GUARDED_BY(mutex_);   // the front is asked first whether it can go
};

/// Where a partition's files stand. The directory is renamed when the partition is deleted, while readers use it.
/// Threads: all members from any thread.
class DirectoryPath {
public:
    explicit DirectoryPath(io::Path path) : path_(std::move(path)) {}
    io::Path get() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return path_;
    }
    void set(io::Path path) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        path_ = std::move(path);
    }
private:
    mutable Mutex mutex_;
    io::Path path_ GUARDED_BY(mutex_);
};

/// The names of one segment's files: they share base offset and suffix, and keep them together when renamed.
/// Threads: all members from any thread; rename of the files themselves is Segment's.
class SegmentPath {
public:
    SegmentPath(std::shared_ptr<const DirectoryPath> directory, Offset base, FileSuffix suffix = FileSuffix::none)
        : directory_(std::move(directory)), base_(base), suffix_(suffix) {}

    Offset base() const { return base_; }
    FileSuffix suffix() const { return suffix_.load(std::memory_order_acquire); }
    void set_suffix(FileSuffix suffix) { suffix_.store(suffix, std::memory_order_release); }
    io::Path directory() const { return directory_->get(); }
    std::string name(FileKind kind) const { return segment_file_name(base_, kind, suffix()); }
    io::Path of(FileKind kind) const { return io::join(directory_->get(), name(kind)); }
    io::Path of(FileKind kind, FileSuffix suffix) const { return io::join(directory_->get(), segment_file_name(base_, kind, suffix)); }

private:
    const std::shared_ptr<const DirectoryPath> directory_;
    const Offset base_;
    std::atomic<FileSuffix> suffix_;
};

/// One file of a segment, opened when it is first needed and closed when others need the descriptor more.
///
/// Threads: all members from any thread. Writes go through get() under the Log's append lock.
class LazyFile {
public:
    LazyFile(OpenFiles& files, const SegmentPath& path, FileKind kind) : files_(files), path_(path), kind_(kind) {}
    ~LazyFile();
    LazyFile(const LazyFile&) = delete;
    LazyFile& operator=(const LazyFile&) = delete;

    /// Errc::not_found when it is missing. Holding the pointer keeps the file open.
    Result<std::shared_ptr<io::File>> get() const { return open(io::OpenMode::read_write); }
    /// As get(), but made when it is missing.
    Result<std::shared_ptr<io::File>> get_or_create() const { return open(io::OpenMode::create); }
    /// Makes it anew, empty.
    Result<std::shared_ptr<io::File>> create_truncated() const {
        close();
        return open(io::OpenMode::create_truncated);
    }
    /// Said before and after each write. From then on until a sync has returned the cache leaves the file open.
    void written() { writes_.fetch_add(1, std::memory_order_acq_rel); }
    bool is_unsynced() const { return synced_.load(std::memory_order_acquire) != writes_.load(std::memory_order_acquire); }
    /// Returns when all that was written before the call is on disk, at once when it is already. Errc::io whatever the
    /// reason of a failure: then nobody may try again, and the log directory goes offline (D12).
    Result<> sync() EXCLUDES(mutex_, sync_mutex_);
    void close() const EXCLUDES(mutex_);

private:
    friend class OpenFiles;
    Result<std::shared_ptr<io::File>> open(io::OpenMode) const EXCLUDES(mutex_);
    bool close_if_idle() const EXCLUDES(mutex_);

    OpenFiles& files_;
    const SegmentPath& path_;
    const FileKind kind_;
    mutable std::atomic<bool> used_{false};
    std::atomic<std::uint64_t> writes_{0};
    std::atomic<std::uint64_t> synced_{0};      // the number of writes that the last sync began after
    Mutex sync_mutex_ ACQUIRED_BEFORE(mutex_);  // who comes second waits for the sync of who came first
    mutable Mutex mutex_;
    mutable std::shared_ptr<io::File> file_ GUARDED_BY(mutex_);
    // Under OpenFiles' mutex: where it stands in the list.
    mutable std::list<const LazyFile*>::iterator place_;
    mutable bool listed_ = false;
};

}  // namespace tidemark::storage
