#include "metrics/storage_metrics.h"

namespace tidemark::metrics {
namespace {

Labels labels_of(const TopicPartition& partition) {
    return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

}  // namespace

FamilyList families_of(const std::vector<PartitionLogStats>& logs, const Cardinality& cardinality) {
    FamilyList families;
    std::int64_t bytes = 0;
    std::size_t segments = 0;
    for (const auto& log : logs) {
        bytes += log.stats.bytes;
        segments += log.stats.segments;
    }
    add_gauge(families, "tidemark_partitions", "Partitions with a log here. Kafka: kafka.server:type=ReplicaManager,name=PartitionCount", logs.size());
    add_gauge(families, "tidemark_logs_size_bytes", "Bytes of all logs' segments, without indexes.", bytes);
    add_gauge(families, "tidemark_logs_segments", "Segments of all logs.", segments);
    const bool shown = cardinality.shows(logs.size());
    add_gauge(families, "tidemark_metrics_partitions_hidden", "Partitions without series of their own (metrics.per.partition.enable, metrics.partitions.max).", shown ? 0 : logs.size());
    if (!shown) return families;

    auto start = gauge("tidemark_log_start_offset", "First offset that can be read. Kafka: kafka.log:type=Log,name=LogStartOffset");
    auto end = gauge("tidemark_log_end_offset", "Offset of the next record. Kafka: kafka.log:type=Log,name=LogEndOffset");
    auto high_watermark = gauge("tidemark_log_high_watermark_offset", "Consumers see records below it.");
    auto last_stable = gauge("tidemark_log_last_stable_offset", "read_committed consumers see records below it. Kafka: kafka.cluster:type=Partition,name=LastStableOffsetLag is its distance to the high watermark");
    auto recovery = gauge("tidemark_log_recovery_point_offset", "Everything below it is known to be on disk.");
    auto size = gauge("tidemark_log_size_bytes", "Bytes of the segments, without indexes. Kafka: kafka.log:type=Log,name=Size");
    auto segment_count = gauge("tidemark_log_segments", "Segments. Kafka: kafka.log:type=Log,name=NumLogSegments");
    auto oldest = gauge("tidemark_log_oldest_timestamp_seconds", "Timestamp of the first batch that is still there, since the epoch; known from the first look of retention on.");
    auto newest = gauge("tidemark_log_newest_timestamp_seconds", "Largest timestamp of a record, since the epoch.");
    auto producers = gauge("tidemark_log_producers", "Producers whose sequence numbers are remembered. Kafka: kafka.server:type=ReplicaManager,name=ProducerIdCount");
    auto appended_bytes = counter("tidemark_log_appended_bytes_total", "Bytes appended since the log was opened.");
    auto appended_records = counter("tidemark_log_appended_records_total", "Records appended since the log was opened.");
    auto appended_batches = counter("tidemark_log_appended_batches_total", "Batches appended since the log was opened.");
    auto expired = counter("tidemark_log_expired_records_total", "Records appended since the log was opened that were older than retention.ms when they came: timestamps in seconds, or data of long ago.");
    for (const auto& [partition, stats] : logs) {
        const auto labels = labels_of(partition);
        start.add(labels, stats.log_start_offset.value);
        end.add(labels, stats.log_end_offset.value);
        high_watermark.add(labels, stats.high_watermark.value);
        last_stable.add(labels, stats.last_stable_offset.value);
        recovery.add(labels, stats.recovery_point.value);
        size.add(labels, stats.bytes);
        segment_count.add(labels, stats.segments);
        if (stats.oldest_timestamp) oldest.add(labels, static_cast<double>(stats.oldest_timestamp->value) / 1000);
        if (stats.newest_timestamp) newest.add(labels, static_cast<double>(stats.newest_timestamp->value) / 1000);
        producers.add(labels, stats.producers);
        appended_bytes.add(labels, stats.appended_bytes);
        appended_records.add(labels, stats.appended_records);
        appended_batches.add(labels, stats.appended_batches);
        expired.add(labels, stats.expired_records);
    }
    for (auto* family : {&start, &end, &high_watermark, &last_stable, &recovery, &size, &segment_count, &oldest, &newest, &producers, &appended_bytes, &appended_records, &appended_batches, &expired})
        std::move(*family).move_to(families);
    return families;
}

FamilyList families_of(const std::vector<storage::LogDirStats>& directories) {
    auto offline = gauge("tidemark_log_directory_offline", "1 after a failure of the disk, until the next start. Kafka: kafka.log:type=LogManager,name=LogDirectoryOffline");
    auto total = gauge("tidemark_log_directory_capacity_bytes", "Size of the file system.");
    auto usable = gauge("tidemark_log_directory_available_bytes", "What may still be written to the file system.");
    auto logs = gauge("tidemark_log_directory_logs", "Logs in the directory.");
    auto loading = gauge("tidemark_log_directory_loading_logs", "Logs still to be opened. Kafka: kafka.log:type=LogManager,name=remainingLogsToRecover");
    auto syncs = counter("tidemark_log_directory_syncs_total", "Group commits: how often what waited was synced. Kafka: kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs");
    auto sync_seconds = counter("tidemark_log_directory_sync_seconds_total", "Time spent in group commits.");
    auto failures = counter("tidemark_log_directory_sync_failures_total", "Syncs that failed; the first one takes the directory offline.");
    auto rebuilt = counter("tidemark_log_directory_rebuilt_indexes_total", "Indexes that were missing or did not fit their log and were made anew from the records.");
    for (const auto& directory : directories) {
        const Labels labels{{"directory", directory.path}};
        offline.add(labels, directory.offline ? 1 : 0);
        total.add(labels, directory.total_bytes);
        usable.add(labels, directory.usable_bytes);
        logs.add(labels, directory.logs);
        loading.add(labels, directory.loading);
        syncs.add(labels, directory.syncs);
        sync_seconds.add(labels, directory.sync_seconds);
        failures.add(labels, directory.sync_failures);
        rebuilt.add(labels, directory.indexes_rebuilt);
    }
    FamilyList families;
    for (auto* family : {&offline, &total, &usable, &logs, &loading, &syncs, &sync_seconds, &failures, &rebuilt}) std::move(*family).move_to(families);
    return families;
}

FamilyList storage_families(const storage::LogManager& manager, const Cardinality& cardinality) {
    std::vector<PartitionLogStats> logs;
    for (const auto& log : manager.logs()) logs.push_back({log->partition(), log->stats()});
    auto families = families_of(logs, cardinality);
    auto directories = families_of(manager.directories());
    families.insert(families.end(), std::make_move_iterator(directories.begin()), std::make_move_iterator(directories.end()));
    return families;
}

}  // namespace tidemark::metrics
