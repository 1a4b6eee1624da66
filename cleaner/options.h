/// What the cleaner is told: broker-wide settings (cleaner 13) and the differences from Kafka 4.4 that its decisions take.
#pragma once

#include <cstdint>
#include <limits>

namespace tidemark::cleaner {

/// Each true is our side of docs/differences.md; parity tests turn all of them off.
struct Differences {
    bool idle_roll = true;                      ///< D1, log.roll.idle.enable
    bool deadline_schedule = true;              ///< D2, log.cleaner.schedule=deadline
    bool estimate_missing_timestamps = true;    ///< D3, log.cleaner.missing.timestamps=kip-354
    bool horizon_passes = true;                 ///< D5, log.cleaner.horizon.trigger.enable
    bool record_expiry = true;                  ///< D7, log.cleaner.record.expiry.enable
    bool output_overflow_continues = true;      ///< D16: an output segment that is full is followed by another
    bool retry_uncleanable = true;              ///< D11
    bool remove_failed_output = true;           ///< off: the files of a pass that failed stay until the next start

    static Differences none() { return {false, false, false, false, false, false, false, false}; }
    friend bool operator==(const Differences&, const Differences&) = default;
};

struct CleanerOptions {
    int threads = 1;                                                      ///< log.cleaner.threads
    std::int64_t dedupe_buffer_bytes = 134'217'728;                       ///< log.cleaner.dedupe.buffer.size, all threads together
    std::int64_t io_buffer_bytes = 524'288;                               ///< log.cleaner.io.buffer.size, all threads, read and write
    double dedupe_buffer_load = 0.9;                                      ///< log.cleaner.io.buffer.load.factor
    double io_bytes_per_second_max = std::numeric_limits<double>::max();  ///< log.cleaner.io.max.bytes.per.second
    std::int64_t backoff_ms = 15'000;                                     ///< log.cleaner.backoff.ms
    std::int64_t message_bytes_max = 1'048'588;                           ///< message.max.bytes, the broker's own
    Differences differences = {};

    friend bool operator==(const CleanerOptions&, const CleanerOptions&) = default;
};

}  // namespace tidemark::cleaner
