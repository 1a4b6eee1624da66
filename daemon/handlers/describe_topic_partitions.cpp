// DescribeTopicPartitions (75), version 0: wire-behaviour 6 (KIP-966). Many partitions are told page by page.
#include "protocol/messages/describe_topic_partitions_request.h"
#include "protocol/messages/describe_topic_partitions_response.h"

#include <set>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic;

/// Of `topic` from partition `first` on, at most `most`. Returns the partition that would come next, if any.
std::optional<std::int32_t> describe(const metadata::Topic& topic, std::int32_t first, std::size_t most, DescribeTopicPartitionsResponseTopic& answer) {
    answer.topic_id = topic.id;
    for (auto at = topic.partitions.lower_bound(first); at != topic.partitions.end(); ++at) {
        if (answer.partitions.size() == most) return at->first;
        const auto& [index, partition] = *at;
        answer.partitions.push_back({.error_code = partition.leader < 0 ? ErrorCode::leader_not_available : ErrorCode::none,
                                     .partition_index = index,
                                     .leader_id = partition.leader,
                                     .leader_epoch = partition.leader_epoch,
                                     .replica_nodes = partition.replicas,
                                     .isr_nodes = partition.isr,
                                     .eligible_leader_replicas = partition.elr,
                                     .last_known_elr = partition.last_known_elr});
    }
    return std::nullopt;
}

}  // namespace

protocol::DescribeTopicPartitionsResponse describe_topic_partitions(Broker& broker, Call& call, protocol::DescribeTopicPartitionsRequest& request) {
    const auto image = broker.image();
    protocol::DescribeTopicPartitionsResponse response;
    std::set<std::string> names;   // sorted, as the pages need it
    for (const auto& topic : request.topics) names.insert(topic.name);
    const bool all = names.empty();
    if (all) for (const auto& [name, topic] : image->topics) names.insert(name);

    const auto& cursor = request.cursor;
    if (cursor && (cursor->partition_index < 0 || (!all && !names.contains(cursor->topic_name)))) {
        for (const auto& topic : request.topics) {
            response.topics.push_back({.error_code = ErrorCode::invalid_request, .name = topic.name, .is_internal = is_internal_topic(topic.name)});
            call.count(ErrorCode::invalid_request);
        }
        return response;
    }
    auto left = static_cast<std::size_t>(std::max(1, std::min(request.response_partition_limit, broker.options()->limits.partitions_per_answer_max)));
    for (auto at = cursor ? names.lower_bound(cursor->topic_name) : names.begin(); at != names.end(); ++at) {
        if (left == 0) {
            response.next_cursor = {.topic_name = *at, .partition_index = 0};
            break;
        }
        auto& answer = response.topics.emplace_back();
        answer.name = *at;
        answer.is_internal = is_internal_topic(*at);
        answer.topic_authorized_operations = topic_operations;
        const auto* topic = image->find(*at);
        if (!topic) {
            answer.error_code = is_legal_topic_name(*at) ? ErrorCode::unknown_topic_or_partition : ErrorCode::invalid_topic_exception;
            call.count(answer.error_code);
            continue;
        }
        const auto first = cursor && cursor->topic_name == *at ? cursor->partition_index : 0;
        const auto next = describe(*topic, first, left, answer);
        left -= answer.partitions.size();
        if (next) {
            response.next_cursor = {.topic_name = *at, .partition_index = *next};
            break;
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
