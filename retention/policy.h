/// Which segments leave the front of a log, and by which rule: a pure function over plain values. The scheduler and the
/// cleaner's threads act on it, `tidemark plan` prints it.
///
/// The rules are asked in this order, each on the segments that the ones before it left: log start offset, size, time,
/// minimum timestamp (KIP-47). Each takes segments from the front, stops at the first that stays, and takes nothing that
/// reaches beyond the high watermark. Source: retention 2 to 6; D6, D8.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "retention/options.h"
#include "storage/log_config.h"

namespace tidemark::retention {

struct SegmentState {
    Offset base_offset{};
    std::int64_t bytes = 0;
    std::optional<Timestamp> modified;                  ///< file time of the .log, where it was read
    std::optional<Timestamp> largest_record_timestamp;  ///< nothing: no batch in it carries one
    /// Its time index is missing and being rebuilt (D9): what time it holds is not known, so no rule of time takes it.
    bool timestamps_unknown = false;

    /// KIP-33's: of the records, else of the file.
    std::optional<Timestamp> largest_timestamp() const { return largest_record_timestamp ? largest_record_timestamp : modified; }
};

/// One log at one moment; `segments` is oldest first, the active one last, never empty.
struct LogState {
    Offset log_start_offset{};
    Offset high_watermark{};
    Offset log_end_offset{};
    std::vector<SegmentState> segments;
};

enum class Rule : std::uint8_t { log_start_offset, retention_bytes, retention_ms, min_timestamp };
inline constexpr std::size_t rule_count = 4;
/// The setting that the rule comes from, "log start offset" for the first.
const char* to_string(Rule) noexcept;

/// Why one segment goes.
struct Deletion {
    std::size_t segment = 0;                            ///< index in LogState::segments
    Rule rule = Rule::log_start_offset;
    std::int64_t limit = 0;                             ///< log start offset, bytes, milliseconds or timestamp of the rule
    std::int64_t value = 0;                             ///< what was compared: next base, bytes that would stay, timestamp
    bool by_file_time = false;                          ///< the timestamp compared is the file's
    /// "retention.ms 604800000 exceeded: largest timestamp 1700000000000 (file time)".
    std::string text() const;
};

struct Decision {
    std::vector<Deletion> deletions;                    ///< a prefix of the segments, in order
    /// Closed segments whose largest timestamp is ahead of the clock: they hold up deletion by time (D8).
    std::vector<std::size_t> future;
    /// Segments old enough for a rule of time that stay because an older neighbour does.
    std::size_t held_back = 0;
    /// When the oldest segment that stays becomes old enough for retention.ms, if nothing is appended to it.
    std::optional<Timestamp> next_deletion;
};

Decision decide(const LogState&, const storage::LogConfig&, Timestamp now, const Differences&);

/// When a segment that stays will be let go by retention.ms, if nothing is appended to it and no setting changes. The other
/// rules wait for what a client or an operator does, not for a time.
struct Forecast {
    std::size_t segment = 0;
    std::optional<Timestamp> expires;                   ///< when it is old enough itself; nothing: never
    std::optional<Timestamp> goes;                      ///< and all older ones are as well: later behind a younger neighbour
};
/// For all that `decision` leaves, but for an empty active segment.
std::vector<Forecast> forecast(const LogState&, const Decision& decision, const storage::LogConfig&, Timestamp now, const Differences&);

}  // namespace tidemark::retention
