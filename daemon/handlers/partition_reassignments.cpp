// AlterPartitionReassignments (45), versions 0 to 1, and ListPartitionReassignments (46), version 0: wire-behaviour 12.
// With one node there is nowhere to move to, and nothing under way.
#include "protocol/messages/alter_partition_reassignments_request.h"
#include "protocol/messages/alter_partition_reassignments_response.h"
#include "protocol/messages/list_partition_reassignments_request.h"
#include "protocol/messages/list_partition_reassignments_response.h"

#include <set>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

Outcome judge(const Broker& broker, const metadata::Image& image, const TopicPartition& name, const std::optional<std::vector<std::int32_t>>& replicas) {
    if (!image.find(name.topic)) return {ErrorCode::unknown_topic_or_partition, "Unable to find a topic named " + name.topic + "."};
    if (!image.find(name)) return {ErrorCode::unknown_topic_or_partition, fmt::format("Unable to find partition {}:{}.", name.topic, name.partition)};
    if (!replicas) return {ErrorCode::no_reassignment_in_progress, "No partition reassignment is in progress."};
    if (replicas->empty()) return {ErrorCode::invalid_replica_assignment, "The manual partition assignment includes an empty replica list."};
    std::set<std::int32_t> seen;
    for (const auto replica : *replicas) {
        if (!seen.insert(replica).second) {
            return {ErrorCode::invalid_replica_assignment, fmt::format("The manual partition assignment includes the broker {} more than once.", replica)};
        }
        if (replica != broker.node_id()) {
            return {ErrorCode::invalid_replica_assignment, fmt::format("The manual partition assignment includes broker {}, but no such broker is registered.", replica)};
        }
    }
    return {};
}

}  // namespace

protocol::AlterPartitionReassignmentsResponse alter_partition_reassignments(Broker& broker, Call& call, protocol::AlterPartitionReassignmentsRequest& request) {
    const auto image = broker.image();
    protocol::AlterPartitionReassignmentsResponse response{.allow_replication_factor_change = request.allow_replication_factor_change, .error_message = std::nullopt};
    for (const auto& topic : request.topics) {
        auto& answer = response.responses.emplace_back();
        answer.name = topic.name;
        for (const auto& partition : topic.partitions) {
            const auto outcome = judge(broker, *image, {topic.name, partition.partition_index}, partition.replicas);
            answer.partitions.push_back({.partition_index = partition.partition_index, .error_code = outcome.code, .error_message = outcome.message});
            call.count(outcome.code);
        }
    }
    return response;
}

protocol::ListPartitionReassignmentsResponse list_partition_reassignments(Broker&, Call&, protocol::ListPartitionReassignmentsRequest&) {
    return {.error_message = std::nullopt};
}

}  // namespace tidemark::daemon::handlers
