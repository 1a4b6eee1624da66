/// One of log.dirs: who owns it, whether it still works, and the work that its logs share: group commit, background
/// work, delayed deletes, the reserve for a full disk.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/uuid.h"
#include "io/file_system.h"
#include "storage/open_files.h"
#include "storage/options.h"

namespace tidemark::storage {

/// One log's part in a group commit.
class CommitTarget {
public:
    virtual ~CommitTarget() = default;
    /// Begins writeback of what sync_appended() will wait for.
    virtual void start_writeback() = 0;
    /// Brings everything appended before the call to the disk, and says up to which offset.
    virtual Result<Offset> sync_appended() = 0;
};

struct LogDirectoryStats {
    std::uint64_t syncs = 0;              ///< of a log in a group commit
    std::uint64_t cycles = 0;
    std::uint64_t sync_failures = 0;
    double sync_seconds = 0;              ///< of the cycles
};

/// Life:    constructed unlocked; lock(); start() gives it threads, stop() takes them away. Without threads a commit runs on
///          the thread that asks, and background work waits for run_background(): tests and tools.
///          Must outlive its logs.
/// Threads: all members from any thread; start and stop by the owner.
/// Errors:  fail() is final. From then on check() is Errc::storage_offline, commits that wait end with it.
class LogDirectory {
public:
    LogDirectory(io::FileSystem&, const Clock&, io::Path path, const StorageOptions&);
    ~LogDirectory();
    LogDirectory(const LogDirectory&) = delete;
    LogDirectory& operator=(const LogDirectory&) = delete;

    io::FileSystem& files() const { return files_; }
    const Clock& clock() const { return clock_; }
    const io::Path& path() const { return path_; }
    const StorageOptions& options() const { return options_; }
    OpenFiles& open_files() { return *open_files_; }
    Uuid id() const EXCLUDES(mutex_);
    void set_id(Uuid) EXCLUDES(mutex_);

    /// Takes `.lock`. Errc::locked when another process has it.
    Result<> lock() EXCLUDES(mutex_);
    void start(int sync_threads = 4) EXCLUDES(mutex_);
    /// Ends what waits, then the threads.
    void stop() EXCLUDES(mutex_);

    // --- failure -----------------------------------------------------------------------------------------------------

    bool is_offline() const { return offline_.load(std::memory_order_acquire); }
    /// Errc::storage_offline once it has failed.
    Result<> check() const;
    /// Takes it offline; the first call logs why and posts the hook: whoever fails may hold a log's lock.
    void fail(const Error& why, std::string_view doing) EXCLUDES(mutex_);
    void set_offline_hook(std::function<void()>) EXCLUDES(mutex_);
    enum class Checkpoint : std::uint8_t { recovery_points, log_starts };
    /// Writes that checkpoint of its logs now: recovery points before a truncation, after one was lowered; log starts after
    /// records were deleted by request. Whoever keeps the files sets the hook; without one there is nothing to write.
    Result<> write_now(Checkpoint) EXCLUDES(mutex_);
    void set_checkpoint_hook(std::function<Result<>(Checkpoint)>) EXCLUDES(mutex_);
    /// What a caller does with an error it cannot undo: Errc::io takes the directory offline and becomes storage_offline,
    /// no_space gives up the reserve; all else passes.
    Error handled(Error, std::string_view doing);

    // --- group commit ------------------------------------------------------------------------------------------------

    /// Calls `done` once all that `target` had appended before is on disk. Those who wait at the same time share one sync.
    void commit(std::shared_ptr<CommitTarget> target, std::function<void(Result<>)> done) EXCLUDES(mutex_);

    // --- background --------------------------------------------------------------------------------------------------

    /// Runs `work` soon, on the background thread.
    void post(std::function<void()> work) EXCLUDES(mutex_);
    /// Runs `work` when `delay` is over.
    void post_after(std::chrono::milliseconds delay, std::function<void()> work) EXCLUDES(mutex_);
    /// What the background thread does, once: posted work and what is due.
    void run_background() EXCLUDES(mutex_);

    // --- space (D12) -------------------------------------------------------------------------------------------------

    /// Makes the reserve file when there is room for it.
    void keep_reserve() EXCLUDES(reserve_mutex_);
    void give_up_reserve() EXCLUDES(reserve_mutex_);
    /// Runs `write`, and when the disk is full once more with the reserve given up: for what is small and goes on in any case,
    /// checkpoints and names.
    template <class Write>
    std::invoke_result_t<Write> with_reserve(Write write) {
        auto done = write();
        if (done || done.error().code != Errc::no_space) return done;
        give_up_reserve();
        return write();
    }
    /// What the reserve has left room for when it was given up is not for records: those that keep others going (committed
    /// offsets, markers) may take half of it, a producer's none. Errc::no_space when it would.
    enum class Records : std::uint8_t { of_producers, of_coordinators };
    Result<> check_room(Records, std::size_t bytes) const;

    LogDirectoryStats stats() const EXCLUDES(mutex_);

private:
    class SyncPool;
    struct Waiting {
        std::shared_ptr<CommitTarget> target;
        std::function<void(Result<>)> done;
    };
    struct Delayed {
        std::chrono::milliseconds due{};
        std::function<void()> work;
    };

    bool make_reserve() REQUIRES(reserve_mutex_);
    void commit_all(std::vector<Waiting>, SyncPool*) EXCLUDES(mutex_);
    Error offline_error() const;

    io::FileSystem& files_;
    const Clock& clock_;
    const io::Path path_;
    const StorageOptions options_;
    const std::shared_ptr<OpenFiles> open_files_;
    std::atomic<bool> offline_{false};

    mutable Mutex mutex_;
    Condition commits_wanted_;
    Condition background_wanted_;
    Uuid id_ GUARDED_BY(mutex_);
    std::unique_ptr<io::Lock> lock_ GUARDED_BY(mutex_);
    std::string why_offline_ GUARDED_BY(mutex_);
    std::function<void()> offline_hook_ GUARDED_BY(mutex_);
    std::function<Result<>(Checkpoint)> checkpoint_hook_ GUARDED_BY(mutex_);
    std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
    std::deque<std::function<void()>> posted_ GUARDED_BY(mutex_);
    std::vector<Delayed> delayed_ GUARDED_BY(mutex_);
    bool threads_run_ GUARDED_BY(mutex_) = false;
    LogDirectoryStats stats_ GUARDED_BY(mutex_);

    Mutex reserve_mutex_;
    bool reserve_kept_ GUARDED_BY(reserve_mutex_) = false;
    std::atomic<bool> reserve_is_missing_{false};   // there should be one, and is not

    std::jthread commit_thread_;
    std::jthread background_thread_;
};

}  // namespace tidemark::storage
