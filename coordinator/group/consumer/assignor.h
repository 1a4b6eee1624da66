/// Server-side assignors (KIP-848): which member of a consumer group gets which partitions. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/group/consumer/partitions.h"

namespace tidemark::coordinator {

struct AssignmentInput {
    struct Member {
        std::optional<std::string> instance_id;   ///< static members are placed before dynamic ones
        std::vector<Uuid> topics;                 ///< subscribed and existing, ascending
        Partitions current;                       ///< its present target, which a sticky assignor starts from
    };
    std::map<std::string, Member> members;        ///< by member id
    std::map<Uuid, std::int32_t> topics;          ///< number of partitions of each topic that somebody subscribes to
    /// Every member subscribes to the same topics, by the rule of group-coordinator 6.8.
    bool same_subscription = true;
};

/// By member id; every member of the input is there.
using Assignment = std::map<std::string, Partitions>;

/// Consecutive runs per topic, members in order; the same index of topics with the same subscribers and size goes to the
/// same member. Not sticky.
Assignment assign_range(const AssignmentInput&);

/// Even shares that move as little as possible. With the same subscription: exactly ⌊P/M⌋ or ⌊P/M⌋ + 1 partitions each;
/// otherwise as even as the subscriptions allow within 16 passes.
Assignment assign_uniform(const AssignmentInput&);

struct Assignor {
    std::string_view name;
    Assignment (*assign)(const AssignmentInput&);
};

inline constexpr std::array<Assignor, 2> assignors{{{"uniform", &assign_uniform}, {"range", &assign_range}}};

/// Null when there is none of that name.
const Assignor* find_assignor(std::string_view name);

}  // namespace tidemark::coordinator
