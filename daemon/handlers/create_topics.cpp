// CreateTopics (19), versions 2 to 7: wire-behaviour 10. The controller decides; here the answer is put into its form.
//
// Not as in Kafka: the timeout is not looked at, since the answer never waits for another node.
#include "protocol/messages/create_topics_request.h"
#include "protocol/messages/create_topics_response.h"

#include <unordered_map>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "metadata/effective_config.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::create_topics_request::CreatableTopic;
using protocol::create_topics_response::CreatableTopicResult;

metadata::NewTopic to_new_topic(const CreatableTopic& topic, Outcome& outcome) {
    metadata::NewTopic made{.name = topic.name, .partitions = topic.num_partitions, .replication_factor = topic.replication_factor};
    for (const auto& assignment : topic.assignments) {
        if (!made.assignments.emplace(assignment.partition_index, assignment.broker_ids).second) {
            outcome = {ErrorCode::invalid_replica_assignment, "Found multiple manual partition assignments for partition " + std::to_string(assignment.partition_index)};
        }
    }
    for (const auto& config : topic.configs) made.configs.emplace_back(config.name, config.value);
    return made;
}

/// The settings that the topic has, or with validate_only would have.
metadata::ConfigMap overrides(const CreatableTopic& topic) {
    metadata::ConfigMap map;
    for (const auto& config : topic.configs) {
        if (config.value) map[config.name] = *config.value;
    }
    return map;
}

}  // namespace

protocol::CreateTopicsResponse create_topics(Broker& broker, Call& call, protocol::CreateTopicsRequest& request) {
    protocol::CreateTopicsResponse response;
    std::unordered_map<std::string, int> times;
    for (const auto& topic : request.topics) ++times[topic.name];

    std::vector<metadata::NewTopic> wanted;
    std::vector<const CreatableTopic*> asked;
    const auto refuse = [&](const std::string& name, const Outcome& outcome) {
        response.topics.push_back({.name = name, .error_code = outcome.code, .error_message = outcome.message});
        call.count(outcome.code);
    };
    for (const auto& topic : request.topics) {
        auto& n = times[topic.name];
        if (n == 0) continue;
        Outcome outcome;
        if (n > 1) outcome = {ErrorCode::invalid_request, "Duplicate topic name."};
        else if (topic.name == "__cluster_metadata") outcome = {ErrorCode::invalid_request, "Creation of internal topic __cluster_metadata is prohibited."};
        n = 0;
        auto made = to_new_topic(topic, outcome);
        if (!outcome.ok()) {
            refuse(topic.name, outcome);
            continue;
        }
        wanted.push_back(std::move(made));
        asked.push_back(&topic);
    }
    if (wanted.empty()) return response;

    const auto created = broker.controller().create_topics(wanted, request.validate_only);
    const auto layers = metadata::config_layers(*broker.image(), broker.node_id(), *broker.file_config());
    for (std::size_t i = 0; i < created.size(); ++i) {
        if (!created[i].outcome.ok()) {
            refuse(wanted[i].name, created[i].outcome);
            continue;
        }
        CreatableTopicResult result{.name = wanted[i].name, .topic_id = created[i].id, .error_message = std::nullopt};
        result.num_partitions = created[i].partitions;
        result.replication_factor = created[i].replication_factor;
        for (auto& config : metadata::describe_topic(layers, overrides(*asked[i]))) {
            result.configs->push_back({.name = std::move(config.name),
                                       .value = std::move(config.value),
                                       .read_only = config.read_only,
                                       .config_source = static_cast<std::int8_t>(config.source),
                                       .is_sensitive = config.sensitive});
        }
        response.topics.push_back(std::move(result));
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
