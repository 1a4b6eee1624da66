#include "storage/log_directory.h"

#include <gmock/gmock.h>

#include <future>
#include <latch>

#include "io/faulty_file_system.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

using test::StorageLog;

StorageOptions no_reserve() {
    StorageOptions options;
    options.reserve_bytes = 0;
    return options;
}

/// A target that counts, and whose sync waits until it is let go.
class Target final : public CommitTarget {
public:
    void start_writeback() override {}
    Result<Offset> sync_appended() override {
        ++syncs;
        begun.count_down();
        if (held) release.wait();
        if (fails) return Error{Errc::io, "made to fail"};
        return Offset{0};
    }
    std::atomic<int> syncs{0};
    std::latch begun{1};
    std::latch release{1};
    bool held = false;
    bool fails = false;
};

TEST(GroupCommit, ThoseWhoWaitTogetherShareOneSync) {
    io::MemoryFileSystem files;
    SystemClock clock;
    LogDirectory directory(files, clock, "/", no_reserve());
    directory.start();
    auto slow = std::make_shared<Target>();
    slow->held = true;
    std::latch first_done{1};
    directory.commit(slow, [&](Result<> done) {
        EXPECT_TRUE(done);
        first_done.count_down();
    });
    slow->begun.wait();  // a sync is running: who comes now waits for the next
    auto target = std::make_shared<Target>();
    std::latch all_done{20};
    for (int i = 0; i < 20; ++i) {
        directory.commit(target, [&](Result<> done) {
            EXPECT_TRUE(done);
            all_done.count_down();
        });
    }
    EXPECT_EQ(target->syncs, 0);
    slow->release.count_down();
    first_done.wait();
    all_done.wait();
    EXPECT_EQ(target->syncs, 1);
    EXPECT_EQ(directory.stats().syncs, 2u);
    directory.stop();
}

TEST(GroupCommit, ManyTargetsAreSyncedByAllThreads) {
    io::MemoryFileSystem files;
    SystemClock clock;
    LogDirectory directory(files, clock, "/", no_reserve());
    directory.start(4);
    std::vector<std::shared_ptr<Target>> targets;
    std::latch done{200};
    for (int i = 0; i < 200; ++i) targets.push_back(std::make_shared<Target>());
    for (const auto& target : targets) directory.commit(target, [&](Result<>) { done.count_down(); });
    done.wait();
    for (const auto& target : targets) EXPECT_EQ(target->syncs, 1);
    directory.stop();
}

TEST(GroupCommit, AFailedSyncTakesTheDirectoryOffline) {
    io::MemoryFileSystem files;
    SystemClock clock;
    LogDirectory directory(files, clock, "/", no_reserve());
    int told = 0;
    directory.set_offline_hook([&] { ++told; });
    auto bad = std::make_shared<Target>();
    bad->fails = true;
    Errc code{};
    directory.commit(bad, [&](Result<> done) { code = done.error().code; });
    EXPECT_EQ(code, Errc::storage_offline);
    EXPECT_TRUE(directory.is_offline());
    EXPECT_EQ(told, 0);  // not on the thread that failed: it may hold locks
    directory.run_background();
    EXPECT_EQ(told, 1);
    auto good = std::make_shared<Target>();
    directory.commit(good, [&](Result<> done) { code = done.error().code; });
    EXPECT_EQ(good->syncs, 0);  // nobody tries again
    EXPECT_EQ(code, Errc::storage_offline);
    EXPECT_EQ(directory.check().error().code, Errc::storage_offline);
}

TEST(GroupCommit, StopAnswersWhoeverWaits) {
    io::MemoryFileSystem files;
    SystemClock clock;
    LogDirectory directory(files, clock, "/", no_reserve());
    directory.start();
    std::atomic<int> answered{0};
    for (int i = 0; i < 50; ++i) directory.commit(std::make_shared<Target>(), [&](Result<>) { ++answered; });
    directory.stop();
    EXPECT_EQ(answered, 50);
}

/// Bytes of the log when the sync that runs on this thread began: what it covers.
thread_local std::int64_t written_at_begin = 0;

TEST(GroupCommit, NothingIsAnsweredBeforeTheSyncHasReturned) {
    std::atomic<std::int64_t> written{0}, covered{0};
    io::FaultyFileSystem disk{io::FaultOptions{
        .before =
            [&](const io::Call& call) {
                if (call.operation == io::Operation::sync && call.path.ends_with(".log")) written_at_begin = written.load();
            },
        .after =
            [&](const io::Call& call, const Result<>& result) {
                if (!call.path.ends_with(".log") || !result) return;
                if (call.operation == io::Operation::write) written = call.at.value + call.bytes;
                if (call.operation == io::Operation::sync) covered = written_at_begin;
            },
    }};
    StorageLog log{{.files = &disk, .verify_at_end = false}};
    log.directory().start();
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, std::int64_t>> answers;  // bytes needed, bytes covered when it was answered
    std::latch done{200};
    for (int i = 0; i < 200; ++i) {
        log.append("k=v");
        const auto needed = written.load();
        log->when_durable(log->log_end_offset(), [&, needed](Result<> result) {
            EXPECT_TRUE(result);
            {
                std::lock_guard lock(mutex);
                answers.emplace_back(needed, covered.load());
            }
            done.count_down();
        });
    }
    done.wait();
    for (const auto& [needed, had] : answers) EXPECT_LE(needed, had);
    log.directory().stop();
}

TEST(GroupCommit, WhatIsOnDiskIsAnsweredAtOnce) {
    StorageLog log;
    log.append("a=1");
    ASSERT_TRUE(log->flush());
    const auto syncs = log.directory().stats().syncs;
    bool answered = false;
    log->when_durable(Offset{1}, [&](Result<> done) { answered = done.has_value(); });
    EXPECT_TRUE(answered);
    EXPECT_EQ(log.directory().stats().syncs, syncs);
}

TEST(LogDirectory, OneProcessOwnsIt) {
    io::MemoryFileSystem files;
    SystemClock clock;
    LogDirectory first(files, clock, "/", no_reserve()), second(files, clock, "/", no_reserve());
    EXPECT_TRUE(first.lock());
    EXPECT_EQ(second.lock().error().code, Errc::locked);
}

TEST(LogDirectory, DelayedWorkWaitsForItsTime) {
    io::MemoryFileSystem files;
    ManualClock clock;
    LogDirectory directory(files, clock, "/", no_reserve());
    int ran = 0;
    directory.post_after(std::chrono::seconds{60}, [&] { ++ran; });
    directory.post([&] { ran += 10; });
    directory.run_background();
    EXPECT_EQ(ran, 10);
    clock.jump_to(clock.now() + 1'000'000);  // the wall clock does not count
    directory.run_background();
    EXPECT_EQ(ran, 10);
    clock.advance(std::chrono::seconds{60});
    directory.run_background();
    EXPECT_EQ(ran, 11);
}

TEST(LogDirectory, TheReserveIsGivenUpAndMadeAgain) {
    io::MemoryFileSystem files;
    files.set_capacity(1 << 20);
    ManualClock clock;
    StorageOptions options;
    options.reserve_bytes = 128 * 1024;
    LogDirectory directory(files, clock, "/", options);
    directory.keep_reserve();
    EXPECT_EQ(files.status("/tidemark-reserve").value()->bytes, 128 * 1024);
    EXPECT_EQ(directory.handled({Errc::no_space, "full"}, "testing").code, Errc::no_space);
    EXPECT_FALSE(directory.is_offline());
    EXPECT_FALSE(files.status("/tidemark-reserve").value().has_value());
    files.set_capacity(300 * 1024);
    directory.keep_reserve();  // too little room
    EXPECT_FALSE(files.status("/tidemark-reserve").value().has_value());
    files.set_capacity(1 << 20);
    directory.keep_reserve();
    EXPECT_TRUE(files.status("/tidemark-reserve").value().has_value());
    EXPECT_EQ(directory.handled({Errc::io, "dead"}, "testing").code, Errc::storage_offline);
    EXPECT_TRUE(directory.is_offline());
}

}  // namespace
}  // namespace tidemark::storage
