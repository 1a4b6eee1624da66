/// Threads for what may wait for the disk: cold reads, topics made and deleted, searches by time.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace tidemark::daemon {

/// Threads: all members from any thread; stop() from the owner's.
class DiskPool {
public:
    explicit DiskPool(int threads);
    ~DiskPool();
    DiskPool(const DiskPool&) = delete;
    DiskPool& operator=(const DiskPool&) = delete;

    /// Jobs begin in the order given. After stop() they are dropped.
    void submit(std::function<void()> job) EXCLUDES(mutex_);
    /// Finishes what was submitted, then ends the threads.
    void stop() EXCLUDES(mutex_);

    struct Load {
        std::size_t waiting = 0, running = 0;
    };
    Load load() const EXCLUDES(mutex_);

private:
    void work() EXCLUDES(mutex_);

    mutable Mutex mutex_;
    Condition changed_;
    std::deque<std::function<void()>> jobs_ GUARDED_BY(mutex_);
    std::size_t running_ GUARDED_BY(mutex_) = 0;
    bool stopping_ GUARDED_BY(mutex_) = false;
    std::vector<std::thread> threads_;
};

}  // namespace tidemark::daemon
