// Each request in each state: transaction-coordinator 4 to 8, and the lines of coordinator-tests-to-mirror 12 and 13.
#include "coordinator/transaction/decisions.h"

#include <gmock/gmock.h>

namespace tidemark::coordinator {
namespace {

using enum TransactionState;

constexpr Timestamp now{1'000'000};
const TopicPartition data0{"data", 0};
const TopicPartition data1{"data", 1};

/// A producer 7 at epoch 4, which has begun at 900,000 and may take a minute.
Transaction transaction(TransactionState state, ProducerEpoch epoch = 4) {
    Transaction made{.producer_id = 7, .producer_epoch = epoch, .previous_producer_id = 7, .timeout_ms = 60'000, .state = state, .last_update = now - 50};
    if (state != empty) made.start = Timestamp{900'000};
    if (state == ongoing || is_prepared(state)) made.partitions = {data0};
    return made;
}

const NewProducerId none = []() -> Coded<ProducerId> { return Failure{ErrorCode::coordinator_load_in_progress}; };
const NewProducerId twelve = []() -> Coded<ProducerId> { return ProducerId{12}; };

DecisionContext context(const NewProducerId& ids = none, std::int16_t level = 2) { return {.now = now, .transaction_version = level, .new_producer_id = ids}; }

// --- InitProducerId ------------------------------------------------------------------------------------------------------

TEST(InitProducerId, BeginsANewIdAtEpochZero) {
    EXPECT_EQ(init_producer_id({}, 60'000, {}, context()).error, ErrorCode::coordinator_load_in_progress);
    const auto decision = init_producer_id({}, 60'000, {}, context(twelve));
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.error, ErrorCode::none);
    EXPECT_EQ(decision.producer_id, 12);
    EXPECT_EQ(decision.producer_epoch, 0);
    EXPECT_EQ(*decision.next, (Transaction{.producer_id = 12, .producer_epoch = 0, .previous_producer_id = 12, .timeout_ms = 60'000, .state = empty, .last_update = now}));
}

TEST(InitProducerId, OfAnExpiredIdAcceptsTheOldProducerAsExpectation) {
    const auto decision = init_producer_id({}, 60'000, {.id = 3, .epoch = 9}, context(twelve));
    EXPECT_EQ(decision.error, ErrorCode::none);
    EXPECT_EQ(decision.producer_id, 12);
}

TEST(InitProducerId, BumpsTheEpochInEveryRestingState) {
    for (const auto state : {empty, complete_commit, complete_abort}) {
        const auto decision = init_producer_id(transaction(state), 30'000, {}, context());
        ASSERT_TRUE(decision.next) << name_of(state);
        EXPECT_EQ(decision.producer_epoch, 5);
        EXPECT_EQ(decision.next->state, empty);
        EXPECT_EQ(decision.next->timeout_ms, 30'000);
        EXPECT_EQ(decision.next->start, no_timestamp);
        EXPECT_EQ(decision.next->last_producer_epoch, no_producer_epoch);
    }
}

TEST(InitProducerId, WaitsForAPreparedTransaction) {
    for (const auto state : {prepare_commit, prepare_abort}) {
        const auto decision = init_producer_id(transaction(state), 60'000, {}, context());
        EXPECT_EQ(decision.error, ErrorCode::concurrent_transactions);
        EXPECT_FALSE(decision.next);
    }
}

TEST(InitProducerId, WithAnExpectationBumpsOnceAndRepeatsItsAnswer) {
    const auto first = init_producer_id(transaction(empty), 60'000, {.id = 7, .epoch = 4}, context());
    ASSERT_TRUE(first.next);
    EXPECT_EQ(first.producer_epoch, 5);
    EXPECT_EQ(first.next->last_producer_epoch, 4);

    const auto again = init_producer_id(*first.next, 60'000, {.id = 7, .epoch = 4}, context());
    ASSERT_TRUE(again.next);   // written once more
    EXPECT_EQ(again.producer_epoch, 5);

    EXPECT_EQ(init_producer_id(*first.next, 60'000, {.id = 7, .epoch = 3}, context()).error, ErrorCode::producer_fenced);
    EXPECT_EQ(init_producer_id(*first.next, 60'000, {.id = 8, .epoch = 5}, context()).error, ErrorCode::producer_fenced);
}

TEST(InitProducerId, CannotRepeatItsAnswerAfterARestart) {
    auto loaded = *init_producer_id(transaction(empty), 60'000, {.id = 7, .epoch = 4}, context()).next;
    loaded.last_producer_epoch = no_producer_epoch;   // not in the record
    EXPECT_EQ(init_producer_id(loaded, 60'000, {.id = 7, .epoch = 4}, context()).error, ErrorCode::producer_fenced);
}

TEST(InitProducerId, TakesANewIdWhenTheEpochIsExhausted) {
    const auto worn = transaction(complete_commit, 32766);
    EXPECT_EQ(init_producer_id(worn, 60'000, {}, context()).error, ErrorCode::coordinator_load_in_progress);

    const auto first = init_producer_id(worn, 60'000, {.id = 7, .epoch = 32766}, context(twelve));
    ASSERT_TRUE(first.next);
    EXPECT_EQ(first.producer_id, 12);
    EXPECT_EQ(first.producer_epoch, 0);
    EXPECT_EQ(first.next->previous_producer_id, 7);
    EXPECT_EQ(first.next->last_producer_epoch, 32766);

    const auto again = init_producer_id(*first.next, 60'000, {.id = 7, .epoch = 32766}, context());
    EXPECT_EQ(again.error, ErrorCode::none);
    EXPECT_EQ(again.producer_id, 12);
    EXPECT_EQ(again.producer_epoch, 0);
    EXPECT_EQ(init_producer_id(*first.next, 60'000, {.id = 7, .epoch = 32765}, context()).error, ErrorCode::producer_fenced);
}

TEST(InitProducerId, AbortsWhatIsOngoingAndLetsTheClientAskAgain) {
    const auto running = transaction(ongoing, 5);
    const auto decision = init_producer_id(running, 60'000, {}, context());
    EXPECT_EQ(decision.error, ErrorCode::concurrent_transactions);
    EXPECT_EQ(decision.producer_id, no_producer_id);
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.next->state, prepare_abort);
    EXPECT_EQ(decision.next->producer_epoch, 6);
    EXPECT_EQ(decision.next->last_producer_epoch, 5);
    EXPECT_EQ(decision.next->client_version, 2);
    const auto after = init_producer_id(complete(*decision.next, now), 60'000, {}, context());
    EXPECT_EQ(after.producer_epoch, 7);
}

TEST(InitProducerId, BelowVersion2FencesWithAnEpochOfItsOwn) {
    auto running = transaction(ongoing, 5);
    const auto decision = init_producer_id(running, 60'000, {}, context(none, 1));
    ASSERT_TRUE(decision.next);
    EXPECT_TRUE(decision.raises_fence);
    EXPECT_EQ(decision.next->producer_epoch, 6);
    EXPECT_EQ(decision.next->client_version, 0);
    EXPECT_EQ(decision.next->last_producer_epoch, no_producer_epoch);

    running.producer_epoch = 6;   // what remains when its record could not be written
    running.fence_failed = true;
    EXPECT_EQ(init_producer_id(running, 60'000, {}, context(none, 1)).next->producer_epoch, 6);
}

// --- partitions ----------------------------------------------------------------------------------------------------------

TEST(AddPartitions, BeginsATransactionInEveryRestingState) {
    for (const auto state : {empty, complete_commit, complete_abort}) {
        const auto decision = add_partitions(transaction(state), {.id = 7, .epoch = 4}, {data1}, 2, now);
        ASSERT_TRUE(decision.next) << name_of(state);
        EXPECT_EQ(decision.next->state, ongoing);
        EXPECT_EQ(decision.next->start, now);
        EXPECT_EQ(decision.next->last_update, now);
        EXPECT_EQ(decision.next->client_version, 2);
        EXPECT_THAT(decision.next->partitions, testing::ElementsAre(data1));
    }
}

TEST(AddPartitions, KeepsTheStartOfWhatIsOngoing) {
    const auto decision = add_partitions(transaction(ongoing), {.id = 7, .epoch = 4}, {data1}, 0, now);
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.next->start, Timestamp{900'000});
    EXPECT_THAT(decision.next->partitions, testing::ElementsAre(data0, data1));
    EXPECT_EQ(decision.next->client_version, 0);
}

TEST(AddPartitions, WritesNothingForPartitionsThatAreInIt) {
    const auto decision = add_partitions(transaction(ongoing), {.id = 7, .epoch = 4}, {data0}, 2, now);
    EXPECT_EQ(decision.error, ErrorCode::none);
    EXPECT_FALSE(decision.next);
}

TEST(AddPartitions, RefusesOtherProducersAndPreparedTransactions) {
    EXPECT_EQ(add_partitions(transaction(ongoing), {.id = 8, .epoch = 4}, {data0}, 2, now).error, ErrorCode::invalid_producer_id_mapping);
    EXPECT_EQ(add_partitions(transaction(ongoing), {.id = 7, .epoch = 3}, {data0}, 2, now).error, ErrorCode::producer_fenced);
    EXPECT_EQ(add_partitions(transaction(ongoing), {.id = 7, .epoch = 5}, {data0}, 2, now).error, ErrorCode::producer_fenced);
    for (const auto state : {prepare_commit, prepare_abort}) {
        EXPECT_EQ(add_partitions(transaction(state), {.id = 7, .epoch = 4}, {data0}, 2, now).error, ErrorCode::concurrent_transactions);
        EXPECT_EQ(verify_producer(transaction(state), {.id = 7, .epoch = 4}), ErrorCode::concurrent_transactions);
    }
}

// --- EndTxn --------------------------------------------------------------------------------------------------------------

/// An answer without a change, or the state that is written.
struct Cell {
    ErrorCode error = ErrorCode::none;
    std::optional<TransactionState> written = {};
    friend bool operator==(const Cell&, const Cell&) = default;
    friend void PrintTo(const Cell& cell, std::ostream* to) { *to << protocol::to_string(cell.error) << (cell.written ? " and " + std::string{name_of(*cell.written)} : ""); }
};

Cell cell_of(const Decision& decision) {
    return {.error = decision.error, .written = decision.next ? std::optional{decision.next->state} : std::nullopt};
}

TEST(EndTransaction, ClassicTable) {
    struct Row {
        TransactionState state;
        Cell commit, abort;
    };
    const Row rows[] = {
        {ongoing, {.written = prepare_commit}, {.written = prepare_abort}},
        {complete_commit, {}, {ErrorCode::invalid_txn_state}},
        {complete_abort, {ErrorCode::invalid_txn_state}, {}},
        {prepare_commit, {ErrorCode::concurrent_transactions}, {ErrorCode::invalid_txn_state}},
        {prepare_abort, {ErrorCode::invalid_txn_state}, {ErrorCode::concurrent_transactions}},
        {empty, {ErrorCode::invalid_txn_state}, {ErrorCode::invalid_txn_state}},
    };
    for (const auto version : {std::int16_t{0}, std::int16_t{4}}) {
        for (const auto& row : rows) {
            EXPECT_EQ(cell_of(end_transaction(transaction(row.state), {7, 4}, true, version, context())), row.commit) << name_of(row.state);
            EXPECT_EQ(cell_of(end_transaction(transaction(row.state), {7, 4}, false, version, context())), row.abort) << name_of(row.state);
            EXPECT_EQ(end_transaction(transaction(row.state), {8, 4}, true, version, context()).error, ErrorCode::invalid_producer_id_mapping);
            EXPECT_EQ(end_transaction(transaction(row.state), {7, 3}, true, version, context()).error, ErrorCode::producer_fenced);
            EXPECT_EQ(end_transaction(transaction(row.state), {7, 5}, true, version, context()).error, ErrorCode::producer_fenced);
        }
    }
}

TEST(EndTransaction, ClassicKeepsTheEpochAndAnswersNone) {
    auto begun = transaction(ongoing);
    begun.client_version = 2;   // begun by Produce 12, ended by EndTxn 4
    const auto decision = end_transaction(begun, {7, 4}, true, 4, context());
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.next->producer_epoch, 4);
    EXPECT_EQ(decision.next->client_version, 0);
    EXPECT_EQ(decision.producer_id, no_producer_id);
    const auto done = complete(*decision.next, now + 1);
    EXPECT_EQ(done.state, complete_commit);
    EXPECT_EQ(done.producer_epoch, 4);
    EXPECT_EQ(done.start, Timestamp{900'000});
    EXPECT_EQ(done.last_update, now + 1);
    EXPECT_TRUE(done.partitions.empty());
}

TEST(EndTransaction, TableOfVersion5) {
    struct Row {
        TransactionState state;
        ProducerEpoch epoch;    // of the request; the transaction stands at 4
        Cell commit, abort;
    };
    const Row rows[] = {
        {ongoing, 4, {.written = prepare_commit}, {.written = prepare_abort}},
        {ongoing, 3, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {ongoing, 5, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {prepare_commit, 3, {ErrorCode::concurrent_transactions}, {ErrorCode::invalid_txn_state}},
        {prepare_commit, 4, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {prepare_abort, 3, {ErrorCode::invalid_txn_state}, {ErrorCode::concurrent_transactions}},
        {prepare_abort, 4, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {complete_commit, 3, {}, {ErrorCode::invalid_txn_state}},
        {complete_commit, 4, {ErrorCode::invalid_txn_state}, {.written = prepare_abort}},
        {complete_commit, 5, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {complete_abort, 3, {ErrorCode::invalid_txn_state}, {}},
        {complete_abort, 4, {ErrorCode::invalid_txn_state}, {.written = prepare_abort}},
        {complete_abort, 2, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
        {empty, 4, {ErrorCode::invalid_txn_state}, {.written = prepare_abort}},
        {empty, 3, {ErrorCode::producer_fenced}, {ErrorCode::producer_fenced}},
    };
    for (const auto& row : rows) {
        EXPECT_EQ(cell_of(end_transaction(transaction(row.state), {7, row.epoch}, true, 5, context())), row.commit) << name_of(row.state) << " " << row.epoch;
        EXPECT_EQ(cell_of(end_transaction(transaction(row.state), {7, row.epoch}, false, 5, context())), row.abort) << name_of(row.state) << " " << row.epoch;
        EXPECT_EQ(end_transaction(transaction(row.state), {8, row.epoch}, true, 5, context()).error, ErrorCode::invalid_producer_id_mapping);
    }
}

TEST(EndTransaction, Version5AnswersTheEpochOfTheNextTransaction) {
    const auto decision = end_transaction(transaction(ongoing), {7, 4}, true, 5, context());
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.producer_id, 7);
    EXPECT_EQ(decision.producer_epoch, 5);
    EXPECT_EQ(decision.next->producer_epoch, 5);
    EXPECT_EQ(decision.next->last_producer_epoch, 4);
    EXPECT_EQ(decision.next->client_version, 2);
    const auto done = complete(*decision.next, now);
    const auto repeated = end_transaction(done, {7, 4}, true, 5, context());
    EXPECT_EQ(repeated.error, ErrorCode::none);
    EXPECT_EQ(repeated.producer_id, 7);
    EXPECT_EQ(repeated.producer_epoch, 5);
}

TEST(EndTransaction, Version5AbortsNothingThroughAllItsStates) {
    const auto decision = end_transaction(transaction(complete_commit), {7, 4}, false, 5, context());
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.next->start, now);
    EXPECT_TRUE(decision.next->partitions.empty());
    EXPECT_EQ(decision.producer_epoch, 5);
    EXPECT_EQ(complete(*decision.next, now).state, complete_abort);
}

TEST(EndTransaction, Version5ChangesTheProducerIdWhenTheEpochIsExhausted) {
    const auto worn = transaction(ongoing, 32766);
    EXPECT_EQ(end_transaction(worn, {7, 32766}, true, 5, context()).error, ErrorCode::coordinator_load_in_progress);
    const auto decision = end_transaction(worn, {7, 32766}, true, 5, context(twelve));
    ASSERT_TRUE(decision.next);
    EXPECT_EQ(decision.next->producer_id, 7);
    EXPECT_EQ(decision.next->producer_epoch, 32767);
    EXPECT_EQ(decision.next->next_producer_id, 12);
    EXPECT_EQ(decision.producer_id, 12);
    EXPECT_EQ(decision.producer_epoch, 0);

    const auto done = complete(*decision.next, now);
    EXPECT_EQ(done.producer_id, 12);
    EXPECT_EQ(done.producer_epoch, 0);
    EXPECT_EQ(done.previous_producer_id, 7);
    EXPECT_EQ(done.next_producer_id, no_producer_id);
    const auto repeated = end_transaction(done, {7, 32766}, true, 5, context());
    EXPECT_EQ(repeated.error, ErrorCode::none);
    EXPECT_EQ(repeated.producer_id, 12);
    EXPECT_EQ(repeated.producer_epoch, 0);
    EXPECT_EQ(end_transaction(done, {7, 32766}, false, 5, context()).error, ErrorCode::invalid_txn_state);
}

// --- time ----------------------------------------------------------------------------------------------------------------

TEST(TransactionTimeout, PassesAfterStartPlusTimeoutNotAtIt) {
    auto running = transaction(ongoing);
    EXPECT_FALSE(is_timed_out(running, Timestamp{960'000}));
    EXPECT_TRUE(is_timed_out(running, Timestamp{960'001}));
    running.timeout_ms = timeout_never;
    EXPECT_FALSE(is_timed_out(running, Timestamp{std::numeric_limits<std::int64_t>::max()}));
    for (const auto state : {empty, prepare_commit, prepare_abort, complete_commit, complete_abort}) EXPECT_FALSE(is_timed_out(transaction(state), now));
}

TEST(TransactionTimeout, LeavesItsProducerTheAbortButNotTheCommit) {
    const auto done = complete(*fence(transaction(ongoing), context()).next, now);
    EXPECT_EQ(end_transaction(done, {7, 4}, true, 5, context()).error, ErrorCode::invalid_txn_state);
    const auto abort = end_transaction(done, {7, 4}, false, 5, context());
    EXPECT_EQ(abort.error, ErrorCode::none);
    EXPECT_EQ(abort.producer_epoch, 5);
}

TEST(TransactionExpiration, ForgetsRestingIdsOnly) {
    for (const auto state : {empty, complete_commit, complete_abort}) {
        EXPECT_TRUE(is_expired(transaction(state), now, 50));
        EXPECT_FALSE(is_expired(transaction(state), now, 51));
    }
    for (const auto state : {ongoing, prepare_commit, prepare_abort}) EXPECT_FALSE(is_expired(transaction(state), now, 0));
}

}  // namespace
}  // namespace tidemark::coordinator
