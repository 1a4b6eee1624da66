// TxnOffsetCommit (28), versions 0 to 6: transaction-coordinator 7, group-coordinator 5. The transaction coordinator is asked
// first whether the transaction holds the group's partition, or from version 5 on told to add it (KIP-890).
#include "protocol/messages/txn_offset_commit_request.h"
#include "protocol/messages/txn_offset_commit_response.h"

#include "coordinator/errors.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::TxnOffsetCommitRequest;
using protocol::TxnOffsetCommitResponse;

constexpr std::int16_t first_that_knows_abortable = 4, first_that_adds = 5;

/// The transaction coordinator's answer as a client of this version is told it.
ErrorCode shown(ErrorCode answer, std::int16_t version) {
    switch (answer) {
        case ErrorCode::transaction_abortable: return version >= first_that_knows_abortable ? answer : ErrorCode::invalid_txn_state;
        case ErrorCode::producer_fenced: return ErrorCode::invalid_producer_epoch;
        default: return coordinator::coordinator_error(answer);
    }
}

TxnOffsetCommitResponse refusal_of(const TxnOffsetCommitRequest& request, ErrorCode code) {
    TxnOffsetCommitResponse response;
    for (const auto& asked : request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.name = asked.name;
        for (const auto& partition : asked.partitions) topic.partitions.push_back({.partition_index = partition.partition_index, .error_code = code});
    }
    return response;
}

void commit(Broker& broker, const std::shared_ptr<Call>& call, const TxnOffsetCommitRequest& request) {
    broker.coordinators().groups().commit(request, call->version(),
                                          reply_to<TxnOffsetCommitResponse>(call, [request](ErrorCode code) { return refusal_of(request, code); }));
}

}  // namespace

void txn_offset_commit(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<TxnOffsetCommitRequest>();
    if (!request) return;
    const bool adds = call->version() >= first_that_adds;
    if (!adds && !broker.options()->verify_transactions) return commit(broker, call, *request);

    const auto offsets = partition_of_group(*broker.image(), request->group_id);
    const auto refuse = [call](const TxnOffsetCommitRequest& refused, ErrorCode code) {
        call->count(code);
        call->finish(refusal_of(refused, code));
    };
    if (!offsets) return refuse(*request, ErrorCode::not_coordinator);
    const coordinator::Producer producer{request->producer_id, request->producer_epoch};
    const auto id = request->transactional_id;
    const auto go_on = [&broker, call, refuse, request = std::make_shared<const TxnOffsetCommitRequest>(*std::move(request))](ErrorCode answer) {
        if (answer == ErrorCode::none) return commit(broker, call, *request);
        refuse(*request, shown(answer, call->version()));
    };
    call->hold_reading();
    auto& transactions = broker.coordinators().transactions();
    if (adds) return transactions.add_partitions(id, producer, {*offsets}, coordinator::transaction_version_2, false, go_on);
    transactions.verify_partitions(id, producer, {*offsets}, [go_on](const coordinator::VerifyAnswer& answer) {
        go_on(answer.error == ErrorCode::none && !answer.missing.empty() ? ErrorCode::transaction_abortable : answer.error);
    });
}

}  // namespace tidemark::daemon::handlers
