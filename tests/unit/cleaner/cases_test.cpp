// Situations in which brokers like this one went wrong, and what has to come out; each names the report it comes from.
#include <gmock/gmock.h>

#include "cleaner/cleaning.h"
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

/// KAFKA-17076, KAFKA-20452: the end offset survives the removal of what was there, and a restart without the empty active segment.
TEST(CleaningCases, TheEndOffsetSurvivesCleaningAndALostActiveSegment) {
    TestLogOptions options;
    options.config.delete_retention_ms = 1000;
    TestLog log(options);
    ok(log.append("a=1 b=1 a=~ b=~ |"));
    ok(log.clean());
    log.clock.advance(1000ms);
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.log->log_end_offset(), Offset{4});
    EXPECT_EQ(first_batch_at(log, Offset{0}), Offset{3}) << "an empty batch leads a reader to the end";
    ok(log.log->flush());
    ok(log.disk.remove("/logs/t-0/00000000000000000004.log"));
    log.reopen(false);
    EXPECT_EQ(log.log->log_end_offset(), Offset{4});
    ok(log.append("c=1 | d=1"));
    log.checkpoint = Offset{0};
    ok(log.clean());
    EXPECT_EQ(log.text(), "4:c=1 | 5:d=1") << "with newer data the empty batch goes";
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
        TestLog log;
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
        EXPECT_EQ(log.log->log_start_offset(), Offset{3}) << vanish_at;
        EXPECT_THAT(log.text(), testing::EndsWith("3:z=1")) << vanish_at;
        EXPECT_THAT(log.text(), testing::Not(HasSubstr("=1 |"))) << "what was deleted is not back; call " << vanish_at;
        log.reopen(false);
        EXPECT_THAT(log.text(), testing::EndsWith("3:z=1")) << vanish_at;
    }
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
