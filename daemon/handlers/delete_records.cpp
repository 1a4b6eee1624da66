// DeleteRecords (21), versions 0 to 2: wire-behaviour 10, append-and-read 9.
#include "protocol/messages/delete_records_request.h"
#include "protocol/messages/delete_records_response.h"

#include <algorithm>
#include <map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

struct Deleted {
    ErrorCode error = ErrorCode::none;
    Offset low_watermark{-1};
};

Deleted delete_before(Broker& broker, const metadata::Image& image, const TopicPartition& name, std::int64_t offset) {
    if (is_internal_topic(name.topic)) return {ErrorCode::invalid_topic_exception};
    const auto found = find_partition(broker, image, name);
    if (found.error != ErrorCode::none) return {found.error};
    // A compacted topic's records go by key; an empty policy forbids nothing.
    const auto config = found.log->config();
    if (config->compacts && !config->deletes) return {ErrorCode::policy_violation};
    if (offset < -1) return {ErrorCode::offset_out_of_range};
    const auto start = found.log->delete_records_before(offset == -1 ? std::nullopt : std::optional{Offset{offset}});
    if (!start) return {to_error_code(start.error())};
    return {.low_watermark = *start};
}

struct Asked {
    std::string topic;
    std::map<std::int32_t, std::int64_t> offsets;
};

/// A partition named twice counts with its last offset, a topic without partitions not at all.
std::vector<Asked> asked_of(const protocol::DeleteRecordsRequest& request) {
    std::vector<Asked> asked;
    for (const auto& topic : request.topics) {
        if (topic.partitions.empty()) continue;
        auto named = std::ranges::find(asked, topic.name, &Asked::topic);
        if (named == asked.end()) named = asked.insert(asked.end(), {topic.name, {}});
        for (const auto& partition : topic.partitions) named->offsets[partition.partition_index] = partition.offset;
    }
    return asked;
}

}  // namespace

protocol::DeleteRecordsResponse delete_records(Broker& broker, Call& call, protocol::DeleteRecordsRequest& request) {
    const auto image = broker.image();
    protocol::DeleteRecordsResponse response;
    for (const auto& asked : asked_of(request)) {
        auto& answer = response.topics.emplace_back();
        answer.name = asked.topic;
        for (const auto& [partition, offset] : asked.offsets) {
            const auto deleted = delete_before(broker, *image, {asked.topic, partition}, offset);
            answer.partitions.push_back({.partition_index = partition, .low_watermark = deleted.low_watermark.value, .error_code = deleted.error});
            call.count(deleted.error);
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
