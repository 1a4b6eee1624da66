// D12: what goes on when the disk is full, and what waits for room.
#include <gmock/gmock.h>

#include <functional>
#include <optional>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "record/builder.h"
#include "storage/directory_names.h"
#include "storage/log_directory.h"
#include "storage/log_manager.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t reserve_bytes = 64 * 1024;
const Uuid topic_id = Uuid::of(9);
const TopicPartition orders{"orders", 0}, offsets{"__consumer_offsets", 0};

Result<> append(Log& log, std::size_t value_bytes, Origin origin = Origin::client) {
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, Timestamp{1'700'000'000'000}, as_bytes("k"), std::vector<std::byte>(value_bytes));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    TM_TRYV(log.append(bytes, {.origin = origin, .leader_epoch = 0}));
    return {};
}

/// A broker's storage in one directory, without threads.
struct Storage {
    Storage(io::FileSystem& files, const Clock& clock) {
        StorageOptions options;
        options.log_dirs = {"/a"};
        options.reserve_bytes = reserve_bytes;
        manager = LogManager::open(files, clock, options, {.cluster_id = "c"}).value();
        EXPECT_TRUE(manager->load([this](const FoundLog&) { return config; }));
        for (const auto& partition : {orders, offsets}) {
            EXPECT_TRUE(manager->create(partition, topic_id, config));
        }
    }
    Log& log(const TopicPartition& partition) { return *manager->find(partition); }

    std::shared_ptr<LogConfig> config = [] {
        auto c = std::make_shared<LogConfig>();
        c->segment_bytes = 100'000;
        c->segment_index_bytes = 1200;
        return c;
    }();
    std::unique_ptr<LogManager> manager;
};

class FullDisk : public testing::Test {
protected:
    ManualClock clock;
    io::MemoryFileSystem disk{io::MemoryOptions{.clock = &clock, .capacity_bytes = 1'000'000}};
    Storage storage{disk, clock};

    std::int64_t available() { return disk.space("/a").value().available; }
    bool has_reserve() { return disk.status("/a/tidemark-reserve").value().has_value(); }
    void fill() {
        ASSERT_TRUE(has_reserve());
        for (const std::size_t bytes : {10'000u, 1000u, 100u, 1u}) {
            auto appended = append(storage.log(orders), bytes);
            while (appended) appended = append(storage.log(orders), bytes);
            ASSERT_EQ(appended.error().code, Errc::no_space);
        }
        EXPECT_FALSE(has_reserve());
    }
};

TEST_F(FullDisk, ProducersDoNotGetWhatTheReserveLeft) {
    fill();
    const auto end = storage.log(orders).log_end_offset();
    for (const std::size_t bytes : {1u, 100u, 10'000u}) EXPECT_EQ(append(storage.log(orders), bytes).error().code, Errc::no_space) << bytes;
    EXPECT_GE(available(), reserve_bytes);
    EXPECT_EQ(storage.log(orders).log_end_offset(), end);
    EXPECT_FALSE(storage.manager->directories().front().offline);
    EXPECT_TRUE(storage.log(orders).read({.from = Offset{0}}));
}

TEST_F(FullDisk, OffsetsGetHalfOfItAndCheckpointsTheRest) {
    fill();
    auto committed = append(storage.log(offsets), 1000, Origin::coordinator);
    EXPECT_TRUE(committed);
    while (committed) committed = append(storage.log(offsets), 1000, Origin::coordinator);
    EXPECT_EQ(committed.error().code, Errc::no_space);
    EXPECT_GE(available(), reserve_bytes / 2);
    EXPECT_TRUE(storage.manager->write_checkpoints());
    EXPECT_TRUE(storage.manager->write_cleaner_checkpoint(orders, Offset{1}));
    EXPECT_TRUE(storage.manager->create({"new", 0}, topic_id, storage.config));
    EXPECT_TRUE(storage.log(orders).flush(true));
}

TEST_F(FullDisk, DeletionMakesRoomAndAppendsResume) {
    fill();
    ASSERT_TRUE(storage.log(orders).delete_oldest_segments(2, "for the test"));
    EXPECT_EQ(append(storage.log(orders), 1).error().code, Errc::no_space) << "the files are still there";
    clock.advance(std::chrono::minutes{1});
    storage.manager->tick();
    EXPECT_TRUE(append(storage.log(orders), 10'000));
    EXPECT_FALSE(has_reserve()) << "too little room for it yet";
    ASSERT_TRUE(storage.manager->remove(orders));
    clock.advance(std::chrono::minutes{1});
    storage.manager->tick();
    storage.manager->tick();
    EXPECT_TRUE(has_reserve());
    EXPECT_TRUE(append(storage.log(offsets), 1));
}

TEST_F(FullDisk, ARestartKeepsToIt) {
    fill();
    ASSERT_TRUE(storage.manager->close(1));
    storage.manager.reset();
    Storage again(disk, clock);
    EXPECT_EQ(append(again.log(orders), 1).error().code, Errc::no_space);
    EXPECT_TRUE(append(again.log(offsets), 1, Origin::coordinator));
    disk.set_capacity(2'000'000);
    EXPECT_TRUE(append(again.log(orders), 1)) << "there is room";
}

/// Whatever small write meets a full disk first, the reserve lets it through.
TEST(FullDiskFaults, WhatKeepsTheLogsInOrderIsWrittenAllTheSame) {
    const std::pair<const char*, std::function<Result<>(Storage&)>> works[] = {
        {"checkpoints", [](Storage& s) { return s.manager->write_checkpoints(); }},
        {"the cleaner's checkpoint", [](Storage& s) { return s.manager->write_cleaner_checkpoint(orders, Offset{1}); }},
        {"a partition", [](Storage& s) -> Result<> {
             TM_TRYV(s.manager->create({"new", 0}, topic_id, s.config));
             return {};
         }},
        {"the removal of one", [](Storage& s) { return s.manager->remove(orders); }},
        {"deleted segments", [](Storage& s) { return s.log(orders).delete_oldest_segments(9, "for the test"); }},
        {"a flush", [](Storage& s) { return s.log(orders).flush(true); }},
        {"committed offsets", [](Storage& s) { return append(s.log(offsets), 10, Origin::coordinator); }},
        {"deleted records", [](Storage& s) -> Result<> {
             TM_TRYV(s.log(orders).delete_records_before(Offset{1}));
             return {};
         }},
    };
    for (const auto& [what, work] : works) {
        for (int step = 0; !testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE(std::string(what) + ", step " + std::to_string(step));
            ManualClock clock;
            io::FaultyFileSystem disk{{.clock = &clock}};
            Storage storage(disk, clock);
            for (int i = 0; i < 2; ++i) {
                ASSERT_TRUE(append(storage.log(orders), 10));
                ASSERT_TRUE(storage.log(orders).roll());
            }
            ASSERT_TRUE(append(storage.log(orders), 10));
            disk.inject({.fail_at = step,
                         .fault = io::Fault::no_space,
                         .counted =
                             [](const io::Call& call) {
                                 using enum io::Operation;
                                 return call.operation == write || call.operation == create || call.operation == rename;
                             },
                         .clock = &clock});
            const auto done = work(storage);
            EXPECT_TRUE(done) << done.error().message();
            EXPECT_FALSE(storage.manager->directories().front().offline);
            if (!disk.tripped()) {
                EXPECT_GT(step, 0) << "nothing was tried";
                break;
            }
            disk.inject({});
            const auto files = disk.list("/a/orders-0");
            if (!files) continue;   // it was removed
            for (const auto& file : *files) {
                if (!file.name.ends_with("index")) continue;
                const auto log = segment_file_name(parse_file_name(file.name).offset, FileKind::log);
                EXPECT_TRUE(disk.status(io::join("/a/orders-0", log)).value()) << file.name << " was forgotten";
            }
        }
    }
}

/// Some systems say only at the sync that there was no room. The pages are lost by then, whatever a second sync says.
TEST(FullDiskFaults, ASyncThatFindsTheDiskFullIsFinal) {
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    Storage storage(disk, clock);
    auto& log = storage.log(orders);
    ASSERT_TRUE(append(log, 10));
    disk.inject({.fail_at = 0,
                 .fault = io::Fault::no_space,
                 .counted = [](const io::Call& call) { return call.operation == io::Operation::sync; },
                 .clock = &clock});
    for (int i = 0; i < 2; ++i) {
        std::optional<Result<>> synced;
        log.when_durable(log.log_end_offset(), [&](const Result<>& done) { synced = done; });
        ASSERT_TRUE(synced);
        ASSERT_FALSE(*synced);
        EXPECT_EQ(synced->error().code, Errc::storage_offline);
    }
    EXPECT_TRUE(disk.tripped());
    EXPECT_TRUE(storage.manager->directories().front().offline);
}

}  // namespace
}  // namespace tidemark::storage
