/// What the metadata log says at one offset: topics, partitions, settings, features. Immutable once published: handlers
/// keep the one they started with.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/topic_partition.h"
#include "base/types.h"
#include "base/uuid.h"
#include "protocol/messages/access_control_entry_record.h"
#include "protocol/messages/delegation_token_record.h"
#include "protocol/messages/register_broker_record.h"
#include "protocol/messages/register_controller_record.h"
#include "protocol/messages/user_scram_credential_record.h"

namespace tidemark::metadata {

struct Partition {
    std::vector<std::int32_t> replicas, isr, removing, adding, elr, last_known_elr;
    std::vector<Uuid> directories;
    std::int32_t leader = -1;
    LeaderEpoch leader_epoch = 0;
    std::int32_t partition_epoch = 0;
    std::int8_t leader_recovery_state = 0;

    friend bool operator==(const Partition&, const Partition&) = default;
};

struct Topic {
    std::string name;
    Uuid id;
    std::map<std::int32_t, Partition> partitions;

    friend bool operator==(const Topic&, const Topic&) = default;
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
    bool in_controlled_shutdown = false;
    struct Endpoint {
        std::string listener, host;
        std::uint16_t port = 0;
        std::int16_t security_protocol = 0;
        friend bool operator==(const Endpoint&, const Endpoint&) = default;
    };
    std::vector<Endpoint> endpoints;
    std::vector<Uuid> log_dirs;
    std::optional<std::string> rack;
    struct LevelRange {
        std::int16_t min = 0, max = 0;
        friend bool operator==(const LevelRange&, const LevelRange&) = default;
    };
    std::map<std::string, LevelRange> features;        ///< what the broker supports
    std::optional<std::vector<Uuid>> cordoned_log_dirs;
    bool is_migrating_zk_broker = false;

    friend bool operator==(const BrokerRegistration&, const BrokerRegistration&) = default;
};

/// Records whose subjects Tidemark does not offer (D25): kept as they are, so that its snapshots hold them for whoever
/// opens the directory next.
struct KeptRecords {
    /// Type and name of each part, sorted by type; no name is the default entity.
    using QuotaEntity = std::map<std::string, std::optional<std::string>>;

    std::map<std::int32_t, protocol::RegisterControllerRecord> controllers;
    std::map<std::pair<std::string, std::int8_t>, protocol::UserScramCredentialRecord> scram;   ///< by user and mechanism
    std::map<Uuid, protocol::AccessControlEntryRecord> acls;
    std::map<QuotaEntity, std::map<std::string, double>> quotas;
    std::map<std::string, protocol::DelegationTokenRecord> delegation_tokens;                   ///< by token id

    friend bool operator==(const KeptRecords&, const KeptRecords&) = default;
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
    std::int64_t next_producer_id = 0;                 ///< 0: no block was handed out yet
    std::shared_ptr<const KeptRecords> kept = std::make_shared<const KeptRecords>();

    /// metadata.version, which fixes the versions of the records that are written; 0 when there is none yet.
    std::int16_t metadata_version() const;
    std::int16_t feature(std::string_view name) const;         ///< 0 when absent

    const Topic* find(std::string_view name) const;
    const Topic* find(const Uuid& id) const;
    const Partition* find(const TopicPartition&) const;
    const ConfigMap& overrides(ResourceType, const std::string& name) const;   ///< empty when there are none

    /// Everything but the offset is equal.
    bool same_content(const Image&) const;
};
using ImagePtr = std::shared_ptr<const Image>;   ///< never null

}  // namespace tidemark::metadata
