/// The cleaner's threads: choose a log, clean it, delete old segments of compacted logs, wait; and all that others need to
/// know of it.
///
/// Source: cleaner 1, 3, 9 to 12; D1, D4, D5, D11 of docs/differences.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/published.h"
#include "cleaner/cleaning.h"
#include "cleaner/partition_states.h"
#include "cleaner/selection.h"
#include "storage/log_manager.h"

namespace tidemark::cleaner {

/// One finished pass, for metrics, the JSON API and the audit trail.
struct PassReport {
    TopicPartition partition;
    Why why = Why::dirty_ratio;
    bool requested = false;                        ///< by `tidemark clean`
    Offset first_dirty{};
    std::optional<Timestamp> deadline;
    Timestamp began{};
    PassStats stats;
};

/// Why a partition is not cleaned any more, and when it is tried again (D11).
struct Uncleanable {
    std::string reason;
    Timestamp since{};
    int failures = 1;
    std::int64_t retry_in_ms = 0;
};

/// How far the pass at work is; an estimate, since what it drops is not read a second time everywhere.
struct PassProgress {
    std::int64_t bytes_read = 0;                   ///< by both walks
    std::int64_t bytes_total = 0;
};

/// One compacted partition as the last round saw it.
struct PartitionStats {
    TopicPartition partition;
    CleaningDecision decision;                     ///< without the estimates
    std::optional<WorkState> state;
    std::optional<Uncleanable> uncleanable;
    std::optional<PassReport> last_pass;
    std::optional<PassProgress> progress;          ///< while one is at work
    std::uint64_t requests_done = 0;               ///< the last of request()'s numbers that was dealt with
    std::string request_result;                    ///< of that one: "cleaned", "nothing to clean", or why it failed
};

struct PoolStats {
    // Kafka's, group kafka.log, types LogCleaner and LogCleanerManager; no threads: 0.
    std::int32_t max_buffer_utilization_percent = 0;
    std::int32_t cleaner_recopy_percent = 0;
    std::int32_t max_clean_time_secs = 0;
    std::int32_t max_compaction_delay_secs = 0;
    std::int32_t dead_threads = 0;
    std::int32_t max_dirty_percent = 0;
    std::int64_t time_since_last_run_ms = 0;
    struct Directory {
        io::Path path;
        std::int64_t uncleanable_partitions = 0;
        std::int64_t uncleanable_bytes = 0;
    };
    std::vector<Directory> directories;

    LagGauges lag;                                 ///< KIP-354's two, of the last round (D4)

    // Since start.
    std::uint64_t io_bytes = 0;                    ///< read and written: Kafka's cleaner-io meter
    std::uint64_t passes = 0, horizon_passes = 0, failed_passes = 0, aborted_passes = 0, idle_rolls = 0, revived_threads = 0;
    std::uint64_t bytes_read = 0, bytes_written = 0, records_superseded = 0, records_expired = 0, records_without_key = 0, tombstones_removed = 0,
                  markers_removed = 0;
    double seconds = 0;

    std::vector<PartitionStats> partitions;        ///< every compacted one, by name
};

/// What becomes next, and why: a line of `tidemark plan`.
struct PlannedPass {
    TopicPartition partition;
    CleaningDecision decision;
    std::optional<Why> why;                        ///< nothing: not eligible now
    IdleRoll idle_roll = IdleRoll::none;
    std::optional<WorkState> state;
    std::optional<Uncleanable> uncleanable;
};

/// Life:    start() after all logs are loaded; stop() before they are closed. Without start(), run_once() does one thread's
///          round: tests with a manual clock, and the tool on a directory at rest.
/// Threads: all members from any thread, start and stop by the owner. abort_and_pause() waits for a pass to notice.
class CleanerPool {
public:
    /// Applies retention to one compacted log; true when segments went. retention/ provides it, cmd/ hands it in.
    using Retention = std::function<Result<bool>(storage::Log&)>;
    /// Told of each pass that ended well, on the cleaner's thread.
    using Observer = std::function<void(const PassReport&)>;
    /// D23: false while deletion by time is to wait.
    using ClockTrust = std::function<bool()>;

    CleanerPool(storage::LogManager&, const Clock&, CleanerOptions, Retention, Observer = {}, ClockTrust = {});
    ~CleanerPool();

    void start();
    void stop();
    /// Takes new settings: passes in flight stop without result, the threads begin anew.
    void reconfigure(CleanerOptions) EXCLUDES(mutex_);
    std::shared_ptr<const CleanerOptions> options() const { return options_.get(); }

    /// What one round did.
    struct Round {
        std::optional<TopicPartition> cleaned;     ///< a pass ended well
        std::size_t rolled = 0;                    ///< idle active segments (D1)
        std::size_t deletions = 0;                 ///< compacted logs whose retention took something
    };
    Round run_once();

    // --- for those who change logs -----------------------------------------------------------------------------------

    /// Nobody cleans or deletes in the partition until resume(). Before truncation, removal, a move.
    Result<> abort_and_pause(const TopicPartition& p) { return states_.abort_and_pause(p); }
    Result<> resume(const TopicPartition& p) { return states_.resume(p); }
    /// Stops a pass that is on its way: the policy lost `compact`.
    Result<> abort(const TopicPartition&);
    /// Retention's, for logs that are not compacted.
    bool pause_if_idle(const TopicPartition& p) { return states_.pause_if_idle(p); }
    /// The log was cut: the first dirty offset does not lie above its end.
    Result<> truncated(const TopicPartition&, Offset end);
    /// It is gone, with its checkpoint: its marks go too. The partition is paused by the caller.
    void removed(const TopicPartition&) EXCLUDES(mutex_);

    /// Cleans it at the next round whatever the dirty ratio; a failure before does not count. First, and also when it is not
    /// compacted, what DeleteRecords has left below the log's start goes from the segment that holds it, unless that is the
    /// active one. The number of the request: PartitionStats::requests_done reaches it when it was dealt with.
    std::uint64_t request(const TopicPartition&) EXCLUDES(mutex_);

    PoolStats stats() const EXCLUDES(mutex_);
    std::optional<PartitionStats> partition(const TopicPartition&) const EXCLUDES(mutex_);
    /// Decides anew for all compacted logs, in the order of the schedule, those that are not eligible last.
    std::vector<PlannedPass> plan() const EXCLUDES(mutex_);

private:
    using LogPointer = std::shared_ptr<storage::Log>;

    /// What the pool remembers of a partition between rounds.
    struct Notes {
        CleaningDecision decision;
        bool decided = false;
        std::optional<record::Codec> codec;
        std::optional<Timestamp> last_horizon_pass, last_lag_roll;
        std::optional<PassReport> last_pass;
        std::optional<Uncleanable> uncleanable;
        std::chrono::milliseconds retry_at{};
        std::shared_ptr<const storage::LogConfig> failed_with;      // a change of settings is worth another try
        int failures = 0;
        bool requested = false;
        bool erasure_is_due = false;                                // the request's first part; the other begins when it is done
        bool erased = false;
        std::uint64_t requests = 0, requests_done = 0;
        std::string request_result;
        std::optional<PassProgress> progress;
    };
    /// What Kafka's gauges take the maximum or sum of, per thread.
    struct ThreadNotes {
        std::int64_t bytes_read = 0, bytes_written = 0;
        double utilization = 0, seconds = 0;
        std::int64_t max_delay_ms = 0;
        bool dead = false;
    };
    struct Chosen {
        LogPointer log;
        CleaningDecision decision;
        Why why = Why::dirty_ratio;
        bool requested = false;
        std::uint64_t request = 0;                 // its number
    };

    void thread_main(const std::stop_token&, std::size_t index);
    void start_threads();
    void stop_threads();
    Round round(Workspace&, std::size_t thread, const std::stop_token&);
    std::size_t roll_idle() EXCLUDES(mutex_);
    std::optional<Chosen> choose(std::size_t thread) EXCLUDES(mutex_);
    std::optional<Chosen> choose_erasure() EXCLUDES(mutex_);
    void finish_request(Notes&, std::uint64_t number, std::string result) REQUIRES(mutex_);
    CleaningDecision decide_and_repair(storage::Log&, const LogState&, const storage::LogConfig&, Timestamp now);
    bool clean(const Chosen&, Workspace&, std::size_t thread, const std::stop_token&) EXCLUDES(mutex_);
    void note_success(const Chosen&, const PassReport&, std::size_t thread) EXCLUDES(mutex_);
    void note_failure(storage::Log&, Error, Why) EXCLUDES(mutex_);
    void note_undecided(storage::Log&, Error) EXCLUDES(mutex_);
    bool waits_for_retry(const Notes&, const std::shared_ptr<const storage::LogConfig>&) const REQUIRES(mutex_);
    void note_progress(const TopicPartition&, std::int64_t bytes) EXCLUDES(mutex_);
    std::size_t delete_old_segments() EXCLUDES(mutex_);
    void scan_horizons(const std::stop_token&);
    void forget_gone_partitions() EXCLUDES(mutex_);
    std::vector<LogPointer> compacted_logs() const;
    Workspace make_workspace() const;
    std::unordered_map<TopicPartition, Offset> checkpoints() const;
    LogState with_notes(LogState, const Notes*) const;
    bool trusts_clock() const { return !clock_trust_ || clock_trust_(); }
    static PartitionStats stats_of(const TopicPartition&, const Notes&, std::optional<WorkState>);

    storage::LogManager& logs_;
    const Clock& clock_;
    const Retention retention_;
    const Observer observer_;
    const ClockTrust clock_trust_;
    const HashKey hash_key_ = HashKey::random();
    Published<CleanerOptions> options_;
    Throttle throttle_;
    PartitionStates states_;

    Mutex selection_mutex_;                        // one thread chooses at a time; before mutex_
    mutable Mutex mutex_;
    std::unordered_map<TopicPartition, Notes> notes_ GUARDED_BY(mutex_);
    std::vector<ThreadNotes> thread_notes_ GUARDED_BY(mutex_);
    CleaningSpeed speed_ GUARDED_BY(mutex_);
    LagGauges lag_ GUARDED_BY(mutex_);
    double dirtiest_ratio_ GUARDED_BY(mutex_) = 0;
    std::optional<Timestamp> last_run_ GUARDED_BY(mutex_);
    std::optional<std::chrono::milliseconds> last_idle_check_ GUARDED_BY(mutex_);
    PoolStats totals_ GUARDED_BY(mutex_);          // its counters only

    std::unique_ptr<Workspace> own_workspace_;     // run_once()'s
    std::mutex wake_mutex_;
    std::condition_variable_any wake_;
    std::uint64_t wake_count_ = 0;                 // under wake_mutex_
    std::vector<std::jthread> threads_;            // the owner's
    bool started_ = false;
};

}  // namespace tidemark::cleaner
