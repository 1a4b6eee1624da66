// ListOffsets (2), versions 1 to 11: wire-behaviour 9, append-and-read 8, D24.
//
// The ends of a log are in memory and answered at once; a search by time may read from the disk and runs on the disk pool.
// Left out: tiered storage, so -5 and -6 find nothing.
#include "protocol/messages/list_offsets_request.h"
#include "protocol/messages/list_offsets_response.h"

#include <map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handler.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::list_offsets_request::ListOffsetsPartition;
using protocol::list_offsets_response::ListOffsetsPartitionResponse;

/// Timestamps that mean something else, and the version that brought each.
constexpr std::int64_t latest = -1, earliest = -2, max_timestamp = -3, earliest_local = -4, latest_tiered = -5, earliest_pending_upload = -6;

bool is_known(std::int64_t timestamp, std::int16_t version) {
    switch (timestamp) {
        case latest:
        case earliest: return true;
        case max_timestamp: return version >= 7;
        case earliest_local: return version >= 8;
        case latest_tiered: return version >= 9;
        case earliest_pending_upload: return version >= 11;
        default: return timestamp >= 0;
    }
}

bool reads_the_log(std::int64_t timestamp) { return timestamp >= 0 || timestamp == max_timestamp; }

Result<std::optional<storage::FoundOffset>> find(const storage::Log& log, std::int64_t timestamp, storage::Isolation isolation) {
    switch (timestamp) {
        case latest: return std::optional{log.latest_offset(isolation)};
        case earliest:
        case earliest_local: return std::optional{log.earliest_offset()};
        case latest_tiered:
        case earliest_pending_upload: return std::optional<storage::FoundOffset>{};
        case max_timestamp: return log.offset_of_max_timestamp(isolation);
        default: return log.offset_for_time(Timestamp{timestamp}, isolation);
    }
}

ListOffsetsPartitionResponse answer_one(Broker& broker, const Call& call, const metadata::Image& image, const std::string& topic, const ListOffsetsPartition& asked, storage::Isolation isolation) {
    ListOffsetsPartitionResponse answer{.partition_index = asked.partition_index};
    const auto refuse = [&answer](ErrorCode error) {
        answer.error_code = error;
        return answer;
    };
    const auto found = find_partition(broker, image, {topic, asked.partition_index}, asked.current_leader_epoch);
    if (found.error == ErrorCode::unknown_topic_or_partition) return refuse(found.error);
    if (!is_known(asked.timestamp, call.version())) return refuse(ErrorCode::unsupported_version);
    if (found.error != ErrorCode::none) return refuse(found.error);
    const auto at = find(*found.log, asked.timestamp, isolation);
    if (!at) return refuse(to_error_code(at.error()));
    if (!*at) return answer;
    answer.timestamp = (*at)->timestamp.value;
    answer.offset = (*at)->offset.value;
    if (call.version() >= 4) answer.leader_epoch = (*at)->leader_epoch;
    return answer;
}

protocol::ListOffsetsResponse answer_all(Broker& broker, Call& call, const protocol::ListOffsetsRequest& request) {
    const auto image = broker.image();
    const bool legal_isolation = request.isolation_level == 0 || request.isolation_level == 1;
    const auto isolation = request.isolation_level == 1 ? storage::Isolation::read_committed : storage::Isolation::read_uncommitted;
    std::map<std::pair<std::string_view, std::int32_t>, int> times;
    for (const auto& topic : request.topics) {
        for (const auto& partition : topic.partitions) ++times[{topic.name, partition.partition_index}];
    }
    protocol::ListOffsetsResponse response;
    for (const auto& topic : request.topics) {
        auto& answer = response.topics.emplace_back();
        answer.name = topic.name;
        for (const auto& partition : topic.partitions) {
            auto& n = times[{topic.name, partition.partition_index}];
            if (n == 0) continue;   // a repeated one is answered once
            if (n > 1 || !legal_isolation) {
                answer.partitions.push_back({.partition_index = partition.partition_index,
                                             .error_code = n > 1 ? ErrorCode::invalid_request : ErrorCode::unknown_server_error});
            } else {
                answer.partitions.push_back(answer_one(broker, call, *image, topic.name, partition, isolation));
            }
            n = 0;
            call.count(answer.partitions.back().error_code);
        }
    }
    return response;
}

}  // namespace

void list_offsets(Broker& broker, const std::shared_ptr<Call>& call) {
    auto parsed = call->parse<protocol::ListOffsetsRequest>();
    if (!parsed) return;
    const bool reads = std::ranges::any_of(parsed->topics, [](const auto& topic) {
        return std::ranges::any_of(topic.partitions, [](const auto& partition) { return reads_the_log(partition.timestamp); });
    });
    if (!reads) return call->finish(answer_all(broker, *call, *parsed));
    answer_on_disk(broker, call, [&broker, call, request = std::make_shared<protocol::ListOffsetsRequest>(*std::move(parsed))] { return answer_all(broker, *call, *request); });
}

}  // namespace tidemark::daemon::handlers
