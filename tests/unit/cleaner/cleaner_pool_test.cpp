#include "cleaner/cleaner_pool.h"

#include <gmock/gmock.h>

#include "io/memory_file_system.h"
#include "record/builder.h"
#include "retention/scheduler.h"
#include "storage/log_directory.h"
#include "storage/segment.h"

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using storage::LogConfig;

LogConfig compacted() {
    LogConfig config;
    config.compacts = true;
    config.deletes = false;
    config.min_cleanable_dirty_ratio = 0;
    return config;
}

/// A log manager in memory, and a pool without threads.
class PoolTest : public ::testing::Test {
protected:
    PoolTest() { open(); }
    ~PoolTest() override {
        pool_.reset();
        if (!logs_) return;
        EXPECT_TRUE(logs_->close(1));
    }

    void open() {
        storage::StorageOptions options;
        options.log_dirs = {"/logs"};
        auto opened = storage::LogManager::open(files_, clock_, options, {.cluster_id = "c", .node_id = 1});
        ASSERT_TRUE(opened) << opened.error().message();
        logs_ = *std::move(opened);
        const auto loaded = logs_->load([&](const storage::FoundLog& found) { return configs_.contains(found.partition) ? configs_[found.partition] : nullptr; });
        ASSERT_TRUE(loaded) << loaded.error().message();
        make_pool();
    }
    void reopen(bool remember_segments) {
        pool_.reset();
        ASSERT_TRUE(logs_->close(1));
        logs_.reset();
        if (!remember_segments) {
            ASSERT_TRUE(files_.remove("/logs/tidemark-segments"));
        }
        open();
    }
    void make_pool(CleanerOptions options = {}, CleanerPool::Retention retention = {}) {
        options.dedupe_buffer_bytes = 1 << 20;
        pool_ = std::make_unique<CleanerPool>(*logs_, clock_, options, std::move(retention), [&](const PassReport& report) { reports_.push_back(report); }, [&] { return clock_is_right_; });
    }

    std::shared_ptr<storage::Log> create(const std::string& topic, const LogConfig& config = compacted()) {
        const TopicPartition partition{topic, 0};
        configs_[partition] = std::make_shared<const LogConfig>(config);
        auto made = logs_->create(partition, Uuid::random(), configs_[partition]);
        EXPECT_TRUE(made) << made.error().message();
        return *made;
    }
    void append(storage::Log& log, const std::string& key, std::optional<std::string> value, std::optional<Timestamp> timestamp = {}, ProducerId producer = no_producer_id) {
        record::BatchBuilder builder;
        const bool open = producer != no_producer_id;
        builder.start({.producer_id = producer, .producer_epoch = open ? ProducerEpoch{0} : ProducerEpoch{-1}, .base_sequence = open ? sequence_++ : -1, .transactional = open});
        builder.append(Offset{0}, timestamp.value_or(clock_.now()), as_bytes(key), value ? std::optional{as_bytes(*value)} : std::nullopt);
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        const auto appended = log.append(bytes, {});
        ASSERT_TRUE(appended) << appended.error().message();
    }
    /// `dirty` records of one key in a closed segment of their own.
    std::shared_ptr<storage::Log> dirty(const std::string& topic, int records, const LogConfig& config = compacted()) {
        auto log = create(topic, config);
        for (int i = 0; i < records; ++i) append(*log, "k", std::to_string(i));
        EXPECT_TRUE(log->roll());
        return log;
    }
    std::optional<Offset> checkpoint(const std::string& topic) const {
        const auto all = logs_->read_cleaner_checkpoints().value();
        const auto found = all.find({topic, 0});
        return found == all.end() ? std::nullopt : std::optional{found->second};
    }
    /// Files of the topic's directory that hold the bytes.
    std::vector<std::string> files_with(const std::string& topic, std::string_view bytes) {
        std::vector<std::string> found;
        for (const auto& entry : files_.list("/logs/" + topic + "-0").value()) {
            const auto content = io::read_whole(files_, "/logs/" + topic + "-0/" + entry.name).value();
            if (as_text(content).find(bytes) != std::string_view::npos) found.push_back(entry.name);
        }
        return found;
    }
    static std::int64_t records(storage::Log& log) {
        std::int64_t count = 0;
        for (const auto& segment : *log.segments()) {
            std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
            EXPECT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
            record::BatchCursor cursor(bytes);
            while (const auto batch = *cursor.next()) count += batch->record_count().value_or(1);
        }
        return count;
    }
    void damage(storage::Log& log) {
        const auto file = files_.open(log.segments()->front()->log_path(), io::OpenMode::read_write).value();
        std::array<std::byte, 1> byte;
        ASSERT_TRUE(file->read(FilePosition{65}, byte));
        byte[0] ^= std::byte{0x55};
        ASSERT_TRUE(file->write(FilePosition{65}, byte));
    }
    PartitionStats stats_of(const std::string& topic) const {
        const auto stats = pool_->partition({topic, 0});
        EXPECT_TRUE(stats) << topic;
        return stats.value_or(PartitionStats{});
    }

    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    std::map<TopicPartition, std::shared_ptr<const LogConfig>> configs_;
    std::unique_ptr<storage::LogManager> logs_;
    std::unique_ptr<CleanerPool> pool_;
    std::vector<PassReport> reports_;
    bool clock_is_right_ = true;
    Sequence sequence_ = 0;
};

TEST_F(PoolTest, CleansTheDirtiestFirstAndStoresWhereItEnded) {
    const auto a = dirty("a", 3);
    const auto b = dirty("b", 9);
    const auto c = create("c");                         // nothing in it
    make_pool({.differences = Differences::none()});
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"a", 0}));   // both are wholly dirty: by name
    EXPECT_EQ(checkpoint("a"), Offset{3});
    EXPECT_EQ(records(*a), 1);
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"b", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    append(*a, "k", "x");
    ASSERT_TRUE(a->roll());
    for (int i = 0; i < 5; ++i) append(*b, "k", "x");
    ASSERT_TRUE(b->roll());
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"b", 0}));   // five of six against one of two
    EXPECT_EQ(reports_.back().why, Why::dirty_ratio);
    EXPECT_EQ(reports_.back().stats.superseded, 5);
    const auto stats = pool_->stats();
    EXPECT_EQ(stats.passes, 3u);
    EXPECT_EQ(stats.records_superseded, 2u + 8 + 5);
    EXPECT_EQ(stats.max_dirty_percent, 83);
    EXPECT_EQ(stats.partitions.size(), 3u);
}

TEST_F(PoolTest, ACheckpointOutsideTheLogIsRepairedEvenWhenNothingIsCleaned) {
    struct Row {
        std::int64_t log_start, checkpoint, repaired;
    };
    for (const auto& row : std::vector<Row>{{0, 99, 0}, {2, 1, 2}, {2, 99, 2}, {2, 3, 3}}) {
        auto config = compacted();
        config.min_cleanable_dirty_ratio = 1;
        const auto topic = "t" + std::to_string(row.log_start) + std::to_string(row.checkpoint);
        const auto log = dirty(topic, 3, config);
        ASSERT_TRUE(log->delete_records_before(Offset{row.log_start}));
        ASSERT_TRUE(logs_->write_cleaner_checkpoint({topic, 0}, Offset{row.checkpoint}));
        EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
        EXPECT_EQ(checkpoint(topic), Offset{row.repaired}) << topic;
    }
}

TEST_F(PoolTest, TheDirtiestOfThoseThatMayBeCleaned) {
    const auto a = dirty("a", 1), b = dirty("b", 1), c = dirty("c", 1);
    make_pool({.differences = Differences::none()});
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool_->run_once().cleaned);
    int more = 0;
    for (const auto& log : {a, b, c}) {
        ++more;
        for (int i = 0; i < more; ++i) append(*log, "k", "new");
        ASSERT_TRUE(log->roll());
    }
    EXPECT_EQ(pool_->plan().front().partition, (TopicPartition{"c", 0}));
    damage(*c);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_TRUE(stats_of("c").uncleanable);
    ASSERT_TRUE(pool_->abort_and_pause({"b", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"a", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt) << "one cannot be cleaned, on the other somebody is at work";
    ASSERT_TRUE(pool_->resume({"b", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"b", 0}));
}

/// KAFKA-9826, KAFKA-9133: such a log was chosen and let go again for ever.
TEST_F(PoolTest, AFirstDirtyOffsetInsideTheActiveSegmentIsNothingToClean) {
    for (const bool records_were_deleted : {true, false}) {
        auto config = compacted();
        config.deletes = true;
        const auto topic = records_were_deleted ? "deleted" : "checkpoint";
        const auto log = create(topic, config);
        for (int i = 0; i < 200; ++i) {
            if (i == 100) {
                ASSERT_TRUE(log->roll());
            }
            append(*log, "k", std::to_string(i));
        }
        if (records_were_deleted) {
            ASSERT_TRUE(log->delete_records_before(Offset{150}));
        }
        ASSERT_TRUE(logs_->write_cleaner_checkpoint({topic, 0}, Offset{150}));
        const auto passes = pool_->stats().passes;
        for (int i = 0; i < 100; ++i) {
            clock_.advance(10ms);
            EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
        }
        EXPECT_EQ(pool_->stats().passes, passes);
        EXPECT_EQ(pool_->stats().failed_passes, 0u);
        EXPECT_EQ(checkpoint(topic), Offset{150});
        ASSERT_TRUE(log->roll());
        EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{topic, 0}));
        EXPECT_EQ(reports_.back().first_dirty, Offset{150});
        EXPECT_EQ(checkpoint(topic), Offset{200});
    }
}

TEST_F(PoolTest, BothLagsBoundACleaning) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    config.min_compaction_lag_ms = 3'600'000;
    config.max_compaction_lag_ms = 6 * 3'600'000;
    const auto log = dirty("t", 20, config);
    clock_.advance(3h);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    clock_.advance(3h + 1ms);
    for (int i = 0; i < 20; ++i) append(*log, "k", std::to_string(i));   // after the roll: not in this pass
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"t", 0}));
    EXPECT_EQ(records(*log), 1 + 20);
    clock_.advance(5h);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(records(*log), 1 + 20);
    clock_.advance(1h + 1ms);
    const auto round = pool_->run_once();
    EXPECT_EQ(round.rolled, 1u);
    EXPECT_EQ(round.cleaned, (TopicPartition{"t", 0}));
    EXPECT_EQ(records(*log), 1);
}

/// B24: offsets outside the log are put right at once, although the log is not chosen; a partition that is not there is dropped.
TEST_F(PoolTest, ACheckpointThatDoesNotFitTheLog) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    const auto log = dirty("a", 3, config);
    ASSERT_TRUE(log->delete_records_before(Offset{2}));
    for (const auto* stored : {"0\n1\na 0 1\n", "0\n1\na 0 4\n", "0\n2\na 0 99\nnobody 0 5\n"}) {
        ASSERT_TRUE(io::replace_content(files_, "/logs/cleaner-offset-checkpoint", as_bytes(stored)));
        EXPECT_EQ(pool_->run_once().cleaned, std::nullopt) << stored;
        const auto now = io::read_whole(files_, "/logs/cleaner-offset-checkpoint").value();
        EXPECT_EQ(as_text(now), "0\n1\na 0 2\n") << stored;
    }
}

/// B24: a file that cannot be right is ignored as a whole, and cleaning begins at the log start.
TEST_F(PoolTest, ACheckpointFileThatCannotBeRight) {
    int i = 0;
    for (const auto* content : {"0\n2\na 0 3\n", "0\n1\na 0", "1\n1\na 0 3\n", "0\n2\na 0 1\na 0 3\n"}) {
        const auto topic = "a" + std::to_string(i++);
        std::string text(content);
        for (auto at = text.find("a 0"); at != std::string::npos; at = text.find("a 0", at + 3)) text.replace(at, 1, topic);
        const auto log = dirty(topic, 3);
        ASSERT_TRUE(io::replace_content(files_, "/logs/cleaner-offset-checkpoint", as_bytes(text)));
        reopen(true);
        const auto again = logs_->find({topic, 0});
        ASSERT_TRUE(again) << text;
        EXPECT_EQ(checkpoint(topic), std::nullopt) << text;
        while (pool_->run_once().cleaned) {}
        EXPECT_EQ(checkpoint(topic), Offset{3}) << text;
        EXPECT_EQ(records(*again), 1) << text;
    }
}

TEST_F(PoolTest, TheGaugesFollowEachRound) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    config.max_compaction_lag_ms = 60'000;
    config.segment_ms = 3'600'000;
    const auto a = dirty("a", 3, config), b = dirty("b", 3, config), c = dirty("c", 3);
    const auto lag = [&] {
        const auto g = pool_->stats().lag;
        return std::pair{g.logs_delayed, g.max_delay_ms};
    };
    make_pool({.backoff_ms = 1000});
    ASSERT_TRUE(pool_->run_once().cleaned);             // c, by its ratio
    EXPECT_EQ(lag(), (std::pair<std::int64_t, std::int64_t>{0, 0}));
    clock_.advance(60s);
    pool_->run_once();
    EXPECT_EQ(lag(), (std::pair<std::int64_t, std::int64_t>{0, 0}));   // exactly at the lag; due, since cleaning takes time
    const auto first = reports_.back().partition;
    EXPECT_EQ(reports_.back().why, Why::deadline_near);
    clock_.advance(5ms);
    pool_->run_once();
    EXPECT_EQ(lag(), (std::pair<std::int64_t, std::int64_t>{1, 5}));
    EXPECT_NE(reports_.back().partition, first);
    EXPECT_EQ(reports_.back().why, Why::overdue);
    EXPECT_EQ(reports_.size(), 3u);
    pool_->run_once();
    EXPECT_EQ(lag(), (std::pair<std::int64_t, std::int64_t>{0, 0}));   // back to 0
    EXPECT_EQ(pool_->stats().max_compaction_delay_secs, 0);
}

TEST_F(PoolTest, KafkasGaugesAreThoseOfTheLastPasses) {
    make_pool();                                        // a map of a MiB: 43690 slots
    EXPECT_EQ(pool_->stats().cleaner_recopy_percent, 0) << "nothing was cleaned yet, and 0 is no NaN";
    EXPECT_EQ(pool_->stats().time_since_last_run_ms, 0);
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 0.4;
    const auto log = create("a", config);
    for (int i = 0; i < 900; ++i) append(*log, "k" + std::to_string(i % 450), "v");
    ASSERT_TRUE(log->roll());
    ASSERT_TRUE(pool_->run_once().cleaned);
    auto stats = pool_->stats();
    EXPECT_EQ(stats.max_dirty_percent, 100);
    EXPECT_EQ(stats.max_buffer_utilization_percent, 1); // 450 keys
    EXPECT_EQ(stats.cleaner_recopy_percent, 50);        // of 900 records of one size 450 were written
    EXPECT_EQ(stats.max_clean_time_secs, 0);
    EXPECT_EQ(stats.records_superseded, 450u);
    EXPECT_EQ(stats.passes, 1u);
    EXPECT_EQ(stats.bytes_written * 2, stats.bytes_read / 2) << "both walks read all of it";
    EXPECT_EQ(stats.io_bytes, stats.bytes_read + stats.bytes_written);
    const auto partition = stats_of("a");
    EXPECT_EQ(partition.decision.ratio(), 1.0);
    EXPECT_EQ(partition.last_pass->stats.bytes_read, 2 * partition.last_pass->stats.bytes_written);
    EXPECT_EQ(partition.last_pass->began, clock_.now());
    EXPECT_EQ(partition.progress, std::nullopt);
    clock_.advance(1234ms);
    EXPECT_EQ(pool_->stats().time_since_last_run_ms, 1234);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    stats = pool_->stats();
    EXPECT_EQ(stats.time_since_last_run_ms, 0);
    EXPECT_EQ(stats.max_dirty_percent, 0);
    EXPECT_EQ(stats.cleaner_recopy_percent, 50) << "as of the thread's last cleaning";
    ASSERT_EQ(stats.directories.size(), 1u);
    EXPECT_EQ(stats.directories[0].uncleanable_partitions, 0);
}

TEST_F(PoolTest, ARequestSaysWhenItWasDealtWith) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    const auto log = dirty("a", 3, config);
    const auto first = pool_->request({"a", 0});
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"a", 0}));
    EXPECT_EQ(stats_of("a").requests_done, first);
    EXPECT_EQ(stats_of("a").request_result, "cleaned");
    const auto second = pool_->request({"a", 0});
    EXPECT_GT(second, first);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(stats_of("a").requests_done, second);
    EXPECT_EQ(stats_of("a").request_result, "nothing to clean");
    append(*log, "k", "new");
    ASSERT_TRUE(log->roll());
    damage(*log);
    const auto third = pool_->request({"a", 0});
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(stats_of("a").requests_done, third);
    EXPECT_THAT(stats_of("a").request_result, HasSubstr("CRC"));
}

TEST_F(PoolTest, EveryRequestIsDealtWithOneARound) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    dirty("a", 3, config);
    dirty("b", 3, config);
    const auto a = pool_->request({"a", 0}), b = pool_->request({"b", 0});
    EXPECT_NE(pool_->run_once().cleaned, std::nullopt);
    EXPECT_NE(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(stats_of("a").requests_done, a);
    EXPECT_EQ(stats_of("b").requests_done, b);
    EXPECT_EQ(stats_of("a").request_result, "cleaned");
    EXPECT_EQ(stats_of("b").request_result, "cleaned");
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
}

/// B40: what DeleteRecords leaves in the first batch goes for good when that is asked for, whatever the policy.
TEST_F(PoolTest, ARequestErasesWhatLiesBelowTheLogsStart) {
    auto keeps_all = compacted();
    keeps_all.compacts = false;
    keeps_all.deletes = true;
    auto dirty_enough_never = compacted();
    dirty_enough_never.min_cleanable_dirty_ratio = 1;
    for (const auto& [topic, config] : {std::pair{"deletes", keeps_all}, std::pair{"compacts", dirty_enough_never}}) {
        SCOPED_TRACE(topic);
        const auto log = create(topic, config);
        record::BatchBuilder builder;
        for (const auto* first : {"secret-a", "kept-c"}) {
            builder.start({});
            builder.append(Offset{0}, clock_.now(), as_bytes(first), as_bytes("1"));
            builder.append(Offset{1}, clock_.now(), as_bytes(std::string{first} + "'"), as_bytes("2"));
            std::vector<std::byte> bytes;
            builder.finish(bytes);
            ASSERT_TRUE(log->append(bytes, {}));
        }
        const auto rounds = [&](const TopicPartition& partition) {
            const auto number = pool_->request(partition);
            for (int i = 0; i < 3 && pool_->run_once().cleaned; ++i) {}
            EXPECT_EQ(stats_of(topic).requests_done, number);
        };
        ASSERT_TRUE(log->delete_records_before(Offset{1}));
        rounds(log->partition());
        EXPECT_EQ(stats_of(topic).request_result, "nothing to clean") << "the active segment is left alone";
        ASSERT_TRUE(log->roll());
        EXPECT_THAT(files_with(topic, "secret-a"), testing::SizeIs(1));
        rounds(log->partition());
        EXPECT_EQ(stats_of(topic).request_result, "cleaned");
        clock_.advance(std::chrono::milliseconds{config.file_delete_delay_ms} + 1s);
        logs_->tick();
        EXPECT_THAT(files_with(topic, "secret-a'"), testing::SizeIs(1));
        EXPECT_EQ(records(*log), 3);
        EXPECT_EQ(log->log_start_offset(), Offset{1});
        EXPECT_EQ(log->log_end_offset(), Offset{4});
        const auto slice = log->read({.from = Offset{1}});
        ASSERT_TRUE(slice) << slice.error().message();
        EXPECT_GT(slice->bytes, 0);
        const auto& first = reports_.at(reports_.size() - (config.compacts ? 2 : 1));
        EXPECT_EQ(first.why, Why::erasure);
        EXPECT_EQ(first.stats.erased, 1);
        rounds(log->partition());
        EXPECT_EQ(records(*log), 3) << "again changes nothing";
    }
    EXPECT_THAT(pool_->stats().partitions, testing::SizeIs(1)) << "what is not compacted has no gauges";
}

TEST_F(PoolTest, AFailedErasureIsToldToWhoAskedAndNoMore) {
    auto config = compacted();
    config.compacts = false;
    config.deletes = true;
    const auto log = dirty("t", 3, config);
    ASSERT_TRUE(log->delete_records_before(Offset{1}));
    damage(*log);
    const auto number = pool_->request({"t", 0});
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(stats_of("t").requests_done, number);
    EXPECT_THAT(stats_of("t").request_result, HasSubstr("CRC"));
    EXPECT_EQ(pool_->stats().directories.at(0).uncleanable_partitions, 0);
    EXPECT_EQ(records(*log), 3);
}

TEST_F(PoolTest, GaugesCountLogsThatNobodyMayClean) {
    auto config = compacted();
    config.max_compaction_lag_ms = 60'000;
    config.segment_ms = 3'600'000;
    const auto held = create("held", config), paused = dirty("paused", 2, config);
    append(*held, "k", "1", {}, 7);                     // its transaction stays open
    ASSERT_TRUE(held->roll());
    ASSERT_TRUE(pool_->abort_and_pause({"paused", 0}));
    clock_.advance(61s);
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(pool_->stats().lag.logs_delayed, 2);
    EXPECT_EQ(pool_->stats().lag.max_delay_ms, 1000);
    EXPECT_EQ(stats_of("held").decision.held_by, HeldBy::open_transaction);
    EXPECT_EQ(stats_of("held").decision.held_deadline, clock_.now() - 1000);
    EXPECT_EQ(stats_of("paused").state, WorkState::paused);
    ASSERT_TRUE(pool_->resume({"paused", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"paused", 0}));
}

TEST_F(PoolTest, AnIdleTopicKeepsItsDeadlineWithoutTraffic) {
    for (const std::int64_t timestamp : {std::int64_t{-2}, std::int64_t{-1}, std::int64_t{0}, clock_.now().value + 86'400'000, clock_.now().value - 31'000'000'000}) {
        auto config = compacted();
        config.max_compaction_lag_ms = 60'000;
        config.min_cleanable_dirty_ratio = 0.99;
        config.timestamp_after_max_ms = storage::unlimited;
        const auto topic = "t" + std::to_string(timestamp);
        const auto log = create(topic, config);
        const auto when = timestamp == -2 ? std::nullopt : std::optional{Timestamp{timestamp}};
        append(*log, "x", "secret", when);
        append(*log, "x", std::nullopt, when);
        clock_.advance(61s);
        const auto round = pool_->run_once();
        EXPECT_EQ(round.rolled, 1u) << timestamp;
        EXPECT_EQ(round.cleaned, (TopicPartition{topic, 0})) << timestamp;
        EXPECT_EQ(records(*log), 1);                    // the tombstone
        clock_.advance(20s);
        EXPECT_EQ(pool_->run_once().rolled, 0u);        // nothing is left to roll
        EXPECT_EQ(pool_->stats().lag.max_delay_ms, 0);
        EXPECT_THAT(files_with(topic, "secret"), ElementsAre(HasSubstr(".log.deleted")));
        clock_.advance(40s);                            // file.delete.delay.ms since the pass
        logs_->tick();
        EXPECT_THAT(files_with(topic, "secret"), IsEmpty());
    }
}

TEST_F(PoolTest, SegmentMsRollsWithoutTrafficWhateverThePolicy) {
    LogConfig config;
    config.segment_ms = 10'000;
    const auto log = create("plain", config);
    append(*log, "a", "1", Timestamp{5});               // by the wall clock, not by the record's
    clock_.advance(10s);
    EXPECT_EQ(pool_->run_once().rolled, 0u);
    clock_.advance(15s);
    EXPECT_EQ(pool_->run_once().rolled, 1u);
    EXPECT_EQ(log->segments()->size(), 2u);
    clock_.advance(1h);
    EXPECT_EQ(pool_->run_once().rolled, 0u);            // an empty one does not roll
    append(*log, "a", "1");
    clock_.advance(11s);
    make_pool({.differences = Differences::none()});
    EXPECT_EQ(pool_->run_once().rolled, 0u);
}

TEST_F(PoolTest, AnExpiredHorizonIsReasonEnough) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 0.1;
    config.delete_retention_ms = 60'000;
    const auto log = create("t", config);
    append(*log, "a", "1");
    append(*log, "a", std::nullopt);
    append(*log, "b", "1");
    ASSERT_TRUE(log->roll());
    ASSERT_TRUE(pool_->run_once().cleaned);
    append(*log, "c", "1");
    EXPECT_EQ(records(*log), 3);
    clock_.advance(59s);
    EXPECT_FALSE(pool_->run_once().cleaned);
    clock_.advance(1s);
    clock_is_right_ = false;
    EXPECT_FALSE(pool_->run_once().cleaned);            // not by a clock that nobody trusts
    clock_is_right_ = true;
    EXPECT_TRUE(pool_->run_once().cleaned);
    EXPECT_EQ(reports_.back().why, Why::horizon);
    EXPECT_EQ(records(*log), 2);
    EXPECT_EQ(checkpoint("t"), Offset{3});
    EXPECT_EQ(pool_->stats().horizon_passes, 1u);
    EXPECT_FALSE(pool_->run_once().cleaned);
}

TEST_F(PoolTest, HorizonsOfEarlierRunsAreFoundInTheBackground) {
    auto config = compacted();
    config.delete_retention_ms = 60'000;
    {
        const auto log = create("t", config);
        append(*log, "a", std::nullopt);
        append(*log, "b", "1");
        ASSERT_TRUE(log->roll());
        ASSERT_TRUE(pool_->run_once().cleaned);
        append(*log, "c", "1");
    }
    clock_.advance(61s);
    reopen(false);
    EXPECT_FALSE(pool_->run_once().cleaned);            // looks into the segments, with nothing else to do
    EXPECT_TRUE(pool_->run_once().cleaned);
    EXPECT_EQ(reports_.back().why, Why::horizon);
    EXPECT_EQ(records(*logs_->find({"t", 0})), 2);
}

TEST_F(PoolTest, HorizonsAreRememberedOverARestart) {
    auto config = compacted();
    config.delete_retention_ms = 60'000;
    {
        const auto log = create("t", config);
        append(*log, "a", std::nullopt);
        ASSERT_TRUE(log->roll());
        ASSERT_TRUE(pool_->run_once().cleaned);
        append(*log, "c", "1");
    }
    clock_.advance(61s);
    reopen(true);
    EXPECT_TRUE(pool_->run_once().cleaned);
    EXPECT_EQ(reports_.back().why, Why::horizon);
}

TEST_F(PoolTest, APartitionThatCannotBeCleanedIsNamedAndTriedAgain) {
    const auto bad = dirty("bad", 3), good = dirty("good", 3);
    damage(*bad);
    make_pool({}, [](storage::Log& log) { return log.partition().topic == "bad" ? Result<bool>{true} : Result<bool>{false}; });
    auto round = pool_->run_once();
    EXPECT_EQ(round.cleaned, std::nullopt);
    EXPECT_EQ(round.deletions, 1u);                     // its retention goes on
    EXPECT_EQ(checkpoint("bad"), Offset{0});
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"good", 0}));
    const auto stats = pool_->stats();
    ASSERT_EQ(stats.directories.size(), 1u);
    EXPECT_EQ(stats.directories[0].uncleanable_partitions, 1);
    EXPECT_EQ(stats.directories[0].uncleanable_bytes, bad->segments()->front()->bytes());
    ASSERT_TRUE(stats_of("bad").uncleanable);
    EXPECT_THAT(stats_of("bad").uncleanable->reason, HasSubstr("CRC"));
    damage(*bad);                                       // whole again
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    clock_.advance(60s);
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"bad", 0}));
    EXPECT_EQ(pool_->stats().directories[0].uncleanable_partitions, 0);
    EXPECT_FALSE(stats_of("bad").uncleanable);
}

TEST_F(PoolTest, EveryPartitionThatCannotBeCleanedCounts) {
    const auto a = dirty("a", 3), b = dirty("b", 5), c = dirty("c", 3);
    damage(*a);
    damage(*b);
    for (int i = 0; i < 3; ++i) pool_->run_once();
    EXPECT_EQ(records(*c), 1);
    const auto directory = [&] { return pool_->stats().directories.at(0); };
    EXPECT_EQ(directory().uncleanable_partitions, 2);
    EXPECT_EQ(directory().uncleanable_bytes, a->segments()->front()->bytes() + b->segments()->front()->bytes());
    const auto left = b->segments()->front()->bytes();
    ASSERT_TRUE(pool_->abort_and_pause({"a", 0}));
    ASSERT_TRUE(logs_->remove({"a", 0}));
    pool_->removed({"a", 0});
    ASSERT_TRUE(pool_->resume({"a", 0}));
    EXPECT_EQ(directory().uncleanable_partitions, 1);
    EXPECT_EQ(directory().uncleanable_bytes, left);
    EXPECT_EQ(pool_->partition({"a", 0}), std::nullopt) << "nothing is told of what is gone";
    pool_->run_once();
    EXPECT_EQ(pool_->partition({"a", 0}), std::nullopt);
    const auto again = dirty("a", 2);
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"a", 0})) << "its successor has no such mark";
    EXPECT_FALSE(stats_of("a").uncleanable);
}

TEST_F(PoolTest, ALogOfWhichNothingCanBeDecidedIsNamed) {
    dirty("t", 3);
    dirty("u", 3);
    reopen(true);                                       // what it knew of the first batch is forgotten
    std::array<std::byte, 4> size;
    store_be(size.data(), std::int32_t{1});
    ASSERT_TRUE(files_.open("/logs/t-0/00000000000000000000.log", io::OpenMode::read_write).value()->write(FilePosition{8}, size));
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"u", 0})) << "the others are cleaned";
    for (int i = 0; i < 5; ++i) EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(pool_->stats().failed_passes, 1u) << "not tried in every round";
    ASSERT_EQ(pool_->stats().directories.size(), 1u);
    EXPECT_EQ(pool_->stats().directories[0].uncleanable_partitions, 1);
    ASSERT_TRUE(stats_of("t").uncleanable);
    EXPECT_THAT(stats_of("t").uncleanable->reason, HasSubstr("00000000000000000000.log"));
    const auto request = pool_->request({"t", 0});
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    EXPECT_EQ(stats_of("t").requests_done, request) << "whoever asked is told";
    EXPECT_EQ(stats_of("t").request_result, stats_of("t").uncleanable->reason);
    EXPECT_EQ(pool_->stats().failed_passes, 2u);
}

TEST_F(PoolTest, RetentionAndCleaningKeepOutOfEachOthersWay) {
    const auto log = dirty("t", 3, LogConfig{});
    ASSERT_TRUE(pool_->pause_if_idle({"t", 0}));        // retention is at work when the policy changes
    log->set_config(std::make_shared<const LogConfig>(compacted()));
    EXPECT_EQ(pool_->run_once().cleaned, std::nullopt);
    ASSERT_TRUE(pool_->resume({"t", 0}));
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"t", 0}));
    EXPECT_EQ(stats_of("t").state, std::nullopt);
}

TEST_F(PoolTest, DeletionIsAskedOfCompactedLogsOnly) {
    std::vector<std::string> asked;
    make_pool({.differences = Differences::none()}, [&](storage::Log& log) {
        asked.push_back(log.partition().topic);
        return Result<bool>{false};
    });
    create("delete", LogConfig{});
    create("compact");
    auto both = compacted();
    both.deletes = true;
    create("both", both);
    pool_->run_once();
    EXPECT_THAT(asked, testing::UnorderedElementsAre("compact", "both"));
    damage(*dirty("bad", 3));
    pool_->run_once();
    asked.clear();
    pool_->run_once();
    EXPECT_THAT(asked, testing::UnorderedElementsAre("compact", "both")) << "as in Kafka, not of what cannot be cleaned";
}

TEST_F(PoolTest, ChangedSettingsAndARequestAreWorthAnotherTry) {
    const auto log = dirty("t", 3);
    damage(*log);
    EXPECT_FALSE(pool_->run_once().cleaned);
    damage(*log);
    EXPECT_FALSE(pool_->run_once().cleaned);
    damage(*log);
    auto config = compacted();
    config.delete_retention_ms = 5;
    log->set_config(std::make_shared<const LogConfig>(config));
    EXPECT_FALSE(pool_->run_once().cleaned);
    EXPECT_EQ(stats_of("t").uncleanable->failures, 2);
    EXPECT_EQ(stats_of("t").uncleanable->retry_in_ms, 120'000);
    damage(*log);
    EXPECT_FALSE(pool_->run_once().cleaned);
    pool_->request({"t", 0});
    EXPECT_TRUE(pool_->run_once().cleaned);
    EXPECT_TRUE(reports_.back().requested);
}

TEST_F(PoolTest, ARequestDoesNotAskForTheRatio) {
    auto config = compacted();
    config.min_cleanable_dirty_ratio = 1;
    const auto log = dirty("t", 3, config);
    EXPECT_FALSE(pool_->run_once().cleaned);
    pool_->request({"t", 0});
    EXPECT_TRUE(pool_->run_once().cleaned);
    EXPECT_EQ(records(*log), 1);
    pool_->request({"t", 0});
    EXPECT_FALSE(pool_->run_once().cleaned);            // nothing is dirty any more
}

TEST_F(PoolTest, KafkaPassesOverWhatFailedUntilTheNextStart) {
    const auto log = dirty("t", 3);
    damage(*log);
    make_pool({.differences = Differences::none()}, [](storage::Log&) { return Result<bool>{true}; });
    EXPECT_EQ(pool_->run_once().deletions, 0u);
    damage(*log);
    clock_.advance(24h);
    EXPECT_FALSE(pool_->run_once().cleaned);
}

TEST_F(PoolTest, RetentionOfCompactedLogsRunsHere) {
    retention::Scheduler retention(*logs_, clock_, {});
    make_pool({}, [&](storage::Log& log) { return retention.apply(log); });
    auto config = compacted();
    config.deletes = true;
    config.retention_ms = 10'000;
    const auto log = dirty("t", 3, config);
    ASSERT_TRUE(pool_->run_once().cleaned);
    clock_.advance(11s);
    EXPECT_EQ(pool_->run_once().deletions, 1u);
    EXPECT_EQ(log->log_start_offset(), Offset{3});
    EXPECT_EQ(log->segments()->size(), 1u);
    for (int i = 0; i < 3; ++i) append(*log, "k", std::to_string(i));
    ASSERT_TRUE(log->roll());
    EXPECT_TRUE(pool_->run_once().cleaned);             // and cleaning goes on above
}

/// KAFKA-9826, KAFKA-9133: "nothing" was read as "that segment", picked and thrown away in a loop.
TEST_F(PoolTest, ACheckpointInsideTheActiveSegmentStartsNothing) {
    for (const bool deleted_by_request : {true, false}) {
        auto config = compacted();
        config.deletes = true;
        config.max_compaction_lag_ms = 500;
        const auto topic = deleted_by_request ? "deleted" : "checkpointed";
        const auto log = create(topic, config);
        ASSERT_TRUE(log->truncate_fully_and_start_at(Offset{100}));
        for (int i = 0; i < 100; ++i) append(*log, "k" + std::to_string(i), "v");
        ASSERT_TRUE(logs_->write_cleaner_checkpoint({topic, 0}, Offset{150}));
        if (deleted_by_request) {
            ASSERT_TRUE(log->delete_records_before(Offset{150}));
        }
        CleanerOptions kafkas;
        kafkas.differences = Differences::none();           // nobody rolls an idle segment
        make_pool(kafkas);
        reports_.clear();
        for (int i = 0; i < 20; ++i) {
            clock_.advance(50ms);
            EXPECT_FALSE(pool_->run_once().cleaned);
        }
        EXPECT_THAT(reports_, IsEmpty());
        EXPECT_EQ(checkpoint(topic), Offset{150}) << "and it stays what it was";
        EXPECT_EQ(stats_of(topic).decision.cleanable_bytes, 0);
        ASSERT_TRUE(log->roll());
        EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{topic, 0}));
        ASSERT_EQ(reports_.size(), 1u);
        EXPECT_EQ(reports_[0].first_dirty, Offset{150});
        EXPECT_EQ(checkpoint(topic), Offset{200});
    }
}

TEST_F(PoolTest, TruncationAndDeletionReachTheCheckpoint) {
    const auto log = dirty("t", 5);
    ASSERT_TRUE(pool_->run_once().cleaned);
    EXPECT_EQ(checkpoint("t"), Offset{5});
    ASSERT_TRUE(pool_->truncated({"t", 0}, Offset{9}));
    EXPECT_EQ(checkpoint("t"), Offset{5});              // only ever lower
    ASSERT_TRUE(pool_->truncated({"t", 0}, Offset{2}));
    EXPECT_EQ(checkpoint("t"), Offset{2});
    ASSERT_TRUE(logs_->remove({"t", 0}));
    pool_->removed({"t", 0});
    EXPECT_EQ(checkpoint("t"), std::nullopt);
    EXPECT_THAT(pool_->plan(), testing::IsEmpty());
}

TEST_F(PoolTest, ThePlanIsTheSameDecision) {
    auto config = compacted();
    config.max_compaction_lag_ms = 60'000;
    config.min_cleanable_dirty_ratio = 1;
    const auto late = dirty("late", 3, config);
    clock_.advance(61s);
    const auto dirtier = dirty("dirty", 9), idle = dirty("idle", 3, config);
    const auto plan = pool_->plan();
    ASSERT_EQ(plan.size(), 3u);
    EXPECT_EQ(plan[0].partition.topic, "late");
    EXPECT_EQ(plan[0].why, Why::overdue);
    EXPECT_EQ(plan[1].partition.topic, "dirty");
    EXPECT_EQ(plan[1].why, Why::dirty_ratio);
    EXPECT_EQ(plan[2].why, std::nullopt);
    EXPECT_EQ(plan[2].decision.deadline, clock_.now() + 60'000);
    EXPECT_EQ(records(*late), 3);                       // nothing happened
    EXPECT_EQ(pool_->run_once().cleaned, plan[0].partition);
}

TEST_F(PoolTest, ThreadsCleanByThemselvesAndTakeNewSettings) {
    const auto a = dirty("a", 3), b = dirty("b", 3);
    make_pool({.threads = 2, .backoff_ms = 1});
    pool_->start();
    const auto until = [&](auto condition) {
        for (int i = 0; i < 5000 && !condition(); ++i) std::this_thread::sleep_for(1ms);
        return condition();
    };
    EXPECT_TRUE(until([&] { return checkpoint("a") == Offset{3} && checkpoint("b") == Offset{3}; }));
    auto options = *pool_->options();
    options.threads = 1;
    options.io_buffer_bytes = 4096;
    pool_->reconfigure(options);
    append(*a, "k", "new");
    ASSERT_TRUE(a->roll());
    EXPECT_TRUE(until([&] { return checkpoint("a") == Offset{4}; }));
    ASSERT_TRUE(pool_->abort_and_pause({"b", 0}));
    append(*b, "k", "new");
    ASSERT_TRUE(b->roll());
    append(*a, "k", "newer");
    ASSERT_TRUE(a->roll());
    EXPECT_TRUE(until([&] { return checkpoint("a") == Offset{5}; }));
    EXPECT_EQ(checkpoint("b"), Offset{3});
    ASSERT_TRUE(pool_->resume({"b", 0}));
    EXPECT_TRUE(until([&] { return checkpoint("b") == Offset{4}; }));
    pool_->stop();
    EXPECT_EQ(pool_->stats().dead_threads, 0);
}

TEST_F(PoolTest, WithoutThreadsTheGaugesAreZeroUntilThereAreSome) {
    const auto log = dirty("t", 3);
    make_pool({.threads = 0, .backoff_ms = 1});
    pool_->start();
    const auto stats = pool_->stats();
    EXPECT_EQ(stats.max_buffer_utilization_percent, 0);
    EXPECT_EQ(stats.cleaner_recopy_percent, 0);
    EXPECT_EQ(stats.max_clean_time_secs, 0);
    EXPECT_EQ(stats.max_compaction_delay_secs, 0);
    EXPECT_EQ(stats.dead_threads, 0);
    EXPECT_EQ(stats.max_dirty_percent, 0);
    auto options = *pool_->options();
    options.threads = 1;
    pool_->reconfigure(options);
    for (int i = 0; i < 5000 && pool_->stats().passes == 0; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(pool_->stats().passes, 1u);
    EXPECT_GT(pool_->stats().cleaner_recopy_percent, 0);
    pool_->stop();
}

TEST_F(PoolTest, ANewRateReachesAPassThatWaits) {
    dirty("a", 3);
    make_pool({.io_bytes_per_second_max = 0.001, .backoff_ms = 1});
    EXPECT_EQ(pool_->run_once().cleaned, (TopicPartition{"a", 0})) << "within the first period nobody waits";
    dirty("b", 3);
    clock_.advance(301ms);
    const auto before = pool_->stats().io_bytes;
    pool_->start();
    for (int i = 0; i < 5000 && pool_->stats().io_bytes == before; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_GT(pool_->stats().io_bytes, before);
    EXPECT_EQ(checkpoint("b"), std::nullopt) << "it waits for an hour that does not pass";
    auto options = *pool_->options();
    options.io_bytes_per_second_max = 1e12;
    pool_->reconfigure(options);
    for (int i = 0; i < 5000 && checkpoint("b") != Offset{3}; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(checkpoint("b"), Offset{3});
    pool_->stop();
}

TEST_F(PoolTest, AThreadThatDiedIsRevived) {
    const auto log = dirty("t", 3);
    std::atomic<int> calls = 0;
    make_pool({.backoff_ms = 1}, [&](storage::Log&) -> Result<bool> {
        if (++calls == 1) throw std::bad_alloc();
        return false;
    });
    pool_->start();
    for (int i = 0; i < 5000 && pool_->stats().revived_threads == 0; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(pool_->stats().revived_threads, 1u);
    // The partition that it worked on is not lost for ever.
    append(*log, "k", "new");
    ASSERT_TRUE(log->roll());
    for (int i = 0; i < 5000 && checkpoint("t") != Offset{4}; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(checkpoint("t"), Offset{4});
    pool_->stop();
}

}  // namespace
}  // namespace tidemark::cleaner
