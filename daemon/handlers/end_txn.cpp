// EndTxn (26), versions 0 to 5: transaction-coordinator 6. Answered when the result is durable, before any marker.
#include "protocol/messages/end_txn_request.h"
#include "protocol/messages/end_txn_response.h"

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

void end_txn(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::EndTxnRequest>();
    if (!request) return;
    call->hold_reading();
    broker.coordinators().transactions().end_transaction(
        request->transactional_id, {request->producer_id, request->producer_epoch}, request->committed, call->version(), [call](const coordinator::ProducerAnswer& answer) {
            const auto shown = producer_error(answer.error, call->version());
            call->count(shown);
            call->finish(protocol::EndTxnResponse{.error_code = shown, .producer_id = answer.producer_id, .producer_epoch = answer.producer_epoch});
        });
}

}  // namespace tidemark::daemon::handlers
