#include "daemon/apply_image.h"

#include <algorithm>

#include "base/log.h"
#include "metadata/effective_config.h"
#include "metadata/placement.h"
#include "storage/checkpoint.h"
#include "storage/directory_names.h"
#include "storage/log.h"
#include "storage/log_directory.h"

namespace tidemark::daemon {

using metadata::ConfigResource;
using metadata::Image;
using metadata::ResourceType;

ImageApplier::ImageApplier(storage::LogManager& logs, std::int32_t node_id, metadata::ConfigMap file_config, BeforeRemoval before_removal)
    : logs_(logs), node_id_(node_id), file_config_(std::move(file_config)), before_removal_(std::move(before_removal)) {}

bool ImageApplier::is_here(const metadata::Partition& partition) const {
    return std::ranges::find(partition.replicas, node_id_) != partition.replicas.end();
}

std::shared_ptr<const storage::LogConfig> ImageApplier::config_of(const Image& image, const std::string& topic) const {
    const auto layers = metadata::config_layers(image, node_id_, file_config_);
    return std::make_shared<const storage::LogConfig>(metadata::log_config(layers, image.overrides(ResourceType::topic, topic)));
}

storage::LogConfigLookup ImageApplier::lookup(std::shared_ptr<const Image> image) const {
    return [this, image = std::move(image)](const storage::FoundLog& found) -> std::shared_ptr<const storage::LogConfig> {
        const auto placement = metadata::place(*image, node_id_, found.partition, found.topic_id);
        if (placement.verdict != metadata::Placement::Verdict::stray) return config_of(*image, found.partition.topic);
        log_warning("[{}] {}", found.partition, placement.reason);
        return nullptr;
    };
}

void ImageApplier::resume(const Image& image) {
    for (const auto& [name, topic] : image.topics) {
        const auto config = config_of(image, name);
        for (const auto& [index, partition] : topic->partitions) ensure_log(*topic, index, partition, config);
    }
}

void ImageApplier::image_changed(const metadata::ImagePtr& before, const metadata::ImagePtr& after) {
    remove_gone(*before, *after);
    update_configs(*before, *after);
    create_missing(*before, *after);
}

/// A topic that was deleted and made anew in one step has another id, so its old logs go first.
void ImageApplier::remove_gone(const Image& before, const Image& after) {
    std::vector<TopicPartition> all_gone;
    for (const auto& [name, topic] : before.topics) {
        const auto* now = after.find(name);
        if (now == topic.get()) continue;
        const bool is_gone = !now || now->id != topic->id;
        for (const auto& [index, partition] : topic->partitions) {
            const TopicPartition gone{name, index};
            const auto* still = is_gone ? nullptr : after.find(gone);
            if (!is_here(partition) || (still && is_here(*still))) continue;
            if (before_removal_) before_removal_(gone);
            all_gone.push_back(gone);
        }
    }
    const auto results = logs_.remove(all_gone);
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i] || results[i].error().code == Errc::not_found) continue;
        log_error("[{}] its directory cannot be removed: {}", all_gone[i], results[i].error().message());
    }
}

void ImageApplier::create_missing(const Image& before, const Image& after) {
    for (const auto& [name, topic] : after.topics) {
        const auto* was = before.find(name);
        if (was == topic.get()) continue;   // shared between images as long as nothing changes
        const auto config = config_of(after, name);
        for (const auto& [index, partition] : topic->partitions) ensure_log(*topic, index, partition, config);
    }
}

void ImageApplier::update_configs(const Image& before, const Image& after) {
    // The broker's own settings are every topic's defaults.
    const auto changed = [&](const ConfigResource& resource) { return before.overrides(resource.type, resource.name) != after.overrides(resource.type, resource.name); };
    const bool all = changed({ResourceType::broker, ""}) || changed({ResourceType::broker, std::to_string(node_id_)});
    for (const auto& [name, topic] : after.topics) {
        const auto* was = before.find(name);
        if (!was || was->id != topic->id || !(all || changed({ResourceType::topic, name}))) continue;
        update_config(after, *topic);
    }
}

void ImageApplier::update_config(const Image& image, const metadata::Topic& topic) {
    const auto config = config_of(image, topic.name);
    for (const auto& [index, partition] : topic.partitions) {
        if (const auto log = logs_.find({topic.name, index})) log->set_config(config);
    }
}

void ImageApplier::set_file_config(metadata::ConfigMap file_config, const Image& image) {
    file_config_ = std::move(file_config);
    for (const auto& [name, topic] : image.topics) update_config(image, *topic);
}

void ImageApplier::ensure_log(const metadata::Topic& topic, std::int32_t index, const metadata::Partition& partition, const std::shared_ptr<const storage::LogConfig>& config) {
    if (!is_here(partition)) return;
    const TopicPartition name{topic.name, index};
    auto log = logs_.find(name);
    if (!log) {
        auto created = logs_.create(name, topic.id, config, metadata::assigned_directory(partition, node_id_));
        if (!created) return log_error("[{}] cannot be created: {}", name, created.error().message());
        log = *std::move(created);
    } else if (log->topic_id().is_zero()) {
        // As old versions of Kafka left it; newer ones would set such a directory aside.
        const auto path = io::join(log->directory(), storage::file_name::partition_metadata);
        if (const auto written = storage::write_partition_metadata(log->log_dir().files(), path, topic.id); !written) {
            log_error("[{}] its topic id cannot be written: {}", name, written.error().message());
        }
    }
    if (partition.leader != node_id_) return;
    if (const auto assigned = log->assign_epoch(partition.leader_epoch); !assigned) {
        log_error("[{}] leader epoch {} cannot be started: {}", name, partition.leader_epoch, assigned.error().message());
    }
}

}  // namespace tidemark::daemon
