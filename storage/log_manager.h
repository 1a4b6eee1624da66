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

/// A log that is to be made.
struct NewLog {
    TopicPartition partition;
    Uuid topic_id;
    std::shared_ptr<const LogConfig> config;
    std::optional<Uuid> directory_id = {};        ///< nothing for the one with the fewest logs
};

/// A log on its way to another directory.
struct MoveStats {
    TopicPartition partition;
    io::Path to;                                  ///< the log directory
    std::int64_t bytes = 0;                       ///< there already
    std::int64_t offset_lag = 0;                  ///< of the copy behind the high watermark
};

enum class Repair : std::uint8_t;
struct RepairResult;

struct LogDirStats {
    io::Path path;
    Uuid directory_id;
    bool offline = false;
    std::int64_t total_bytes = 0, usable_bytes = 0;
    std::uint64_t syncs = 0, sync_failures = 0;
    double sync_seconds = 0;
    std::uint64_t indexes_rebuilt = 0;
    std::size_t logs = 0, loading = 0;
};

/// What load() found, for a log line and the metrics.
struct LoadReport {
    std::size_t logs = 0;
    std::size_t strays = 0;
    std::size_t failed = 0;                       ///< cannot be served; the reasons are in the log
    std::int64_t segments_recovered = 0;
    std::int64_t truncated_bytes = 0;
    std::int64_t record_bytes_read = 0;
    std::vector<TopicPartition> lost_records = {};   ///< an unclean stop may have taken some (D10): their leader epoch goes up
};

/// Order of life: open() locks the directories and reads meta.properties and checkpoints; load() opens every log (in
/// parallel); start() begins the periodic work; close() writes the clean marker, in reverse.
/// Threads: all members from any thread after load().
/// Errors:  one directory that fails leaves the others serving; a log that cannot be opened leaves the others, too, and its
///          name is refused by create() with Errc::storage_offline.
class LogManager {
public:
    ~LogManager();

    struct Identity {
        std::string cluster_id;
        std::int32_t node_id = 1;
    };
    /// Locks and reads the directories, making those that are missing. One without meta.properties is formatted with the
    /// cluster id that is expected, else with that of the others, else with a new one. Refuses what does not fit together
    /// (other node or cluster id, a lock held by another process, a duplicate directory): the text says what to do.
    static Result<std::unique_ptr<LogManager>> open(io::FileSystem&, const Clock&, StorageOptions, Identity expected);
    Result<LoadReport> load(const LogConfigLookup&);
    /// Checkpoints, flushing, delayed deletes and producer expiry by their intervals, on threads of its own.
    void start();
    /// What start()'s threads do, once, for tests with a manual clock: whatever is due.
    void tick();
    /// Flushes and closes every log, writes the checkpoints and `.kafka_cleanshutdown` with `broker_epoch`.
    Result<> close(std::int64_t broker_epoch);

    const Identity& identity() const;
    /// True when every directory had its clean marker at open().
    bool was_clean() const;
    /// Of the clean markers, when all agree.
    std::optional<std::int64_t> previous_broker_epoch() const;
    std::vector<LogDirStats> directories() const;
    io::Path metadata_directory() const;          ///< the first log directory
    /// The directory behind metadata_directory(), for a log that load() passes over (`__cluster_metadata-0`): open_log() with it.
    LogDirectory& metadata_log_directory() const;

    /// Told of every log, present and to come. Outlives the manager, or is reset to nullptr before it goes.
    void set_observer(LogObserver*);

    std::shared_ptr<Log> find(const TopicPartition&) const;
    std::vector<std::shared_ptr<Log>> logs() const;
    /// Creates the directories with partition.metadata, durable when this returns; gives the existing log where there is one
    /// with the same id. In the order of `wanted`, whose partitions differ. What move() was asked for before goes first.
    std::vector<Result<std::shared_ptr<Log>>> create(const std::vector<NewLog>& wanted);
    Result<std::shared_ptr<Log>> create(const TopicPartition&, Uuid topic_id, std::shared_ptr<const LogConfig>, std::optional<Uuid> directory_id = {});
    /// Renames the directories to `-delete`; their files go after the broker's delay. Each its own result, in their order; what
    /// is written once for all in a log directory (names, checkpoints) is.
    std::vector<Result<>> remove(const std::vector<TopicPartition>&);
    Result<> remove(const TopicPartition&);

    /// Moves it to another log directory while it is used (log_move.h), in the background, one after the other; a crash or a
    /// stop does not end it. Asking again for another directory calls the first off, so does asking for the one it is in.
    /// Errc::not_found: no such log, yet: create() will put it there (until the next start); Errc::invalid_argument: no such
    /// directory.
    Result<> move(const TopicPartition&, const io::Path& log_dir);
    std::vector<MoveStats> moves() const;

    /// D21: decides what becomes of a damaged log, which is closed for it and opened again. Errc::not_found; Errc::
    /// invalid_argument when it is not damaged.
    Result<RepairResult> repair(const TopicPartition&, Repair);

    /// The cleaner's checkpoints, one file per directory: first dirty offset per partition (cleaner 11).
    Result<std::unordered_map<TopicPartition, Offset>> read_cleaner_checkpoints() const;
    Result<> write_cleaner_checkpoint(const TopicPartition&, std::optional<Offset> first_dirty);

    /// Writes recovery points, log starts and high watermarks now, where they changed.
    Result<> write_checkpoints();

private:
    struct State;
    explicit LogManager(std::unique_ptr<State>);
    const std::unique_ptr<State> state_;
};

}  // namespace tidemark::storage
