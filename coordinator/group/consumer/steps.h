/// The decisions that heartbeats of both protocols share. Pure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/group/consumer/consumer_group.h"
#include "coordinator/group/consumer/refusal.h"
#include "coordinator/group/options.h"

namespace tidemark::metadata {
class Image;
}
namespace tidemark::protocol {
struct ConsumerGroupHeartbeatRequest;
namespace consumer_group_describe_response {
struct DescribedGroup;
}
}  // namespace tidemark::protocol

namespace tidemark::coordinator {

class ClassicGroup;

/// The checks of a heartbeat that need no group (group-coordinator 6.2).
Refusable<> check_heartbeat(const protocol::ConsumerGroupHeartbeatRequest&, std::int16_t version, const GroupOptions&);

std::vector<std::string> sorted_names(std::vector<std::string> names);
/// 22 characters of base64url.
std::string new_member_id();

/// Refusals: group_max_size_reached, for a new member; one that takes an instance over is none.
Refusable<> check_size(const ConsumerGroup&, const std::string& member_id, const std::optional<std::string>& instance_id, std::int32_t size_max);

/// Who a request says it is from.
struct SenderClaim {
    std::string member_id;
    const std::optional<std::string>& instance_id;
    std::int32_t epoch = 0;
    bool joins = false;      ///< it need not be a member yet, and may take an instance over
    bool classic = false;    ///< epochs are somebody else's business
    std::optional<Partitions> owned = {};
};
struct Sender {
    std::string id;
    std::optional<std::string> replaces;   ///< the member whose instance id it takes over
};
/// Refusals: unknown_member_id, fenced_member_epoch, unreleased_instance_id, fenced_instance_id (group-coordinator 6.2).
Refusable<Sender> find_sender(const ConsumerGroup&, const SenderClaim&);

/// The one that computes the next target.
std::string assignor_of(const ConsumerGroup&, const GroupOptions&);

/// Only members of the classic protocol stay when these leave, or when this one is replaced by one.
bool can_downgrade_without(const ConsumerGroup&, const std::vector<std::string>& leaving, const GroupOptions&);
bool can_downgrade_replacing(const ConsumerGroup&, const ConsumerMember& replaced, const GroupOptions&);

/// The classic group that the members become, but for those who leave; what they are assigned is their target.
/// Precondition: the others are classic members, and there are some.
std::unique_ptr<ClassicGroup> downgraded(const ConsumerGroup&, const std::vector<std::string>& leaving, const metadata::Image&, Timestamp now);

/// A consumer group for what the classic group was; records_of() it is what has to be written. Refusals: group_id_not_found,
/// with the reason why it stays a classic one.
Refusable<std::unique_ptr<ConsumerGroup>> upgraded(const ClassicGroup&, const metadata::Image&, const GroupOptions&);

/// What ConsumerGroupDescribe shows of it.
protocol::consumer_group_describe_response::DescribedGroup described(const ConsumerGroup&, const metadata::Image&, const GroupOptions&);

}  // namespace tidemark::coordinator
