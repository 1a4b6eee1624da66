/// Makes the logs be what the metadata image says: creates and removes them, hands out settings, starts leader epochs.
///
///   ImageApplier applier{logs, node_id, to_log_config};
///   logs.load(applier.lookup(image));      // every directory found, with its topic's settings
///   applier.resume(image);                 // what a stop left undone
///   controller.set_listener(&applier);     // and from then on, change by change
#pragma once

#include <functional>
#include <memory>

#include "metadata/controller.h"
#include "storage/log_manager.h"

namespace tidemark::daemon {

/// Threads: image_changed() one call at a time (the Controller's promise), and never beside lookup()'s result or resume().
/// Errors:  what cannot be done for one partition is logged and tried again at the next start; the others go on.
class ImageApplier final : public metadata::ImageListener {
public:
    /// A topic's settings as its logs understand them: the broker's defaults under the topic's overrides.
    using ToLogConfig = std::function<std::shared_ptr<const storage::LogConfig>(const metadata::Image&, const std::string& topic)>;
    /// Before a log's directory goes away, so that whoever works on it (the cleaner) lets go. May be empty.
    using BeforeRemoval = std::function<void(const TopicPartition&)>;

    ImageApplier(storage::LogManager&, std::int32_t node_id, ToLogConfig, BeforeRemoval = {});

    /// For LogManager::load(): settings of what belongs here; nothing for a directory whose topic was deleted or made anew
    /// under another id, or whose partition is on another node.
    storage::LogConfigLookup lookup(std::shared_ptr<const metadata::Image>) const;
    /// After load(): creates the directories of partitions that have none and starts each partition's leader epoch.
    void resume(const metadata::Image&);

    void image_changed(const metadata::Image& before, const metadata::Image& after) override;

    /// Every log's settings made anew: after the broker's own defaults have changed.
    void broker_defaults_changed(const metadata::Image&);

private:
    void create(const metadata::Image&, const metadata::Topic&, std::int32_t partition);
    void remove(const TopicPartition&);

    storage::LogManager& logs_;
    const std::int32_t node_id_;
    const ToLogConfig to_log_config_;
    const BeforeRemoval before_removal_;
};

}  // namespace tidemark::daemon
