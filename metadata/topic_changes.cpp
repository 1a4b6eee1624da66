// Create topics, delete topics, create partitions: wire-behaviour 10.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "metadata/changes.h"
#include "metadata/replay.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;

constexpr std::string_view legal_punctuation = "._-";
constexpr std::size_t topic_name_bytes_max = 249;
constexpr std::int64_t partitions_per_request_max = 10'000;
constexpr std::string_view cluster_metadata_topic = "__cluster_metadata";
constexpr std::string_view too_many_records = "Unable to perform excessively large batch operation.";

bool is_legal(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || legal_punctuation.find(c) != std::string_view::npos;
}

Outcome refuse(ErrorCode code, std::string text) { return {code, std::move(text)}; }

/// Two names that are the same when dots are read as underscores would share their metrics.
std::string collision_form(std::string_view name) {
    std::string form(name);
    std::ranges::replace(form, '.', '_');
    return form;
}

/// Hands out directories, the emptiest first.
class DirectoryChoice {
public:
    explicit DirectoryChoice(const ChangeContext& context) {
        for (const Uuid& id : context.directory_ids) partitions_[id] = 0;
        for (const auto& [name, topic] : context.image.topics) {
            for (const auto& [number, partition] : topic->partitions) {
                for (const Uuid& id : partition.directories) {
                    if (const auto found = partitions_.find(id); found != partitions_.end()) ++found->second;
                }
            }
        }
        ids_ = context.directory_ids;
    }
    Uuid next() {
        if (ids_.empty()) return Uuid::of(1);   // not assigned
        const auto emptiest = std::ranges::min_element(ids_, {}, [&](const Uuid& id) { return partitions_[id]; });
        ++partitions_[*emptiest];
        return *emptiest;
    }
private:
    std::vector<Uuid> ids_;
    std::unordered_map<Uuid, std::int64_t> partitions_;
};

Partition new_partition(std::vector<std::int32_t> replicas, const Uuid& directory) {
    Partition partition;
    partition.isr = replicas;
    partition.leader = replicas.front();
    partition.directories.assign(replicas.size(), directory);
    partition.replicas = std::move(replicas);
    return partition;
}

/// A replica list given by the client. `factor`: of the partitions before it, if there are any.
Outcome check_assignment(const ChangeContext& context, const std::vector<std::int32_t>& replicas, std::optional<std::size_t> factor) {
    if (replicas.empty()) return refuse(ErrorCode::invalid_replica_assignment, "The manual partition assignment includes an empty replica list.");
    std::set<std::int32_t> seen;
    std::vector<std::int32_t> sorted = replicas;
    std::ranges::sort(sorted);
    for (const std::int32_t broker : sorted) {
        if (broker != context.node_id) {
            return refuse(ErrorCode::invalid_replica_assignment, fmt::format("The manual partition assignment includes broker {}, but no such broker is registered.", broker));
        }
        if (!seen.insert(broker).second) return refuse(ErrorCode::invalid_replica_assignment, fmt::format("The manual partition assignment includes the broker {} more than once.", broker));
    }
    if (factor && *factor != replicas.size()) {
        return refuse(ErrorCode::invalid_replica_assignment,
                      fmt::format("The manual partition assignment includes a partition with {} replica(s), but this is not consistent with previous partitions, which have {} replica(s).",
                                  replicas.size(), *factor));
    }
    return {};
}

struct Layout {
    Outcome outcome = {};
    std::vector<std::vector<std::int32_t>> replicas = {};
};

Layout layout_of(const ChangeContext& context, const ConfigLayers& layers, const NewTopic& topic) {
    Layout layout;
    if (!topic.assignments.empty()) {
        if (topic.replication_factor != -1) return {refuse(ErrorCode::invalid_request, "A manual partition assignment was specified, but replication factor was not set to -1.")};
        if (topic.partitions != -1) return {refuse(ErrorCode::invalid_request, "A manual partition assignment was specified, but numPartitions was not set to -1.")};
        std::optional<std::size_t> factor;
        for (const auto& [number, replicas] : topic.assignments) {
            if (auto wrong = check_assignment(context, replicas, factor); !wrong.ok()) return {std::move(wrong)};
            factor = replicas.size();
            layout.replicas.push_back(replicas);
        }
        const bool consecutive = topic.assignments.begin()->first == 0 && topic.assignments.rbegin()->first + 1 == static_cast<std::int64_t>(topic.assignments.size());
        if (!consecutive) return {refuse(ErrorCode::invalid_replica_assignment, "partitions should be a consecutive 0-based integer sequence")};
        return layout;
    }
    if (topic.replication_factor < -1 || topic.replication_factor == 0) {
        return {refuse(ErrorCode::invalid_replication_factor, "Replication factor must be larger than 0, or -1 to use the default value.")};
    }
    if (topic.partitions < -1 || topic.partitions == 0) return {refuse(ErrorCode::invalid_partitions, "Number of partitions was set to an invalid non-positive value.")};
    const std::int64_t factor = topic.replication_factor == -1 ? broker_integer(layers, "default.replication.factor") : topic.replication_factor;
    if (factor != 1) {
        return {refuse(ErrorCode::invalid_replication_factor,
                       fmt::format("Unable to replicate the partition {} time(s): The target replication factor of {} cannot be reached because only 1 broker(s) are registered or some "
                                   "brokers have all their log directories cordoned.", factor, factor))};
    }
    const std::int64_t partitions = topic.partitions == -1 ? broker_integer(layers, "num.partitions") : topic.partitions;
    layout.replicas.assign(static_cast<std::size_t>(partitions), {context.node_id});
    return layout;
}

std::int64_t partitions_asked(const ConfigLayers& layers, const NewTopic& topic) {
    if (!topic.assignments.empty()) return static_cast<std::int64_t>(topic.assignments.size());
    return topic.partitions == -1 ? broker_integer(layers, "num.partitions") : std::max(topic.partitions, 0);
}

/// The configs of a request: a null value is refused, of a key given twice the last counts.
Outcome read_configs(const ConfigLayers& layers, const NewTopic& topic, ConfigMap& overrides) {
    std::vector<std::string_view> nulls;
    for (const auto& [key, value] : topic.configs) {
        if (value) overrides[key] = *value;
        else nulls.push_back(key);
    }
    if (!nulls.empty()) return refuse(ErrorCode::invalid_config, fmt::format("Null value not supported for topic configs: {}", fmt::join(nulls, ",")));
    if (auto problem = topic_config_problem(layers, overrides)) return refuse(ErrorCode::invalid_config, *std::move(problem));
    return {};
}

CreatedTopic refused(Outcome outcome) {
    CreatedTopic answer;
    answer.outcome = std::move(outcome);
    return answer;
}

}  // namespace

std::optional<std::string> topic_name_problem(std::string_view name) {
    constexpr std::string_view prefix = "Topic name is invalid: ";
    if (name.empty()) return fmt::format("{}the empty string is not allowed", prefix);
    if (name == "." || name == "..") return fmt::format("{}'{}' is not allowed", prefix, name);
    if (name.size() > topic_name_bytes_max) return fmt::format("{}the length of '{}' is longer than the max allowed length {}", prefix, name, topic_name_bytes_max);
    if (!std::ranges::all_of(name, is_legal)) {
        return fmt::format("{}'{}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", prefix, name);
    }
    return std::nullopt;
}

Plan<CreatedTopic> plan_create_topics(const ChangeContext& context, const std::vector<NewTopic>& topics) {
    Plan<CreatedTopic> plan;
    const Image& image = context.image;
    const ConfigLayers layers = config_layers(image, context.node_id, context.file);
    const bool with_elr = image.feature("eligible.leader.replicas.version") >= 1;

    std::map<std::string_view, int> times;
    for (const NewTopic& topic : topics) ++times[topic.name];
    std::int64_t partitions = 0;
    for (const NewTopic& topic : topics) partitions += partitions_asked(layers, topic);
    std::unordered_map<std::string, std::string> taken;   // collision form → name
    for (const auto& [name, topic] : image.topics) taken.emplace(collision_form(name), name);

    DirectoryChoice directories(context);
    for (const NewTopic& topic : topics) {
        const auto answer = [&](ErrorCode code, std::string text) { plan.answers.push_back(refused({code, std::move(text)})); };
        if (times[topic.name] > 1) {
            answer(ErrorCode::invalid_request, "Duplicate topic name.");
            continue;
        }
        if (topic.name == cluster_metadata_topic) {
            answer(ErrorCode::invalid_request, fmt::format("Creation of internal topic {} is prohibited.", cluster_metadata_topic));
            continue;
        }
        if (partitions > partitions_per_request_max) {
            answer(ErrorCode::policy_violation, "Excessively large number of partitions per request.");
            continue;
        }
        if (auto problem = topic_name_problem(topic.name)) {
            answer(ErrorCode::invalid_topic_exception, *std::move(problem));
            continue;
        }
        if (image.find(topic.name) != nullptr) {
            answer(ErrorCode::topic_already_exists, fmt::format("Topic '{}' already exists.", topic.name));
            continue;
        }
        const std::string form = collision_form(topic.name);
        if (const auto other = taken.find(form); other != taken.end()) {
            answer(ErrorCode::invalid_topic_exception, fmt::format("Topic '{}' collides with existing topic: {}", topic.name, other->second));
            continue;
        }
        ConfigMap overrides;
        if (auto wrong = read_configs(layers, topic, overrides); !wrong.ok()) {
            plan.answers.push_back(refused(std::move(wrong)));
            continue;
        }
        Layout layout = layout_of(context, layers, topic);
        if (!layout.outcome.ok()) {
            plan.answers.push_back(refused(std::move(layout.outcome)));
            continue;
        }

        taken.emplace(form, topic.name);
        CreatedTopic created;
        created.id = context.new_id();
        created.partitions = static_cast<std::int32_t>(layout.replicas.size());
        created.replication_factor = static_cast<std::int16_t>(layout.replicas.front().size());
        plan.records.emplace_back(protocol::TopicRecord{.name = topic.name, .topic_id = created.id});
        for (const auto& [key, value] : overrides) {
            plan.records.emplace_back(protocol::ConfigRecord{.resource_type = static_cast<std::int8_t>(ResourceType::topic), .resource_name = topic.name, .name = key, .value = value});
        }
        if (with_elr && overrides.contains("min.insync.replicas")) plan.records.emplace_back(protocol::ClearElrRecord{.topic_name = topic.name});
        for (std::int32_t number = 0; auto& replicas : layout.replicas) {
            plan.records.emplace_back(partition_record(created.id, number++, new_partition(std::move(replicas), directories.next()), image.metadata_version()));
        }
        plan.answers.push_back(std::move(created));
    }
    if (plan.records.size() > records_per_request_max) {
        plan.records.clear();
        for (CreatedTopic& answer : plan.answers) {
            if (answer.outcome.ok()) answer = refused({ErrorCode::policy_violation, std::string(too_many_records)});
        }
    }
    return plan;
}

Plan<DeletedTopic> plan_delete_topics(const ChangeContext& context, const std::vector<TopicToDelete>& topics) {
    // A topic that is asked for twice, once by name and once by id included, is deleted by nobody.
    std::map<std::string, int> names;
    std::map<Uuid, int> ids;
    for (const TopicToDelete& topic : topics) {
        if (topic.name && topic.id.is_zero()) ++names[*topic.name];
        if (!topic.name && !topic.id.is_zero()) ++ids[topic.id];
    }
    const auto also_by_id = [&](const std::string& name) {
        const Topic* found = context.image.find(name);
        return found != nullptr && ids.contains(found->id);
    };
    Plan<DeletedTopic> plan;
    for (const TopicToDelete& topic : topics) {
        DeletedTopic answer{.outcome = {}, .name = topic.name, .id = topic.id};
        const Topic* found = topic.name ? context.image.find(*topic.name) : context.image.find(topic.id);
        if (topic.name && !topic.id.is_zero()) {
            answer.outcome = refuse(ErrorCode::invalid_request, "You may not specify both topic name and topic id.");
        } else if (!topic.name && topic.id.is_zero()) {
            answer.outcome = refuse(ErrorCode::invalid_request, "Neither topic name nor id were specified.");
        } else if (topic.name && names[*topic.name] > 1) {
            answer.outcome = refuse(ErrorCode::invalid_request, "Duplicate topic name.");
        } else if (!topic.name && ids[topic.id] > 1) {
            answer.outcome = refuse(ErrorCode::invalid_request, "Duplicate topic id.");
        } else if (found == nullptr) {
            answer.outcome = topic.name ? refuse(ErrorCode::unknown_topic_or_partition, "This server does not host this topic-partition.")
                                        : refuse(ErrorCode::unknown_topic_id, "This server does not host this topic ID.");
        } else if (topic.name ? also_by_id(*topic.name) : names.contains(found->name)) {
            answer.name = found->name;
            answer.id = found->id;
            answer.outcome = refuse(ErrorCode::invalid_request, "The provided topic name maps to an ID that was already supplied.");
        } else {
            answer.name = found->name;
            answer.id = found->id;
            plan.records.emplace_back(protocol::RemoveTopicRecord{.topic_id = found->id});
        }
        plan.answers.push_back(std::move(answer));
    }
    return plan;
}

Plan<Outcome> plan_create_partitions(const ChangeContext& context, const std::vector<NewPartitions>& topics) {
    Plan<Outcome> plan;
    std::map<std::string_view, int> times;
    std::int64_t additional = 0;
    for (const NewPartitions& topic : topics) {
        ++times[topic.topic];
        if (const Topic* found = context.image.find(topic.topic)) additional += std::max<std::int64_t>(0, topic.count - static_cast<std::int64_t>(found->partitions.size()));
    }
    DirectoryChoice directories(context);
    for (const NewPartitions& topic : topics) {
        const auto answer = [&](Outcome outcome) { plan.answers.push_back(std::move(outcome)); };
        const Topic* found = context.image.find(topic.topic);
        if (times[topic.topic] > 1) {
            answer(refuse(ErrorCode::invalid_request, "Duplicate topic name."));
            continue;
        }
        if (additional > partitions_per_request_max) {
            answer(refuse(ErrorCode::policy_violation, "Excessively large number of additional partitions per request."));
            continue;
        }
        if (found == nullptr) {
            answer({ErrorCode::unknown_topic_or_partition, std::nullopt});
            continue;
        }
        const auto current = static_cast<std::int32_t>(found->partitions.size());
        if (topic.count == current) {
            answer(refuse(ErrorCode::invalid_partitions, fmt::format("Topic already has {} partition(s).", current)));
            continue;
        }
        if (topic.count < current) {
            answer(refuse(ErrorCode::invalid_partitions, fmt::format("The topic {} currently has {} partition(s); {} would not be an increase.", topic.topic, current, topic.count)));
            continue;
        }
        const auto added = static_cast<std::size_t>(topic.count - current);
        if (topic.assignments && topic.assignments->size() != added) {
            answer(refuse(ErrorCode::invalid_replica_assignment,
                          fmt::format("Attempted to add {} additional partition(s), but only {} assignment(s) were specified.", added, topic.assignments->size())));
            continue;
        }
        const std::size_t factor = found->partitions.empty() ? 1 : found->partitions.begin()->second.replicas.size();
        Outcome wrong;
        for (std::size_t i = 0; topic.assignments && wrong.ok() && i < added; ++i) wrong = check_assignment(context, (*topic.assignments)[i], factor);
        if (!wrong.ok()) {
            answer(std::move(wrong));
            continue;
        }
        for (std::size_t i = 0; i < added; ++i) {
            plan.records.emplace_back(partition_record(found->id, current + static_cast<std::int32_t>(i), new_partition({context.node_id}, directories.next()),
                                                       context.image.metadata_version()));
        }
        answer({});
    }
    if (plan.records.size() > records_per_request_max) {
        plan.records.clear();
        for (Outcome& answer : plan.answers) {
            if (answer.ok()) answer = refuse(ErrorCode::policy_violation, std::string(too_many_records));
        }
    }
    return plan;
}

std::optional<protocol::PartitionChangeRecord> plan_leadership(const Uuid& topic_id, std::int32_t number, const Partition& partition, std::int32_t node_id,
                                                               const Uuid& directory, std::int16_t metadata_version) {
    protocol::PartitionChangeRecord change{.partition_id = number, .topic_id = topic_id};
    const std::int16_t version = record_version(change, metadata_version);
    const std::vector<std::int32_t> alone{node_id};
    bool changed = false;
    if (partition.isr != alone) {
        change.isr = alone;
        changed = true;
    }
    if (partition.leader != node_id) {
        change.leader = node_id;
        changed = true;
    }
    if (partition.leader_recovery_state != 0) {
        change.leader_recovery_state = 0;
        changed = true;
    }
    if (version >= 1 && partition.directories != std::vector<Uuid>{directory}) {
        change.directories = std::vector<Uuid>{directory};
        changed = true;
    }
    if (version >= 2 && !partition.elr.empty()) {
        change.eligible_leader_replicas = std::vector<std::int32_t>{};
        changed = true;
    }
    if (version >= 2 && !partition.last_known_elr.empty()) {
        change.last_known_elr = std::vector<std::int32_t>{};
        changed = true;
    }
    if (!changed) return std::nullopt;
    return change;
}

}  // namespace tidemark::metadata
