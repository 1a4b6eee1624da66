#include "metrics/group_metrics.h"

#include <map>

namespace tidemark::metrics {

FamilyList families_of(const std::vector<daemon::GroupStats>& groups, const Cardinality& cardinality) {
    FamilyList families;
    std::map<std::pair<std::string, std::string>, std::size_t> counts;
    std::size_t partitions = 0;
    for (const auto& group : groups) {
        ++counts[{group.type, group.state}];
        partitions += group.partitions.size();
    }
    auto count = gauge("tidemark_groups", "Groups by protocol and state. Kafka: kafka.server:type=group-coordinator-metrics,name=group-count");
    for (const auto& [type_and_state, number] : counts) count.add({{"type", type_and_state.first}, {"state", type_and_state.second}}, number);
    std::move(count).move_to(families);

    auto members = gauge("tidemark_group_members", "Members of each group.");
    if (cardinality.shows(groups.size())) {
        for (const auto& group : groups) members.add({{"group", group.id}}, group.members);
    }
    std::move(members).move_to(families);

    auto committed = gauge("tidemark_group_committed_offset", "The offset that a group will go on from.");
    auto lag = gauge("tidemark_group_lag_records", "Records between that offset and the high watermark.");
    if (cardinality.shows(partitions)) {
        for (const auto& group : groups) {
            for (const auto& partition : group.partitions) {
                const Labels labels{{"group", group.id}, {"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
                committed.add(labels, partition.committed);
                if (partition.lag) lag.add(labels, *partition.lag);
            }
        }
    }
    std::move(committed).move_to(families);
    std::move(lag).move_to(families);
    return families;
}

}  // namespace tidemark::metrics
