// A log moves between log directories. While it does it is written to, read and held; whatever step the power fails at, it is
// found once, with every record that was acknowledged, and arrives in the end.
#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "io/faulty_file_system.h"
#include "storage/checkpoint.h"
#include "storage/log_directory.h"
#include "storage/log_manager.h"
#include "storage/verify.h"
#include "tests/recovery/append.h"
#include "tests/recovery/disks.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;
using storage::Log;
using storage::LogManager;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

const TopicPartition partition{"orders", 0};
const Uuid topic_id = Uuid::of(9);

std::shared_ptr<storage::LogConfig> config() {
    auto c = std::make_shared<storage::LogConfig>();
    c->segment_index_bytes = 1200;
    c->index_interval_bytes = 100;
    c->compacts = true;
    return c;
}

/// A broker's storage without threads, with two log directories.
class Broker {
public:
    Broker(io::FileSystem& disk, ManualClock& clock) : disk_(disk), clock_(clock) {}

    Result<> start() {
        manager_.reset();
        storage::StorageOptions options;
        options.log_dirs = {"/a", "/b"};
        options.reserve_bytes = 0;
        options.partition_delete_delay_ms = 1000;
        TM_TRY(manager_, LogManager::open(disk_, clock_, options, {.cluster_id = "c", .node_id = 1}));
        TM_TRY(const auto report, manager_->load([](const storage::FoundLog&) { return config(); }));
        if (report.failed > 0) return Error{Errc::corrupt, "a log was not loaded"};
        return {};
    }
    Result<std::shared_ptr<Log>> create() { return manager_->create(partition, topic_id, config(), manager_->directories().front().directory_id); }
    LogManager& manager() { return *manager_; }
    std::shared_ptr<Log> log() const { return manager_->find(partition); }
    /// Moves it as far as it goes now.
    Result<> move_to(const io::Path& directory) {
        TM_TRYV(manager_->move(partition, directory));
        manager_->tick();
        return {};
    }
    void tick(std::chrono::milliseconds later) {
        clock_.advance(later);
        manager_->tick();
    }
    /// One record, on the disk when this returns.
    Result<> append(const std::string& value, record::BatchOptions options = {}) { return test::append_durably(*log(), clock_.now(), "k", value, options); }
    /// The partition's directories in both log directories, without those that are on their way out.
    std::vector<io::Path> places() const {
        std::vector<io::Path> found;
        for (const auto* directory : {"/a", "/b"}) {
            const auto entries = disk_.list(directory).value();
            for (const auto& entry : entries) {
                if (entry.is_directory && !entry.name.ends_with("-delete")) found.push_back(io::join(directory, entry.name));
            }
        }
        return found;
    }

private:
    io::FileSystem& disk_;
    ManualClock& clock_;
    std::unique_ptr<LogManager> manager_;
};

std::vector<std::string> values_of(const Log& log) {
    std::vector<std::string> values;
    for (auto from = log.log_start_offset(); from < log.log_end_offset();) {
        const auto slice = log.read({.from = from, .isolation = storage::Isolation::log_end});
        EXPECT_TRUE(slice) << slice.error().message();
        if (!slice || slice->bytes == 0) break;
        std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
        EXPECT_TRUE(slice->file->read(slice->position, bytes));
        record::BatchCursor cursor(bytes);
        record::RecordReader reader;
        while (const auto batch = *cursor.next()) {
            EXPECT_TRUE(reader.open(*batch));
            while (const auto r = *reader.next())
                if (r->offset >= log.log_start_offset()) values.emplace_back(as_text(*r->value));
            from = batch->last_offset() + 1;
        }
    }
    return values;
}

class Move : public testing::Test {
protected:
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    Broker broker{disk, clock};

    void SetUp() override {
        ASSERT_TRUE(broker.start());
        ASSERT_TRUE(broker.create());
        for (const auto* value : {"0", "1"}) ASSERT_TRUE(broker.append(value));
        ASSERT_TRUE(broker.log()->roll());
        for (const auto* value : {"2", "3"}) ASSERT_TRUE(broker.append(value));
        ASSERT_TRUE(broker.log()->roll());
        ASSERT_TRUE(broker.append("4"));
    }
};

TEST_F(Move, TheLogIsTheSameInAnotherDirectory) {
    ASSERT_TRUE(broker.append("5", {.producer_id = 7, .producer_epoch = 2, .base_sequence = 0}));
    ASSERT_TRUE(broker.log()->delete_records_before(Offset{1}));
    ASSERT_TRUE(broker.manager().write_cleaner_checkpoint(partition, Offset{2}));
    const auto log = broker.log();
    const auto slice = log->read({.from = Offset{1}}).value();
    const auto bases = [&] {
        std::vector<std::int64_t> all;
        for (const auto& segment : *log->segments()) all.push_back(segment->base_offset().value);
        return all;
    };
    const auto before = bases();
    const auto modified = log->segments()->front()->modified().value();
    clock.advance(10s);
    ASSERT_TRUE(broker.move_to("/b"));

    EXPECT_EQ(broker.log(), log);
    EXPECT_EQ(log->directory(), "/b/orders-0");
    EXPECT_EQ(&log->log_dir(), &broker.log()->log_dir());
    EXPECT_EQ(log->log_dir().path(), "/b");
    EXPECT_EQ(log->topic_id(), topic_id);
    EXPECT_THAT(values_of(*log), ElementsAre("1", "2", "3", "4", "5"));
    EXPECT_EQ(bases(), before);
    EXPECT_EQ(log->segments()->front()->modified().value(), modified);
    ASSERT_THAT(log->producers(), SizeIs(1));
    EXPECT_EQ(log->producers().front().epoch, 2);
    EXPECT_THAT(broker.manager().moves(), IsEmpty());
    EXPECT_THAT(broker.places(), ElementsAre("/b/orders-0"));
    EXPECT_EQ(storage::read_offset_checkpoint(disk, "/b/cleaner-offset-checkpoint").value().at(partition), Offset{2});
    EXPECT_THAT(storage::read_offset_checkpoint(disk, "/a/cleaner-offset-checkpoint").value(), IsEmpty());
    // Who began to read before goes on.
    std::vector<std::byte> bytes(static_cast<std::size_t>(slice.bytes));
    EXPECT_EQ(slice.file->read(slice.position, bytes).value(), bytes.size());
    EXPECT_TRUE(slice.segment->deleted_since());

    ASSERT_TRUE(broker.append("6"));
    broker.tick(2s);
    for (const auto& entry : disk.list("/a").value()) EXPECT_THAT(entry.name, Not(EndsWith("-delete")));
    ASSERT_TRUE(broker.manager().close(1));
    ASSERT_TRUE(broker.start());
    EXPECT_THAT(values_of(*broker.log()), ElementsAre("1", "2", "3", "4", "5", "6"));
    EXPECT_EQ(broker.log()->producers().size(), 1u);
    EXPECT_THAT(storage::verify_partition(disk, "/b/orders-0").value(), IsEmpty());
}

TEST_F(Move, WhatIsAppendedMeanwhileArrivesToo) {
    int appended = 0;
    disk.inject({.before = [&](const io::Call& call) {
        if (call.operation != io::Operation::write || appended == 3 || call.path.find("-future/") == std::string::npos) return;
        ++appended;
        EXPECT_TRUE(broker.log()->is_moving());
        EXPECT_THAT(broker.manager().moves(), SizeIs(1));
        EXPECT_TRUE(broker.append("during " + std::to_string(appended)));
        if (appended == 2) {
            EXPECT_TRUE(broker.log()->roll());
        }
    }});
    ASSERT_TRUE(broker.move_to("/b"));
    EXPECT_EQ(appended, 3);
    EXPECT_EQ(broker.log()->log_dir().path(), "/b");
    EXPECT_THAT(values_of(*broker.log()), ElementsAre("0", "1", "2", "3", "4", "during 1", "during 2", "during 3"));
    EXPECT_FALSE(broker.log()->is_moving());
}

TEST_F(Move, NothingIsExchangedWhileItIsCopied) {
    auto tried = false;
    disk.inject({.before = [&](const io::Call& call) {
        if (tried || call.operation != io::Operation::write || call.path.find("-future/") == std::string::npos) return;
        tried = true;
        const auto log = broker.log();
        auto cleaned = log->create_cleaned_segment(Offset{0}).value();
        ASSERT_TRUE(cleaned->finish_cleaned(clock.now()));
        EXPECT_EQ(log->replace_segments({cleaned}, {log->segments()->front()}).error().code, Errc::aborted);
        log->discard_cleaned_segment(cleaned);
    }});
    ASSERT_TRUE(broker.move_to("/b"));
    EXPECT_TRUE(tried);
    EXPECT_THAT(values_of(*broker.log()), ElementsAre("0", "1", "2", "3", "4"));
}

TEST_F(Move, ItCanBeCalledOff) {
    disk.inject({.before = [&](const io::Call& call) {
        if (call.operation == io::Operation::write && call.path.find("-future/") != std::string::npos) {
            EXPECT_TRUE(broker.manager().move(partition, "/a"));
        }
    }});
    ASSERT_TRUE(broker.move_to("/b"));
    EXPECT_THAT(broker.places(), ElementsAre("/a/orders-0"));
    EXPECT_THAT(broker.manager().moves(), IsEmpty());
    ASSERT_TRUE(broker.append("5"));

    disk.inject({});
    EXPECT_EQ(broker.manager().move(partition, "/c").error().code, Errc::invalid_argument);
    EXPECT_EQ(broker.manager().move({"other", 0}, "/b").error().code, Errc::not_found);
    EXPECT_TRUE(broker.move_to("/a"));
    EXPECT_THAT(broker.places(), ElementsAre("/a/orders-0"));
}

TEST_F(Move, ADeletedPartitionDoesNotArrive) {
    auto removed = false;
    disk.inject({.before = [&](const io::Call& call) {
        if (removed || call.operation != io::Operation::write || call.path.find("-future/") == std::string::npos) return;
        removed = true;
        EXPECT_TRUE(broker.manager().remove(partition));
    }});
    ASSERT_TRUE(broker.move_to("/b"));
    EXPECT_THAT(broker.places(), IsEmpty());
}

TEST(MoveFaults, WhateverFailsTheLogServesFromWhereItIs) {
    for (int step = 0; !testing::Test::HasFailure(); ++step) {
        SCOPED_TRACE(step);
        ManualClock clock;
        io::FaultyFileSystem disk{{.clock = &clock}};
        Broker broker(disk, clock);
        ASSERT_TRUE(broker.start());
        ASSERT_TRUE(broker.create());
        ASSERT_TRUE(broker.append("0"));
        ASSERT_TRUE(broker.log()->roll());
        ASSERT_TRUE(broker.append("1"));
        ASSERT_TRUE(broker.log()->flush());
        broker.manager().tick();
        ASSERT_TRUE(broker.manager().move(partition, "/b"));
        disk.inject({.fail_at = step, .fault = io::Fault::no_space, .counted = [](const io::Call& call) {
                         return call.path.starts_with("/b") && (call.operation == io::Operation::write || call.operation == io::Operation::create);
                     }});
        broker.manager().tick();
        const bool tripped = disk.tripped();
        disk.inject({});
        EXPECT_THAT(broker.places(), SizeIs(1));
        ASSERT_TRUE(broker.append("2"));
        EXPECT_THAT(values_of(*broker.log()), ElementsAre("0", "1", "2"));
        if (!tripped) {
            EXPECT_EQ(broker.log()->directory(), "/b/orders-0");
            break;
        }
    }
}

/// Every call in one of the directories fails once, reads too.
TEST(MoveFaults, WhateverTheDiskLosesTheRecordsAreInOneOfTheDirectories) {
    for (const std::string bad : {"/a", "/b"}) {
        int step = 0;
        for (; !testing::Test::HasFailure(); ++step) {
            SCOPED_TRACE(bad + ", step " + std::to_string(step));
            ManualClock clock;
            io::FaultyFileSystem disk{{.clock = &clock}};
            bool tripped = false, appended = false;
            {
                Broker broker(disk, clock);
                ASSERT_TRUE(broker.start());
                ASSERT_TRUE(broker.create());
                ASSERT_TRUE(broker.append("0"));
                ASSERT_TRUE(broker.log()->roll());
                ASSERT_TRUE(broker.append("1", {.producer_id = 7, .producer_epoch = 2, .base_sequence = 0}));
                broker.manager().tick();
                ASSERT_TRUE(broker.manager().move(partition, "/b"));
                disk.inject({.fail_at = step, .counted = [&](const io::Call& call) { return call.path.starts_with(bad); }});
                broker.manager().tick();
                tripped = disk.tripped();
                disk.inject({});
                const auto at = broker.log()->log_dir().path();
                const auto result = broker.append("2");
                appended = result.has_value();
                if (appended) {
                    EXPECT_THAT(values_of(*broker.log()), ElementsAre("0", "1", "2"));
                } else {
                    EXPECT_EQ(result.error().code, Errc::storage_offline);
                    EXPECT_EQ(at, bad);
                }
                EXPECT_FALSE(broker.log()->is_moving());
                EXPECT_THAT(broker.manager().moves(), IsEmpty());
            }
            Broker later(disk, clock);   // the disk was mended
            const auto started = later.start();
            ASSERT_TRUE(started) << started.error().message();
            later.manager().tick();
            ASSERT_TRUE(later.log());
            EXPECT_THAT(later.places(), ElementsAre(later.log()->directory()));
            EXPECT_EQ(values_of(*later.log()), appended ? (std::vector<std::string>{"0", "1", "2"}) : (std::vector<std::string>{"0", "1"}));
            if (!tripped) {
                EXPECT_EQ(later.log()->directory(), "/b/orders-0");
                break;
            }
        }
        EXPECT_GT(step, 10);
    }
}

/// Between the checkpoints of the directory that it moves to and the exchange of names.
TEST_F(Move, RecordsDeletedAtTheLastMomentStayDeleted) {
    std::jthread deletion;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_noted = false;
    disk.inject({.before =
                     [&](const io::Call& call) {
                         if (call.operation != io::Operation::rename || call.to != "/b/replication-offset-checkpoint" || deletion.joinable()) return;
                         deletion = std::jthread([&] { EXPECT_TRUE(broker.log()->delete_records_before(Offset{3})); });
                         std::unique_lock lock(mutex);
                         changed.wait(lock, [&] { return is_noted; });
                     },
                 .after =
                     [&](const io::Call& call, const Result<>&) {
                         if (call.operation != io::Operation::rename || call.to != "/a/log-start-offset-checkpoint") return;
                         std::unique_lock lock(mutex);
                         is_noted = true;
                         changed.notify_all();
                     }});
    ASSERT_TRUE(broker.move_to("/b"));
    ASSERT_TRUE(deletion.joinable());
    deletion.join();
    EXPECT_EQ(broker.log()->directory(), "/b/orders-0");
    EXPECT_EQ(storage::read_offset_checkpoint(disk, "/b/log-start-offset-checkpoint").value().at(partition), Offset{3});
    EXPECT_THAT(values_of(*broker.log()), ElementsAre("3", "4"));
}

TEST(MovePowerLoss, WheneverPowerIsLostNothingAcknowledgedIs) {
    int steps = 0;
    for (; !testing::Test::HasFailure(); ++steps) {
        ManualClock clock;
        io::FaultyFileSystem disk{{.lose_power_at = steps, .clock = &clock}};
        std::vector<std::string> acknowledged;
        bool asked = false, created = false, deleted = false;
        {
            Broker broker(disk, clock);
            const auto script = [&]() -> Result<> {
                TM_TRYV(broker.start());
                TM_TRYV(broker.create());
                created = true;
                const auto append = [&](const std::string& value) -> Result<> {
                    TM_TRYV(broker.append(value));
                    acknowledged.push_back(value);
                    return {};
                };
                TM_TRYV(append("0"));
                TM_TRYV(append("1"));
                TM_TRYV(broker.log()->roll());
                TM_TRYV(append("2"));
                TM_TRYV(broker.log()->delete_records_before(Offset{1}));
                deleted = true;
                asked = true;
                TM_TRYV(broker.move_to("/b"));
                TM_TRYV(append("3"));
                TM_TRYV(broker.log()->flush());
                broker.tick(2s);
                return append("4");
            };
            const auto done = script();
            if (!disk.tripped()) {
                EXPECT_TRUE(done) << done.error().message();
                break;
            }
        }
        for (const auto& how : test::disks_after_power_loss(4)) {
            SCOPED_TRACE(test::power_loss_text(steps, how));
            auto after = disk.after_restart(how);
            Broker broker(after, clock);
            const auto started = broker.start();
            ASSERT_TRUE(started) << started.error().message();
            broker.manager().tick();   // a move that was begun goes on
            if (!created) continue;
            ASSERT_TRUE(broker.log());
            EXPECT_THAT(broker.places(), ElementsAre(broker.log()->directory()));
            auto values = values_of(*broker.log());
            EXPECT_FALSE(deleted && std::ranges::count(values, "0") > 0);
            std::vector<std::string> expected = acknowledged;
            if (!expected.empty() && (values.empty() || values.front() != "0")) expected.erase(expected.begin());
            ASSERT_GE(values.size(), expected.size());
            values.resize(expected.size());
            EXPECT_EQ(values, expected);
            EXPECT_TRUE(!asked || broker.move_to("/b"));
            EXPECT_TRUE(broker.append("later"));
            EXPECT_THAT(values_of(*broker.log()), Contains("later"));
            const auto at = broker.log()->directory();
            EXPECT_TRUE(!asked || at == "/b/orders-0") << at;
            ASSERT_TRUE(broker.manager().close(1));
            const auto findings = storage::verify_partition(after, at);
            ASSERT_TRUE(findings);
            for (const auto& finding : *findings) EXPECT_EQ(finding.kind, storage::Finding::Kind::leftover) << finding.file << ": " << finding.what;
        }
    }
    EXPECT_GT(steps, 60);
}

}  // namespace
}  // namespace tidemark
