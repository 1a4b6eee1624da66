// A process that appends is killed, again and again, in the middle of its work: every record that it said was on disk is
// there once, in order, and the next one goes on from there.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <latch>
#include <random>

#include "base/bytes.h"
#include "io/posix_file_system.h"
#include "record/builder.h"
#include "storage/log_manager.h"
#include "storage/verify.h"

namespace tidemark::storage {
namespace {

const TopicPartition partition{"orders", 0};
constexpr ProducerId producer = 7;

std::shared_ptr<LogConfig> config() {
    auto c = std::make_shared<LogConfig>();
    c->segment_bytes = 20'000;
    c->segment_index_bytes = 4096;
    c->index_interval_bytes = 500;
    c->file_delete_delay_ms = 1;
    return c;
}

std::unique_ptr<LogManager> start(io::FileSystem& files, const Clock& clock, const io::Path& directory) {
    StorageOptions options;
    options.log_dirs = {directory};
    options.reserve_bytes = 0;
    options.initial_task_delay_ms = 0;
    options.recovery_point_interval_ms = 20;
    options.high_watermark_interval_ms = 10;
    auto manager = LogManager::open(files, clock, options, {.cluster_id = "c"});
    if (!manager) {
        std::fprintf(stderr, "%s\n", manager.error().message().c_str());
        return nullptr;
    }
    if (!(*manager)->load([](const FoundLog&) { return config(); })) return nullptr;
    if (!(*manager)->create(partition, Uuid::of(9), config())) return nullptr;
    (*manager)->start();
    return *std::move(manager);
}

std::vector<std::byte> batch_of(Sequence sequence) {
    record::BatchBuilder builder;
    builder.start({.producer_id = producer, .producer_epoch = 0, .base_sequence = sequence});
    builder.append(Offset{0}, SystemClock{}.now(), as_bytes("k"), as_bytes("value-" + std::to_string(sequence) + std::string(100, '.')));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

/// The process that is killed: appends from the sequence that follows, tells each acknowledged sequence through the pipe.
[[noreturn]] void work(const io::Path& directory, int tell) {
    SystemClock clock;
    io::PosixFileSystem files;
    auto manager = start(files, clock, directory);
    if (manager == nullptr) ::_exit(2);
    auto log = manager->find(partition);
    Sequence next = 0;
    for (const auto& p : log->producers()) next = p.last_sequence + 1;
    for (;; ++next) {
        auto batch = batch_of(next);
        auto appended = log->append(batch, {});
        if (!appended) ::_exit(3);
        log->when_durable(appended->last_offset + 1, [tell, sequence = next](Result<> done) {
            if (!done) ::_exit(4);
            (void)!::write(tell, &sequence, sizeof sequence);
        });
        if (next % 97 == 96) (void)log->roll();
    }
}

TEST(Kill, LosesNothingThatWasAcknowledged) {
    const auto root = std::filesystem::temp_directory_path() / ("tidemark-kill-" + std::to_string(::getpid()));
    std::filesystem::remove_all(root);
    std::filesystem::create_directories(root);
    std::mt19937 random(20261130);
    Sequence acknowledged = -1;
    for (int round = 0; round < 8; ++round) {
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const auto child = ::fork();
        if (child == 0) {
            ::close(ends[0]);
            work((root / "data").string(), ends[1]);
        }
        ::close(ends[1]);
        // It is killed after so many answers, whenever they come.
        const auto answers = 50 + static_cast<int>(random() % 300);
        Sequence sequence = 0;
        int read = 0;
        for (; read < answers && ::read(ends[0], &sequence, sizeof sequence) == sizeof sequence; ++read) acknowledged = std::max(acknowledged, sequence);
        EXPECT_EQ(read, answers) << "the process ended by itself";
        ::kill(child, SIGKILL);
        int status = 0;
        ::waitpid(child, &status, 0);
        while (::read(ends[0], &sequence, sizeof sequence) == sizeof sequence) acknowledged = std::max(acknowledged, sequence);
        ::close(ends[0]);
        if (testing::Test::HasFailure()) return;

        SystemClock clock;
        io::PosixFileSystem files;
        auto manager = start(files, clock, (root / "data").string());
        ASSERT_NE(manager, nullptr);
        auto log = manager->find(partition);
        ASSERT_GT(log->log_end_offset().value, acknowledged);
        Sequence expected = 0;
        record::RecordReader reader;
        for (Offset from{0}; from < log->log_end_offset();) {
            const auto slice = log->read({.from = from});
            ASSERT_TRUE(slice) << slice.error().message();
            ASSERT_GT(slice->bytes, 0);
            std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
            ASSERT_TRUE(slice->file->read(slice->position, bytes));
            record::BatchCursor cursor(bytes);
            for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
                ASSERT_EQ((*batch)->base_sequence(), expected++);
                from = (*batch)->next_offset();
            }
        }
        EXPECT_GT(expected, acknowledged);
        auto again = batch_of(expected - 1);  // what a client would send again
        const auto repeated = log->append(again, {});
        ASSERT_TRUE(repeated) << repeated.error().message();
        EXPECT_TRUE(repeated->duplicate);
        if (round % 3 == 2) {  // sometimes a clean stop comes between
            log.reset();
            ASSERT_TRUE(manager->close(1));
            const auto findings = verify_partition(files, (root / "data" / "orders-0").string());
            ASSERT_TRUE(findings);
            for (const auto& finding : *findings) {
                if (finding.kind == Finding::Kind::fault) ADD_FAILURE() << finding.text();
            }
        }
    }
    std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tidemark::storage
