/// What the metadata log says at one offset: topics, partitions, settings, features. Immutable once published: handlers
/// keep the one they started with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/topic_partition.h"
#include "base/types.h"
#include "base/uuid.h"

namespace tidemark::metadata {

struct Partition {
    std::vector<std::int32_t> replicas, isr, removing, adding, elr, last_known_elr;
    std::vector<Uuid> directories;
    std::int32_t leader = -1;
    LeaderEpoch leader_epoch = 0;
    std::int32_t partition_epoch = 0;
    std::int8_t leader_recovery_state = 0;
};

struct Topic {
    std::string name;
    Uuid id;
    std::map<std::int32_t, Partition> partitions;
};

enum class ResourceType : std::int8_t { topic = 2, broker = 4, broker_logger = 8, client_metrics = 16, group = 32 };

struct ConfigResource {
    ResourceType type = ResourceType::topic;
    std::string name;                                  ///< broker: the id, "" the cluster-wide default
    friend auto operator<=>(const ConfigResource&, const ConfigResource&) = default;
};

using ConfigMap = std::map<std::string, std::string>;  ///< overrides: key → value as it was given

struct BrokerRegistration {
    std::int32_t id = 0;
    std::int64_t epoch = -1;
    Uuid incarnation;
    bool fenced = true;
    struct Endpoint { std::string listener, host; std::uint16_t port = 0; std::int16_t security_protocol = 0; };
    std::vector<Endpoint> endpoints;
    std::vector<Uuid> log_dirs;
    std::optional<std::string> rack;
};

/// Threads: immutable, so any. Topics are shared between successive images.
class Image {
public:
    Offset offset{-1};                                 ///< of the last record applied: FinalizedFeaturesEpoch
    std::map<std::string, std::int16_t> features;      ///< name → finalized level (0 is absent)
    std::map<std::string, std::shared_ptr<const Topic>> topics;
    std::unordered_map<Uuid, std::shared_ptr<const Topic>> topics_by_id;
    std::map<ConfigResource, ConfigMap> configs;
    std::map<std::int32_t, BrokerRegistration> brokers;
    std::int64_t next_producer_id = 0;

    const Topic* find(std::string_view name) const;
    const Topic* find(const Uuid& id) const;
    const Partition* find(const TopicPartition&) const;
    const ConfigMap& overrides(ResourceType, const std::string& name) const;   ///< empty when there are none
};

}  // namespace tidemark::metadata
