// The power fails at every step of what a broker does with its disk. Whatever the disk then holds of what was not synced:
// the start succeeds, every acknowledged record is there, nothing is there that was not sent, and the log goes on.
#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "record/builder.h"
#include "storage/log_manager.h"
#include "storage/recovery.h"
#include "storage/verify.h"
#include "tests/recovery/append.h"
#include "tests/recovery/disks.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

/// Thousands of disks fail here; nobody reads what the logs say of it.
[[maybe_unused]] const bool quiet = [] {
    spdlog::set_level(spdlog::level::off);
    return true;
}();

const TopicPartition partition{"orders", 0};
const Uuid topic_id = Uuid::of(9);

LogConfig small_segments() {
    LogConfig config;
    config.segment_bytes = 700;
    config.index_interval_bytes = 100;
    config.segment_index_bytes = 400;
    config.file_delete_delay_ms = 1000;
    return config;
}

/// A broker's storage without threads: syncs run where they are asked for, background work and intervals in tick().
class Broker {
public:
    Broker(io::FileSystem& disk, ManualClock& clock, LogConfig config = small_segments()) : disk_(disk), clock_(clock), config_(std::move(config)) {}

    Result<> start() {
        StorageOptions options;
        options.log_dirs = {"/data"};
        options.reserve_bytes = 0;
        options.initial_task_delay_ms = 0;
        TM_TRY(manager_, LogManager::open(disk_, clock_, options, {.cluster_id = "c", .node_id = 1}));
        TM_TRY(const auto report, manager_->load([&](const FoundLog&) { return std::make_shared<LogConfig>(config_); }));
        if (report.failed > 0) return Error{Errc::corrupt, "a log was not loaded"};
        TM_TRY(log_, manager_->create(partition, topic_id, std::make_shared<LogConfig>(config_)));
        return {};
    }
    Log& log() { return *log_; }
    LogManager& manager() { return *manager_; }
    Result<> stop() {
        TM_TRYV(manager_->close(1));
        log_.reset();
        manager_.reset();
        return {};
    }
    void tick(std::chrono::milliseconds later) {
        clock_.advance(later);
        manager_->tick();
    }

private:
    io::FileSystem& disk_;
    ManualClock& clock_;
    LogConfig config_;
    std::unique_ptr<LogManager> manager_;
    std::shared_ptr<Log> log_;
};

/// What was sent, and what of it was said to be on disk.
struct Ledger {
    std::map<Offset, std::vector<std::string>> sent;     // by offset; several after a truncation
    std::map<Offset, std::string> acknowledged;
    Offset log_start_asked{0};                           // nothing below may be missed
    int next_value = 0;

    Result<> append(Broker& broker, int records, ProducerId producer = no_producer_id) {
        record::BatchBuilder builder;
        record::BatchOptions options;
        if (producer != no_producer_id) options = {.producer_id = producer, .producer_epoch = 0, .base_sequence = sequence, .transactional = false};
        builder.start(options);
        std::vector<std::string> values;
        for (int i = 0; i < records; ++i) {
            values.push_back("value-" + std::to_string(next_value++));
            builder.append(Offset{i}, Timestamp{1'700'000'000'000 + next_value}, as_bytes("k"), as_bytes(values.back()));
        }
        std::vector<std::byte> batch;
        builder.finish(batch);
        const auto end = broker.log().log_end_offset();
        for (int i = 0; i < records; ++i) sent[end + i].push_back(values[static_cast<std::size_t>(i)]);
        TM_TRY(const auto appended, broker.log().append(batch, {.leader_epoch = 0}));
        if (producer != no_producer_id) sequence += records;
        for (int i = 0; i < records; ++i) unacknowledged[appended.first_offset + i] = values[static_cast<std::size_t>(i)];
        return {};
    }
    Result<> acknowledge(Broker& broker) {
        Result<> result;
        broker.log().when_durable(broker.log().log_end_offset(), [&](Result<> done) { result = std::move(done); });
        TM_TRYV(result);
        acknowledged.insert(unacknowledged.begin(), unacknowledged.end());
        unacknowledged.clear();
        return {};
    }
    void truncated_to(Offset offset) {
        unacknowledged.erase(unacknowledged.lower_bound(offset), unacknowledged.end());
        acknowledged.erase(acknowledged.lower_bound(offset), acknowledged.end());
    }

    std::map<Offset, std::string> unacknowledged;
    Sequence sequence = 0;
};

/// Every record from the log start on.
std::map<Offset, std::string> records_of(const Log& log) {
    std::map<Offset, std::string> records;
    record::RecordReader reader;
    for (auto from = log.log_start_offset(); from < log.log_end_offset();) {
        const auto slice = log.read({.from = from, .bytes_max = 1 << 20, .isolation = Isolation::log_end});
        EXPECT_TRUE(slice) << slice.error().message();
        if (!slice || slice->bytes == 0) break;
        std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
        EXPECT_TRUE(slice->file->read(slice->position, bytes));
        record::BatchCursor cursor(bytes);
        for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
            EXPECT_TRUE(reader.open(**batch));
            for (auto record = reader.next(); record && *record; record = reader.next()) {
                if ((*record)->offset >= from) records[(*record)->offset] = std::string(as_text(*(*record)->value));
            }
            from = (*batch)->next_offset();
        }
    }
    return records;
}

using Script = std::function<Result<>(Broker&, Ledger&)>;

/// Starts on what the disk holds and judges it. Returns false when something was wrong, so that the caller can stop.
bool judge(io::MemoryFileSystem after, const Ledger& ledger, const std::string& where, bool gaps_allowed = false) {
    SCOPED_TRACE(where);
    ManualClock clock;
    Broker broker(after, clock);
    const auto started = broker.start();
    EXPECT_TRUE(started) << started.error().message();
    if (!started) return false;
    const auto records = records_of(broker.log());
    const auto log_start = broker.log().log_start_offset();
    EXPECT_LE(log_start, ledger.log_start_asked);
    for (const auto& [offset, value] : ledger.acknowledged) {
        if (offset < log_start || (gaps_allowed && !records.contains(offset))) continue;
        const auto found = records.find(offset);
        EXPECT_TRUE(found != records.end() && found->second == value)
            << "acknowledged offset " << offset.value << " is " << (found == records.end() ? "missing" : found->second);
    }
    for (const auto& [offset, value] : records) {
        const auto sent = ledger.sent.find(offset);
        EXPECT_TRUE(sent != ledger.sent.end() && std::count(sent->second.begin(), sent->second.end(), value) == 1)
            << "offset " << offset.value << " holds " << value << ", which was not sent there";
    }
    // It goes on, and a clean stop leaves nothing wrong.
    Ledger more;
    more.next_value = 10'000;
    EXPECT_TRUE(more.append(broker, 2));
    EXPECT_TRUE(more.acknowledge(broker));
    const auto stopped = broker.stop();
    EXPECT_TRUE(stopped) << stopped.error().message();
    const auto findings = verify_partition(after, "/data/orders-0");
    EXPECT_TRUE(findings);
    for (const auto& finding : *findings) {
        if (finding.kind == Finding::Kind::fault) ADD_FAILURE() << finding.text();
    }
    return !testing::Test::HasFailure();
}

constexpr int seeds = 3;

/// Tries every step of the script, with everything unsynced lost, kept, and torn in several ways.
void lose_power_everywhere(const Script& script, bool gaps_allowed = false) {
    int steps = 0;
    for (;; ++steps) {
        ManualClock clock;
        io::FaultyFileSystem disk{{.lose_power_at = steps, .clock = &clock}};
        Ledger ledger;
        {
            Broker broker(disk, clock);
            auto done = broker.start();
            if (done) done = script(broker, ledger);
            if (!disk.tripped()) {
                EXPECT_TRUE(done) << done.error().message();
                break;
            }
        }
        for (const auto& how : test::disks_after_power_loss(seeds)) {
            const auto where = test::power_loss_text(steps, how);
            if (!judge(disk.after_restart(how), ledger, where, gaps_allowed)) return;
        }
    }
    EXPECT_GT(steps, 10);
}

TEST(PowerLoss, KeepsEveryAcknowledgedRecord) {
    lose_power_everywhere([](Broker& broker, Ledger& ledger) -> Result<> {
        for (int i = 0; i < 14; ++i) {
            TM_TRYV(ledger.append(broker, 1 + i % 3, i % 4 == 3 ? 5 : no_producer_id));
            if (i % 2 == 1) TM_TRYV(ledger.acknowledge(broker));
            if (i % 5 == 4) broker.tick(std::chrono::seconds{70});
        }
        return ledger.acknowledge(broker);
    });
}

TEST(PowerLoss, KeepsThemOverCleanStops) {
    lose_power_everywhere([](Broker& broker, Ledger& ledger) -> Result<> {
        for (int round = 0; round < 3; ++round) {
            for (int i = 0; i < 4; ++i) TM_TRYV(ledger.append(broker, 2, 5));
            TM_TRYV(ledger.acknowledge(broker));
            TM_TRYV(ledger.append(broker, 1));
            TM_TRYV(broker.stop());
            TM_TRYV(broker.start());
            for (const auto& [offset, value] : ledger.unacknowledged) ledger.acknowledged[offset] = value;  // a clean stop flushes
            ledger.unacknowledged.clear();
        }
        return {};
    });
}

Result<> append_and_delete_the_oldest(Broker& broker, Ledger& ledger) {
    for (int i = 0; i < 12; ++i) {
        TM_TRYV(ledger.append(broker, 2));
        TM_TRYV(ledger.acknowledge(broker));
        if (i % 4 != 3) continue;
        const auto segments = broker.log().segments();
        if (segments->size() < 2) continue;
        ledger.log_start_asked = (*segments)[1]->base_offset();
        TM_TRYV(broker.log().delete_oldest_segments(1, "test"));
        broker.tick(std::chrono::seconds{70});
    }
    ledger.log_start_asked = broker.log().log_end_offset() - 1;
    TM_TRYV(broker.log().delete_records_before(ledger.log_start_asked));
    TM_TRYV(broker.manager().write_checkpoints());
    ledger.log_start_asked = broker.log().log_end_offset();
    return broker.log().delete_oldest_segments(100, "test");
}

Result<> append_and_truncate(Broker& broker, Ledger& ledger) {
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 6; ++i) TM_TRYV(ledger.append(broker, 2, 5));
        TM_TRYV(ledger.acknowledge(broker));
        TM_TRYV(broker.manager().write_checkpoints());
        const auto to = broker.log().log_end_offset() - 4;  // a batch that holds the offset goes as a whole
        ledger.truncated_to(to);
        ledger.sequence = 0;
        TM_TRYV(broker.log().truncate_to(to));
        for (const auto& p : broker.log().producers()) ledger.sequence = p.last_sequence + 1;
        TM_TRYV(ledger.append(broker, 1));
        TM_TRYV(ledger.acknowledge(broker));
    }
    return {};
}

Result<> append_and_start_over(Broker& broker, Ledger& ledger) {
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 5; ++i) TM_TRYV(ledger.append(broker, 2));
        TM_TRYV(ledger.acknowledge(broker));
        const auto to = broker.log().log_end_offset() + 10;
        ledger.truncated_to(Offset{0});
        ledger.log_start_asked = to;
        TM_TRYV(broker.log().truncate_fully_and_start_at(to));
        TM_TRYV(ledger.append(broker, 1));
        TM_TRYV(ledger.acknowledge(broker));
    }
    return {};
}

/// Other partitions come and go beside the one that is judged; a start must find its way in any case.
Result<> create_and_remove_others(Broker& broker, Ledger& ledger) {
    const auto config = std::make_shared<LogConfig>(small_segments());
    for (int round = 0; round < 3; ++round) {
        TM_TRYV(ledger.append(broker, 1));
        TM_TRY(const auto other, broker.manager().create({"other", round}, Uuid::of(8), config));
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, Timestamp{1'700'000'000'000}, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> batch;
        builder.finish(batch);
        TM_TRYV(other->append(batch, {}));
        TM_TRYV(ledger.acknowledge(broker));
        if (round != 1) TM_TRYV(broker.manager().remove({"other", round}));
        broker.tick(std::chrono::seconds{70});
    }
    return {};
}

TEST(PowerLoss, WhileRetentionDeletes) { lose_power_everywhere(append_and_delete_the_oldest); }
TEST(PowerLoss, WhileTruncating) { lose_power_everywhere(append_and_truncate); }
TEST(PowerLoss, WhileStartingOver) { lose_power_everywhere(append_and_start_over); }
TEST(PowerLoss, WhilePartitionsComeAndGo) { lose_power_everywhere(create_and_remove_others); }

/// Copies the records of `source` whose value `stays` accepts, batch by batch.
Result<> copy_some(const Segment& source, Segment& to, const std::function<bool(std::string_view)>& stays) {
    TM_TRY(const auto file, source.file());
    BatchWalk walk(*file, FilePosition{0}, source.bytes());
    record::RecordReader reader;
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) return {};
        record::BatchBuilder builder;
        builder.start({.base_offset = batch->base_offset(), .leader_epoch = 0, .last_offset = batch->last_offset()});
        TM_TRYV(reader.open(*batch));
        for (;;) {
            TM_TRY(const auto record, reader.next());
            if (!record) break;
            if (stays(as_text(*record->value))) builder.append(record->offset, record->timestamp, record->key, record->value, record->headers, record->header_count);
        }
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        if (!bytes.empty()) TM_TRYV(to.append(bytes, true));
    }
}

TEST(PowerLoss, WhileACleanedSegmentIsSwappedIn) {
    // Three segments become one, then two become two. A record is in the log as before the pass or as after it.
    const auto stays = [](std::string_view value) { return value != "value-1" && value != "value-6" && value != "value-9"; };
    lose_power_everywhere(
        [&](Broker& broker, Ledger& ledger) -> Result<> {
            for (int i = 0; i < 40; ++i) TM_TRYV(ledger.append(broker, 1));
            TM_TRYV(ledger.acknowledge(broker));
            broker.tick(std::chrono::seconds{70});
            for (const auto& [first, count, outputs] : {std::tuple{0, 2, 1}, std::tuple{0, 2, 2}}) {
                const auto all = broker.log().segments();
                if (all->size() < 3) return Error{Errc::invalid_argument, "too few segments"};
                const SegmentList sources(all->begin() + first, all->begin() + first + count);
                SegmentList cleaned;
                for (int i = 0; i < outputs; ++i) {
                    TM_TRY(auto output, broker.log().create_cleaned_segment(sources[static_cast<std::size_t>(i)]->base_offset()));
                    cleaned.push_back(std::move(output));
                }
                for (std::size_t i = 0; i < sources.size(); ++i) TM_TRYV(copy_some(*sources[i], *cleaned[std::min(i, cleaned.size() - 1)], stays));
                for (const auto& output : cleaned) TM_TRYV(output->finish_cleaned(Timestamp{1'700'000'000'000}));
                TM_TRYV(broker.log().replace_segments(cleaned, sources));
                broker.tick(std::chrono::seconds{70});
            }
            return {};
        },
        true);
}

/// Some of it acknowledged, the end not.
Ledger append_and_stop_anyhow(io::FileSystem& disk, ManualClock& clock) {
    Ledger ledger;
    Broker broker(disk, clock);
    EXPECT_TRUE(broker.start());
    for (int i = 0; i < 9; ++i) EXPECT_TRUE(ledger.append(broker, 2, 5));
    EXPECT_TRUE(ledger.acknowledge(broker));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(ledger.append(broker, 2, 5));
    return ledger;
}

TEST(PowerLoss, DuringRecoveryItself) {
    // A disk that lost power once loses it again at every step of the next start.
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    const auto ledger = append_and_stop_anyhow(disk, clock);
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        for (int step = 0;; ++step) {
            io::FaultyFileSystem again{{.lose_power_at = step, .clock = &clock}, disk.after_restart({.seed = seed})};
            {
                Broker broker(again, clock);
                auto done = broker.start();
                if (done) done = broker.log().flush();
                if (!again.tripped()) break;
            }
            for (const auto how : {io::Unsynced::lost, io::Unsynced::kept, io::Unsynced::torn}) {
                const auto where = "seed " + std::to_string(seed) + ", power lost again at step " + std::to_string(step) + ", unsynced " +
                                   std::to_string(static_cast<int>(how));
                if (!judge(again.after_restart({.unsynced = how, .seed = seed}), ledger, where)) return;
            }
        }
    }
}

// --- a disk that fails or is full --------------------------------------------------------------------------------------

/// Every step of the script fails in turn. Nothing crashes; what was acknowledged is there after a restart.
void fail_everywhere(io::Fault fault, int calls, const Script& script) {
    int steps = 0;
    for (;; ++steps) {
        ManualClock clock;
        io::FaultyFileSystem disk{{.fail_at = steps, .fail_calls = calls, .fault = fault, .clock = &clock}};
        Ledger ledger;
        {
            Broker broker(disk, clock);
            auto done = broker.start();
            if (done) done = script(broker, ledger);
            if (!disk.tripped()) break;
        }
        disk.inject({.clock = &clock});
        for (const auto how : {io::Unsynced::kept, io::Unsynced::lost}) {
            const auto where = "call " + std::to_string(steps) + " failed, unsynced " + std::to_string(static_cast<int>(how));
            if (!judge(disk.after_restart({.unsynced = how}), ledger, where)) return;
        }
    }
    EXPECT_GT(steps, 10);
}

Result<> append_roll_and_delete(Broker& broker, Ledger& ledger) {
    Result<> first_error;
    const auto note = [&](Result<> result) {
        if (!result && first_error) first_error = std::move(result);
    };
    for (int i = 0; i < 10; ++i) {  // goes on after an error, as clients do
        note(ledger.append(broker, 2));
        note(ledger.acknowledge(broker));
        if (i % 4 == 3) broker.tick(std::chrono::seconds{70});
    }
    note(broker.stop());
    return first_error;
}

TEST(FailingDisk, OneErrorLosesNothingThatWasAcknowledged) { fail_everywhere(io::Fault::io_error, 1, append_roll_and_delete); }
TEST(FailingDisk, ADeadDiskLosesNothingThatWasAcknowledged) { fail_everywhere(io::Fault::io_error, 1'000'000, append_roll_and_delete); }
TEST(FailingDisk, OneRefusalForSpaceLosesNothing) { fail_everywhere(io::Fault::no_space, 1, append_roll_and_delete); }
TEST(FailingDisk, ShortWritesLoseNothing) { fail_everywhere(io::Fault::short_write, 1, append_roll_and_delete); }

TEST(FailingDisk, WhileDeletingAndTruncating) {
    for (const auto& script : {append_and_delete_the_oldest, append_and_truncate, append_and_start_over, create_and_remove_others}) {
        for (const auto fault : {io::Fault::io_error, io::Fault::no_space, io::Fault::short_write}) fail_everywhere(fault, 1, script);
        fail_everywhere(io::Fault::io_error, 1'000'000, script);
    }
}

TEST(FailingDisk, DuringRecovery) {
    // Every step of a start fails; it may be refused, but the next one finds everything.
    ManualClock clock;
    io::FaultyFileSystem disk{{.clock = &clock}};
    const auto ledger = append_and_stop_anyhow(disk, clock);
    for (const auto fault : {io::Fault::io_error, io::Fault::no_space, io::Fault::short_write}) {
        for (int step = 0;; ++step) {
            io::FaultyFileSystem again{{.fail_at = step, .fault = fault, .clock = &clock}, disk.after_restart({.seed = 3})};
            {
                Broker broker(again, clock);
                (void)broker.start();
            }
            if (!again.tripped()) break;
            again.inject({.clock = &clock});
            if (!judge(again.after_restart({.unsynced = io::Unsynced::kept}), ledger, "step " + std::to_string(step) + " of a start failed")) return;
        }
    }
}

TEST(FailingDisk, OneDirectoryFailsTheOtherServes) {
    const TopicPartition here{"here", 0}, there{"there", 0};
    const auto config = std::make_shared<LogConfig>(small_segments());
    const auto append = [](Log& log) { return test::append_durably(log, Timestamp{1'700'000'000'000}, "k", "v"); };
    for (const auto fault : {io::Fault::io_error, io::Fault::no_space, io::Fault::short_write}) {
        for (int step = 0;; ++step) {
            SCOPED_TRACE("call " + std::to_string(step) + " fails, and all behind it");
            ManualClock clock;
            io::FaultyFileSystem disk{{.clock = &clock}};
            StorageOptions options;
            options.log_dirs = {"/a", "/b"};
            options.reserve_bytes = 0;
            options.initial_task_delay_ms = 0;
            const auto manager = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
            ASSERT_TRUE(manager->load([&](const FoundLog&) { return config; }));
            const auto directories = manager->directories();
            const auto a = manager->create(here, topic_id, config, directories[0].directory_id).value();
            const auto b = manager->create(there, topic_id, config, directories[1].directory_id).value();
            disk.inject({.fail_at = step, .fail_calls = 1'000'000, .fault = fault, .counted = [](const io::Call& call) { return call.operation != io::Operation::read && call.path.starts_with("/a/"); }, .clock = &clock});
            for (int i = 0; i < 20; ++i) {
                const auto failing = append(*a);
                if (!failing) {
                    EXPECT_THAT(failing.error().code, testing::AnyOf(Errc::storage_offline, Errc::no_space)) << failing.error().message();
                }
                const auto well = append(*b);
                ASSERT_TRUE(well) << well.error().message();
                if (i % 8 == 7) {
                    clock.advance(std::chrono::seconds{70});
                    manager->tick();
                }
            }
            EXPECT_EQ(b->log_end_offset(), Offset{20});
            EXPECT_TRUE(b->read({}));
            if (!disk.tripped()) break;
        }
    }
}

TEST(FailingDisk, AFullDiskLosesNothing) { fail_everywhere(io::Fault::short_write, 12, append_roll_and_delete); }

}  // namespace
}  // namespace tidemark::storage
