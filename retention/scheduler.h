/// Retention of all logs: asks policy.h for each, and acts.
///
/// Source: retention 1, 2; D6, D8, D23.
#pragma once

#include <array>
#include <functional>
#include <unordered_map>

#include "base/published.h"
#include "base/uuid.h"
#include "retention/apply.h"
#include "storage/log_manager.h"

namespace tidemark::retention {

/// Segments that went by one rule, since start.
struct Deleted {
    std::uint64_t segments = 0;
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
};

struct PartitionStats {
    TopicPartition partition;
    std::array<Deleted, rule_count> deleted{};       ///< by Rule
    std::size_t future_segments = 0;                 ///< hold up deletion by time (D8), at the last look
    std::size_t held_back = 0;                       ///< old enough, but behind a younger one
    std::optional<Timestamp> next_deletion;          ///< by retention.ms, if nothing is appended to the oldest segment
    std::int32_t size_percent = 0;                   ///< of retention.bytes, 0 when unlimited: Kafka's RetentionSizeInPercent
};

struct SchedulerStats {
    std::uint64_t runs = 0;
    double seconds = 0;                              ///< of all runs
    std::array<Deleted, rule_count> deleted{};
    std::vector<PartitionStats> partitions;          ///< by name
};

/// What retention would do to one log now, and to the rest of it later.
struct Plan {
    TopicPartition partition;
    storage::LogConfig config;                       ///< that was judged by
    LogState state;
    Decision decision;
    std::vector<Forecast> forecasts;
};
/// Nothing changes. A distrusted clock (D23) holds up what retention.ms would let go; the forecasts are those of a trusted one.
Result<Plan> plan(const storage::Log&, const storage::LogConfig&, Timestamp now, const Differences&, bool trusts_clock = true);

/// Life:    tick() as often as its owner likes: it looks at the clock itself. apply() at any time.
/// Threads: all members from any thread. Runs wait for each other, so that none judges what another is deleting.
class Scheduler {
public:
    /// Keeps the cleaner away from a log that is not compacted while retention is at work: a change of policy must not race
    /// (cleaner 3). False: somebody else is there, the log's turn comes at the next run.
    struct Guard {
        std::function<bool(const TopicPartition&)> pause_if_idle;
        std::function<void(const TopicPartition&)> resume;
    };
    using Observer = std::function<void(const SegmentReport&)>;
    using ClockTrust = std::function<bool()>;

    Scheduler(storage::LogManager&, const Clock&, RetentionOptions, Guard = {}, Observer = {}, ClockTrust = {});

    /// Runs retention over all logs without `compact` in their policy when it is due; true when it did.
    bool tick() EXCLUDES(run_mutex_, mutex_);
    /// The same at once.
    void run() EXCLUDES(run_mutex_, mutex_);
    /// One log, now: the cleaner's threads for compacted logs. True when segments went.
    Result<bool> apply(storage::Log&) EXCLUDES(mutex_);
    /// When tick() will run it next.
    Timestamp next_run() const EXCLUDES(mutex_);

    /// New differences; the interval is fixed at start, as in Kafka.
    void reconfigure(RetentionOptions) EXCLUDES(mutex_);
    SchedulerStats stats() const EXCLUDES(mutex_);

private:
    struct Notes {
        Uuid topic_id;                               // another topic of the name begins anew
        PartitionStats stats;
        std::optional<Offset> warned_about;          // base of the segment from the future (D8)
    };
    bool trusts_clock() const { return !clock_trust_ || clock_trust_(); }
    Notes& notes_of(const storage::Log&) REQUIRES(mutex_);
    void deleted(const storage::Log&, const SegmentReport&) EXCLUDES(mutex_);
    void note(const storage::Log&, const Applied&, const storage::LogConfig&) EXCLUDES(mutex_);
    static void warn_about_future(const storage::Log&, Offset base);
    std::chrono::milliseconds first_run() const;

    storage::LogManager& logs_;
    const Clock& clock_;
    const Guard guard_;
    const Observer observer_;
    const ClockTrust clock_trust_;
    Published<RetentionOptions> options_;
    const std::chrono::milliseconds started_;
    Mutex run_mutex_ ACQUIRED_BEFORE(mutex_);
    mutable Mutex mutex_;
    std::optional<std::chrono::milliseconds> next_run_ GUARDED_BY(mutex_);
    std::unordered_map<TopicPartition, Notes> notes_ GUARDED_BY(mutex_);
    SchedulerStats totals_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::retention
