// Situations in which brokers like this one went wrong, and what has to come out; each names the report it comes from.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "cleaner/cleaning.h"
#include "io/faulty_file_system.h"
#include "record/builder.h"
#include "storage/segment.h"
#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using test::TestLog;
using test::TestLogOptions;

void ok(const auto& result) { ASSERT_TRUE(result) << result.error().message(); }

/// First offset of the batches that a fetch at `from` gets; nothing when it gets none.
std::optional<Offset> first_batch_at(const TestLog& log, Offset from, std::int64_t bytes_max = 1 << 20) {
    const auto slice = log.log->read({.from = from, .bytes_max = bytes_max});
    EXPECT_TRUE(slice) << slice.error().message();
    if (!slice || slice->bytes == 0) return std::nullopt;
    std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
    EXPECT_TRUE(slice->file->read(slice->position, bytes));
    const auto batch = record::BatchView::parse(bytes);
    EXPECT_TRUE(batch);
    return batch->base_offset();
}

/// Base offset → bytes.
std::map<Offset, std::vector<std::byte>> batches_of(const TestLog& log) {
    std::map<Offset, std::vector<std::byte>> batches;
    for (const auto& segment : *log.log->segments()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
        EXPECT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
        record::BatchCursor cursor(bytes);
        while (const auto batch = *cursor.next()) batches.emplace(batch->base_offset(), std::vector<std::byte>(batch->bytes().begin(), batch->bytes().end()));
    }
    return batches;
}

/// KAFKA-15388: behind the last batch of a segment, where compaction took what was there.
TEST(CleaningCases, AFetchInAGapFindsWhatFollowsAcrossSegments) {
    TestLogOptions options;
    options.config.segment_bytes = 250;   // no two of them fit one
    TestLog log(options);
    ok(log.append("keep=1 a=1 b=1 | a=2 b=2 | c=1 c=2 | a=3 b=3 c=3 | z=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "0:keep=1 | | | 7:a=3 8:b=3 9:c=3 | 10:z=1") << "gaps at the end of a segment and whole segments without a record";
    for (std::int64_t from = 1; from <= 7; ++from) {
        EXPECT_EQ(first_batch_at(log, Offset{from}), Offset{7}) << from;
        EXPECT_EQ(first_batch_at(log, Offset{from}, 1), Offset{7}) << "with a tiny limit at " << from;
    }
    EXPECT_EQ(first_batch_at(log, Offset{11}), std::nullopt) << "at the true end";
    ok(log.append("|"));
    EXPECT_EQ(first_batch_at(log, Offset{10}), Offset{10});
}

/// B31, KAFKA-5490, KAFKA-8335: of a producer whose records are all superseded one batch stays, the last, and goes when the
/// producer has been forgotten; what it sends next is checked all the same.
TEST(CleaningCases, OneEmptyBatchOfAProducerNotOneForEachOfItsBatches) {
    for (const bool new_epochs : {false, true}) {
        SCOPED_TRACE(new_epochs);
        TestLog log;
        const auto send = [&](int i, ProducerEpoch epoch, Sequence sequence) {
            record::BatchBuilder builder;
            builder.start({.producer_id = 1, .producer_epoch = epoch, .base_sequence = sequence});
            builder.append(Offset{0}, log.clock.now(), as_bytes("k"), as_bytes(std::to_string(i)));
            std::vector<std::byte> batch;
            builder.finish(batch);
            return log.log->append(batch, {});
        };
        for (int i = 0; i < 1000; ++i) ok(send(i, static_cast<ProducerEpoch>(new_epochs ? i : 0), new_epochs ? 0 : i));
        ok(log.append("k=last |"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "999:(p1) 1000:k=last | ");
        log.reopen();
        const ProducerEpoch epoch = new_epochs ? 999 : 0;
        const Sequence last = new_epochs ? 0 : 999;
        EXPECT_EQ(send(0, epoch, last + 2).error().code, Errc::out_of_order_sequence);
        EXPECT_TRUE(send(0, epoch, last).value().duplicate);
        ok(send(1000, epoch, last + 1));

        log.clock.advance(24h);
        log.log->expire_producers(log.clock.now());
        ok(log.append("k=end |"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "1002:k=end | ");
    }
}

/// KAFKA-17076, KAFKA-20452: the end offset survives the removal of what was there, and a restart without the empty active segment.
TEST(CleaningCases, TheEndOffsetSurvivesCleaningAndALostActiveSegment) {
    TestLogOptions options;
    options.config.delete_retention_ms = 1000;
    TestLog log(options);
    ok(log.append("a=1 b=1 c=1 d=1 e=1 a=~ b=~ c=~ d=~ e=~ |"));
    ok(log.clean());
    log.clock.advance(1000ms);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "9:() | ");
    EXPECT_EQ(log.log->log_end_offset(), Offset{10});
    EXPECT_EQ(first_batch_at(log, Offset{0}), Offset{9}) << "an empty batch leads a reader to the end";
    ok(log.log->flush());
    ok(log.disk.remove("/logs/t-0/00000000000000000010.log"));
    log.reopen(false);
    EXPECT_EQ(log.log->log_end_offset(), Offset{10});
    ok(log.append("f=1 | g=1"));
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "10:f=1 | 11:g=1") << "with newer data the empty batch goes";
}

/// Records below the log start that share their batch with others may go for good; nothing below it may come back.
TEST(CleaningCases, ALogStartInsideABatch) {
    TestLog log;
    ok(log.append("[a=1 b=1 c=1 d=1] | c=2 | z=1"));
    ok(log.log->delete_records_before(Offset{2}));
    ok(log.clean());
    EXPECT_EQ(log.log->log_start_offset(), Offset{2});
    EXPECT_THAT(log.text(), HasSubstr("3:d=1"));
    EXPECT_THAT(log.text(), testing::Not(HasSubstr("2:c=1")));
    EXPECT_EQ(first_batch_at(log, Offset{2}), Offset{0}) << "the batch comes whole";
}

TEST(CleaningCases, OneRecordOfProgressPerPassWithAMapForOneKey) {
    TestLog log({.map_slots = 2, .map_load = 0.75});
    ok(log.append("1=a 0=b 1=c 0=d | z=1"));
    std::vector<std::string> steps;
    for (int i = 0; i < 4; ++i) {
        ok(log.clean());
        steps.push_back(log.text() + " from " + std::to_string(log.checkpoint->value));
    }
    EXPECT_THAT(steps, ElementsAre("0:1=a 1:0=b 2:1=c 3:0=d | 4:z=1 from 1", "0:1=a 1:0=b 2:1=c 3:0=d | 4:z=1 from 2", "1:0=b 2:1=c 3:0=d | 4:z=1 from 3", "2:1=c 3:0=d | 4:z=1 from 4"));
}

TEST(CleaningCases, StatsOfAPartialPass) {
    // Five records, room for three keys, the first two of them clean.
    TestLog log({.map_slots = 4, .map_load = 0.75});
    ok(log.append("a=1 b=1 | a=2 b=2 c=1 | z=1"));
    log.checkpoint = Offset{2};
    const auto stats = log.clean().value();
    EXPECT_EQ(stats.end_offset, Offset{5});
    EXPECT_EQ(stats.map_messages_read, 3);
    EXPECT_EQ(stats.messages_read, 5);
    EXPECT_EQ(stats.messages_written, 3);
    EXPECT_DOUBLE_EQ(stats.buffer_utilization, 0.75);
}

/// Retention, or DeleteRecords, takes the sources away while the pass reads them.
TEST(CleaningCases, SourcesThatVanishBeforeTheSwap) {
    for (int vanish_at = 0;; ++vanish_at) {
        std::map<std::string, int> renamed;
        ManualClock clock;
        io::FaultyFileSystem disk({.before = [&](const io::Call& call) { renamed[call.path] += call.operation == io::Operation::rename && call.to.ends_with(".deleted"); }, .clock = &clock});
        TestLogOptions options;
        options.files = &disk;
        options.clock = &clock;
        TestLog log(options);
        ok(log.append("a=1 | b=1 | a=2 | z=1"));
        Throttle throttle(log.clock);
        int calls = 0;
        const KeepGoing keep_going = [&]() -> Result<> {
            if (calls++ == vanish_at) {
                TM_TRYV(log.log->delete_records_before(Offset{3}));
                TM_TRYV(log.log->delete_oldest_segments(3, "test"));
            }
            return {};
        };
        (void)run_pass(*log.log, {.first_dirty = Offset{0}, .cleanable_end = Offset{3}}, {}, log.work, throttle, log.clock, keep_going);
        if (calls <= vanish_at) break;
        for (const char* file : {"00000000000000000000.log", "00000000000000000001.log", "00000000000000000002.log"}) EXPECT_EQ(renamed[std::string{"/logs/t-0/"} + file], 1) << file << ", " << vanish_at;
        EXPECT_EQ(log.log->log_start_offset(), Offset{3}) << vanish_at;
        EXPECT_THAT(log.text(), testing::EndsWith("3:z=1")) << vanish_at;
        EXPECT_THAT(log.text(), testing::Not(HasSubstr("=1 |"))) << "what was deleted is not back; call " << vanish_at;
        log.reopen(false);
        EXPECT_THAT(log.text(), testing::EndsWith("3:z=1")) << vanish_at;
    }
}

/// KAFKA-4529: a record from the future made newer tombstones look old.
TEST(CleaningCases, ARecordFromTheFutureDoesNotAgeATombstone) {
    TestLogOptions options;
    options.config.delete_retention_ms = 60'000;
    options.config.timestamp_after_max_ms = storage::unlimited;
    TestLog log(options);
    ok(log.append("0=v@" + std::to_string(log.clock.now().value + 86'400'000) + " |"));
    ok(log.clean());
    ok(log.append("0=~ | x=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:0=~@h60s | 2:x=1") << "the value went, the tombstone's time begins";
    log.clock.advance(59'999ms);
    ok(log.append("|"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:0=~@h1ms 2:x=1 | ");
    log.clock.advance(1ms);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "2:x=1 | ");
}

/// KAFKA-3587, KAFKA-3894: room for 1,000 keys, and 5,000 of them, each twice.
TEST(CleaningCases, AMapSmallerThanOneSegmentsKeys) {
    for (const bool one_batch : {false, true}) {
        for (const bool far_apart : {false, true}) {
            TestLog log({.map_slots = 1112});
            std::string script;
            for (int round = 0; round < 2; ++round) {
                if (far_apart && round > 0) script += ">1000000000 ";
                if (one_batch) script += "[";
                for (int key = 0; key < 5000; ++key) script += "k" + std::to_string(key) + "=" + std::to_string(round) + " ";
                if (one_batch) script += "] ";
            }
            ok(log.append(script + "|"));
            ASSERT_EQ(log.work.map.limit(), 1000);
            const auto before = log.committed();
            int passes = 0;
            for (const auto end = log.log->segments()->back()->base_offset(); log.checkpoint.value_or(Offset{0}) < end; ++passes) {
                const auto from = log.checkpoint.value_or(Offset{0});
                ok(log.clean());
                ASSERT_GT(*log.checkpoint, from);
            }
            EXPECT_EQ(passes, 10);
            EXPECT_EQ(log.committed(), before);
            EXPECT_EQ(std::ranges::count(log.text(), '='), 5000);
        }
    }
}

/// KAFKA-20036: what is rewritten may need more room than it had, here for its index. Batches that stay are the same bytes, the
/// others keep their codec, everything is counted once, and the transactions are what they were.
TEST(CleaningCases, OutputThatOutgrowsItsSources) {
    TestLogOptions options;
    options.codec = record::Codec::zstd;
    options.config.index_interval_bytes = 0;
    options.config.segment_index_bytes = 200;
    TestLog log(options);
    ok(log.append("[a=1 u=1] t3:[b=1 c=1] x3 [d=1 e=1] f=1 | [g=1 h=1] t2:[i=1 j=1] c2 [k=1 a=2] t1:l=1 c1 | z=1"));
    auto config = log.config();
    config.segment_index_bytes = 72;
    log.set_config(config);
    const auto before = log.committed();
    const auto aborted = log.log->aborted_between(Offset{0}, Offset{100});
    const auto sources = batches_of(log);
    const auto stats = log.clean().value();
    EXPECT_GT(stats.segments_after, 1);
    EXPECT_EQ(log.committed(), before);
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
    EXPECT_EQ(stats.superseded, 1);
    EXPECT_EQ(stats.aborted_batches, 1);
    EXPECT_EQ(stats.messages_read, 2 + 2 + 1 + 2 + 1 + 2 + 2 + 1 + 2 + 1 + 1);
    EXPECT_EQ(stats.messages_written, stats.messages_read - 1 - 2) << "one came again, two were aborted; their batch stays, empty, for its producer";
    for (const auto& [base, bytes] : batches_of(log)) {
        const auto batch = record::BatchView::parse(bytes).value(), source = record::BatchView::parse(sources.at(base)).value();
        if (batch.record_count() == 0) continue;
        EXPECT_EQ(batch.codec(), batch.is_control() ? record::Codec::none : record::Codec::zstd);
        if (batch.record_count() == source.record_count()) {
            EXPECT_EQ(bytes, sources.at(base)) << "not touched: " << base.value;
        }
    }
    log.reopen();
    EXPECT_EQ(log.committed(), before);
}

/// All markers of a kind have the same key bytes; a rebuilt transaction index tells the same story.
TEST(CleaningCases, TwoAbortsAndTheirMarkers) {
    TestLogOptions options;
    options.config.delete_retention_ms = 86'400'000;
    TestLog log(options);
    ok(log.append("t1:k1=a x1 t2:k2=b x2 t1:k3=c c1 t2:k4=d c2 |"));
    EXPECT_EQ(log.text(), "0:k1=a 1:abort1 2:k2=b 3:abort2 4:k3=c 5:commit1 6:k4=d 7:commit2 | ") << "read_uncommitted";
    const std::map<std::string, std::string> committed{{"k3", "c"}, {"k4", "d"}};
    EXPECT_EQ(log.committed(), committed);
    for (int pass = 0; pass < 2; ++pass) {
        log.checkpoint = Offset{0};
        ok(log.clean());
        EXPECT_EQ(log.text(), pass == 0 ? "1:abort1 3:abort2 4:k3=c 5:commit1 6:k4=d 7:commit2 | " : "1:abort1@h86400s 3:abort2@h86400s 4:k3=c 5:commit1 6:k4=d 7:commit2 | ");
        EXPECT_EQ(log.committed(), committed);
        for (const auto& name : log.files()) {
            if (name.ends_with(".txnindex")) ok(log.disk.remove("/logs/t-0/" + name));
        }
        log.reopen(pass == 0);
        EXPECT_EQ(log.committed(), committed);
    }
}

/// A newer value that was aborted neither hides the older one nor takes it along.
TEST(CleaningCases, AnAbortedValueShadowsNothing) {
    TestLog log;
    ok(log.append("t1:k=v1 c1 t1:k=v2 x1 t1:other=1 c1 |"));
    EXPECT_THAT(log.text(), HasSubstr("0:k=v1 1:commit1 2:k=v2 3:abort1")) << "read_uncommitted sees both";
    EXPECT_EQ(log.committed().at("k"), "v1");
    ok(log.clean());
    EXPECT_EQ(log.text(), "0:k=v1 1:commit1 3:abort1 4:other=1 5:commit1 | ") << "both see v1";
    EXPECT_EQ(log.committed().at("k"), "v1");
}

/// KAFKA-16310 and others: the record with the largest timestamp was compacted away.
TEST(CleaningCases, TheLargestTimestampIsThatOfWhatIsLeft) {
    TestLog log;
    ok(log.append("[a=1@1000 b=1@9000 c=1@5000] b=2@4000 | z=1@3000"));
    const auto found = [&] {
        const auto at = log.log->offset_of_max_timestamp(storage::Isolation::read_uncommitted).value();
        return at ? std::pair{at->offset.value, at->timestamp.value} : std::pair<std::int64_t, std::int64_t>{-1, -1};
    };
    EXPECT_EQ(found(), (std::pair<std::int64_t, std::int64_t>{1, 9000}));
    ok(log.clean());
    EXPECT_EQ(log.text(), "0:a=1 2:c=1 3:b=2 | 4:z=1");
    EXPECT_EQ(found(), (std::pair<std::int64_t, std::int64_t>{2, 5000}));
    log.reopen();
    EXPECT_EQ(found(), (std::pair<std::int64_t, std::int64_t>{2, 5000}));
}

/// A batch may not claim offsets that its segment does not have: where the next pass begins would lie beyond what was seen.
TEST(CleaningCases, OffsetsBeyondTheSegmentStopThePass) {
    TestLog log;
    ok(log.append("[a=1 b=1] | a=2 | z=1"));
    const auto file = log.disk.open("/logs/t-0/00000000000000000000.log", io::OpenMode::read_write).value();
    const std::byte far[] = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{1}, std::byte{0}};
    ok(file->write(FilePosition{0}, far));   // base offset 256, which no checksum covers
    const auto result = log.clean();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::corrupt);
    const std::byte right[8] = {};
    ok(file->write(FilePosition{0}, right));
    ok(log.clean());
}

}  // namespace
}  // namespace tidemark::cleaner
