#include <gmock/gmock.h>

#include <map>
#include <random>

#include "base/bytes.h"
#include "io/memory_file_system.h"
#include "storage/offset_index.h"
#include "storage/time_index.h"
#include "storage/transaction_index.h"

namespace tidemark::storage {
namespace {

struct Disk {
    io::MemoryFileSystem files;
    OpenFiles open_files{files};
    std::shared_ptr<DirectoryPath> directory = std::make_shared<DirectoryPath>("/");

    std::vector<std::byte> content(const SegmentPath& path, FileKind kind) { return *io::read_whole(files, path.of(kind)); }
    void put(const SegmentPath& path, FileKind kind, Bytes bytes) {
        auto file = files.open(path.of(kind), io::OpenMode::create_truncated);
        ASSERT_TRUE(file && (*file)->write(FilePosition{0}, bytes));
    }
};

// --- offset index ------------------------------------------------------------------------------------------------------

class OffsetIndexTest : public testing::Test {
protected:
    Disk disk;
    SegmentPath path{disk.directory, Offset{45}};
    OffsetIndex index{disk.open_files, path};
    void SetUp() override { index.file().start_empty(30 * 8); }
};

TEST_F(OffsetIndexTest, EmptyLooksUpTheBase) {
    EXPECT_EQ(index.lookup(Offset{92}).value(), (OffsetIndex::Entry{Offset{45}, FilePosition{0}}));
    EXPECT_EQ(index.first_at_or_after(FilePosition{0}).value(), std::nullopt);
}

TEST_F(OffsetIndexTest, LooksUpLikeAMap) {
    std::mt19937 random(7);
    index.file().start_empty(8 * 4000);
    std::map<Offset, FilePosition> reference;
    Offset offset{45};
    FilePosition position{0};
    for (int i = 0; i < 4000; ++i) {
        offset = offset + 1 + random() % 20;
        position = position + 60 + random() % 500;
        ASSERT_TRUE(index.append(offset, position));
        reference.emplace(offset, position);
    }
    const auto check = [&] {
        for (int i = 0; i < 2000; ++i) {
            const Offset target{45 + static_cast<std::int64_t>(random() % 50'000)};
            auto found = reference.upper_bound(target);
            const auto expected = found == reference.begin() ? OffsetIndex::Entry{Offset{45}, FilePosition{0}}
                                                             : OffsetIndex::Entry{std::prev(found)->first, std::prev(found)->second};
            ASSERT_EQ(index.lookup(target).value(), expected);
            const FilePosition at{static_cast<std::int64_t>(random() % 1'300'000)};
            const auto upper = std::find_if(reference.begin(), reference.end(), [&](const auto& e) { return e.second >= at; });
            const auto bound = index.first_at_or_after(at).value();
            ASSERT_EQ(bound.has_value(), upper != reference.end());
            if (!bound) continue;
            ASSERT_EQ(bound->offset, upper->first);
        }
    };
    check();                                  // in memory
    ASSERT_TRUE(index.file().trim());
    EXPECT_EQ(disk.content(path, FileKind::offset_index).size(), 8u * 4000);
    check();                                  // from the file
}

TEST_F(OffsetIndexTest, RefusesMoreThanFitsAndOffsetsThatDoNotRise) {
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(index.append(Offset{50 + i}, FilePosition{100 + i}));
    EXPECT_TRUE(index.is_full());
    EXPECT_EQ(index.append(Offset{1000}, FilePosition{1000}).error().code, Errc::invalid_argument);
    index.file().start_empty(30 * 8);
    ASSERT_TRUE(index.append(Offset{51}, FilePosition{0}));
    EXPECT_EQ(index.append(Offset{51}, FilePosition{1}).error().code, Errc::unexpected_offset);
    EXPECT_EQ(index.append(Offset{50}, FilePosition{1}).error().code, Errc::unexpected_offset);
}

TEST_F(OffsetIndexTest, IsAsLongAsItMayGetWhileItIsWritten) {
    ASSERT_TRUE(index.append(Offset{50}, FilePosition{100}));
    ASSERT_TRUE(index.file().write_pending());
    EXPECT_EQ(disk.content(path, FileKind::offset_index).size(), 240u);
    ASSERT_TRUE(index.file().trim());
    EXPECT_EQ(disk.content(path, FileKind::offset_index).size(), 8u);
    OffsetIndex again(disk.open_files, path);
    ASSERT_TRUE(again.file().load(true));
    EXPECT_EQ(again.last().value(), (OffsetIndex::Entry{Offset{50}, FilePosition{100}}));
    ASSERT_TRUE(again.file().make_writable(30 * 8));
    ASSERT_TRUE(again.append(Offset{60}, FilePosition{200}));
    ASSERT_TRUE(again.file().write_pending());
    EXPECT_EQ(disk.content(path, FileKind::offset_index).size(), 240u);
    EXPECT_EQ(again.lookup(Offset{59}).value().offset, Offset{50});
}

TEST_F(OffsetIndexTest, TruncationKeepsWhatLiesBelow) {
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(index.append(Offset{46 + i}, FilePosition{100 + i}));
    ASSERT_TRUE(index.file().write_pending());
    ASSERT_TRUE(index.truncate_to(Offset{56}));
    EXPECT_EQ(index.file().entries(), 10);
    ASSERT_TRUE(index.truncate_to(Offset{50}));
    EXPECT_EQ(index.last().value()->offset, Offset{49});
    ASSERT_TRUE(index.append(Offset{70}, FilePosition{900}));
    ASSERT_TRUE(index.file().trim());
    EXPECT_EQ(index.lookup(Offset{70}).value().position, FilePosition{900});
    EXPECT_EQ(disk.content(path, FileKind::offset_index).size(), 5u * 8);
}

TEST_F(OffsetIndexTest, DoubtIsCorrupt) {
    const auto loaded = [&](std::vector<std::byte> bytes) {
        disk.put(path, FileKind::offset_index, bytes);
        OffsetIndex again(disk.open_files, path);
        if (auto load = again.file().load(true); !load) return load.error().code == Errc::corrupt;
        const auto checked = again.check(1000);
        return !checked && checked.error().code == Errc::corrupt;
    };
    const auto entry = [](std::int32_t offset, std::int32_t position) {
        std::vector<std::byte> bytes;
        append_be(bytes, offset);
        append_be(bytes, position);
        return bytes;
    };
    const auto both = [&](std::vector<std::byte> a, const std::vector<std::byte>& b) {
        append_bytes(a, b);
        return a;
    };
    EXPECT_FALSE(loaded({}));
    EXPECT_FALSE(loaded(entry(5, 100)));
    EXPECT_FALSE(loaded(both(entry(5, 100), entry(7, 200))));
    EXPECT_TRUE(loaded(std::vector<std::byte>(7)));
    EXPECT_TRUE(loaded(both(entry(5, 100), entry(0, 0))));       // zeros at the end
    EXPECT_TRUE(loaded(entry(5, 1000)));                         // outside the log
    EXPECT_TRUE(loaded(entry(-1, 100)));
    EXPECT_TRUE(loaded(both(entry(7, 200), entry(5, 300))));
}

// --- time index --------------------------------------------------------------------------------------------------------

class TimeIndexTest : public testing::Test {
protected:
    Disk disk;
    SegmentPath path{disk.directory, Offset{45}};
    TimeIndex index{disk.open_files, path};
    void SetUp() override { index.file().start_empty(30 * 12); }
    void fill(int n) {
        for (int i = 1; i <= n; ++i) ASSERT_TRUE(index.append(Timestamp{i * 10}, Offset{45 + i * 10}));
    }
    TimeIndex::Entry lookup(std::int64_t t) { return index.lookup(Timestamp{t}).value(); }
};

TEST_F(TimeIndexTest, LooksUpTheYoungestThatIsNotYounger) {
    EXPECT_EQ(lookup(100), (TimeIndex::Entry{no_timestamp, Offset{45}}));
    EXPECT_EQ(index.last().value(), (TimeIndex::Entry{no_timestamp, Offset{45}}));
    fill(10);
    EXPECT_EQ(lookup(9), (TimeIndex::Entry{no_timestamp, Offset{45}}));
    EXPECT_EQ(lookup(25), (TimeIndex::Entry{Timestamp{20}, Offset{65}}));
    EXPECT_EQ(lookup(30), (TimeIndex::Entry{Timestamp{30}, Offset{75}}));
    ASSERT_TRUE(index.file().trim());
    EXPECT_EQ(lookup(25), (TimeIndex::Entry{Timestamp{20}, Offset{65}}));
}

TEST_F(TimeIndexTest, KeepsOneSlotForTheLastEntry) {
    fill(29);
    EXPECT_TRUE(index.is_full());
    EXPECT_EQ(index.append(Timestamp{10'000}, Offset{1000}).error().code, Errc::invalid_argument);
    EXPECT_EQ(index.append(Timestamp{290}, Offset{1000}).error().code, Errc::invalid_argument);  // full counts first
    EXPECT_EQ(index.append(Timestamp{10'000}, Offset{50}, true).error().code, Errc::unexpected_offset);
    EXPECT_TRUE(index.append(Timestamp{10'000}, Offset{1000}, true));
    EXPECT_EQ(index.file().entries(), 30);
}

TEST_F(TimeIndexTest, TakesOnlyWhatIsYounger) {
    EXPECT_TRUE(index.append(no_timestamp, Offset{45}));
    EXPECT_EQ(index.file().entries(), 0);
    ASSERT_TRUE(index.append(Timestamp{10}, Offset{50}));
    EXPECT_TRUE(index.append(Timestamp{10}, Offset{60}));
    EXPECT_EQ(index.file().entries(), 1);
    EXPECT_EQ(index.append(Timestamp{9}, Offset{60}).error().code, Errc::unexpected_offset);
    EXPECT_EQ(index.append(Timestamp{20}, Offset{49}).error().code, Errc::unexpected_offset);
}

TEST_F(TimeIndexTest, KeepsSixtyFourBits) {
    ASSERT_TRUE(index.append(Timestamp{0}, Offset{46}));
    ASSERT_TRUE(index.append(Timestamp{253'402'300'799'000}, Offset{47}));
    EXPECT_EQ(index.last().value().timestamp, Timestamp{253'402'300'799'000});
    EXPECT_EQ(lookup(1).timestamp, Timestamp{0});
}

TEST_F(TimeIndexTest, TruncationKeepsWhatLiesBelow) {
    fill(10);
    ASSERT_TRUE(index.truncate_to(Offset{75}));
    EXPECT_EQ(index.last().value(), (TimeIndex::Entry{Timestamp{20}, Offset{65}}));
    ASSERT_TRUE(index.truncate_to(Offset{55}));
    EXPECT_EQ(index.file().entries(), 0);
}

TEST_F(TimeIndexTest, DoubtIsCorrupt) {
    const auto loaded = [&](const std::vector<std::pair<std::int64_t, std::int32_t>>& entries, std::size_t extra = 0) {
        std::vector<std::byte> bytes;
        for (const auto& [timestamp, offset] : entries) {
            append_be(bytes, timestamp);
            append_be(bytes, offset);
        }
        bytes.resize(bytes.size() + extra);
        disk.put(path, FileKind::time_index, bytes);
        TimeIndex again(disk.open_files, path);
        if (auto load = again.file().load(true); !load) return load.error().code == Errc::corrupt;
        const auto checked = again.check();
        return !checked && checked.error().code == Errc::corrupt;
    };
    EXPECT_FALSE(loaded({}));
    EXPECT_FALSE(loaded({{10, 0}}));
    EXPECT_FALSE(loaded({{10, 0}, {20, 0}}));
    EXPECT_TRUE(loaded({{10, 5}}, 12));
    EXPECT_TRUE(loaded({{10, 5}}, 24));
    EXPECT_TRUE(loaded({{10, 5}}, 120));
    EXPECT_TRUE(loaded({{10, 5}}, 7));
    EXPECT_TRUE(loaded({{20, 5}, {10, 6}}));
    EXPECT_TRUE(loaded({{10, -1}}));
}

// --- transaction index -------------------------------------------------------------------------------------------------

const std::vector<AbortedTransaction> four = {{0, Offset{0}, Offset{10}, Offset{11}},
                                              {1, Offset{5}, Offset{15}, Offset{13}},
                                              {2, Offset{18}, Offset{35}, Offset{25}},
                                              {3, Offset{32}, Offset{50}, Offset{40}}};

class TransactionIndexTest : public testing::Test {
protected:
    Disk disk;
    SegmentPath path{disk.directory, Offset{0}};
    TransactionIndex index{disk.open_files, path};
    void fill() {
        for (const auto& entry : four) ASSERT_TRUE(index.append(entry));
    }
};

TEST_F(TransactionIndexTest, IsThereOnlyOnceSomethingIsInIt) {
    EXPECT_THAT(index.all().value(), testing::IsEmpty());
    EXPECT_TRUE(index.sync());
    EXPECT_FALSE(disk.files.status(path.of(FileKind::transaction_index)).value().has_value());
    EXPECT_FALSE(index.search(Offset{0}, Offset{100}).value().complete);
}

TEST_F(TransactionIndexTest, SearchesAsReadersNeed) {
    fill();
    const auto found = [&](std::int64_t from, std::int64_t bound) {
        const auto search = index.search(Offset{from}, Offset{bound}).value();
        std::vector<ProducerId> ids;
        for (const auto& a : search.aborted) ids.push_back(a.producer_id);
        return std::pair{ids, search.complete};
    };
    EXPECT_EQ(found(0, 100), (std::pair{std::vector<ProducerId>{0, 1, 2, 3}, false}));
    EXPECT_EQ(found(0, 32), (std::pair{std::vector<ProducerId>{0, 1, 2}, true}));
    EXPECT_EQ(found(0, 35), (std::pair{std::vector<ProducerId>{0, 1, 2, 3}, true}));
    EXPECT_EQ(found(10, 35), (std::pair{std::vector<ProducerId>{0, 1, 2, 3}, true}));
    EXPECT_EQ(found(11, 35), (std::pair{std::vector<ProducerId>{1, 2, 3}, true}));
    EXPECT_EQ(found(20, 41), (std::pair{std::vector<ProducerId>{2, 3}, false}));
}

TEST_F(TransactionIndexTest, GoesOnAfterItWasOpenedAgain) {
    fill();
    TransactionIndex again(disk.open_files, path);
    again.set_exists(true);
    EXPECT_EQ(again.all().value(), four);
    const AbortedTransaction fifth{7, Offset{60}, Offset{70}, Offset{71}};
    ASSERT_TRUE(again.append(fifth));
    EXPECT_EQ(decode_transaction_index(disk.content(path, FileKind::transaction_index)).value().back(), fifth);
    EXPECT_EQ(again.append({8, Offset{1}, Offset{70}, Offset{71}}).error().code, Errc::invalid_argument);
    EXPECT_EQ(again.append({8, Offset{1}, Offset{69}, Offset{71}}).error().code, Errc::invalid_argument);
}

TEST_F(TransactionIndexTest, TruncatesByTheMarkersOffset) {
    fill();
    ASSERT_TRUE(index.truncate_to(Offset{51}));
    EXPECT_EQ(index.all().value(), four);
    ASSERT_TRUE(index.truncate_to(Offset{50}));
    EXPECT_EQ(index.all().value().size(), 3u);
    EXPECT_EQ(disk.content(path, FileKind::transaction_index).size(), 3 * aborted_transaction_bytes);
    ASSERT_TRUE(index.reset());
    EXPECT_THAT(index.all().value(), testing::IsEmpty());
}

TEST_F(TransactionIndexTest, TheBytesAreKafkas) {
    ASSERT_TRUE(index.append({1, Offset{2}, Offset{3}, Offset{4}}));
    std::string hex;
    for (const auto b : disk.content(path, FileKind::transaction_index)) hex += fmt::format("{:02x}", std::to_integer<int>(b));
    EXPECT_EQ(hex, "00000000000000000001000000000000000200000000000000030000000000000004");
}

TEST_F(TransactionIndexTest, DoubtIsCorrupt) {
    fill();
    SegmentPath higher(disk.directory, Offset{100});
    disk.put(higher, FileKind::transaction_index, disk.content(path, FileKind::transaction_index));
    TransactionIndex below_base(disk.open_files, higher);
    below_base.set_exists(true);
    EXPECT_EQ(below_base.check().error().code, Errc::corrupt);
    EXPECT_FALSE(decode_transaction_index(std::vector<std::byte>(34, std::byte{1})));
    EXPECT_THAT(decode_transaction_index(std::vector<std::byte>(33)).value(), testing::IsEmpty());  // a cut entry
}

// --- open files --------------------------------------------------------------------------------------------------------

TEST(OpenFiles, ClosesTheIdleButNeverTheUnsynced) {
    io::MemoryFileSystem files;
    OpenFiles open_files(files, 4);
    auto directory = std::make_shared<DirectoryPath>("/");
    std::vector<std::unique_ptr<SegmentPath>> paths;
    std::vector<std::unique_ptr<LazyFile>> lazy;
    for (int i = 0; i < 12; ++i) {
        paths.push_back(std::make_unique<SegmentPath>(directory, Offset{i}));
        lazy.push_back(std::make_unique<LazyFile>(open_files, *paths.back(), FileKind::log));
    }
    for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(lazy[i]->get_or_create());
        lazy[i]->written();
    }
    EXPECT_EQ(open_files.open_now(), 6u);  // more than allowed, and none can go
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(lazy[i]->sync());
    for (int round = 0; round < 3; ++round) {
        for (int i = 6; i < 12; ++i) ASSERT_TRUE(lazy[i]->get_or_create());
    }
    EXPECT_LE(open_files.open_now(), 4u);
    ASSERT_TRUE(lazy[0]->get());  // opened again
    lazy.clear();
    EXPECT_EQ(open_files.open_now(), 0u);
}

}  // namespace
}  // namespace tidemark::storage
