/// From a Log to the plain values that the policy looks at, and from its decision to deleted segments.
#pragma once

#include "retention/policy.h"
#include "storage/log.h"

namespace tidemark::retention {

/// What policy.h looks at, of one log. Largest timestamps are read only for policies with `delete`.
Result<LogState> read_log_state(const storage::Log&);

/// What retention did to one log: the log as it was judged, and what went of it.
struct Applied {
    LogState state;
    Decision decision;
};
/// Judges and deletes, one call of Log::delete_oldest_segments() per rule that fired; an active segment that goes is sealed
/// and judged again first. `trusts_clock` false (D23): only rules that do not ask what time it is.
Result<Applied> apply_retention(storage::Log&, Timestamp now, const Differences&, bool trusts_clock = true);

/// The decision alone, with what a distrusted clock leaves of the rules.
Decision decide_trusting(const LogState&, const storage::LogConfig&, Timestamp now, const Differences&, bool trusts_clock);

}  // namespace tidemark::retention
