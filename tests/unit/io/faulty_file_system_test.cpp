// The disk that fails and forgets: which calls count, what a failure leaves, what a power loss may leave and what it must not.

#include "io/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "io/posix_file_system.h"
#include "tests/unit/io/support.h"

namespace tidemark::io {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr AfterRestart everything_lost{.unsynced = Unsynced::lost};
constexpr AfterRestart everything_kept{.unsynced = Unsynced::kept};

/// What `look` sees on the disks that a power loss may leave: of many seeds and of both extremes.
template <class Look>
auto seen_after_restart(const FaultyFileSystem& disk, Look look, std::uint64_t seeds = 400) {
    std::set<decltype(look(std::declval<MemoryFileSystem&>()))> seen;
    const auto add = [&](const AfterRestart& how) {
        auto after = disk.after_restart(how);
        seen.insert(look(after));
    };
    add(everything_lost);
    add(everything_kept);
    for (std::uint64_t seed = 0; seed < seeds; ++seed) add({.seed = seed});
    return seen;
}

std::set<std::string> names_after_restart(const FaultyFileSystem& disk, const Path& directory = "/") {
    return seen_after_restart(disk, [&](MemoryFileSystem& after) { return names(after, directory); });
}

std::set<std::optional<std::string>> contents_after_restart(const FaultyFileSystem& disk, const Path& path) {
    return seen_after_restart(disk, [&](MemoryFileSystem& after) { return content(after, path); });
}

/// A file that is on the disk for certain, name and content.
void put_for_certain(FileSystem& files, const Path& path, std::string_view text) {
    ASSERT_TRUE(put(files, path, text));
    ASSERT_TRUE(sync(files, path));
    ASSERT_TRUE(files.sync_directory(Path(parent_of(path))));
}

// --- Counting and seeing calls.

TEST(FaultyFileSystem, CountsAndShowsTheCallsThatChangeSomething) {
    std::vector<std::string> before, after;
    FaultyFileSystem disk{{
        .before = [&](const Call& call) { before.push_back(std::to_string(call.number) + " " + call.text()); },
        .after = [&](const Call& call, const Result<>& result) { after.push_back(call.text() + ": " + outcome(result)); },
    }};
    ASSERT_TRUE(disk.create_directory("d"));
    ASSERT_TRUE(disk.create_directory("d"));                // there already: no call
    const auto file = disk.open("d/a", OpenMode::create).value();
    ASSERT_TRUE(disk.open("d/a", OpenMode::create));        // there already
    ASSERT_TRUE(file->write(FilePosition{7}, as_bytes("12345")));
    std::vector<std::byte> into(4);
    ASSERT_TRUE(file->read(FilePosition{7}, into));         // reads change nothing
    ASSERT_TRUE(file->read_if_cached(FilePosition{7}, into));
    ASSERT_TRUE(file->size());
    file->start_writeback();
    ASSERT_TRUE(file->resize(9));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(disk.set_modified("d/a", Timestamp{5}));
    ASSERT_TRUE(disk.rename("d/a", "d/b"));
    EXPECT_FALSE(disk.rename("d/a", "d/c"));                // refused, yet a call
    ASSERT_TRUE(disk.sync_directory("d"));
    ASSERT_TRUE(disk.open("d/b", OpenMode::create_truncated));
    ASSERT_TRUE(disk.lock("d/.lock"));
    ASSERT_TRUE(disk.lock("d/.lock"));                      // there already
    ASSERT_TRUE(disk.status("d"));
    ASSERT_TRUE(disk.list("d"));
    ASSERT_TRUE(disk.remove("d/b"));
    ASSERT_TRUE(disk.remove("d/.lock"));
    ASSERT_TRUE(disk.remove_directory("d"));
    EXPECT_THAT(before, ElementsAre("0 create d", "1 create d/a", "2 write d/a at 7 +5", "3 resize d/a to 9", "4 sync d/a", "5 set_modified d/a",
                                    "6 rename d/a to d/b", "7 rename d/a to d/c", "8 sync_directory d", "9 resize d/b to 0", "10 create d/.lock",
                                    "11 remove d/b", "12 remove d/.lock", "13 remove d"));
    EXPECT_EQ(disk.calls(), 14);
    EXPECT_FALSE(disk.tripped());
    ASSERT_EQ(after.size(), 14u);
    EXPECT_EQ(after[7], "rename d/a to d/c: not_found");
    after.erase(after.begin() + 7);
    for (const auto& line : after) EXPECT_THAT(line, testing::EndsWith(": ok"));
}

TEST(FaultyFileSystem, ShowsTheBytesThatAreWritten) {
    std::string written;
    FaultyFileSystem disk{{.before = [&](const Call& call) { written += as_text(call.data); }}};
    ASSERT_TRUE(put(disk, "a", "one "));
    ASSERT_TRUE(put(disk, "a", "two"));
    EXPECT_EQ(written, "one two");
}

TEST(FaultyFileSystem, CountsWhatATestAsksFor) {
    FaultyFileSystem disk{{.fail_at = 1, .counted = [](const Call& call) { return call.operation == Operation::sync; }}};
    ASSERT_TRUE(put(disk, "a", "text"));
    EXPECT_EQ(outcome(sync(disk, "a")), "ok");
    ASSERT_TRUE(put(disk, "a", "more"));
    EXPECT_EQ(outcome(sync(disk, "a")), "io") << "the second sync";
    EXPECT_EQ(outcome(sync(disk, "a")), "ok");
    EXPECT_EQ(disk.calls(), 3);
}

TEST(FaultyFileSystem, LetsReadsFailWhenTheyAreCounted) {
    FaultyFileSystem disk{{.fail_at = 1, .counted = [](const Call& call) { return call.operation == Operation::read; }}};
    ASSERT_TRUE(put(disk, "a", "text"));
    const auto file = disk.open("a", OpenMode::read).value();
    std::vector<std::byte> into(4);
    EXPECT_EQ(outcome(file->read(FilePosition{0}, into)), "ok");
    EXPECT_EQ(outcome(file->read(FilePosition{0}, into)), "io");
    EXPECT_EQ(outcome(file->read_if_cached(FilePosition{0}, into)), "ok");
    EXPECT_EQ(as_text(into), "text");
}

TEST(FaultyFileSystem, CanHaveNothingCached) {
    FaultyFileSystem disk{{.nothing_cached = true}};
    ASSERT_TRUE(put(disk, "a", "text"));
    const auto file = disk.open("a", OpenMode::read).value();
    std::vector<std::byte> into(4);
    EXPECT_EQ(file->read_if_cached(FilePosition{0}, into).value(), std::nullopt);
    EXPECT_EQ(file->read(FilePosition{0}, into).value(), 4u);
    disk.inject({});
    EXPECT_EQ(file->read_if_cached(FilePosition{0}, into).value(), 4u);
}

// A hook may wait without holding up the disk: so a test can keep a sync from returning and look what happens meanwhile.
TEST(FaultyFileSystem, AHeldSyncHoldsNothingElse) {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false, go_on = false;
    FaultyFileSystem disk{{.before = [&](const Call& call) {
        if (call.operation != Operation::sync) return;
        std::unique_lock lock(mutex);
        reached = true;
        changed.notify_all();
        changed.wait(lock, [&] { return go_on; });
    }}};
    ASSERT_TRUE(put(disk, "a", "text"));
    std::jthread syncing([&] { EXPECT_TRUE(sync(disk, "a")); });
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return reached; });
    }
    EXPECT_TRUE(put(disk, "b", "while the sync waits"));
    EXPECT_TRUE(disk.sync_directory("/"));
    auto after = disk.after_restart(everything_lost);
    EXPECT_EQ(content(after, "a"), "") << "the sync has not happened yet";
    {
        std::unique_lock lock(mutex);
        go_on = true;
        changed.notify_all();
    }
    syncing.join();
    after = disk.after_restart(everything_lost);
    EXPECT_EQ(content(after, "a"), "text");
}

// --- Failures.

TEST(FaultyFileSystem, FailsTheCallItWasToldTo) {
    for (const auto fault : {Fault::io_error, Fault::no_space}) {
        FaultyFileSystem disk{{.fail_at = 2, .fail_calls = 2, .fault = fault}};
        const auto file = disk.open("a", OpenMode::create).value();
        ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("first")));
        const auto failed = file->write(FilePosition{5}, as_bytes("second"));
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().code, fault == Fault::io_error ? Errc::io : Errc::no_space);
        EXPECT_EQ(failed.error().os, fault == Fault::io_error ? std::errc::io_error : std::errc::no_space_on_device);
        EXPECT_TRUE(disk.tripped());
        EXPECT_FALSE(file->write(FilePosition{5}, as_bytes("second"))) << "two calls fail";
        EXPECT_TRUE(file->write(FilePosition{5}, as_bytes("third")));
        EXPECT_EQ(content(disk, "a"), "firstthird");
    }
}

TEST(FaultyFileSystem, EachFailingCallHasDoneNothing) {
    const std::pair<const char*, std::function<Result<>(FileSystem&)>> table[] = {
        {"create", [](FileSystem& files) -> Result<> { TM_TRYV(files.open("new", OpenMode::create)); return {}; }},
        {"create by lock", [](FileSystem& files) -> Result<> { TM_TRYV(files.lock("new")); return {}; }},
        {"empty on open", [](FileSystem& files) -> Result<> { TM_TRYV(files.open("a", OpenMode::create_truncated)); return {}; }},
        {"create directory", [](FileSystem& files) { return files.create_directory("new"); }},
        {"write", [](FileSystem& files) { return put(files, "a", "new"); }},
        {"resize", [](FileSystem& files) { return files.open("a", OpenMode::read_write).value()->resize(1); }},
        {"rename", [](FileSystem& files) { return files.rename("a", "new"); }},
        {"remove", [](FileSystem& files) { return files.remove("a"); }},
        {"remove directory", [](FileSystem& files) { return files.remove_directory("d"); }},
        {"set modified", [](FileSystem& files) { return files.set_modified("a", Timestamp{1}); }},
    };
    for (const auto& [name, call] : table) {
        for (const auto fault : {Fault::io_error, Fault::no_space}) {
            SCOPED_TRACE(name);
            FaultyFileSystem disk;
            ASSERT_TRUE(disk.create_directory("d"));
            put_for_certain(disk, "a", "old");
            ASSERT_TRUE(disk.set_modified("a", Timestamp{1000}));
            disk.inject({.fail_at = 0, .fault = fault});
            EXPECT_EQ(outcome(call(disk)), fault == Fault::io_error ? "io" : "no_space");
            EXPECT_TRUE(disk.tripped());
            EXPECT_EQ(names(disk, "/"), "a d/");
            EXPECT_EQ(content(disk, "a"), "old");
            EXPECT_EQ(disk.status("a").value()->modified, Timestamp{1000});
            EXPECT_THAT(seen_after_restart(disk, [](MemoryFileSystem& after) { return names(after, "/") + "|" + content(after, "a").value_or("-"); }, 20),
                        ElementsAre("a d/|old"));
            EXPECT_EQ(outcome(call(disk)), "ok") << "only one call fails";
        }
    }
}

TEST(FaultyFileSystem, AShortWritePutsTheFirstHalf) {
    FaultyFileSystem disk{{.fail_at = 1, .fault = Fault::short_write}};
    EXPECT_EQ(outcome(put(disk, "a", "123456")), "no_space");
    EXPECT_EQ(content(disk, "a"), "123");
    ASSERT_TRUE(sync(disk, "a"));
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(contents_after_restart(disk, "a"), ElementsAre("123")) << "the half that was put can be synced";
}

TEST(FaultyFileSystem, AFullDiskHealsWhenTold) {
    FaultyFileSystem disk;
    ASSERT_TRUE(put(disk, "a", "old"));
    disk.inject({.fail_at = 0, .fail_calls = 1'000'000, .fault = Fault::no_space});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(outcome(put(disk, "a", "new")), "no_space");
    EXPECT_EQ(content(disk, "a"), "old") << "what is there can be read";
    disk.inject({});
    EXPECT_TRUE(put(disk, "a", "new"));
}

TEST(FaultyFileSystem, RunsFullWhenTheDiskBelowDoes) {
    FaultyFileSystem disk{{}, MemoryFileSystem({.capacity_bytes = 4})};
    EXPECT_EQ(outcome(put(disk, "a", "123456")), "no_space");
    EXPECT_FALSE(disk.tripped()) << "no fault of ours";
    ASSERT_TRUE(sync(disk, "a"));
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(contents_after_restart(disk, "a"), ElementsAre("1234"));
}

// The system marks pages clean that it could not write: a second sync that succeeds says nothing about them.
TEST(FaultyFileSystem, AFailedSyncCannotBeMadeGood) {
    for (const auto fault : {Fault::io_error, Fault::no_space}) {
        FaultyFileSystem disk;
        put_for_certain(disk, "a", "old");
        ASSERT_TRUE(put(disk, "a", "new"));
        disk.inject({.fail_at = 0, .fault = fault});
        EXPECT_EQ(outcome(sync(disk, "a")), "io") << "nobody may make room and try again";
        EXPECT_TRUE(sync(disk, "a"));
        EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre("old", "new"));
    }
}

TEST(FaultyFileSystem, AFailedDirectorySyncCannotBeMadeGood) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "");
    ASSERT_TRUE(disk.rename("a", "b"));
    disk.inject({.fail_at = 0});
    EXPECT_FALSE(disk.sync_directory("/"));
    EXPECT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("a", "b"));
}

// --- Power loss.

TEST(PowerLoss, EndsEverything) {
    FaultyFileSystem disk{{.lose_power_at = 2}};
    const auto file = disk.open("a", OpenMode::create).value();
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("one")));
    EXPECT_FALSE(disk.tripped());
    EXPECT_EQ(outcome(file->write(FilePosition{3}, as_bytes("two"))), "io");
    EXPECT_TRUE(disk.tripped());
    std::vector<std::byte> into(3);
    EXPECT_EQ(outcome(file->read(FilePosition{0}, into)), "io");
    EXPECT_EQ(outcome(file->read_if_cached(FilePosition{0}, into)), "io");
    EXPECT_EQ(outcome(file->write(FilePosition{0}, into)), "io");
    EXPECT_EQ(outcome(file->resize(0)), "io");
    EXPECT_EQ(outcome(file->size()), "io");
    EXPECT_EQ(outcome(file->sync()), "io");
    EXPECT_EQ(outcome(disk.open("a", OpenMode::read)), "io");
    EXPECT_EQ(outcome(disk.status("a")), "io");
    EXPECT_EQ(outcome(disk.list("/")), "io");
    EXPECT_EQ(outcome(disk.create_directory("d")), "io");
    EXPECT_EQ(outcome(disk.rename("a", "b")), "io");
    EXPECT_EQ(outcome(disk.remove("a")), "io");
    EXPECT_EQ(outcome(disk.remove_directory("d")), "io");
    EXPECT_EQ(outcome(disk.sync_directory("/")), "io");
    EXPECT_EQ(outcome(disk.set_modified("a", Timestamp{1})), "io");
    EXPECT_EQ(outcome(disk.lock(".lock")), "io");
    EXPECT_EQ(outcome(disk.space("/")), "io");
    EXPECT_EQ(disk.calls(), 3) << "later calls are not counted";
}

TEST(PowerLoss, TheCallThatLosesItMayHaveHappenedOrNot) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    disk.inject({.lose_power_at = 0});
    EXPECT_EQ(outcome(disk.rename("a", "b")), "io");
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("a", "b"));
}

TEST(PowerLoss, ASyncThatLosesItHasCoveredNothing) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    ASSERT_TRUE(put(disk, "a", "new"));
    disk.inject({.lose_power_at = 0});
    EXPECT_EQ(outcome(sync(disk, "a")), "io");
    EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre("old", "new"));
}

TEST(PowerLoss, SyncedContentUnderASyncedNameIsKept) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "logs/orders-0"));
    put_for_certain(disk, "logs/orders-0/0.log", "records");
    EXPECT_THAT(names_after_restart(disk, "logs"), ElementsAre("orders-0/"));
    EXPECT_THAT(contents_after_restart(disk, "logs/orders-0/0.log"), ElementsAre("records"));
}

TEST(PowerLoss, AnUnsyncedNameIsLostHoweverOftenTheFileWasSynced) {
    FaultyFileSystem disk;
    ASSERT_TRUE(put(disk, "a", "text"));
    ASSERT_TRUE(sync(disk, "a"));
    EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre(std::nullopt, "text"));
}

TEST(PowerLoss, ASyncedNameMayStandForLostBytes) {
    FaultyFileSystem disk;
    ASSERT_TRUE(put(disk, "a", "text"));
    ASSERT_TRUE(disk.sync_directory("/"));
    const auto contents = contents_after_restart(disk, "a");
    EXPECT_FALSE(contents.contains(std::nullopt));
    EXPECT_TRUE(contents.contains(""));
    EXPECT_TRUE(contents.contains("text"));
    EXPECT_TRUE(contents.contains(std::string(4, '\0'))) << "the size without the bytes";
    for (const auto& text : contents) {
        EXPECT_LE(text->size(), 4u);
        EXPECT_TRUE(std::string("text").starts_with(*text) || std::string(4, '\0').starts_with(*text)) << *text;
    }
}

TEST(PowerLoss, ASyncedDirectoryIsLostWithItsOwnName) {
    FaultyFileSystem disk;
    ASSERT_TRUE(disk.create_directory("d"));
    put_for_certain(disk, "d/a", "text");  // syncs d, not the root
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("", "d/"));
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(names_after_restart(disk), ElementsAre("d/"));
    EXPECT_THAT(contents_after_restart(disk, "d/a"), ElementsAre("text"));
}

TEST(PowerLoss, UnsyncedPiecesAreOldOrNewEachForItself) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", std::string(3 * 512, 'o'));
    ASSERT_TRUE(put(disk, "a", std::string(2 * 512, 'n'), 256));  // half of piece 0, all of 1, half of 2
    std::set<std::string> pieces;
    for (const auto& text : contents_after_restart(disk, "a")) {
        ASSERT_EQ(text->size(), 3u * 512) << "the size has not changed";
        for (const auto half : {0, 5}) ASSERT_EQ(text->substr(half * 256, 256), std::string(256, 'o')) << "never written";
        std::string which;
        for (const auto half : {1, 2, 3, 4}) {
            const auto part = text->substr(half * 256, 256);
            ASSERT_TRUE(part == std::string(256, 'o') || part == std::string(256, 'n'));
            which += part[0];
        }
        ASSERT_EQ(which[1], which[2]) << "a piece is one";
        pieces.insert({which[0], which[1], which[3]});
    }
    EXPECT_THAT(pieces, UnorderedElementsAre("ooo", "oon", "ono", "onn", "noo", "non", "nno", "nnn"));
}

TEST(PowerLoss, TheSizeIsAnythingItHasBeenInBetween) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "12345678");
    const auto file = disk.open("a", OpenMode::read_write).value();
    ASSERT_TRUE(file->resize(3));
    ASSERT_TRUE(file->write(FilePosition{3}, as_bytes("abc")));
    std::set<std::size_t> sizes;
    for (const auto& text : contents_after_restart(disk, "a")) {
        sizes.insert(text->size());
        const std::string newer("123abc\0\0", 8), older("12345678");
        EXPECT_TRUE(newer.starts_with(*text) || older.starts_with(*text)) << *text;
    }
    EXPECT_THAT(sizes, ElementsAre(3, 4, 5, 6, 7, 8));
    auto lost = disk.after_restart(everything_lost);
    EXPECT_EQ(content(lost, "a"), "12345678");
    auto kept = disk.after_restart(everything_kept);
    EXPECT_EQ(content(kept, "a"), "123abc");
    ASSERT_TRUE(file->sync());
    EXPECT_THAT(contents_after_restart(disk, "a"), ElementsAre("123abc"));
}

TEST(PowerLoss, WhatWasCutOffComesBackOldOrNot) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", std::string(2000, 'o'));
    const auto file = disk.open("a", OpenMode::read_write).value();
    ASSERT_TRUE(file->resize(0));
    ASSERT_TRUE(file->resize(2000));  // zeros now
    bool saw_old = false, saw_zeros = false;
    for (const auto& text : contents_after_restart(disk, "a")) {
        for (std::size_t at = 0; at < text->size(); at += 512) {
            const auto piece = text->substr(at, 512);
            const bool old = piece == std::string(piece.size(), 'o');
            ASSERT_TRUE(old || piece == std::string(piece.size(), '\0'));
            (old ? saw_old : saw_zeros) = true;
        }
    }
    EXPECT_TRUE(saw_old);
    EXPECT_TRUE(saw_zeros);
}

TEST(PowerLoss, WhatLiesBehindACutIsOldWhenItComesBack) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", std::string(2000, 'o'));
    ASSERT_TRUE(disk.open("a", OpenMode::read_write).value()->resize(100));
    for (const auto& text : contents_after_restart(disk, "a")) {
        ASSERT_GE(text->size(), 100u);
        const auto behind = text->substr(std::min<std::size_t>(text->size(), 512));
        EXPECT_EQ(behind, std::string(behind.size(), 'o'));
        EXPECT_EQ(text->substr(0, 100), std::string(100, 'o'));
    }
}

TEST(PowerLoss, EmptyingOnOpenIsAChangeOfTheContent) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    ASSERT_TRUE(disk.open("a", OpenMode::create_truncated));
    EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre("", "o", "ol", "old"));
    ASSERT_TRUE(sync(disk, "a"));
    EXPECT_THAT(contents_after_restart(disk, "a"), ElementsAre(""));
}

TEST(PowerLoss, NamesAreLostInAnyCombination) {
    FaultyFileSystem disk;
    put_for_certain(disk, "renamed", "");
    put_for_certain(disk, "removed", "");
    ASSERT_TRUE(disk.rename("renamed", "new"));
    ASSERT_TRUE(disk.remove("removed"));
    ASSERT_TRUE(put(disk, "created", ""));
    EXPECT_THAT(names_after_restart(disk),
                UnorderedElementsAre("removed renamed", "created removed renamed", "renamed", "created renamed",  //
                                     "new removed", "created new removed", "new", "created new"));
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(names_after_restart(disk), ElementsAre("created new"));
}

TEST(PowerLoss, ChangesOfOneNameHappenInTheirOrder) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "1");
    ASSERT_TRUE(disk.rename("a", "b"));
    ASSERT_TRUE(disk.rename("b", "c"));
    ASSERT_TRUE(disk.remove("c"));
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("a", "b", "c", ""));
}

TEST(PowerLoss, AFreedNameIsTakenAgainOnlyAfterItWasFreed) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "first");
    ASSERT_TRUE(disk.rename("a", "b"));
    ASSERT_TRUE(put(disk, "a", ""));
    EXPECT_THAT(seen_after_restart(disk, [](MemoryFileSystem& after) { return content(after, "a").value_or("-") + "|" + content(after, "b").value_or("-"); }),
                UnorderedElementsAre("first|-", "-|first", "|first"));
}

// The crash-safe way to replace a file needs all of its steps, in this order.
TEST(PowerLoss, ARenameOverAFileIsOldOrNewAsAWhole) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    ASSERT_TRUE(put(disk, "a.tmp", "new"));
    ASSERT_TRUE(sync(disk, "a.tmp"));
    ASSERT_TRUE(disk.rename("a.tmp", "a"));
    EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre("old", "new"));
}

TEST(PowerLoss, ARenameWithoutASyncBeforeMayLeaveAnEmptyFile) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    ASSERT_TRUE(put(disk, "a.tmp", "new"));
    ASSERT_TRUE(disk.rename("a.tmp", "a"));
    ASSERT_TRUE(disk.sync_directory("/"));
    const auto contents = contents_after_restart(disk, "a");
    EXPECT_TRUE(contents.contains(""));
    EXPECT_FALSE(contents.contains("old"));
}

TEST(PowerLoss, ARenameToAnotherDirectoryIsCoveredByTheSyncOfThatOne) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "from"));
    ASSERT_TRUE(create_directories(disk, "to"));
    put_for_certain(disk, "from/a", "text");
    ASSERT_TRUE(disk.rename("from/a", "to/b"));
    const auto both = [&] { return seen_after_restart(disk, [](MemoryFileSystem& after) { return names(after, "from") + "|" + names(after, "to"); }); };
    EXPECT_THAT(both(), UnorderedElementsAre("a|", "|b")) << "never both, never none";
    ASSERT_TRUE(disk.sync_directory("from"));
    EXPECT_THAT(both(), UnorderedElementsAre("a|", "|b"));
    ASSERT_TRUE(disk.sync_directory("to"));
    EXPECT_THAT(both(), ElementsAre("|b"));
}

TEST(PowerLoss, ACertainChangeTakesTheEarlierOnesOfItsNameAlong) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "d"));
    ASSERT_TRUE(put(disk, "a", ""));       // pending in the root
    ASSERT_TRUE(put(disk, "other", ""));
    ASSERT_TRUE(disk.rename("a", "d/b"));
    ASSERT_TRUE(disk.sync_directory("d"));
    EXPECT_THAT(names_after_restart(disk, "d"), ElementsAre("b"));
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("d/", "d/ other")) << "other names stay undecided";
}

TEST(PowerLoss, ARemovedDirectoryTakesItsInsideAlong) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "d/e"));
    put_for_certain(disk, "d/e/a", "text");
    ASSERT_TRUE(remove_all(disk, "d"));
    // Outside-in at no time: a directory is gone only when everything inside of it is.
    EXPECT_THAT(seen_after_restart(disk, [](MemoryFileSystem& after) {
                    const auto has = [&](const Path& path) { return after.status(path).value().has_value() ? "1" : "0"; };
                    return std::string(has("d")) + has("d/e") + has("d/e/a");
                }),
                UnorderedElementsAre("111", "110", "100", "000"));
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(names_after_restart(disk), ElementsAre(""));
}

TEST(PowerLoss, WhatWasMovedOutOfARemovedDirectoryIsNotLost) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "d"));
    ASSERT_TRUE(create_directories(disk, "e"));
    put_for_certain(disk, "d/a", "text");
    ASSERT_TRUE(disk.rename("d/a", "e/b"));
    ASSERT_TRUE(disk.remove_directory("d"));
    const auto where = [&] { return seen_after_restart(disk, [](MemoryFileSystem& after) { return names(after, "/") + "|" + names(after, "e"); }); };
    EXPECT_THAT(where(), UnorderedElementsAre("d/ e/|", "d/ e/|b", "e/|b")) << "d goes only when its file has gone to e";
    ASSERT_TRUE(disk.sync_directory("/"));
    EXPECT_THAT(where(), ElementsAre("e/|b"));
}

TEST(PowerLoss, ARenamedDirectoryKeepsItsInside) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "orders-0"));
    put_for_certain(disk, "orders-0/0.log", "records");
    ASSERT_TRUE(disk.rename("orders-0", "orders-0-delete"));
    ASSERT_TRUE(put(disk, "orders-0-delete/1.log", "unsynced"));
    EXPECT_THAT(names_after_restart(disk), UnorderedElementsAre("orders-0/", "orders-0-delete/"));
    EXPECT_THAT(seen_after_restart(disk, [](MemoryFileSystem& after) { return content(after, names(after, "/") + "0.log"); }), ElementsAre("records"));
}

TEST(PowerLoss, ANewFileOfAnOldNameIsAnotherFile) {
    FaultyFileSystem disk;
    put_for_certain(disk, "a", "old");
    ASSERT_TRUE(disk.remove("a"));
    put_for_certain(disk, "a", "new");
    EXPECT_THAT(contents_after_restart(disk, "a"), ElementsAre("new"));
    const auto open = disk.open("a", OpenMode::read_write).value();
    ASSERT_TRUE(disk.remove("a"));
    ASSERT_TRUE(open->write(FilePosition{0}, as_bytes("NEW"))) << "removed, yet open";
    ASSERT_TRUE(open->sync());
    EXPECT_THAT(contents_after_restart(disk, "a"), UnorderedElementsAre("NEW", std::nullopt));
}

TEST(PowerLoss, TheTimeOfAFileIsThatOfTheLastSyncThatChangedItsSize) {
    ManualClock clock(Timestamp{1000});
    FaultyFileSystem disk{{.clock = &clock}};
    put_for_certain(disk, "a", "1234");
    const auto times = [&] { return seen_after_restart(disk, [](MemoryFileSystem& after) { return after.status("a").value()->modified.value; }); };
    EXPECT_THAT(times(), ElementsAre(1000));
    clock.advance(std::chrono::milliseconds{10});
    ASSERT_TRUE(put(disk, "a", "5678"));
    ASSERT_TRUE(sync(disk, "a"));  // fdatasync: the same size, so the inode stays as it is
    EXPECT_THAT(times(), UnorderedElementsAre(1000, 1010));
    ASSERT_TRUE(put(disk, "a", "56789"));
    ASSERT_TRUE(sync(disk, "a"));
    EXPECT_THAT(times(), ElementsAre(1010));
    ASSERT_TRUE(disk.set_modified("a", Timestamp{5}));
    EXPECT_THAT(times(), UnorderedElementsAre(5, 1010));
}

TEST(PowerLoss, LocksAreGone) {
    FaultyFileSystem disk;
    const auto lock = disk.lock(".lock");
    ASSERT_TRUE(lock.has_value());
    ASSERT_TRUE(disk.sync_directory("/"));
    auto after = disk.after_restart();
    EXPECT_EQ(outcome(after.lock(".lock")), "ok");
}

TEST(PowerLoss, TheSameSeedLeavesTheSameDisk) {
    const auto run = [](std::uint64_t seed) {
        FaultyFileSystem disk{{.lose_power_at = 40}};
        for (int n = 0; !disk.tripped(); ++n) static_cast<void>(put(disk, "f" + std::to_string(n % 7), std::string(2000, 'x'), n * 300));
        auto after = disk.after_restart({.seed = seed});
        std::string all = names(after, "/");
        for (const auto& entry : after.list("/").value()) all += content(after, entry.name).value();
        return all;
    };
    EXPECT_EQ(run(1), run(1));
    EXPECT_EQ(run(2), run(2));
    EXPECT_NE(run(1), run(2));
}

TEST(PowerLoss, CanStrikeAgainDuringRecovery) {
    FaultyFileSystem first;
    put_for_certain(first, "a", "old");
    ASSERT_TRUE(put(first, "a", "new"));
    FaultyFileSystem second{{.lose_power_at = 1}, first.after_restart(everything_kept)};
    EXPECT_EQ(content(second, "a"), "new");
    EXPECT_THAT(contents_after_restart(second, "a"), ElementsAre("new")) << "what was found after the restart is on the disk";
    EXPECT_TRUE(put(second, "a", "NEWER"));
    EXPECT_FALSE(sync(second, "a"));
    EXPECT_TRUE(contents_after_restart(second, "a").contains("new"));
}

// The promise of replace_content(), tried at each of its steps on each kind of disk.
TEST(PowerLoss, ReplaceContentLeavesOldOrNewAtEveryStep) {
    int steps = 0;
    for (int step = 0;; ++step) {
        FaultyFileSystem disk;
        ASSERT_TRUE(replace_content(disk, "checkpoint", as_bytes("old")));
        disk.inject({.lose_power_at = step});
        const bool done = replace_content(disk, "checkpoint", as_bytes("newer")).has_value();
        for (const auto& text : contents_after_restart(disk, "checkpoint")) {
            EXPECT_TRUE(text == "newer" || (!done && text == "old")) << text.value_or("nothing") << " after power was lost at step " << step;
        }
        if (done) break;
        ++steps;
    }
    EXPECT_EQ(steps, 5) << "create, write, sync, rename, sync of the directory";
}

TEST(PowerLoss, ReplaceContentLeavesTheOldWhenACallFails) {
    for (int step = 0; step < 4; ++step) {
        for (const auto fault : {Fault::io_error, Fault::no_space, Fault::short_write}) {
            FaultyFileSystem disk;
            ASSERT_TRUE(replace_content(disk, "checkpoint", as_bytes("old")));
            disk.inject({.fail_at = step, .fault = fault});
            EXPECT_FALSE(replace_content(disk, "checkpoint", as_bytes("newer")));
            EXPECT_EQ(content(disk, "checkpoint"), "old") << step;
            EXPECT_EQ(names(disk, "/"), step < 3 ? "checkpoint" : "checkpoint checkpoint.tmp") << "a half-written file does not stay behind";
            EXPECT_TRUE(replace_content(disk, "checkpoint", as_bytes("newest")));
            EXPECT_EQ(content(disk, "checkpoint"), "newest");
        }
    }
}

TEST(PowerLoss, CreateDirectoriesIsCertainWhenItReturns) {
    FaultyFileSystem disk;
    ASSERT_TRUE(create_directories(disk, "a/b/c"));
    EXPECT_THAT(names_after_restart(disk, "a/b"), ElementsAre("c/"));
}

// --- The same faults on the system's files.

TEST(FaultyFileSystem, FailsOnTopOfAnotherFileSystem) {
    TemporaryDirectory directory;
    PosixFileSystem below;
    const auto path = join(directory.path(), "a");
    FaultyFileSystem disk{{.fail_at = 1, .fault = Fault::short_write}, below};
    EXPECT_EQ(outcome(put(disk, path, "123456")), "no_space");
    EXPECT_EQ(content(below, path), "123");
    disk.inject({.fail_at = 0});
    EXPECT_EQ(outcome(sync(disk, path)), "io");
    EXPECT_EQ(outcome(disk.sync_directory(directory.path())), "ok");
    EXPECT_GE(disk.open(path, OpenMode::read).value()->descriptor(), 0) << "sendfile still works";
    disk.inject({.lose_power_at = 0});
    EXPECT_FALSE(disk.remove(path));
    EXPECT_EQ(outcome(disk.status(path)), "io");
}

}  // namespace
}  // namespace tidemark::io
