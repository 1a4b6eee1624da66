/// What follows from a change of metadata: logs come and go (daemon/apply_image.h), the cleaner lets go of what leaves, and
/// every room gets its new settings.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "cleaner/cleaner_pool.h"
#include "config/config.h"
#include "daemon/apply_image.h"
#include "daemon/server.h"
#include "retention/scheduler.h"

namespace tidemark {

/// Life:    made before the controller, which it is the listener of; attach() when the rooms are there, detach() before
///          they go.
/// Threads: all members from any thread; one change after the other.
class Changes final : public metadata::ImageListener {
public:
    Changes(storage::LogManager& logs, std::int32_t node_id, metadata::ConfigMap file);

    daemon::ImageApplier& applier() { return applier_; }

    struct Rooms {
        cleaner::CleanerPool* cleaner = nullptr;
        retention::Scheduler* retention = nullptr;
        daemon::Server* server = nullptr;
    };
    void attach(Rooms) EXCLUDES(mutex_);
    void detach() EXCLUDES(mutex_) { attach({}); }

    void image_changed(const metadata::ImagePtr& before, const metadata::ImagePtr& after) override EXCLUDES(mutex_);
    /// The file was read again: its settings go below what `image` holds.
    void set_file(metadata::ConfigMap file, const metadata::Image& image) EXCLUDES(mutex_);
    metadata::ConfigMap file() const EXCLUDES(mutex_);

private:
    void reconfigure(const metadata::Image&) REQUIRES(mutex_);
    void pause_cleaning(const TopicPartition&) NO_THREAD_SAFETY_ANALYSIS;
    void forget_removed() REQUIRES(mutex_);
    std::vector<TopicPartition> compacted() const;
    void stop_cleaning_of_no_longer_compacted(const std::vector<TopicPartition>&) REQUIRES(mutex_);

    storage::LogManager& logs_;
    const std::int32_t node_id_;
    mutable Mutex mutex_;
    metadata::ConfigMap file_ GUARDED_BY(mutex_);
    std::vector<TopicPartition> removed_ GUARDED_BY(mutex_);      // paused, on their way out
    Rooms rooms_ GUARDED_BY(mutex_);
    daemon::ImageApplier applier_;             // called under the mutex, once changes may come
};

}  // namespace tidemark
