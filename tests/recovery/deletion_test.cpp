// Deletion and power loss: whatever step the power fails at, retention's segments are there or gone from the front, records that
// a client had deleted stay deleted once it was told so, and a deleted partition does not come back into a new one of its name.
#include <gmock/gmock.h>

#include <set>

#include "io/faulty_file_system.h"
#include "retention/scheduler.h"
#include "storage/log_manager.h"
#include "storage/segment.h"
#include "storage/verify.h"
#include "tests/recovery/append.h"
#include "tests/recovery/disks.h"

namespace tidemark {
namespace {

using storage::Log;
using storage::LogManager;

const TopicPartition partition{"aged", 0};
constexpr std::int64_t retention_ms = 10'000;

storage::LogConfig config() {
    storage::LogConfig c;
    c.segment_ms = 100;
    c.retention_ms = retention_ms;
    c.file_delete_delay_ms = 1000;
    return c;
}

/// A broker's storage and retention without threads, on a disk that may lose its power.
class Broker {
public:
    Broker(io::FileSystem& disk, ManualClock& clock) : disk_(disk), clock_(clock) {}

    Result<> start(std::set<Uuid> known = {}) {
        storage::StorageOptions options;
        options.log_dirs = {"/data"};
        options.reserve_bytes = 0;
        options.initial_task_delay_ms = 0;
        options.partition_delete_delay_ms = 1000;
        TM_TRY(manager_, LogManager::open(disk_, clock_, options, {.cluster_id = "c", .node_id = 1}));
        // As metadata says: a directory whose topic id it does not know is not this topic's.
        TM_TRY(const auto report, manager_->load([&](const storage::FoundLog& found) -> std::shared_ptr<const storage::LogConfig> {
            if (!known.empty() && !(found.topic_id && known.contains(*found.topic_id))) return nullptr;
            return std::make_shared<const storage::LogConfig>(config());
        }));
        if (report.failed > 0) return Error{Errc::corrupt, "a log was not loaded"};
        retention_ = std::make_unique<retention::Scheduler>(*manager_, clock_, retention::RetentionOptions{});
        return {};
    }
    Result<std::shared_ptr<Log>> create(const Uuid& id) { return manager_->create(partition, id, std::make_shared<const storage::LogConfig>(config())); }
    Result<> stop() { return manager_->close(1); }
    LogManager& manager() { return *manager_; }
    retention::Scheduler& retention() { return *retention_; }
    void tick(std::chrono::milliseconds later) {
        clock_.advance(later);
        manager_->tick();
    }
    /// One record with its offset as value, at the clock's time, on the disk when this returns.
    Result<> append(Log& log, const std::string& value) { return test::append_durably(log, clock_.now(), std::nullopt, value); }

private:
    io::FileSystem& disk_;
    ManualClock& clock_;
    std::unique_ptr<LogManager> manager_;
    std::unique_ptr<retention::Scheduler> retention_;
};

std::map<Offset, std::string> records_of(const Log& log) {
    std::map<Offset, std::string> records;
    for (const auto& segment : *log.segments()) {
        std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
        EXPECT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
        record::BatchCursor cursor(bytes);
        record::RecordReader reader;
        while (const auto batch = *cursor.next()) {
            EXPECT_TRUE(reader.open(*batch));
            while (const auto r = *reader.next())
                if (r->offset >= log.log_start_offset()) records[r->offset] = std::string(as_text(*r->value));
        }
    }
    return records;
}

/// What the script was told, and may not be untrue after a restart.
struct Promise {
    Offset appended{0};                 // acknowledged end
    Offset deleted_by_request{0};       // DeleteRecords was answered
    Offset may_be_deleted{0};           // retention or DeleteRecords was asked to go so far
    std::set<Uuid> topics;              // as the metadata log has it when the power fails
};

using Script = std::function<Result<>(Broker&, ManualClock&, Promise&)>;
using Judge = std::function<void(Broker&, const Promise&)>;

/// Every step of the script, with what was not synced lost, kept and torn.
void lose_power_everywhere(const Script& script, const Judge& judge) {
    int steps = 0;
    for (; !testing::Test::HasFailure(); ++steps) {
        ManualClock clock;
        io::FaultyFileSystem disk{{.lose_power_at = steps, .clock = &clock}};
        Promise promise;
        {
            Broker broker(disk, clock);
            auto done = broker.start();
            if (done) done = script(broker, clock, promise);
            if (!disk.tripped()) {
                EXPECT_TRUE(done) << done.error().message();
                break;
            }
        }
        for (const auto& how : test::disks_after_power_loss(4)) {
            SCOPED_TRACE(test::power_loss_text(steps, how));
            auto after = disk.after_restart(how);
            Broker broker(after, clock);
            const auto started = broker.start(promise.topics);
            ASSERT_TRUE(started) << started.error().message();
            judge(broker, promise);
            broker.tick(std::chrono::seconds{5});   // what was on its way out is gone now
            const auto left = after.list("/data").value();
            for (const auto& entry : left) {
                EXPECT_THAT(entry.name, testing::Not(testing::EndsWith("-delete")));
                if (!entry.is_directory || !entry.name.starts_with("aged-")) continue;
                for (const auto& file : after.list("/data/" + entry.name).value()) EXPECT_THAT(file.name, testing::Not(testing::EndsWith(".deleted")));
            }
            ASSERT_TRUE(broker.stop());
            const auto findings = storage::verify_partition(after, "/data/aged-0");
            if (!findings) continue;   // no such directory
            for (const auto& finding : *findings) EXPECT_NE(finding.kind, storage::Finding::Kind::fault) << finding.text();
        }
    }
    EXPECT_GT(steps, 20);
}

TEST(DeletionAndPowerLoss, RetentionTakesFromTheFrontAndDeletedRecordsStayDeleted) {
    const auto topic = Uuid::of(9);
    lose_power_everywhere(
        [&](Broker& broker, ManualClock& clock, Promise& promise) -> Result<> {
            promise.topics = {topic};
            TM_TRY(const auto log, broker.create(topic));
            for (int i = 0; i < 8; ++i) {
                TM_TRYV(broker.append(*log, std::to_string(i)));
                promise.appended = log->log_end_offset();
                clock.advance(std::chrono::milliseconds{1000});
            }
            promise.may_be_deleted = Offset{3};
            TM_TRYV(log->delete_records_before(Offset{3}));
            promise.deleted_by_request = Offset{3};
            broker.retention().run();                                     // below the log start
            broker.tick(std::chrono::milliseconds{retention_ms - 3000});  // four and five are old enough as well
            promise.may_be_deleted = Offset{6};
            broker.retention().run();
            TM_TRYV(broker.append(*log, "8"));
            promise.appended = log->log_end_offset();
            broker.tick(std::chrono::milliseconds{2 * retention_ms});
            promise.may_be_deleted = log->log_end_offset();               // the active segment goes as well
            broker.retention().run();
            broker.tick(std::chrono::milliseconds{2000});
            TM_TRYV(broker.append(*log, "9"));
            promise.appended = log->log_end_offset();
            return log->log_start_offset() == Offset{9} ? Result<>{} : Error{Errc::invalid_argument, "the script does not do what it should"};
        },
        [&](Broker& broker, const Promise& promise) {
            const auto log = broker.manager().find(partition);
            if (!log) {
                EXPECT_EQ(promise.appended, Offset{0});
                return;
            }
            EXPECT_GE(log->log_start_offset(), promise.deleted_by_request);
            EXPECT_LE(log->log_start_offset(), promise.may_be_deleted);
            EXPECT_GE(log->log_end_offset(), promise.appended);
            const auto records = records_of(*log);
            for (auto offset = log->log_start_offset(); offset < promise.appended; ++offset) {
                const auto found = records.find(offset);
                ASSERT_NE(found, records.end()) << "offset " << offset.value << " is missing, the log starts at " << log->log_start_offset().value;
                EXPECT_EQ(found->second, std::to_string(offset.value));
            }
            broker.retention().run();   // what came back goes again
            EXPECT_LE(log->log_start_offset(), log->log_end_offset());
        });
}

TEST(DeletionAndPowerLoss, ADeletedPartitionDoesNotComeBackIntoItsSuccessor) {
    lose_power_everywhere(
        [&](Broker& broker, ManualClock&, Promise& promise) -> Result<> {
            for (int round = 0; round < 3; ++round) {
                const auto topic = Uuid::of(static_cast<unsigned char>(100 + round));
                promise.topics = {topic};   // the metadata log has it before its logs are made
                promise.appended = Offset{0};
                TM_TRY(const auto log, broker.create(topic));
                for (int i = 0; i < 3; ++i) {
                    TM_TRYV(broker.append(*log, std::to_string(round) + "-" + std::to_string(i)));
                    promise.appended = log->log_end_offset();
                }
                // The metadata log forgets it before its logs go.
                promise.topics = {Uuid::of(1)};
                promise.appended = Offset{0};
                TM_TRYV(broker.manager().remove(partition));
                if (round == 1) broker.tick(std::chrono::seconds{5});
            }
            return {};
        },
        [&](Broker& broker, const Promise& promise) {
            if (promise.topics.empty()) return;   // there was no topic yet
            const auto topic = *promise.topics.begin();
            const auto log = broker.create(topic);   // as the daemon does for what metadata has
            ASSERT_TRUE(log) << log.error().message();
            EXPECT_GE((*log)->log_end_offset(), promise.appended);
            EXPECT_EQ((*log)->topic_id(), topic);
            for (const auto& [offset, value] : records_of(**log)) {
                const auto round = Uuid::of(static_cast<unsigned char>(100 + std::stoi(value)));
                EXPECT_EQ(round, topic) << "a record of a deleted topic: " << value;
            }
        });
}

}  // namespace
}  // namespace tidemark
