// DescribeQuorum (55), versions 0 to 2: wire-behaviour 13. This node is the only voter, and in step with itself.
#include "protocol/messages/describe_quorum_request.h"
#include "protocol/messages/describe_quorum_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::DescribeQuorumResponse describe_quorum(Broker& broker, Call& call, protocol::DescribeQuorumRequest& request) {
    const auto quorum = broker.controller().quorum();
    const auto now = broker.clock().now().value;
    protocol::DescribeQuorumResponse response;
    for (const auto& topic : request.topics) {
        auto& answer = response.topics.emplace_back();
        answer.topic_name = topic.topic_name;
        for (const auto& partition : topic.partitions) {
            auto& result = answer.partitions.emplace_back();
            result.partition_index = partition.partition_index;
            if (topic.topic_name != "__cluster_metadata" || partition.partition_index != 0) {
                result.error_code = ErrorCode::unknown_topic_or_partition;
                result.error_message = unknown_partition_text;
                call.count(result.error_code);
                continue;
            }
            result.error_message.reset();
            result.leader_id = broker.node_id();
            result.leader_epoch = quorum.epoch;
            result.high_watermark = quorum.end_offset.value;
            result.current_voters.push_back({.replica_id = broker.node_id(), .log_end_offset = quorum.end_offset.value, .last_fetch_timestamp = now, .last_caught_up_timestamp = now});
        }
    }
    response.error_message.reset();
    if (request.topics.empty()) return response;
    if (const auto& listener = broker.options()->controller_listener) {
        auto& node = response.nodes.emplace_back();
        node.node_id = broker.node_id();
        node.listeners.push_back({.name = listener->name,
                                  .host = listener->advertised_host.empty() ? listener->host : listener->advertised_host,
                                  .port = listener->advertised_port == 0 ? listener->port : listener->advertised_port});
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
