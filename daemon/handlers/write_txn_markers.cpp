// WriteTxnMarkers (27), versions 1 and 2: transaction-coordinator 9. Our own markers need no request; this one is for
// administrators who end a transaction that hangs (kafka-transactions abort), and for other brokers.
#include "protocol/messages/write_txn_markers_request.h"
#include "protocol/messages/write_txn_markers_response.h"

#include "coordinator/gather.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

using protocol::WriteTxnMarkersResponse;

namespace {

bool is_of_a_producer(const protocol::WriteTxnMarkersRequest::WritableTxnMarker& marker) { return marker.producer_id >= 0 && marker.producer_epoch >= 0; }

}  // namespace

void write_txn_markers(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::WriteTxnMarkersRequest>();
    if (!request) return;
    call->hold_reading();
    const auto image = broker.image();

    // All places first: the coordinator's answers are written into them, maybe at once.
    WriteTxnMarkersResponse response;
    for (const auto& asked : request->markers) {
        // Of nobody: what cannot be written has no other name in Kafka.
        const auto unless_asked = is_of_a_producer(asked) ? ErrorCode::unknown_topic_or_partition : ErrorCode::unknown_server_error;
        auto& answer = response.markers.emplace_back();
        answer.producer_id = asked.producer_id;
        for (const auto& topic : asked.topics) {
            auto& partitions = answer.topics.emplace_back();
            partitions.name = topic.name;
            for (const auto index : topic.partition_indexes) partitions.partitions.push_back({.partition_index = index, .error_code = unless_asked});
        }
    }
    const auto gather = coordinator::Gather<WriteTxnMarkersResponse>::make(std::move(response), [call](const WriteTxnMarkersResponse& whole) { call->finish(whole); });
    auto& answers = gather->whole.markers;
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const auto& asked = request->markers[i];
        const coordinator::Marker marker{.producer_id = asked.producer_id,
                                         .producer_epoch = asked.producer_epoch,
                                         .coordinator_epoch = asked.coordinator_epoch,
                                         .transaction_version = asked.transaction_version,
                                         .commit = asked.transaction_result};
        for (auto& topic : answers[i].topics) {
            for (auto& partition : topic.partitions) {
                if (!is_of_a_producer(asked) || !image->find({topic.name, partition.partition_index})) {
                    call->count(partition.error_code);
                    continue;
                }
                broker.coordinators().transactions().write_marker({topic.name, partition.partition_index}, marker, [gather, call, &partition](ErrorCode error) {
                    partition.error_code = error;
                    call->count(error);
                });
            }
        }
    }
}

}  // namespace tidemark::daemon::handlers
