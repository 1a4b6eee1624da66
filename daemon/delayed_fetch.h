/// Fetches that wait for data: who waits for which partition, and waking them when something happened to it.
///
/// A waiter that was woken looks for itself whether it has waited enough; being woken for nothing costs that look.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/topic_partition.h"
#include "storage/log.h"

namespace tidemark::daemon {

/// Threads: all members from any thread. The observer's calls come from whichever thread appended or deleted.
class DelayedFetches final : public storage::LogObserver {
public:
    class Waiter {
    public:
        virtual ~Waiter() = default;
        /// Something happened to the partition that stands at `index` among those given to wait(). From any thread, maybe
        /// several at once, maybe after forget(). Must not block: it posts to the waiter's own loop.
        virtual void wake(std::size_t index) = 0;
    };

    /// Wakes `waiter` for each of `partitions` until forget(). Look again after this: what happened before went unseen.
    void wait(const std::shared_ptr<Waiter>& waiter, std::span<const TopicPartition> partitions);
    void forget(const Waiter& waiter, std::span<const TopicPartition> partitions);

    void end_offset_moved(const TopicPartition& partition) override { wake(partition); }
    void start_offset_moved(const TopicPartition& partition) override { wake(partition); }
    void log_gone(const TopicPartition& partition) override { wake(partition); }
    /// Leaders and epochs come with the image.
    void image_changed_for(const TopicPartition& partition) { wake(partition); }

    /// Fetches, not partitions.
    std::size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

private:
    struct Entry {
        std::shared_ptr<Waiter> waiter;
        std::size_t index = 0;
    };
    struct Shard {
        std::atomic<std::size_t> entries{0};   // so that an append that nobody waits for takes no lock
        Mutex mutex;
        std::unordered_map<TopicPartition, std::vector<Entry>> waiters GUARDED_BY(mutex);
    };
    Shard& shard_of(const TopicPartition& partition) { return shards_[std::hash<TopicPartition>{}(partition) % shards_.size()]; }
    void wake(const TopicPartition&);

    std::array<Shard, 64> shards_;
    std::atomic<std::size_t> waiting_{0};
};

}  // namespace tidemark::daemon
