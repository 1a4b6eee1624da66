// Fetch (1) through a server: wire-behaviour 8; waiting, limits, sessions.
#include <gmock/gmock.h>

#include <thread>

#include "protocol/messages/fetch_request.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace std::chrono_literals;
using protocol::ErrorCode;
using protocol::FetchRequest;
using protocol::FetchResponse;
using protocol::fetch_response::PartitionData;
using test::batch_of;
using test::TestBroker;
using test::values_of;
using testing::ElementsAre;
using testing::IsEmpty;

using Moment = std::chrono::steady_clock::time_point;
Moment now() { return std::chrono::steady_clock::now(); }

class Fetch : public testing::Test {
protected:
    Fetch() : Fetch(test::TestBrokerOptions{}) {}
    explicit Fetch(test::TestBrokerOptions options) : broker(std::move(options)) {}

    void append(const std::vector<std::string>& values, std::int32_t partition = 0) {
        auto batch = batch_of(values);
        ASSERT_TRUE(broker.log("t", partition).append(batch, {}));
    }
    FetchRequest request(std::int64_t offset = 0, std::int32_t partition = 0) const {
        FetchRequest request{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20};
        add(request, partition, offset);
        return request;
    }
    void add(FetchRequest& request, std::int32_t partition, std::int64_t offset = 0, std::int32_t bytes_max = 1 << 20) const {
        if (request.topics.empty()) {
            auto& topic = request.topics.emplace_back();
            topic.topic = "t";
            topic.topic_id = id;
        }
        request.topics[0].partitions.push_back({.partition = partition, .fetch_offset = offset, .partition_max_bytes = bytes_max});
    }
    PartitionData fetch(const FetchRequest& request, std::int16_t version = 18) {
        response = client.ask<FetchResponse>(request, version);
        return response.responses.at(0).partitions.at(0);
    }
    /// Partition → values, of those that the answer names.
    std::map<std::int32_t, std::vector<std::string>> all(const FetchRequest& request, std::int16_t version = 18) {
        response = client.ask<FetchResponse>(request, version);
        std::map<std::int32_t, std::vector<std::string>> values;
        for (const auto& topic : response.responses) {
            for (const auto& partition : topic.partitions) values[partition.partition_index] = values_of(partition);
        }
        return values;
    }
    void until_waiting(std::size_t n = 1) {
        const auto end = now() + 20s;
        while (broker.server().stats().fetches_waiting != n && now() < end) std::this_thread::yield();
        ASSERT_EQ(broker.server().stats().fetches_waiting, n);
    }

    TestBroker broker;
    Uuid id = broker.create_topic("t", 4);
    test::TestClient client = broker.client();
    FetchResponse response;
};

TEST_F(Fetch, EveryVersionGetsTheRecords) {
    append({"a", "b"});
    append({"c"});
    for (std::int16_t version = 4; version <= 18; ++version) {
        const auto partition = fetch(request(), version);
        EXPECT_EQ(partition.error_code, ErrorCode::none) << version;
        EXPECT_THAT(values_of(partition), ElementsAre("a", "b", "c")) << version;
        EXPECT_EQ(partition.high_watermark, 3);
        EXPECT_EQ(partition.last_stable_offset, 3);
        EXPECT_EQ(partition.log_start_offset, version >= 5 ? 0 : -1);
        EXPECT_EQ(partition.preferred_read_replica, -1);
        EXPECT_FALSE(partition.aborted_transactions) << "null when reading uncommitted";
    }
    const auto stats = broker.server().stats();
    EXPECT_GT(stats.topics.at("t").bytes_out, 0u);
}

TEST_F(Fetch, StartsAtABatch) {
    append({"a", "b", "c"});
    append({"d"});
    EXPECT_THAT(values_of(fetch(request(2))), ElementsAre("a", "b", "c", "d"));
    EXPECT_THAT(values_of(fetch(request(3))), ElementsAre("d"));
    EXPECT_THAT(values_of(fetch(request(4))), IsEmpty());
    EXPECT_TRUE(fetch(request(4)).records) << "empty, not null";
}

TEST_F(Fetch, ReadCommittedHasAListOfAborted) {
    append({"a"});
    auto committed = request();
    committed.isolation_level = 1;
    const auto partition = fetch(committed);
    ASSERT_TRUE(partition.aborted_transactions);
    EXPECT_THAT(*partition.aborted_transactions, IsEmpty());
    EXPECT_THAT(values_of(partition), ElementsAre("a"));
}

TEST_F(Fetch, RefusesByTheTable) {
    append({"a"});
    struct Case {
        const char* what;
        std::function<void(FetchRequest&)> change;
        ErrorCode code;
        std::int16_t version = 18;
    };
    const Case cases[] = {
        {"offset above the end", [](auto& r) { r.topics[0].partitions[0].fetch_offset = 2; }, ErrorCode::offset_out_of_range},
        {"negative offset", [](auto& r) { r.topics[0].partitions[0].fetch_offset = -1; }, ErrorCode::offset_out_of_range},
        {"unknown id", [](auto& r) { r.topics[0].topic_id = Uuid::random(); }, ErrorCode::unknown_topic_id},
        {"zero id", [](auto& r) { r.topics[0].topic_id = {}; }, ErrorCode::unknown_topic_id},
        {"unknown name", [](auto& r) { r.topics[0].topic = "no-such"; }, ErrorCode::unknown_topic_or_partition, 12},
        {"unknown partition", [](auto& r) { r.topics[0].partitions[0].partition = 9; }, ErrorCode::unknown_topic_or_partition},
        {"older epoch", [](auto& r) { r.topics[0].partitions[0].current_leader_epoch = 0; }, ErrorCode::none},
        {"newer epoch", [](auto& r) { r.topics[0].partitions[0].current_leader_epoch = 100; }, ErrorCode::unknown_leader_epoch},
        {"last fetched epoch that nobody knows", [](auto& r) { r.topics[0].partitions[0].last_fetched_epoch = 100; }, ErrorCode::offset_out_of_range},
        {"a replica that is none", [](auto& r) { r.replica_state.replica_id = 7; }, ErrorCode::not_leader_or_follower},
    };
    for (const auto& c : cases) {
        auto asked = request();
        c.change(asked);
        const auto partition = fetch(asked, c.version);
        EXPECT_EQ(partition.error_code, c.code) << c.what;
        if (c.code == ErrorCode::none) continue;
        EXPECT_EQ(partition.high_watermark, -1) << c.what;
        EXPECT_EQ(partition.last_stable_offset, -1) << c.what;
        EXPECT_EQ(partition.log_start_offset, -1) << c.what;
        EXPECT_TRUE(partition.records && partition.records->size() == 0) << c.what;
    }
}

TEST_F(Fetch, IllegalIsolationFailsTheWhole) {
    auto asked = request();
    asked.isolation_level = 2;
    const auto partition = fetch(asked);
    EXPECT_EQ(response.error_code, ErrorCode::unknown_server_error);
    EXPECT_EQ(partition.error_code, ErrorCode::unknown_server_error);
}

TEST_F(Fetch, FirstRecordsComeWholeHoweverSmallTheLimits) {
    const std::string big(1000, 'x');
    for (int i = 0; i < 3; ++i) append({big}, i);
    for (const std::int32_t limit : {0, 1, -1}) {
        FetchRequest asked{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = limit};
        for (int i = 3; i >= 0; --i) add(asked, i, 0, 1);   // 3 is empty
        EXPECT_THAT(all(asked), ElementsAre(testing::Pair(0, IsEmpty()), testing::Pair(1, IsEmpty()), testing::Pair(2, ElementsAre(big)), testing::Pair(3, IsEmpty()))) << limit;
    }
}

TEST_F(Fetch, LaterPartitionsKeepTheLimits) {
    const std::string big(1000, 'x');
    for (int i = 0; i < 3; ++i) append({big}, i);
    FetchRequest asked{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 2500};
    for (int i = 0; i < 3; ++i) add(asked, i);
    EXPECT_THAT(all(asked), ElementsAre(testing::Pair(0, ElementsAre(big)), testing::Pair(1, ElementsAre(big)), testing::Pair(2, IsEmpty())));
    EXPECT_FALSE(response.responses.at(0).partitions.at(2).records->size()) << "nothing rather than a part of the first batch";
}

TEST_F(Fetch, LargeAnswersCrossTheSocketsBuffers) {
    std::vector<std::string> expected;
    for (int i = 0; i < 40; ++i) {
        expected.push_back(std::string(100'000, static_cast<char>('a' + i % 26)));
        append({expected.back()});
    }
    auto asked = request();
    asked.topics[0].partitions[0].partition_max_bytes = 50 << 20;
    EXPECT_EQ(values_of(fetch(asked)), expected);
}

// --- waiting -----------------------------------------------------------------------------------------------------------

TEST_F(Fetch, AnswersAtOnceWhenThereIsNothingToWaitFor) {
    const auto begin = now();
    auto asked = request();
    asked.max_wait_ms = 60'000;
    asked.min_bytes = 0;
    fetch(asked);
    asked.min_bytes = 1;
    asked.max_wait_ms = 0;
    fetch(asked);
    asked.max_wait_ms = 60'000;
    asked.topics[0].partitions[0].fetch_offset = 5;
    EXPECT_EQ(fetch(asked).error_code, ErrorCode::offset_out_of_range);
    asked.topics[0].topic_id = Uuid::random();
    EXPECT_EQ(fetch(asked).error_code, ErrorCode::unknown_topic_id) << "no partition of it exists";
    asked.topics.clear();
    client.ask<FetchResponse>(asked);
    EXPECT_LT(now() - begin, 10s);
}

TEST_F(Fetch, WaitsAsLongAsItWasTold) {
    append({"a"});
    auto asked = request();
    asked.max_wait_ms = 150;
    asked.min_bytes = 1 << 20;
    const auto begin = now();
    EXPECT_THAT(values_of(fetch(asked)), ElementsAre("a")) << "what there is";
    EXPECT_GE(now() - begin, 150ms);
}

TEST_F(Fetch, UnknownPartitionsDoNotEndTheWait) {
    auto asked = request();
    add(asked, 99);
    asked.max_wait_ms = 100;
    const auto begin = now();
    all(asked);
    EXPECT_GE(now() - begin, 100ms);
}

TEST_F(Fetch, ArrivingRecordsEndTheWait) {
    auto asked = request();
    add(asked, 1);
    asked.max_wait_ms = 60'000;
    const auto correlation = client.send(asked);
    until_waiting();
    append({"a"}, 1);
    const auto answer = client.receive<FetchResponse>(correlation);
    ASSERT_TRUE(answer);
    EXPECT_THAT(values_of(answer->responses.at(0).partitions.at(1)), ElementsAre("a"));
    until_waiting(0);
}

TEST_F(Fetch, WaitsUntilThereAreEnoughInAllPartitionsTogether) {
    auto asked = request();
    add(asked, 1);
    asked.max_wait_ms = 60'000;
    asked.min_bytes = 2000;
    const auto correlation = client.send(asked);
    until_waiting();
    append({std::string(1000, 'x')}, 0);
    append({"little"}, 1);
    EXPECT_FALSE(client.receive_frame(50ms));
    append({std::string(1000, 'y')}, 1);
    EXPECT_TRUE(client.receive<FetchResponse>(correlation));
}

TEST_F(Fetch, MovedLogStartEndsTheWaitOfWhomItConcerns) {
    append({"a"});
    append({"b"});
    auto asked = request();
    asked.max_wait_ms = 60'000;
    asked.min_bytes = 1 << 20;
    const auto correlation = client.send(asked);
    until_waiting();
    ASSERT_TRUE(broker.log("t").delete_records_before(Offset{1}));
    const auto answer = client.receive<FetchResponse>(correlation);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->responses.at(0).partitions.at(0).error_code, ErrorCode::offset_out_of_range);
}

TEST_F(Fetch, DeletedTopicEndsTheWait) {
    auto asked = request();
    asked.max_wait_ms = 60'000;
    const auto correlation = client.send(asked);
    until_waiting();
    broker.delete_topic("t");
    const auto answer = client.receive<FetchResponse>(correlation);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->responses.at(0).partitions.at(0).error_code, ErrorCode::unknown_topic_id);
}

TEST_F(Fetch, ClosedConnectionLeavesNothingBehind) {
    for (int i = 0; i < 20; ++i) {
        {
            auto gone = broker.client();
            auto asked = request();
            asked.max_wait_ms = 60'000;
            gone.send(asked);
            until_waiting();
        }
        until_waiting(0);
    }
}

TEST_F(Fetch, ThousandsMayWait) {
    constexpr int n = 40, each = 50;
    std::vector<test::TestClient> clients;
    std::vector<std::vector<std::int32_t>> ids(n);
    for (int i = 0; i < n; ++i) {
        clients.push_back(broker.client());
        auto asked = request();
        asked.max_wait_ms = 60'000;
        for (int j = 0; j < each; ++j) ids[static_cast<std::size_t>(i)].push_back(clients.back().send(asked));
    }
    until_waiting(n * each);
    append({"a"});
    for (int i = 0; i < n; ++i) {
        for (const auto correlation : ids[static_cast<std::size_t>(i)]) {
            const auto answer = clients[static_cast<std::size_t>(i)].receive<FetchResponse>(correlation);
            ASSERT_TRUE(answer);
            ASSERT_THAT(values_of(answer->responses.at(0).partitions.at(0)), ElementsAre("a"));
        }
    }
}

// --- sessions ----------------------------------------------------------------------------------------------------------

class FetchSession : public Fetch {
protected:
    std::map<std::int32_t, std::vector<std::string>> next(FetchRequest asked = {.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20}) {
        asked.session_id = session;
        asked.session_epoch = epoch++;
        return all(asked);
    }
    void open() {
        FetchRequest asked{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20};
        for (int i = 0; i < 3; ++i) add(asked, i);
        asked.session_epoch = 0;
        EXPECT_EQ(all(asked).size(), 3u) << "the first answer names all";
        session = response.session_id;
        EXPECT_GT(session, 0);
    }
    std::int32_t session = 0, epoch = 1;
};

TEST_F(FetchSession, AnswersNameOnlyNews) {
    open();
    EXPECT_THAT(next(), IsEmpty());
    append({"a"}, 1);
    EXPECT_THAT(next(), ElementsAre(testing::Pair(1, ElementsAre("a"))));
    FetchRequest moved{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20};
    add(moved, 1, 1);
    EXPECT_THAT(next(moved), IsEmpty());
    EXPECT_EQ(response.session_id, session);
}

TEST_F(FetchSession, ErrorsComeEveryTime) {
    open();
    FetchRequest wrong{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20};
    add(wrong, 1, 77);
    EXPECT_EQ(next(wrong).size(), 1u);
    EXPECT_EQ(next().size(), 1u);
    EXPECT_EQ(response.responses.at(0).partitions.at(0).error_code, ErrorCode::offset_out_of_range);
}

TEST_F(FetchSession, OutlivesItsConnection) {
    open();
    auto other = broker.client();
    FetchRequest asked{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 50 << 20, .session_id = session, .session_epoch = 1};
    EXPECT_EQ(other.ask<FetchResponse>(asked).error_code, ErrorCode::none);
}

TEST_F(FetchSession, ErrorsOfTheWholeHaveNoPartitions) {
    open();
    const auto asked = [&](std::int32_t id, std::int32_t n) { return FetchRequest{.max_wait_ms = 0, .min_bytes = 1, .max_bytes = 1 << 20, .session_id = id, .session_epoch = n}; };
    EXPECT_THAT(all(asked(session, 2)), IsEmpty());
    EXPECT_EQ(response.error_code, ErrorCode::invalid_fetch_session_epoch);
    EXPECT_EQ(response.session_id, 0);
    all(asked(session ^ 1, 1));
    EXPECT_EQ(response.error_code, ErrorCode::fetch_session_id_not_found);
    all(asked(session, 1), 12);
    EXPECT_EQ(response.error_code, ErrorCode::fetch_session_topic_id_error);
}

TEST_F(FetchSession, RecreatedTopicIsAnotherOne) {
    open();
    broker.delete_topic("t");
    const auto again = broker.create_topic("t", 4);
    ASSERT_NE(again, id);
    for (const auto& [partition, values] : next()) EXPECT_THAT(values, IsEmpty()) << partition;
    EXPECT_EQ(response.responses.at(0).partitions.at(0).error_code, ErrorCode::unknown_topic_id);
}

}  // namespace
}  // namespace tidemark::daemon
