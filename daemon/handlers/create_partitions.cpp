// CreatePartitions (37), versions 0 to 3: wire-behaviour 10.
#include "protocol/messages/create_partitions_request.h"
#include "protocol/messages/create_partitions_response.h"

#include <unordered_map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::CreatePartitionsResponse create_partitions(Broker& broker, Call& call, protocol::CreatePartitionsRequest& request) {
    protocol::CreatePartitionsResponse response;
    std::unordered_map<std::string, int> times;
    for (const auto& topic : request.topics) ++times[topic.name];
    const auto answer = [&](const std::string& name, const Outcome& outcome) {
        response.results.push_back({.name = name, .error_code = outcome.code, .error_message = outcome.message});
        call.count(outcome.code);
    };
    std::vector<metadata::NewPartitions> wanted;
    for (const auto& topic : request.topics) {
        const auto n = std::exchange(times[topic.name], 0);
        if (n > 1) answer(topic.name, {ErrorCode::invalid_request, "Duplicate topic name."});
        if (n != 1) continue;
        auto& made = wanted.emplace_back(metadata::NewPartitions{.topic = topic.name, .count = topic.count});
        if (!topic.assignments) continue;
        made.assignments.emplace();
        for (const auto& assignment : *topic.assignments) made.assignments->push_back(assignment.broker_ids);
    }
    if (wanted.empty()) return response;
    const auto outcomes = broker.controller().create_partitions(wanted, request.validate_only);
    for (std::size_t i = 0; i < outcomes.size(); ++i) answer(wanted[i].topic, outcomes[i]);
    return response;
}

}  // namespace tidemark::daemon::handlers
