// How the server treats connections: frames split anywhere, garbage, limits, the order of answers, its end.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <thread>

#include "protocol/messages/api_versions_request.h"
#include "protocol/messages/api_versions_response.h"
#include "protocol/messages/fetch_request.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace std::chrono_literals;
using protocol::ErrorCode;
using test::TestBroker;
using test::TestClient;

const protocol::ApiVersionsRequest api_versions{.client_software_name = "test", .client_software_version = "1.0"};

std::vector<std::byte> frame_of(std::int32_t id) {
    return protocol::request_frame({.request_api_version = 4, .correlation_id = id, .client_id = "c"}, api_versions)->bytes;
}

std::vector<std::byte> raw(std::initializer_list<int> bytes) {
    std::vector<std::byte> all;
    for (const int byte : bytes) all.push_back(static_cast<std::byte>(byte));
    return all;
}

TEST(Connection, FramesMayBeSplitAnywhere) {
    TestBroker broker;
    auto client = broker.client();
    auto bytes = frame_of(1);
    const auto second = frame_of(2);
    append_bytes(bytes, second);
    for (std::size_t split = 0; split <= bytes.size(); ++split) {
        client.send_bytes(Bytes{bytes}.first(split));
        client.send_bytes(Bytes{bytes}.subspan(split));
        ASSERT_TRUE(client.receive<protocol::ApiVersionsResponse>(1, 4)) << "split at " << split;
        ASSERT_TRUE(client.receive<protocol::ApiVersionsResponse>(2, 4)) << "split at " << split;
    }
}

TEST(Connection, OneByteAtATime) {
    TestBroker broker;
    auto client = broker.client();
    for (const auto byte : frame_of(1)) client.send_bytes({&byte, 1});
    EXPECT_TRUE(client.receive<protocol::ApiVersionsResponse>(1, 4));
}

struct Garbage {
    const char* what;
    std::vector<std::byte> bytes;
};

class GarbageTest : public testing::TestWithParam<Garbage> {};

TEST_P(GarbageTest, ClosesWithoutAnAnswer) {
    TestBroker broker;
    auto client = broker.client();
    client.send_bytes(GetParam().bytes);
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_EQ(broker.server().stats().connections_closed_garbage, 1u);
    auto other = broker.client();
    EXPECT_EQ(other.ask<protocol::ApiVersionsResponse>(api_versions).error_code, ErrorCode::none) << "others are not affected";
}

INSTANTIATE_TEST_SUITE_P(
    Connection, GarbageTest,
    testing::Values(Garbage{"negative size", raw({0xff, 0xff, 0xff, 0xff})}, Garbage{"size beyond socket.request.max.bytes", raw({0x7f, 0xff, 0xff, 0xff})},
                    Garbage{"no header at all", raw({0, 0, 0, 0})}, Garbage{"shorter than a header", raw({0, 0, 0, 3, 0, 3, 0})},
                    Garbage{"unknown key 9999", raw({0, 0, 0, 10, 0x27, 0x0f, 0, 0, 0, 0, 0, 1, 0xff, 0xff})},
                    Garbage{"key -1", raw({0, 0, 0, 10, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff})},
                    Garbage{"a key for controllers: Vote", raw({0, 0, 0, 10, 0, 52, 0, 0, 0, 0, 0, 1, 0xff, 0xff})},
                    Garbage{"Fetch version 3", raw({0, 0, 0, 10, 0, 1, 0, 3, 0, 0, 0, 1, 0xff, 0xff})},
                    Garbage{"Fetch version 19", raw({0, 0, 0, 11, 0, 1, 0, 19, 0, 0, 0, 1, 0xff, 0xff, 0})},
                    Garbage{"Produce version 2, though advertised", raw({0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff})},
                    Garbage{"InitProducerId version 6 is unstable", raw({0, 0, 0, 11, 0, 22, 0, 6, 0, 0, 0, 1, 0xff, 0xff, 0})},
                    Garbage{"Metadata version 12 with a list of 2^32 topics", raw({0, 0, 0, 16, 0, 3, 0, 12, 0, 0, 0, 1, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})},
                    Garbage{"Metadata version 1 that ends in its list", raw({0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 5})}),
    [](const auto& test) { return std::to_string(test.index); });

TEST(Connection, BytesBehindTheBodyAreIgnored) {
    TestBroker broker;
    auto client = broker.client();
    auto bytes = frame_of(1);
    append_bytes(bytes, as_bytes("more"));
    store_be(bytes.data(), static_cast<std::int32_t>(bytes.size() - 4));
    client.send_bytes(bytes);
    EXPECT_TRUE(client.receive<protocol::ApiVersionsResponse>(1, 4));
}

TEST(Connection, AnswersDueBeforeGarbageAreSent) {
    TestBroker broker;
    auto client = broker.client();
    auto bytes = frame_of(1);
    append_bytes(bytes, raw({0xff, 0xff, 0xff, 0xff}));
    client.send_bytes(bytes);
    EXPECT_TRUE(client.receive<protocol::ApiVersionsResponse>(1, 4));
    EXPECT_TRUE(client.is_closed_by_peer());
}

TEST(Connection, LyingSizesCostNothing) {
    TestBroker broker;
    std::vector<TestClient> clients;
    for (int i = 0; i < 50; ++i) {
        clients.push_back(broker.client());
        clients.back().send_bytes(raw({0x06, 0x40, 0, 0, 1}));   // 100 MiB, of which one byte comes
    }
    auto last = broker.client();
    last.ask<protocol::ApiVersionsResponse>(api_versions);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (broker.server().stats().queued_request_bytes < 50 * 4096 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(broker.server().stats().queued_request_bytes, 50 * 4096);
}

TEST(Connection, RequestsBeyondTheBudgetWaitUntilThereIsRoom) {
    test::TestBrokerOptions options;
    options.daemon.limits.queued_bytes_max = 4096;
    TestBroker broker{std::move(options)};
    auto first = broker.client();
    first.send_bytes(raw({0x06, 0x40, 0, 0, 1}));
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (broker.server().stats().queued_request_bytes < 4096 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    auto second = broker.client();
    second.send_bytes(frame_of(1));
    EXPECT_FALSE(second.receive_frame(100ms));
    { auto gone = std::move(first); }
    EXPECT_TRUE(second.receive<protocol::ApiVersionsResponse>(1, 4));
}

TEST(Connection, IdleOnesAreClosed) {
    test::TestBrokerOptions options;
    options.daemon.limits.idle_ms_max = 100;
    options.daemon.loop_beat_ms = 20;
    TestBroker broker{std::move(options)};
    auto client = broker.client();
    client.ask<protocol::ApiVersionsResponse>(api_versions);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 90ms);
    // Closed first, counted then.
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (broker.server().stats().connections_closed_idle == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_EQ(broker.server().stats().connections_closed_idle, 1u);
}

TEST(Connection, LimitPerAddressClosesAtOnce) {
    test::TestBrokerOptions options;
    options.daemon.limits.connections_per_ip_max = 1;
    options.daemon.limits.connections_per_ip_overrides = {{"127.0.0.1", 2}};
    TestBroker broker{std::move(options)};
    auto first = broker.client(), second = broker.client(), third = broker.client();
    EXPECT_TRUE(third.is_closed_by_peer());
    first.ask<protocol::ApiVersionsResponse>(api_versions);
    second.ask<protocol::ApiVersionsResponse>(api_versions);
    EXPECT_EQ(broker.server().stats().connections_refused, 1u);
}

TEST(Connection, LimitOfAllLetsTheNextOneWait) {
    test::TestBrokerOptions options;
    options.daemon.limits.connections_max = 1;
    TestBroker broker{std::move(options)};
    auto first = std::make_unique<TestClient>(broker.client());
    first->ask<protocol::ApiVersionsResponse>(api_versions);
    auto second = broker.client();
    const auto id = second.send(api_versions);
    EXPECT_FALSE(second.receive_frame(100ms));
    first.reset();
    EXPECT_TRUE(second.receive<protocol::ApiVersionsResponse>(id));
}

TEST(Connection, AnswersComeInTheOrderOfTheRequests) {
    TestBroker broker;
    const auto id = broker.create_topic("t");
    auto client = broker.client();
    auto records = test::batch_of({"a"});
    protocol::FetchRequest fetch{.max_wait_ms = 300, .min_bytes = 1 << 20, .max_bytes = 1 << 20};
    auto& topic = fetch.topics.emplace_back();
    topic.topic_id = id;
    topic.partitions.push_back({.partition = 0, .fetch_offset = 0, .partition_max_bytes = 1 << 20});

    const auto slow = client.send(fetch);
    const auto produce = client.send(test::produce_request("t", id, 0, records));
    const auto metadata = client.send(protocol::MetadataRequest{});
    const auto versions = client.send(api_versions);
    const auto silent = client.send(test::produce_request("t", id, 0, records, 0));
    const auto last = client.send(protocol::MetadataRequest{});
    static_cast<void>(silent);

    const auto fetched = client.receive<protocol::FetchResponse>(slow);
    ASSERT_TRUE(fetched);
    EXPECT_THAT(test::values_of(fetched->responses.at(0).partitions.at(0)), testing::ElementsAre("a", "a")) << "what was produced behind it is seen by its last look";
    EXPECT_TRUE(client.receive<protocol::ProduceResponse>(produce));
    EXPECT_TRUE(client.receive<protocol::MetadataResponse>(metadata));
    EXPECT_TRUE(client.receive<protocol::ApiVersionsResponse>(versions));
    EXPECT_TRUE(client.receive<protocol::MetadataResponse>(last)) << "and nothing for acks=0";
}

TEST(Connection, WhatCameBeforeTheEndIsAppendedAndAnswered) {
    TestBroker broker;
    const auto id = broker.create_topic("t");
    auto records = test::batch_of({"a"});
    auto client = broker.client();
    client.send(test::produce_request("t", id, 0, records, 0));
    const auto last = client.send(test::produce_request("t", id, 0, records, 1));
    client.finish_sending();
    EXPECT_TRUE(client.receive<protocol::ProduceResponse>(last));
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{2});
}

TEST(Connection, ManyPipelinedRequestsAreAnsweredThoughNobodyReadsForAWhile) {
    test::TestBrokerOptions options;
    options.daemon.limits.requests_in_flight_max = 3;
    TestBroker broker{std::move(options)};
    auto client = broker.client();
    constexpr int n = 2000;
    std::thread sender{[&] {
        for (int i = 1; i <= n; ++i) client.send_bytes(frame_of(i));
    }};
    for (int i = 1; i <= n; ++i) ASSERT_TRUE(client.receive<protocol::ApiVersionsResponse>(i, 4)) << i;
    sender.join();
}

TEST(Server, StopAnswersWhatWasStartedAndCloses) {
    TestBroker broker;
    const auto id = broker.create_topic("t");
    auto client = broker.client();
    protocol::FetchRequest fetch{.max_wait_ms = 60'000, .min_bytes = 1, .max_bytes = 1 << 20};
    auto& topic = fetch.topics.emplace_back();
    topic.topic_id = id;
    topic.partitions.push_back({.partition = 0, .fetch_offset = 0, .partition_max_bytes = 1 << 20});
    const auto waiting = client.send(fetch);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (broker.server().stats().fetches_waiting == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(broker.server().stop(10s));
    const auto answer = client.receive<protocol::FetchResponse>(waiting);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->error_code, ErrorCode::none);
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_EQ(broker.server().stats().fetches_waiting, 0u);
}

TEST(Server, StopCutsWhoDoesNotTakeItsAnswers) {
    test::TestBrokerOptions options;
    options.daemon.send_buffer_bytes = 4096;
    TestBroker broker{std::move(options)};
    for (int i = 0; i < 200; ++i) broker.create_topic("a-topic-with-a-long-name-" + std::to_string(i));
    auto client = broker.client();
    // More answers than the buffers between both hold, and nobody reads them.
    for (int i = 0; i < 3000; ++i) {
        const auto frame = protocol::request_frame({.request_api_version = 1, .correlation_id = i}, protocol::MetadataRequest{.topics = std::nullopt});
        if (::send(client.descriptor(), frame->bytes.data(), frame->bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) break;
    }
    // It is stuck when it has sent something and then nothing for a while.
    const auto sent = [&broker] { return broker.server().stats().bytes_sent; };
    const auto until = std::chrono::steady_clock::now() + 20s;
    auto last = sent();
    auto since = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() < until && (last == 0 || std::chrono::steady_clock::now() - since < 300ms)) {
        if (const auto now = sent(); now != last) {
            last = now;
            since = std::chrono::steady_clock::now();
        }
        std::this_thread::yield();
    }
    EXPECT_FALSE(broker.server().stop(200ms));
    EXPECT_EQ(broker.server().stats().connections, 0u);
}

TEST(Server, WatchdogIsFedWhileTheLoopsRun) {
    std::atomic<int> fed{0};
    test::TestBrokerOptions options;
    options.daemon.loop_beat_ms = 5;
    options.alive = [&] { ++fed; };
    TestBroker broker{std::move(options)};
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (fed < 3 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    EXPECT_GE(fed, 3);
    EXPECT_EQ(broker.server().stats().loops.size(), 2u);
}

}  // namespace
}  // namespace tidemark::daemon
