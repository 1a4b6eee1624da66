#include "coordinator/transaction/decisions.h"

#include "base/assert.h"

namespace tidemark::coordinator {

namespace {

using enum TransactionState;

/// What every change starts from.
Transaction changed(const Transaction& from, TransactionState state, Timestamp now) {
    auto next = from;
    next.previous_producer_id = from.producer_id;
    next.state = state;
    next.last_update = now;
    next.fence_failed = false;
    return next;
}

TransactionState prepared_state(bool commit) { return commit ? prepare_commit : prepare_abort; }

/// The result that a prepared or complete transaction has.
bool is_commit(TransactionState state) { return state == prepare_commit || state == complete_commit; }

Decision write(Transaction next) { return {.next = std::move(next)}; }

Decision write_and_tell_producer(Transaction next) {
    const auto id = next.producer_id;
    const auto epoch = next.producer_epoch;
    return {.next = std::move(next), .producer_id = id, .producer_epoch = epoch};
}

// --- the end in versions 0 to 4 ------------------------------------------------------------------------------------------

Decision end_classic(const Transaction& of, const Producer& producer, bool commit, Timestamp now) {
    if (producer.id != of.producer_id) return refuse(ErrorCode::invalid_producer_id_mapping);
    if (producer.epoch != of.producer_epoch) return refuse(ErrorCode::producer_fenced);
    if (of.state == empty) return refuse(ErrorCode::invalid_txn_state);
    if (of.state == ongoing) {
        auto next = changed(of, prepared_state(commit), now);
        next.client_version = 0;
        return write(std::move(next));
    }
    if (is_commit(of.state) != commit) return refuse(ErrorCode::invalid_txn_state);
    return refuse(is_complete(of.state) ? ErrorCode::none : ErrorCode::concurrent_transactions);
}

// --- the end from version 5 on: KIP-890 ----------------------------------------------------------------------------------

/// The answer carries producer id and epoch as they will be after completion.
Decision prepare_with_bump(const Transaction& of, bool commit, const DecisionContext& context) {
    auto next = changed(of, prepared_state(commit), context.now);
    next.client_version = transaction_version_2;
    if (of.state != ongoing) {   // an abort of nothing
        next.start = context.now;
        next.partitions.clear();
    }
    next.last_producer_epoch = of.producer_epoch;
    // The highest epoch is where fences end: an abort stays there, and nobody can be asked to commit at it.
    if (of.producer_epoch < producer_epoch_max) ++next.producer_epoch;
    if (is_exhausted(of.producer_epoch)) {
        const auto fresh = context.new_producer_id();
        if (!fresh) return refuse(fresh.error().code);
        next.next_producer_id = *fresh;
        return {.next = std::move(next), .producer_id = *fresh, .producer_epoch = 0};
    }
    return write_and_tell_producer(std::move(next));
}

Decision end_with_bump(const Transaction& of, const Producer& producer, bool commit, const DecisionContext& context) {
    const bool repeats_overflow = of.previous_producer_id == producer.id && producer.epoch == producer_epoch_exhausted && of.producer_epoch == 0;
    if (producer.id != of.producer_id && !repeats_overflow) return refuse(ErrorCode::invalid_producer_id_mapping);

    const bool repeats_bump = of.producer_epoch == producer.epoch + 1;
    const bool is_current = producer.epoch == of.producer_epoch;
    const bool repeats = repeats_bump || repeats_overflow;
    const bool epoch_is_valid = is_prepared(of.state) ? repeats_bump : is_complete(of.state) ? repeats || is_current : is_current;
    if (!epoch_is_valid) return refuse(ErrorCode::producer_fenced);

    if (of.state == ongoing) return prepare_with_bump(of, commit, context);
    if (is_prepared(of.state)) return refuse(is_commit(of.state) == commit ? ErrorCode::concurrent_transactions : ErrorCode::invalid_txn_state);
    if (is_complete(of.state) && repeats) {
        if (is_commit(of.state) != commit) return refuse(ErrorCode::invalid_txn_state);
        return {.producer_id = of.producer_id, .producer_epoch = of.producer_epoch};
    }
    // Nothing has begun. Its client cannot know whether a partition was added, so it may abort.
    return commit ? refuse(ErrorCode::invalid_txn_state) : prepare_with_bump(of, commit, context);
}

}  // namespace

Decision init_producer_id(const Transaction& of, std::int32_t timeout_ms, const ExpectedProducer& expected, const DecisionContext& context) {
    const bool expects = expected.id != no_producer_id;
    const bool is_new = of.producer_epoch == no_producer_epoch;
    if (expects && !is_new && expected.id != of.producer_id && !(expected.id == of.previous_producer_id && is_exhausted(expected.epoch))) {
        return refuse(ErrorCode::producer_fenced);
    }
    if (is_prepared(of.state)) return refuse(ErrorCode::concurrent_transactions);
    if (of.state == ongoing) {
        auto fenced = fence(of, context);
        if (!fenced.next) return fenced;
        return {.error = ErrorCode::concurrent_transactions, .next = std::move(fenced.next), .raises_fence = fenced.raises_fence};
    }

    auto next = changed(of, empty, context.now);
    next.timeout_ms = timeout_ms;
    next.partitions.clear();
    next.start = no_timestamp;
    const bool is_worn = is_exhausted(of.producer_epoch) && (!expects || expected.epoch == of.producer_epoch);
    if (is_new || is_worn) {
        const auto fresh = context.new_producer_id();
        if (!fresh) return refuse(fresh.error().code);
        next.producer_id = *fresh;
        next.producer_epoch = 0;
        if (is_new) next.previous_producer_id = *fresh;
        next.last_producer_epoch = is_worn && expects ? of.producer_epoch : no_producer_epoch;
    } else if (!expects || expected.epoch == of.producer_epoch) {
        ++next.producer_epoch;
        next.last_producer_epoch = expects ? of.producer_epoch : no_producer_epoch;
    } else if (expected.epoch != of.last_producer_epoch) {
        return refuse(ErrorCode::producer_fenced);
    }   // else a repeated request, whose answer was lost: the same answer again
    return write_and_tell_producer(std::move(next));
}

Decision add_partitions(const Transaction& to, const Producer& producer, const std::set<TopicPartition>& partitions, std::int16_t client_version, Timestamp now) {
    if (const auto error = verify_producer(to, producer); error != ErrorCode::none) return refuse(error);
    auto next = changed(to, ongoing, now);
    next.partitions.insert(partitions.begin(), partitions.end());
    if (to.state == ongoing && next.partitions == to.partitions) return {};
    if (to.state != ongoing) next.start = now;
    next.client_version = client_version;
    return write(std::move(next));
}

ErrorCode verify_producer(const Transaction& of, const Producer& producer) {
    if (producer.id != of.producer_id) return ErrorCode::invalid_producer_id_mapping;
    if (producer.epoch != of.producer_epoch) return ErrorCode::producer_fenced;
    return is_prepared(of.state) ? ErrorCode::concurrent_transactions : ErrorCode::none;
}

Decision end_transaction(const Transaction& of, const Producer& producer, bool commit, std::int16_t request_version, const DecisionContext& context) {
    return request_version >= 5 ? end_with_bump(of, producer, commit, context) : end_classic(of, producer, commit, context.now);
}

Decision fence(const Transaction& of, const DecisionContext& context) {
    TM_ASSERT(of.state == ongoing);
    if (context.transaction_version >= transaction_version_2) return prepare_with_bump(of, false, context);
    auto next = changed(of, prepare_abort, context.now);
    if (!of.fence_failed && of.producer_epoch < producer_epoch_max) ++next.producer_epoch;
    next.last_producer_epoch = no_producer_epoch;
    next.client_version = 0;
    return {.next = std::move(next), .raises_fence = true};
}

Transaction complete(const Transaction& prepared, Timestamp now) {
    TM_ASSERT(is_prepared(prepared.state));
    auto next = changed(prepared, is_commit(prepared.state) ? complete_commit : complete_abort, now);
    next.partitions.clear();
    if (prepared.client_version >= transaction_version_2 && prepared.next_producer_id != no_producer_id) {
        next.producer_id = prepared.next_producer_id;
        next.producer_epoch = 0;
    }
    next.next_producer_id = no_producer_id;
    return next;
}

bool is_timed_out(const Transaction& transaction, Timestamp now) {
    return transaction.state == ongoing && transaction.timeout_ms != timeout_never && transaction.start + transaction.timeout_ms < now;
}

bool is_expired(const Transaction& transaction, Timestamp now, std::int64_t expiration_ms) {
    const bool idle = transaction.state == empty || is_complete(transaction.state);
    return idle && transaction.last_update <= now - expiration_ms;
}

}  // namespace tidemark::coordinator
