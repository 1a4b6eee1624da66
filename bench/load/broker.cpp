#include "bench/load/broker.h"

#include <thread>

#include "protocol/messages/create_topics_request.h"
#include "protocol/messages/create_topics_response.h"
#include "protocol/messages/fetch_request.h"
#include "protocol/messages/list_offsets_request.h"
#include "protocol/messages/list_offsets_response.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"

namespace tidemark::bench {

namespace {

constexpr auto leader_wait_max = std::chrono::seconds(60);

/// How many partitions have a leader.
Result<std::int32_t> led_partitions(Connection& connection, const std::string& topic) {
    protocol::MetadataRequest request;
    request.allow_auto_topic_creation = false;
    request.topics.emplace().emplace_back().name = topic;
    TM_TRY(const auto answer, connection.ask<protocol::MetadataResponse>(request, metadata_version));
    std::int32_t led = 0;
    for (const auto& found : answer.topics) {
        for (const auto& partition : found.partitions) {
            if (partition.error_code == protocol::ErrorCode::none && partition.leader_id >= 0) ++led;
        }
    }
    return led;
}

}  // namespace

Error refused(const std::string& what, protocol::ErrorCode code) {
    return Error{Errc::invalid_argument, what + ": " + std::string(protocol::to_string(code))};
}

Result<> ensure_topic(Connection& connection, const TopicOptions& topic) {
    TM_TRY(const auto led, led_partitions(connection, topic.name));
    if (led >= topic.partitions) return {};
    protocol::CreateTopicsRequest request;
    request.timeout_ms = 60000;
    auto& wanted = request.topics.emplace_back();
    wanted.name = topic.name;
    wanted.num_partitions = topic.partitions;
    wanted.replication_factor = 1;
    for (const auto& [key, value] : topic.configs) {
        auto& config = wanted.configs.emplace_back();
        config.name = key;
        config.value = value;
    }
    TM_TRY(const auto answer, connection.ask<protocol::CreateTopicsResponse>(request, 5));
    for (const auto& created : answer.topics) {
        if (created.error_code != protocol::ErrorCode::none) return refused("creating " + topic.name, created.error_code);
    }
    // Kafka's metadata names the leader a while before that serves.
    const auto end = std::chrono::steady_clock::now() + leader_wait_max;
    for (;;) {
        const auto served = offsets(connection, topic.name, topic.partitions, Position::latest);
        if (served) return {};
        if (std::chrono::steady_clock::now() > end) return in_context(served.error(), "a new topic");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

Result<std::vector<std::int64_t>> offsets(Connection& connection, const std::string& topic, std::int32_t partitions, Position position) {
    protocol::ListOffsetsRequest request;
    request.replica_id = -1;
    auto& asked = request.topics.emplace_back();
    asked.name = topic;
    for (std::int32_t p = 0; p < partitions; ++p) {
        auto& partition = asked.partitions.emplace_back();
        partition.partition_index = p;
        partition.timestamp = static_cast<std::int64_t>(position);
    }
    TM_TRY(const auto answer, connection.ask<protocol::ListOffsetsResponse>(request, 5));
    std::vector<std::int64_t> found(static_cast<std::size_t>(partitions), -1);
    for (const auto& answered : answer.topics) {
        for (const auto& partition : answered.partitions) {
            if (partition.error_code != protocol::ErrorCode::none) return refused(topic + "-" + std::to_string(partition.partition_index), partition.error_code);
            if (partition.partition_index >= 0 && partition.partition_index < partitions) found[static_cast<std::size_t>(partition.partition_index)] = partition.offset;
        }
    }
    return found;
}

Result<protocol::Encoded> fetch_frame(std::int32_t correlation_id, const std::string& topic, const std::vector<FetchPosition>& positions, const FetchOptions& options) {
    protocol::FetchRequest request;
    request.max_wait_ms = options.max_wait_ms;
    request.min_bytes = options.min_bytes;
    request.max_bytes = options.bytes_max;
    auto& asked = request.topics.emplace_back();
    asked.topic = topic;
    for (const auto& position : positions) {
        auto& partition = asked.partitions.emplace_back();
        partition.partition = position.partition;
        partition.fetch_offset = position.offset;
        partition.partition_max_bytes = options.partition_bytes_max;
    }
    return protocol::request_frame(Connection::header(correlation_id, fetch_version), request);
}

}  // namespace tidemark::bench
