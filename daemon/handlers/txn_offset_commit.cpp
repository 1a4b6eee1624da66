// TxnOffsetCommit (28), versions 0 to 6: transaction-coordinator 7, group-coordinator 5. The transaction coordinator is asked
// first whether the transaction holds the group's partition, or from version 5 on told to add it (KIP-890); unless offsets of
// this transaction are there already.
#include "protocol/messages/txn_offset_commit_request.h"
#include "protocol/messages/txn_offset_commit_response.h"

#include "coordinator/errors.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"
#include "daemon/handlers/verification.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::TxnOffsetCommitRequest;
using protocol::TxnOffsetCommitResponse;

TxnOffsetCommitResponse refusal_of(const TxnOffsetCommitRequest& request, ErrorCode code, std::int16_t version) {
    code = txn_offset_commit_error(code, version);
    TxnOffsetCommitResponse response;
    for (const auto& asked : request.topics) {
        auto& topic = response.topics.emplace_back();
        topic.name = asked.name;
        topic.topic_id = asked.topic_id;
        for (const auto& partition : asked.partitions) topic.partitions.push_back({.partition_index = partition.partition_index, .error_code = code});
    }
    return response;
}

void commit(Broker& broker, const std::shared_ptr<Call>& call, const TxnOffsetCommitRequest& request, std::optional<storage::VerificationId> verification) {
    const auto version = call->version();
    if (request.producer_id != no_producer_id && request.producer_epoch < 0) {   // unverified: nobody has looked at it
        call->count(ErrorCode::unknown_server_error);
        return call->finish(refusal_of(request, ErrorCode::unknown_server_error, version));
    }
    broker.coordinators().groups().commit(request, version, verification,
                                          reply_to<TxnOffsetCommitResponse>(call, [request, version](ErrorCode code) { return refusal_of(request, code, version); }));
}

}  // namespace

void txn_offset_commit(Broker& broker, const std::shared_ptr<Call>& call) {
    auto parsed = call->parse<TxnOffsetCommitRequest>();
    if (!parsed) return;
    const auto client = client_of_txn_offset_commit(call->version());
    if (client != TransactionClient::adding && !broker.options()->verify_transactions) return commit(broker, call, *parsed, std::nullopt);

    const auto request = std::make_shared<const TxnOffsetCommitRequest>(*std::move(parsed));
    const auto refuse = [call, request](ErrorCode code) {
        call->count(code);
        call->finish(refusal_of(*request, code, call->version()));
    };
    const auto offsets = partition_of_group(*broker.image(), request->group_id);
    const auto log = offsets ? broker.logs().find(*offsets) : nullptr;
    if (!log) return refuse(ErrorCode::not_coordinator);
    const auto begun = log->begin_verification({.producer_id = request->producer_id, .epoch = request->producer_epoch, .bumps_epochs = client == TransactionClient::adding});
    if (!begun) return refuse(coordinator::coordinator_error(begun.error().code));
    const auto verification = begun->value_or(storage::VerificationId{});
    if (!*begun) return commit(broker, call, *request, verification);

    call->hold_reading();
    ask_transaction(broker.coordinators().transactions(), request->transactional_id, {request->producer_id, request->producer_epoch}, {*offsets}, client, false,
                    [&broker, call, refuse, request, client, verification, offsets = *offsets](const coordinator::VerifyAnswer& answer) {
                        const auto error = verification_error(answer.of(offsets), client);
                        if (error != ErrorCode::none) return refuse(coordinator::coordinator_error(error));
                        commit(broker, call, *request, verification);
                    });
}

}  // namespace tidemark::daemon::handlers
