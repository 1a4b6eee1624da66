#include "cleaner/cleaning.h"

#include <gmock/gmock.h>

#include "storage/segment.h"
#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::TestLog;
using test::TestLogOptions;

TestLogOptions with(std::function<void(storage::LogConfig&)> change, TestLogOptions options = {}) {
    change(options.config);
    return options;
}
TestLogOptions delete_retention(std::chrono::milliseconds time, TestLogOptions options = {}) {
    options.config.delete_retention_ms = time.count();
    return options;
}

void ok(const auto& result) { ASSERT_TRUE(result) << result.error().message(); }

// --- keys and tombstones ---------------------------------------------------------------------------------------------

TEST(Cleaning, KeepsTheLatestRecordOfEachKey) {
    TestLog log;
    ok(log.append("a=1 b=1 | a=2 [c=1 a=3] | d=1"));
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "1:b=1 3:c=1 4:a=3 | 5:d=1");    // one group, the active segment untouched
    EXPECT_EQ(log.checkpoint, Offset{5});
    EXPECT_EQ(stats.messages_read, 5);
    EXPECT_EQ(stats.messages_written, 3);
    EXPECT_EQ(stats.superseded, 2);
    EXPECT_EQ(stats.segments_before, 2);
    EXPECT_EQ(stats.segments_after, 1);
}

TEST(Cleaning, CleaningTwiceChangesNothing) {
    TestLog log;
    ok(log.append("a=1 [b=1 c=1 b=2] | a=2 | d=1"));
    ok(log.clean());
    const auto text = log.text();
    log.checkpoint = Offset{0};
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), text);
    EXPECT_EQ(stats.bytes_read, stats.bytes_written);
}

TEST(Cleaning, TombstoneStaysUntilItsDeleteHorizon) {
    TestLog log(delete_retention(60s));
    ok(log.append("a=1 b=1 | a=~ | c=1"));
    ok(log.clean());                              // drops 0:a=1 and sets the horizon
    EXPECT_EQ(log.text(), "1:b=1 2:a=~@h60s | 3:c=1");
    log.clock.advance(59'999ms);
    ok(log.append("| d=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:b=1 2:a=~@h1ms 3:c=1 | 4:d=1");
    log.clock.advance(1ms);
    ok(log.append("| e=1"));
    const auto stats = log.clean().value();       // the horizon is reached
    EXPECT_EQ(log.text(), "1:b=1 3:c=1 4:d=1 | 5:e=1");
    EXPECT_EQ(stats.tombstones_removed, 1);
}

TEST(Cleaning, SurvivorsKeepTheirTimestamps) {
    for (const auto codec : {record::Codec::none, record::Codec::gzip, record::Codec::snappy, record::Codec::lz4, record::Codec::zstd}) {
        TestLog log(delete_retention(60s, {.codec = codec}));
        const auto timestamps = [&] {
            std::vector<std::int64_t> out;
            const auto segment = log.log->segments()->front();
            std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
            EXPECT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
            record::BatchCursor cursor(bytes);
            record::RecordReader reader;
            while (const auto batch = *cursor.next()) {
                EXPECT_TRUE(reader.open(*batch));
                while (const auto r = *reader.next()) out.push_back(r->timestamp.value);
                out.push_back(-batch->max_timestamp().value);   // of the header
            }
            return out;
        };
        ok(log.append("[k1=x@1000 k2=x@10 k3=x@2000 k4=x@5] [t=~@500 u=x@7] k1=y@3 | z=1"));
        ok(log.clean());
        EXPECT_THAT(timestamps(), ElementsAre(10, 2000, 5, -2000, 500, 7, -500, 3, -3));
        log.clock.advance(60s);
        ok(log.append("|"));
        log.checkpoint = Offset{0};
        ok(log.clean());                                    // the tombstone goes, the horizon stays in the header
        EXPECT_EQ(timestamps()[4], 7);
    }
}

TEST(Cleaning, KeylessRecordsGoAndAreCounted) {
    TestLog log;
    ok(log.append("_=1 [a=1 _=2] =empty | x=1"));
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "1:a=1 3:=empty | 4:x=1");
    EXPECT_EQ(stats.invalid_messages_read, 2);
}

TEST(Cleaning, TheUncleanablePartStaysByteForByte) {
    TestLog log;
    ok(log.append("a=1 | a=2 | t1:b=1 | a=3 | a=4"));      // an open transaction from offset 2 on
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:a=2 | 2:b=1 | 3:a=3 | 4:a=4");
    EXPECT_EQ(log.checkpoint, Offset{2});
    ok(log.append("c1 |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "2:b=1 4:a=4 5:commit1 | ");
}

// --- the end of the log ----------------------------------------------------------------------------------------------

TEST(Cleaning, TheBatchAtTheHighWatermarkStaysEmpty) {
    TestLog log(delete_retention(0ms));
    ok(log.append("a=1 b=1 a=~ b=~ |"));
    ok(log.clean());
    log.checkpoint = Offset{0};
    ok(log.clean());                                       // both horizons have passed
    EXPECT_EQ(log.text(), "3:() | ");
    log.reopen();
    EXPECT_EQ(log.log->log_end_offset(), Offset{4});
    ok(log.append("c=1 |"));                               // the high watermark has moved on
    ok(log.clean());
    EXPECT_EQ(log.text(), "4:c=1 | ");
}

TEST(Cleaning, NothingIsLeftOfAGroup) {
    TestLog log(with([](auto& c) { c.segment_bytes = 80; }));
    ok(log.append("a=1 | b=1 | a=2 b=2 |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "| | 2:a=2 | 3:b=2 | ");        // empty segments stay for now
    ok(log.append("c=1 |"));
    log.set_config(storage::LogConfig{.compacts = true, .deletes = false});
    ok(log.clean());
    EXPECT_EQ(log.text(), "2:a=2 3:b=2 4:c=1 | ");
}

// --- producers and transactions --------------------------------------------------------------------------------------

TEST(Cleaning, TheLastBatchOfAProducerStaysEmptyUntilItSendsMore) {
    TestLog log;
    ok(log.append("p1:[a=1 b=1] p2:a=2 p1:b=2 p2:b=3 a=4 b=4 |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "3:(p1) 4:(p2) 5:a=4 6:b=4 | ");
    ok(log.append("p1:c=1 |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "4:(p2) 5:a=4 6:b=4 7:c=1 | ");
    log.log->expire_producers(log.clock.now() + 86'400'000);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "5:a=4 6:b=4 7:c=1 | ");
}

TEST(Cleaning, AbortedRecordsGoAndShadowNothing) {
    TestLog log;
    ok(log.append("k=v1 t1:k=v2 x1 | z=1"));
    EXPECT_EQ(log.committed(), (std::map<std::string, std::string>{{"k", "v1"}, {"z", "1"}}));
    const auto stats = log.clean().value();
    EXPECT_EQ(log.committed(), (std::map<std::string, std::string>{{"k", "v1"}, {"z", "1"}}));
    EXPECT_EQ(log.text(), "0:k=v1 1:(p1) 2:abort1 | 3:z=1");   // the producer's last batch stays, empty
    EXPECT_EQ(stats.aborted_batches, 1);
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{10}).size(), 1u);
}

TEST(Cleaning, MarkersAreNoKeys) {
    // All markers of one kind share their key bytes.
    TestLog log(delete_retention(1h));
    ok(log.append("t1:k1=a x1 t2:k2=b x2 t1:k3=c c1 t2:k4=d c2 |"));
    const std::map<std::string, std::string> expected{{"k3", "c"}, {"k4", "d"}};
    for (int pass = 0; pass < 2; ++pass) {
        log.checkpoint = Offset{0};
        ok(log.clean());
        EXPECT_EQ(log.committed(), expected);
        EXPECT_THAT(log.text(), HasSubstr("5:commit1"));
        EXPECT_THAT(log.text(), HasSubstr("7:commit2"));
    }
    // The abort markers' data is gone: their horizon began in the second pass.
    EXPECT_THAT(log.text(), HasSubstr("1:abort1@h3600s"));
    EXPECT_TRUE(log.log->aborted_between(Offset{0}, Offset{10}).empty());
    log.clock.advance(1h);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "4:k3=c 5:commit1 6:k4=d 7:commit2 | ");
    EXPECT_EQ(log.committed(), expected);
}

TEST(Cleaning, AMarkerIsKeptWhileDataOfItsTransactionIsInAnotherGroup) {
    for (const char* marker : {"c1", "x1"}) {
        TestLog log(with([](auto& c) { c.segment_bytes = 100; }));   // a group per segment
        ok(log.append("t1:a=1 | t1:b=1 | t1:c=1 | d=1 | " + std::string{marker} + " | e=1 | f=1"));
        ok(log.clean());
        EXPECT_THAT(log.text(), HasSubstr(std::string{"4:"} + (marker[0] == 'c' ? "commit1" : "abort1")));
        EXPECT_THAT(log.text(), testing::Not(HasSubstr("@h")));
        EXPECT_EQ(log.committed().contains("a"), marker[0] == 'c');
    }
}

TEST(Cleaning, AMarkerGetsItsHorizonOnePassAfterItsDataWent) {
    TestLog log(delete_retention(10s));
    ok(log.append("t1:a=1 c1 a=2 t1:b=1 c1 |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:commit1 2:a=2 3:b=1 4:commit1 | ");
    log.clock.advance(10s);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:commit1@h10s 2:a=2 3:b=1 4:commit1 | ");
    log.checkpoint = Offset{0};
    ok(log.clean());                                       // not at the same time
    EXPECT_THAT(log.text(), HasSubstr("1:commit1@h10s"));
    log.clock.advance(10s);
    log.checkpoint = Offset{0};
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "2:a=2 3:b=1 4:commit1 | ");
    EXPECT_EQ(stats.markers_removed, 1);
}

TEST(Cleaning, TransactionsInSeveralPartialPasses) {
    // A map of four keys: aborted data goes in the first pass, markers one later.
    TestLog log(delete_retention(10s, {.map_slots = 5, .map_load = 0.8}));
    ok(log.append("t1:[a=1 b=1] t2:[c=2 d=2] x1 c2 a=3 b=3 e=3 f=3 g=3 a=4 |"));
    const auto expected = log.committed();
    int passes = 0;
    while (log.checkpoint != log.log->segments()->back()->base_offset()) {
        const auto before = log.checkpoint.value_or(Offset{0});
        ok(log.clean());
        EXPECT_GT(*log.checkpoint, before);
        EXPECT_EQ(log.committed(), expected);
        ASSERT_LT(++passes, 10);
    }
    EXPECT_GT(passes, 1);
}

// --- the map ---------------------------------------------------------------------------------------------------------

TEST(Cleaning, AFullMapStopsInsideASegmentAndGoesOnFromThere) {
    TestLog log({.map_slots = 2, .map_load = 0.9});        // one key
    ok(log.append("[b=0 a=1] b=2 a=3 |"));
    const auto first = log.clean().value();
    EXPECT_TRUE(first.map_was_full);
    EXPECT_EQ(log.checkpoint, Offset{1});                  // one past the last record put, inside the batch
    EXPECT_EQ(log.text(), "0:b=0 1:a=1 2:b=2 3:a=3 | ");
    ok(log.clean());
    EXPECT_EQ(log.checkpoint, Offset{2});
    ok(log.clean());
    EXPECT_EQ(log.checkpoint, Offset{3});
    EXPECT_EQ(log.text(), "1:a=1 2:b=2 3:a=3 | ");
    ok(log.clean());
    EXPECT_EQ(log.text(), "2:b=2 3:a=3 | ");
    EXPECT_EQ(log.checkpoint, Offset{4});
}

TEST(Cleaning, GapsAreSteppedOver) {
    TestLog log({.map_slots = 20});
    ok(log.append("a=1 >1000000000 b=1 | >3000000000 a=2 | >7000000000 c=1 |"));
    const auto stats = log.clean().value();
    EXPECT_EQ(stats.end_offset, log.log->segments()->back()->base_offset());
    EXPECT_EQ(log.committed(), (std::map<std::string, std::string>{{"a", "2"}, {"b", "1"}, {"c", "1"}}));
}

// --- groups, buffers, formats ----------------------------------------------------------------------------------------

TEST(Cleaning, LargeBatchesGrowTheBuffers) {
    TestLog log(with([](auto& c) { c.max_message_bytes = 2'000'000; }, {.buffer_bytes = 4096}));
    const std::string large(900 * 1024, 'x');
    ok(log.append("a=" + large + " b=1 [a=2 c=" + large + "] | z=1"));
    auto config = log.config();
    config.max_message_bytes = 1000;                       // lowered since
    log.set_config(config);
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:b=1 2:a=2 3:c=" + large + " | 4:z=1");
}

TEST(Cleaning, ABufferFullOfAbortedBatchesIsReadOn) {
    // KAFKA-6854: nothing to write from what was read looked like a batch that does not fit.
    TestLog log({.buffer_bytes = 4096});
    std::string script = "a=1 ";
    for (int i = 0; i < 50; ++i) script += "t1:a=" + std::string(500, 'x') + " ";
    ok(log.append(script + "x1 b=1 | z=1"));
    const auto stats = log.clean().value();
    EXPECT_EQ(stats.aborted_batches, 50);
    EXPECT_EQ(log.text(), "0:a=1 50:(p1) 51:abort1 52:b=1 | 53:z=1");
}

TEST(Cleaning, AnOutputThatIsFullIsFollowedByAnother) {
    // Nothing is superseded, and the joined index needs an entry for the first batch of the second source.
    const auto small_index = [](auto& c) {
        c.index_interval_bytes = 0;
        c.segment_index_bytes = 100;
    };
    const auto script = "a=1 b=1 c=1 d=1 e=1 | f=1 g=1 h=1 i=1 j=1 | z=1";
    TestLog log(with(small_index));
    ok(log.append(script));
    auto config = log.config();
    config.segment_index_bytes = 64;
    log.set_config(config);
    const auto before = log.committed();
    const auto stats = log.clean().value();
    EXPECT_EQ(log.committed(), before);
    EXPECT_EQ(stats.segments_after, 2);
    log.reopen();
    EXPECT_EQ(log.committed(), before);

    TestLog kafka(with(small_index, {.differences = Differences::none()}));
    ok(kafka.append(script));
    kafka.set_config(config);
    EXPECT_FALSE(kafka.clean());
    EXPECT_EQ(kafka.committed(), before);
}

TEST(Cleaning, OldFormatsBecomeNew) {
    for (const std::int8_t magic : {std::int8_t{0}, std::int8_t{1}}) {
        for (const auto codec : {record::Codec::none, record::Codec::gzip}) {
            TestLog log({.codec = codec, .magic = magic});
            ok(log.append("a=1 [b=1 a=2 c=~] | z=1"));
            ok(log.clean());
            EXPECT_EQ(log.committed(), (std::map<std::string, std::string>{{"b", "1"}, {"a", "2"}, {"z", "1"}}));
            EXPECT_THAT(log.text(), HasSubstr("3:c=~@h86400s"));
        }
    }
}

TEST(Cleaning, AStopLeavesTheLogAsItWas) {
    TestLog log(with([](auto& c) { c.segment_bytes = 100; }));
    ok(log.append("a=1 | b=1 | a=2 | z=1"));
    const auto before = log.text();
    Throttle throttle(log.clock);
    int asked = 0;
    const auto result = run_pass(*log.log, {.first_dirty = Offset{0}, .cleanable_end = Offset{3}}, {}, log.work, throttle, log.clock, [&]() -> Result<> {
        if (++asked < 4) return {};
        return Error{Errc::aborted, "enough"};
    });
    EXPECT_EQ(result.error().code, Errc::aborted);
    EXPECT_EQ(log.text(), before);
    for (const auto& file : log.files()) EXPECT_FALSE(file.ends_with(".cleaned")) << file;
}

TEST(Cleaning, ADamagedBatchStopsThePass) {
    struct Row {
        std::int64_t position;
        const char* what;
    };
    // A record's byte; the base offset and the size, which no CRC covers.
    for (const auto& row : std::vector<Row>{{70 + 65, "CRC"}, {70, "offset"}, {70 + 8, "longer"}}) {
        TestLog log;
        ok(log.append("a=1 b=1 | a=2 | z=1"));
        const auto path = log.log->segments()->front()->log_path();
        const auto file = log.disk.open(path, io::OpenMode::read_write).value();
        std::array<std::byte, 1> before;
        ok(file->read(FilePosition{row.position}, before));
        ok(file->write(FilePosition{row.position}, as_bytes("!")));
        const auto result = log.clean();
        EXPECT_EQ(result.error().code, Errc::corrupt) << row.what;
        EXPECT_THAT(result.error().context, HasSubstr("00000000000000000000.log"));
        EXPECT_THAT(result.error().context, HasSubstr(row.what));
        ok(file->write(FilePosition{row.position}, before));   // whole again, for the check at the end
        EXPECT_EQ(log.text(), "0:a=1 1:b=1 | 2:a=2 | 3:z=1");
    }
}

TEST(Cleaning, AFullDiskIsNoticedBeforehand) {
    ManualClock clock;
    io::MemoryFileSystem files({.clock = &clock});
    TestLog log({.files = &files, .clock = &clock});
    ok(log.append("a=" + std::string(1000, 'x') + " | a=2 | z=1"));
    files.set_capacity(1);
    EXPECT_EQ(log.clean().error().code, Errc::no_space);
    files.set_capacity(1 << 30);
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:a=2 | 2:z=1");
}

TEST(Cleaning, TheCleanedSegmentHasTheTimesOfItsSources) {
    TestLog log;
    ok(log.append("a=1 |"));
    const auto first = log.clock.now();
    log.clock.advance(1h);
    ok(log.append("b=1 a=2 |"));
    const auto second = log.clock.now();
    log.clock.advance(1h);
    ok(log.append("z=1"));
    ok(log.clean());
    const auto& segment = log.log->segments()->front();
    EXPECT_EQ(segment->modified().value(), second);
    EXPECT_EQ(segment->first_append_time(), first);
}

// --- D5, D7 ----------------------------------------------------------------------------------------------------------

TEST(HorizonPass, RemovesWhatIsDueAndNothingElse) {
    TestLog log(delete_retention(10s, {}));
    auto config = log.config();
    config.segment_bytes = 150;
    log.set_config(config);
    ok(log.append("a=1 a=~ | b=1 c=1 | t1:d=1 c1 d=2 t1:e=1 c1 | dirty=~ | z=1"));
    ok(log.clean());
    log.checkpoint = Offset{0};
    ok(log.clean());
    const auto before = log.text();
    EXPECT_THAT(before, HasSubstr("1:a=~@h10s"));
    EXPECT_EQ(log.decide().horizon_due, std::nullopt);
    log.clock.advance(10s);
    ok(log.append("|"));
    EXPECT_TRUE(log.decide().horizon_due.has_value());
    const auto checkpoint = log.checkpoint;
    const auto untouched = log.log->segments()->at(1);
    const auto stats = log.clean_horizons().value();
    EXPECT_EQ(stats.tombstones_removed, 2);                // a and dirty, whose segment is clean by now
    EXPECT_EQ(log.checkpoint, checkpoint);
    EXPECT_EQ(log.log->segments()->at(1), untouched);      // not rewritten
    EXPECT_THAT(log.text(), testing::Not(HasSubstr("a=~")));
    EXPECT_THAT(log.text(), HasSubstr("b=1"));
    EXPECT_EQ(log.decide().horizon_due, std::nullopt);     // nothing is left to ask for
}

TEST(HorizonPass, KeepsTheTransactionIndexAndMarkersThatAreNotDue) {
    TestLog log(delete_retention(10s));
    ok(log.append("a=1 a=~ t1:b=1 x1 t1:c=1 c1 | z=1"));
    ok(log.clean());
    log.clock.advance(10s);
    const auto aborted = log.log->aborted_between(Offset{0}, Offset{100});
    EXPECT_EQ(aborted.size(), 1u);
    ok(log.clean_horizons());
    EXPECT_EQ(log.text(), "3:abort1 4:c=1 5:commit1 | 6:z=1");
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
}

TEST(HorizonPass, IsFoundAgainAfterARestart) {
    TestLog log(delete_retention(10s));
    ok(log.append("a=1 a=~ [b=1 c=~] | z=1"));
    ok(log.clean());
    log.reopen();
    auto& segment = *log.log->segments()->front();
    EXPECT_EQ(scan_for_horizons(segment).value(), segment.bytes());
    EXPECT_EQ(segment.earliest_delete_horizon(), std::optional{std::optional{log.clock.now() + 10'000}});
    log.clock.advance(10s);
    ok(log.clean_horizons());
    EXPECT_EQ(log.text(), "2:b=1@h0s | 4:z=1");            // the batch keeps its horizon, the tombstones are gone
    log.reopen();
    ok(scan_for_horizons(*log.log->segments()->front()));
    const auto known = log.log->segments()->front()->earliest_delete_horizon();
    ASSERT_TRUE(known.has_value());
    EXPECT_FALSE(known->has_value());                      // scanned, and there is none
}

TEST(RecordExpiry, OldValuesGoWithoutATombstone) {
    const auto both = [](auto& c) {
        c.deletes = true;
        c.retention_ms = 10'000;
        c.max_compaction_lag_ms = 20'000;
        c.segment_ms = 3'600'000;
    };
    TestLog log(with(both));
    ok(log.append("a=1 p2:b=1 c=~ n=1@-1 t1:d=1 c1"));
    log.clock.advance(20'001ms);
    ok(log.append("e=1 | z=1"));
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "1:(p2) 2:c=~@h86400s 3:n=1 4:(p1) 5:commit1 6:e=1 | 7:z=1");
    EXPECT_EQ(stats.expired, 3);
}

}  // namespace
}  // namespace tidemark::cleaner
