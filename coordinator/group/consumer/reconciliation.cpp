#include "coordinator/group/consumer/reconciliation.h"

#include <algorithm>

namespace tidemark::coordinator {

namespace {

/// Without a report the member is taken to own everything that it ever was given.
bool still_owns(const std::optional<Partitions>& owned, const HeldPartitions& revoked) {
    if (!owned) return true;
    return std::ranges::any_of(*owned, [&](const auto& entry) {
        return std::ranges::any_of(entry.second, [&](std::int32_t partition) { return holds(revoked, entry.first, partition); });
    });
}

MemberAssignment with_epoch(MemberAssignment current, std::int32_t epoch) {
    current.previous_epoch = current.epoch;
    current.epoch = epoch;
    return current;
}

/// Topics that it no longer subscribes to are taken away at the present epoch.
MemberAssignment unsubscribed(const ReconciliationInput& input) {
    auto next = input.current;
    bool changed = false;
    for (auto topic = next.assigned.begin(); topic != next.assigned.end();) {
        if (input.subscribed.contains(topic->first)) {
            ++topic;
            continue;
        }
        next.pending_revocation[topic->first].insert(topic->second.begin(), topic->second.end());
        topic = next.assigned.erase(topic);
        changed = true;
    }
    if (!changed) return input.current;
    next = with_epoch(std::move(next), input.current.epoch);
    if (still_owns(input.owned, next.pending_revocation)) {
        next.state = MemberState::unrevoked_partitions;
    } else {
        next.pending_revocation = input.current.pending_revocation;
    }
    return next;
}

MemberAssignment next_step(const ReconciliationInput& input) {
    const auto& current = input.current;
    HeldPartitions keep, revoke = current.assigned;
    std::vector<std::pair<Uuid, std::int32_t>> add;
    bool waits = false;
    for (const auto& [topic, partitions] : input.target) {
        if (!input.subscribed.contains(topic)) continue;
        for (const auto partition : partitions) {
            if (const auto held = revoke.find(topic); held != revoke.end() && held->second.contains(partition)) {
                auto entry = held->second.extract(partition);
                if (held->second.empty()) revoke.erase(held);
                keep[topic].insert(std::move(entry));
            } else if (input.is_held(topic, partition) && !holds(current.pending_revocation, topic, partition)) {
                waits = true;
            } else {
                add.emplace_back(topic, partition);
            }
        }
    }
    if (!revoke.empty() && still_owns(input.owned, revoke)) {
        auto next = with_epoch(current, current.epoch);
        next.state = MemberState::unrevoked_partitions;
        next.assigned = std::move(keep);
        next.pending_revocation = std::move(revoke);
        return next;
    }
    auto next = with_epoch(current, input.target_epoch);
    next.state = waits ? MemberState::unreleased_partitions : MemberState::stable;
    next.assigned = std::move(keep);
    for (const auto& [topic, partition] : add) next.assigned[topic][partition] = input.target_epoch;
    next.pending_revocation.clear();
    return next;
}

}  // namespace

Result<MemberAssignment> reconcile(const ReconciliationInput& input) {
    switch (input.current.state) {
        case MemberState::stable:
            if (input.current.epoch != input.target_epoch) return next_step(input);
            return input.subscription_changed ? unsubscribed(input) : input.current;
        case MemberState::unrevoked_partitions:
            if (!still_owns(input.owned, input.current.pending_revocation)) return next_step(input);
            return input.subscription_changed ? unsubscribed(input) : input.current;
        case MemberState::unreleased_partitions:
            return next_step(input);
        case MemberState::unknown:
            break;
    }
    if (!input.owned || !input.owned->empty()) return Error{Errc::invalid_argument, "the member is in an unknown state"};
    return next_step(input);
}

}  // namespace tidemark::coordinator
