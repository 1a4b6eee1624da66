#include "cleaner/throttle.h"

#include <algorithm>
#include <cmath>

namespace tidemark::cleaner {

void Throttle::set_rate(double bytes_per_second_max) {
    MutexLock lock(mutex_);
    if (rate_ == bytes_per_second_max) return;
    rate_ = bytes_per_second_max;
    // What is owed was reckoned at the old rate.
    period_start_ = std::chrono::milliseconds{-1};
    period_bytes_ = 0;
    resume_ = std::chrono::milliseconds{0};
}

std::chrono::milliseconds Throttle::note(std::int64_t bytes) {
    const auto now = clock_.since_boot();
    MutexLock lock(mutex_);
    total_ += static_cast<std::uint64_t>(bytes);
    if (period_start_.count() < 0) period_start_ = now;
    period_bytes_ += static_cast<double>(bytes);
    const auto elapsed = (now - period_start_).count();
    if (elapsed > check_interval_ms) {
        // What these bytes may take at the rate, less what they took.
        const auto owed = period_bytes_ / (rate_ / 1000) - static_cast<double>(elapsed);
        if (owed >= 1) {
            const std::chrono::milliseconds wait{static_cast<std::int64_t>(std::min(std::round(owed), 3.6e6))};
            resume_ = std::max(resume_, now) + wait;
        }
        period_start_ = std::max(resume_, now);
        period_bytes_ = 0;
    }
    return resume_;
}

std::uint64_t Throttle::bytes_total() const {
    MutexLock lock(mutex_);
    return total_;
}

}  // namespace tidemark::cleaner
