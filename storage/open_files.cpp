#include "storage/open_files.h"

namespace tidemark::storage {
namespace {

constexpr int looked_at_max = 64;  // per file opened: those with unsynced writes do not make opening slow

}  // namespace

Result<> sync_names_in(io::FileSystem& files, const io::Path& directory) {
    auto synced = files.sync_directory(directory);
    if (synced) return synced;
    auto error = std::move(synced).error();
    error.code = Errc::io;
    return error;
}

void OpenFiles::opened(const LazyFile& file) {
    MutexLock lock(mutex_);
    if (file.listed_) return;
    file.place_ = open_.insert(open_.end(), &file);
    file.listed_ = true;
    for (int looked_at = 0; open_.size() > open_max_ && looked_at < looked_at_max; ++looked_at) {
        const auto* oldest = open_.front();
        if (oldest != &file && oldest->close_if_idle()) {
            open_.pop_front();
            oldest->listed_ = false;
        } else {
            open_.splice(open_.end(), open_, open_.begin());
        }
    }
    open_now_.store(open_.size(), std::memory_order_relaxed);
}

void OpenFiles::closed(const LazyFile& file) {
    MutexLock lock(mutex_);
    if (!file.listed_) return;
    open_.erase(file.place_);
    file.listed_ = false;
    open_now_.store(open_.size(), std::memory_order_relaxed);
}

LazyFile::~LazyFile() { files_.closed(*this); }

Result<std::shared_ptr<io::File>> LazyFile::open(io::OpenMode mode) const {
    std::shared_ptr<io::File> file;
    {
        MutexLock lock(mutex_);
        used_.store(true, std::memory_order_relaxed);
        if (file_) return file_;
        TM_TRY(auto opened, files_.file_system().open(path_.of(kind_), mode));
        file_ = std::move(opened);
        file = file_;
    }
    files_.opened(*this);  // never with mutex_ held: it asks other files for theirs
    return file;
}

bool LazyFile::close_if_idle() const {
    if (is_unsynced() || used_.exchange(false, std::memory_order_relaxed)) return false;
    if (!mutex_.try_lock()) return false;
    const bool idle = !is_unsynced();
    if (idle) file_.reset();
    mutex_.unlock();
    return idle;
}

Result<> LazyFile::sync() {
    MutexLock lock(sync_mutex_);
    const auto covered = writes_.load(std::memory_order_acquire);
    if (synced_.load(std::memory_order_acquire) == covered) return {};
    auto file = get();
    Result<> done = file ? (*file)->sync() : Result<>(std::move(file).error());
    if (done) {
        synced_.store(covered, std::memory_order_release);
        return {};
    }
    auto error = std::move(done).error();
    error.code = Errc::io;  // a full disk, too: what the system could not write it has forgotten
    return error;
}

void LazyFile::close() const {
    {
        MutexLock lock(mutex_);
        file_.reset();
    }
    files_.closed(*this);
}

}  // namespace tidemark::storage
