#include "coordinator/group/consumer/steps.h"

#include <algorithm>
#include <cctype>

#include "base/uuid.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"

namespace tidemark::coordinator {

using protocol::ErrorCode;

std::vector<std::string> sorted_names(std::vector<std::string> names) {
    std::ranges::sort(names);
    const auto [first, last] = std::ranges::unique(names);
    names.erase(first, last);
    return names;
}

std::string new_member_id() { return Uuid::random().text(); }

Refusable<> check_size(const ConsumerGroup& group, const std::string& member_id, const std::optional<std::string>& instance_id, std::int32_t size_max) {
    if (instance_id && group.find_static(*instance_id) != nullptr) return {};
    if (group.members().size() < static_cast<std::size_t>(size_max) || group.find(member_id) != nullptr) return {};
    return Refusal{ErrorCode::group_max_size_reached, "The consumer group has reached its maximum capacity of " + std::to_string(size_max) + " members."};
}

namespace {

bool all_assigned(const std::optional<Partitions>& owned, const HeldPartitions& assigned) {
    return owned && std::ranges::all_of(*owned, [&](const auto& topic) {
        return std::ranges::all_of(topic.second, [&](std::int32_t partition) { return holds(assigned, topic.first, partition); });
    });
}

Refusable<> check_epoch(const MemberAssignment& current, std::int32_t epoch, const std::optional<Partitions>& owned) {
    if (epoch == 0 || epoch == current.epoch) return {};
    // The answer that raised its epoch may have been lost: then it says the epoch before, and owns nothing else.
    if (epoch == current.previous_epoch && epoch < current.epoch && all_assigned(owned, current.assigned)) return {};
    return Refusal{ErrorCode::fenced_member_epoch, "The consumer group member has epoch " + std::to_string(epoch) + ", the coordinator knows " + std::to_string(current.epoch) +
                                                       ". The member must abandon all its partitions and rejoin."};
}

}  // namespace

Refusable<Sender> find_sender(const ConsumerGroup& group, const SenderClaim& claim) {
    if (!claim.instance_id) {
        const auto* member = group.find(claim.member_id);
        if (member == nullptr && !claim.joins) return Refusal{ErrorCode::unknown_member_id, "Member " + claim.member_id + " is not a member of group " + group.id() + "."};
        if (member != nullptr && !claim.classic) TM_TRYV(check_epoch(member->current, claim.epoch, claim.owned));
        return Sender{claim.member_id, {}};
    }
    const auto* holder = group.find_static(*claim.instance_id);
    if (claim.joins) {
        if (holder == nullptr) return Sender{claim.member_id, {}};
        if (!claim.classic && !holder->is_classic() && holder->current.epoch != leaving_static_epoch) {
            return Refusal{ErrorCode::unreleased_instance_id, "Static member " + claim.member_id + " with instance id " + *claim.instance_id + " cannot join the group because the instance id is owned by member " +
                                                                  holder->id + "."};
        }
        return Sender{claim.member_id, holder->id};
    }
    if (holder == nullptr) return Refusal{ErrorCode::unknown_member_id, "Instance id " + *claim.instance_id + " is unknown."};
    if (holder->id != claim.member_id) {
        return Refusal{ErrorCode::fenced_instance_id, "Static member " + claim.member_id + " with instance id " + *claim.instance_id + " was fenced by member " + holder->id + "."};
    }
    if (!claim.classic) TM_TRYV(check_epoch(holder->current, claim.epoch, claim.owned));
    return Sender{claim.member_id, {}};
}

namespace {

bool is_blank(const std::string& text) {
    return std::ranges::all_of(text, [](unsigned char c) { return std::isspace(c) != 0; });
}

}  // namespace

Refusable<> check_heartbeat(const protocol::ConsumerGroupHeartbeatRequest& request, std::int16_t version, const GroupOptions& options) {
    const auto invalid = [](const char* why) { return Refusal{ErrorCode::invalid_request, why}; };
    if (is_blank(request.member_id) && (version >= 1 || request.member_epoch > 0 || request.member_epoch == leaving_epoch)) return invalid("MemberId can't be empty.");
    if (is_blank(request.group_id)) return invalid("GroupId can't be empty.");
    if (request.instance_id && is_blank(*request.instance_id)) return invalid("InstanceId can't be empty.");
    if (request.rack_id && is_blank(*request.rack_id)) return invalid("RackId can't be empty.");
    if (request.member_epoch == 0) {
        if (request.rebalance_timeout_ms == -1) return invalid("RebalanceTimeoutMs must be provided in first request.");
        if (!request.topic_partitions || !request.topic_partitions->empty()) return invalid("TopicPartitions must be empty when (re-)joining.");
        if (!request.subscribed_topic_names && !request.subscribed_topic_regex) return invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.");
    } else if (request.member_epoch == leaving_static_epoch && !request.instance_id) {
        return invalid("InstanceId can't be null.");
    } else if (request.member_epoch < leaving_static_epoch) {
        return invalid("MemberEpoch is invalid.");
    }
    if (request.server_assignor && std::ranges::find(options.assignors, *request.server_assignor) == options.assignors.end()) {
        return Refusal{ErrorCode::unsupported_assignor, "ServerAssignor " + *request.server_assignor + " is not supported."};
    }
    return {};
}

std::string assignor_of(const ConsumerGroup& group, const GroupOptions& options) { return group.preferred_assignor().value_or(options.assignors.front()); }

// --- migration ---------------------------------------------------------------------------------------------------------

namespace {

/// Whether only members of the classic protocol stay, so that the group can be a classic one again.
bool downgrades(const ConsumerGroup& group, const std::vector<std::string>& leaving, std::size_t size_after, const GroupOptions& options) {
    if (options.migration_policy != MigrationPolicy::bidirectional && options.migration_policy != MigrationPolicy::downgrade) return false;
    const auto leaves = [&](const std::string& id) { return std::ranges::find(leaving, id) != leaving.end(); };
    const auto classic_stay = std::ranges::count_if(group.members(), [&](const auto& entry) { return entry.second.is_classic() && !leaves(entry.first); });
    const auto all_stay = std::ranges::count_if(group.members(), [&](const auto& entry) { return !leaves(entry.first); });
    return classic_stay == all_stay && size_after > 0 && size_after <= static_cast<std::size_t>(options.size_max);
}

}  // namespace

bool can_downgrade_without(const ConsumerGroup& group, const std::vector<std::string>& leaving, const GroupOptions& options) {
    return downgrades(group, leaving, group.members().size() - leaving.size(), options);
}

bool can_downgrade_replacing(const ConsumerGroup& group, const ConsumerMember& replaced, const GroupOptions& options) {
    return !replaced.is_classic() && downgrades(group, {replaced.id}, group.members().size(), options);
}

}  // namespace tidemark::coordinator
