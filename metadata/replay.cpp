#include "metadata/replay.h"

#include <algorithm>

#include <fmt/format.h>

namespace tidemark::metadata {
namespace {

using namespace protocol;

constexpr std::string_view metadata_version_feature = "metadata.version";

Error contradiction(std::string text) { return {Errc::corrupt, std::move(text)}; }

BrokerRegistration registration_of(const RegisterBrokerRecord& record) {
    BrokerRegistration broker;
    broker.id = record.broker_id;
    broker.epoch = record.broker_epoch;
    broker.incarnation = record.incarnation_id;
    broker.fenced = record.fenced;
    broker.in_controlled_shutdown = record.in_controlled_shutdown;
    for (const auto& endpoint : record.end_points) {
        broker.endpoints.push_back({.listener = endpoint.name, .host = endpoint.host, .port = endpoint.port, .security_protocol = endpoint.security_protocol});
    }
    broker.log_dirs = record.log_dirs;
    broker.rack = record.rack;
    for (const auto& feature : record.features) {
        broker.features[feature.name] = {.min = feature.min_supported_version, .max = feature.max_supported_version};
    }
    broker.cordoned_log_dirs = record.cordoned_log_dirs;
    broker.is_migrating_zk_broker = record.is_migrating_zk_broker;
    return broker;
}

KeptRecords::QuotaEntity entity_of(const ClientQuotaRecord& record) {
    KeptRecords::QuotaEntity entity;
    for (const auto& part : record.entity) entity.emplace(part.entity_type, part.entity_name);
    return entity;
}

Result<Partition> partition_of(const PartitionRecord& record) {
    Partition partition;
    partition.replicas = record.replicas;
    partition.isr = record.isr;
    partition.removing = record.removing_replicas;
    partition.adding = record.adding_replicas;
    partition.elr = record.eligible_leader_replicas.value_or(std::vector<std::int32_t>{});
    partition.last_known_elr = record.last_known_elr.value_or(std::vector<std::int32_t>{});
    partition.directories = record.directories;
    if (partition.directories.empty()) partition.directories.resize(partition.replicas.size());
    if (partition.directories.size() != partition.replicas.size()) {
        return contradiction(fmt::format("partition {} of topic {} has {} replicas and {} directories", record.partition_id, record.topic_id.text(),
                                         partition.replicas.size(), partition.directories.size()));
    }
    partition.leader = record.leader;
    partition.leader_epoch = record.leader_epoch;
    partition.partition_epoch = record.partition_epoch;
    partition.leader_recovery_state = record.leader_recovery_state;
    return partition;
}

template <class T>
void replace_if_given(std::vector<T>& value, const std::optional<std::vector<T>>& given) {
    if (given) value = *given;
}

std::optional<std::vector<std::int32_t>> unless_empty(const std::vector<std::int32_t>& ids) {
    if (ids.empty()) return std::nullopt;
    return ids;
}

}  // namespace

/// One overload per type of record, in the order of metadata-log 3.2.
struct ImageBuilder::Effect {
    ImageBuilder& builder;
    Image& image = builder.image_;

    Result<> operator()(const FeatureLevelRecord& record) {
        if (record.name == metadata_version_feature && (record.feature_level < metadata_version_min || record.feature_level > metadata_version_max)) {
            return Error{Errc::unsupported, fmt::format("metadata.version {} is outside the supported range {} to {}", record.feature_level, metadata_version_min, metadata_version_max)};
        }
        if (record.name == "kraft.version") return {};   // counts only as a control record
        if (record.feature_level == 0) image.features.erase(record.name);
        else image.features[record.name] = record.feature_level;
        return {};
    }

    Result<> operator()(const TopicRecord& record) {
        if (image.topics.contains(record.name)) return contradiction(fmt::format("duplicate TopicRecord for {}", record.name));
        if (image.topics_by_id.contains(record.topic_id)) return contradiction(fmt::format("topic {} has the id {} of another one", record.name, record.topic_id.text()));
        auto topic = std::make_shared<Topic>();
        topic->name = record.name;
        topic->id = record.topic_id;
        builder.own_topics_.insert(topic.get());
        image.topics.emplace(record.name, topic);
        image.topics_by_id.emplace(record.topic_id, std::move(topic));
        return {};
    }

    Result<> operator()(const PartitionRecord& record) {
        Topic* topic = builder.topic_to_change(record.topic_id);
        if (topic == nullptr) return contradiction(fmt::format("partition {} of the unknown topic id {}", record.partition_id, record.topic_id.text()));
        TM_TRY(auto partition, partition_of(record));
        topic->partitions.insert_or_assign(record.partition_id, std::move(partition));
        return {};
    }

    Result<> operator()(const PartitionChangeRecord& record) {
        Topic* topic = builder.topic_to_change(record.topic_id);
        if (topic == nullptr) return contradiction(fmt::format("a change of partition {} of the unknown topic id {}", record.partition_id, record.topic_id.text()));
        const auto found = topic->partitions.find(record.partition_id);
        if (found == topic->partitions.end()) return contradiction(fmt::format("a change of the unknown partition {}-{}", topic->name, record.partition_id));
        Partition& partition = found->second;
        replace_if_given(partition.isr, record.isr);
        replace_if_given(partition.replicas, record.replicas);
        replace_if_given(partition.removing, record.removing_replicas);
        replace_if_given(partition.adding, record.adding_replicas);
        replace_if_given(partition.directories, record.directories);
        replace_if_given(partition.elr, record.eligible_leader_replicas);
        replace_if_given(partition.last_known_elr, record.last_known_elr);
        partition.directories.resize(partition.replicas.size());
        if (record.leader != -2) {   // the same broker again counts too
            partition.leader = record.leader;
            ++partition.leader_epoch;
        }
        if (record.leader_recovery_state != -1) partition.leader_recovery_state = record.leader_recovery_state;
        ++partition.partition_epoch;
        return {};
    }

    Result<> operator()(const RemoveTopicRecord& record) {
        const auto found = image.topics_by_id.find(record.topic_id);
        if (found == image.topics_by_id.end()) return contradiction(fmt::format("removal of the unknown topic id {}", record.topic_id.text()));
        const std::string name = found->second->name;
        builder.own_topics_.erase(found->second.get());
        image.configs.erase({ResourceType::topic, name});
        image.topics.erase(name);
        image.topics_by_id.erase(found);
        return {};
    }

    Result<> operator()(const ConfigRecord& record) {
        const ConfigResource resource{static_cast<ResourceType>(record.resource_type), record.resource_name};
        if (record.value) {
            image.configs[resource][record.name] = *record.value;
            return {};
        }
        const auto found = image.configs.find(resource);
        if (found == image.configs.end()) return {};
        found->second.erase(record.name);
        if (found->second.empty()) image.configs.erase(found);
        return {};
    }

    Result<> operator()(const RegisterBrokerRecord& record) {
        image.brokers.insert_or_assign(record.broker_id, registration_of(record));
        return {};
    }

    /// The registration of a broker in exactly this epoch.
    Result<BrokerRegistration*> registration(std::int32_t id, std::int64_t epoch) {
        const auto found = image.brokers.find(id);
        if (found == image.brokers.end()) return contradiction(fmt::format("a change of broker {}, which is not registered", id));
        if (found->second.epoch != epoch) return contradiction(fmt::format("a change of broker {} in epoch {}, registered in epoch {}", id, epoch, found->second.epoch));
        return &found->second;
    }

    Result<> operator()(const BrokerRegistrationChangeRecord& record) {
        TM_TRY(BrokerRegistration* broker, registration(record.broker_id, record.broker_epoch));
        if (record.fenced != 0) broker->fenced = record.fenced > 0;
        if (record.in_controlled_shutdown == 1) broker->in_controlled_shutdown = true;
        if (!record.log_dirs.empty()) broker->log_dirs = record.log_dirs;
        if (record.cordoned_log_dirs) broker->cordoned_log_dirs = record.cordoned_log_dirs;
        return {};
    }
    Result<> operator()(const FenceBrokerRecord& record) {
        TM_TRY(BrokerRegistration* broker, registration(record.id, record.epoch));
        broker->fenced = true;
        return {};
    }
    Result<> operator()(const UnfenceBrokerRecord& record) {
        TM_TRY(BrokerRegistration* broker, registration(record.id, record.epoch));
        broker->fenced = false;
        return {};
    }
    Result<> operator()(const UnregisterBrokerRecord& record) {
        TM_TRYV(registration(record.broker_id, record.broker_epoch));
        image.brokers.erase(record.broker_id);
        return {};
    }

    Result<> operator()(const RegisterControllerRecord& record) {
        builder.kept_to_change().controllers.insert_or_assign(record.controller_id, record);
        return {};
    }
    Result<> operator()(const UnregisterControllerRecord& record) {
        builder.kept_to_change().controllers.erase(record.controller_id);
        return {};
    }

    Result<> operator()(const ProducerIdsRecord& record) {
        if (record.next_producer_id <= image.next_producer_id) {
            return contradiction(fmt::format("next producer id {} after {}", record.next_producer_id, image.next_producer_id));
        }
        image.next_producer_id = record.next_producer_id;
        return {};
    }

    Result<> operator()(const ClientQuotaRecord& record) {
        auto& quotas = builder.kept_to_change().quotas;
        const auto entity = entity_of(record);
        if (!record.remove) {
            quotas[entity][record.key] = record.value;
            return {};
        }
        const auto found = quotas.find(entity);
        if (found == quotas.end()) return {};
        found->second.erase(record.key);
        if (found->second.empty()) quotas.erase(found);
        return {};
    }

    Result<> operator()(const AccessControlEntryRecord& record) {
        builder.kept_to_change().acls.insert_or_assign(record.id, record);
        return {};
    }
    Result<> operator()(const RemoveAccessControlEntryRecord& record) {
        if (builder.kept_to_change().acls.erase(record.id) == 0) return contradiction(fmt::format("removal of the unknown access control entry {}", record.id.text()));
        return {};
    }

    Result<> operator()(const UserScramCredentialRecord& record) {
        builder.kept_to_change().scram.insert_or_assign({record.name, record.mechanism}, record);
        return {};
    }
    Result<> operator()(const RemoveUserScramCredentialRecord& record) {
        if (builder.kept_to_change().scram.erase({record.name, record.mechanism}) == 0) {
            return contradiction(fmt::format("removal of the unknown credential of {}, mechanism {}", record.name, record.mechanism));
        }
        return {};
    }

    Result<> operator()(const DelegationTokenRecord& record) {
        builder.kept_to_change().delegation_tokens.insert_or_assign(record.token_id, record);
        return {};
    }
    Result<> operator()(const RemoveDelegationTokenRecord& record) {
        builder.kept_to_change().delegation_tokens.erase(record.token_id);
        return {};
    }

    Result<> operator()(const ClearElrRecord& record) {
        if (!record.topic_name.empty()) {
            const auto found = image.topics.find(record.topic_name);
            if (found == image.topics.end()) return contradiction(fmt::format("ClearElrRecord for the unknown topic {}", record.topic_name));
            clear_elr(found->second->id);
            return {};
        }
        std::vector<Uuid> ids;
        for (const auto& [id, topic] : image.topics_by_id) ids.push_back(id);
        for (const Uuid& id : ids) clear_elr(id);
        return {};
    }
    void clear_elr(const Uuid& id) {
        for (auto& [number, partition] : builder.topic_to_change(id)->partitions) {
            partition.elr.clear();
            partition.last_known_elr.clear();
        }
    }

    Result<> operator()(const NoOpRecord&) { return {}; }
    Result<> operator()(const ZkMigrationStateRecord&) { return {}; }
    // These three are ImageBuilder::apply()'s.
    Result<> operator()(const BeginTransactionRecord&) { return contradiction("a transaction within a transaction"); }
    Result<> operator()(const EndTransactionRecord&) { return contradiction("the end of a transaction that was not begun"); }
    Result<> operator()(const AbortTransactionRecord&) { return contradiction("the abort of a transaction that was not begun"); }
};

ImageBuilder::ImageBuilder(std::shared_ptr<const Image> from) : image_(*from) {}

Topic* ImageBuilder::topic_to_change(const Uuid& id) {
    const auto found = image_.topics_by_id.find(id);
    if (found == image_.topics_by_id.end()) return nullptr;
    if (own_topics_.contains(found->second.get())) return const_cast<Topic*>(found->second.get());   // made non-const, here
    auto copy = std::make_shared<Topic>(*found->second);
    Topic* topic = copy.get();
    own_topics_.insert(topic);
    image_.topics[topic->name] = copy;
    found->second = std::move(copy);
    return topic;
}

KeptRecords& ImageBuilder::kept_to_change() {
    if (!own_kept_) {
        own_kept_ = std::make_shared<KeptRecords>(*image_.kept);
        image_.kept = own_kept_;
    }
    return *own_kept_;
}

Result<> ImageBuilder::apply(const MetadataRecord& record, Offset offset) {
    const auto effect = [&](const MetadataRecord& r) { return std::visit(Effect{*this}, r); };
    if (in_transaction_) {
        if (std::holds_alternative<EndTransactionRecord>(record)) {
            in_transaction_ = false;
            const auto records = std::exchange(pending_, {});
            for (const auto& pending : records) TM_TRYV(effect(pending));
        } else if (std::holds_alternative<AbortTransactionRecord>(record)) {
            in_transaction_ = false;
            pending_.clear();
        } else if (std::holds_alternative<BeginTransactionRecord>(record)) {
            return effect(record);   // the error
        } else {
            pending_.push_back(record);
            return {};               // not visible, so the image stays at its offset
        }
    } else if (std::holds_alternative<BeginTransactionRecord>(record)) {
        in_transaction_ = true;
        return {};
    } else {
        TM_TRYV(effect(record));
    }
    image_.offset = offset;
    return {};
}

void ImageBuilder::pass(Offset offset) {
    if (!in_transaction_) image_.offset = offset;
}

std::shared_ptr<const Image> ImageBuilder::build() && { return std::make_shared<const Image>(std::move(image_)); }

std::int16_t record_version(const MetadataRecord& record, std::int16_t metadata_version) {
    if (std::holds_alternative<RegisterBrokerRecord>(record)) {
        if (metadata_version >= 30) return 4;
        if (metadata_version >= 17) return 3;
        return metadata_version >= 8 ? 2 : 1;
    }
    if (std::holds_alternative<PartitionRecord>(record) || std::holds_alternative<PartitionChangeRecord>(record)) {
        if (metadata_version >= 23) return 2;
        return metadata_version >= 17 ? 1 : 0;
    }
    if (const auto* change = std::get_if<BrokerRegistrationChangeRecord>(&record)) {
        if (change->cordoned_log_dirs) return 3;
        if (!change->log_dirs.empty()) return 2;
        return change->in_controlled_shutdown != 0 ? 1 : 0;
    }
    return 0;
}

PartitionRecord partition_record(const Uuid& topic_id, std::int32_t number, const Partition& partition, std::int16_t metadata_version) {
    PartitionRecord record;
    record.partition_id = number;
    record.topic_id = topic_id;
    record.replicas = partition.replicas;
    record.isr = partition.isr;
    record.removing_replicas = partition.removing;
    record.adding_replicas = partition.adding;
    record.leader = partition.leader;
    record.leader_recovery_state = partition.leader_recovery_state;
    record.leader_epoch = partition.leader_epoch;
    record.partition_epoch = partition.partition_epoch;
    const std::int16_t version = record_version(record, metadata_version);
    if (version >= 1) record.directories = partition.directories;
    if (version >= 2) {
        record.eligible_leader_replicas = unless_empty(partition.elr);
        record.last_known_elr = unless_empty(partition.last_known_elr);
    }
    return record;
}

RegisterBrokerRecord register_broker_record(const BrokerRegistration& broker, std::int16_t metadata_version) {
    RegisterBrokerRecord record;
    record.broker_id = broker.id;
    record.incarnation_id = broker.incarnation;
    record.broker_epoch = broker.epoch;
    for (const auto& endpoint : broker.endpoints) {
        record.end_points.push_back({.name = endpoint.listener, .host = endpoint.host, .port = endpoint.port, .security_protocol = endpoint.security_protocol});
    }
    for (const auto& [name, range] : broker.features) {
        record.features.push_back({.name = name, .min_supported_version = range.min, .max_supported_version = range.max});
    }
    record.rack = broker.rack;
    record.fenced = broker.fenced;
    record.in_controlled_shutdown = broker.in_controlled_shutdown;
    const std::int16_t version = record_version(record, metadata_version);
    if (version >= 2) record.is_migrating_zk_broker = broker.is_migrating_zk_broker;
    if (version >= 3) record.log_dirs = broker.log_dirs;
    if (version >= 4) record.cordoned_log_dirs = broker.cordoned_log_dirs;
    return record;
}

std::vector<MetadataRecord> snapshot_records(const Image& image) {
    std::vector<MetadataRecord> records;
    const auto feature = [&](const std::string& name, std::int16_t level) { records.emplace_back(FeatureLevelRecord{.name = name, .feature_level = level}); };
    const std::int16_t version = image.metadata_version();
    feature(std::string(metadata_version_feature), version);
    for (const auto& [name, level] : image.features) {
        if (name != metadata_version_feature) feature(name, level);
    }
    for (const auto& [id, broker] : image.brokers) records.emplace_back(register_broker_record(broker, version));
    for (const auto& [id, controller] : image.kept->controllers) records.emplace_back(controller);
    for (const auto& [name, topic] : image.topics) {
        records.emplace_back(TopicRecord{.name = name, .topic_id = topic->id});
        for (const auto& [number, partition] : topic->partitions) records.emplace_back(partition_record(topic->id, number, partition, version));
    }
    for (const auto& [resource, overrides] : image.configs) {
        for (const auto& [name, value] : overrides) {
            records.emplace_back(ConfigRecord{.resource_type = static_cast<std::int8_t>(resource.type), .resource_name = resource.name, .name = name, .value = value});
        }
    }
    for (const auto& [entity, values] : image.kept->quotas) {
        for (const auto& [key, value] : values) {
            ClientQuotaRecord record{.key = key, .value = value, .remove = false};
            for (const auto& [type, name] : entity) record.entity.push_back({.entity_type = type, .entity_name = name});
            records.emplace_back(std::move(record));
        }
    }
    if (image.next_producer_id > 0) records.emplace_back(ProducerIdsRecord{.broker_id = -1, .broker_epoch = -1, .next_producer_id = image.next_producer_id});
    for (const auto& [id, acl] : image.kept->acls) records.emplace_back(acl);
    for (const auto& [user, credential] : image.kept->scram) records.emplace_back(credential);
    for (const auto& [id, token] : image.kept->delegation_tokens) records.emplace_back(token);
    return records;
}

}  // namespace tidemark::metadata
