// Members of a consumer group that still speak the classic protocol (group-coordinator 6.7): a generation is their member
// epoch, a JoinGroup is a heartbeat with a subscription and owned partitions, a SyncGroup fetches what was assigned.
#include <algorithm>

#include "base/assert.h"
#include "base/log.h"
#include "coordinator/group/consumer/consumer_groups.h"
#include "coordinator/group/consumer/group_draft.h"
#include "coordinator/group/consumer/steps.h"
#include "coordinator/group/embedded_protocol.h"
#include "metadata/image.h"
#include "protocol/messages/heartbeat_request.h"
#include "protocol/messages/heartbeat_response.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/join_group_response.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/leave_group_response.h"
#include "protocol/messages/sync_group_request.h"
#include "protocol/messages/sync_group_response.h"

namespace tidemark::coordinator {

using namespace protocol;

namespace {

constexpr const char* protocol_type = "consumer";

Refusable<> check_join(const ConsumerGroup& group, const JoinGroupRequest& request, const GroupOptions& options) {
    if (request.session_timeout_ms < options.session_timeout_min_ms || request.session_timeout_ms > options.session_timeout_max_ms) {
        return Refusal{ErrorCode::invalid_session_timeout, "The session timeout is not within the broker's bounds."};
    }
    if (options.migration_policy == MigrationPolicy::disabled) {
        return Refusal{ErrorCode::inconsistent_group_protocol, "Cannot join the consumer group " + group.id() + " with the classic protocol because the group migration is disabled."};
    }
    TM_TRYV(check_size(group, request.member_id, request.group_instance_id, options.consumer_size_max));
    std::vector<std::string> names;
    for (const auto& protocol : request.protocols) names.push_back(protocol.name);
    if (request.protocol_type != protocol_type || names.empty() || !group.classic_members_support(names)) {
        return Refusal{ErrorCode::inconsistent_group_protocol, "Member " + request.member_id + "'s protocols are not supported."};
    }
    return {};
}

Partitions owned_partitions(const ConsumerProtocolSubscription& subscription, const metadata::Image& image) {
    Partitions owned;
    for (const auto& entry : subscription.owned_partitions) {
        if (const auto* topic = image.find(entry.topic); topic != nullptr && !entry.partitions.empty()) owned[topic->id] = entry.partitions;
    }
    return owned;
}

void merge(MemberFacts& facts, const JoinGroupRequest& request, std::int16_t version, const ConsumerProtocolSubscription& subscription, const Client& client) {
    if (request.group_instance_id) facts.instance_id = request.group_instance_id;
    if (subscription.rack_id) facts.rack_id = subscription.rack_id;
    // Version 0 knows one timeout only.
    if (version == 0) facts.rebalance_timeout_ms = request.session_timeout_ms;
    else if (request.rebalance_timeout_ms != -1) facts.rebalance_timeout_ms = request.rebalance_timeout_ms;
    facts.topics = sorted_names(subscription.topics);
    facts.regex.clear();
    facts.client_id = client.id;
    facts.client_host = client.host;
    facts.classic.emplace().session_timeout_ms = request.session_timeout_ms;
    for (const auto& protocol : request.protocols) facts.classic->protocols.push_back({protocol.name, protocol.metadata});
}

/// The classic member that a request is from. Refusals: unknown_member_id, fenced_instance_id.
Refusable<const ConsumerMember*> find_classic_member(const ConsumerGroup& group, const std::string& id, const std::optional<std::string>& instance_id) {
    TM_TRY(const auto sender, find_sender(group, {.member_id = id, .instance_id = instance_id, .epoch = 0, .joins = false, .classic = true, .owned = {}}));
    const auto* member = group.find(sender.id);
    if (!member->is_classic()) return Refusal{ErrorCode::unknown_member_id, "Member " + id + " does not use the classic protocol."};
    return member;
}

}  // namespace

Refusable<JoinGroupResponse> ConsumerGroups::classic_join(Context& context, ConsumerGroup& group, const Client& client, const JoinGroupRequest& request, std::int16_t version) {
    TM_TRYV(check_join(group, request, *options_));
    const bool is_new = request.member_id.empty();
    JoinGroupResponse response;
    response.member_id = is_new ? new_member_id() : request.member_id;
    if (is_new && !request.group_instance_id && version >= 4) {
        response.error_code = ErrorCode::member_id_required;
        return response;
    }
    TM_TRY(const auto sender, find_sender(group, {.member_id = response.member_id,
                                                  .instance_id = request.group_instance_id,
                                                  .epoch = 0,
                                                  .joins = is_new || !request.group_instance_id,
                                                  .classic = true,
                                                  .owned = {}}));
    const auto* holder = request.group_instance_id ? group.find_static(*request.group_instance_id) : nullptr;
    const bool downgrades = holder != nullptr && can_downgrade_replacing(group, *holder, *options_);
    const auto subscription = parse_subscription(request.protocols.front().metadata);
    if (!subscription) return Refusal{ErrorCode::unknown_server_error, "Malformed embedded consumer protocol: " + subscription.error().message()};
    const std::optional owned = owned_partitions(*subscription, *context.image());

    GroupDraft draft(group);
    if (sender.replaces) draft.replace_member(*sender.replaces, sender.id);
    const auto* known = group.find(sender.id);
    auto facts = known == nullptr ? MemberFacts{} : known->facts;
    merge(facts, request, version, *subscription, client);
    TM_TRY(const auto update, update_member(context, draft, sender.id, std::move(facts), false));

    response.protocol_type = protocol_type;
    response.protocol_name = request.protocols.front().name;
    const bool current = group.assignment_epoch() >= group.epoch();
    if (!downgrades) assign_if_due(context, draft);
    Change change;
    if (!downgrades || current) {
        TM_TRY(change, reconcile_member(context, draft, sender.id, update.subscription_changed, owned));
    }
    response.generation_id = group.find(sender.id)->current.epoch;
    if (downgrades) {
        TM_TRYV(downgrade(context, group, draft, {}, !current));
        return response;
    }
    TM_TRYV(write(context, draft));
    after_update(context, group, update);
    if (sender.replaces && *sender.replaces != sender.id) cancel_timers(group.id(), *sender.replaces);
    const auto& member = *group.find(sender.id);
    set_member_timers(context, group, member, change);
    deadlines_.cancel(key(group, member.id, Timer::join));
    deadlines_.set(key(group, member.id, Timer::sync), context.moment() + std::chrono::milliseconds{member.facts.rebalance_timeout_ms});
    return response;
}

Refusable<SyncGroupResponse> ConsumerGroups::classic_sync(Context& context, ConsumerGroup& group, const SyncGroupRequest& request) {
    TM_TRY(const auto* member, find_classic_member(group, request.member_id, request.group_instance_id));
    const auto& preferred = member->facts.classic->protocols.front();
    if (request.generation_id != member->current.epoch) return Refusal{ErrorCode::illegal_generation, "The generation of member " + member->id + " is another one."};
    if (request.protocol_type.value_or(protocol_type) != protocol_type || request.protocol_name.value_or(preferred.name) != preferred.name) {
        return Refusal{ErrorCode::inconsistent_group_protocol, "The protocol of member " + member->id + " is another one."};
    }
    if (group.assignment_epoch() > member->current.epoch && member->current.state != MemberState::unrevoked_partitions) {
        deadlines_.set_if_absent(key(group, member->id, Timer::join), context.moment() + std::chrono::milliseconds{member->facts.rebalance_timeout_ms});
        return Refusal{ErrorCode::rebalance_in_progress, "A new rebalance is triggered in group " + group.id() + "."};
    }
    deadlines_.cancel(key(group, member->id, Timer::sync));
    restart_session(context, group, *member);
    SyncGroupResponse response;
    response.protocol_type = request.protocol_type;
    response.protocol_name = request.protocol_name;
    response.assignment = assignment_bytes(without_epochs(member->current.assigned), *context.image(), preferred.metadata);
    return response;
}

ErrorCode ConsumerGroups::classic_heartbeat(Context& context, ConsumerGroup& group, const HeartbeatRequest& request) {
    const auto found = find_classic_member(group, request.member_id, request.group_instance_id);
    if (!found) return found.error().code;
    const auto& member = **found;
    if (request.generation_id != member.current.epoch) return ErrorCode::illegal_generation;
    restart_session(context, group, member);
    const auto& current = member.current;
    const bool has_to_join = current.epoch < group.assignment_epoch() || current.state == MemberState::unrevoked_partitions ||
                             (current.state == MemberState::unreleased_partitions && !group.waits_for_others(member));
    if (!has_to_join) return ErrorCode::none;
    deadlines_.set_if_absent(key(group, member.id, Timer::join), context.moment() + std::chrono::milliseconds{member.facts.rebalance_timeout_ms});
    return ErrorCode::rebalance_in_progress;
}

Refusable<LeaveGroupResponse> ConsumerGroups::classic_leave(Context& context, ConsumerGroup& group, const LeaveGroupRequest& request) {
    LeaveGroupResponse response;
    std::vector<std::string> leaving;
    for (const auto& identity : request.members) {
        auto& answer = response.members.emplace_back();
        answer.member_id = identity.member_id;
        answer.group_instance_id = identity.group_instance_id;
        // An administrator names the instance alone.
        const auto* holder = identity.group_instance_id ? group.find_static(*identity.group_instance_id) : nullptr;
        const auto& id = identity.member_id.empty() && holder != nullptr ? holder->id : identity.member_id;
        const auto sender = find_sender(group, {.member_id = id, .instance_id = identity.group_instance_id, .epoch = 0, .joins = false, .classic = true, .owned = {}});
        if (!sender) {
            answer.error_code = sender.error().code;
        } else if (std::ranges::find(leaving, id) == leaving.end()) {
            log_info("[{}] member {} left", group.id(), id);
            leaving.push_back(id);
        }
    }
    TM_TRYV(remove(context, group, leaving));
    return response;
}

// --- answers -----------------------------------------------------------------------------------------------------------

void ConsumerGroups::join(Context& context, const Client& client, const JoinGroupRequest& request, std::int16_t version, Reply<JoinGroupResponse> reply) {
    auto response = classic_join(context, group_of(request.group_id), client, request, version);
    if (response) return context.answer(std::move(reply), *std::move(response));
    JoinGroupResponse refused;
    refused.error_code = response.error().code;
    refused.protocol_name = std::nullopt;
    refused.member_id = response.error().code == ErrorCode::group_max_size_reached ? "" : request.member_id;
    context.answer(std::move(reply), std::move(refused));
}

void ConsumerGroups::sync(Context& context, const SyncGroupRequest& request, Reply<SyncGroupResponse> reply) {
    auto response = classic_sync(context, group_of(request.group_id), request);
    context.answer(std::move(reply), response ? *std::move(response) : SyncGroupResponse{.error_code = response.error().code, .protocol_type = {}, .protocol_name = {}, .assignment = {}});
}

void ConsumerGroups::heartbeat(Context& context, const HeartbeatRequest& request, Reply<HeartbeatResponse> reply) {
    context.answer(std::move(reply), HeartbeatResponse{.error_code = classic_heartbeat(context, group_of(request.group_id), request)});
}

void ConsumerGroups::leave(Context& context, const LeaveGroupRequest& request, Reply<LeaveGroupResponse> reply) {
    auto response = classic_leave(context, group_of(request.group_id), request);
    context.answer(std::move(reply), response ? *std::move(response) : LeaveGroupResponse{.error_code = response.error().code});
}

ConsumerGroup& ConsumerGroups::group_of(const std::string& id) const {
    auto* group = groups_.find_as<ConsumerGroup>(id);
    TM_ASSERT(group != nullptr);
    return *group;
}

}  // namespace tidemark::coordinator
