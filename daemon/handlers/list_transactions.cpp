// ListTransactions (66), versions 0 to 2: transaction-coordinator 11 (KIP-664, KIP-994, KIP-1152).
#include "protocol/messages/list_transactions_request.h"
#include "protocol/messages/list_transactions_response.h"

#include "coordinator/transaction/coordinator.h"
#include "coordinator/transaction/id_pattern.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

void list_transactions(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::ListTransactionsRequest>();
    if (!request) return;
    const auto refuse = [&](ErrorCode error) {
        call->count(error);
        call->finish(protocol::ListTransactionsResponse{.error_code = error});
    };
    coordinator::TransactionFilter filter{.producers = {request->producer_id_filters.begin(), request->producer_id_filters.end()}, .running_longer_than_ms = request->duration_filter};
    std::vector<std::string> unknown;
    for (const auto& name : request->state_filters) {
        if (const auto state = coordinator::transaction_state_of(name)) filter.states.insert(*state);
        else unknown.push_back(name);
    }
    filter.only_unknown_states = !unknown.empty() && filter.states.empty();
    if (request->transactional_id_pattern && !request->transactional_id_pattern->empty()) {
        filter.id = coordinator::id_pattern(*request->transactional_id_pattern);
        if (!filter.id) return refuse(ErrorCode::invalid_regular_expression);
    }
    broker.coordinators().transactions().list(std::move(filter), [call, unknown = std::move(unknown)](const coordinator::ListAnswer& answer) {
        protocol::ListTransactionsResponse response{.error_code = answer.error, .unknown_state_filters = unknown};
        for (const auto& [id, transaction] : answer.transactions) {
            response.transaction_states.push_back({.transactional_id = id, .producer_id = transaction.producer_id, .transaction_state = std::string{coordinator::name_of(transaction.state)}});
        }
        call->count(answer.error);
        call->finish(response);
    });
}

}  // namespace tidemark::daemon::handlers
