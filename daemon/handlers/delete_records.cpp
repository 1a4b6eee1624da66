// DeleteRecords (21), versions 0 to 2: wire-behaviour 10, append-and-read 9.
#include "protocol/messages/delete_records_request.h"
#include "protocol/messages/delete_records_response.h"

#include <algorithm>
#include <map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "storage/delete_records.h"

namespace tidemark::daemon::handlers {

namespace {

/// The log to delete from, or why nothing is.
struct Checked {
    ErrorCode error = ErrorCode::none;
    storage::RecordDeletion deletion = {};
};

Checked check(Broker& broker, const metadata::Image& image, const TopicPartition& name, std::int64_t offset) {
    if (is_internal_topic(name.topic)) return {ErrorCode::invalid_topic_exception};
    const auto found = find_partition(broker, image, name);
    if (found.error != ErrorCode::none) return {found.error};
    // A compacted topic's records go by key; an empty policy forbids nothing.
    const auto config = found.log->config();
    if (config->compacts && !config->deletes) return {ErrorCode::policy_violation};
    if (offset < -1) return {ErrorCode::offset_out_of_range};
    return {.deletion = {found.log, offset == -1 ? std::nullopt : std::optional{Offset{offset}}}};
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
    std::vector<storage::RecordDeletion> deletions;   // of all partitions together: one checkpoint per log directory
    for (const auto& asked : asked_of(request)) {
        auto& answer = response.topics.emplace_back();
        answer.name = asked.topic;
        for (const auto& [partition, offset] : asked.offsets) {
            auto checked = check(broker, *image, {asked.topic, partition}, offset);
            answer.partitions.push_back({.partition_index = partition, .low_watermark = -1, .error_code = checked.error});
            if (checked.error == ErrorCode::none) deletions.push_back(std::move(checked.deletion));
        }
    }
    const auto deleted = storage::delete_records(deletions);
    auto next = deleted.begin();
    for (auto& topic : response.topics) {
        for (auto& partition : topic.partitions) {
            if (partition.error_code == ErrorCode::none) {
                const auto& start = *next++;
                if (start) partition.low_watermark = start->value;
                else partition.error_code = to_error_code(start.error());
            }
            call.count(partition.error_code);
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
