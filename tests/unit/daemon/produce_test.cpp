// Produce (0) through a server: wire-behaviour 7, case by case.
#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using protocol::ErrorCode;
using protocol::produce_response::PartitionProduceResponse;
using test::batch_of;
using test::TestBroker;

class Produce : public testing::Test {
protected:
    PartitionProduceResponse produce(std::vector<std::byte> records, std::int16_t acks = -1, std::int16_t version = 13, std::int32_t partition = 0) {
        return produce_to("t", id, std::move(records), acks, version, partition);
    }
    PartitionProduceResponse produce_to(const std::string& topic, Uuid topic_id, std::vector<std::byte> records, std::int16_t acks = -1, std::int16_t version = 13, std::int32_t partition = 0) {
        const auto response = client.ask<protocol::ProduceResponse>(test::produce_request(topic, topic_id, partition, records, acks), version);
        EXPECT_EQ(response.responses.size(), 1u);
        EXPECT_EQ(response.responses.at(0).partition_responses.size(), 1u);
        return response.responses.at(0).partition_responses.at(0);
    }

    TestBroker broker;
    Uuid id = broker.create_topic("t", 2);
    test::TestClient client = broker.client();
};

TEST_F(Produce, AnswersOffsetsInEveryVersion) {
    std::int64_t next = 0;
    for (std::int16_t version = 3; version <= 13; ++version) {
        for (const auto acks : {std::int16_t{-1}, std::int16_t{1}}) {
            const auto answer = produce(batch_of({"a", "b"}), acks, version);
            EXPECT_EQ(answer.error_code, ErrorCode::none) << version;
            EXPECT_EQ(answer.base_offset, next) << version;
            EXPECT_EQ(answer.log_append_time_ms, -1);
            EXPECT_EQ(answer.log_start_offset, version >= 5 ? 0 : -1);
            EXPECT_FALSE(answer.error_message);
            next += 2;
        }
    }
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{next});
    const auto stats = broker.server().stats();
    EXPECT_EQ(stats.topics.at("t").records_in, static_cast<std::uint64_t>(next));
}

TEST_F(Produce, LogAppendTimeIsAnswered) {
    const auto stamped = broker.create_topic("stamped", 1, {{"message.timestamp.type", "LogAppendTime"}});
    const auto before = SystemClock{}.now().value;
    const auto answer = produce_to("stamped", stamped, batch_of({"a"}));
    EXPECT_EQ(answer.error_code, ErrorCode::none);
    EXPECT_GE(answer.log_append_time_ms, before);
}

std::vector<std::byte> with_magic(std::int8_t magic) {
    auto batch = batch_of({"a"});
    batch[16] = static_cast<std::byte>(magic);
    return batch;
}

std::vector<std::byte> with_bad_crc() {
    auto batch = batch_of({"a"});
    batch.back() ^= std::byte{1};
    return batch;
}

std::vector<std::byte> with_codec_bits(std::uint8_t bits) {
    auto batch = batch_of({"a"});
    batch[22] = static_cast<std::byte>(bits);
    store_be(batch.data() + 17, crc32c(Bytes{batch}.subspan(21)));
    return batch;
}

std::vector<std::byte> twice(std::vector<std::byte> batch) {
    const auto copy = batch;
    append_bytes(batch, copy);
    return batch;
}

std::vector<std::byte> cut(std::vector<std::byte> batch, std::size_t to) {
    batch.resize(to);
    return batch;
}

TEST_F(Produce, RefusesByTheTable) {
    struct Case {
        const char* what;
        std::vector<std::byte> records;
        ErrorCode code;
        bool has_log_start;    // found while appending
    };
    record::BatchOptions shifted{.base_offset = Offset{5}};
    const auto now = SystemClock{}.now();
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, now + 7'200'000, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> from_the_future;
    builder.finish(from_the_future);
    const Case cases[] = {
        {"empty", {}, ErrorCode::invalid_record, false},
        {"fewer than 12 bytes", cut(batch_of({"a"}), 11), ErrorCode::invalid_record, false},
        {"cut short", cut(batch_of({"a"}), 60), ErrorCode::invalid_record, false},
        {"two batches", twice(batch_of({"a"})), ErrorCode::invalid_record, false},
        {"magic 0", with_magic(0), ErrorCode::invalid_record, false},
        {"magic 1", with_magic(1), ErrorCode::invalid_record, false},
        {"magic 3", with_magic(3), ErrorCode::corrupt_message, false},
        {"CRC", with_bad_crc(), ErrorCode::corrupt_message, false},
        {"codec 5", with_codec_bits(5), ErrorCode::unknown_server_error, true},
        {"base offset 5", batch_of({"a"}, shifted), ErrorCode::invalid_record, true},
        {"larger than max.message.bytes", batch_of({std::string(1'100'000, 'x')}), ErrorCode::message_too_large, false},
        {"from the future", from_the_future, ErrorCode::invalid_timestamp, true},
    };
    for (const auto& c : cases) {
        const auto answer = produce(c.records);
        EXPECT_EQ(answer.error_code, c.code) << c.what;
        EXPECT_EQ(answer.base_offset, -1) << c.what;
        EXPECT_EQ(answer.log_start_offset, c.has_log_start ? 0 : -1) << c.what;
        EXPECT_EQ(answer.log_append_time_ms, -1) << c.what;
    }
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{0}) << "nothing of it was appended";
    EXPECT_THAT(*produce(with_magic(3)).error_message, "Invalid magic found in record: 3");
}

TEST_F(Produce, ListsTheRecordsThatItRefuses) {
    const auto compacted = broker.create_topic("compacted", 1, {{"cleanup.policy", "compact"}});
    record::BatchBuilder builder;
    builder.start({});
    const auto now = SystemClock{}.now();
    builder.append(Offset{0}, now, as_bytes("k"), as_bytes("v"));
    builder.append(Offset{1}, now, std::nullopt, as_bytes("no key"));
    std::vector<std::byte> records;
    builder.finish(records);
    const auto answer = produce_to("compacted", compacted, records);
    EXPECT_EQ(answer.error_code, ErrorCode::invalid_record);
    ASSERT_EQ(answer.record_errors.size(), 1u);
    EXPECT_EQ(answer.record_errors[0].batch_index, 1);
    EXPECT_THAT(*answer.error_message, testing::StartsWith("One or more records have been rejected due to 1 record errors in total"));
    const auto old = produce_to("compacted", compacted, records, -1, 7);
    EXPECT_TRUE(old.record_errors.empty() && !old.error_message) << "version 7 has only the code";
}

TEST_F(Produce, ZstdNeedsVersionSeven) {
    EXPECT_EQ(produce(batch_of({"a"}, {.codec = record::Codec::zstd}), -1, 6).error_code, ErrorCode::unsupported_compression_type);
    EXPECT_EQ(produce(batch_of({"a"}, {.codec = record::Codec::zstd}), -1, 7).error_code, ErrorCode::none);
}

TEST_F(Produce, KnowsWhatExists) {
    EXPECT_EQ(produce_to("no-such", {}, batch_of({"a"}), -1, 12).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(produce_to("bad name!", {}, batch_of({"a"}), -1, 12).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(produce_to("", {}, batch_of({"a"})).error_code, ErrorCode::unknown_topic_id);
    EXPECT_EQ(produce_to("", Uuid::random(), batch_of({"a"})).error_code, ErrorCode::unknown_topic_id);
    EXPECT_EQ(produce(batch_of({"a"}), -1, 13, 2).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(produce(batch_of({"a"}), -1, 13, -1).error_code, ErrorCode::unknown_topic_or_partition);
    EXPECT_EQ(produce(batch_of({"a"}), -1, 13, 1).error_code, ErrorCode::none);
}

TEST_F(Produce, OtherAcksAreRefused) {
    for (const auto acks : {std::int16_t{-2}, std::int16_t{2}}) {
        const auto answer = produce(batch_of({"a"}), acks);
        EXPECT_EQ(answer.error_code, ErrorCode::invalid_required_acks);
        EXPECT_EQ(answer.log_start_offset, -1);
    }
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{0});
}

TEST_F(Produce, NullRecordsAreAnswered) {
    protocol::ProduceRequest request{.acks = -1};
    auto& topic = request.topic_data.emplace_back();
    topic.topic_id = id;
    topic.partition_data.push_back({.index = 0, .records = std::nullopt});
    EXPECT_EQ(client.ask<protocol::ProduceResponse>(request).responses.at(0).partition_responses.at(0).error_code, ErrorCode::invalid_record);
}

TEST_F(Produce, NothingToDoIsAnswered) { EXPECT_TRUE(client.ask<protocol::ProduceResponse>(protocol::ProduceRequest{.acks = 1}).responses.empty()); }

TEST_F(Produce, PartitionNamedTwiceIsAppendedOnce) {
    auto first = batch_of({"first"}), last = batch_of({"last", "last"});
    auto request = test::produce_request("t", id, 0, first);
    request.topic_data[0].partition_data.push_back({.index = 0, .records = protocol::Records{.bytes = last}});
    const auto response = client.ask<protocol::ProduceResponse>(request);
    EXPECT_EQ(response.responses.at(0).partition_responses.size(), 1u);
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{2});
}

TEST_F(Produce, PartitionsFailAlone) {
    auto good = batch_of({"a"}), bad = with_bad_crc();
    auto request = test::produce_request("t", id, 0, bad);
    request.topic_data[0].partition_data.push_back({.index = 1, .records = protocol::Records{.bytes = good}});
    const auto response = client.ask<protocol::ProduceResponse>(request);
    const auto& partitions = response.responses.at(0).partition_responses;
    EXPECT_EQ(partitions.at(0).error_code, ErrorCode::corrupt_message);
    EXPECT_EQ(partitions.at(1).error_code, ErrorCode::none);
    EXPECT_EQ(partitions.at(1).base_offset, 0);
}

TEST_F(Produce, WithoutAcksThereIsNoAnswer) {
    auto records = batch_of({"a"});
    client.send(test::produce_request("t", id, 0, records, 0));
    EXPECT_EQ(produce(batch_of({"b"})).base_offset, 1) << "and the next request is answered";
}

TEST_F(Produce, FailureWithoutAcksClosesTheConnection) {
    auto records = with_bad_crc();
    client.send(test::produce_request("t", id, 0, records, 0));
    EXPECT_TRUE(client.is_closed_by_peer());
}

TEST_F(Produce, IdempotentProducersRulesHold) {
    const auto batch = [&](ProducerId producer, std::int16_t epoch, std::int32_t sequence) {
        return batch_of({"a"}, {.producer_id = producer, .producer_epoch = epoch, .base_sequence = sequence});
    };
    const auto init = client.ask<protocol::InitProducerIdResponse>(protocol::InitProducerIdRequest{.transactional_id = std::nullopt}, 5);
    ASSERT_EQ(init.error_code, ErrorCode::none);
    EXPECT_EQ(init.producer_epoch, 0);
    const auto producer = init.producer_id;
    EXPECT_EQ(produce(batch(producer, 0, 0)).base_offset, 0);
    EXPECT_EQ(produce(batch(producer, 0, 1)).base_offset, 1);
    const auto repeated = produce(batch(producer, 0, 0));
    EXPECT_EQ(repeated.error_code, ErrorCode::none);
    EXPECT_EQ(repeated.base_offset, 0) << "the original's";
    EXPECT_NE(repeated.log_append_time_ms, -1) << "the original's timestamp, as Kafka answers";
    EXPECT_EQ(produce(batch(producer, 0, 3)).error_code, ErrorCode::out_of_order_sequence_number);
    EXPECT_EQ(produce(batch(producer, 1, 5)).error_code, ErrorCode::out_of_order_sequence_number) << "a new epoch begins with 0";
    EXPECT_EQ(produce(batch(producer, 1, 0)).base_offset, 2);
    EXPECT_EQ(produce(batch(producer, 0, 2)).error_code, ErrorCode::invalid_producer_epoch);
    EXPECT_EQ(produce(batch(4711, 0, 77)).base_offset, 3) << "an unknown producer may begin anywhere";
    auto without_sequence = batch(4712, 0, 0);   // which no builder makes
    store_be<std::int32_t>(without_sequence.data() + 53, -1);
    store_be<std::uint32_t>(without_sequence.data() + 17, crc32c(Bytes{without_sequence}.subspan(21)));
    EXPECT_EQ(produce(without_sequence).error_code, ErrorCode::invalid_record);
}

TEST_F(Produce, TransactionalBatchesNeedAnIdAndACoordinator) {
    auto records = batch_of({"a"}, {.producer_id = 1, .producer_epoch = 0, .base_sequence = 0, .transactional = true});
    auto request = test::produce_request("t", id, 0, records);
    EXPECT_EQ(client.ask<protocol::ProduceResponse>(request).responses.at(0).partition_responses.at(0).error_code, ErrorCode::transactional_id_authorization_failed);
    request.transactional_id = "tx";
    const auto answer = client.ask<protocol::ProduceResponse>(request).responses.at(0).partition_responses.at(0);
    EXPECT_EQ(answer.error_code, ErrorCode::not_enough_replicas);
    EXPECT_TRUE(answer.error_message);
    auto plain = batch_of({"a"});
    request.topic_data[0].partition_data[0].records = protocol::Records{.bytes = plain};
    EXPECT_EQ(client.ask<protocol::ProduceResponse>(request).responses.at(0).partition_responses.at(0).error_code, ErrorCode::none);
}

}  // namespace
}  // namespace tidemark::daemon
