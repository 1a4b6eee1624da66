// DescribeTransactions (65), version 0: transaction-coordinator 11 (KIP-664).
#include "protocol/messages/describe_transactions_request.h"
#include "protocol/messages/describe_transactions_response.h"

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::describe_transactions_response::TransactionState;

struct Gathering {
    std::shared_ptr<Call> call;
    protocol::DescribeTransactionsResponse response = {};
    std::atomic<std::size_t> outstanding{1};   // one for the handler itself

    static void one_done(const std::shared_ptr<Gathering>& gathering) {
        if (gathering->outstanding.fetch_sub(1) == 1) gathering->call->finish(gathering->response);
    }
};

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
    const auto gathering = std::make_shared<Gathering>(call);
    auto& states = gathering->response.transaction_states;
    states.reserve(request->transactional_ids.size());   // the coordinator's answers are written into them
    gathering->outstanding.fetch_add(request->transactional_ids.size());
    for (const auto& id : request->transactional_ids) {
        auto& state = states.emplace_back();
        state.transactional_id = id;
        broker.coordinators().transactions().describe(id, [gathering, &state](const coordinator::ListAnswer& answer) {
            describe(answer, state);
            gathering->call->count(answer.error);
            Gathering::one_done(gathering);
        });
    }
    Gathering::one_done(gathering);
}

}  // namespace tidemark::daemon::handlers
