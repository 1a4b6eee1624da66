#include "storage/segment.h"

#include <gmock/gmock.h>

#include <random>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "record/builder.h"

namespace tidemark::storage {
namespace {

std::vector<std::byte> batch_of(std::int64_t base, const std::vector<std::int64_t>& timestamps, std::string_view value = "v") {
    record::BatchBuilder builder;
    builder.start({.base_offset = Offset{base}});
    for (std::size_t i = 0; i < timestamps.size(); ++i) builder.append(Offset{base + static_cast<std::int64_t>(i)}, Timestamp{timestamps[i]}, as_bytes("k"), as_bytes(value));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

class SegmentTest : public testing::Test {
protected:
    ManualClock clock;
    io::FaultyFileSystem files{{.clock = &clock}};
    OpenFiles open_files{files};
    std::shared_ptr<DirectoryPath> directory = std::make_shared<DirectoryPath>("/");
    SegmentOptions options{.index_bytes_max = 1000, .index_interval_bytes = 150};

    std::shared_ptr<Segment> create(std::int64_t base) { return *Segment::create(open_files, clock, directory, Offset{base}, options); }
    std::shared_ptr<Segment> open(std::int64_t base, Segment::Found found = {true, true, false}) {
        return *Segment::open(open_files, clock, directory, Offset{base}, options, found);
    }
    static void append(Segment& segment, std::int64_t base, const std::vector<std::int64_t>& timestamps) {
        ASSERT_TRUE(segment.append(batch_of(base, timestamps)));
    }
    std::int64_t size_of(const Segment& segment, FileKind kind) { return files.status(segment.path().of(kind)).value()->bytes; }
};

TEST_F(SegmentTest, FindsTheBatchThatHoldsOrFollowsAnOffset) {
    auto segment = create(40);
    EXPECT_EQ(segment->find(Offset{40}).value(), std::nullopt);
    EXPECT_EQ(segment->next_offset().value(), Offset{40});
    append(*segment, 50, {1, 2, 3});
    append(*segment, 60, {4});
    EXPECT_EQ(segment->next_offset().value(), Offset{61});
    EXPECT_EQ(segment->find(Offset{40}).value()->base_offset, Offset{50});
    EXPECT_EQ(segment->find(Offset{51}).value()->base_offset, Offset{50});
    EXPECT_EQ(segment->find(Offset{53}).value()->base_offset, Offset{60});  // a gap: the next one
    EXPECT_EQ(segment->find(Offset{61}).value(), std::nullopt);
}

TEST_F(SegmentTest, RefusesOffsetsThatDoNotFit) {
    for (const auto& [base, offset] : {std::pair<std::int64_t, std::int64_t>{0, 2147483648}, {1, 0}, {100, 10}, {2147483648, 0}, {2147483648, 4294967296}}) {
        auto segment = create(base);
        const auto refused = segment->append(batch_of(offset, {1}));
        ASSERT_FALSE(refused) << base << " " << offset;
        EXPECT_EQ(refused.error().code, Errc::offset_overflow);
        EXPECT_EQ(segment->bytes(), 0);
    }
    EXPECT_TRUE(create(0)->append(batch_of(2147483647, {1})));
}

TEST_F(SegmentTest, IndexesEachBatchAfterAnInterval) {
    // 69 bytes a batch, an entry once more than 150 bytes have passed: the fourth, the seventh … of them.
    auto segment = create(0);
    for (int i = 0; i < 8; ++i) append(*segment, i, {100 + i});
    ASSERT_TRUE(segment->become_inactive());
    const auto bytes = *io::read_whole(files, segment->path().of(FileKind::offset_index));
    ASSERT_EQ(bytes.size(), 16u);
    const auto one = segment->batch_at(FilePosition{0}).value()->bytes;
    EXPECT_EQ(load_be<std::int32_t>(bytes.data()), 3);
    EXPECT_EQ(load_be<std::int32_t>(bytes.data() + 4), 3 * one);
    EXPECT_EQ(load_be<std::int32_t>(bytes.data() + 8), 6);
    // Time entries at the same places, and the last one forced.
    const auto times = *io::read_whole(files, segment->path().of(FileKind::time_index));
    ASSERT_EQ(times.size(), 36u);
    EXPECT_EQ(load_be<std::int64_t>(times.data() + 24), 107);
    EXPECT_EQ(load_be<std::int32_t>(times.data() + 32), 7);
}

TEST_F(SegmentTest, KnowsItsLargestTimestamp) {
    auto segment = create(0);
    EXPECT_EQ(segment->largest_timestamp().value().source, LargestTimestamp::Source::file_time);
    append(*segment, 0, {-1});
    EXPECT_EQ(segment->largest_record_timestamp().value(), std::nullopt);
    EXPECT_EQ(segment->largest_timestamp().value().value, clock.now());
    EXPECT_EQ(segment->first_batch_timestamp().value(), std::nullopt);
    append(*segment, 1, {300, 100});
    append(*segment, 3, {300});  // equal: the first batch keeps it
    EXPECT_EQ(segment->largest_entry().value(), (TimeIndex::Entry{Timestamp{300}, Offset{2}}));
    ASSERT_TRUE(segment->become_inactive());
    auto again = open(0);
    EXPECT_EQ(again->largest_entry().value(), (TimeIndex::Entry{Timestamp{300}, Offset{2}}));
    EXPECT_EQ(again->next_offset().value(), Offset{4});
}

TEST_F(SegmentTest, RenamingMakesNoIndexThatIsNotThere) {
    auto segment = create(0);
    append(*segment, 0, {1});
    ASSERT_TRUE(segment->become_inactive());
    for (const auto kind : {FileKind::offset_index, FileKind::time_index}) ASSERT_TRUE(files.remove(segment->path().of(kind)));
    auto again = open(0, {false, false, false});
    ASSERT_TRUE(again->rename_files(FileSuffix::none, FileSuffix::deleted));
    EXPECT_EQ(again->log_path(), "/00000000000000000000.log.deleted");
    const auto there = files.list("/").value();
    ASSERT_EQ(there.size(), 1u);
    EXPECT_EQ(there.front().name, "00000000000000000000.log.deleted");
    ASSERT_TRUE(again->remove_files());
    EXPECT_THAT(files.list("/").value(), testing::IsEmpty());
}

TEST_F(SegmentTest, RollsByWhatTheMessagesSay) {
    auto segment = create(0);
    const auto rolls = [&](std::int64_t timestamp, std::int64_t bytes = 70, std::int64_t last = 10, std::int64_t limit = 10'000) {
        return segment->should_roll_for({.segment_bytes = limit, .segment_ms = 1000, .append_bytes = bytes, .append_max_timestamp = Timestamp{timestamp},
                                         .append_last_offset = Offset{last}, .now = clock.now()}).value();
    };
    clock.advance(std::chrono::seconds{100});
    EXPECT_FALSE(rolls(1'000'000));                       // empty: never by time
    EXPECT_TRUE(rolls(0, 70, 2147483648));                // but by offset
    append(*segment, 0, {5000});
    clock.advance(std::chrono::seconds{100});
    EXPECT_FALSE(rolls(6000));                            // the wall clock does not count
    EXPECT_TRUE(rolls(6001));
    const auto size = segment->bytes();
    EXPECT_FALSE(rolls(5000, 100, 10, size + 100));       // an exact fit
    EXPECT_TRUE(rolls(5000, 101, 10, size + 100));
    EXPECT_FALSE(rolls(5000, 70, 2147483647));
    EXPECT_TRUE(rolls(5000, 70, 2147483648));
}

TEST_F(SegmentTest, RollsByTheWallClockWithoutTimestamps) {
    auto segment = create(0);
    append(*segment, 0, {-1});
    const auto rolls = [&](std::int64_t timestamp) {
        return segment->should_roll_for({.segment_bytes = 10'000, .segment_ms = 1000, .append_bytes = 70, .append_max_timestamp = Timestamp{timestamp},
                                         .append_last_offset = Offset{1}, .now = clock.now()}).value();
    };
    clock.advance(std::chrono::milliseconds{1000});
    EXPECT_FALSE(rolls(9'000'000'000'000));
    clock.advance(std::chrono::milliseconds{1});
    EXPECT_TRUE(rolls(0));
}

TEST_F(SegmentTest, RollsWhenAnIndexIsFull) {
    options.index_bytes_max = 24;  // three offsets, one time entry and the spare
    options.index_interval_bytes = 0;
    auto segment = create(0);
    const auto rolls = [&] {
        return segment->should_roll_for({.segment_bytes = 10'000, .segment_ms = 1000, .append_bytes = 70, .append_max_timestamp = Timestamp{1},
                                         .append_last_offset = Offset{9}, .now = clock.now()}).value();
    };
    append(*segment, 0, {1});
    EXPECT_FALSE(rolls());
    append(*segment, 1, {2});
    EXPECT_TRUE(rolls());
    append(*segment, 2, {3});  // several batches of one append: those that find no room are not indexed
    EXPECT_EQ(segment->find(Offset{2}).value()->base_offset, Offset{2});
    const auto refused = segment->append(batch_of(3, {4}), true);  // the cleaner wants to know
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
}

TEST_F(SegmentTest, TruncatesAtABatch) {
    auto segment = create(40);
    for (int i = 40; i < 70; ++i) append(*segment, i, {i * 10});
    EXPECT_GT(segment->truncate_to(Offset{41}).value(), 0);
    EXPECT_EQ(segment->next_offset().value(), Offset{41});
    EXPECT_EQ(segment->largest_record_timestamp().value(), Timestamp{400});
    EXPECT_EQ(segment->time_index_bytes().value(), 0);
    append(*segment, 41, {1});
    EXPECT_EQ(segment->next_offset().value(), Offset{42});
}

TEST_F(SegmentTest, TruncationInAGapTakesTheBatchBehindIt) {
    auto segment = create(0);
    append(*segment, 0, {1});
    append(*segment, 10, {2});
    EXPECT_GT(segment->truncate_to(Offset{5}).value(), 0);
    EXPECT_EQ(segment->next_offset().value(), Offset{1});
}

TEST_F(SegmentTest, TruncationToNothingStartsItsTimeAnew) {
    auto segment = create(0);
    append(*segment, 0, {1000});
    const auto created = segment->created_at();
    clock.advance(std::chrono::seconds{5});
    ASSERT_TRUE(segment->truncate_to(Offset{0}));
    EXPECT_EQ(segment->created_at(), created + 5000);
    EXPECT_EQ(segment->first_batch_timestamp().value(), std::nullopt);
    EXPECT_EQ(segment->first_append_time(), std::nullopt);
    clock.advance(std::chrono::hours{1});
    const auto rolls_for = [&](std::int64_t last) {
        return segment->should_roll_for({.segment_bytes = 10'000, .segment_ms = 1000, .append_bytes = 70, .append_max_timestamp = Timestamp{9'000'000'000'000},
                                         .append_last_offset = Offset{last}, .now = clock.now()}).value();
    };
    EXPECT_FALSE(rolls_for(0)) << "its indexes have room and it is empty";
    EXPECT_TRUE(rolls_for(2147483648)) << "but an offset that does not fit does not fit";
    append(*segment, 0, {7});
    EXPECT_EQ(segment->first_batch_timestamp().value(), Timestamp{7});
    EXPECT_EQ(segment->largest_record_timestamp().value(), Timestamp{7});
}

TEST_F(SegmentTest, AnAppendThatFailsLeavesNothing) {
    auto segment = create(0);
    append(*segment, 0, {1});
    const auto before = segment->bytes();
    for (const auto fault : {io::Fault::io_error, io::Fault::no_space, io::Fault::short_write}) {
        files.inject({.fail_at = 0, .fault = fault, .clock = &clock});
        const auto failed = segment->append(batch_of(1, {2}));
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().code, fault == io::Fault::io_error ? Errc::io : Errc::no_space);
        EXPECT_EQ(segment->bytes(), before);
        EXPECT_EQ(size_of(*segment, FileKind::log), before);
        EXPECT_FALSE(segment->is_damaged());
        files.inject({.clock = &clock});
    }
    append(*segment, 1, {2});
    EXPECT_EQ(segment->next_offset().value(), Offset{2});
    files.inject({.fail_at = 0, .fail_calls = 2, .fault = io::Fault::short_write, .clock = &clock});  // cutting back fails, too
    EXPECT_FALSE(segment->append(batch_of(2, {3})));
    EXPECT_TRUE(segment->is_damaged());
}

TEST_F(SegmentTest, AnIndexThatCannotBeCutIsCutLater) {
    auto segment = create(0);
    for (int i = 0; i < 8; ++i) append(*segment, i, {i});
    files.inject({.fail_at = 0, .fail_calls = 1, .fault = io::Fault::no_space, .clock = &clock});
    EXPECT_FALSE(segment->become_inactive());
    files.inject({.clock = &clock});
    ASSERT_TRUE(segment->sync());
    EXPECT_EQ(size_of(*segment, FileKind::offset_index), 16);
    EXPECT_EQ(size_of(*segment, FileKind::time_index), 36);
}

TEST_F(SegmentTest, AMissingOrDoubtfulIndexIsRebuiltFromTheRecords) {
    auto segment = create(0);
    for (int i = 0; i < 40; ++i) append(*segment, i, {1000 + (i * 7) % 40});
    ASSERT_TRUE(segment->become_inactive());
    const auto offsets = *io::read_whole(files, segment->path().of(FileKind::offset_index));
    const auto times = *io::read_whole(files, segment->path().of(FileKind::time_index));
    const auto damage = [&](FileKind kind, std::vector<std::byte> content) { ASSERT_TRUE(io::replace_content(files, segment->path().of(kind), content)); };
    auto longer = offsets;
    longer.resize(longer.size() + 80);
    auto garbage = times;
    for (auto& b : garbage) b = std::byte{0xff};
    for (const auto& bad : {std::vector<std::byte>(13), longer}) {
        damage(FileKind::offset_index, bad);
        EXPECT_EQ(open(0)->find(Offset{39}).value()->base_offset, Offset{39});
        EXPECT_EQ(*io::read_whole(files, segment->path().of(FileKind::offset_index)), offsets);
    }
    for (const auto& bad : {std::vector<std::byte>(13), garbage, std::vector<std::byte>(996)}) {
        damage(FileKind::time_index, bad);
        EXPECT_EQ(open(0)->largest_record_timestamp().value(), Timestamp{1039});
        EXPECT_EQ(*io::read_whole(files, segment->path().of(FileKind::time_index)), times);
    }
    ASSERT_TRUE(files.remove(segment->path().of(FileKind::offset_index)));
    EXPECT_EQ(open(0)->find(Offset{39}).value()->base_offset, Offset{39});
    EXPECT_EQ(*io::read_whole(files, segment->path().of(FileKind::offset_index)), offsets);
}

TEST_F(SegmentTest, AMissingTimeIndexIsNotKnownUntilItIsRebuilt) {
    auto segment = create(0);
    for (int i = 0; i < 10; ++i) append(*segment, i, {1000 + i});
    ASSERT_TRUE(segment->become_inactive());
    const auto times = *io::read_whole(files, segment->path().of(FileKind::time_index));
    ASSERT_TRUE(files.remove(segment->path().of(FileKind::time_index)));
    auto again = open(0, {true, false, false});
    EXPECT_TRUE(again->time_index_is_missing());
    EXPECT_FALSE(again->wants_time_index());
    EXPECT_EQ(again->largest_timestamp().value().source, LargestTimestamp::Source::not_yet_known);
    EXPECT_TRUE(again->wants_time_index());
    EXPECT_EQ(again->time_lookup(Timestamp{1005}).value().timestamp, no_timestamp);
    ASSERT_TRUE(again->rebuild_time_index());
    EXPECT_EQ(again->largest_timestamp().value().value, Timestamp{1009});
    EXPECT_EQ(again->largest_timestamp().value().source, LargestTimestamp::Source::records);
    EXPECT_EQ(*io::read_whole(files, segment->path().of(FileKind::time_index)), times);
    // Kafka's side of D9: an empty one, and the file's time.
    ASSERT_TRUE(files.remove(segment->path().of(FileKind::time_index)));
    options.rebuild_missing_time_index = false;
    EXPECT_EQ(open(0, {true, false, false})->largest_timestamp().value().source, LargestTimestamp::Source::file_time);
}

TEST_F(SegmentTest, AnIndexEntryThatLiesInTheMiddleIsFoundOut) {
    auto segment = create(0);
    for (int i = 0; i < 40; ++i) append(*segment, i, {1000 + i});
    ASSERT_TRUE(segment->become_inactive());
    auto offsets = *io::read_whole(files, segment->path().of(FileKind::offset_index));
    store_be(offsets.data() + 5 * 8 + 4, load_be<std::int32_t>(offsets.data() + 5 * 8 + 4) + 3);  // into a batch; first and last entry are right
    ASSERT_TRUE(io::replace_content(files, segment->path().of(FileKind::offset_index), offsets));
    auto again = open(0);
    for (int i = 0; i < 40; ++i) EXPECT_EQ(again->find(Offset{i}).value()->base_offset, Offset{i});
}

TEST_F(SegmentTest, APreallocatedFileIsCutWhenItIsDone) {
    options.preallocate_bytes = 4096;
    auto segment = create(0);
    EXPECT_EQ(size_of(*segment, FileKind::log), 4096);
    EXPECT_EQ(segment->bytes(), 0);
    append(*segment, 0, {1});
    EXPECT_EQ(size_of(*segment, FileKind::log), 4096);
    ASSERT_TRUE(segment->become_inactive());
    EXPECT_EQ(size_of(*segment, FileKind::log), segment->bytes());
}

TEST_F(SegmentTest, AnEmptyOneHasItsIndexFilesAfterItWasClosed) {
    auto segment = create(0);
    EXPECT_FALSE(files.status(segment->path().of(FileKind::offset_index)).value().has_value());
    ASSERT_TRUE(segment->become_inactive());
    EXPECT_EQ(size_of(*segment, FileKind::offset_index), 0);
    EXPECT_EQ(size_of(*segment, FileKind::time_index), 0);
}

TEST_F(SegmentTest, ReadersKeepADeletedFile) {
    auto segment = create(0);
    append(*segment, 0, {1});
    const auto file = segment->file().value();
    ASSERT_TRUE(segment->rename_files(FileSuffix::none, FileSuffix::deleted));
    EXPECT_TRUE(files.status("/00000000000000000000.log.deleted").value().has_value());
    ASSERT_TRUE(segment->remove_files());
    std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
    EXPECT_EQ(file->read(FilePosition{0}, bytes).value(), bytes.size());
}

TEST_F(SegmentTest, StrayFilesOfItsNameGoFirst) {
    for (const auto* name : {"/00000000000000000007.log", "/00000000000000000007.index", "/00000000000000000007.txnindex"}) {
        ASSERT_TRUE(io::replace_content(files, name, as_bytes("old")));
    }
    auto segment = create(7);
    EXPECT_EQ(segment->bytes(), 0);
    EXPECT_THAT(segment->aborted_transactions().value(), testing::IsEmpty());
    EXPECT_FALSE(files.status("/00000000000000000007.index").value().has_value());
}

}  // namespace
}  // namespace tidemark::storage
