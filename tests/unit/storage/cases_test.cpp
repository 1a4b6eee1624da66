// Situations in which brokers like this one went wrong in public, with the values that are right. Each test says which.
#include <random>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "storage/checkpoint.h"
#include "storage/log_manager.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

using test::StorageLog;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LogConfig small_indexes() {
    LogConfig config;
    config.index_interval_bytes = 100;
    config.segment_index_bytes = 1000;
    config.timestamp_after_max_ms = unlimited;
    return config;
}

std::vector<std::byte> batch_of(const record::BatchOptions& options, const std::vector<std::int64_t>& timestamps) {
    record::BatchBuilder builder;
    builder.start(options);
    auto offset = options.base_offset;
    for (const auto t : timestamps) {
        builder.append(offset, Timestamp{t}, as_bytes("k"), as_bytes("v"));
        ++offset;
    }
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

/// (offset, timestamp) of a lookup; (-1, -1) for nothing.
using Found = std::pair<std::int64_t, std::int64_t>;
Found found(const Result<std::optional<FoundOffset>>& result) {
    EXPECT_TRUE(result) << result.error().message();
    return result && *result ? Found{(*result)->offset.value, (*result)->timestamp.value} : Found{-1, -1};
}
Found at_time(const StorageLog& log, std::int64_t t, Isolation isolation = Isolation::read_uncommitted) {
    return found(const_cast<StorageLog&>(log)->offset_for_time(Timestamp{t}, isolation));
}

void append_to_file(StorageLog& log, const std::string& name, const std::vector<std::byte>& more) {
    const auto file = log.files().open(io::join(log.path(), name), io::OpenMode::read_write).value();
    ASSERT_TRUE(file->write(FilePosition{file->size().value()}, more));
}

std::string file_of(std::int64_t base, FileKind kind) { return segment_file_name(Offset{base}, kind); }

// --- time index and lookups --------------------------------------------------------------------------------------------

TEST(Case, B01_ZerosBehindATimeIndexMakeNothingOld) {
    for (const std::size_t zeros : {12, 24, 120, 996}) {
        SCOPED_TRACE(zeros);
        StorageLog log{{.config = small_indexes()}};
        log.append("a=1@10 a=2@20 | b=1@30 | c=1@40");
        ASSERT_TRUE(log->close());
        append_to_file(log, file_of(0, FileKind::time_index), std::vector<std::byte>(zeros));
        log.open_again(true);
        const auto first = log->segments()->front();
        EXPECT_EQ(first->largest_timestamp().value().value, log.start + 20);
        EXPECT_EQ(at_time(log, log.start.value + 15), Found(1, log.start.value + 20));
        EXPECT_EQ(at_time(log, log.start.value + 21), Found(2, log.start.value + 30));
        EXPECT_EQ(log.directory().open_files().indexes_rebuilt(), 1u) << "counted once";
    }
}

TEST(Case, B04_ALargestTimestampThatTheClientLeftOutOrInvented) {
    for (const auto codec : {record::Codec::none, record::Codec::gzip}) {
        for (const std::int64_t claimed : {-1, 0, 999'999}) {
            SCOPED_TRACE(claimed);
            StorageLog log{{.config = small_indexes()}};
            auto batch = batch_of({.codec = codec, .producer_id = 5, .producer_epoch = 0, .base_sequence = 0}, {1000, 5000, 3000});
            store_be(batch.data() + 35, claimed);
            store_be(batch.data() + 17, crc32c(Bytes(batch).subspan(21)));
            ASSERT_TRUE(log.append_as_client(batch));
            EXPECT_EQ(at_time(log, 4000), Found(1, 5000));
            EXPECT_EQ(found(log->offset_of_max_timestamp(Isolation::read_uncommitted)), Found(1, 5000));
            EXPECT_EQ(log->segments()->front()->largest_timestamp().value().value, Timestamp{5000});
            EXPECT_EQ(log->producers().front().last_timestamp, Timestamp{5000});
            const auto file = log->segments()->front()->file().value();
            std::vector<std::byte> stored(batch.size());
            ASSERT_TRUE(file->read(FilePosition{0}, stored));
            const auto view = record::BatchView::parse(stored).value();
            EXPECT_EQ(view.max_timestamp(), Timestamp{5000});
            EXPECT_TRUE(view.crc_matches());
        }
    }
}

TEST(Case, B07_TimestampsFarApartInOneSegment) {
    constexpr std::int64_t day = 86'400'000, far = 253'402'214'400'000;  // 9999-12-31
    auto config = small_indexes();
    config.segment_ms = unlimited;
    StorageLog log{{.config = config, .verify_at_end = false}};
    const auto now = log.start.value;
    const std::vector<std::int64_t> times = {now, now - 40 * day, now + day, 0, far, now};
    for (const auto t : times) {
        auto batch = batch_of({}, {t});
        ASSERT_TRUE(log.append_as_client(batch));
    }
    const auto compare = [&](std::size_t records) {
        for (const auto t : {std::int64_t{0}, now - 41 * day, now - 40 * day, now, now + 1, now + day, now + day + 1, far, far + 1}) {
            Found expected{-1, -1};
            for (std::size_t i = 0; i < records && expected.first < 0; ++i) {
                if (times[i] >= t) expected = {static_cast<std::int64_t>(i), times[i]};
            }
            EXPECT_EQ(at_time(log, t), expected) << t;
        }
        const auto& segment = *log->segments()->front();
        EXPECT_EQ(segment.largest_timestamp().value().value.value, *std::max_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(records)));
    };
    compare(6);
    log.reopen();
    compare(6);
    // The last two batches go, the largest timestamp with them.
    ASSERT_TRUE(log->close());
    const auto one = static_cast<std::int64_t>(batch_of({}, {now}).size());
    ASSERT_TRUE(log.files().open(io::join(log.path(), file_of(0, FileKind::log)), io::OpenMode::read_write).value()->resize(6 * one - one - 5));
    log.open_again(false);
    EXPECT_EQ(log->log_end_offset(), Offset{4});
    compare(4);
    ASSERT_TRUE(log->close());
    const auto index = io::read_whole(log.files(), io::join(log.path(), file_of(0, FileKind::time_index))).value();
    ASSERT_EQ(index.size() % 12, 0u);
    for (std::size_t at = 12; at < index.size(); at += 12) {
        EXPECT_LT(load_be<std::int64_t>(index.data() + at - 12), load_be<std::int64_t>(index.data() + at));
    }
}

TEST(Case, B09_ReadCommittedLookupsStopAtTheLastStableOffset) {
    StorageLog log{{.config = small_indexes()}};
    log.append("[a=0@0 a=1@1 a=2@2 a=3@3 a=4@4]");
    log.append_in_transaction(7, "[b=5@50 b=6@60 b=7@70]");
    const auto time = log.start.value + 60;
    EXPECT_EQ(log->latest_offset(Isolation::read_committed).offset, Offset{5});
    EXPECT_EQ(at_time(log, time, Isolation::read_committed), Found(-1, -1));
    EXPECT_EQ(log->latest_offset(Isolation::read_uncommitted).offset, Offset{8});
    EXPECT_EQ(at_time(log, time), Found(6, time));
    log.commit(7);
    for (const auto isolation : {Isolation::read_committed, Isolation::read_uncommitted}) {
        EXPECT_EQ(log->latest_offset(isolation).offset, Offset{9});
        EXPECT_EQ(at_time(log, time, isolation), Found(6, time));
    }
}

TEST(Case, B10_TheFirstRecordWithTheLargestTimestamp) {
    auto config = small_indexes();
    StorageLog empty{{.config = config}};
    EXPECT_EQ(found(empty->offset_of_max_timestamp(Isolation::read_uncommitted)), Found(-1, -1));
    for (const auto target : {record::Codec::none, record::Codec::gzip, record::Codec::snappy, record::Codec::lz4, record::Codec::zstd}) {
        config.compression.codec = target;  // recompressed where it is not the sender's
        StorageLog log{{.codec = record::Codec::lz4, .config = config}};
        log.append("[a=1@0 a=2@9 a=3@5] b=1@9");
        EXPECT_EQ(found(log->offset_of_max_timestamp(Isolation::read_uncommitted)), Found(1, log.start.value + 9));
    }
    config.compression.codec.reset();
    config.timestamp_type = record::TimestampType::log_append_time;
    // Compaction took the record with the largest timestamp: the largest of those that are left.
    StorageLog cleaned{{.config = small_indexes()}};
    cleaned.append("a=1@0 b=1@9 c=1@5 | a=2@3");
    const auto survivors = cleaned->create_cleaned_segment(Offset{0}).value();
    ASSERT_TRUE(survivors->append(batch_of({.base_offset = Offset{2}}, {cleaned.start.value + 5})));
    ASSERT_TRUE(survivors->finish_cleaned(cleaned.clock.now()));
    ASSERT_TRUE(cleaned->replace_segments({survivors}, {cleaned->segments()->front()}));
    EXPECT_EQ(found(cleaned->offset_of_max_timestamp(Isolation::read_uncommitted)), Found(2, cleaned.start.value + 5));
    StorageLog broker_time{{.config = config}};
    broker_time.append("[a=1@5 a=2@9 a=3@7]");
    EXPECT_EQ(found(broker_time->offset_of_max_timestamp(Isolation::read_uncommitted)), Found(0, broker_time.clock.now().value));
}

TEST(Case, B12_OldDataWithoutTimeIndexesOpensUnread) {
    auto config = small_indexes();
    config.segment_bytes = 150;
    StorageLog log{{.config = config}};
    std::vector<std::int64_t> times;
    for (int i = 0; i < 400; ++i) {
        const bool oldest = i < 100;
        const auto t = oldest ? -1 : log.start.value + (i * 37) % 211;
        times.push_back(t);
        ASSERT_TRUE(log.append_batch(batch_of({.magic = static_cast<std::int8_t>(oldest ? 0 : i % 3 == 0 ? 2 : 1), .base_offset = Offset{i}}, {t})));
    }
    ASSERT_GE(log->segments()->size(), 100u);
    ASSERT_TRUE(log->close());
    for (const auto& name : log.file_names()) {
        if (!name.ends_with(".timeindex")) continue;
        ASSERT_TRUE(log.files().remove(io::join(log.path(), name)));
    }
    log.open_again(true);
    EXPECT_EQ(log.last_recovery.record_bytes_read, 0);
    EXPECT_EQ(log.last_recovery.segments_recovered, 0);
    for (const std::int64_t t : {0, 1, 100, 150, 200, 210, 211}) {
        Found expected{-1, -1};
        for (std::size_t i = 0; i < times.size() && expected.first < 0; ++i) {
            if (times[i] >= log.start.value + t) expected = {static_cast<std::int64_t>(i), times[i]};
        }
        EXPECT_EQ(at_time(log, log.start.value + t), expected);
    }
    const auto& oldest = *log->segments()->front();
    (void)oldest.largest_timestamp();  // asks for the index
    log->run_background_work();
    EXPECT_EQ(oldest.largest_timestamp().value().source, LargestTimestamp::Source::file_time);
    EXPECT_EQ(oldest.largest_timestamp().value().value, oldest.modified().value());
}

// --- ends, gaps and starts ---------------------------------------------------------------------------------------------

TEST(Case, B16_AnEmptyBatchHoldsTheEndOfTheLog) {
    StorageLog log{{.config = small_indexes()}};
    log.append("a=1 b=1");
    std::vector<std::byte> empty;
    record::write_empty_batch(record::BatchView::parse(batch_of({.base_offset = Offset{2}}, {1, 2, 3})).value(), empty);
    ASSERT_TRUE(log.append_batch(empty));
    ASSERT_TRUE(log->roll());
    EXPECT_EQ(log->log_end_offset(), Offset{5});
    EXPECT_EQ(log.read(Offset{2}), "[2..4]");
    log.directory().run_background();
    ASSERT_TRUE(log.files().remove(io::join(log.path(), file_of(5, FileKind::log))));
    log.crash_and_reopen();
    EXPECT_EQ(log->log_end_offset(), Offset{5});
    EXPECT_EQ(log.text(), "0:a=1 1:b=1 [2..4]");
}

TEST(Case, B40_TheLogStartInTheMiddleOfABatch) {
    ManualClock clock;
    io::MemoryFileSystem files{io::MemoryOptions{.clock = &clock}};
    StorageOptions options;
    options.log_dirs = {"/a"};
    options.reserve_bytes = 0;
    const TopicPartition partition{"t", 0};
    const auto config = std::make_shared<LogConfig>(small_indexes());
    const auto start = [&] {
        auto manager = LogManager::open(files, clock, options, {.cluster_id = "c"}).value();
        EXPECT_TRUE(manager->load([&](const FoundLog&) { return config; }));
        return manager;
    };
    auto manager = start();
    auto log = manager->create(partition, Uuid::of(9), config).value();
    auto batch = batch_of({}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    ASSERT_TRUE(log->append(batch, {}));
    ASSERT_TRUE(log->delete_records_before(Offset{4}));
    for (int stop = 0; stop < 2; ++stop) {
        const auto slice = log->read({.from = Offset{4}});
        ASSERT_TRUE(slice);
        EXPECT_EQ(slice->position, FilePosition{0}) << "the whole batch: the client leaves out what it did not ask for";
        EXPECT_EQ(slice->bytes, static_cast<std::int64_t>(batch.size()));
        EXPECT_EQ(log->read({.from = Offset{3}}).error().code, Errc::offset_out_of_range);
        EXPECT_EQ(log->earliest_offset().offset, Offset{4});
        log.reset();
        manager.reset();  // without a clean stop
        manager = start();
        log = manager->find(partition);
    }
}

TEST(Case, B42_TheLogStartMovesBetweenPlanningAndReading) {
    StorageLog log{{.config = small_indexes()}};
    log.append("a=1 a=2 | b=1");
    const auto slice = log->read({.from = Offset{0}}).value();
    ASSERT_TRUE(log->delete_oldest_segments(1, "test"));
    log.clock.advance(std::chrono::hours{1});
    log.directory().run_background();
    std::vector<std::byte> bytes(static_cast<std::size_t>(slice.bytes));
    EXPECT_EQ(slice.file->read(slice.position, bytes).value(), bytes.size());
    EXPECT_EQ(test::text_of(bytes, log.start), "0:a=1 1:a=2");
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::offset_out_of_range);
    EXPECT_EQ(log.read(log->earliest_offset().offset), "2:b=1");
}

TEST(Case, B63_AGapAtTheEndOfASegment) {
    StorageLog log{{.config = small_indexes()}};
    const auto put = [&](std::int64_t from, std::size_t records) { ASSERT_TRUE(log.append_batch(batch_of({.base_offset = Offset{from}}, std::vector<std::int64_t>(records, 1)))); };
    put(0, 4);
    put(4, 4);
    std::vector<std::byte> empty;
    record::write_empty_batch(record::BatchView::parse(batch_of({.base_offset = Offset{8}}, {1, 2})).value(), empty);
    ASSERT_TRUE(log.append_batch(empty));
    ASSERT_TRUE(log->roll());
    put(10, 2);
    ASSERT_TRUE(log->roll());
    // The cleaner takes the empty batch, and all of a segment in between.
    const auto segments = *log->segments();
    const auto cleaned = log->create_cleaned_segment(Offset{0}).value();
    ASSERT_TRUE(cleaned->append(batch_of({.base_offset = Offset{0}}, {1, 1, 1, 1})));
    ASSERT_TRUE(cleaned->append(batch_of({.base_offset = Offset{4}}, {1, 1, 1, 1})));
    ASSERT_TRUE(cleaned->finish_cleaned(log.clock.now()));
    ASSERT_TRUE(log->replace_segments({cleaned}, {segments[0]}));
    for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{1} << 20}) {
        for (const auto from : {Offset{8}, Offset{9}}) {
            const auto slice = log->read({.from = from, .bytes_max = limit}).value();
            ASSERT_GT(slice.bytes, 0);
            EXPECT_EQ(slice.segment->base_offset(), Offset{10});
        }
    }
    const auto nothing = log->create_cleaned_segment(Offset{10}).value();
    ASSERT_TRUE(nothing->finish_cleaned(log.clock.now()));
    ASSERT_TRUE(log->replace_segments({nothing}, {segments[1]}));
    EXPECT_EQ(log->read({.from = Offset{8}}).value().bytes, 0) << "the active segment is empty: the true end";
    put(12, 1);
    EXPECT_EQ(log->read({.from = Offset{8}}).value().segment->base_offset(), Offset{12}) << "over an empty segment";
}

// --- recovery ----------------------------------------------------------------------------------------------------------

TEST(Case, B43_WhatAnInterruptedSwapLeaves) {
    const auto swap = suffix_text(FileSuffix::swap);
    const auto prepared = [&](StorageLog& log) {
        log.append("a=1 a=2 | b=1 | c=1 c=2");
        EXPECT_TRUE(log->close());
    };
    const auto put = [](StorageLog& log, const std::string& name, Bytes content) {
        ASSERT_TRUE(io::replace_content(log.files(), io::join(log.path(), name), content));
    };
    const auto survivors = batch_of({.base_offset = Offset{0}, .last_offset = Offset{2}}, {1});
    {
        StorageLog log{{.config = small_indexes()}};  // a stray `.cleaned`: as before
        prepared(log);
        put(log, file_of(0, FileKind::log) + ".cleaned", survivors);
        log.open_again(true);
        EXPECT_EQ(log.text(), "0:a=1 1:a=2 | 2:b=1 | 3:c=1 4:c=2");
    }
    for (const int originals : {2, 1, 0}) {  // a complete `.swap` beside all, some and none of what it replaces: as after
        SCOPED_TRACE(originals);
        StorageLog log{{.config = small_indexes()}};
        prepared(log);
        put(log, file_of(0, FileKind::log) + std::string(swap), survivors);
        if (originals < 2) {
            ASSERT_TRUE(log.files().remove(io::join(log.path(), file_of(0, FileKind::log))));
        }
        if (originals < 1) {
            ASSERT_TRUE(log.files().remove(io::join(log.path(), file_of(2, FileKind::log))));
        }
        log.open_again(true);
        EXPECT_EQ(log->log_end_offset(), Offset{5});
        EXPECT_EQ(log->segments()->size(), 2u);
        EXPECT_EQ(log.read(Offset{3}), "3:c=1 4:c=2");
        (void)log.read(Offset{0});  // makes the missing indexes
        (void)at_time(log, 1);
        EXPECT_THAT(log.file_names(), testing::Not(testing::Contains(HasSubstr("swap"))));
    }
    {
        // A pass that left nothing of its segment: an empty one, without indexes until they are needed.
        StorageLog log{{.config = small_indexes(), .verify_at_end = false}};
        prepared(log);
        put(log, file_of(2, FileKind::log) + std::string(swap), {});
        log.open_again(true);
        EXPECT_EQ(log.text(), "0:a=1 1:a=2 | | 3:c=1 4:c=2");
    }
}

class Directories : public testing::Test {
protected:
    ManualClock clock;
    io::MemoryFileSystem files{io::MemoryOptions{.clock = &clock}};
    StorageOptions options;
    std::shared_ptr<LogConfig> config = std::make_shared<LogConfig>(small_indexes());
    std::unique_ptr<LogManager> manager;
    LoadReport report;

    void SetUp() override {
        options.log_dirs = {"/a"};
        options.reserve_bytes = 0;
        options.recovery_threads_per_dir = 1;
    }
    Result<> start() {
        manager.reset();
        TM_TRY(manager, LogManager::open(files, clock, options, {.cluster_id = "c"}));
        TM_TRY(report, manager->load([&](const FoundLog&) { return config; }));
        return {};
    }
    std::shared_ptr<Log> log(const std::string& topic, std::int32_t partition = 0) { return manager->create({topic, partition}, Uuid::of(9), config).value(); }
    static void append(Log& log, LeaderEpoch epoch = 0) {
        auto batch = batch_of({}, {1'700'000'000'000});
        ASSERT_TRUE(log.append(batch, {.leader_epoch = epoch}));
    }
};

TEST_F(Directories, B45_TornSmallFilesMeanUnknown) {
    ASSERT_TRUE(start());
    append(*log("t"), 0);
    append(*log("t"), 3);
    ASSERT_TRUE(log("t")->delete_records_before(Offset{1}));
    ASSERT_TRUE(manager->close(1));
    const std::vector<std::string> bad = {"", "0\n", "0\n2\nt 0 1\n", "0\n1\nt 0 x\n", "1\n1\nt 0 1\n", "0\n1\nt 0 1\nt 0 1\n", std::string(40, '\0')};
    for (const auto* file : {"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint", "t-0/leader-epoch-checkpoint",
                             "t-0/partition.metadata", ".kafka_cleanshutdown", "tidemark-segments"}) {
        for (const auto& content : bad) {
            SCOPED_TRACE(std::string(file) + ": " + content);
            ASSERT_TRUE(io::replace_content(files, io::join("/a", file), as_bytes(content)));
            const auto started = start();
            ASSERT_TRUE(started) << started.error().message();
            EXPECT_EQ(report.failed, 0u);
            EXPECT_EQ(log("t")->log_end_offset(), Offset{2});
            ASSERT_TRUE(manager->close(1));
        }
    }
    ASSERT_TRUE(files.remove("/a/.kafka_cleanshutdown"));
    ASSERT_TRUE(io::replace_content(files, "/a/t-0/leader-epoch-checkpoint", as_bytes("0\n9\n")));
    ASSERT_TRUE(start());
    EXPECT_EQ(log("t")->end_of_epoch(0), (EpochEnd{0, Offset{1}})) << "epochs come from the batches that are recovered";
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(io::replace_content(files, "/a/meta.properties", as_bytes("version=1\n")));
    EXPECT_THAT(start().error().message(), HasSubstr("meta.properties"));
}

TEST_F(Directories, B46_AStartReadsNoMoreThanItMust) {
    config->segment_bytes = 200;
    ASSERT_TRUE(start());
    for (int p = 0; p < 20; ++p) {
        for (int i = 0; i < 10; ++i) append(*log("t", p));
    }
    manager->tick();
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(start());
    EXPECT_EQ(report.record_bytes_read, 0) << "a clean stop";

    for (int p = 0; p < 3; ++p) append(*log("t", p));
    std::int64_t unflushed = 0;
    for (const auto& l : manager->logs()) {
        ASSERT_GE(l->segments()->size(), 5u);
        for (const auto& segment : *l->segments()) {
            if (segment == l->segments()->back() || segment->next_offset().value() > l->recovery_point()) unflushed += segment->bytes();
        }
    }
    ASSERT_TRUE(start());
    EXPECT_GT(report.record_bytes_read, 0);
    EXPECT_LE(report.record_bytes_read, unflushed) << "killed: what was not flushed";

    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(files.remove(io::join("/a/t-7", file_of(0, FileKind::offset_index))));
    ASSERT_TRUE(start());
    EXPECT_LE(report.segments_recovered, 1) << "one index is gone: one segment";
}

TEST_F(Directories, B49_TheLongestNameCanBeDeletedAndIsGoneAfterAKill) {
    const std::string longest(249, 'x');
    ASSERT_TRUE(start());
    append(*log(longest));
    append(*log("a.b"));
    append(*log("a_b"));
    for (const auto& topic : {longest, std::string("a.b")}) ASSERT_TRUE(manager->remove({topic, 0}));
    ASSERT_TRUE(start());  // killed between renaming and removing
    EXPECT_EQ(report.logs, 1u);
    clock.advance(std::chrono::milliseconds{options.partition_delete_delay_ms});
    manager->tick();
    std::vector<std::string> directories;
    for (const auto& entry : files.list("/a").value()) {
        if (entry.is_directory) directories.push_back(entry.name);
    }
    EXPECT_THAT(directories, ElementsAre("a_b-0"));
}

TEST(Case, B51_OldFormatsBesideNewOnesAreReadAsTheyAreStored) {
    StorageLog log{{.config = small_indexes()}};
    std::vector<std::byte> all;
    std::int64_t next = 0;
    for (const auto& [magic, codec, records] : {std::tuple{0, record::Codec::none, 2}, std::tuple{0, record::Codec::gzip, 3}, std::tuple{1, record::Codec::none, 1},
                                                std::tuple{1, record::Codec::lz4, 3}, std::tuple{2, record::Codec::zstd, 2}}) {
        std::vector<std::int64_t> times;
        for (int i = 0; i < records; ++i) times.push_back(magic == 0 ? -1 : log.start.value + next + i);
        const auto batch = batch_of({.magic = static_cast<std::int8_t>(magic), .codec = codec, .base_offset = Offset{next}}, times);
        append_bytes(all, batch);
        ASSERT_TRUE(log.append_batch(batch));
        next += records;
    }
    const auto slice = log->read({.from = Offset{0}}).value();
    std::vector<std::byte> bytes(static_cast<std::size_t>(slice.bytes));
    ASSERT_TRUE(slice.file->read(slice.position, bytes));
    EXPECT_EQ(bytes, all);
    for (std::int64_t from = 0; from < next; ++from) EXPECT_GT(log->read({.from = Offset{from}}).value().bytes, 0) << from;
    EXPECT_EQ(at_time(log, log.start.value + 7), Found(7, log.start.value + 7)) << "inside a wrapper with relative offsets";
}

/// Found by fuzzing: recovery took old messages whose offsets go back, which it cuts off in the newer format.
TEST(Recovery, OldMessagesWhoseOffsetsGoBackAreCut) {
    StorageLog log{{.config = small_indexes()}};
    const auto message = [](std::int64_t offset) { return batch_of({.magic = 0, .base_offset = Offset{offset}}, {-1}); };
    ASSERT_TRUE(log.append_batch(message(0)));
    ASSERT_TRUE(log.append_batch(message(17)));
    ASSERT_TRUE(log->close());
    append_to_file(log, file_of(0, FileKind::log), message(2));
    log.open_again(false);
    EXPECT_EQ(log->log_end_offset(), Offset{18});
    EXPECT_EQ(log.last_recovery.truncated_bytes, static_cast<std::int64_t>(message(2).size()));
}

}  // namespace
}  // namespace tidemark::storage
