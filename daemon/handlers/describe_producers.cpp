// DescribeProducers (61), version 0: wire-behaviour 12 (KIP-664).
#include "protocol/messages/describe_producers_request.h"
#include "protocol/messages/describe_producers_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::DescribeProducersResponse describe_producers(Broker& broker, Call& call, protocol::DescribeProducersRequest& request) {
    const auto image = broker.image();
    protocol::DescribeProducersResponse response;
    for (const auto& topic : request.topics) {
        auto& answer = response.topics.emplace_back();
        answer.name = topic.name;
        for (const auto index : topic.partition_indexes) {
            auto& partition = answer.partitions.emplace_back();
            partition.partition_index = index;
            if (!is_legal_topic_name(topic.name)) {
                partition.error_code = ErrorCode::invalid_topic_exception;
                partition.error_message = illegal_topic_name_text(topic.name);
            } else if (const auto found = find_partition(broker, *image, {topic.name, index}); found.error != ErrorCode::none) {
                partition.error_code = found.error;
                if (found.error == ErrorCode::unknown_topic_or_partition) partition.error_message = unknown_partition_text;
            } else {
                for (const auto& producer : found.log->producers()) {
                    partition.active_producers.push_back({.producer_id = producer.producer_id,
                                                          .producer_epoch = producer.epoch,
                                                          .last_sequence = producer.last_sequence,
                                                          .last_timestamp = producer.last_timestamp.value,
                                                          .coordinator_epoch = producer.coordinator_epoch,
                                                          .current_txn_start_offset = producer.current_transaction_first_offset.value_or(Offset{-1}).value});
                }
            }
            call.count(partition.error_code);
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
