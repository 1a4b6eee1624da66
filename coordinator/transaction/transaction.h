/// One transactional id: what the topic __transaction_state says of it, as a plain value, and its records.
/// Source: transaction-coordinator 2, KIP-98, KIP-890.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/topic_partition.h"
#include "base/types.h"
#include "coordinator/record.h"

namespace tidemark::coordinator {

/// Numbers as in the records. The last two are never written.
enum class TransactionState : std::int8_t {
    empty = 0, ongoing = 1, prepare_commit = 2, prepare_abort = 3, complete_commit = 4, complete_abort = 5, dead = 6, prepare_epoch_fence = 7,
};

/// "Empty", "Ongoing", …: as DescribeTransactions shows it.
std::string_view name_of(TransactionState);
/// Nothing for a name that no state has; names are as name_of() gives them.
std::optional<TransactionState> transaction_state_of(std::string_view name);

/// The result is decided and markers are on their way.
constexpr bool is_prepared(TransactionState s) { return s == TransactionState::prepare_commit || s == TransactionState::prepare_abort; }
constexpr bool is_complete(TransactionState s) { return s == TransactionState::complete_commit || s == TransactionState::complete_abort; }

/// Of producers with this timeout (two-phase commit) no transaction is aborted by time.
inline constexpr std::int32_t timeout_never = std::numeric_limits<std::int32_t>::max();

/// A producer at this epoch or above needs a new producer id; the highest of all is for markers and fences only.
inline constexpr ProducerEpoch producer_epoch_exhausted = std::numeric_limits<ProducerEpoch>::max() - 1;
inline constexpr ProducerEpoch producer_epoch_max = std::numeric_limits<ProducerEpoch>::max();
inline constexpr ProducerEpoch no_producer_epoch = -1;
constexpr bool is_exhausted(ProducerEpoch epoch) { return epoch >= producer_epoch_exhausted; }

/// transaction.version from which on each end bumps the epoch (KIP-890).
inline constexpr std::int16_t transaction_version_2 = 2;

struct Transaction {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = no_producer_epoch;           ///< -1 until the first record is written
    ProducerId previous_producer_id = no_producer_id;           ///< the one before the last change, mostly the same
    ProducerId next_producer_id = no_producer_id;               ///< taken over at completion, after an epoch that was exhausted
    ProducerEpoch last_producer_epoch = no_producer_epoch;      ///< before the last bump, for retries. Memory only
    std::int32_t timeout_ms = 0;
    TransactionState state = TransactionState::empty;
    std::set<TopicPartition> partitions = {};                   ///< that the markers go to
    Timestamp start = no_timestamp;                             ///< of the current or last transaction; none in `empty`
    Timestamp last_update = no_timestamp;
    std::int16_t client_version = 0;                            ///< transaction.version that the current transaction uses: 0 or 2
    bool fence_failed = false;   ///< its epoch was raised to fence it, but the record could not be written. Memory only

    friend bool operator==(const Transaction&, const Transaction&) = default;
};

/// `transaction_version`: the feature's level, whose level 0 has the older form without previous and next id.
Record transaction_record(const std::string& id, const Transaction&, std::int16_t transaction_version);
/// The id is forgotten.
Record transaction_tombstone(const std::string& id);

/// What a record says. `transaction` is nothing for a tombstone.
struct ReadTransaction {
    std::string id;
    std::optional<Transaction> transaction;
};
/// Nothing: a type or version of record that this program does not know, to be passed over. Errc::corrupt: undecodable.
Result<std::optional<ReadTransaction>> read_transaction_record(Bytes key, std::optional<Bytes> value);

}  // namespace tidemark::coordinator
