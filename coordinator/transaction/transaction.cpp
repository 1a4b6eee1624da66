#include "coordinator/transaction/transaction.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "protocol/coordinator_record.h"
#include "protocol/messages/transaction_log_key.h"
#include "protocol/messages/transaction_log_value.h"

namespace tidemark::coordinator {

namespace {

using protocol::TransactionLogKey;
using protocol::TransactionLogValue;

constexpr std::array<std::string_view, 8> state_names{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"};

bool is_written(TransactionState state) { return state != TransactionState::dead && state != TransactionState::prepare_epoch_fence; }

Result<Transaction> transaction_of(const TransactionLogValue& value) {
    if (value.transaction_status < 0 || value.transaction_status >= static_cast<std::int8_t>(state_names.size()) ||
        !is_written(static_cast<TransactionState>(value.transaction_status))) {
        return Error{Errc::corrupt, "transaction status " + std::to_string(value.transaction_status)};
    }
    Transaction transaction{.producer_id = value.producer_id,
                            .producer_epoch = value.producer_epoch,
                            .previous_producer_id = value.previous_producer_id,
                            .next_producer_id = value.next_producer_id,
                            .timeout_ms = value.transaction_timeout_ms,
                            .state = static_cast<TransactionState>(value.transaction_status),
                            .start = Timestamp{value.transaction_start_timestamp_ms},
                            .last_update = Timestamp{value.transaction_last_update_timestamp_ms},
                            .client_version = value.client_transaction_version};
    if (!value.transaction_partitions) return transaction;
    for (const auto& topic : *value.transaction_partitions) {
        for (const auto partition : topic.partition_ids) transaction.partitions.insert({topic.topic, partition});
    }
    return transaction;
}

}  // namespace

std::string_view name_of(TransactionState state) { return state_names[static_cast<std::size_t>(state)]; }

std::optional<TransactionState> transaction_state_of(std::string_view name) {
    const auto found = std::ranges::find(state_names, name);
    if (found == state_names.end()) return std::nullopt;
    return static_cast<TransactionState>(found - state_names.begin());
}

Record transaction_record(const std::string& id, const Transaction& transaction, std::int16_t transaction_version) {
    TM_ASSERT(is_written(transaction.state));
    TransactionLogValue value{.producer_id = transaction.producer_id,
                              .producer_epoch = transaction.producer_epoch,
                              .transaction_timeout_ms = transaction.timeout_ms,
                              .transaction_status = static_cast<std::int8_t>(transaction.state),
                              .transaction_last_update_timestamp_ms = transaction.last_update.value,
                              .transaction_start_timestamp_ms = transaction.start.value};
    const std::int16_t version = transaction_version > 0 ? 1 : 0;
    if (version > 0) {
        value.previous_producer_id = transaction.previous_producer_id;
        value.next_producer_id = transaction.next_producer_id;
        value.client_transaction_version = transaction.client_version;
    }
    if (transaction.state == TransactionState::empty) {
        value.transaction_partitions.reset();
    } else {
        auto& topics = value.transaction_partitions.emplace();
        for (const auto& partition : transaction.partitions) {
            if (topics.empty() || topics.back().topic != partition.topic) topics.push_back({.topic = partition.topic, .partition_ids = {}});
            topics.back().partition_ids.push_back(partition.partition);
        }
    }
    return record_of(TransactionLogKey{.transactional_id = id}, value, version);
}

Record transaction_tombstone(const std::string& id) { return tombstone_of(TransactionLogKey{.transactional_id = id}); }

Result<std::optional<ReadTransaction>> read_transaction_record(Bytes key, std::optional<Bytes> value) {
    TM_TRY(const auto type, protocol::record_type_of(key));
    if (type != TransactionLogKey::record_type) return std::optional<ReadTransaction>{};
    TM_TRY(auto id, protocol::read_key<TransactionLogKey>(key));
    if (!value) return std::optional(ReadTransaction{.id = std::move(id.transactional_id), .transaction = std::nullopt});
    auto read = protocol::read_value<TransactionLogValue>(*value);
    if (!read && read.error().code == Errc::unsupported) return std::optional<ReadTransaction>{};
    if (!read) return read.error();
    TM_TRY(auto transaction, transaction_of(*read));
    return std::optional(ReadTransaction{.id = std::move(id.transactional_id), .transaction = std::move(transaction)});
}

}  // namespace tidemark::coordinator
