#include "daemon/disk_pool.h"

#include <utility>

#include "base/thread.h"

namespace tidemark::daemon {

DiskPool::DiskPool(int threads) {
    for (int i = 0; i < threads; ++i) {
        threads_.emplace_back([this, i] {
            name_this_thread("disk-" + std::to_string(i));
            work();
        });
    }
}

DiskPool::~DiskPool() { stop(); }

void DiskPool::submit(std::function<void()> job) {
    {
        MutexLock lock(mutex_);
        if (stopping_) return;
        jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
}

void DiskPool::stop() {
    {
        MutexLock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
}

DiskPool::Load DiskPool::load() const {
    MutexLock lock(mutex_);
    return {jobs_.size(), running_};
}

void DiskPool::work() {
    for (;;) {
        std::function<void()> job;
        {
            MutexLock lock(mutex_);
            while (jobs_.empty() && !stopping_) changed_.wait(mutex_);
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
            ++running_;
        }
        job();
        job = nullptr;   // what it holds goes before it counts as done
        MutexLock lock(mutex_);
        --running_;
    }
}

}  // namespace tidemark::daemon
