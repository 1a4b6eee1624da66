/// What the transaction coordinator answers to a request, and what it writes: pure functions over one Transaction.
///
/// A decision with `next` holds once that value's record is written, and its answer leaves when that is durable.
/// Source: transaction-coordinator 4 to 8. What Kafka knows as a pending transition does not exist: the record is in the
/// log when the operation ends, and the next operation sees its outcome.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "coordinator/state_machine.h"
#include "coordinator/transaction/transaction.h"

namespace tidemark::coordinator {

struct Decision {
    ErrorCode error = ErrorCode::none;              ///< the answer; with `next`: after the change
    std::optional<Transaction> next = {};           ///< to be written
    /// What InitProducerId and EndTxn answer; -1 where they answer none.
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = no_producer_epoch;
    /// `next` fences by an epoch of its own (transaction.version below 2), which counts also when it cannot be written.
    bool raises_fence = false;
};

inline Decision refuse(ErrorCode error) { return {.error = error}; }

/// Whom InitProducerId believes to be: both -1 when it does not say.
struct ExpectedProducer {
    ProducerId id = no_producer_id;
    ProducerEpoch epoch = no_producer_epoch;
};

/// A producer id that nobody has; coordinator_load_in_progress when there is none at hand. Asked when one is needed.
using NewProducerId = std::function<Coded<ProducerId>()>;

/// What the coordinator knows of a request's surroundings.
struct DecisionContext {
    Timestamp now{};
    std::int16_t transaction_version = transaction_version_2;   ///< the feature's level
    const NewProducerId& new_producer_id;
};

/// InitProducerId with a transactional id. For an id that is not known yet: a Transaction{}. Of an ongoing transaction the
/// answer is CONCURRENT_TRANSACTIONS and `next` its abort: the client asks again.
Decision init_producer_id(const Transaction&, std::int32_t timeout_ms, const ExpectedProducer&, const DecisionContext&);

struct Producer {
    ProducerId id = no_producer_id;
    ProducerEpoch epoch = no_producer_epoch;
};

/// AddPartitionsToTxn and AddOffsetsToTxn. `client_version`: 2 for requests from version 4 on (KIP-890), else 0. Neither
/// error nor `next`: all partitions are in it already.
Decision add_partitions(const Transaction&, const Producer&, const std::set<TopicPartition>&, std::int16_t client_version, Timestamp now);

/// AddPartitionsToTxn with VerifyOnly: whether the transaction may write at all; TRANSACTION_ABORTABLE for a partition that
/// is not in it is for the caller to find. Ignores pending changes.
ErrorCode verify_producer(const Transaction&, const Producer&);

/// EndTxn of a client. `request_version`: from 5 on the epoch is bumped.
Decision end_transaction(const Transaction&, const Producer&, bool commit, std::int16_t request_version, const DecisionContext&);

/// The abort of an ongoing transaction by the coordinator: InitProducerId of another producer, or its time is over.
Decision fence(const Transaction&, const DecisionContext&);

/// Every marker of a prepared transaction has been written.
Transaction complete(const Transaction& prepared, Timestamp now);

/// Its time is over: it is ongoing and began more than its timeout ago.
bool is_timed_out(const Transaction&, Timestamp now);
/// Nobody has used the id for so long that it is forgotten.
bool is_expired(const Transaction&, Timestamp now, std::int64_t expiration_ms);

}  // namespace tidemark::coordinator
