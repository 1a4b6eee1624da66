/// What comes before an append inside a transaction: its coordinator is asked whether the producer may write there, or told
/// to take the partitions in (transaction-coordinator 7). Produce and TxnOffsetCommit do the same in versions of their own.
///
/// The log is told first (Log::begin_verification()), so that it notices when the transaction ends before the append.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/topic_partition.h"
#include "protocol/error_code.h"

namespace tidemark::coordinator {
struct Producer;
struct VerifyAnswer;
class TransactionCoordinator;
}  // namespace tidemark::coordinator

namespace tidemark::daemon::handlers {

/// How far a client, known by its request's version, has come with KIP-890.
enum class TransactionClient : std::uint8_t {
    early,   ///< does not know TRANSACTION_ABORTABLE
    aware,   ///< knows it (part 1), and adds partitions before it writes to them
    adding,  ///< leaves that to the request which writes (part 2)
};
TransactionClient client_of_produce(std::int16_t version);
TransactionClient client_of_txn_offset_commit(std::int16_t version);

/// Asks once about all partitions. `patient`: see TransactionMachine::add_partitions(). `then` may come from any thread.
void ask_transaction(coordinator::TransactionCoordinator&, const std::string& id, const coordinator::Producer&, std::set<TopicPartition>, TransactionClient, bool patient,
                     std::function<void(const coordinator::VerifyAnswer&)> then);

/// The coordinator's answer for a partition as such a client is told it.
protocol::ErrorCode verification_error(protocol::ErrorCode answer, TransactionClient);
/// A refusal of TxnOffsetCommit in its version: the oldest producers give up on a coordinator that loads, so it is not available.
constexpr protocol::ErrorCode txn_offset_commit_error(protocol::ErrorCode refusal, std::int16_t version) {
    return version < 2 && refusal == protocol::ErrorCode::coordinator_load_in_progress ? protocol::ErrorCode::coordinator_not_available : refusal;
}

struct Refusal {
    protocol::ErrorCode code = protocol::ErrorCode::none;
    std::string text = {};
    friend bool operator==(const Refusal&, const Refusal&) = default;
};
/// The same in a produce response, where what passes is told so that old producers send again too. Code none: append.
Refusal produce_refusal(protocol::ErrorCode answer, TransactionClient);

}  // namespace tidemark::daemon::handlers
