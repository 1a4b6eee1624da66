// OffsetForLeaderEpoch (23), versions 2 to 4: wire-behaviour 9 (KIP-101, KIP-320).
#include "protocol/messages/offset_for_leader_epoch_request.h"
#include "protocol/messages/offset_for_leader_epoch_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::OffsetForLeaderEpochResponse offset_for_leader_epoch(Broker& broker, Call& call, protocol::OffsetForLeaderEpochRequest& request) {
    const auto image = broker.image();
    protocol::OffsetForLeaderEpochResponse response;
    for (const auto& topic : request.topics) {
        auto& answer = response.topics.emplace_back();
        answer.topic = topic.topic;
        for (const auto& partition : topic.partitions) {
            auto& result = answer.partitions.emplace_back();
            result.partition = partition.partition;
            const auto found = find_partition(broker, *image, {topic.topic, partition.partition}, partition.current_leader_epoch);
            result.error_code = found.error;
            call.count(found.error);
            if (found.error != ErrorCode::none || partition.leader_epoch < 0) continue;
            const auto end = found.log->end_of_epoch(partition.leader_epoch);
            result.leader_epoch = end.epoch;
            result.end_offset = end.end_offset.value;
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
