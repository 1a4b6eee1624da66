// FindCoordinator (10), versions 0 to 6: wire-behaviour 13. There are no coordinators yet, which clients take as a reason
// to ask again later.
#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::FindCoordinatorResponse find_coordinator(Broker&, Call& call, protocol::FindCoordinatorRequest& request) {
    const auto error = request.key_type >= 0 && request.key_type <= 2 ? ErrorCode::coordinator_not_available : ErrorCode::invalid_request;
    protocol::FindCoordinatorResponse response;
    if (call.version() < 4) {
        response.error_code = error;
        response.error_message = protocol::to_string(error);
        response.node_id = -1;
        response.port = -1;
        call.count(error);
        return response;
    }
    for (const auto& key : request.coordinator_keys) {
        response.coordinators.push_back({.key = key, .node_id = -1, .port = -1, .error_code = error, .error_message = std::string{protocol::to_string(error)}});
        call.count(error);
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
