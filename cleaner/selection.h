/// Which log is cleaned next, from where to where, and why: pure functions over plain values. The cleaner's threads act on
/// them, `tidemark plan` prints them.
///
///      [ clean ............ ][ dirty, cleanable ........ ][ dirty, held ........ ][ active ]
///      log start      first dirty               first uncleanable
///
/// Source: cleaner 2, KIP-58, KIP-354; D1 to D5 of docs/differences.md.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cleaner/options.h"
#include "record/batch.h"
#include "storage/log_config.h"

namespace tidemark::cleaner {

/// One segment as the cleaner sees it.
struct SegmentState {
    Offset base_offset{};
    std::int64_t bytes = 0;
    Timestamp modified{};                               ///< file time of the .log
    std::optional<Timestamp> largest_record_timestamp;  ///< nothing: no batch in it carries one
    std::optional<Timestamp> first_batch_timestamp;     ///< largest timestamp of its first batch, when > 0
    std::optional<Timestamp> first_append;              ///< by the wall clock, when known
    /// Earliest delete horizon of a batch that still holds a tombstone or a marker (KIP-534), when known and present.
    std::optional<Timestamp> earliest_horizon;

    /// What age rules compare: the file time stands in where no record has a timestamp (KIP-33).
    Timestamp largest_timestamp() const { return largest_record_timestamp.value_or(modified); }
};

/// One compacted log at one moment. `segments` is oldest first, the active one last, never empty. first_batch_timestamp
/// and first_append matter from the segment that holds the first dirty offset on.
struct LogState {
    Offset log_start_offset{};
    Offset last_stable_offset{};
    Offset log_end_offset{};
    std::optional<Offset> checkpoint;                   ///< first dirty offset as it is stored
    std::vector<SegmentState> segments;
    std::optional<record::Codec> codec;                 ///< of most of its bytes, as far as known
    std::optional<Timestamp> last_horizon_pass;         ///< D5
};

/// What keeps the cleaner from going further up.
enum class HeldBy : std::uint8_t { active_segment, open_transaction, min_compaction_lag };
const char* to_string(HeldBy) noexcept;

/// What is to be known about cleaning one log. Numbers are Kafka's where it has them (cleaner 2.1 to 2.3).
struct CleaningDecision {
    Offset first_dirty{};
    Offset first_uncleanable{};                         ///< of the rules; may lie inside a segment
    Offset cleanable_end{};                             ///< base of the segment that holds it: where a pass ends
    HeldBy held_by = HeldBy::active_segment;
    /// The stored checkpoint lies outside the log: this goes into its place at once, whether or not the log is cleaned.
    std::optional<Offset> repaired_checkpoint;
    bool repair_is_unexpected = false;                  ///< worth a warning: retention alone does not explain it

    std::int64_t clean_bytes = 0;
    std::int64_t cleanable_bytes = 0;
    std::int64_t total_bytes() const { return clean_bytes + cleanable_bytes; }
    /// NaN for an empty log, as in Kafka.
    double ratio() const { return static_cast<double>(cleanable_bytes) / static_cast<double>(total_bytes()); }

    /// Per dirty segment below the active one, in order: when its oldest record is taken to have come (KIP-354, D3).
    std::vector<std::optional<Timestamp>> estimates;
    std::optional<Timestamp> earliest_uncompacted;      ///< of all those
    std::optional<Timestamp> earliest_cleanable;        ///< of those below cleanable_end
    /// When the earliest cleanable record's lag is over; nothing without a finite lag or without such a record.
    std::optional<Timestamp> deadline;
    /// When the earliest held record's lag is over, if that is before `deadline` or there is none: reported, not scheduled.
    std::optional<Timestamp> held_deadline;
    std::int64_t delay_ms = 0;                          ///< now beyond earliest_uncompacted plus the lag, 0 in time (KIP-354)
    std::int64_t overdue_ms = 0;                        ///< the same from `deadline`

    bool must_clean = false;                            ///< delay_ms > 0 and there are cleanable bytes
    bool above_ratio = false;
    std::optional<Timestamp> horizon_due;               ///< D5: the expired horizon that asks for a horizon pass
};

CleaningDecision decide(const LogState&, const storage::LogConfig&, Timestamp now, std::int64_t backoff_ms, const Differences&);

/// How many input bytes a pass gets through per second, per codec: what a deadline is started ahead by (D2).
struct CleaningSpeed {
    /// A careful guess for one slow core, until something was measured.
    std::array<double, 5> bytes_per_second = {100e6, 20e6, 50e6, 50e6, 30e6};

    /// The mean moves a quarter of the way to what a pass of at least 1 MiB measured.
    void measured(record::Codec, std::int64_t bytes, double seconds);
    std::int64_t milliseconds_for(std::int64_t bytes, std::optional<record::Codec>) const;
};

enum class Why : std::uint8_t { overdue, deadline_near, dirty_ratio, horizon, erasure };
const char* to_string(Why) noexcept;

/// A log that may be chosen: policy contains compact, nobody works on it, not uncleanable.
struct Candidate {
    const CleaningDecision* decision = nullptr;
    std::optional<record::Codec> codec;
};

struct Selected {
    std::size_t index = 0;                              ///< among the candidates
    Why why = Why::dirty_ratio;
    bool is_horizon_pass() const { return why == Why::horizon; }
};

/// D2: overdue logs first, most overdue first; then those whose deadline is nearer than their cleaning takes; then by dirty
/// ratio; horizon passes last, longest expired first. Without D2: by dirty ratio among the eligible (cleaner 2, step 7).
std::optional<Selected> select_next(std::span<const Candidate>, const CleaningSpeed&, Timestamp now, const Differences&);
/// The same order, all of them: what `tidemark plan` shows.
std::vector<Selected> schedule(std::span<const Candidate>, const CleaningSpeed&, Timestamp now, const Differences&);

/// D4: the two gauges of KIP-354, over all compacted logs, those in progress and uncleanable included; a held log counts.
struct LagGauges {
    std::int64_t logs_delayed = 0;                      ///< num-logs-compacted-by-max-compaction-lag
    std::int64_t max_delay_ms = 0;                      ///< max-delay-after-max-compaction-lag
    void add(const CleaningDecision& d) {
        if (d.delay_ms > 0) ++logs_delayed;
        if (d.delay_ms > max_delay_ms) max_delay_ms = d.delay_ms;
    }
};

enum class IdleRoll : std::uint8_t { none, segment_ms, max_compaction_lag };
const char* to_string(IdleRoll) noexcept;

/// D1: whether the active segment, the last of `segments`, is rolled without an append. `last_lag_roll`: when the lag's
/// rule last rolled this log; it does so at most once per lag. `jitter_ms`: of this segment, as in the append rule.
IdleRoll decide_idle_roll(std::span<const SegmentState> segments, Offset first_dirty, const storage::LogConfig&,
                          std::optional<Timestamp> last_lag_roll, std::int64_t jitter_ms, Timestamp now, const Differences&);

}  // namespace tidemark::cleaner
