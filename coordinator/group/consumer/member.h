/// A member of a consumer group (KIP-848), as its records of type 5 and 8 say it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/group/consumer/partitions.h"
#include "coordinator/group/group.h"

namespace tidemark::coordinator {

enum class MemberState : std::int8_t {
    stable = 0,
    unrevoked_partitions = 1,    ///< it has to give up `pending_revocation` before its epoch can rise
    unreleased_partitions = 2,   ///< it waits for partitions that others still hold
    unknown = 127,               ///< written by a later version
};

/// Member epochs that mean something else (KIP-848).
inline constexpr std::int32_t leaving_epoch = -1;
inline constexpr std::int32_t leaving_static_epoch = -2;

/// What remains of the classic protocol for a member that still speaks it (KIP-848's online migration).
struct ClassicMemberFacts {
    std::int32_t session_timeout_ms = 0;
    std::vector<ClassicProtocol> protocols;   ///< in its order of preference; their metadata is a ConsumerProtocolSubscription
    friend bool operator==(const ClassicMemberFacts&, const ClassicMemberFacts&) = default;
};

/// What the member says about itself: record type 5.
struct MemberFacts {
    std::optional<std::string> instance_id, rack_id;
    std::string client_id, client_host;
    std::vector<std::string> topics;       ///< subscribed by name, sorted
    std::string regex;                     ///< "" for none
    std::int32_t rebalance_timeout_ms = -1;
    std::optional<std::string> assignor;
    std::optional<ClassicMemberFacts> classic;
    friend bool operator==(const MemberFacts&, const MemberFacts&) = default;
};

/// What it holds: record type 8.
struct MemberAssignment {
    std::int32_t epoch = 0, previous_epoch = 0;
    MemberState state = MemberState::stable;
    HeldPartitions assigned, pending_revocation;
    friend bool operator==(const MemberAssignment&, const MemberAssignment&) = default;
};

struct ConsumerMember {
    std::string id;
    MemberFacts facts;
    MemberAssignment current;

    bool is_classic() const { return facts.classic.has_value(); }
    bool is_at(std::int32_t target_epoch) const { return current.state == MemberState::stable && current.epoch == target_epoch; }
    friend bool operator==(const ConsumerMember&, const ConsumerMember&) = default;
};

}  // namespace tidemark::coordinator
