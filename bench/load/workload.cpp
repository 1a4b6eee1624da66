#include "bench/load/workload.h"

#include <chrono>
#include <random>

#include "bench/load/broker.h"
#include "protocol/messages/produce_request.h"

namespace tidemark::bench {

namespace {

constexpr std::size_t correlation_id_at = 8;  // size, API key, version

/// Text of words and numbers, which codecs shrink about as they do JSON.
std::string value_of(std::mt19937& random, std::size_t size) {
    static constexpr const char* words[] = {"\"user\":", "\"id\":", "\"name\":", "order", "customer", "2024-01-", "true", "null", "{", "}", ","};
    std::string value;
    while (value.size() < size) {
        value += words[random() % std::size(words)];
        if (random() % 3 == 0) value += std::to_string(random() % 100000);
    }
    value.resize(size);
    return value;
}

std::int64_t wall_clock_ms() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<std::vector<std::byte>> produce_frame(const std::string& topic, std::int32_t partition, std::int16_t acks, MutableBytes batch, std::int32_t correlation_id) {
    protocol::ProduceRequest request;
    request.acks = acks;
    request.timeout_ms = 30000;
    auto& data = request.topic_data.emplace_back();
    data.name = topic;
    auto& one = data.partition_data.emplace_back();
    one.index = partition;
    one.records.emplace().bytes = batch;
    TM_TRY(auto encoded, protocol::request_frame(Connection::header(correlation_id, produce_version), request));
    return std::move(encoded.bytes);
}

Result<ProduceFrame> ProduceFrame::make(const std::string& topic, std::int32_t partition, std::int16_t acks, const BatchShape& shape) {
    std::mt19937 random(static_cast<std::uint32_t>(partition) + 1);
    record::BatchBuilder builder;
    builder.start({.codec = shape.codec});
    const Timestamp now{wall_clock_ms()};
    // A record's frame is about nine bytes: length, attributes, deltas, two lengths, header count.
    const auto full = [&] {
        if (builder.record_count() == 0) return false;
        if (shape.records > 0) return builder.record_count() >= shape.records;
        return builder.uncompressed_bytes() + static_cast<std::size_t>(shape.record_bytes) + 9 > static_cast<std::size_t>(shape.batch_bytes);
    };
    while (!full()) {
        const std::string value = value_of(random, static_cast<std::size_t>(shape.record_bytes));
        builder.append(Offset{builder.record_count()}, now, std::nullopt, as_bytes(value));
    }
    ProduceFrame frame;
    frame.records_ = builder.record_count();
    std::vector<std::byte> batch;
    builder.finish(batch);
    frame.batch_bytes_ = batch.size();
    TM_TRY(frame.bytes_, produce_frame(topic, partition, acks, batch, 0));
    return frame;
}

Bytes ProduceFrame::with_correlation_id(std::int32_t id) {
    store_be(bytes_.data() + correlation_id_at, id);
    return bytes_;
}

}  // namespace tidemark::bench
