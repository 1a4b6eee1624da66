#include "daemon/handlers/verification.h"

#include "coordinator/transaction/coordinator.h"

namespace tidemark::daemon::handlers {

using coordinator::VerifyAnswer;
using protocol::ErrorCode;

namespace {

TransactionClient client_of(std::int16_t version, std::int16_t first_aware) {
    return version > first_aware ? TransactionClient::adding : version == first_aware ? TransactionClient::aware : TransactionClient::early;
}

}  // namespace

TransactionClient client_of_produce(std::int16_t version) { return client_of(version, 11); }
TransactionClient client_of_txn_offset_commit(std::int16_t version) { return client_of(version, 4); }

void ask_transaction(coordinator::TransactionCoordinator& transactions, const std::string& id, const coordinator::Producer& producer, std::set<TopicPartition> partitions, TransactionClient client,
                     bool patient, std::function<void(const VerifyAnswer&)> then) {
    if (client != TransactionClient::adding) return transactions.verify_partitions(id, producer, std::move(partitions), std::move(then));
    transactions.add_partitions(id, producer, std::move(partitions), coordinator::transaction_version_2, patient,
                                [then = std::move(then)](ErrorCode error) { then(VerifyAnswer{.error = error}); });
}

ErrorCode verification_error(ErrorCode answer, TransactionClient client) {
    if (answer == ErrorCode::transaction_abortable && client == TransactionClient::early) return ErrorCode::invalid_txn_state;
    return answer == ErrorCode::producer_fenced ? ErrorCode::invalid_producer_epoch : answer;
}

Refusal produce_refusal(ErrorCode answer, TransactionClient client) {
    const auto code = verification_error(answer, client);
    switch (code) {
        case ErrorCode::invalid_txn_state: return {code, "Partition was not added to the transaction"};
        case ErrorCode::concurrent_transactions:
            if (client == TransactionClient::adding) return {code};
            [[fallthrough]];
        case ErrorCode::coordinator_load_in_progress:
        case ErrorCode::coordinator_not_available:
        case ErrorCode::not_coordinator:
        case ErrorCode::network_exception:
            return {ErrorCode::not_enough_replicas, "Unable to verify the partition has been added to the transaction. Underlying error: " + std::string{protocol::to_string(answer)}};
        default: return {code};
    }
}

}  // namespace tidemark::daemon::handlers
