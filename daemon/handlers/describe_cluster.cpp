// DescribeCluster (60), versions 0 to 2: wire-behaviour 6 (KIP-700, KIP-919, KIP-1073).
#include "protocol/messages/describe_cluster_request.h"
#include "protocol/messages/describe_cluster_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::DescribeClusterResponse describe_cluster(Broker& broker, Call& call, protocol::DescribeClusterRequest& request) {
    constexpr std::int8_t brokers = 1, controllers = 2;
    protocol::DescribeClusterResponse response{.endpoint_type = request.endpoint_type};
    if (request.endpoint_type != brokers) {
        response.endpoint_type = brokers;
        response.error_code = request.endpoint_type == controllers ? ErrorCode::mismatched_endpoint_type : ErrorCode::unsupported_endpoint_type;
        response.error_message = request.endpoint_type == controllers
                                     ? "The request was sent to an endpoint of the wrong type."
                                     : "Unsupported endpoint type " + std::to_string(request.endpoint_type);
        call.count(response.error_code);
        return response;
    }
    const auto& endpoint = broker.endpoint(call.peer().listener);
    response.cluster_id = broker.cluster_id();
    response.controller_id = broker.node_id();
    response.brokers.push_back({.broker_id = broker.node_id(), .host = endpoint.host, .port = endpoint.port, .rack = broker.options()->rack});
    if (request.include_cluster_authorized_operations) response.cluster_authorized_operations = cluster_operations;
    return response;
}

}  // namespace tidemark::daemon::handlers
