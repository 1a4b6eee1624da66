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

namespace {

/// Old versions of Kafka left directories without it; newer ones would set such a one aside.
void ensure_topic_id(const storage::Log& log, const Uuid& topic_id) {
    if (!log.topic_id().is_zero()) return;
    const auto path = io::join(log.directory(), storage::file_name::partition_metadata);
    if (const auto written = storage::write_partition_metadata(log.log_dir().files(), path, topic_id); !written) {
        log_error("[{}] its topic id cannot be written: {}", log.partition(), written.error().message());
    }
}

}  // namespace

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
    Topics all;
    for (const auto& [name, topic] : image.topics) all.push_back(topic.get());
    ensure_logs(image, all);
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
    Topics changed;
    for (const auto& [name, topic] : after.topics) {
        // Shared between images as long as nothing changes.
        if (before.find(name) != topic.get()) changed.push_back(topic.get());
    }
    ensure_logs(after, changed);
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

/// All that are missing at once, so that they share their syncs.
void ImageApplier::ensure_logs(const Image& image, const Topics& topics) {
    std::vector<storage::NewLog> missing;
    for (const auto* topic : topics) {
        std::shared_ptr<const storage::LogConfig> config;
        for (const auto& [index, partition] : topic->partitions) {
            if (!is_here(partition)) continue;
            if (const auto log = logs_.find({topic->name, index})) {
                ensure_topic_id(*log, topic->id);
                continue;
            }
            if (!config) config = config_of(image, topic->name);
            missing.push_back({.partition = {topic->name, index}, .topic_id = topic->id, .config = config, .directory_id = metadata::assigned_directory(partition, node_id_)});
        }
    }
    const auto created = logs_.create(missing);
    for (std::size_t i = 0; i < missing.size(); ++i) {
        if (!created[i]) log_error("[{}] cannot be created: {}", missing[i].partition, created[i].error().message());
    }
    for (const auto* topic : topics) {
        for (const auto& [index, partition] : topic->partitions) {
            if (is_here(partition) && partition.leader == node_id_) lead({topic->name, index}, partition.leader_epoch);
        }
    }
}

void ImageApplier::lead(const TopicPartition& partition, LeaderEpoch epoch) {
    const auto log = logs_.find(partition);
    if (!log) return;   // it could not be created
    if (const auto assigned = log->assign_epoch(epoch); !assigned) log_error("[{}] leader epoch {} cannot be started: {}", partition, epoch, assigned.error().message());
}

}  // namespace tidemark::daemon
