/// The controller of a node that stands alone: the only writer of its metadata log (metadata-log 5.5).
///
///   TM_TRY(auto controller, LocalController::open(files, clock, options));   // reads; refuses what it must not touch
///   logs.load(…controller->image()…);
///   controller->assign_directories(…);                                       // where the logs were found
///   TM_TRYV(controller->start());                                            // from now on this node leads
///   applier.resume(controller->image());
///   controller->add_listener(&applier);
///   …
///   TM_TRY(const auto epoch, controller->stop());                            // for .kafka_cleanshutdown
#pragma once

#include <atomic>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/published.h"
#include "metadata/changes.h"
#include "metadata/controller.h"
#include "metadata/metadata_log.h"
#include "metadata/own_settings.h"

namespace tidemark::metadata {

struct LocalControllerOptions {
    std::int32_t node_id = 1;
    /// Sizes and times of the metadata log, and where it is; node_id and directory_id are filled from here.
    MetadataLogOptions log = {};
    /// Ids of this node's log directories (meta.properties); the one that holds the metadata log comes first.
    std::vector<Uuid> directory_ids = {};
    /// What clients are told to connect to: goes into the broker's registration.
    std::vector<BrokerRegistration::Endpoint> endpoints = {};
    std::optional<std::string> rack = {};
    /// The broker's file, under what the metadata log holds.
    ConfigMap file = {};
    /// Features that a new metadata log is formatted with.
    BootstrapRecords bootstrap = default_bootstrap();
};

/// From the broker's settings: metadata.log.*, metadata.max.*.
MetadataLogOptions metadata_log_options(const ConfigLayers&, io::Path directory);

/// Threads: all members from any thread, after start(). Changes exclude each other, and listeners hear of one before the
///          next begins; image() and quorum() wait for nobody.
class LocalController final : public Controller {
public:
    /// Formats a directory that has no metadata yet, reads the log, and refuses with a text that says why: partitions on
    /// other nodes, other voters, topic settings with values that are not valid, damage (MetadataLog::open).
    /// Nothing is written to a log that exists, except that an incomplete last batch is cut off.
    static Result<std::unique_ptr<LocalController>> open(io::FileSystem&, const Clock&, LocalControllerOptions);
    ~LocalController() override;

    /// Takes the lead: epoch, what a new log begins with, the broker's registration, leadership of all partitions.
    Result<> start();
    /// Marks the broker as stopped (fenced); returns its epoch. Nothing may be changed afterwards.
    Result<std::int64_t> stop();

    /// Told of every change from now on, those of start() included. Not owned.
    void add_listener(ImageListener*);
    /// Tells the directory that each log was found in, where the metadata says another one or none; before start().
    void assign_directories(const std::unordered_map<TopicPartition, Uuid>& found);
    /// An unclean stop lost records of these partitions: their leader epoch goes up, so that consumers notice (D10, B61).
    Result<> raise_leader_epochs(const std::vector<TopicPartition>&);

    /// Snapshots and retention of the metadata log by time: call it every few seconds.
    void tick();

    std::int64_t broker_epoch() const { return broker_epoch_.load(); }
    std::int64_t log_bytes() const;
    /// The broker's settings as they are now.
    ConfigLayers layers() const;
    /// The broker's file was read again.
    void set_file(ConfigMap);

    std::shared_ptr<const Image> image() const override;
    QuorumInfo quorum() const override;
    std::vector<CreatedTopic> create_topics(const std::vector<NewTopic>&, bool validate_only) override;
    std::vector<DeletedTopic> delete_topics(const std::vector<TopicToDelete>&) override;
    std::vector<Outcome> create_partitions(const std::vector<NewPartitions>&, bool validate_only) override;
    std::vector<Outcome> alter_configs(const std::vector<AlterConfigs>&, bool validate_only) override;
    std::vector<Outcome> update_features(const std::vector<FeatureUpdate>&, bool validate_only) override;
    Result<ProducerId> next_producer_id() override;

private:
    LocalController(io::FileSystem&, const Clock&, LocalControllerOptions, MetadataLog::Opened, OwnSettings);

    ChangeContext context(const Image&, const ConfigMap& file) const;
    /// Applies, writes, publishes, tells the listeners. On an error nothing has changed.
    Result<> commit(const std::vector<protocol::MetadataRecord>&) REQUIRES(mutex_);
    void publish(std::shared_ptr<const Image>) REQUIRES(mutex_);
    void snapshot_if_due() REQUIRES(mutex_);
    Result<> write_bootstrap() REQUIRES(mutex_);
    Result<> register_broker() REQUIRES(mutex_);
    Result<> lead_partitions() REQUIRES(mutex_);
    Result<> restore_own_settings() REQUIRES(mutex_);
    Uuid directory_of(const TopicPartition&, const Partition&) REQUIRES(mutex_);
    template <class Answer>
    std::vector<Answer> carry_out(Plan<Answer> plan, bool validate_only) REQUIRES(mutex_);

    io::FileSystem& files_;
    const Clock& clock_;
    const LocalControllerOptions options_;

    mutable Mutex mutex_;                                 // one change at a time; never taken by image()
    std::unique_ptr<MetadataLog> log_ GUARDED_BY(mutex_);
    bool log_in_transaction_ GUARDED_BY(mutex_) = false;
    BootstrapRecords bootstrap_ GUARDED_BY(mutex_);
    OwnSettings own_settings_ GUARDED_BY(mutex_);         // as the file has them
    bool own_settings_restored_ GUARDED_BY(mutex_) = false;   // until then the file may know more than the log
    std::vector<ImageListener*> listeners_ GUARDED_BY(mutex_);
    std::unordered_map<TopicPartition, Uuid> found_directories_ GUARDED_BY(mutex_);
    std::optional<Timestamp> last_clean_up_ GUARDED_BY(mutex_);
    bool started_ GUARDED_BY(mutex_) = false;
    bool stopped_ GUARDED_BY(mutex_) = false;
    Published<Image> image_;
    Published<ConfigMap> file_;                           // of the options, until it is read again
    std::atomic<std::int64_t> broker_epoch_{-1};
    std::atomic<LeaderEpoch> epoch_{0};
    std::atomic<std::int64_t> end_offset_{0};

    Mutex producer_ids_mutex_ ACQUIRED_BEFORE(mutex_);
    ProducerId next_producer_id_ GUARDED_BY(producer_ids_mutex_) = 0;
    ProducerId producer_ids_end_ GUARDED_BY(producer_ids_mutex_) = 0;   // the block is used up when they are equal
};

}  // namespace tidemark::metadata
