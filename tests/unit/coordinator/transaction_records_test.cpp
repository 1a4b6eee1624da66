// The records of __transaction_state: their forms, and what Apache Kafka wrote.
#include <gmock/gmock.h>

#include "coordinator/transaction/transaction.h"
#include "protocol/coordinator_record.h"
#include "protocol/messages/transaction_log_value.h"

namespace tidemark::coordinator {
namespace {

Transaction everything() {
    return {.producer_id = 7,
            .producer_epoch = 32767,
            .previous_producer_id = 6,
            .next_producer_id = 9,
            .timeout_ms = 60'000,
            .state = TransactionState::prepare_commit,
            .partitions = {{"data", 0}, {"data", 2}, {"other", 1}},
            .start = Timestamp{900},
            .last_update = Timestamp{1000},
            .client_version = 2};
}

Result<std::optional<ReadTransaction>> read(const Record& record) {
    return read_transaction_record(record.key, record.value ? std::optional<Bytes>{*record.value} : std::nullopt);
}

TEST(TransactionRecords, ComeBackAsTheyWere) {
    const auto read_back = read(transaction_record("tx", everything(), 2));
    ASSERT_TRUE(read_back && *read_back);
    EXPECT_EQ((*read_back)->id, "tx");
    EXPECT_EQ((*read_back)->transaction, everything());
}

TEST(TransactionRecords, AtLevelZeroHaveTheOlderForm) {
    const auto record = transaction_record("tx", everything(), 0);
    EXPECT_EQ(std::to_integer<int>((*record.value)[1]), 0);
    const auto read_back = read(record);
    ASSERT_TRUE(read_back && *read_back);
    EXPECT_EQ((*read_back)->transaction->previous_producer_id, no_producer_id);
    EXPECT_EQ((*read_back)->transaction->next_producer_id, no_producer_id);
    EXPECT_EQ((*read_back)->transaction->client_version, 0);
    EXPECT_EQ((*read_back)->transaction->partitions, everything().partitions);
}

TEST(TransactionRecords, DoNotKeepWhatIsOfThisProcessOnly) {
    auto transaction = everything();
    transaction.last_producer_epoch = 3;
    transaction.fence_failed = true;
    const auto read_back = read(transaction_record("tx", transaction, 2));
    ASSERT_TRUE(read_back && *read_back);
    EXPECT_EQ((*read_back)->transaction, everything());
}

TEST(TransactionRecords, TombstonesNameTheIdAlone) {
    const auto read_back = read(transaction_tombstone("tx"));
    ASSERT_TRUE(read_back && *read_back);
    EXPECT_EQ((*read_back)->id, "tx");
    EXPECT_FALSE((*read_back)->transaction);
}

TEST(TransactionRecords, OfLaterKindsArePassedOver) {
    auto record = transaction_record("tx", everything(), 2);
    (*record.value)[1] = std::byte{9};
    const auto later_value = read(record);
    ASSERT_TRUE(later_value);
    EXPECT_FALSE(*later_value);
    record.key[1] = std::byte{5};
    const auto later_key = read(record);
    ASSERT_TRUE(later_key);
    EXPECT_FALSE(*later_key);
}

TEST(TransactionRecords, ThatCannotBeDecodedAreErrors) {
    auto record = transaction_record("tx", everything(), 2);
    record.value->resize(record.value->size() / 2);
    EXPECT_EQ(read(record).error().code, Errc::corrupt);
    record = transaction_record("tx", everything(), 2);
    record.key.pop_back();
    EXPECT_FALSE(read(record));
    // A state that is never written.
    protocol::TransactionLogValue value{.transaction_status = 7};
    record.value = *protocol::value_bytes(value, 1);
    record.key = transaction_tombstone("tx").key;
    EXPECT_EQ(read(record).error().code, Errc::corrupt);
}

TEST(TransactionStates, HaveNames) {
    EXPECT_EQ(name_of(TransactionState::prepare_epoch_fence), "PrepareEpochFence");
    EXPECT_EQ(transaction_state_of("CompleteAbort"), TransactionState::complete_abort);
    EXPECT_EQ(transaction_state_of("completeabort"), std::nullopt);
}

}  // namespace
}  // namespace tidemark::coordinator
