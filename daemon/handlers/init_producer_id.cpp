// InitProducerId (22), versions 0 to 5: wire-behaviour 13. Ids for idempotent producers; transactional ids need their
// coordinator, and until there is one are answered as while it cannot be found.
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::InitProducerIdResponse init_producer_id(Broker& broker, Call& call, protocol::InitProducerIdRequest& request) {
    const auto refuse = [&](ErrorCode error) {
        call.count(error);
        return protocol::InitProducerIdResponse{.error_code = error, .producer_epoch = -1};
    };
    if (request.transactional_id && request.transactional_id->empty()) return refuse(ErrorCode::invalid_request);
    if ((request.producer_id == -1) != (request.producer_epoch == -1)) return refuse(ErrorCode::invalid_request);
    if (request.transactional_id) return refuse(ErrorCode::coordinator_not_available);
    const auto id = broker.controller().next_producer_id();
    if (!id) return refuse(ErrorCode::coordinator_load_in_progress);
    return {.producer_id = *id, .producer_epoch = 0};
}

}  // namespace tidemark::daemon::handlers
