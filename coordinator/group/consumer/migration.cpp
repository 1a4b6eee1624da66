#include <algorithm>

#include "coordinator/group/classic_group.h"
#include "coordinator/group/consumer/steps.h"
#include "coordinator/group/consumer/subscription.h"
#include "coordinator/group/embedded_protocol.h"
#include "metadata/image.h"

namespace tidemark::coordinator {

namespace {

constexpr const char* protocol_type = "consumer";

Refusal cannot_upgrade(const ClassicGroup& group, const std::string& why) {
    return {ErrorCode::group_id_not_found, "Cannot upgrade classic group " + group.id() + " to consumer group because " + why + "."};
}

/// As the member says it for the group's protocol, or for its own first one before there is any.
Result<protocol::ConsumerProtocolSubscription> subscription_of(const ClassicMember& member, const std::optional<std::string>& protocol) {
    const auto* metadata = protocol ? member.metadata_of(*protocol) : member.protocols.empty() ? nullptr : &member.protocols.front().metadata;
    if (metadata == nullptr) return Error{Errc::corrupt, "no metadata for the protocol"};
    return parse_subscription(*metadata);
}

}  // namespace

std::unique_ptr<ClassicGroup> downgraded(const ConsumerGroup& group, const std::vector<std::string>& leaving, const metadata::Image& image, Timestamp now) {
    auto classic = std::make_unique<ClassicGroup>(group.id(), now);
    classic->state = ClassicState::stable;
    classic->generation = group.epoch();
    classic->type_name = protocol_type;
    for (const auto& [id, member] : group.members()) {
        if (std::ranges::find(leaving, id) != leaving.end()) continue;
        const auto& facts = member.facts;
        const auto* target = group.target(id);
        ClassicMember to{.id = id,
                         .instance_id = facts.instance_id,
                         .client = {.id = facts.client_id, .host = facts.client_host},
                         .rebalance_timeout_ms = facts.rebalance_timeout_ms,
                         .session_timeout_ms = facts.classic->session_timeout_ms,
                         .protocols = facts.classic->protocols,
                         .assignment = assignment_bytes(target == nullptr ? Partitions{} : *target, image, facts.classic->protocols.front().metadata),
                         .is_new = false,
                         .parked_join = {},
                         .parked_sync = {}};
        classic->add(std::move(to));
    }
    classic->protocol = classic->selected_protocol();
    return classic;
}

Refusable<std::unique_ptr<ConsumerGroup>> upgraded(const ClassicGroup& classic, const metadata::Image& image, const GroupOptions& options) {
    if (options.migration_policy != MigrationPolicy::bidirectional && options.migration_policy != MigrationPolicy::upgrade) return cannot_upgrade(classic, "online upgrade is disabled");
    if (classic.protocol_type() != protocol_type) return cannot_upgrade(classic, "the group does not use the consumer embedded protocol");
    if (classic.members.size() > static_cast<std::size_t>(options.consumer_size_max)) return cannot_upgrade(classic, "the group size exceeds the consumer group maximum size");

    auto group = std::make_unique<ConsumerGroup>(classic.id());
    for (const auto& [id, member] : classic.members) {
        const auto subscription = subscription_of(member, classic.protocol);
        const auto assignment = member.assignment.empty() ? protocol::ConsumerProtocolAssignment{} : parse_assignment(member.assignment);
        if (!subscription || !assignment) return cannot_upgrade(classic, "the embedded consumer protocol is malformed");
        // What a custom assignor keeps there would be lost.
        if (assignment->user_data && !assignment->user_data->empty()) return cannot_upgrade(classic, "an unsupported custom assignor is in use");

        MemberAssignment current{.epoch = classic.generation, .previous_epoch = classic.generation, .state = MemberState::stable, .assigned = {}, .pending_revocation = {}};
        for (const auto& entry : assignment->assigned_partitions) {
            const auto* topic = image.find(entry.topic);
            if (topic == nullptr) continue;
            for (const auto partition : entry.partitions) current.assigned[topic->id][partition] = classic.generation;
        }
        MemberFacts facts{.instance_id = member.instance_id,
                          .rack_id = subscription->rack_id,
                          .client_id = member.client.id,
                          .client_host = member.client.host,
                          .topics = sorted_names(subscription->topics),
                          .regex = {},
                          .rebalance_timeout_ms = member.rebalance_timeout_ms,
                          .assignor = {},
                          .classic = ClassicMemberFacts{member.session_timeout_ms, member.protocols}};
        group->put_member(id, std::move(facts));
        group->put_target(id, without_epochs(current.assigned));
        group->put_assignment(id, std::move(current));
    }
    group->put_epoch(classic.generation, metadata_hash(*group, image));
    group->put_assignment_epoch(classic.generation, Timestamp{0});
    return group;
}

}  // namespace tidemark::coordinator
