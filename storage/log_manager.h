/// The log directories and the logs in them: open, create, delete, checkpoint, lock (log-directory 1, 3, 5, 7).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "storage/log.h"

namespace tidemark::storage {

/// What metadata says of a directory that was found: its settings, or nothing when it is not ours (then it becomes -stray).
struct FoundLog {
    TopicPartition partition;
    std::optional<Uuid> topic_id;                 ///< of partition.metadata, if it is there
};
using LogConfigLookup = std::function<std::shared_ptr<const LogConfig>(const FoundLog&)>;

struct LogDirStats {
    io::Path path;
    Uuid directory_id;
    bool offline = false;
    std::int64_t total_bytes = 0, usable_bytes = 0;
    std::uint64_t syncs = 0, sync_failures = 0;
    double sync_seconds = 0;
    std::size_t logs = 0, loading = 0;
};

/// Order of life: open() locks the directories and reads meta.properties and checkpoints; load() opens every log (in
/// parallel); start() begins the periodic work; close() writes the clean marker, in reverse.
/// Threads: all members from any thread after load().
class LogManager {
public:
    virtual ~LogManager();

    struct Identity {
        std::string cluster_id;
        std::int32_t node_id = 1;
    };
    /// Formats directories that have no meta.properties when `format_as` is given; refuses what does not fit together
    /// (other node or cluster id, a lock held by another process, a duplicate directory): the text says what to do.
    static Result<std::unique_ptr<LogManager>> open(io::FileSystem&, const Clock&, StorageOptions, Identity expected);
    Result<> load(const LogConfigLookup&);
    /// Checkpoints, flushing, delayed deletes and producer expiry by their intervals, on threads of its own.
    void start();
    /// What start()'s threads do, once, for tests with a manual clock.
    void tick();
    /// Flushes and closes every log, writes the checkpoints and `.kafka_cleanshutdown` with `broker_epoch`.
    Result<> close(std::int64_t broker_epoch);

    const Identity& identity() const;
    /// True when every directory had its clean marker at open().
    bool was_clean() const;
    std::vector<LogDirStats> directories() const;
    io::Path metadata_directory() const;          ///< the first log directory

    void set_observer(LogObserver*);

    std::shared_ptr<Log> find(const TopicPartition&) const;
    std::vector<std::shared_ptr<Log>> logs() const;
    /// Creates the directory with partition.metadata, durable when this returns; returns the existing one when it is there
    /// with the same id. `directory_id`: nothing for the one with the fewest logs.
    Result<std::shared_ptr<Log>> create(const TopicPartition&, Uuid topic_id, std::shared_ptr<const LogConfig>, std::optional<Uuid> directory_id = {});
    /// Renames the directory to `-delete`; its files go after the broker's delay.
    Result<> remove(const TopicPartition&);

    /// The cleaner's checkpoints, one file per directory: first dirty offset per partition (cleaner 11).
    Result<std::unordered_map<TopicPartition, Offset>> read_cleaner_checkpoints() const;
    Result<> write_cleaner_checkpoint(const TopicPartition&, std::optional<Offset> first_dirty);
};

}  // namespace tidemark::storage
