// Random logs under random rules with a manual clock: appends of every format and codec with unordered, future and missing
// timestamps, transactions, rolls, cleanings, DeleteRecords, restarts, lost and zero-padded time indexes.
//
//   – what retention deletes, and by which rule, is what the rules say when they are applied word by word to the bytes on the
//     disk (retention 2 to 6, D6, D8, D9, D23); what stays is unchanged, the same instant again deletes nothing;
//   – each report tells the truth about its segment; the files follow after file.delete.delay.ms;
//   – a lookup by time finds the lowest visible offset at or after the log start whose timestamp is not older (D24).
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "io/memory_file_system.h"
#include "retention/apply.h"
#include "storage/segment.h"
#include "tests/model/model.h"
#include "tests/support/log/test_log.h"

namespace tidemark::model {
namespace {

using retention::Rule;
using test::TestLog;
using test::TestLogOptions;

/// A segment as its bytes say it is.
struct Piece {
    struct Record {
        Offset offset{};
        Timestamp timestamp{};
    };
    Offset base{};
    std::vector<std::byte> bytes;
    std::vector<Record> records;
    std::int64_t counted = 0;                 // by batch headers
    std::optional<std::int64_t> largest;      // of batches
    std::int64_t modified = 0;
    bool unknown = false;                     // its time index is missing
};

Piece read_piece(const storage::Segment& segment) {
    Piece piece{.base = segment.base_offset(), .bytes = std::vector<std::byte>(static_cast<std::size_t>(segment.bytes())), .records = {}, .counted = 0, .largest = {}, .modified = 0, .unknown = false};
    EXPECT_TRUE((*segment.file())->read(FilePosition{0}, piece.bytes));
    piece.modified = segment.modified()->value;
    piece.unknown = segment.time_index_is_missing();
    record::BatchCursor cursor(piece.bytes);
    record::RecordReader reader;
    while (const auto batch = *cursor.next()) {
        if (batch->max_timestamp().value >= 0) piece.largest = std::max(piece.largest.value_or(0), batch->max_timestamp().value);
        piece.counted += batch->record_count().value_or(1);
        EXPECT_TRUE(reader.open(*batch));
        while (const auto r = *reader.next()) piece.records.push_back({r->offset, r->timestamp});
    }
    return piece;
}

/// The rules, one segment at a time and each time from the beginning.
struct Rules {
    storage::LogConfig config;
    retention::Differences differences;
    std::int64_t now = 0;
    bool trusts_clock = true;
    Offset start, high_watermark, end;

    std::optional<std::int64_t> age(const Piece& p) const {
        if (p.unknown) return std::nullopt;
        if (p.largest && differences.future_timestamps_use_file_time && *p.largest > now) return p.modified;
        return p.largest.value_or(p.modified);
    }

    bool lets_go(Rule rule, const std::vector<Piece>& left, std::size_t all, std::size_t first) const {
        const auto& p = left[first];
        const bool active = first + 1 == all;
        const auto upper = active ? end : left[first + 1].base;
        if (upper > high_watermark || (active && p.bytes.empty())) return false;
        if (rule == Rule::log_start_offset) return !active && upper <= start;
        if (!config.deletes) return false;
        if (rule == Rule::retention_bytes) {
            std::int64_t without = 0;
            for (auto i = first + 1; i < all; ++i) without += static_cast<std::int64_t>(left[i].bytes.size());
            return config.retention_bytes && *config.retention_bytes >= 0 && without >= *config.retention_bytes;
        }
        if (rule == Rule::retention_ms) {
            return trusts_clock && config.retention_ms && *config.retention_ms >= 0 && age(p) && now - *age(p) > *config.retention_ms;   // both are years after 0
        }
        const auto least = config.retention_min_timestamp.value_or(Timestamp{0}).value;
        if (least <= 0 || p.unknown) return false;
        if (p.largest) return *p.largest < least;
        return differences.min_timestamp_uses_file_time && p.modified < least;
    }

    std::vector<Rule> expected(const std::vector<Piece>& pieces) {
        std::vector<Rule> fired;
        for (const auto rule : {Rule::log_start_offset, Rule::retention_bytes, Rule::retention_ms, Rule::min_timestamp}) {
            while (fired.size() < pieces.size() && lets_go(rule, pieces, pieces.size(), fired.size())) {
                const auto upper = fired.size() + 1 < pieces.size() ? pieces[fired.size() + 1].base : end;
                start = std::max(start, upper);
                fired.push_back(rule);
            }
        }
        return fired;
    }
};

class History {
public:
    explicit History(std::uint64_t seed) : seed_(seed), random_(seed) {
        options_.files = &files_;
        options_.clock = &clock_;
        clock_.advance(std::chrono::hours{24 * 365});
        auto& c = options_.config;
        c.segment_bytes = random_.between(200, 2000);
        c.index_interval_bytes = random_.between(0, 400);
        c.segment_index_bytes = random_.between(96, 2000);
        c.segment_ms = random_.once_in(2) ? storage::unlimited : random_.between(500, 5000);
        c.timestamp_after_max_ms = storage::unlimited;
        c.delete_retention_ms = random_.between(0, 3000);
        if (random_.once_in(6)) c.timestamp_type = record::TimestampType::log_append_time;
        moves_high_watermark_ = random_.once_in(3);
        set_rules();
        set_format();
        open(true);
    }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            const auto what = step();
            if (testing::Test::HasFailure()) {
                ADD_FAILURE() << "MODEL_SEED=" << seed_ << " step " << i << ": " << what << "\n" << log_->text();
            }
        }
    }
    ~History() {
        // An index that nobody needed is still as the test left it; verification at the end wants all of them right.
        for (const auto& segment : *log().segments()) {
            if (segment->time_index_is_missing()) {
                EXPECT_TRUE(segment->rebuild_time_index());
            }
            EXPECT_TRUE(segment->time_lookup(Timestamp{0}));
        }
    }
    std::size_t deleted() const { return deleted_; }
    std::size_t lookups() const { return lookups_; }

private:
    storage::Log& log() { return *log_->log; }

    void open(bool clean) {
        options_.clean_stop = clean;
        log_.reset();
        log_ = std::make_unique<TestLog>(options_);
    }

    std::string step() {
        switch (random_.below(20)) {
            case 0: return roll();
            case 1: return clean();
            case 2: return advance();
            case 3: return delete_records();
            case 4: return change_rules();
            case 5: return reopen();
            case 6: return move_high_watermark();
            case 7: return end_transaction();
            case 8: case 9: case 10: return look_up();
            case 11: case 12: case 13: return retain();
            default: return append();
        }
    }

    // --- what changes the log ----------------------------------------------------------------------------------------

    void set_rules() {
        auto& c = options_.config;
        c.compacts = random_.once_in(3);
        c.deletes = !random_.once_in(5);
        c.retention_ms.reset();
        c.retention_bytes.reset();
        c.retention_min_timestamp.reset();
        switch (random_.below(6)) {
            case 0: break;
            case 1: c.retention_ms = 0; break;
            case 2: c.retention_ms = storage::unlimited; break;
            default: c.retention_ms = random_.between(1, 8000);
        }
        if (random_.once_in(3)) c.retention_bytes = random_.once_in(6) ? 0 : random_.between(1, 4000);
        if (random_.once_in(3)) c.retention_min_timestamp = Timestamp{random_.once_in(5) ? 0 : clock_.now().value + random_.between(-9000, 4000)};
        differences_ = {.min_timestamp = true, .min_timestamp_uses_file_time = random_.once_in(3), .future_timestamps_use_file_time = random_.once_in(3), .distrust_clock_jumps = true};
    }

    void set_format() {
        static constexpr record::Codec codecs[] = {record::Codec::none, record::Codec::none, record::Codec::lz4, record::Codec::zstd, record::Codec::gzip, record::Codec::snappy};
        options_.codec = codecs[random_.below(6)];
        // Old brokers' data: without timestamps, or with one per message.
        options_.magic = random_.once_in(4) ? static_cast<std::int8_t>(random_.below(2)) : std::int8_t{2};
        if (options_.magic < 2 && options_.codec == record::Codec::zstd) options_.codec = record::Codec::gzip;
    }

    std::string roll() {
        EXPECT_TRUE(log().roll());
        return "roll";
    }

    std::string advance() {
        const auto by = random_.between(0, 4000);
        clock_.advance(std::chrono::milliseconds{by});
        return "advance " + std::to_string(by);
    }

    std::string append() {
        const bool transactional = options_.magic == 2 && random_.once_in(5);
        const auto producer = static_cast<ProducerId>(random_.below(3));
        if (transactional) open_.insert(producer);
        std::string text = transactional ? "t" + std::to_string(producer) + ":[" : "[";
        for (auto i = random_.between(1, 5); i > 0; --i) {
            text += " k" + std::to_string(random_.below(9)) + "=v@";
            switch (random_.below(12)) {
                case 0: text += "-1"; break;
                case 1: text += "0"; break;
                case 2: text += std::to_string(clock_.now().value + random_.between(1, 1'000'000)); break;
                default: text += std::to_string(clock_.now().value + random_.between(-6000, 500));
            }
        }
        const auto appended = log_->append(text + "]");
        EXPECT_TRUE(appended) << appended.error().message();
        return text + "]";
    }

    std::string end_transaction() {
        if (open_.empty()) return roll();
        const auto producer = *open_.begin();
        open_.erase(producer);
        const auto marker = (random_.once_in(2) ? "c" : "x") + std::to_string(producer);
        EXPECT_TRUE(log_->append(marker));
        return marker;
    }

    std::string clean() {
        if (!options_.config.compacts || moves_high_watermark_) return append();
        EXPECT_TRUE(log_->clean());
        return "clean";
    }

    std::string delete_records() {
        const auto to = random_.between(log().log_start_offset().value, log().high_watermark().value);
        EXPECT_EQ(log().delete_records_before(Offset{to}).value(), Offset{to});
        return "delete records before " + std::to_string(to);
    }

    std::string move_high_watermark() {
        if (!moves_high_watermark_) return append();
        log().set_high_watermark(Offset{random_.between(log().log_start_offset().value, log().log_end_offset().value)});
        return "high watermark " + std::to_string(log().high_watermark().value);
    }

    std::string change_rules() {
        set_rules();
        log_->set_config(options_.config);
        return "other rules";
    }

    std::string reopen() {
        const bool clean = random_.once_in(2);
        if (clean) {
            EXPECT_TRUE(log().close());
        }
        log_->log.reset();
        log_.reset();
        std::string what = clean ? "reopen" : "reopen after a kill";
        const auto entries = files_.list("/logs/t-0").value();
        for (const auto& entry : entries) {
            if (!entry.name.ends_with(".timeindex") || !random_.once_in(4)) continue;
            const auto path = "/logs/t-0/" + entry.name;
            if (random_.once_in(2)) {
                EXPECT_TRUE(files_.remove(path));
                what += ", without " + entry.name;
            } else if (clean) {
                pad_with_zeros(path);
                what += ", zeros behind " + entry.name;
            }
        }
        set_format();
        open(clean);
        return what;
    }

    /// As a preallocated index that nobody trimmed (B01).
    void pad_with_zeros(const io::Path& path) {
        const auto file = files_.open(path, io::OpenMode::read_write).value();
        const auto bytes = file->size().value();
        EXPECT_TRUE(file->resize(bytes + 12 * random_.between(1, 10)));
    }

    // --- what must hold ----------------------------------------------------------------------------------------------

    std::vector<Piece> pieces() {
        std::vector<Piece> all;
        for (const auto& segment : *log().segments()) all.push_back(read_piece(*segment));
        return all;
    }

    std::string retain() {
        if (random_.once_in(2)) log().run_background_work();   // missing time indexes that somebody asked for
        const auto before = pieces();
        Rules rules{.config = options_.config, .differences = differences_, .now = clock_.now().value, .trusts_clock = !random_.once_in(6),
                    .start = log().log_start_offset(), .high_watermark = log().high_watermark(), .end = log().log_end_offset()};
        const auto expected = rules.expected(before);

        std::vector<retention::SegmentReport> reports;
        const auto note = [&](const retention::SegmentReport& report) { reports.push_back(report); };
        const auto applied = retention::apply_retention(log(), clock_.now(), differences_, rules.trusts_clock, note);
        EXPECT_TRUE(applied) << applied.error().message();
        check_reports(reports, before, expected, rules.end);
        check_what_stays(before, expected.size(), rules);
        deleted_ += expected.size();
        reports.clear();
        EXPECT_TRUE(retention::apply_retention(log(), clock_.now(), differences_, rules.trusts_clock, note));
        EXPECT_TRUE(reports.empty()) << "the second pass: " << reports.front().text();
        if (random_.once_in(3)) check_files();
        return "retain: " + std::to_string(expected.size()) + " of " + std::to_string(before.size()) + (rules.trusts_clock ? "" : ", with a distrusted clock");
    }

    void check_reports(const std::vector<retention::SegmentReport>& reports, const std::vector<Piece>& before, const std::vector<Rule>& expected, Offset end) {
        ASSERT_EQ(reports.size(), expected.size());
        for (std::size_t i = 0; i < reports.size(); ++i) {
            const auto& [p, r] = std::tie(before[i], reports[i]);
            EXPECT_EQ(r.deletion.rule, expected[i]) << r.text();
            EXPECT_EQ(r.base_offset, p.base);
            EXPECT_EQ(r.end_offset, i + 1 < before.size() ? before[i + 1].base : end);
            EXPECT_EQ(r.bytes, static_cast<std::int64_t>(p.bytes.size()));
            EXPECT_EQ(r.records, options_.config.compacts ? p.counted : r.end_offset - p.base);
            if (p.unknown) continue;
            EXPECT_EQ(r.largest_record_timestamp, p.largest ? std::optional{Timestamp{*p.largest}} : std::nullopt);
        }
    }

    void check_what_stays(const std::vector<Piece>& before, std::size_t gone, const Rules& rules) {
        const auto after = pieces();
        if (gone == before.size()) {
            ASSERT_EQ(after.size(), 1u);
            EXPECT_EQ(after[0].base, rules.end);
            EXPECT_TRUE(after[0].bytes.empty());
        } else {
            ASSERT_EQ(after.size(), before.size() - gone);
            for (std::size_t i = 0; i < after.size(); ++i) {
                EXPECT_EQ(after[i].base, before[gone + i].base);
                EXPECT_EQ(after[i].bytes, before[gone + i].bytes);
            }
        }
        EXPECT_EQ(log().log_start_offset(), rules.start);
        EXPECT_EQ(log().log_end_offset(), rules.end);
        EXPECT_LE(log().log_start_offset(), log().high_watermark());
        EXPECT_EQ(log().read({.from = rules.start - 1}).has_value(), false);
        EXPECT_TRUE(log().read({.from = rules.start}));
    }

    void check_files() {
        clock_.advance(std::chrono::milliseconds{options_.config.file_delete_delay_ms});
        log_->run_background();
        std::vector<std::string> logs;
        for (const auto& name : log_->files()) {
            EXPECT_FALSE(name.ends_with(".deleted")) << name;
            if (name.ends_with(".log")) logs.push_back(name);
        }
        EXPECT_EQ(logs.size(), log().segments()->size());
    }

    std::string look_up() {
        std::vector<Piece::Record> all;
        for (const auto& piece : pieces()) all.insert(all.end(), piece.records.begin(), piece.records.end());
        std::vector<Timestamp> targets = {Timestamp{0}, Timestamp{random_.between(0, 2 * clock_.now().value)}};
        for (int i = 0; i < 6 && !all.empty(); ++i) {
            const auto at = all[random_.below(all.size())].timestamp;
            for (const auto by : {-1, 0, 1}) targets.push_back(at + by);
        }
        EXPECT_TRUE(log().load_producers());
        for (const auto target : targets) {
            if (target.value < 0) continue;
            for (const auto isolation : {storage::Isolation::read_uncommitted, storage::Isolation::read_committed}) {
                const auto bound = isolation == storage::Isolation::read_committed ? log().last_stable_offset() : log().high_watermark();
                const auto found = log().offset_for_time(target, isolation);
                if (!found) return ADD_FAILURE() << found.error().message(), "look up";
                const auto wanted = std::ranges::find_if(all, [&](const Piece::Record& r) { return r.offset >= log().log_start_offset() && r.offset < bound && r.timestamp >= target; });
                EXPECT_EQ(found->has_value(), wanted != all.end()) << "time " << target.value;
                if (!*found || wanted == all.end()) continue;
                EXPECT_EQ((*found)->offset, wanted->offset) << "time " << target.value;
                EXPECT_EQ((*found)->timestamp, wanted->timestamp);
                ++lookups_;
            }
        }
        return "look up";
    }

    const std::uint64_t seed_;
    Random random_;
    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    TestLogOptions options_;
    retention::Differences differences_;
    std::unique_ptr<TestLog> log_;
    std::set<ProducerId> open_;
    bool moves_high_watermark_ = false;
    std::size_t deleted_ = 0, lookups_ = 0;
};

TEST(RetentionModel, DeletesWhatTheRulesSayAndFindsWhatIsThere) {
    const auto first = from_environment("MODEL_SEED", 1), runs = from_environment("MODEL_RUNS", std::getenv("MODEL_SEED") ? 1 : 300);
    std::size_t deleted = 0, lookups = 0;
    for (auto seed = first; seed < first + runs && !HasFailure(); ++seed) {
        History history(seed);
        history.run(120);
        deleted += history.deleted();
        lookups += history.lookups();
    }
    if (runs < 100) return;
    EXPECT_GT(deleted, 5 * runs) << "histories in which little is deleted prove little";
    EXPECT_GT(lookups, 50 * runs);
}

}  // namespace
}  // namespace tidemark::model
