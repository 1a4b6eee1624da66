/// What a request to change metadata comes to: answers, and the records that make it so. Pure: nothing is written here,
/// and the same input gives the same plan. Order of checks, codes and texts are Kafka's (wire-behaviour 10, 11).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/controller.h"
#include "metadata/effective_config.h"
#include "protocol/metadata_record.h"

namespace tidemark::metadata {

/// What plans are made against.
struct ChangeContext {
    const Image& image;
    const ConfigMap& file;                                 ///< the broker's file, under what the image holds
    std::int32_t node_id = 1;
    const std::vector<Uuid>& directory_ids;                ///< of this node's log directories; a partition goes to the emptiest
    std::function<Uuid()> new_id = [] { return Uuid::random(); };
};

template <class Answer>
struct Plan {
    std::vector<Answer> answers;                           ///< in the order of the requests
    std::vector<protocol::MetadataRecord> records;         ///< one batch; empty when nothing changes
};

/// The most records that one request may lead to.
inline constexpr std::size_t records_per_request_max = 10'000;

/// Nothing when `name` may be a topic's; otherwise Kafka's text, "Topic name is invalid: …".
std::optional<std::string> topic_name_problem(std::string_view name);
/// What an unknown key or a bad value, alone or together with the others, is refused with; nothing when all is well.
std::optional<std::string> topic_config_problem(const ConfigLayers&, const ConfigMap& overrides);

Plan<CreatedTopic> plan_create_topics(const ChangeContext&, const std::vector<NewTopic>&);
Plan<DeletedTopic> plan_delete_topics(const ChangeContext&, const std::vector<TopicToDelete>&);
Plan<Outcome> plan_create_partitions(const ChangeContext&, const std::vector<NewPartitions>&);
Plan<Outcome> plan_alter_configs(const ChangeContext&, const std::vector<AlterConfigs>&);
Plan<Outcome> plan_update_features(const ChangeContext&, const std::vector<FeatureUpdate>&);

/// What this node does to a partition that is its own and has another leader, in-sync replicas or directory than it
/// should (metadata-log 5.5.7): becomes the leader. Nothing when all is as it should be. `directory`: where its log is or
/// will be.
std::optional<protocol::PartitionChangeRecord> plan_leadership(const Uuid& topic_id, std::int32_t number, const Partition&, std::int32_t node_id,
                                                               const Uuid& directory, std::int16_t metadata_version);

}  // namespace tidemark::metadata
