// AddOffsetsToTxn (25), versions 0 to 4: transaction-coordinator 5. The group's partition of __consumer_offsets joins the
// transaction; the group itself is not looked at.
#include "protocol/messages/add_offsets_to_txn_request.h"
#include "protocol/messages/add_offsets_to_txn_response.h"

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

void add_offsets_to_txn(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::AddOffsetsToTxnRequest>();
    if (!request) return;
    call->hold_reading();
    const auto answer = [call](ErrorCode error) {
        const auto shown = producer_error(error, call->version());
        call->count(shown);
        call->finish(protocol::AddOffsetsToTxnResponse{.error_code = shown});
    };
    const auto partition = partition_of_group(*broker.image(), request->group_id);
    if (!partition) return answer(ErrorCode::not_coordinator);
    broker.coordinators().transactions().add_partitions(request->transactional_id, {request->producer_id, request->producer_epoch}, {*partition}, 0, false, answer);
}

}  // namespace tidemark::daemon::handlers
