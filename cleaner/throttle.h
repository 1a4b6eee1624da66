/// Keeps all cleaner threads together below log.cleaner.io.max.bytes.per.second.
///
/// Source: cleaner 8. Kafka sleeps with the throttle's lock held, so that all threads stall; here each caller is told until
/// when to wait, and the next ones later times, which comes to the same rate.
#pragma once

#include <chrono>
#include <limits>

#include "base/clock.h"
#include "base/mutex.h"

namespace tidemark::cleaner {

/// Threads: all members from any thread.
class Throttle {
public:
    explicit Throttle(const Clock& clock, double bytes_per_second_max = std::numeric_limits<double>::max()) : clock_(clock), rate_(bytes_per_second_max) {}

    /// Those who wait at the old rate are not called; whoever asks next is judged by the new one alone.
    void set_rate(double bytes_per_second_max) EXCLUDES(mutex_);
    /// Counts bytes that were read or written. When (Clock::since_boot) the caller may go on.
    std::chrono::milliseconds note(std::int64_t bytes) EXCLUDES(mutex_);
    std::uint64_t bytes_total() const EXCLUDES(mutex_);

private:
    static constexpr std::int64_t check_interval_ms = 300;

    const Clock& clock_;
    mutable Mutex mutex_;
    double rate_ GUARDED_BY(mutex_);
    std::chrono::milliseconds period_start_ GUARDED_BY(mutex_){-1};
    double period_bytes_ GUARDED_BY(mutex_) = 0;
    std::chrono::milliseconds resume_ GUARDED_BY(mutex_){0};
    std::uint64_t total_ GUARDED_BY(mutex_) = 0;
};

}  // namespace tidemark::cleaner
