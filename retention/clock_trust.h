/// D23: whether the wall clock may be believed for what cannot be undone: deletion by time, delete horizons.
///
/// The highest wall clock seen is kept in a small file. The clock is distrusted when it is behind that at start (it was
/// wrong before, or is now), and when it runs ahead of CLOCK_BOOTTIME by more than log.clock.jump.max.ms while running.
/// Trust returns when an operator confirms the time, or after log.clock.jump.grace.ms during which nobody objected.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "io/file_system.h"
#include "retention/options.h"

namespace tidemark::retention {

/// The decision, over plain values.
class ClockJudge {
public:
    ClockJudge(std::int64_t jump_max_ms, std::int64_t grace_ms) : jump_max_ms_(jump_max_ms), grace_ms_(grace_ms) {}

    /// At start. `highest`: the latest time that an earlier run saw.
    void start(Timestamp now, std::chrono::milliseconds since_boot, std::optional<Timestamp> highest);
    /// From time to time while running.
    void look(Timestamp now, std::chrono::milliseconds since_boot);
    void confirm();

    bool trusted() const { return !distrusted_since_; }
    /// Why it is not; empty when it is.
    const std::string& reason() const { return reason_; }
    /// What is to be remembered: grows only while the clock is trusted.
    Timestamp highest() const { return highest_; }
    std::uint64_t jumps() const { return jumps_; }

private:
    void distrust(std::chrono::milliseconds since_boot, std::string reason);

    const std::int64_t jump_max_ms_;
    const std::int64_t grace_ms_;
    Timestamp last_{};
    std::chrono::milliseconds last_boot_{};
    Timestamp highest_{};
    std::optional<std::chrono::milliseconds> distrusted_since_;
    std::string reason_;
    std::uint64_t jumps_ = 0;
};

/// Keeps the judge's memory in `<directory>/tidemark-clock` and logs its changes of mind.
///
/// Threads: all members from any thread.
class ClockTrust {
public:
    ClockTrust(io::FileSystem&, io::Path directory, const Clock&, const RetentionOptions&);

    /// Reads the file and looks for the first time. A file that cannot be read counts as none, with a warning.
    void start() EXCLUDES(mutex_);
    /// Looks again; writes the file once in a minute.
    void tick() EXCLUDES(mutex_);
    /// The operator says that the time is right.
    void confirm() EXCLUDES(mutex_);
    bool trusted() const EXCLUDES(mutex_);

    struct Stats {
        bool trusted = true;
        std::string reason;
        std::uint64_t jumps = 0;
    };
    Stats stats() const EXCLUDES(mutex_);

private:
    void save() REQUIRES(mutex_);
    void log_change(bool before) const REQUIRES(mutex_);

    io::FileSystem& files_;
    const io::Path path_;
    const Clock& clock_;
    const bool enabled_;
    mutable Mutex mutex_;
    ClockJudge judge_ GUARDED_BY(mutex_);
    std::optional<std::chrono::milliseconds> saved_at_ GUARDED_BY(mutex_);
};

}  // namespace tidemark::retention
