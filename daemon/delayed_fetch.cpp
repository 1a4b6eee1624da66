#include "daemon/delayed_fetch.h"

#include <algorithm>

namespace tidemark::daemon {

void DelayedFetches::wait(const std::shared_ptr<Waiter>& waiter, std::span<const TopicPartition> partitions) {
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        auto& shard = shard_of(partitions[i]);
        MutexLock lock(shard.mutex);
        shard.waiters[partitions[i]].push_back({waiter, i});
        // Against wake(): either it sees the entry, or its append is seen by the look that follows this call.
        shard.entries.fetch_add(1);
    }
    waiting_.fetch_add(1, std::memory_order_relaxed);
}

void DelayedFetches::forget(const Waiter& waiter, std::span<const TopicPartition> partitions) {
    for (const auto& partition : partitions) {
        auto& shard = shard_of(partition);
        std::vector<Entry> gone;   // freed outside the lock: an entry may be its waiter's last owner
        MutexLock lock(shard.mutex);
        const auto at = shard.waiters.find(partition);
        if (at == shard.waiters.end()) continue;
        auto& entries = at->second;
        const auto keep = std::stable_partition(entries.begin(), entries.end(), [&](const Entry& entry) { return entry.waiter.get() != &waiter; });
        gone.assign(std::make_move_iterator(keep), std::make_move_iterator(entries.end()));
        entries.erase(keep, entries.end());
        shard.entries.fetch_sub(gone.size());
        if (entries.empty()) shard.waiters.erase(at);
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
}

void DelayedFetches::wake(const TopicPartition& partition) {
    auto& shard = shard_of(partition);
    // Read by a read-modify-write, so that it cannot be done before the append's own stores are seen.
    if (shard.entries.fetch_add(0) == 0) return;
    std::vector<Entry> woken;
    {
        MutexLock lock(shard.mutex);
        const auto at = shard.waiters.find(partition);
        if (at == shard.waiters.end()) return;
        woken = at->second;
    }
    for (const auto& entry : woken) entry.waiter->wake(entry.index);
}

}  // namespace tidemark::daemon
