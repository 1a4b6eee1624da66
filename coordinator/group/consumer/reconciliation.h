/// The step that a member of a consumer group takes towards its target at a heartbeat (group-coordinator 6.4). Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "base/result.h"
#include "coordinator/group/consumer/member.h"

namespace tidemark::coordinator {

struct ReconciliationInput {
    const MemberAssignment& current;
    const Partitions& target;
    std::int32_t target_epoch = 0;
    /// Ids of the topics that it subscribes to now; the rest of the target is not for it.
    const std::set<Uuid>& subscribed;
    bool subscription_changed = false;
    /// Whether a member, this one included, holds the partition now.
    std::function<bool(const Uuid&, std::int32_t)> is_held;
    /// What the member says it owns; nothing when it did not say.
    const std::optional<Partitions>& owned;
};

/// Errors: invalid_argument when the member is in a state that only a later version knows and
/// still owns partitions: it has to give all up and join again.
Result<MemberAssignment> reconcile(const ReconciliationInput&);

}  // namespace tidemark::coordinator
