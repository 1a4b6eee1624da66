#include "cleaner/partition_states.h"

#include "base/assert.h"

namespace tidemark::cleaner {

const char* to_string(WorkState v) noexcept {
    switch (v) {
        case WorkState::in_progress: return "in progress";
        case WorkState::aborted: return "aborted";
        case WorkState::paused: return "paused";
    }
    return "?";
}

bool PartitionStates::begin(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    return entries_.try_emplace(partition).second;
}

bool PartitionStates::is_aborted(const TopicPartition& partition) const {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(partition);
    return entry != entries_.end() && entry->second.state == WorkState::aborted;
}

bool PartitionStates::done(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(partition);
    TM_ASSERT(entry != entries_.end() && entry->second.state != WorkState::paused);
    if (entry->second.state == WorkState::in_progress) {
        entries_.erase(entry);
        return true;
    }
    entry->second = {WorkState::paused, 1};
    changed_.notify_all();
    return false;
}

Result<> PartitionStates::abort_and_pause(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    const auto [entry, is_new] = entries_.try_emplace(partition, Entry{WorkState::paused, 1});
    if (is_new) return {};
    switch (entry->second.state) {
        case WorkState::paused: ++entry->second.pauses; return {};
        case WorkState::aborted: return Error{Errc::invalid_argument, partition.text() + ": its cleaning is being aborted already"};
        case WorkState::in_progress: break;
    }
    entry->second.state = WorkState::aborted;
    const auto is_paused = [&]() REQUIRES(mutex_) {
        const auto now = entries_.find(partition);
        return now != entries_.end() && now->second.state == WorkState::paused;
    };
    while (!is_paused()) changed_.wait(mutex_);
    return {};
}

bool PartitionStates::pause_if_idle(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    return entries_.try_emplace(partition, Entry{WorkState::paused, 1}).second;
}

Result<> PartitionStates::resume(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(partition);
    if (entry == entries_.end() || entry->second.state != WorkState::paused) return Error{Errc::invalid_argument, partition.text() + ": its cleaning is not paused"};
    if (--entry->second.pauses == 0) entries_.erase(entry);
    return {};
}

std::optional<WorkState> PartitionStates::state(const TopicPartition& partition) const {
    MutexLock lock(mutex_);
    const auto entry = entries_.find(partition);
    if (entry == entries_.end()) return std::nullopt;
    return entry->second.state;
}

std::vector<std::pair<TopicPartition, WorkState>> PartitionStates::all() const {
    MutexLock lock(mutex_);
    std::vector<std::pair<TopicPartition, WorkState>> out;
    for (const auto& [partition, entry] : entries_) out.emplace_back(partition, entry.state);
    return out;
}

}  // namespace tidemark::cleaner
