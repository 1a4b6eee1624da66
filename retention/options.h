/// What retention is told: broker-wide settings (retention 5) and the differences from Kafka 4.4 that its decisions take.
#pragma once

#include <cstdint>

namespace tidemark::retention {

struct Differences {
    bool min_timestamp = true;                        ///< D6: log.retention.mintimestamp; off: the value is ignored
    bool min_timestamp_uses_file_time = false;        ///< D6: log.retention.mintimestamp.fallback=file-time
    bool future_timestamps_use_file_time = false;     ///< D8: log.retention.future.timestamps=file-time
    bool distrust_clock_jumps = true;                 ///< D23

    static Differences none() { return {false, false, false, false}; }
    friend bool operator==(const Differences&, const Differences&) = default;
};

struct RetentionOptions {
    std::int64_t check_interval_ms = 300'000;         ///< log.retention.check.interval.ms
    std::int64_t initial_delay_ms = 30'000;           ///< log.initial.task.delay.ms
    std::int64_t clock_jump_max_ms = 3'600'000;       ///< log.clock.jump.max.ms (D23)
    std::int64_t clock_jump_grace_ms = 600'000;       ///< log.clock.jump.grace.ms (D23)
    Differences differences = {};

    friend bool operator==(const RetentionOptions&, const RetentionOptions&) = default;
};

}  // namespace tidemark::retention
