#include "retention/scheduler.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "io/faulty_file_system.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "storage/log_directory.h"
#include "storage/segment.h"
#include "tests/support/storage_log.h"

namespace tidemark::retention {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using storage::LogConfig;
using test::StorageLog;

LogConfig keep_all() {
    LogConfig config;
    config.retention_ms.reset();
    config.timestamp_after_max_ms = storage::unlimited;
    return config;
}
LogConfig retain_ms(std::int64_t ms) {
    auto config = keep_all();
    config.retention_ms = ms;
    return config;
}

/// Applies it, and lets the delay of the deleted files pass.
Result<Applied> apply(StorageLog& log, Timestamp now, bool trusts_clock = true) {
    auto applied = apply_retention(*log.shared(), now, {}, trusts_clock);
    log.clock.advance(61s);
    log.directory().run_background();
    return applied;
}

TEST(ApplyRetention, TheLogStartMovesWithTheSegments) {
    StorageLog log({.config = retain_ms(10'000)});
    log.append("a=1 b=1 | c=1@5000 | d=1@9000 e=1");        // e at the clock's time, 0
    const auto applied = apply(log, log.start + 10'001).value();
    ASSERT_EQ(applied.decision.deletions.size(), 1u);
    EXPECT_EQ(log.text(), "2:c=1 | 3:d=1 4:e=1");
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_THAT(apply(log, log.start + 10'001).value().decision.deletions, IsEmpty());   // the same instant again
}

TEST(ApplyRetention, AnExpiredActiveSegmentIsRolledAndGoes) {
    StorageLog log({.config = retain_ms(10'000)});
    log.append("a=1 | b=1");
    ASSERT_TRUE(apply(log, log.start + 10'001));
    EXPECT_EQ(log.text(), "");
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(log->log_end_offset(), Offset{2});
    EXPECT_EQ(log->segments()->size(), 1u);
}

TEST(ApplyRetention, WhatLiesAboveTheHighWatermarkStays) {
    StorageLog log({.config = retain_ms(0)});
    log.append("a=1 | b=1 | c=1");
    for (const int high_watermark : {0, 1, 2}) {
        log->set_high_watermark(Offset{high_watermark});
        ASSERT_TRUE(apply(log, log.start + 10'001));
        EXPECT_EQ(log->log_start_offset(), Offset{high_watermark});
        EXPECT_EQ(log->segments()->size(), static_cast<std::size_t>(3 - high_watermark));
    }
    log->set_high_watermark(Offset{3});
    ASSERT_TRUE(apply(log, log.start + 10'001));
    EXPECT_EQ(log->log_start_offset(), Offset{3});
}

TEST(ApplyRetention, AnOpenTransactionDoesNotHoldUpDeletion) {
    StorageLog log({.config = retain_ms(10'000)});
    log.append_in_transaction(7, "a=1");
    log.append("| b=1@20000");
    ASSERT_TRUE(apply(log, log.start + 10'001));
    EXPECT_EQ(log.text(), "1:b=1");
    EXPECT_GE(log->last_stable_offset(), log->log_start_offset());
}

TEST(ApplyRetention, DeleteRecordsThenRetentionTakesWhatIsBelow) {
    StorageLog log({.config = keep_all()});
    log.append("a=1 b=1 | c=1 d=1 | e=1");
    ASSERT_TRUE(log->delete_records_before(Offset{3}));
    ASSERT_TRUE(apply(log, log.start));
    EXPECT_EQ(log.text(), "2:c=1 3:d=1 | 4:e=1");
    EXPECT_EQ(log->log_start_offset(), Offset{3});
}

TEST(ApplyRetention, ADistrustedClockLeavesOnlyWhatDoesNotAskForTheTime) {
    auto config = retain_ms(10'000);
    config.retention_bytes = 200;
    StorageLog log({.config = config});
    log.append("a=1 | b=1 | c=1 | d=1");                     // 70 bytes each
    ASSERT_TRUE(apply(log, log.start + 10'001, false));
    EXPECT_EQ(log.text(), "1:b=1 | 2:c=1 | 3:d=1");          // by size
    ASSERT_TRUE(apply(log, log.start + 10'001, true));
    EXPECT_EQ(log.text(), "");
}

TEST(ApplyRetention, MinTimestampIsAClientsTrim) {
    auto config = keep_all();
    StorageLog log({.config = config});
    log.append("a=1@100 | b=1@300 | c=1@200 | d=1@400");
    for (const auto& [t, text] : std::vector<std::pair<std::int64_t, std::string>>{
             {100, "0:a=1 | 1:b=1 | 2:c=1 | 3:d=1"}, {250, "1:b=1 | 2:c=1 | 3:d=1"}, {150, "1:b=1 | 2:c=1 | 3:d=1"}, {301, "3:d=1"}, {401, ""}}) {
        config.retention_min_timestamp = log.start + t;
        log.set_config(config);
        ASSERT_TRUE(apply(log, log.start));
        EXPECT_EQ(log.text(), text) << t;
    }
}

/// Several logs, and a scheduler.
class SchedulerTest : public ::testing::Test {
protected:
    SchedulerTest() {
        storage::StorageOptions options;
        options.log_dirs = {"/logs"};
        logs_ = *storage::LogManager::open(files_, clock_, options, {.cluster_id = "c", .node_id = 1});
        EXPECT_TRUE(logs_->load([](const storage::FoundLog&) { return nullptr; }));
    }
    ~SchedulerTest() override { EXPECT_TRUE(logs_->close(1)); }

    Scheduler make(RetentionOptions options = {}) {
        return Scheduler(*logs_, clock_, options,
                         {.pause_if_idle = [&](const TopicPartition& p) { return !busy_.contains(p) && paused_.insert(p).second; },
                          .resume = [&](const TopicPartition& p) { EXPECT_EQ(paused_.erase(p), 1u); }},
                         [&](const SegmentReport& report) { reports_.push_back(report); });
    }
    /// Three closed segments of one record each, and an active one.
    std::shared_ptr<storage::Log> create(const std::string& topic, const LogConfig& config) {
        auto log = *logs_->create({topic, 0}, Uuid::random(), std::make_shared<const LogConfig>(config));
        for (int i = 0; i < 4; ++i) {
            if (i > 0) {
                EXPECT_TRUE(log->roll());
            }
            append(*log, clock_.now());
        }
        return log;
    }
    void append(storage::Log& log, Timestamp timestamp) {
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, timestamp, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        EXPECT_TRUE(log.append(bytes, {}));
    }

    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    std::unique_ptr<storage::LogManager> logs_;
    std::set<TopicPartition> busy_, paused_;
    std::vector<SegmentReport> reports_;
};

TEST_F(SchedulerTest, RunsAfterTheInitialDelayAndThenByItsInterval) {
    auto scheduler = make();
    EXPECT_FALSE(scheduler.tick());
    clock_.advance(29'999ms);
    EXPECT_FALSE(scheduler.tick());
    clock_.advance(1ms);
    EXPECT_TRUE(scheduler.tick());
    EXPECT_FALSE(scheduler.tick());
    clock_.advance(299'999ms);
    EXPECT_FALSE(scheduler.tick());
    clock_.advance(1ms);
    EXPECT_TRUE(scheduler.tick());
    clock_.advance(1h);                                       // late: once, not twelve times
    EXPECT_TRUE(scheduler.tick());
    EXPECT_FALSE(scheduler.tick());
    EXPECT_EQ(scheduler.stats().runs, 3u);
}

TEST_F(SchedulerTest, LeavesCompactedAndBusyLogsAlone) {
    const auto plain = create("plain", retain_ms(10'000)), busy = create("busy", retain_ms(10'000));
    auto config = retain_ms(10'000);
    config.compacts = true;
    const auto compacted = create("compacted", config);
    busy_.insert({"busy", 0});
    auto scheduler = make();
    clock_.advance(11s);
    scheduler.run();
    EXPECT_EQ(plain->log_start_offset(), Offset{4});
    EXPECT_EQ(busy->log_start_offset(), Offset{0});
    EXPECT_EQ(compacted->log_start_offset(), Offset{0});
    EXPECT_THAT(paused_, IsEmpty());
    EXPECT_TRUE(scheduler.apply(*compacted).value());         // the cleaner's threads ask for it
    EXPECT_EQ(compacted->log_start_offset(), Offset{4});
}

TEST_F(SchedulerTest, EverySegmentHasItsReason) {
    auto config = retain_ms(10'000);
    config.retention_bytes = 210;
    const auto log = create("t", config);
    ASSERT_TRUE(log->delete_records_before(Offset{1}));
    auto scheduler = make();
    scheduler.run();
    ASSERT_EQ(reports_.size(), 1u);
    EXPECT_EQ(reports_[0].deletion.rule, Rule::log_start_offset);
    EXPECT_EQ(reports_[0].base_offset, Offset{0});
    EXPECT_EQ(reports_[0].end_offset, Offset{1});
    EXPECT_EQ(reports_[0].largest_record_timestamp, clock_.now());   // also where the rule did not ask for it
    EXPECT_EQ(reports_[0].text(), "segment 0 to 0 (70 bytes, 1 records, largest timestamp " + std::to_string(clock_.now().value) + "): log start offset 1: it ends at 1");
    append(*log, clock_.now());
    scheduler.run();
    ASSERT_EQ(reports_.size(), 2u);
    EXPECT_EQ(reports_[1].deletion.rule, Rule::retention_bytes);
    clock_.advance(11s);
    scheduler.run();
    const auto stats = scheduler.stats();
    EXPECT_EQ(stats.deleted[0].segments, 1u);
    EXPECT_EQ(stats.deleted[1].segments, 1u);
    EXPECT_EQ(stats.deleted[2].segments, 2u);
    EXPECT_EQ(stats.deleted[2].bytes, 210u);
    EXPECT_EQ(stats.deleted[2].records, 3u);
    ASSERT_EQ(stats.partitions.size(), 1u);
    EXPECT_EQ(stats.partitions[0].deleted[2].segments, 2u);
}

TEST_F(SchedulerTest, WhatHoldsUpDeletionIsCounted) {
    auto config = retain_ms(10'000);
    config.timestamp_after_max_ms = storage::unlimited;
    const auto log = *logs_->create({"t", 0}, Uuid::random(), std::make_shared<const LogConfig>(config));
    append(*log, clock_.now() + 3'600'000);
    ASSERT_TRUE(log->roll());
    append(*log, clock_.now());
    ASSERT_TRUE(log->roll());
    append(*log, clock_.now());
    auto scheduler = make();
    clock_.advance(11s);
    scheduler.run();
    const auto stats = scheduler.stats().partitions.at(0);
    EXPECT_EQ(stats.future_segments, 1u);
    EXPECT_EQ(stats.held_back, 2u);
    EXPECT_EQ(stats.next_deletion, clock_.now() - 11'000 + 3'600'000 + 10'001);
    EXPECT_EQ(log->log_start_offset(), Offset{0});
    RetentionOptions by_file_time;
    by_file_time.differences.future_timestamps_use_file_time = true;
    scheduler.reconfigure(by_file_time);
    scheduler.run();
    EXPECT_EQ(log->log_start_offset(), Offset{3});
}

TEST_F(SchedulerTest, RecordsThatCompactionTookAreNotCountedAgain) {
    auto config = retain_ms(10'000);
    config.compacts = true;
    const auto log = create("t", config);
    // As a cleaner leaves it: three of four offsets gone from the first segment's successor.
    const auto cleaned = log->create_cleaned_segment(Offset{0}).value();
    record::BatchBuilder builder;
    builder.start({.base_offset = Offset{0}});
    builder.append(Offset{2}, clock_.now(), as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    ASSERT_TRUE(cleaned->append(bytes));
    ASSERT_TRUE(cleaned->finish_cleaned(clock_.now()));
    const auto all = log->segments();
    ASSERT_TRUE(log->replace_segments({cleaned}, {all->begin(), all->begin() + 3}));
    auto scheduler = make();
    clock_.advance(11s);
    ASSERT_TRUE(scheduler.apply(*log).value());
    ASSERT_EQ(reports_.size(), 2u);
    EXPECT_EQ(reports_[0].end_offset, Offset{3});
    EXPECT_EQ(reports_[0].records, 1);
    EXPECT_EQ(reports_[1].records, 1);
}

TEST_F(SchedulerTest, RunsAtTheSameTimeDeleteEachSegmentOnce) {
    std::vector<std::shared_ptr<storage::Log>> logs;
    auto config = keep_all();
    config.retention_bytes = 140;                             // two of four stay
    for (int i = 0; i < 20; ++i) logs.push_back(create("t" + std::to_string(i), config));
    Mutex mutex;
    Scheduler scheduler(*logs_, clock_, {}, {}, [&](const SegmentReport& report) {
        MutexLock lock(mutex);
        reports_.push_back(report);
    });
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) threads.emplace_back([&] { scheduler.run(); });
    }
    EXPECT_EQ(reports_.size(), 40u);
    for (const auto& log : logs) EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(scheduler.stats().runs, 4u);
}

TEST(SchedulerOverDirectories, OneThatFailsDoesNotHoldUpTheOthers) {
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    storage::StorageOptions options;
    options.log_dirs = {"/a", "/b"};
    options.reserve_bytes = 0;
    const auto logs = *storage::LogManager::open(disk, clock, options, {.cluster_id = "c", .node_id = 1});
    ASSERT_TRUE(logs->load([](const storage::FoundLog&) { return nullptr; }));
    for (int i = 0; i < 4; ++i) {
        const auto log = *logs->create({"t", i}, Uuid::random(), std::make_shared<const LogConfig>(retain_ms(10'000)));
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, clock.now(), as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        ASSERT_TRUE(log->append(bytes, {}));
    }
    clock.advance(11s);
    disk.inject({.fail_at = 0, .fail_calls = 1'000'000, .counted = [](const io::Call& call) { return call.path.starts_with("/a/"); }, .clock = &clock});
    Scheduler scheduler(*logs, clock, {});
    scheduler.run();
    int gone = 0, kept = 0;
    for (const auto& log : logs->logs()) {
        const bool failed = log->directory().starts_with("/a/");
        EXPECT_EQ(log->log_dir().is_offline(), failed);
        if (failed) ++kept;
        else gone += log->log_start_offset() == Offset{1} ? 1 : 0;
    }
    EXPECT_EQ(gone, 2);
    EXPECT_LE(kept, 2);
    EXPECT_EQ(scheduler.stats().runs, 1u);
    disk.inject({.clock = &clock});
    (void)logs->close(1);
}

TEST_F(SchedulerTest, TheNextRunIsToldByTheWallClock) {
    auto scheduler = make();
    EXPECT_EQ(scheduler.next_run(), clock_.now() + 30'000);
    clock_.advance(30s);
    ASSERT_TRUE(scheduler.tick());
    clock_.advance(100s);
    EXPECT_EQ(scheduler.next_run(), clock_.now() + 200'000);
}

TEST_F(SchedulerTest, ThePlanChangesNothing) {
    const auto log = create("t", keep_all());
    clock_.advance(11s);
    EXPECT_THAT(plan(*log, *log->config(), clock_.now(), {}).value().decision.deletions, IsEmpty());
    EXPECT_EQ(plan(*log, retain_ms(10'000), clock_.now(), {}).value().decision.deletions.size(), 4u);
    EXPECT_EQ(log->log_start_offset(), Offset{0});
}

}  // namespace
}  // namespace tidemark::retention
