/// Who works on which partition: cleaning, deletion, and those who must keep both away for a while.
///
///     none ──begin()──► in progress ──done()──► none
///       │                    │ abort_and_pause()
///       │                    ▼
///       │                 aborted ──done()──► paused(1)
///       └─abort_and_pause(), pause_if_idle()─► paused(1) ⇄ paused(n)        resume() takes one off
///
/// Source: cleaner 3.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/topic_partition.h"

namespace tidemark::cleaner {

enum class WorkState : std::uint8_t { in_progress, aborted, paused };
const char* to_string(WorkState) noexcept;

/// Threads: all members from any thread. abort_and_pause() waits for the thread that works on the partition.
class PartitionStates {
public:
    /// False when somebody works on it or paused it.
    bool begin(const TopicPartition&) EXCLUDES(mutex_);
    bool is_aborted(const TopicPartition&) const EXCLUDES(mutex_);
    /// Ends what begin() began. True: as it should; false: it was aborted, so its result does not count.
    bool done(const TopicPartition&) EXCLUDES(mutex_);

    /// Returns when nobody works on the partition; nobody will before resume(). May be nested. Errc::invalid_argument when
    /// somebody else is waiting for the same.
    Result<> abort_and_pause(const TopicPartition&) EXCLUDES(mutex_);
    /// Retention's: pauses what nobody works on and nobody paused.
    bool pause_if_idle(const TopicPartition&) EXCLUDES(mutex_);
    /// Errc::invalid_argument when it is not paused.
    Result<> resume(const TopicPartition&) EXCLUDES(mutex_);

    std::optional<WorkState> state(const TopicPartition&) const EXCLUDES(mutex_);
    std::vector<std::pair<TopicPartition, WorkState>> all() const EXCLUDES(mutex_);

private:
    struct Entry {
        WorkState state = WorkState::in_progress;
        int pauses = 0;
    };
    mutable Mutex mutex_;
    Condition changed_;
    std::unordered_map<TopicPartition, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::cleaner
