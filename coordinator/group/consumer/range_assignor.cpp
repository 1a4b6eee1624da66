#include <algorithm>

#include "coordinator/group/consumer/assignor.h"

namespace tidemark::coordinator {

const Assignor* find_assignor(std::string_view name) {
    const auto found = std::ranges::find(assignors, name, &Assignor::name);
    return found == assignors.end() ? nullptr : &*found;
}

namespace {

/// Static members before dynamic ones, by instance id and by member id.
std::vector<const std::pair<const std::string, AssignmentInput::Member>*> in_order(const AssignmentInput& input) {
    std::vector<const std::pair<const std::string, AssignmentInput::Member>*> members;
    for (const auto& member : input.members) members.push_back(&member);
    const auto place = [](const auto* member) {
        return std::pair{!member->second.instance_id, std::string_view(member->second.instance_id ? *member->second.instance_id : member->first)};
    };
    std::ranges::sort(members, {}, place);
    return members;
}

}  // namespace

Assignment assign_range(const AssignmentInput& input) {
    Assignment result;
    std::map<Uuid, std::vector<Partitions*>> subscribers;   // of each topic, in the members' order
    for (const auto* member : in_order(input)) {
        auto& assigned = result[member->first];
        for (const auto& topic : member->second.topics) subscribers[topic].push_back(&assigned);
    }
    for (const auto& [topic, members] : subscribers) {
        const auto partitions = input.topics.at(topic);
        const auto share = partitions / static_cast<std::int32_t>(members.size());
        const auto with_one_more = partitions % static_cast<std::int32_t>(members.size());
        std::int32_t next = 0;
        for (std::int32_t place = 0; next < partitions; ++place) {
            auto& assigned = (*members[static_cast<std::size_t>(place)])[topic];
            for (auto n = share + (place < with_one_more ? 1 : 0); n > 0; --n) assigned.push_back(next++);
        }
    }
    return result;
}

}  // namespace tidemark::coordinator
