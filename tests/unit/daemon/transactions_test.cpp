// Transactions through a server: transaction-coordinator 4 to 9 and 11 as clients of both protocols see them.
#include <gmock/gmock.h>

#include <future>

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "protocol/messages/add_offsets_to_txn_request.h"
#include "protocol/messages/add_offsets_to_txn_response.h"
#include "protocol/messages/add_partitions_to_txn_request.h"
#include "protocol/messages/add_partitions_to_txn_response.h"
#include "protocol/messages/describe_producers_request.h"
#include "protocol/messages/describe_producers_response.h"
#include "protocol/messages/describe_transactions_request.h"
#include "protocol/messages/describe_transactions_response.h"
#include "protocol/messages/end_txn_request.h"
#include "protocol/messages/end_txn_response.h"
#include "protocol/messages/fetch_request.h"
#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"
#include "protocol/messages/list_transactions_request.h"
#include "protocol/messages/list_transactions_response.h"
#include "protocol/messages/offset_fetch_request.h"
#include "protocol/messages/offset_fetch_response.h"
#include "protocol/messages/txn_offset_commit_request.h"
#include "protocol/messages/txn_offset_commit_response.h"
#include "protocol/messages/write_txn_markers_request.h"
#include "protocol/messages/write_txn_markers_response.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using coordinator::Producer;
using protocol::ErrorCode;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;
using versions = std::vector<std::int16_t>;

const metadata::ConfigMap few_partitions{{"transaction.state.log.num.partitions", "3"}, {"offsets.topic.num.partitions", "3"}};

/// Asks again, as clients do, until the answer's error is another one; the last answer after ten seconds.
template <class Ask>
auto until_not(ErrorCode retriable, const Ask& ask) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    auto answer = ask();
    while (answer.error_code == retriable && std::chrono::steady_clock::now() < end) answer = ask();
    return answer;
}

class Transactions : public testing::Test {
protected:
    explicit Transactions(metadata::ConfigMap file = few_partitions) : broker({.file = std::move(file)}) {
        for (const std::int8_t key_type : {std::int8_t{0}, std::int8_t{1}}) {
            until_not(ErrorCode::coordinator_not_available, [&] {
                return client.ask<protocol::FindCoordinatorResponse>(protocol::FindCoordinatorRequest{.key_type = key_type, .coordinator_keys = {"tx"}}, 6).coordinators.at(0);
            });
        }
    }

    protocol::InitProducerIdResponse init(const std::string& id, Producer expected = {}, std::int32_t timeout_ms = 60'000, std::int16_t version = 5) {
        const protocol::InitProducerIdRequest request{.transactional_id = id, .transaction_timeout_ms = timeout_ms, .producer_id = expected.id, .producer_epoch = expected.epoch};
        return until_not(ErrorCode::coordinator_load_in_progress, [&] {
            return until_not(ErrorCode::concurrent_transactions, [&] { return client.ask<protocol::InitProducerIdResponse>(request, version); });
        });
    }
    Producer begin(const std::string& id) {
        const auto answer = init(id);
        EXPECT_EQ(answer.error_code, ErrorCode::none);
        return {answer.producer_id, answer.producer_epoch};
    }
    protocol::produce_response::PartitionProduceResponse produce(const std::string& id, Producer producer, Sequence first, const std::string& value, std::int16_t version = 13,
                                                                 std::int32_t partition = 0, bool transactional = true) {
        auto records = test::batch_of({value}, {.producer_id = producer.id, .producer_epoch = producer.epoch, .base_sequence = first, .transactional = transactional});
        auto request = test::produce_request("t", topic, partition, records);
        request.transactional_id = id;
        return client.ask<protocol::ProduceResponse>(request, version).responses.at(0).partition_responses.at(0);
    }
    protocol::EndTxnResponse end(const std::string& id, Producer producer, bool commit, std::int16_t version = 5) {
        return client.ask<protocol::EndTxnResponse>(protocol::EndTxnRequest{.transactional_id = id, .producer_id = producer.id, .producer_epoch = producer.epoch, .committed = commit}, version);
    }
    protocol::TxnOffsetCommitRequest offsets_of(const std::string& id, Producer producer, std::int64_t offset, std::int16_t version) const {
        protocol::TxnOffsetCommitRequest request{.transactional_id = id, .group_id = "my-group", .producer_id = producer.id, .producer_epoch = producer.epoch};
        auto& asked = request.topics.emplace_back();
        if (version < 6) asked.name = "t";
        else asked.topic_id = topic;
        asked.partitions.push_back({.partition_index = 0, .committed_offset = offset});
        return request;
    }
    ErrorCode send_offset(const std::string& id, Producer producer, std::int64_t offset, std::int16_t version) {
        const auto answer = client.ask<protocol::TxnOffsetCommitResponse>(offsets_of(id, producer, offset, version), version).topics.at(0);
        EXPECT_EQ(answer.topic_id, version < 6 ? Uuid{} : topic);
        return answer.partitions.at(0).error_code;
    }
    ErrorCode add_offsets(const std::string& id, Producer producer, std::int16_t version = 3) {
        const protocol::AddOffsetsToTxnRequest request{.transactional_id = id, .producer_id = producer.id, .producer_epoch = producer.epoch, .group_id = "my-group"};
        return client.ask<protocol::AddOffsetsToTxnResponse>(request, version).error_code;
    }
    /// Of "my-group" in partition 0 of "t"; -1: none.
    std::int64_t committed_offset() {
        protocol::OffsetFetchRequest request{.require_stable = true};
        request.groups.push_back({.group_id = "my-group"});
        request.groups.back().topics->push_back({.topic_id = topic, .partition_indexes = {0}});
        return client.ask<protocol::OffsetFetchResponse>(request, 10).groups.at(0).topics.at(0).partitions.at(0).committed_offset;
    }
    /// The error of each partition of "t".
    std::vector<ErrorCode> add(const std::string& id, Producer producer, std::vector<std::int32_t> partitions, std::int16_t version = 3, bool verify_only = false) {
        protocol::AddPartitionsToTxnRequest request;
        if (version < 4) {
            request.v3_and_below_transactional_id = id;
            request.v3_and_below_producer_id = producer.id;
            request.v3_and_below_producer_epoch = producer.epoch;
            request.v3_and_below_topics.push_back({.name = "t", .partitions = std::move(partitions)});
        } else {
            request.transactions.push_back({.transactional_id = id, .producer_id = producer.id, .producer_epoch = producer.epoch, .verify_only = verify_only});
            request.transactions.back().topics.push_back({.name = "t", .partitions = std::move(partitions)});
        }
        const auto response = client.ask<protocol::AddPartitionsToTxnResponse>(request, version);
        const auto& topics = version < 4 ? response.results_by_topic_v3_and_below : response.results_by_transaction.at(0).topic_results;
        std::vector<ErrorCode> errors;
        for (const auto& partition : topics.at(0).results_by_partition) errors.push_back(partition.partition_error_code);
        return errors;
    }
    protocol::describe_transactions_response::TransactionState describe(const std::string& id) {
        protocol::DescribeTransactionsRequest request;
        request.transactional_ids = {id};
        return client.ask<protocol::DescribeTransactionsResponse>(request, 0).transaction_states.at(0);
    }
    /// Waits until the transaction of `id` stands there.
    void wait_for(const std::string& id, std::string_view state) {
        const auto end = std::chrono::steady_clock::now() + 10s;
        auto seen = describe(id).transaction_state;
        while (seen != state && std::chrono::steady_clock::now() < end) seen = describe(id).transaction_state;
        ASSERT_EQ(seen, state);
    }
    std::vector<std::string> committed(std::int32_t partition = 0) {
        protocol::FetchRequest request{.max_wait_ms = 0, .min_bytes = 0, .isolation_level = 1};
        request.topics.push_back({.topic_id = topic, .partitions = {{.partition = partition, .partition_max_bytes = 1 << 20}}});
        auto response = client.ask<protocol::FetchResponse>(request, 17);
        const auto& data = response.responses.at(0).partitions.at(0);
        std::vector<std::string> values;
        record::BatchCursor cursor{data.records ? data.records->bytes : MutableBytes{}};
        record::RecordReader reader;
        std::set<ProducerId> aborting;
        for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
            const auto id = (*batch)->producer_id();
            for (const auto& aborted : data.aborted_transactions.value_or(std::vector<protocol::fetch_response::AbortedTransaction>{})) {
                if (aborted.producer_id == id && aborted.first_offset <= (*batch)->base_offset().value) aborting.insert(id);
            }
            EXPECT_TRUE(reader.open(**batch));
            for (auto record = reader.next(); record && *record; record = reader.next()) {
                if ((*batch)->is_control()) aborting.erase(id);
                else if (!((*batch)->is_transactional() && aborting.contains(id))) values.emplace_back(as_text(*(*record)->value));
            }
        }
        return values;
    }

    test::TestBroker broker;
    Uuid topic = broker.create_topic("t", 2);
    test::TestClient client = broker.client();
};

TEST_F(Transactions, OfTheNewProtocolAreVisibleWhenTheyAreCommitted) {
    auto producer = begin("tx");
    EXPECT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);   // nobody added the partition
    EXPECT_EQ(produce("tx", producer, 1, "b").error_code, ErrorCode::none);
    EXPECT_EQ(produce("tx", producer, 0, "c", 13, 1).error_code, ErrorCode::none);
    EXPECT_THAT(committed(), IsEmpty());
    const auto described = describe("tx");
    EXPECT_EQ(described.transaction_state, "Ongoing");
    EXPECT_THAT(described.topics.at(0).partitions, ElementsAre(0, 1));
    EXPECT_GT(described.transaction_start_time_ms, 0);

    const auto ended = end("tx", producer, true);
    EXPECT_EQ(ended.error_code, ErrorCode::none);
    EXPECT_EQ(ended.producer_id, producer.id);
    EXPECT_EQ(ended.producer_epoch, 1);
    wait_for("tx", "CompleteCommit");
    EXPECT_THAT(describe("tx").topics, IsEmpty());
    EXPECT_THAT(committed(), ElementsAre("a", "b"));
    EXPECT_THAT(committed(1), ElementsAre("c"));
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{3});   // two records, one marker
    EXPECT_EQ(broker.broker().coordinators().transactions().stats().committed, 1u);

    producer.epoch = ended.producer_epoch;
    EXPECT_EQ(produce("tx", producer, 0, "d").error_code, ErrorCode::none);
    EXPECT_EQ(end("tx", producer, false).producer_epoch, 2);
    wait_for("tx", "CompleteAbort");
    EXPECT_THAT(committed(), ElementsAre("a", "b"));
}

TEST_F(Transactions, TheNextOneMayBeginWhileMarkersAreOnTheirWay) {
    auto producer = begin("tx");
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(produce("tx", producer, 0, std::to_string(i)).error_code, ErrorCode::none) << i;
        const auto ended = end("tx", producer, true);
        ASSERT_EQ(ended.error_code, ErrorCode::none) << i;
        producer.epoch = ended.producer_epoch;
    }
    wait_for("tx", "CompleteCommit");
    EXPECT_EQ(committed().size(), 20u);
}

TEST_F(Transactions, OfTheClassicProtocolKeepTheirEpoch) {
    const auto producer = begin("tx");
    EXPECT_THAT(add("tx", producer, {0}), ElementsAre(ErrorCode::none));
    EXPECT_EQ(produce("tx", producer, 0, "a", 11).error_code, ErrorCode::none);
    const auto ended = end("tx", producer, true, 4);
    EXPECT_EQ(ended.error_code, ErrorCode::none);
    wait_for("tx", "CompleteCommit");
    EXPECT_EQ(describe("tx").producer_epoch, producer.epoch);
    EXPECT_THAT(committed(), ElementsAre("a"));
    EXPECT_EQ(end("tx", producer, true, 4).error_code, ErrorCode::none);   // a retry
    EXPECT_EQ(end("tx", producer, false, 4).error_code, ErrorCode::invalid_txn_state);
}

TEST_F(Transactions, OldProducersMustHaveAddedThePartition) {
    const auto producer = begin("tx");
    EXPECT_EQ(produce("tx", producer, 0, "a", 11).error_code, ErrorCode::transaction_abortable);
    const auto older = produce("tx", producer, 0, "a", 10);
    EXPECT_EQ(older.error_code, ErrorCode::invalid_txn_state);
    EXPECT_EQ(older.error_message, "Partition was not added to the transaction");
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{0});
}

TEST_F(Transactions, AProducerIsHeldToItsEpochAndSequences) {
    const auto producer = begin("tx");
    EXPECT_EQ(produce("tx", producer, 5, "late").error_code, ErrorCode::out_of_order_sequence_number);
    EXPECT_EQ(describe("tx").transaction_state, "Ongoing");   // the partition has been added all the same
    EXPECT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);
    EXPECT_EQ(produce("tx", producer, 2, "gap").error_code, ErrorCode::out_of_order_sequence_number);
    EXPECT_EQ(produce("tx", producer, 1, "plain", 13, 0, false).error_code, ErrorCode::invalid_txn_state);
    EXPECT_EQ(produce("tx", {producer.id, 7}, 0, "future").error_code, ErrorCode::invalid_producer_epoch);
    EXPECT_EQ(produce("tx", {producer.id + 1, 0}, 0, "other").error_code, ErrorCode::invalid_producer_id_mapping);
    const auto next = begin("tx");   // aborts what was open
    EXPECT_EQ(next.epoch, 2);
    EXPECT_EQ(produce("tx", producer, 1, "zombie").error_code, ErrorCode::invalid_producer_epoch);
    EXPECT_THAT(committed(), IsEmpty());
}

TEST_F(Transactions, OneRequestIsOfOneProducer) {
    const auto producer = begin("tx");
    auto mine = test::batch_of({"a"}, {.producer_id = producer.id, .producer_epoch = 0, .base_sequence = 0, .transactional = true});
    auto other = test::batch_of({"b"}, {.producer_id = producer.id + 1, .producer_epoch = 0, .base_sequence = 0, .transactional = true});
    auto request = test::produce_request("t", topic, 0, mine);
    request.transactional_id = "tx";
    request.topic_data.at(0).partition_data.push_back({.index = 1, .records = protocol::Records{.bytes = other}});
    const auto response = client.ask<protocol::ProduceResponse>(request);
    ASSERT_EQ(response.responses.at(0).partition_responses.size(), 2u);
    for (const auto& partition : response.responses.at(0).partition_responses) {
        EXPECT_EQ(partition.error_code, ErrorCode::invalid_producer_id_mapping);
    }
}

TEST_F(Transactions, PartitionsAreAddedTogetherOrNotAtAll) {
    const auto producer = begin("tx");
    EXPECT_THAT(add("tx", producer, {0, 9}), ElementsAre(ErrorCode::operation_not_attempted, ErrorCode::unknown_topic_or_partition));
    EXPECT_EQ(describe("tx").transaction_state, "Empty");
    EXPECT_THAT(add("unknown", producer, {0}), ElementsAre(ErrorCode::invalid_producer_id_mapping));
    EXPECT_THAT(add("tx", {producer.id, 1}, {0}), ElementsAre(ErrorCode::producer_fenced));
    EXPECT_THAT(add("tx", {producer.id, 1}, {0}, 1), ElementsAre(ErrorCode::invalid_producer_epoch));
    EXPECT_THAT(add("tx", producer, {0}, 5, true), ElementsAre(ErrorCode::transaction_abortable));
    EXPECT_THAT(add("tx", producer, {0}, 5), ElementsAre(ErrorCode::none));
    EXPECT_THAT(add("tx", producer, {0, 1}, 5, true), ElementsAre(ErrorCode::none, ErrorCode::transaction_abortable));
}

TEST_F(Transactions, OffsetsJoinThroughTheirGroupsPartition) {
    const auto producer = begin("tx");
    EXPECT_EQ(add_offsets("tx", {producer.id, 3}, 4), ErrorCode::producer_fenced);
    EXPECT_EQ(add_offsets("tx", {producer.id, 3}, 1), ErrorCode::invalid_producer_epoch);
    EXPECT_EQ(add_offsets("tx", producer, 4), ErrorCode::none);
    const auto topics = describe("tx").topics;
    ASSERT_EQ(topics.size(), 1u);
    EXPECT_EQ(topics.front().topic, "__consumer_offsets");
    EXPECT_THAT(topics.front().partitions, ElementsAre(0));
}

TEST_F(Transactions, OffsetsNeedTheirPartitionInTheTransaction) {
    auto producer = begin("tx");
    for (const auto version : versions{0, 2, 3}) EXPECT_EQ(send_offset("tx", producer, 5, version), ErrorCode::invalid_txn_state) << version;
    EXPECT_EQ(send_offset("tx", producer, 5, 4), ErrorCode::transaction_abortable);
    for (const auto version : versions{3, 4, 5, 6}) EXPECT_EQ(send_offset("tx", {producer.id, 7}, 5, version), ErrorCode::invalid_producer_epoch) << version;
    EXPECT_EQ(describe("tx").transaction_state, "Empty");
    EXPECT_EQ(add_offsets("tx", producer), ErrorCode::none);
    for (const auto version : versions{3, 4}) EXPECT_EQ(send_offset("tx", producer, version, version), ErrorCode::none) << version;
    EXPECT_EQ(end("tx", producer, true, 4).error_code, ErrorCode::none);
    wait_for("tx", "CompleteCommit");
    EXPECT_EQ(committed_offset(), 4);
    for (const auto version : versions{5, 6}) {   // add it themselves
        EXPECT_EQ(send_offset("tx", producer, version, version), ErrorCode::none) << version;
        producer.epoch = end("tx", producer, true).producer_epoch;
        wait_for("tx", "CompleteCommit");
        EXPECT_EQ(committed_offset(), version);
    }
    EXPECT_EQ(send_offset("tx", {producer.id, 0}, 5, 4), ErrorCode::invalid_producer_epoch) << "the log has seen a higher one";
}

TEST_F(Transactions, OffsetsThatComeAfterTheEndBeginNothing) {
    const auto producer = begin("tx");
    auto& log = broker.log("__consumer_offsets", 0);
    // The coordinator has agreed, and before the offsets are appended the transaction ends.
    const auto agreed = log.begin_verification({.producer_id = producer.id, .epoch = producer.epoch}).value();
    ASSERT_TRUE(agreed);
    EXPECT_EQ(add_offsets("tx", producer), ErrorCode::none);
    EXPECT_EQ(end("tx", producer, false, 4).error_code, ErrorCode::none);
    wait_for("tx", "CompleteAbort");
    const auto end_before = log.log_end_offset();
    const auto told = std::make_shared<std::promise<ErrorCode>>();
    broker.broker().coordinators().groups().commit(offsets_of("tx", producer, 5, 4), 4, agreed, [told](const coordinator::Coded<protocol::TxnOffsetCommitResponse>& answer) {
        told->set_value(answer ? answer->topics.at(0).partitions.at(0).error_code : answer.error().code);
    });
    EXPECT_EQ(told->get_future().get(), ErrorCode::invalid_txn_state);
    EXPECT_EQ(log.log_end_offset(), end_before);
    EXPECT_EQ(log.last_stable_offset(), end_before);
}

TEST(TransactionsBeforeGroups, OffsetsJoinWhereTheirGroupIsGoingToLive) {
    test::TestBroker broker{{.file = few_partitions}};
    auto client = broker.client();
    until_not(ErrorCode::coordinator_not_available, [&] {
        return client.ask<protocol::FindCoordinatorResponse>(protocol::FindCoordinatorRequest{.key_type = 1, .coordinator_keys = {"tx"}}, 6).coordinators.at(0);
    });
    const auto begun = until_not(ErrorCode::coordinator_load_in_progress, [&] {
        return client.ask<protocol::InitProducerIdResponse>(protocol::InitProducerIdRequest{.transactional_id = "tx", .transaction_timeout_ms = 60'000}, 5);
    });
    const protocol::AddOffsetsToTxnRequest request{.transactional_id = "tx", .producer_id = begun.producer_id, .producer_epoch = begun.producer_epoch, .group_id = "my-group"};
    EXPECT_EQ(client.ask<protocol::AddOffsetsToTxnResponse>(request, 4).error_code, ErrorCode::none);
    protocol::DescribeTransactionsRequest described;
    described.transactional_ids = {"tx"};
    const auto state = client.ask<protocol::DescribeTransactionsResponse>(described, 0).transaction_states.at(0);
    ASSERT_EQ(state.topics.size(), 1u);
    EXPECT_EQ(state.topics.front().topic, "__consumer_offsets");
    EXPECT_THAT(state.topics.front().partitions, ElementsAre(0));
    // Nothing went there: the topic is still not there, and the transaction ends without it.
    EXPECT_EQ(client.ask<protocol::EndTxnResponse>(protocol::EndTxnRequest{.transactional_id = "tx", .producer_id = begun.producer_id, .producer_epoch = begun.producer_epoch, .committed = true}, 4).error_code,
              ErrorCode::none);
    EXPECT_EQ(until_not(ErrorCode::concurrent_transactions, [&] {
        return client.ask<protocol::InitProducerIdResponse>(protocol::InitProducerIdRequest{.transactional_id = "tx", .transaction_timeout_ms = 60'000}, 5);
    }).error_code, ErrorCode::none);
}

TEST_F(Transactions, InitProducerIdChecksItsRequest) {
    EXPECT_EQ(init("").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(init("tx", {}, 0).error_code, ErrorCode::invalid_transaction_timeout);
    EXPECT_EQ(init("tx", {}, 900'001).error_code, ErrorCode::invalid_transaction_timeout);
    const auto first = init("tx");
    EXPECT_EQ(first.producer_epoch, 0);
    EXPECT_EQ(init("tx", {first.producer_id, 0}).producer_epoch, 1);
    EXPECT_EQ(init("tx", {first.producer_id, 0}).producer_epoch, 1);
    EXPECT_EQ(init("tx", {first.producer_id, 9}).error_code, ErrorCode::producer_fenced);
    EXPECT_EQ(init("tx", {first.producer_id, 9}, 60'000, 3).error_code, ErrorCode::invalid_producer_epoch);
}

TEST_F(Transactions, CanBeListedAndDescribed) {
    const auto running = begin("running");
    begin("idle");
    ASSERT_EQ(produce("running", running, 0, "a").error_code, ErrorCode::none);
    const auto list = [&](protocol::ListTransactionsRequest request) {
        const auto response = client.ask<protocol::ListTransactionsResponse>(request, 2);
        std::vector<std::string> ids;
        for (const auto& state : response.transaction_states) ids.push_back(state.transactional_id);
        std::ranges::sort(ids);
        return ids;
    };
    EXPECT_THAT(list({}), ElementsAre("idle", "running"));
    EXPECT_THAT(list({.state_filters = {"Ongoing"}}), ElementsAre("running"));
    EXPECT_THAT(list({.producer_id_filters = {running.id}}), ElementsAre("running"));
    EXPECT_THAT(list({.duration_filter = 3'600'000}), ElementsAre("idle"));   // as Kafka: what has not begun matches
    EXPECT_THAT(list({.transactional_id_pattern = "run.*"}), ElementsAre("running"));
    EXPECT_THAT(list({.transactional_id_pattern = "un"}), IsEmpty());
    const auto unknown = client.ask<protocol::ListTransactionsResponse>(protocol::ListTransactionsRequest{.state_filters = {"Sleeping"}}, 2);
    EXPECT_THAT(unknown.unknown_state_filters, ElementsAre("Sleeping"));
    EXPECT_THAT(unknown.transaction_states, IsEmpty());
    EXPECT_EQ(client.ask<protocol::ListTransactionsResponse>(protocol::ListTransactionsRequest{.transactional_id_pattern = "("}, 2).error_code, ErrorCode::invalid_regular_expression);
    EXPECT_EQ(describe("").error_code, ErrorCode::invalid_request);
    EXPECT_EQ(describe("nobody").error_code, ErrorCode::transactional_id_not_found);
}

TEST_F(Transactions, AnAdministratorCanEndThemInOnePartition) {
    const auto producer = begin("tx");
    ASSERT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);
    protocol::WriteTxnMarkersRequest request;
    request.markers.push_back({.producer_id = producer.id, .producer_epoch = producer.epoch, .transaction_result = false});
    request.markers.back().topics.push_back({.name = "t", .partition_indexes = {0, 9}});
    const auto answered = client.ask<protocol::WriteTxnMarkersResponse>(request, 1).markers.at(0).topics.at(0).partitions;
    EXPECT_EQ(answered.at(0).error_code, ErrorCode::none);
    EXPECT_EQ(answered.at(1).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(broker.log("t").last_stable_offset(), Offset{2});
    EXPECT_EQ(end("tx", producer, false).error_code, ErrorCode::none);
    wait_for("tx", "CompleteAbort");
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{3}) << "a second marker, which ends nothing";
    EXPECT_EQ(broker.log("t").aborted_between(Offset{0}, Offset{3}).size(), 1u);
}

TEST_F(Transactions, AreSeenInTheProducersOfTheirPartition) {
    const auto seen = [&] {
        protocol::DescribeProducersRequest request;
        request.topics.push_back({.name = "t", .partition_indexes = {0}});
        return client.ask<protocol::DescribeProducersResponse>(request, 0).topics.at(0).partitions.at(0).active_producers.at(0);
    };
    const auto producer = begin("tx");
    ASSERT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);
    const auto open = seen();
    EXPECT_EQ(open.producer_id, producer.id);
    EXPECT_EQ(open.last_sequence, 0);
    EXPECT_EQ(open.current_txn_start_offset, 0);
    EXPECT_EQ(open.coordinator_epoch, -1);
    EXPECT_EQ(end("tx", producer, true).error_code, ErrorCode::none);
    wait_for("tx", "CompleteCommit");
    const auto ended = seen();
    EXPECT_EQ(ended.producer_epoch, 1);
    EXPECT_EQ(ended.last_sequence, -1);
    EXPECT_EQ(ended.current_txn_start_offset, -1);
    EXPECT_GE(ended.coordinator_epoch, 0);
}

TEST_F(Transactions, MarkersOfNobodyAreNotWritten) {
    protocol::WriteTxnMarkersRequest request;
    for (const auto& [id, epoch] : {std::pair{-1, 0}, {5, -1}, {5, -32768}, {-1, -1}}) {
        request.markers.push_back({.producer_id = id, .producer_epoch = static_cast<ProducerEpoch>(epoch)});
        for (const auto* topic : {"t", "__consumer_offsets"}) request.markers.back().topics.push_back({.name = topic, .partition_indexes = {0}});
    }
    for (const auto& marker : client.ask<protocol::WriteTxnMarkersResponse>(request, 1).markers) {
        for (const auto& topic : marker.topics) EXPECT_EQ(topic.partitions.at(0).error_code, ErrorCode::unknown_server_error) << topic.name;
    }
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{0});
}

TEST_F(Transactions, OffsetsOfANegativeEpochAreNotWritten) {
    daemon::Options unverified;
    unverified.verify_transactions = false;   // so nobody looks at them before
    broker.server().set_options(unverified);
    protocol::TxnOffsetCommitRequest request{.transactional_id = "tx", .group_id = "g", .producer_id = 5, .producer_epoch = 0};
    request.topics.push_back({.name = "t"});
    request.topics.back().partitions.push_back({.partition_index = 0, .committed_offset = 7});
    const auto commit = [&] { return client.ask<protocol::TxnOffsetCommitResponse>(request, 2).topics.at(0).partitions.at(0); };
    until_not(ErrorCode::coordinator_load_in_progress, commit);
    EXPECT_EQ(commit().error_code, ErrorCode::none);
    request.producer_epoch = -1;
    EXPECT_EQ(commit().error_code, ErrorCode::unknown_server_error);
}

TEST_F(Transactions, OfADeletedTopicComplete) {
    const auto producer = begin("tx");
    ASSERT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);
    broker.delete_topic("t");
    EXPECT_EQ(end("tx", producer, true).error_code, ErrorCode::none);
    wait_for("tx", "CompleteCommit");
}

class ImpatientTransactions : public Transactions {
protected:
    ImpatientTransactions() : Transactions({{"transaction.state.log.num.partitions", "3"}, {"offsets.topic.num.partitions", "3"}, {"transaction.abort.timed.out.transaction.cleanup.interval.ms", "50"}}) {}
};

TEST_F(ImpatientTransactions, PastTheirTimeAreAborted) {
    const auto first = init("tx", {}, 100);
    const Producer producer{first.producer_id, first.producer_epoch};
    ASSERT_EQ(produce("tx", producer, 0, "a").error_code, ErrorCode::none);
    wait_for("tx", "CompleteAbort");
    EXPECT_EQ(produce("tx", producer, 1, "b").error_code, ErrorCode::invalid_producer_epoch);
    EXPECT_EQ(end("tx", producer, true).error_code, ErrorCode::invalid_txn_state);
    const auto aborted = end("tx", producer, false);
    EXPECT_EQ(aborted.error_code, ErrorCode::none);
    EXPECT_EQ(aborted.producer_epoch, 1);
    EXPECT_EQ(broker.broker().coordinators().transactions().stats().timed_out, 1u);
}

}  // namespace
}  // namespace tidemark::daemon
