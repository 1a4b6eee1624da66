#include "metadata/placement.h"

#include <algorithm>

#include <fmt/format.h>

namespace tidemark::metadata {
namespace {

/// Ids that stand for no directory: migrating, unassigned, lost.
bool is_reserved(const Uuid& id) { return id == Uuid::of(0) || id == Uuid::of(1) || id == Uuid::of(2); }

Placement stray(std::string reason) { return {.verdict = Placement::Verdict::stray, .reason = std::move(reason)}; }

}  // namespace

std::optional<Uuid> assigned_directory(const Partition& partition, std::int32_t node_id) {
    const auto replica = std::ranges::find(partition.replicas, node_id);
    if (replica == partition.replicas.end()) return std::nullopt;
    const auto index = static_cast<std::size_t>(replica - partition.replicas.begin());
    if (index >= partition.directories.size() || is_reserved(partition.directories[index])) return std::nullopt;
    return partition.directories[index];
}

Placement place(const Image& image, std::int32_t node_id, const TopicPartition& found, const std::optional<Uuid>& topic_id) {
    const bool has_id = topic_id && !topic_id->is_zero();
    const Topic* topic = image.find(found.topic);
    if (topic == nullptr) return stray(fmt::format("there is no topic {}", found.topic));
    if (has_id && *topic_id != topic->id) return stray(fmt::format("its topic id is {}, that of the topic is {}", topic_id->text(), topic->id.text()));
    const auto partition = topic->partitions.find(found.partition);
    if (partition == topic->partitions.end()) return stray(fmt::format("the topic has {} partitions", topic->partitions.size()));
    if (std::ranges::find(partition->second.replicas, node_id) == partition->second.replicas.end()) return stray(fmt::format("the partition is not on node {}", node_id));
    return {.verdict = has_id ? Placement::Verdict::ours : Placement::Verdict::adopt, .reason = {}, .directory = assigned_directory(partition->second, node_id)};
}

}  // namespace tidemark::metadata
