// DescribeTransactions (65), version 0: transaction-coordinator 11 (KIP-664).
#include "protocol/messages/describe_transactions_request.h"
#include "protocol/messages/describe_transactions_response.h"

#include "coordinator/gather.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::DescribeTransactionsResponse;
using protocol::describe_transactions_response::TransactionState;

void describe(const coordinator::ListAnswer& answer, TransactionState& to) {
    to.error_code = answer.error;
    if (answer.error != ErrorCode::none) return;
    const auto& transaction = answer.transactions.front().transaction;
    to.transaction_state = coordinator::name_of(transaction.state);
    to.transaction_timeout_ms = transaction.timeout_ms;
    to.transaction_start_time_ms = transaction.start.value;
    to.producer_id = transaction.producer_id;
    to.producer_epoch = transaction.producer_epoch;
    for (const auto& partition : transaction.partitions) {
        if (to.topics.empty() || to.topics.back().topic != partition.topic) to.topics.push_back({.topic = partition.topic});
        to.topics.back().partitions.push_back(partition.partition);
    }
}

}  // namespace

void describe_transactions(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::DescribeTransactionsRequest>();
    if (!request) return;
    DescribeTransactionsResponse response;
    for (const auto& id : request->transactional_ids) response.transaction_states.push_back({.transactional_id = id});
    const auto gather = coordinator::Gather<DescribeTransactionsResponse>::make(std::move(response), [call](const DescribeTransactionsResponse& whole) { call->finish(whole); });
    for (auto& state : gather->whole.transaction_states) {
        broker.coordinators().transactions().describe(state.transactional_id, [gather, call, &state](const coordinator::ListAnswer& answer) {
            describe(answer, state);
            call->count(answer.error);
        });
    }
}

}  // namespace tidemark::daemon::handlers
