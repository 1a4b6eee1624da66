/// What storage is told at start, for all logs. The switches are those of docs/differences.md: each true is our side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file_system.h"

namespace tidemark::storage {

/// D10: which answers wait for the disk.
enum class Durability : std::uint8_t { page_cache, acks_all, always };

/// Differences from Kafka 4.4 that decisions in this folder take; parity tests turn all of them off.
struct Differences {
    bool rebuild_missing_time_index = true;     ///< D9
    bool check_indexes_on_open = true;          ///< D13
    bool roll_for_rejected_appends = false;     ///< D15: Kafka's side is true
    bool keep_damaged_tail = true;              ///< D21; off is log.recovery.damaged=truncate
    bool trust_missing_snapshots = false;       ///< D22: Kafka's side is true
    bool exact_lookup = true;                   ///< D24, log.lookup.exact
    bool recall_batches = true;                 ///< D28: all five after a crash

    static Differences none() { return {false, false, true, false, true, false, false}; }
};

struct StorageOptions {
    std::vector<io::Path> log_dirs = {};
    Durability durability = Durability::acks_all;
    Differences differences = {};
    int recovery_threads_per_dir = 2;                         ///< num.recovery.threads.per.data.dir
    std::int64_t recovery_point_interval_ms = 60'000;         ///< log.flush.offset.checkpoint.interval.ms
    std::int64_t log_start_interval_ms = 60'000;              ///< log.flush.start.offset.checkpoint.interval.ms
    std::int64_t high_watermark_interval_ms = 5'000;          ///< replica.high.watermark.checkpoint.interval.ms
    std::int64_t flush_scheduler_interval_ms = unlimited_ms;  ///< log.flush.scheduler.interval.ms
    std::int64_t initial_task_delay_ms = 30'000;              ///< log.initial.task.delay.ms
    std::int64_t partition_delete_delay_ms = 60'000;          ///< log.segment.delete.delay.ms, the broker's own
    std::int64_t producer_expiration_ms = 86'400'000;         ///< producer.id.expiration.ms
    std::int64_t producer_expiration_check_ms = 600'000;      ///< producer.id.expiration.check.interval.ms
    std::int64_t transaction_max_timeout_ms = 900'000;        ///< transaction.max.timeout.ms
    std::int64_t reserve_bytes = 1 << 20;                     ///< D12: the file given up when the disk is full

    static constexpr std::int64_t unlimited_ms = 9'223'372'036'854'775'807;
};

}  // namespace tidemark::storage
