/// What a consumer group's subscriptions come to in the cluster's topics. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "coordinator/group/consumer/assignor.h"
#include "coordinator/group/consumer/consumer_group.h"
#include "coordinator/group/consumer/refusal.h"

namespace tidemark::metadata {
class Image;
}

namespace tidemark::coordinator {

/// Of all topics that the group subscribes to and that exist.
std::int64_t metadata_hash(const ConsumerGroup&, const metadata::Image&);

std::set<Uuid> subscribed_topic_ids(const ConsumerGroup&, const ConsumerMember&, const metadata::Image&);

AssignmentInput assignment_input(const ConsumerGroup&, const metadata::Image&);

/// What follows from a member's new expression (group-coordinator 6.6).
struct RegexStep {
    bool changed = false;       ///< it is another one than before
    bool known = false;         ///< and its topics are known already, or it is none
    bool drop_before = false;   ///< nobody uses the old one any more
    bool resolve = false;       ///< it is time to match all expressions against all topics
};
struct RegexChange {
    const std::string& before;
    const std::string& after;
    Timestamp now{};
    Offset image{};             ///< of the present image
    std::int64_t refresh_interval_ms = 600'000;
};
/// Asked before the change is made. Refusals: invalid_regular_expression, for one that is new to the group.
Refusable<RegexStep> regex_step(const ConsumerGroup&, const RegexChange&);

/// Expressions are matched no more often than this, and not before something has changed.
inline constexpr std::int64_t regex_pause_ms = 10'000;

}  // namespace tidemark::coordinator
