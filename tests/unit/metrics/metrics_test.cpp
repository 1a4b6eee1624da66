#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "metrics/cleaner_metrics.h"
#include "metrics/daemon_metrics.h"
#include "metrics/exposition.h"
#include "metrics/group_metrics.h"
#include "metrics/process.h"
#include "metrics/retention_metrics.h"
#include "metrics/storage_metrics.h"

namespace tidemark::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(FamilyList families) {
    Exposition exposition;
    exposition.add([&families] { return families; });
    return exposition.text();
}

daemon::ServerStats busy_server() {
    daemon::ServerStats stats;
    stats.connections = 3;
    stats.loops = {{.lag_seconds = 0.5, .lag_seconds_max = 1, .connections = 2}, {}};
    daemon::ApiStats produce;
    produce.key = 0;
    produce.name = "Produce";
    produce.requests = 3;
    produce.requests_by_version = {{9, 2}, {13, 1}};
    produce.errors = {{7, 1}};
    produce.total.buckets[0] = 2;
    produce.total.buckets.back() = 1;
    produce.total.sum_seconds = 31.5;
    daemon::ApiStats unused;
    unused.key = 1;
    unused.name = "Fetch";
    stats.apis = {produce, unused};
    stats.topics = {{"orders", {.bytes_in = 5, .records_in = 2}}};
    stats.client_software = {{{"librd\"kafka\\", "2.0\n"}, 3}};
    return stats;
}

TEST(Families, WhatIsNotANumberIsZeroAndEmptyFamiliesAreLeftOut) {
    FamilyList families;
    add_gauge(families, "tidemark_ratio", "A ratio.", 0.0 / std::numeric_limits<double>::infinity() * std::numeric_limits<double>::infinity());
    gauge("tidemark_nothing", "Nothing.").move_to(families);
    const auto text = text_of(families);
    EXPECT_THAT(text, HasSubstr("tidemark_ratio 0\n"));
    EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

TEST(DaemonMetrics, RequestsHaveCountsErrorsAndCumulativeHistograms) {
    const auto text = text_of(families_of(busy_server()));
    EXPECT_THAT(text, HasSubstr("tidemark_requests_total{api=\"Produce\",version=\"13\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_request_errors_total{api=\"Produce\",error=\"REQUEST_TIMED_OUT\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_request_duration_seconds_bucket{api=\"Produce\",le=\"30\"} 2\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_request_duration_seconds_bucket{api=\"Produce\",le=\"+Inf\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_request_duration_seconds_sum{api=\"Produce\"} 31.5\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_request_duration_seconds_count{api=\"Produce\"} 3\n"));
    EXPECT_THAT(text, Not(HasSubstr("api=\"Fetch\""))) << "an API that nobody used";
    EXPECT_THAT(text, HasSubstr("tidemark_topic_bytes_in_total{topic=\"orders\"} 5\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_event_loop_lag_max_seconds{loop=\"0\"} 1\n"));
}

TEST(DaemonMetrics, LabelValuesThatClientsChooseAreEscapedAndBounded) {
    auto stats = busy_server();
    EXPECT_THAT(text_of(families_of(stats)), HasSubstr(R"(tidemark_client_connections{software="librd\"kafka\\",version="2.0\n"} 3)"));
    for (int i = 0; i < 1000; ++i) stats.client_software[{"client", std::to_string(i)}] = 2;
    const auto families = families_of(stats);
    const auto software = std::ranges::find(families, "tidemark_client_connections", &prometheus::MetricFamily::name);
    ASSERT_NE(software, families.end());
    EXPECT_EQ(software->metric.size(), client_software_max + 1);
    double sum = 0;
    for (const auto& metric : software->metric) sum += metric.gauge.value;
    EXPECT_EQ(sum, 2003) << "those that are not shown one by one are counted together";
}

PartitionLogStats log_of(std::string topic, std::int32_t partition, std::int64_t end) {
    PartitionLogStats log{{std::move(topic), partition}, {}};
    log.stats.log_end_offset = Offset{end};
    log.stats.bytes = end * 10;
    log.stats.segments = 1;
    return log;
}

TEST(StorageMetrics, SeriesPerPartitionAndSums) {
    const auto text = text_of(families_of({log_of("a", 1, 7), log_of("b", 0, 3)}, Cardinality{}));
    EXPECT_THAT(text, HasSubstr("tidemark_log_end_offset{topic=\"a\",partition=\"1\"} 7\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_log_size_bytes{topic=\"b\",partition=\"0\"} 30\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_logs_size_bytes 100\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_partitions 2\n"));
}

TEST(StorageMetrics, AboveTheLimitOnlySumsAreShown) {
    for (const auto& limit : {Cardinality{.per_partition = true, .partitions_max = 1}, Cardinality{.per_partition = false}}) {
        const auto text = text_of(families_of({log_of("a", 1, 7), log_of("b", 0, 3)}, limit));
        EXPECT_THAT(text, Not(HasSubstr("topic=")));
        EXPECT_THAT(text, HasSubstr("tidemark_logs_size_bytes 100\n"));
        EXPECT_THAT(text, HasSubstr("tidemark_metrics_partitions_hidden 2\n"));
    }
}

TEST(StorageMetrics, DirectoriesByPath) {
    storage::LogDirStats directory;
    directory.path = "/data/a";
    directory.offline = true;
    directory.syncs = 4;
    const auto text = text_of(families_of(std::vector{directory}));
    EXPECT_THAT(text, HasSubstr("tidemark_log_directory_offline{directory=\"/data/a\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_log_directory_syncs_total{directory=\"/data/a\"} 4\n"));
}

TEST(ProcessMetrics, ReadsAStatLineWhateverTheProgramIsCalled) {
    const auto stats = parse_proc_stat("123 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15 16 8 0 1000 4096000 25 18446744073709551615", {.ticks_per_second = 100, .page_bytes = 4096, .boot_time_seconds = 1000});
    ASSERT_TRUE(stats);
    EXPECT_EQ(stats->cpu_seconds, 2);
    EXPECT_EQ(stats->threads, 8);
    EXPECT_EQ(stats->start_time_seconds, 1010);
    EXPECT_EQ(stats->virtual_memory_bytes, 4096000);
    EXPECT_EQ(stats->resident_memory_bytes, 25 * 4096);
    for (const auto* bad : {"", "1 (x", "1 (x) S 1 2", "1 (x) S 1 2 3 4 5 6 7 8 9 10 a 50 13 14 15 16 8 0 1000 4096000 25"}) EXPECT_FALSE(parse_proc_stat(bad, {})) << bad;
}

TEST(ProcessMetrics, OfThisProcess) {
    const auto stats = read_process_stats();
    EXPECT_GT(stats.resident_memory_bytes, 1 << 20);
    EXPECT_GE(stats.open_fds, 3);
    EXPECT_GE(stats.max_fds, stats.open_fds);
    EXPECT_GE(stats.threads, 1);
    EXPECT_GT(stats.start_time_seconds, 1.5e9);
}

cleaner::PoolStats busy_cleaner() {
    cleaner::PoolStats stats;
    stats.lag = {.logs_delayed = 2, .max_delay_ms = 1500};
    stats.max_dirty_percent = 50;
    stats.passes = 5;
    stats.horizon_passes = 2;
    stats.directories = {{"/data", 1, 100}};
    cleaner::PartitionStats partition;
    partition.partition = {"facts", 3};
    partition.decision.cleanable_bytes = 30;
    partition.decision.clean_bytes = 10;
    partition.decision.deadline = Timestamp{2'500};
    partition.decision.delay_ms = 1500;
    partition.uncleanable = cleaner::Uncleanable{.reason = "damaged", .since = {}};
    stats.partitions = {partition};
    return stats;
}

TEST(CleanerMetrics, TheTwoGaugesOfKip354KeepTheirNamesAndUnit) {
    const auto text = text_of(families_of(busy_cleaner(), Cardinality{}));
    EXPECT_THAT(text, HasSubstr("kafka_log_logcleaner_num_logs_compacted_by_max_compaction_lag 2\n"));
    EXPECT_THAT(text, HasSubstr("kafka_log_logcleaner_max_delay_after_max_compaction_lag 1500\n"));
}

TEST(CleanerMetrics, EverythingIsZeroBeforeTheFirstRound) {
    const auto families = families_of(cleaner::PoolStats{}, Cardinality{});
    const auto text = text_of(families);
    EXPECT_THAT(text, HasSubstr("kafka_log_logcleaner_num_logs_compacted_by_max_compaction_lag 0\n"));
    EXPECT_THAT(text, HasSubstr("kafka_log_logcleaner_max_delay_after_max_compaction_lag 0\n"));
    for (const auto& family : families)
        for (const auto& metric : family.metric) EXPECT_EQ(metric.gauge.value + metric.counter.value, 0) << family.name;
}

TEST(CleanerMetrics, PartitionsShowDeadlineDelayAndRatio) {
    const auto text = text_of(families_of(busy_cleaner(), Cardinality{}));
    EXPECT_THAT(text, HasSubstr("tidemark_cleaner_deadline_timestamp_seconds{topic=\"facts\",partition=\"3\"} 2.5\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_cleaner_compaction_delay_seconds{topic=\"facts\",partition=\"3\"} 1.5\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_cleaner_dirty_ratio{topic=\"facts\",partition=\"3\"} 0.75\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_cleaner_uncleanable{topic=\"facts\",partition=\"3\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_cleaner_max_dirty_ratio 0.5\n"));
    EXPECT_THAT(text_of(families_of(busy_cleaner(), Cardinality{.per_partition = false})), Not(HasSubstr("topic=")));
}

TEST(CleanerMetrics, AnEmptyLogHasARatioOfZero) {
    auto stats = busy_cleaner();
    stats.partitions[0].decision.clean_bytes = stats.partitions[0].decision.cleanable_bytes = 0;
    EXPECT_THAT(text_of(families_of(stats, Cardinality{})), HasSubstr("tidemark_cleaner_dirty_ratio{topic=\"facts\",partition=\"3\"} 0\n"));
}

retention::SchedulerStats busy_retention() {
    retention::SchedulerStats stats;
    stats.deleted[static_cast<std::size_t>(retention::Rule::min_timestamp)] = {.segments = 3, .bytes = 300, .records = 30};
    retention::PartitionStats partition;
    partition.partition = {"dated", 0};
    partition.next_deletion = Timestamp{4'000};
    partition.size_percent = 150;
    stats.partitions = {partition};
    return stats;
}

TEST(RetentionMetrics, CountsByRuleAndSaysWhatComesNext) {
    const auto text = text_of(families_of(busy_retention(), Cardinality{}));
    EXPECT_THAT(text, HasSubstr("tidemark_retention_deleted_segments_total{rule=\"min_timestamp\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_retention_deleted_segments_total{rule=\"retention_ms\"} 0\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_retention_deleted_records_total{rule=\"min_timestamp\"} 30\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_retention_next_deletion_timestamp_seconds{topic=\"dated\",partition=\"0\"} 4\n"));
    EXPECT_THAT(text, HasSubstr("tidemark_retention_size_ratio{topic=\"dated\",partition=\"0\"} 1.5\n"));
    EXPECT_THAT(text_of(families_of(retention::ClockTrust::Stats{.trusted = false, .reason = "behind", .jumps = 1})), HasSubstr("tidemark_clock_trusted 0\n"));
}

FamilyList all_families() {
    FamilyList all;
    const auto take = [&](FamilyList families) { all.insert(all.end(), std::make_move_iterator(families.begin()), std::make_move_iterator(families.end())); };
    take(families_of(busy_server()));
    take(families_of({log_of("a", 1, 7)}, Cardinality{}));
    take(families_of(std::vector{storage::LogDirStats{}}));
    take(families_of(busy_cleaner(), Cardinality{}));
    take(families_of(busy_retention(), Cardinality{}));
    take(families_of(retention::ClockTrust::Stats{}));
    take(families_of(std::vector{daemon::GroupStats{.id = "g", .type = "classic", .state = "Stable", .members = 2, .partitions = {{.topic = "a", .partition = 1, .committed = 5, .lag = 7}}}}, Cardinality{}));
    take(families_of(ProcessStats{}));
    take(build_families());
    return all;
}

TEST(Names, FollowPrometheusConventions) {
    std::set<std::string> seen;
    for (const auto& family : all_families()) {
        EXPECT_TRUE(seen.insert(family.name).second) << family.name << " twice";
        EXPECT_FALSE(family.help.empty()) << family.name;
        EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter) << family.name;
        EXPECT_TRUE(family.name.starts_with("tidemark_") || family.name.starts_with("process_") || family.name.starts_with("kafka_log_logcleaner_")) << family.name;
        for (const auto* suffix : {"_count", "_sum", "_bucket", "_ms", "_millis"}) EXPECT_FALSE(family.name.ends_with(suffix)) << family.name;
    }
}

TEST(Names, AreAllInTheDocuments) {
    std::ifstream in{"docs/operating.md"};
    const std::string document{std::istreambuf_iterator<char>{in}, {}};
    ASSERT_FALSE(document.empty()) << "run from the root of the source tree";
    for (const auto& family : all_families()) EXPECT_THAT(document, HasSubstr("`" + family.name)) << family.name;
}

TEST(Names, OfAlertsAreThoseOfMetrics) {
    std::set<std::string> known = {"tidemark_"};
    for (const auto& family : all_families()) known.insert(family.name);
    std::ifstream in{"packaging/prometheus/alerts.yaml"};
    std::size_t asked = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.find("annotations") != std::string::npos || line.find("summary") != std::string::npos) continue;
        for (const std::string prefix : {"tidemark_", "kafka_", "process_"}) {
            for (auto at = line.find(prefix); at != std::string::npos; at = line.find(prefix, at + 1)) {
                const auto end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", at);
                const auto name = line.substr(at, end - at);
                if (at > 0 && std::string_view{"abcdefghijklmnopqrstuvwxyz_"}.find(line[at - 1]) != std::string_view::npos) continue;
                EXPECT_TRUE(known.contains(name)) << name;
                ++asked;
            }
        }
    }
    EXPECT_GT(asked, 10u);
}

}  // namespace
}  // namespace tidemark::metrics
