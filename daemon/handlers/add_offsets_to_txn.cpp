// AddOffsetsToTxn (25), versions 0 to 4: transaction-coordinator 5. The group's partition of __consumer_offsets joins the
// transaction, even before there is such a topic: some clients look for the group's coordinator, which makes it, only then. The
// group itself is not looked at.
#include "protocol/messages/add_offsets_to_txn_request.h"
#include "protocol/messages/add_offsets_to_txn_response.h"

#include "coordinator/internal_topics.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "metadata/effective_config.h"

namespace tidemark::daemon::handlers {

namespace {

/// Where the group lives once there is a topic for groups.
TopicPartition future_partition_of_group(const Broker& broker, const metadata::Image& image, std::string_view group_id) {
    const auto topic = coordinator::group_topic_settings(metadata::config_layers(image, broker.node_id(), *broker.file_config()));
    return {topic.name, coordinator::partition_of(group_id, topic.partitions)};
}

}  // namespace

void add_offsets_to_txn(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::AddOffsetsToTxnRequest>();
    if (!request) return;
    call->hold_reading();
    const auto answer = [call](ErrorCode error) {
        const auto shown = producer_error(error, call->version());
        call->count(shown);
        call->finish(protocol::AddOffsetsToTxnResponse{.error_code = shown});
    };
    const auto image = broker.image();
    const auto known = partition_of_group(*image, request->group_id);
    broker.coordinators().transactions().add_partitions(request->transactional_id, {request->producer_id, request->producer_epoch},
                                                        {known ? *known : future_partition_of_group(broker, *image, request->group_id)}, 0, false, answer);
}

}  // namespace tidemark::daemon::handlers
