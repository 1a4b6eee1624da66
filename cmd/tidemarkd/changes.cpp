#include "cmd/tidemarkd/changes.h"

#include "base/log.h"

namespace tidemark {
namespace {

bool same_broker_overrides(const metadata::Image& a, const metadata::Image& b, std::int32_t node_id) {
    using enum metadata::ResourceType;
    return a.overrides(broker, "") == b.overrides(broker, "") && a.overrides(broker, std::to_string(node_id)) == b.overrides(broker, std::to_string(node_id));
}

}  // namespace

Changes::Changes(storage::LogManager& logs, std::int32_t node_id, metadata::ConfigMap file)
    : logs_(logs), node_id_(node_id), file_(file), applier_(logs, node_id, std::move(file), [this](const TopicPartition& partition) { pause_cleaning(partition); }) {}

void Changes::attach(Rooms rooms) {
    MutexLock lock(mutex_);
    rooms_ = rooms;
}

void Changes::image_changed(const metadata::ImagePtr& before, const metadata::ImagePtr& after) {
    MutexLock lock(mutex_);
    const auto were_compacted = before->configs == after->configs ? std::vector<TopicPartition>{} : compacted();
    applier_.image_changed(before, after);
    forget_removed();
    stop_cleaning_of_no_longer_compacted(were_compacted);
    if (!same_broker_overrides(*before, *after, node_id_)) reconfigure(*after);
    if (rooms_.server != nullptr) rooms_.server->image_changed(after);
}

/// The applier's call, in the middle of image_changed().
void Changes::pause_cleaning(const TopicPartition& partition) {
    if (rooms_.cleaner == nullptr) return;
    if (const auto result = rooms_.cleaner->abort_and_pause(partition); !result) return log_warning("[{}] its cleaning could not be stopped: {}", partition, result.error().message());
    removed_.push_back(partition);
}

void Changes::forget_removed() {
    for (const auto& partition : removed_) {
        rooms_.cleaner->removed(partition);
        if (const auto result = rooms_.cleaner->resume(partition); !result) log_warning("[{}] the cleaner keeps a mark: {}", partition, result.error().message());
    }
    removed_.clear();
}

std::vector<TopicPartition> Changes::compacted() const {
    std::vector<TopicPartition> all;
    for (const auto& log : logs_.logs())
        if (log->config()->compacts) all.push_back(log->partition());
    return all;
}

/// A topic that lost `compact` must not be rewritten by a pass that began before (cleaner 13).
void Changes::stop_cleaning_of_no_longer_compacted(const std::vector<TopicPartition>& were_compacted) {
    for (const auto& partition : were_compacted) {
        const auto log = logs_.find(partition);
        if (rooms_.cleaner == nullptr || !log || log->config()->compacts) continue;
        if (const auto result = rooms_.cleaner->abort(partition); !result) log_warning("[{}] its cleaning could not be stopped: {}", partition, result.error().message());
    }
}

void Changes::set_file(metadata::ConfigMap file, const metadata::Image& image) {
    MutexLock lock(mutex_);
    file_ = std::move(file);
    applier_.set_file_config(file_, image);
    if (rooms_.server != nullptr) rooms_.server->set_file_config(file_);
    reconfigure(image);
}

metadata::ConfigMap Changes::file() const {
    MutexLock lock(mutex_);
    return file_;
}

void Changes::reconfigure(const metadata::Image& image) {
    const auto layers = metadata::config_layers(image, node_id_, file_);
    if (rooms_.cleaner != nullptr) {
        const auto options = config::cleaner_options(layers);
        if (options != *rooms_.cleaner->options()) rooms_.cleaner->reconfigure(options);
    }
    if (rooms_.retention != nullptr) rooms_.retention->reconfigure(config::retention_options(layers));
    if (rooms_.server != nullptr) rooms_.server->set_options(config::daemon_options(layers));
}

}  // namespace tidemark
