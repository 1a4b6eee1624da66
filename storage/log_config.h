/// What a topic's settings mean to its logs, in numbers. Keys, defaults and ranges: append-and-read 12, retention 5,
/// cleaner 13; metadata/ fills it from the broker's defaults and the topic's overrides.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "record/batch.h"

namespace tidemark::storage {

inline constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

/// Codec that a topic's batches are stored in; nothing means "producer": as they come.
struct CompressionPolicy {
    std::optional<record::Codec> codec;
    int gzip_level = -1;
    int lz4_level = 9;
    int zstd_level = 3;

    friend bool operator==(const CompressionPolicy&, const CompressionPolicy&) = default;
};

/// Values of one log at one time; a log holds the current one as shared_ptr<const LogConfig> and takes a new one whole.
struct LogConfig {
    // Segments.
    std::int64_t segment_bytes = std::int64_t{1} << 30;
    std::int64_t segment_ms = 604'800'000;
    std::int64_t segment_jitter_ms = 0;
    std::int64_t segment_index_bytes = 10'485'760;
    std::int64_t index_interval_bytes = 4096;
    bool preallocate = false;
    std::int64_t file_delete_delay_ms = 60'000;
    // Flushing beyond what `durability` does.
    std::int64_t flush_messages = unlimited;
    std::int64_t flush_ms = unlimited;
    // What appends are held to.
    std::int64_t max_message_bytes = 1'048'588;
    std::int32_t max_decompressed_message_bytes = 2'147'483'639;
    CompressionPolicy compression = {};
    record::TimestampType timestamp_type = record::TimestampType::create_time;
    std::int64_t timestamp_before_max_ms = unlimited;
    std::int64_t timestamp_after_max_ms = 3'600'000;
    // cleanup.policy.
    bool compacts = false;
    bool deletes = true;
    // Retention; nothing means unlimited (-1 of Kafka's).
    std::optional<std::int64_t> retention_ms = 604'800'000;
    std::optional<std::int64_t> retention_bytes = {};
    std::optional<Timestamp> retention_min_timestamp = {};     ///< KIP-47, log.retention.mintimestamp
    // Compaction.
    double min_cleanable_dirty_ratio = 0.5;
    std::int64_t min_compaction_lag_ms = 0;
    std::int64_t max_compaction_lag_ms = unlimited;            ///< KIP-354
    std::int64_t delete_retention_ms = 86'400'000;

    friend bool operator==(const LogConfig&, const LogConfig&) = default;
};

}  // namespace tidemark::storage
