#include "metadata/image.h"

#include <algorithm>

namespace tidemark::metadata {

std::int16_t Image::metadata_version() const { return feature("metadata.version"); }

std::int16_t Image::feature(std::string_view name) const {
    const auto found = features.find(std::string(name));
    return found == features.end() ? std::int16_t{0} : found->second;
}

const Topic* Image::find(std::string_view name) const {
    const auto found = topics.find(std::string(name));
    return found == topics.end() ? nullptr : found->second.get();
}

const Topic* Image::find(const Uuid& id) const {
    const auto found = topics_by_id.find(id);
    return found == topics_by_id.end() ? nullptr : found->second.get();
}

const Partition* Image::find(const TopicPartition& partition) const {
    const Topic* topic = find(partition.topic);
    if (topic == nullptr) return nullptr;
    const auto found = topic->partitions.find(partition.partition);
    return found == topic->partitions.end() ? nullptr : &found->second;
}

const ConfigMap& Image::overrides(ResourceType type, const std::string& name) const {
    static const ConfigMap none;
    const auto found = configs.find({type, name});
    return found == configs.end() ? none : found->second;
}

bool Image::same_content(const Image& other) const {
    const auto same_topic = [](const auto& a, const auto& b) { return a.first == b.first && *a.second == *b.second; };
    return features == other.features && std::ranges::equal(topics, other.topics, same_topic) && topics_by_id.size() == other.topics_by_id.size() &&
           configs == other.configs && brokers == other.brokers && next_producer_id == other.next_producer_id && *kept == *other.kept;
}

}  // namespace tidemark::metadata
