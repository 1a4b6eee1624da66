// docs/record-lifetime.md, played: random traffic under a manual clock, with the daemon's schedule of cleaner and retention. No
// record may be removed before its "never before", none may be left at its "at the latest", for the bytes D later. The
// examples' numbers are read from the page and must be what its formulas say.
#include <gmock/gmock.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

#include "cleaner/cleaner_pool.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "retention/scheduler.h"
#include "storage/log_directory.h"
#include "storage/segment.h"
#include "tests/model/model.h"

namespace tidemark::model {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t look_ms = 10'000, backoff_ms = 5000, ahead_ms = 30'000, file_delay_ms = 4000;   // I, B, A, D
const TopicPartition partition{"t", 0};

/// A row of the page's last table.
struct Example {
    std::string policy, record;
    std::optional<std::int64_t> retention_ms, min_lag_ms, max_lag_ms, delete_retention_ms;
    std::int64_t segment_ms = 0, never_before = 0, at_the_latest = 0;
};

std::optional<std::int64_t> number_in(std::string_view cell) {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), n);
    return error == std::errc{} && end == cell.data() + cell.size() ? std::optional{n} : std::nullopt;
}

std::vector<Example> examples_of_the_page() {
    std::ifstream page("docs/record-lifetime.md");
    EXPECT_TRUE(page) << "run from the source tree's root";
    std::vector<Example> examples;
    for (std::string line; std::getline(page, line);) {
        std::vector<std::string> cells;
        for (std::size_t at = 1; at < line.size();) {
            const auto end = std::min(line.find(" |", at), line.size());
            cells.push_back(line.substr(at + 1, end - at - 1));
            at = end + 2;
        }
        if (cells.size() != 9 || !number_in(cells[8])) continue;
        examples.push_back({.policy = cells[0], .record = cells[1], .retention_ms = number_in(cells[2]), .min_lag_ms = number_in(cells[4]), .max_lag_ms = number_in(cells[5]),
                            .delete_retention_ms = number_in(cells[6]), .segment_ms = number_in(cells[3]).value_or(0), .never_before = *number_in(cells[7]), .at_the_latest = *number_in(cells[8])});
    }
    return examples;
}

/// The page's formulas, C being nothing.
std::pair<std::int64_t, std::int64_t> formula(const Example& e) {
    const auto r = e.retention_ms.value_or(0), s = e.segment_ms, n = e.min_lag_ms.value_or(0), l = e.max_lag_ms.value_or(0), h = e.delete_retention_ms.value_or(0);
    if (e.record == "in order") return {r + 1, s + r + look_ms};
    if (e.record == "in any order") return {0, s + backoff_ms + ahead_ms + r + look_ms};
    if (e.record == "without timestamps") return {r + 1, s + backoff_ms + r + look_ms};
    if (e.record == "latest value") return {r + 1, std::max(r, l) + r + backoff_ms};
    const auto seen = n > 0 ? l + n + 2 * backoff_ms : l + backoff_ms;
    if (e.record == "superseded") return {n, seen};
    return {n + h, seen + h + std::max(h, backoff_ms) + backoff_ms};   // a tombstone
}

class Life {
public:
    Life(const Example& example, std::uint64_t seed) : example_(example), random_(seed) {
        storage::StorageOptions storage;
        storage.log_dirs = {"/logs"};
        storage.reserve_bytes = 0;
        logs_ = *storage::LogManager::open(files_, clock_, storage, {.cluster_id = "c", .node_id = 1});
        EXPECT_TRUE(logs_->load([](const storage::FoundLog&) { return nullptr; }));
        cleaner::CleanerOptions cleaner_options;
        cleaner_options.backoff_ms = backoff_ms;
        cleaner_options.dedupe_buffer_bytes = 1 << 20;
        cleaner_ = std::make_unique<cleaner::CleanerPool>(*logs_, clock_, cleaner_options, [this](storage::Log& log) { return retention_->apply(log); });
        retention::RetentionOptions retention_options;
        retention_options.check_interval_ms = look_ms;
        retention_options.initial_delay_ms = 0;
        retention_ = std::make_unique<retention::Scheduler>(*logs_, clock_, retention_options, retention::Scheduler::Guard{.pause_if_idle = [this](const TopicPartition& p) { return cleaner_->pause_if_idle(p); },
                                                                                                                    .resume = [this](const TopicPartition& p) { EXPECT_TRUE(cleaner_->resume(p)); }});
        log_ = *logs_->create(partition, Uuid::random(), std::make_shared<const storage::LogConfig>(config()));
    }
    ~Life() {
        cleaner_.reset();
        EXPECT_TRUE(logs_->close(1));
    }

    /// Records are appended for a while, some moments crowded and some silent; then nobody comes any more.
    void play() {
        const auto lifetime = example_.at_the_latest, until = 3 * lifetime;
        std::int64_t silent_until = 0;
        for (std::int64_t now = 0; now < until + lifetime + look_ms && !testing::Test::HasFailure(); now += tick_ms) {
            if (now < until && now >= silent_until) {
                append_some();
                if (random_.once_in(40)) silent_until = now + random_.between(0, 2 * lifetime);
            }
            clock_.advance(milliseconds{tick_ms});
            run_what_is_due();
            look();
        }
        // The last record may be the latest of its key, in the active segment or behind it; all others have had their time.
        for (const auto& [offset, r] : records_) EXPECT_TRUE(!r.mortal || r.removed) << "the record at " << offset.value << " is still there";
    }
    std::int64_t shortest() const { return shortest_; }
    std::int64_t longest() const { return longest_; }

private:
    static constexpr std::int64_t tick_ms = 500;

    struct Record {
        std::optional<Timestamp> begins;     // when its time begins to run: its append, its successor's, its timestamp
        bool mortal = false, removed = false;
    };

    storage::LogConfig config() const {
        storage::LogConfig c;
        c.compacts = example_.policy.starts_with("compact");
        c.deletes = example_.policy.ends_with("delete");
        c.retention_ms = example_.retention_ms;
        c.segment_ms = example_.segment_ms;
        c.segment_bytes = 1 << 20;
        c.file_delete_delay_ms = file_delay_ms;
        c.timestamp_after_max_ms = ahead_ms;
        c.min_compaction_lag_ms = example_.min_lag_ms.value_or(0);
        c.max_compaction_lag_ms = example_.max_lag_ms.value_or(storage::unlimited);
        c.delete_retention_ms = example_.delete_retention_ms.value_or(0);
        c.min_cleanable_dirty_ratio = random_.once_in(2) ? 1.0 : 0.3;
        return c;
    }

    void append_some() {
        for (auto n = random_.between(0, 2); n > 0; --n) {
            if (example_.policy == "compact") append_keyed();
            else append("u" + std::to_string(log_->log_end_offset().value), "v", true);
        }
    }

    /// Few keys, so that most records have a successor; tombstones among them.
    void append_keyed() {
        const auto key = "k" + std::to_string(random_.below(6));
        const bool tombstone = example_.record == "tombstone" && random_.once_in(3);   // they go by their horizon, too
        const auto offset = log_->log_end_offset();
        if (const auto before = latest_.find(key); before != latest_.end()) {
            auto& superseded = records_[before->second];
            if (example_.record == "superseded") {
                superseded.begins = clock_.now();
                superseded.mortal = true;
            } else if (superseded.mortal) {
                superseded = {};   // a tombstone with a successor goes as a superseded value does
            }
        }
        append(key, tombstone ? std::nullopt : std::optional<std::string>{"v"}, example_.record == "tombstone" && tombstone);
        latest_[key] = offset;
    }

    Timestamp timestamp() {
        if (example_.record == "without timestamps") return no_timestamp;
        if (example_.record != "in any order") return clock_.now();
        return clock_.now() + random_.between(-3 * example_.at_the_latest, ahead_ms);
    }

    void append(const std::string& key, const std::optional<std::string>& value, bool mortal) {
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, timestamp(), as_bytes(key), value ? std::optional{as_bytes(*value)} : std::nullopt);
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        const auto appended = log_->append(bytes, {});
        ASSERT_TRUE(appended) << appended.error().message();
        records_[appended->first_offset] = {.begins = clock_.now(), .mortal = mortal};
    }

    /// As the daemon's threads: the cleaner every B, and on at once while there is work; retention when its scheduler says so.
    void run_what_is_due() {
        if (clock_.since_boot().count() % backoff_ms == 0)
            while (cleaner_->run_once().cleaned) {}
        retention_->tick();
        logs_->tick();
    }

    /// What readers no longer get, and what the disk no longer has.
    void look() {
        const auto now = clock_.now();
        std::map<Offset, bool> there;
        for (const auto& segment : *log_->segments()) {
            std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
            ASSERT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
            record::BatchCursor cursor(bytes);
            record::RecordReader reader;
            while (const auto batch = *cursor.next()) {
                ASSERT_TRUE(reader.open(*batch));
                while (const auto r = *reader.next()) there[r->offset] = true;
            }
        }
        for (auto& [offset, r] : records_) {
            if (r.removed) continue;
            r.removed = offset < log_->log_start_offset() || !there.contains(offset);
            if (!r.mortal) continue;
            const auto age = now - *r.begins;
            if (r.removed) {
                shortest_ = std::min(shortest_, age);
                longest_ = std::max(longest_, age);
                EXPECT_GE(age, example_.never_before) << "the record at " << offset.value;
            } else {
                EXPECT_LT(age, example_.at_the_latest) << "the record at " << offset.value << " is still there";
            }
        }
        std::map<std::string, Timestamp> deleted;
        for (const auto& entry : files_.list("/logs/t-0").value())
            if (entry.name.ends_with(".deleted")) deleted[entry.name] = deleted_since_.contains(entry.name) ? deleted_since_[entry.name] : now;
        deleted_since_ = std::move(deleted);
        for (const auto& [name, since] : deleted_since_) EXPECT_LE(now - since, file_delay_ms) << name;
    }

    const Example example_;
    mutable Random random_;
    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    std::unique_ptr<storage::LogManager> logs_;
    std::unique_ptr<retention::Scheduler> retention_;
    std::unique_ptr<cleaner::CleanerPool> cleaner_;
    std::shared_ptr<storage::Log> log_;
    std::map<Offset, Record> records_;
    std::map<std::string, Offset> latest_;
    std::map<std::string, Timestamp> deleted_since_;
    std::int64_t shortest_ = storage::unlimited, longest_ = 0;
};

TEST(RecordLifetime, TheExamplesArePlayed) {
    const auto examples = examples_of_the_page();
    ASSERT_GE(examples.size(), 10u);
    const auto first = from_environment("MODEL_SEED", 1), runs = from_environment("MODEL_RUNS", std::getenv("MODEL_SEED") ? 1 : 6);
    for (const auto& example : examples) {
        const auto [never_before, at_the_latest] = formula(example);
        const auto row = example.policy + ", " + example.record + ", " + std::to_string(example.never_before) + " to " + std::to_string(example.at_the_latest);
        EXPECT_EQ(example.never_before, never_before) << row;
        EXPECT_EQ(example.at_the_latest, at_the_latest) << row;
        std::int64_t shortest = storage::unlimited, longest = 0;
        for (auto seed = first; seed < first + runs && !HasFailure(); ++seed) {
            SCOPED_TRACE(row + ", MODEL_SEED=" + std::to_string(seed));
            Life life(example, seed);
            life.play();
            shortest = std::min(shortest, life.shortest());
            longest = std::max(longest, life.longest());
        }
        RecordProperty(row, std::to_string(shortest) + " to " + std::to_string(longest));
        if (runs < 6) continue;
        // The bounds are no empty promise: some records come near them.
        EXPECT_LE(shortest, (never_before + at_the_latest) / 2) << row;
        EXPECT_GE(longest, at_the_latest / 4) << row;
    }
}

}  // namespace
}  // namespace tidemark::model
