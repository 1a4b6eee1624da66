// How the transaction coordinator's answers are told to clients of each age: transaction-coordinator 7.4.
#include "daemon/handlers/verification.h"

#include <gmock/gmock.h>

namespace tidemark::daemon::handlers {
namespace {

using enum TransactionClient;
using protocol::ErrorCode;
using testing::HasSubstr;

using versions = std::vector<std::int16_t>;
constexpr TransactionClient clients[]{early, aware, adding};

/// What each of the clients is told.
struct Row {
    ErrorCode answer;
    ErrorCode told[3];
};

TEST(TransactionVerification, ClientsAreKnownByTheirVersions) {
    for (const auto version : versions{3, 10}) EXPECT_EQ(client_of_produce(version), early) << version;
    EXPECT_EQ(client_of_produce(11), aware);
    for (const auto version : versions{12, 13}) EXPECT_EQ(client_of_produce(version), adding) << version;
    for (const auto version : versions{0, 3}) EXPECT_EQ(client_of_txn_offset_commit(version), early) << version;
    EXPECT_EQ(client_of_txn_offset_commit(4), aware);
    for (const auto version : versions{5, 6}) EXPECT_EQ(client_of_txn_offset_commit(version), adding) << version;
}

TEST(TransactionVerification, ProducersSendAgainAfterWhatPasses) {
    using enum ErrorCode;
    const Row rows[]{
        {none, {none, none, none}},
        {transaction_abortable, {invalid_txn_state, transaction_abortable, transaction_abortable}},
        {producer_fenced, {invalid_producer_epoch, invalid_producer_epoch, invalid_producer_epoch}},
        {concurrent_transactions, {not_enough_replicas, not_enough_replicas, concurrent_transactions}},
        {coordinator_load_in_progress, {not_enough_replicas, not_enough_replicas, not_enough_replicas}},
        {coordinator_not_available, {not_enough_replicas, not_enough_replicas, not_enough_replicas}},
        {not_coordinator, {not_enough_replicas, not_enough_replicas, not_enough_replicas}},
        {network_exception, {not_enough_replicas, not_enough_replicas, not_enough_replicas}},
        {invalid_producer_id_mapping, {invalid_producer_id_mapping, invalid_producer_id_mapping, invalid_producer_id_mapping}},
        {unknown_server_error, {unknown_server_error, unknown_server_error, unknown_server_error}},
    };
    for (const auto& [answer, told] : rows) {
        for (std::size_t i = 0; i < std::size(clients); ++i) {
            const auto refusal = produce_refusal(answer, clients[i]);
            EXPECT_EQ(refusal.code, told[i]) << protocol::to_string(answer) << " " << i;
            if (refusal.code == not_enough_replicas) {
                EXPECT_THAT(refusal.text, HasSubstr(protocol::to_string(answer)));
            }
        }
    }
}

TEST(TransactionVerification, OffsetsAreToldWhatTheCoordinatorSays) {
    using enum ErrorCode;
    const Row rows[]{
        {none, {none, none, none}},
        {transaction_abortable, {invalid_txn_state, transaction_abortable, transaction_abortable}},
        {producer_fenced, {invalid_producer_epoch, invalid_producer_epoch, invalid_producer_epoch}},
        {concurrent_transactions, {concurrent_transactions, concurrent_transactions, concurrent_transactions}},
        {coordinator_load_in_progress, {coordinator_load_in_progress, coordinator_load_in_progress, coordinator_load_in_progress}},
    };
    for (const auto& [answer, told] : rows) {
        for (std::size_t i = 0; i < std::size(clients); ++i) EXPECT_EQ(verification_error(answer, clients[i]), told[i]) << protocol::to_string(answer) << " " << i;
    }
    for (const auto version : versions{0, 1}) EXPECT_EQ(txn_offset_commit_error(coordinator_load_in_progress, version), coordinator_not_available) << version;
    for (const auto version : versions{2, 6}) EXPECT_EQ(txn_offset_commit_error(coordinator_load_in_progress, version), coordinator_load_in_progress) << version;
    EXPECT_EQ(txn_offset_commit_error(invalid_txn_state, 0), invalid_txn_state);
}

}  // namespace
}  // namespace tidemark::daemon::handlers
