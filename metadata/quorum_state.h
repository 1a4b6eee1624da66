/// The raft layer's memory of elections: one line of JSON (metadata-log 1.2).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace tidemark::metadata {

struct QuorumState {
    int data_version = 0;                 ///< 0 without, 1 with dynamic voters (kraft.version 1)
    std::int32_t leader_id = -1;
    LeaderEpoch leader_epoch = 0;
    std::int32_t voted_id = -1;
};

/// Errors: corrupt (no JSON, no or an unknown data_version), which Kafka stops for too.
Result<QuorumState> parse_quorum_state(std::string_view text);
/// The state of a node that elected itself, as Kafka writes it, to the byte.
std::string quorum_state_text(const QuorumState&);

}  // namespace tidemark::metadata
