/// Makes the logs be what the metadata image says: creates and removes them, hands out settings, starts leader epochs.
///
///   ImageApplier applier{logs, node_id, file_config};
///   logs.load(applier.lookup(image));      // every directory found, with its topic's settings
///   applier.resume(*image);                // what a stop left undone
///   …                                      // and from then on it is the controller's listener
#pragma once

#include <functional>
#include <memory>

#include "metadata/controller.h"
#include "storage/log_manager.h"

namespace tidemark::daemon {

/// Threads: image_changed() one call at a time (the Controller's promise), never beside lookup()'s result or resume().
/// Errors:  what cannot be done for one partition is logged, and tried again at the next start; the others go on.
class ImageApplier final : public metadata::ImageListener {
public:
    /// Before a log's directory goes away, so that whoever works on it (the cleaner) lets go.
    using BeforeRemoval = std::function<void(const TopicPartition&)>;

    /// `file_config`: what the broker's configuration file says, the layer below what the image holds.
    ImageApplier(storage::LogManager&, std::int32_t node_id, metadata::ConfigMap file_config, BeforeRemoval = {});

    /// For LogManager::load(): settings of what belongs here; nothing for a directory whose topic was deleted or made anew
    /// under another id, or whose partition is on another node.
    storage::LogConfigLookup lookup(std::shared_ptr<const metadata::Image>) const;
    /// After load(): creates the logs of partitions that have none and starts each partition's leader epoch.
    void resume(const metadata::Image&);

    void image_changed(const metadata::ImagePtr& before, const metadata::ImagePtr& after) override;

    /// The configuration file was read again: every log gets its settings anew. Never beside image_changed().
    void set_file_config(metadata::ConfigMap, const metadata::Image&);

private:
    using Topics = std::vector<const metadata::Topic*>;
    void remove_gone(const metadata::Image& before, const metadata::Image& after);
    void create_missing(const metadata::Image& before, const metadata::Image& after);
    void update_configs(const metadata::Image& before, const metadata::Image& after);
    void update_config(const metadata::Image&, const metadata::Topic&);
    void ensure_logs(const metadata::Image&, const Topics&);
    void lead(const TopicPartition&, LeaderEpoch);
    std::shared_ptr<const storage::LogConfig> config_of(const metadata::Image&, const std::string& topic) const;
    bool is_here(const metadata::Partition&) const;

    storage::LogManager& logs_;
    const std::int32_t node_id_;
    metadata::ConfigMap file_config_;
    const BeforeRemoval before_removal_;
};

}  // namespace tidemark::daemon
