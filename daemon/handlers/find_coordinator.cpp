// FindCoordinator (10), versions 0 to 6: group-coordinator 1, wire-behaviour 13. This node coordinates all that it has the
// internal topic for, and makes the topic when it is first asked for. Share groups are not offered (D27).
#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"

#include "coordinator/internal_topics.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

constexpr std::int8_t group_key = 0, transaction_key = 1, share_key = 2;

ErrorCode find(Broker& broker, const metadata::Image& image, std::int8_t key_type, const std::string& key) {
    if (key_type < group_key || key_type > share_key) return ErrorCode::invalid_request;
    if (key_type == share_key) return ErrorCode::coordinator_not_available;
    const auto* topic = image.find(key_type == transaction_key ? coordinator::transaction_topic : coordinator::group_topic);
    if (topic == nullptr) {
        if (key_type == transaction_key) broker.coordinators().create_transaction_topic();
        else broker.coordinators().create_group_topic();
        return ErrorCode::coordinator_not_available;
    }
    const auto partition = topic->partitions.find(coordinator::partition_of(key, static_cast<std::int32_t>(topic->partitions.size())));
    return partition != topic->partitions.end() && partition->second.leader == broker.node_id() ? ErrorCode::none : ErrorCode::coordinator_not_available;
}

/// Only the versions for one key say it, and they say it of success, too.
std::string text_of(ErrorCode error) {
    switch (error) {
        case ErrorCode::none: return "NONE";
        case ErrorCode::coordinator_not_available: return "The coordinator is not available.";
        default: return std::string{protocol::to_string(error)};
    }
}

}  // namespace

protocol::FindCoordinatorResponse find_coordinator(Broker& broker, Call& call, protocol::FindCoordinatorRequest& request) {
    const auto image = broker.image();
    const auto& endpoint = broker.endpoint(call.peer().listener);
    const auto answer = [&](const std::string& key) {
        const auto error = find(broker, *image, request.key_type, key);
        call.count(error);
        if (error == ErrorCode::none) return protocol::FindCoordinatorResponse::Coordinator{.key = key, .node_id = broker.node_id(), .host = endpoint.host, .port = endpoint.port};
        return protocol::FindCoordinatorResponse::Coordinator{.key = key, .node_id = -1, .port = -1, .error_code = error};
    };
    protocol::FindCoordinatorResponse response;
    if (call.version() < 4) {
        auto found = answer(request.key);
        response.error_code = found.error_code;
        response.error_message = text_of(found.error_code);
        response.node_id = found.node_id;
        response.host = std::move(found.host);
        response.port = found.port;
        return response;
    }
    for (const auto& key : request.coordinator_keys) response.coordinators.push_back(answer(key));
    return response;
}

}  // namespace tidemark::daemon::handlers
