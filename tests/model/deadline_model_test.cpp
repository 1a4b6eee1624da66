// Deadlines against a naive model: logs with random lags, appends, transactions, odd timestamps and restarts, one thread of the
// cleaner that takes its turns by a manual clock, and our defaults (D1 to D5).
//
// For each superseded value: it is in no segment any more once max.compaction.lag.ms (and min.compaction.lag.ms, when there is
// one) and two backoffs are over since the append that superseded it, or since the last transaction that held it ended. At the
// end, when nobody writes any more, every superseded value and every tombstone goes, and both gauges are back at 0.
#include <gmock/gmock.h>

#include <algorithm>

#include "cleaner/cleaner_pool.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "record/control.h"
#include "storage/log_directory.h"
#include "storage/segment.h"
#include "tests/model/model.h"

namespace tidemark::model {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t backoff_ms = 100;
constexpr ProducerId producer = 7;

struct Written {
    std::string key;
    std::optional<std::string> value;
    Timestamp appended{};                            // by the wall clock
    enum class Fate { visible, open, aborted } fate = Fate::visible;
    std::optional<Timestamp> superseded;             // by an append at that time, or by the end of its transaction
};

/// One log as it should be.
struct Partition {
    TopicPartition name;
    std::shared_ptr<const storage::LogConfig> config;
    std::map<Offset, Written> records;
    std::map<std::string, Offset> latest;            // visible
    Timestamp held_until{};                          // an open transaction was seen last
    Sequence sequence = 0;
    bool in_transaction = false;
};

class World {
public:
    explicit World(std::uint64_t seed) : random_(seed) {
        for (std::int64_t i = 0, count = random_.between(1, 4); i < count; ++i) {
            auto& p = partitions_.emplace_back();
            p.name = {"t" + std::to_string(i), 0};
            p.config = std::make_shared<const storage::LogConfig>(random_config());
        }
        open();
        for (auto& p : partitions_) EXPECT_TRUE(logs_->create(p.name, Uuid::random(), p.config));
    }
    ~World() {
        pool_.reset();
        if (!logs_) return;
        EXPECT_TRUE(logs_->close(1));
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            SCOPED_TRACE("step " + std::to_string(i));
            for (std::uint64_t n = random_.below(4); n > 0; --n) act(partitions_[random_.below(partitions_.size())]);
            if (random_.once_in(60)) restart();
            pass_time(random_.once_in(10) ? random_.between(backoff_ms, 20 * backoff_ms) : random_.between(1, backoff_ms));
        }
        quiet();
    }

private:
    storage::LogConfig random_config() {
        storage::LogConfig c;
        c.compacts = true;
        c.deletes = false;
        c.min_cleanable_dirty_ratio = 1;             // never by the ratio
        c.max_compaction_lag_ms = random_.between(500, 5000);
        if (random_.once_in(3)) c.min_compaction_lag_ms = random_.between(1, c.max_compaction_lag_ms);
        c.delete_retention_ms = random_.between(0, 2000);
        c.segment_bytes = random_.between(300, 3000);
        c.file_delete_delay_ms = 200;
        c.timestamp_after_max_ms = storage::unlimited;
        return c;
    }

    void open() {
        storage::StorageOptions options;
        options.log_dirs = {"/logs"};
        auto opened = storage::LogManager::open(files_, clock_, options, {.cluster_id = "c", .node_id = 1});
        ASSERT_TRUE(opened) << opened.error().message();
        logs_ = *std::move(opened);
        const auto loaded = logs_->load([&](const storage::FoundLog& found) {
            const auto p = std::ranges::find(partitions_, found.partition, &Partition::name);
            return p == partitions_.end() ? nullptr : p->config;
        });
        ASSERT_TRUE(loaded) << loaded.error().message();
        cleaner::CleanerOptions cleaner;
        cleaner.dedupe_buffer_bytes = 1 << 20;
        cleaner.backoff_ms = backoff_ms;
        pool_ = std::make_unique<cleaner::CleanerPool>(*logs_, clock_, cleaner, cleaner::CleanerPool::Retention{});
    }

    void restart() {
        pool_.reset();
        ASSERT_TRUE(logs_->close(1));
        logs_.reset();
        open();
    }

    // --- what happens to a log ---------------------------------------------------------------------------------------

    void act(Partition& p) {
        if (p.in_transaction && random_.once_in(3)) return end_transaction(p, random_.once_in(2));
        const bool transactional = p.in_transaction ? random_.once_in(2) : random_.once_in(12);
        append(p, transactional);
    }

    void append(Partition& p, bool transactional) {
        const auto log = logs_->find(p.name);
        record::BatchBuilder builder;
        builder.start({.producer_id = transactional ? producer : no_producer_id, .producer_epoch = transactional ? ProducerEpoch{0} : ProducerEpoch{-1},
                       .base_sequence = transactional ? p.sequence : -1, .transactional = transactional});
        const auto count = random_.between(1, 4);
        const auto first = log->log_end_offset();
        for (std::int64_t i = 0; i < count; ++i) {
            Written w{.key = "k" + std::to_string(random_.below(6)), .value = {}, .appended = clock_.now(), .superseded = {}};
            if (!random_.once_in(5)) w.value = "v" + std::to_string(first.value + i);
            if (transactional) w.fate = Written::Fate::open;
            builder.append(Offset{i}, timestamp(p, transactional), as_bytes(w.key), w.value ? std::optional{as_bytes(*w.value)} : std::nullopt);
            p.records[first + i] = w;
            if (!transactional) becomes_latest(p, first + i);
        }
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        const auto appended = log->append(bytes, {});
        ASSERT_TRUE(appended) << appended.error().message();
        if (transactional) {
            p.sequence += static_cast<Sequence>(count);
            p.in_transaction = true;
        }
    }

    /// The wall clock, as a rule; none, long ago, or in the future, which would hold a log with a min lag back for as long.
    Timestamp timestamp(const Partition& p, bool transactional) {
        if (transactional || !random_.once_in(6)) return clock_.now();
        switch (random_.below(p.config->min_compaction_lag_ms > 0 ? 2 : 3)) {
            case 0: return no_timestamp;
            case 1: return Timestamp{clock_.now().value - random_.between(0, 20'000)};
            default: return Timestamp{clock_.now().value + random_.between(0, 1'000'000)};
        }
    }

    void end_transaction(Partition& p, bool commit) {
        std::vector<std::byte> bytes;
        record::write_marker({.timestamp = clock_.now(), .producer_id = producer, .producer_epoch = 0,
                              .marker = {.type = commit ? record::ControlType::commit : record::ControlType::abort}}, bytes);
        const auto appended = logs_->find(p.name)->append(bytes, {.origin = storage::Origin::coordinator});
        ASSERT_TRUE(appended) << appended.error().message();
        p.in_transaction = false;
        for (auto& [offset, w] : p.records) {
            if (w.fate != Written::Fate::open) continue;
            w.fate = commit ? Written::Fate::visible : Written::Fate::aborted;
            if (commit) becomes_latest(p, offset);
            else w.superseded = clock_.now();
        }
    }

    void becomes_latest(Partition& p, Offset offset) {
        const auto& key = p.records[offset].key;
        auto [known, first] = p.latest.try_emplace(key, offset);
        if (first) return;
        const auto older = std::min(known->second, offset);
        known->second = std::max(known->second, offset);
        auto& w = p.records[older];
        if (!w.superseded) w.superseded = clock_.now();
    }

    // --- time --------------------------------------------------------------------------------------------------------

    /// In rounds of the cleaner's thread: at once again after a pass, else after the backoff.
    void pass_time(std::int64_t ms) {
        for (; ms > 0; ms -= backoff_ms) {
            clock_.advance(milliseconds{std::min(ms, backoff_ms)});
            for (auto& p : partitions_) {
                if (p.in_transaction) p.held_until = clock_.now();
            }
            while (pool_->run_once().cleaned) {}
            logs_->tick();
            for (auto& p : partitions_) check(p);
            if (testing::Test::HasFailure()) return;
        }
    }

    void quiet() {
        for (auto& p : partitions_) {
            if (p.in_transaction) end_transaction(p, true);
        }
        // Twice the lags and retentions: a tombstone's time begins with the first pass that sees it, and horizon passes keep
        // delete.retention.ms between them.
        pass_time(2 * 5000 + 2 * 5000 + 4 * 2000 + 10 * backoff_ms);
        for (auto& p : partitions_) {
            for (const auto& [offset, w] : records_of(p)) {
                const auto& wanted = p.records.at(offset);
                EXPECT_FALSE(wanted.superseded) << p.name.text() << ": the superseded record at " << offset.value << " is still there";
                EXPECT_TRUE(wanted.value) << p.name.text() << ": the tombstone at " << offset.value << " is still there";
            }
        }
        const auto stats = pool_->stats();
        EXPECT_EQ(stats.lag.logs_delayed, 0);
        EXPECT_EQ(stats.lag.max_delay_ms, 0);
        EXPECT_EQ(stats.failed_passes, 0u);
    }

    // --- what must hold ----------------------------------------------------------------------------------------------

    std::map<Offset, Written> records_of(const Partition& p) const {
        std::map<Offset, Written> found;
        for (const auto& segment : *logs_->find(p.name)->segments()) {
            std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
            EXPECT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
            record::BatchCursor cursor(bytes);
            record::RecordReader reader;
            while (const auto batch = *cursor.next()) {
                if (batch->is_control()) continue;
                EXPECT_TRUE(reader.open(*batch));
                while (const auto r = *reader.next()) {
                    found[r->offset] = {.key = std::string(as_text(*r->key)), .value = r->value ? std::optional{std::string(as_text(*r->value))} : std::nullopt, .superseded = {}};
                }
            }
        }
        return found;
    }

    void check(const Partition& p) {
        const auto found = records_of(p);
        const auto& config = *p.config;
        for (const auto& [offset, w] : found) {
            const auto wanted = p.records.find(offset);
            ASSERT_NE(wanted, p.records.end()) << p.name.text() << ": a record at " << offset.value << ", where none was";
            EXPECT_EQ(w.key, wanted->second.key);
            EXPECT_EQ(w.value, wanted->second.value);
            if (!wanted->second.superseded) continue;
            const auto from = std::max(wanted->second.superseded->value, p.held_until.value);
            const auto due = from + config.max_compaction_lag_ms + config.min_compaction_lag_ms + 2 * backoff_ms;
            EXPECT_LE(clock_.now().value, due) << p.name.text() << ": the record at " << offset.value << ", superseded at " << wanted->second.superseded->value << ", is late; lag "
                                               << config.max_compaction_lag_ms << ", min lag " << config.min_compaction_lag_ms << ", held until " << p.held_until.value;
        }
        for (const auto& [key, offset] : p.latest) {
            const auto& w = p.records.at(offset);
            if (!w.value) continue;
            EXPECT_TRUE(found.contains(offset)) << p.name.text() << ": the latest value of " << key << " at " << offset.value << " is lost";
        }
        for (const auto& [offset, w] : p.records) {
            if (w.fate != Written::Fate::open) continue;
            EXPECT_TRUE(found.contains(offset)) << p.name.text() << ": " << offset.value << " of an open transaction is gone";
        }
    }

    Random random_;
    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    std::vector<Partition> partitions_;
    std::unique_ptr<storage::LogManager> logs_;
    std::unique_ptr<cleaner::CleanerPool> pool_;
};

TEST(DeadlineModel, EverySupersededValueLeavesInTime) {
    const auto first = from_environment("MODEL_SEED", 1), runs = from_environment("MODEL_RUNS", std::getenv("MODEL_SEED") ? 1 : 60);
    for (auto seed = first; seed < first + runs && !HasFailure(); ++seed) {
        SCOPED_TRACE("MODEL_SEED=" + std::to_string(seed));
        World(seed).run(150);
    }
}

}  // namespace
}  // namespace tidemark::model
