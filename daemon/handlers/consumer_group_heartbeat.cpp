// ConsumerGroupHeartbeat (68), versions 0 and 1: group-coordinator 6 (KIP-848).
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"

#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"

namespace tidemark::daemon::handlers {

using namespace protocol;

void consumer_group_heartbeat(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<ConsumerGroupHeartbeatRequest>();
    if (!request) return;
    const coordinator::Client client{.id = call->client_id(), .host = "/" + call->peer().host};
    broker.coordinators().groups().heartbeat(client, *std::move(request), call->version(), [call](coordinator::Coded<ConsumerGroupHeartbeatResponse> answered) {
        asio::dispatch(call->executor(), [call, answered = std::move(answered)]() mutable {
            ConsumerGroupHeartbeatResponse refused;
            if (!answered) refused.error_code = coordinator::coordinator_error(answered.error().code);
            const auto& response = answered ? *answered : refused;
            call->count(response.error_code);
            call->finish(response);
        });
    });
}

}  // namespace tidemark::daemon::handlers
