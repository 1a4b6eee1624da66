// Retention of whole logs, in the situations and with the numbers that Kafka's own suite has for it.
#include <gmock/gmock.h>

#include "io/faulty_file_system.h"
#include "record/builder.h"
#include "retention/apply.h"
#include "storage/log_directory.h"
#include "storage/segment.h"
#include "tests/support/storage_log.h"

namespace tidemark::retention {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using storage::LogConfig;
using test::StorageLog;

constexpr std::int64_t batch_bytes = 70;   // of one record with a key and a value of a letter each

LogConfig keep_all() {
    LogConfig config;
    config.retention_ms.reset();
    config.timestamp_after_max_ms = storage::unlimited;
    config.segment_ms = storage::unlimited;
    return config;
}

/// `count` batches of one record, five to a segment, all with that time after the start.
void fill(StorageLog& log, int count, std::int64_t at = 0) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i > 0 && i % 5 == 0 ? "| k=v@" : "k=v@") + std::to_string(at) + " ";
    log.append(text);
}

std::size_t delete_old(StorageLog& log) {
    const auto applied = apply_retention(*log, log.clock.now(), {});
    EXPECT_TRUE(applied) << applied.error().message();
    return applied ? applied->decision.deletions.size() : 0;
}

TEST(WholeLog, SizeKeepsAtLeastItsLimit) {
    auto config = keep_all();
    config.retention_bytes = 10 * batch_bytes;
    StorageLog log({.config = config});
    fill(log, 15);
    EXPECT_EQ(delete_old(log), 1u);
    EXPECT_EQ(log->segments()->size(), 2u);
    EXPECT_EQ(log->log_start_offset(), Offset{5});
    EXPECT_EQ(delete_old(log), 0u);

    config.retention_bytes = 15 * batch_bytes;
    StorageLog under({.config = config});
    fill(under, 15);
    EXPECT_EQ(delete_old(under), 0u);
    EXPECT_EQ(under->segments()->size(), 3u);
}

TEST(WholeLog, TimeTakesAllButANewActiveSegment) {
    struct Row {
        bool compacts, deletes;
        std::int64_t age_ms;
        std::size_t segments;
    };
    for (const auto& row : std::vector<Row>{{false, true, 2000, 1}, {false, true, 0, 3}, {true, false, 2000, 3}, {true, true, 2000, 1}, {false, false, 2000, 3}}) {
        auto config = keep_all();
        config.retention_ms = 1000;
        config.compacts = row.compacts;
        config.deletes = row.deletes;
        StorageLog log({.config = config});
        fill(log, 15, -row.age_ms);
        delete_old(log);
        EXPECT_EQ(log->segments()->size(), row.segments) << row.compacts << row.deletes << row.age_ms;
        if (row.segments > 1) continue;
        EXPECT_EQ(log->segments()->back()->bytes(), 0);
        EXPECT_EQ(log->log_start_offset(), Offset{15});
    }
}

TEST(WholeLog, WhatLiesBelowTheLogStartGoesFromACompactedLogToo) {
    auto config = keep_all();
    config.compacts = true;
    config.deletes = false;
    StorageLog log({.config = config});
    fill(log, 15);
    ASSERT_TRUE(log->delete_records_before(Offset{5}));
    EXPECT_EQ(delete_old(log), 1u);
    EXPECT_EQ(log->segments()->front()->base_offset(), Offset{5});
}

TEST(WholeLog, DeletedRecordsTakeTheSegmentsThatTheyFill) {
    StorageLog log({.config = keep_all()});
    fill(log, 15);
    for (const auto& [before, segments] : std::vector<std::pair<int, std::size_t>>{{1, 3}, {6, 2}, {15, 1}}) {
        EXPECT_EQ(log->delete_records_before(Offset{before}).value(), Offset{before});
        delete_old(log);
        EXPECT_EQ(log->segments()->size(), segments) << before;
        EXPECT_EQ(log->log_start_offset(), Offset{before});
    }
}

TEST(WholeLog, TheLogStartNeverPassesTheHighWatermark) {
    auto config = keep_all();
    config.retention_ms = 0;
    for (const bool by_min_timestamp : {false, true}) {
        StorageLog log({.config = config});
        if (by_min_timestamp) {
            auto other = keep_all();
            other.retention_min_timestamp = log.start + 1;
            log.set_config(other);
        }
        fill(log, 100);
        log.clock.advance(1s);
        for (int high_watermark = 0; high_watermark <= 100; ++high_watermark) {
            log->set_high_watermark(Offset{high_watermark});
            delete_old(log);
            ASSERT_LE(log->log_start_offset(), Offset{high_watermark});
            ASSERT_EQ(log->log_start_offset().value, high_watermark / 5 * 5);
        }
        EXPECT_EQ(log->segments()->size(), 1u);
        EXPECT_EQ(log->segments()->back()->bytes(), 0);
        EXPECT_EQ(log->log_end_offset(), Offset{100});
    }
}

TEST(WholeLog, AHighWatermarkThatWasLoadedBoundsDeletion) {
    auto config = keep_all();
    config.retention_ms = 0;
    StorageLog log({.config = config});
    fill(log, 100);
    ASSERT_TRUE(log->close());
    log.clock.advance(1s);
    {
        const auto loaded = storage::open_log(log.directory(), {.partition = log->partition(), .directory = log.path(), .config = log->config(), .high_watermark = Offset{25}, .clean = true});
        ASSERT_TRUE(loaded) << loaded.error().message();
        ASSERT_TRUE(apply_retention(**loaded, log.clock.now(), {}));
        EXPECT_EQ((*loaded)->log_start_offset(), Offset{25});
        EXPECT_EQ((*loaded)->segments()->front()->base_offset(), Offset{25});
        ASSERT_TRUE((*loaded)->close());
    }
    log.open_again(true);
    EXPECT_EQ(log->log_end_offset(), Offset{100});
}

TEST(WholeLog, ALogStartBehindTheFutureLetsTheOldGo) {
    auto config = keep_all();
    config.retention_ms = 1000;
    StorageLog log({.config = config});
    log.append("a=1@3600000 | b=1@0 | c=1@2000");
    log.clock.advance(1500ms);
    EXPECT_EQ(delete_old(log), 0u) << "the first is from the future";
    ASSERT_TRUE(log->delete_records_before(Offset{1}));
    EXPECT_EQ(delete_old(log), 2u);
    EXPECT_EQ(delete_old(log), 0u);
    EXPECT_EQ(log.text(), "2:c=1");
}

TEST(WholeLog, DeletionIsAPrefixAndTheActiveSegmentGoesOnlyIfSomethingIsInIt) {
    auto config = keep_all();
    config.retention_ms = 1000;
    const auto ten = [](std::int64_t up_to, std::int64_t otherwise) {
        std::string text;
        for (int base = 0; base < 10; ++base) text += (base > 0 ? "| k=v@" : "k=v@") + std::to_string(base <= up_to ? 0 : otherwise) + " ";
        return text;
    };
    for (const auto& [text, gone] : std::vector<std::pair<std::string, std::size_t>>{{ten(5, 5000), 6}, {ten(9, 0) + "|", 10}, {ten(9, 0), 10}}) {
        StorageLog log({.config = config});
        log.append(text);
        log.clock.advance(2s);
        EXPECT_EQ(delete_old(log), gone);
        EXPECT_EQ(log->segments()->front()->base_offset().value, static_cast<std::int64_t>(gone));
        EXPECT_EQ(log->log_end_offset(), Offset{10});
    }
}

TEST(WholeLog, SnapshotsOfProducersGoWithTheirSegments) {
    auto config = keep_all();
    config.retention_bytes = 2 * batch_bytes;
    StorageLog log({.config = config});
    log.append_as(7, "a=1 | b=1 | c=1 | d=1");
    const auto snapshots = [&] {
        std::vector<std::string> names;
        for (const auto& name : log.file_names())
            if (name.ends_with(".snapshot")) names.push_back(name.substr(19, 1));
        return names;
    };
    EXPECT_THAT(snapshots(), ElementsAre("1", "2", "3"));
    ASSERT_EQ(delete_old(log), 2u);
    EXPECT_THAT(snapshots(), ElementsAre("2", "3"));
    ASSERT_TRUE(log->delete_records_before(Offset{3}));
    ASSERT_EQ(delete_old(log), 1u);
    EXPECT_THAT(snapshots(), ElementsAre("3"));
    log.crash_and_reopen();
    ASSERT_EQ(log->producers().size(), 1u);
    EXPECT_EQ(log->producers().front().last_sequence, 3) << "who wrote last is known all the same";
}

TEST(WholeLog, EpochsBeginAtTheLogStart) {
    auto config = keep_all();
    config.retention_bytes = 0;
    StorageLog log({.config = config});
    const auto append = [&](LeaderEpoch epoch, std::int64_t records) {
        record::BatchBuilder builder;
        builder.start({});
        for (std::int64_t i = 0; i < records; ++i) builder.append(Offset{i}, log.start, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        ASSERT_TRUE(log->append(bytes, {.leader_epoch = epoch}));
        ASSERT_TRUE(log->roll());
    };
    append(1, 5);
    append(2, 5);
    append(4, 5);
    ASSERT_TRUE(log->delete_records_before(Offset{7}));
    EXPECT_EQ(log->earliest_offset().leader_epoch, 2);
    EXPECT_EQ(log->end_of_epoch(1), (storage::EpochEnd{1, Offset{7}})) << "its offsets are gone: it ends where the first known one begins";
    EXPECT_EQ(log->end_of_epoch(2), (storage::EpochEnd{2, Offset{10}}));
    ASSERT_EQ(delete_old(log), 3u);
    EXPECT_EQ(log->earliest_offset().leader_epoch, 4) << "the last epoch stays, at the log start";
    EXPECT_EQ(log->end_of_epoch(4), (storage::EpochEnd{4, Offset{15}}));
}

TEST(WholeLog, AFileThatCannotBeUnlinkedTakesTheDirectoryOffline) {
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    auto config = keep_all();
    config.retention_bytes = 0;
    StorageLog log({.config = config, .files = &disk, .verify_at_end = false});
    fill(log, 10);
    ASSERT_EQ(delete_old(log), 2u);
    disk.inject({.fail_at = 0, .counted = [](const io::Call& call) { return call.operation == io::Operation::remove; }, .clock = &clock});
    log.directory().run_background();
    EXPECT_FALSE(log.directory().is_offline()) << "not before file.delete.delay.ms";
    log.clock.advance(std::chrono::milliseconds{config.file_delete_delay_ms});
    log.directory().run_background();
    EXPECT_TRUE(log.directory().is_offline());
    EXPECT_EQ(log->read({.from = Offset{10}}).error().code, Errc::storage_offline);
}

}  // namespace
}  // namespace tidemark::retention
