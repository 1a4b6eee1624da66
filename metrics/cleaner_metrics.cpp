#include "metrics/cleaner_metrics.h"

namespace tidemark::metrics {
namespace {

Labels labels_of(const TopicPartition& partition) {
    return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

double seconds(Timestamp t) { return static_cast<double>(t.value) / 1000; }

void add_counters(FamilyList& to, const cleaner::PoolStats& stats) {
    auto passes = counter("tidemark_cleaner_cleanings_total", "Cleanings that ended well; kind horizon only removed what expired horizons allow.");
    passes.add({{"kind", "ordinary"}}, stats.passes - stats.horizon_passes);
    passes.add({{"kind", "horizon"}}, stats.horizon_passes);
    std::move(passes).move_to(to);
    add_counter(to, "tidemark_cleaner_failed_cleanings_total", "Cleanings that ended with an error.", stats.failed_passes);
    add_counter(to, "tidemark_cleaner_aborted_cleanings_total", "Cleanings that somebody stopped: a truncation, a changed policy, new settings.", stats.aborted_passes);
    add_counter(to, "tidemark_cleaner_cleaning_seconds_total", "Time spent in cleanings.", stats.seconds);
    add_counter(to, "tidemark_cleaner_read_bytes_total", "Bytes that cleanings read. With the bytes written: Kafka's LogCleaner,name=cleaner-recopy-percent without its sampling.", stats.bytes_read);
    add_counter(to, "tidemark_cleaner_written_bytes_total", "Bytes that cleanings wrote.", stats.bytes_written);
    add_counter(to, "tidemark_cleaner_io_bytes_total", "Bytes read and written, as the throttle counts them. Kafka: kafka.utils:type=Throttler,name=cleaner-io", stats.io_bytes);
    auto removed = counter("tidemark_cleaner_removed_records_total", "Records removed, by reason.");
    removed.add({{"reason", "superseded"}}, stats.records_superseded);
    removed.add({{"reason", "expired"}}, stats.records_expired);
    removed.add({{"reason", "no_key"}}, stats.records_without_key);
    removed.add({{"reason", "tombstone"}}, stats.tombstones_removed);
    removed.add({{"reason", "marker"}}, stats.markers_removed);
    std::move(removed).move_to(to);
    add_counter(to, "tidemark_cleaner_idle_rolls_total", "Active segments rolled without an append, by segment.ms or max.compaction.lag.ms.", stats.idle_rolls);
    add_counter(to, "tidemark_cleaner_revived_threads_total", "Threads that died and were started again.", stats.revived_threads);
}

void add_kafka_gauges(FamilyList& to, const cleaner::PoolStats& stats) {
    add_gauge(to, "kafka_log_logcleaner_num_logs_compacted_by_max_compaction_lag", "Compacted logs that hold a record beyond max.compaction.lag.ms, in the last round of selection. Kafka: kafka.log:type=LogCleaner,name=num-logs-compacted-by-max-compaction-lag (KIP-354)", stats.lag.logs_delayed);
    add_gauge(to, "kafka_log_logcleaner_max_delay_after_max_compaction_lag", "How far the most overdue record is beyond max.compaction.lag.ms, in milliseconds, in the last round of selection. Kafka: kafka.log:type=LogCleaner,name=max-delay-after-max-compaction-lag (KIP-354)", stats.lag.max_delay_ms);
    add_gauge(to, "tidemark_cleaner_max_buffer_utilization_ratio", "How full the fullest offset map was. Kafka: kafka.log:type=LogCleaner,name=max-buffer-utilization-percent", stats.max_buffer_utilization_percent / 100.0);
    add_gauge(to, "tidemark_cleaner_recopy_ratio", "Bytes written per byte read in the threads' last cleanings; not to be summed. Kafka: kafka.log:type=LogCleaner,name=cleaner-recopy-percent", stats.cleaner_recopy_percent / 100.0);
    add_gauge(to, "tidemark_cleaner_max_cleaning_duration_seconds", "The longest of the threads' last cleanings. Kafka: kafka.log:type=LogCleaner,name=max-clean-time-secs", stats.max_clean_time_secs);
    add_gauge(to, "tidemark_cleaner_max_compaction_delay_seconds", "The largest delay that a thread's last cleaning began with. Kafka: kafka.log:type=LogCleaner,name=max-compaction-delay-secs", stats.max_compaction_delay_secs);
    add_gauge(to, "tidemark_cleaner_dead_threads", "Threads that ended unexpectedly. Kafka: kafka.log:type=LogCleaner,name=DeadThreadCount", stats.dead_threads);
    add_gauge(to, "tidemark_cleaner_max_dirty_ratio", "Dirty part of the dirtiest log in the last selection; not to be summed. Kafka: kafka.log:type=LogCleanerManager,name=max-dirty-percent", stats.max_dirty_percent / 100.0);
    add_gauge(to, "tidemark_cleaner_time_since_last_run_seconds", "Time since the last selection. Kafka: kafka.log:type=LogCleanerManager,name=time-since-last-run-ms", static_cast<double>(stats.time_since_last_run_ms) / 1000);
    auto partitions = gauge("tidemark_cleaner_uncleanable_partitions", "Partitions that could not be cleaned and wait for another try. Kafka: kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count,logDirectory=…");
    auto bytes = gauge("tidemark_cleaner_uncleanable_bytes", "Their dirty bytes. Kafka: kafka.log:type=LogCleanerManager,name=uncleanable-bytes,logDirectory=…");
    for (const auto& directory : stats.directories) {
        partitions.add({{"directory", directory.path}}, directory.uncleanable_partitions);
        bytes.add({{"directory", directory.path}}, directory.uncleanable_bytes);
    }
    std::move(partitions).move_to(to);
    std::move(bytes).move_to(to);
}

void add_partitions(FamilyList& to, const std::vector<cleaner::PartitionStats>& partitions) {
    auto first_dirty = gauge("tidemark_cleaner_first_dirty_offset", "Everything below it has been cleaned.");
    auto first_uncleanable = gauge("tidemark_cleaner_first_uncleanable_offset", "Nothing from here on may be cleaned yet.");
    auto dirty = gauge("tidemark_cleaner_dirty_ratio", "Cleanable bytes per byte below the first uncleanable offset.");
    auto cleanable = gauge("tidemark_cleaner_cleanable_bytes", "Bytes that the next cleaning would read anew.");
    auto deadline = gauge("tidemark_cleaner_deadline_timestamp_seconds", "By when max.compaction.lag.ms wants a cleaning, since the epoch.");
    auto delay = gauge("tidemark_cleaner_compaction_delay_seconds", "How far the log's oldest uncompacted record is beyond max.compaction.lag.ms; 0 in time.");
    auto uncleanable = gauge("tidemark_cleaner_uncleanable", "1 while the partition waits for another try after a failed cleaning; the log says why.");
    for (const auto& partition : partitions) {
        const auto labels = labels_of(partition.partition);
        const auto& decision = partition.decision;
        first_dirty.add(labels, decision.first_dirty.value);
        first_uncleanable.add(labels, decision.first_uncleanable.value);
        dirty.add(labels, decision.ratio());
        cleanable.add(labels, decision.cleanable_bytes);
        if (decision.deadline) deadline.add(labels, seconds(*decision.deadline));
        delay.add(labels, static_cast<double>(decision.delay_ms) / 1000);
        uncleanable.add(labels, partition.uncleanable ? 1 : 0);
    }
    for (auto* family : {&first_dirty, &first_uncleanable, &dirty, &cleanable, &deadline, &delay, &uncleanable}) std::move(*family).move_to(to);
}

}  // namespace

FamilyList families_of(const cleaner::PoolStats& stats, const Cardinality& cardinality) {
    FamilyList families;
    add_kafka_gauges(families, stats);
    add_counters(families, stats);
    add_gauge(families, "tidemark_cleaner_compacted_partitions", "Partitions whose policy contains compact.", stats.partitions.size());
    if (cardinality.shows(stats.partitions.size())) add_partitions(families, stats.partitions);
    return families;
}

}  // namespace tidemark::metrics
