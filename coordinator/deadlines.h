/// Timers of a state machine: deadlines by key. Moving one to a later time, which every heartbeat does, costs one store.
#pragma once

#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/state_machine.h"

namespace tidemark::coordinator {

/// Key: what the timer is for; hashable, ordered by nothing.
/// Threads: its state machine's.
template <class Key, class Hash = std::hash<Key>>
class Deadlines {
public:
    /// Sets the key's deadline, whatever it was before.
    void set(const Key& key, Moment deadline) {
        auto& timer = timers_[key];
        timer.deadline = deadline;
        // A later deadline keeps its old place in the queue and is moved when that comes up.
        if (!timer.queued || deadline < *timer.queued) enqueue(key, timer);
    }
    /// Sets it unless it is set already.
    void set_if_absent(const Key& key, Moment deadline) {
        if (!timers_.contains(key)) set(key, deadline);
    }
    void cancel(const Key& key) { timers_.erase(key); }
    std::size_t size() const { return timers_.size(); }

    /// The first key whose deadline is at or before `now`, which is no longer set; call until there is none.
    std::optional<Key> pop_due(Moment now) {
        while (!queue_.empty() && queue_.top().at <= now) {
            auto entry = queue_.top();
            queue_.pop();
            const auto found = timers_.find(entry.key);
            if (found == timers_.end() || found->second.queued != entry.at) continue;   // cancelled, or queued anew
            if (found->second.deadline > entry.at) {   // it was moved
                enqueue(entry.key, found->second);
                continue;
            }
            timers_.erase(found);
            return std::move(entry.key);
        }
        return std::nullopt;
    }
    /// At or before the earliest deadline.
    std::optional<Moment> next() const { return queue_.empty() ? std::nullopt : std::optional{queue_.top().at}; }

private:
    struct Timer {
        Moment deadline{};
        std::optional<Moment> queued = {};   // where its valid entry in the queue stands
    };
    struct Entry {
        Moment at{};
        Key key;
        bool operator<(const Entry& other) const { return at > other.at; }   // the earliest on top
    };
    void enqueue(const Key& key, Timer& timer) {
        timer.queued = timer.deadline;
        queue_.push({timer.deadline, key});
    }

    std::unordered_map<Key, Timer, Hash> timers_;
    std::priority_queue<Entry> queue_;
};

}  // namespace tidemark::coordinator
