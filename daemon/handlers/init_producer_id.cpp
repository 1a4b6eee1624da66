// InitProducerId (22), versions 0 to 5: transaction-coordinator 4. With a transactional id its coordinator decides; without
// one there is nothing to keep.
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

constexpr std::int16_t first_that_knows_fencing = 4;

void answer(Call& call, const coordinator::ProducerAnswer& answer) {
    const auto shown = producer_error(answer.error, call.version(), first_that_knows_fencing);
    call.count(shown);
    call.finish(protocol::InitProducerIdResponse{.error_code = shown, .producer_id = answer.producer_id, .producer_epoch = answer.producer_epoch});
}

}  // namespace

void init_producer_id(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<protocol::InitProducerIdRequest>();
    if (!request) return;
    if ((request->producer_id == -1) != (request->producer_epoch == -1)) return answer(*call, {.error = ErrorCode::invalid_request});
    call->hold_reading();
    if (!request->transactional_id) {
        return broker.disk().submit([&broker, call] {
            const auto id = broker.controller().next_producer_id();
            answer(*call, id ? coordinator::ProducerAnswer{.producer_id = *id, .producer_epoch = 0} : coordinator::ProducerAnswer{.error = ErrorCode::coordinator_load_in_progress});
        });
    }
    broker.coordinators().transactions().init_producer_id({.id = *std::move(request->transactional_id),
                                                           .timeout_ms = request->transaction_timeout_ms,
                                                           .two_phase_commit = request->enable_2pc,
                                                           .keep_prepared = request->keep_prepared_txn,
                                                           .expected = {request->producer_id, request->producer_epoch}},
                                                          [call](const coordinator::ProducerAnswer& decided) { answer(*call, decided); });
}

}  // namespace tidemark::daemon::handlers
