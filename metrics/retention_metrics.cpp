#include "metrics/retention_metrics.h"

namespace tidemark::metrics {
namespace {

/// A rule as a label: words that a query can compare with.
const char* label_of(retention::Rule rule) {
    switch (rule) {
        case retention::Rule::log_start_offset: return "log_start_offset";
        case retention::Rule::retention_bytes: return "retention_bytes";
        case retention::Rule::retention_ms: return "retention_ms";
        case retention::Rule::min_timestamp: return "min_timestamp";
    }
    return "";
}

Labels labels_of(const TopicPartition& partition) {
    return {{"topic", partition.topic}, {"partition", std::to_string(partition.partition)}};
}

}  // namespace

FamilyList families_of(const retention::SchedulerStats& stats, const Cardinality& cardinality) {
    FamilyList families;
    add_counter(families, "tidemark_retention_runs_total", "Runs over all logs that are not compacted.", stats.runs);
    add_counter(families, "tidemark_retention_run_seconds_total", "Time spent in them.", stats.seconds);
    auto segments = counter("tidemark_retention_deleted_segments_total", "Segments deleted, by the rule that said so.");
    auto bytes = counter("tidemark_retention_deleted_bytes_total", "Bytes deleted, by the rule that said so.");
    auto records = counter("tidemark_retention_deleted_records_total", "Records deleted, by the rule that said so: offsets that the segments spanned, of compacted topics what was left in them.");
    for (std::size_t i = 0; i < retention::rule_count; ++i) {
        const Labels labels{{"rule", label_of(static_cast<retention::Rule>(i))}};
        segments.add(labels, stats.deleted[i].segments);
        bytes.add(labels, stats.deleted[i].bytes);
        records.add(labels, stats.deleted[i].records);
    }
    std::move(segments).move_to(families);
    std::move(bytes).move_to(families);
    std::move(records).move_to(families);

    if (!cardinality.shows(stats.partitions.size())) return families;
    auto future = gauge("tidemark_retention_future_segments", "Segments whose largest timestamp lies in the future: they keep retention by time from all behind them.");
    auto held_back = gauge("tidemark_retention_held_back_segments", "Segments that are old enough and wait behind a younger one.");
    auto next = gauge("tidemark_retention_next_deletion_timestamp_seconds", "When retention.ms lets the oldest segment go, since the epoch, if nothing is appended to it.");
    auto size = gauge("tidemark_retention_size_ratio", "Size of the log per retention.bytes; 0 when that is unlimited. Kafka: kafka.log:type=Log,name=RetentionSizeInPercent");
    for (const auto& partition : stats.partitions) {
        const auto labels = labels_of(partition.partition);
        future.add(labels, partition.future_segments);
        held_back.add(labels, partition.held_back);
        if (partition.next_deletion) next.add(labels, static_cast<double>(partition.next_deletion->value) / 1000);
        size.add(labels, partition.size_percent / 100.0);
    }
    for (auto* family : {&future, &held_back, &next, &size}) std::move(*family).move_to(families);
    return families;
}

FamilyList families_of(const retention::ClockTrust::Stats& stats) {
    FamilyList families;
    add_gauge(families, "tidemark_clock_trusted", "0 while deletion by time waits, because the clock jumped; the log says why.", stats.trusted ? 1 : 0);
    add_counter(families, "tidemark_clock_jumps_total", "Jumps of the wall clock that were not believed at once.", stats.jumps);
    return families;
}

}  // namespace tidemark::metrics
