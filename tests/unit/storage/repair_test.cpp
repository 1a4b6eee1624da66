#include "storage/repair.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "storage/directory_names.h"
#include "storage/log_manager.h"
#include "storage/verify.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

using test::StorageLog;
using testing::ElementsAre;
using testing::IsEmpty;

LogConfig small_segments() {
    LogConfig config;
    config.segment_bytes = 4000;
    config.segment_index_bytes = 1000;
    return config;
}

/// Flips a byte in the second batch of the first segment, and restarts as after a crash.
void damage(StorageLog& log) {
    const auto second = log->segments()->front()->batch_at(FilePosition{0}).value()->bytes;
    auto file = log.files().open(io::join(log.path(), "00000000000000000000.log"), io::OpenMode::read_write);
    std::byte b{};
    ASSERT_TRUE((*file)->read(FilePosition{second + 65}, {&b, 1}));
    b ^= std::byte{0x55};
    ASSERT_TRUE((*file)->write(FilePosition{second + 65}, {&b, 1}));
    log.crash_and_reopen();
}

RepairResult repair(StorageLog& log, Repair how) {
    EXPECT_TRUE(log->close());
    const auto result = repair_log(log.directory(), {.partition = log->partition(), .directory = log.path(), .config = log->config(), .clean = true}, how);
    EXPECT_TRUE(result) << result.error().message();
    log.open_again(true);
    return result ? *result : RepairResult{};
}

TEST(Repair, PutsBackWhatIsValid) {
    StorageLog log{{.config = small_segments()}};
    log.append("a=1 a=2 [b=1 b=2] | c=1 | d=1");  // a=2 is damaged
    damage(log);
    const auto tails = kept_tails(log.files(), log.path()).value();
    ASSERT_EQ(tails.size(), 3u) << "the segments behind the damaged one are kept, too";
    EXPECT_EQ(tails[0].first, Offset{2});
    EXPECT_EQ(tails[0].last, Offset{3});
    EXPECT_EQ(tails[0].records, 2);
    EXPECT_LT(tails[0].valid_bytes, tails[0].bytes);
    EXPECT_EQ(tails[2].first, Offset{5});

    const auto result = repair(log, Repair::restore);
    EXPECT_EQ(result.batches, 3);
    EXPECT_EQ(result.records, 4);
    EXPECT_EQ(result.end, Offset{6});
    EXPECT_EQ(log.text(), "0:a=1 [2:b=1 3:b=2] 4:c=1 5:d=1") << "at their own offsets; the damaged batch is a gap";
    EXPECT_THAT(kept_tails(log.files(), log.path()).value(), IsEmpty());
    log.append("e=1");
    EXPECT_EQ(log.read(Offset{1}), "[2:b=1 3:b=2] 4:c=1 5:d=1 6:e=1");
}

TEST(Repair, LetsGoOfIt) {
    StorageLog log{{.config = small_segments()}};
    log.append("a=1 a=2 b=1 | c=1");
    damage(log);
    EXPECT_EQ(repair(log, Repair::drop).end, Offset{1});
    EXPECT_EQ(log.text(), "0:a=1");
    log.append("b=1");
    EXPECT_THAT(log.file_names(), testing::Not(testing::Contains(testing::HasSubstr("damaged"))));
}

TEST(Repair, CanBeDoneAgain) {
    StorageLog log{{.config = small_segments()}};
    log.append("a=1 a=2 b=1 c=1");
    damage(log);
    const auto name = *log.last_recovery.damaged_file;
    const auto kept = io::read_whole(log.files(), io::join(log.path(), name)).value();
    EXPECT_EQ(repair(log, Repair::restore).batches, 2);
    ASSERT_TRUE(io::replace_content(log.files(), io::join(log.path(), name), kept));  // it ended before it could remove the file
    log.open_again(true);
    const auto result = repair(log, Repair::restore);
    EXPECT_EQ(result.batches, 0);
    EXPECT_EQ(result.batches_below_end, 2);
    EXPECT_EQ(log.text(), "0:a=1 2:b=1 3:c=1");
}

TEST(Repair, OfARunningLogManager) {
    ManualClock clock;
    io::MemoryFileSystem files{io::MemoryOptions{.clock = &clock}};
    const TopicPartition orders{"orders", 0};
    const auto config = std::make_shared<LogConfig>(small_segments());
    StorageOptions options;
    options.log_dirs = {"/a"};
    options.reserve_bytes = 0;
    const auto start = [&] {
        auto manager = LogManager::open(files, clock, options, {.cluster_id = "c", .node_id = 1}).value();
        EXPECT_TRUE(manager->load([&](const FoundLog&) { return config; }));
        return manager;
    };
    auto manager = start();
    const auto one_record = [] {
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, Timestamp{1'700'000'000'000}, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> batch;
        builder.finish(batch);
        return batch;
    };
    for (int i = 0; i < 3; ++i) {
        auto batch = one_record();
        ASSERT_TRUE(manager->create(orders, Uuid::of(9), config).value()->append(batch, {}));
    }
    EXPECT_EQ(manager->repair(orders, Repair::drop).error().code, Errc::invalid_argument) << "nothing is wrong with it";
    EXPECT_EQ(manager->repair({"other", 0}, Repair::drop).error().code, Errc::not_found);
    manager.reset();
    const std::byte wrong{0xff};
    ASSERT_TRUE(files.open("/a/orders-0/00000000000000000000.log", io::OpenMode::read_write).value()->write(FilePosition{static_cast<std::int64_t>(one_record().size()) + 62}, {&wrong, 1}));

    manager = start();
    const auto damaged = manager->find(orders);
    EXPECT_EQ(damaged->read({}).error().code, Errc::storage_offline);
    const auto repaired = manager->repair(orders, Repair::restore);
    ASSERT_TRUE(repaired) << repaired.error().message();
    EXPECT_EQ(repaired->batches, 1);
    const auto log = manager->find(orders);
    EXPECT_NE(log, damaged);
    EXPECT_EQ(log->log_end_offset(), Offset{3});
    EXPECT_TRUE(log->read({}));
    EXPECT_EQ(damaged->read({}).error().code, Errc::not_found);
    auto batch = one_record();
    ASSERT_TRUE(log->append(batch, {}));
    ASSERT_TRUE(manager->close(1)) << "a damaged log does not keep the directory from a clean stop";
    manager.reset();
    manager = start();
    EXPECT_TRUE(manager->was_clean());
    EXPECT_EQ(manager->find(orders)->log_end_offset(), Offset{4});
}

}  // namespace
}  // namespace tidemark::storage
