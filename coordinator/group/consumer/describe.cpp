#include "coordinator/group/consumer/steps.h"
#include "metadata/image.h"
#include "protocol/messages/consumer_group_describe_response.h"

namespace tidemark::coordinator {

namespace {

using Described = protocol::ConsumerGroupDescribeResponse;

/// Topics that do not exist any more have no name to show.
Described::Assignment to_response(const Partitions& partitions, const metadata::Image& image) {
    Described::Assignment assignment;
    for (const auto& [id, numbers] : partitions) {
        const auto* topic = image.find(id);
        if (topic == nullptr) continue;
        auto& entry = assignment.topic_partitions.emplace_back();
        entry.topic_id = id;
        entry.topic_name = topic->name;
        entry.partitions = numbers;
    }
    return assignment;
}

/// What it has and what it still has to give up.
Partitions held(const MemberAssignment& current) {
    auto all = current.assigned;
    for (const auto& [topic, partitions] : current.pending_revocation) all[topic].insert(partitions.begin(), partitions.end());
    return without_epochs(all);
}

}  // namespace

Described::DescribedGroup described(const ConsumerGroup& group, const metadata::Image& image, const GroupOptions& options) {
    Described::DescribedGroup answer;
    answer.group_id = group.id();
    answer.group_state = group.state_name();
    answer.group_epoch = group.epoch();
    answer.assignment_epoch = group.assignment_epoch();
    answer.assignor_name = assignor_of(group, options);
    for (const auto& [id, member] : group.members()) {
        const auto* target = group.target(id);
        auto& entry = answer.members.emplace_back();
        entry.member_id = id;
        entry.instance_id = member.facts.instance_id;
        entry.rack_id = member.facts.rack_id;
        entry.member_epoch = member.current.epoch;
        entry.client_id = member.facts.client_id;
        entry.client_host = member.facts.client_host;
        entry.subscribed_topic_names = member.facts.topics;
        entry.subscribed_topic_regex = member.facts.regex;
        entry.assignment = to_response(held(member.current), image);
        entry.target_assignment = to_response(target == nullptr ? Partitions{} : *target, image);
        entry.member_type = member.is_classic() ? 0 : 1;
    }
    return answer;
}

}  // namespace tidemark::coordinator
