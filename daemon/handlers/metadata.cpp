// Metadata (3), versions 0 to 13: wire-behaviour 6. Unknown topics are created on the way when both sides allow it.
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"

#include <unordered_set>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::metadata_response::MetadataResponseTopic;

MetadataResponseTopic describe(const metadata::Topic& topic, bool with_operations) {
    MetadataResponseTopic answer{.name = topic.name, .topic_id = topic.id, .is_internal = is_internal_topic(topic.name)};
    for (const auto& [index, partition] : topic.partitions) {
        answer.partitions.push_back({.error_code = partition.leader < 0 ? ErrorCode::leader_not_available : ErrorCode::none,
                                     .partition_index = index,
                                     .leader_id = partition.leader,
                                     .leader_epoch = partition.leader_epoch,
                                     .replica_nodes = partition.replicas,
                                     .isr_nodes = partition.isr});
    }
    if (with_operations) answer.topic_authorized_operations = topic_operations;
    return answer;
}

/// Creation begins here; this answer still says that there is no such topic. Internal ones are their coordinators' to make.
void create_if_allowed(Broker& broker, const protocol::MetadataRequest& request, std::int16_t version, const std::string& name) {
    const bool wanted = version < 4 || request.allow_auto_topic_creation;
    if (wanted && broker.options()->auto_create_topics && !is_internal_topic(name)) broker.create_topic_in_background({.name = name});
}

}  // namespace

protocol::MetadataResponse metadata(Broker& broker, Call& call, protocol::MetadataRequest& request) {
    const auto image = broker.image();
    const auto& endpoint = broker.endpoint(call.peer().listener);
    protocol::MetadataResponse response;
    response.brokers.push_back({.node_id = broker.node_id(), .host = endpoint.host, .port = endpoint.port, .rack = broker.options()->rack});
    response.cluster_id = broker.cluster_id();
    response.controller_id = broker.node_id();
    if (request.include_cluster_authorized_operations) response.cluster_authorized_operations = cluster_operations;

    const bool with_operations = request.include_topic_authorized_operations;
    const auto refuse = [&](std::optional<std::string> name, const Uuid& id, ErrorCode error) {
        const bool internal = name && is_internal_topic(*name);
        response.topics.push_back({.error_code = error, .name = std::move(name), .topic_id = id, .is_internal = internal});
        call.count(error);
    };
    if (!request.topics || (call.version() == 0 && request.topics->empty())) {
        for (const auto& [name, topic] : image->topics) response.topics.push_back(describe(*topic, with_operations));
        return response;
    }

    const auto version = call.version();
    const bool by_id = version >= 12 && std::ranges::any_of(*request.topics, [](const auto& topic) { return !topic.topic_id.is_zero(); });
    std::unordered_set<std::string> names;
    std::unordered_set<Uuid> ids;
    for (const auto& topic : *request.topics) {
        if (by_id) {
            // Ids win: names in the same request are ignored.
            if (topic.topic_id.is_zero() || !ids.insert(topic.topic_id).second) continue;
            if (const auto* found = image->find(topic.topic_id)) response.topics.push_back(describe(*found, with_operations));
            else refuse(std::nullopt, topic.topic_id, ErrorCode::unknown_topic_id);
            continue;
        }
        // Kafka fails the whole request for a null name without an id; the one topic is enough. Where null cannot be
        // written (before version 12), it is "".
        if (!topic.name || (version < 12 && !topic.topic_id.is_zero())) {
            refuse(version < 12 ? std::optional{topic.name.value_or("")} : topic.name, topic.topic_id, ErrorCode::invalid_request);
            continue;
        }
        if (!names.insert(*topic.name).second) continue;
        if (const auto* found = image->find(*topic.name)) {
            response.topics.push_back(describe(*found, with_operations));
        } else if (!is_legal_topic_name(*topic.name)) {
            refuse(topic.name, {}, ErrorCode::invalid_topic_exception);
        } else {
            create_if_allowed(broker, request, version, *topic.name);
            refuse(topic.name, {}, ErrorCode::unknown_topic_or_partition);
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
