// ElectLeaders (43), versions 0 to 2: wire-behaviour 12. On one node the leader is the preferred one, so there is never
// anything to do.
#include "protocol/messages/elect_leaders_request.h"
#include "protocol/messages/elect_leaders_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::ElectLeadersResponse elect_leaders(Broker& broker, Call& call, protocol::ElectLeadersRequest& request) {
    constexpr std::int8_t preferred = 0, unclean = 1;
    protocol::ElectLeadersResponse response;
    if (call.version() >= 1 && request.election_type != preferred && request.election_type != unclean) {
        response.error_code = ErrorCode::invalid_request;
        call.count(response.error_code);
        return response;
    }
    const auto image = broker.image();
    if (!request.topic_partitions) {   // all topics: only where something was done
        for (const auto& [name, topic] : image->topics) response.replica_election_results.emplace_back().topic = name;
        return response;
    }
    for (const auto& topic : *request.topic_partitions) {
        auto& answer = response.replica_election_results.emplace_back();
        answer.topic = topic.topic;
        for (const auto index : topic.partitions) {
            auto& result = answer.partition_result.emplace_back();
            result.partition_id = index;
            const auto* found = image->find(TopicPartition{topic.topic, index});
            if (!image->find(topic.topic)) {
                result.error_code = ErrorCode::unknown_topic_or_partition;
                result.error_message = "No such topic as " + topic.topic;
            } else if (!found) {
                result.error_code = ErrorCode::unknown_topic_or_partition;
                result.error_message = "No such partition as " + topic.topic + "-" + std::to_string(index);
            } else {
                result.error_code = ErrorCode::election_not_needed;
                result.error_message = "Leader election not needed for topic partition.";
            }
            call.count(result.error_code);
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
