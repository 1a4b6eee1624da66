/// What several handlers need.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/broker.h"
#include "daemon/call.h"
#include "daemon/error_mapping.h"

namespace tidemark::daemon::handlers {

using metadata::Outcome;
using protocol::ErrorCode;

/// Authorized operations, bit n for operation n, without an authorizer: all that the kind of resource has.
inline constexpr std::int32_t topic_operations = 3576;
inline constexpr std::int32_t cluster_operations = 8096;
inline constexpr std::int32_t group_operations = 3400;

/// Internal topics are so before they exist.
bool is_internal_topic(std::string_view name);
/// The partition of __consumer_offsets where a group lives; nothing while there is no such topic.
std::optional<TopicPartition> partition_of_group(const metadata::Image&, std::string_view group_id);
/// 1 to 249 of [a-zA-Z0-9._-], not "." or "..".
bool is_legal_topic_name(std::string_view name);
/// "Topic name is invalid: …", for a name that is not legal.
std::string illegal_topic_name_text(std::string_view name);

/// A partition that this node leads, and its log.
struct FoundPartition {
    ErrorCode error = ErrorCode::none;                 ///< the others are set when there is none; `partition` also for 6, 74, 75
    const metadata::Partition* partition = nullptr;    ///< of the image
    std::shared_ptr<storage::Log> log = {};
};
/// `current_leader_epoch`: what the client believes, or -1 when it does not say.
FoundPartition find_partition(Broker&, const metadata::Image&, const TopicPartition&, LeaderEpoch current_leader_epoch = no_leader_epoch);

/// PRODUCER_FENCED is told as INVALID_PRODUCER_EPOCH in versions below `knows_fencing` (KIP-588).
constexpr ErrorCode producer_error(ErrorCode error, std::int16_t version, std::int16_t knows_fencing = 2) {
    return error == ErrorCode::producer_fenced && version < knows_fencing ? ErrorCode::invalid_producer_epoch : error;
}

inline constexpr std::string_view unknown_partition_text = "This server does not host this topic-partition.";

}  // namespace tidemark::daemon::handlers
