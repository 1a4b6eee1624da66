// Random histories of appends, transactions, rolls, passes, restarts, power cuts and clock moves, against a list of all
// records that were ever appended. Whatever the cleaner does, with our defaults:
//
//   – each key's latest visible record is what it was, unless it is a tombstone past its time or expired (D7);
//   – after a pass nothing below the first dirty offset is older than a `compact,delete` topic allows (D7), tombstones apart;
//   – what is left of a record is the record as it was written, where it was written;
//   – nothing from the first uncleanable offset on is missing;
//   – transactions are open, committed or aborted as they were; the log's end and its last stable offset stay;
//   – each producer's last sequence is known after a rebuild of the producer state.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <set>

#include "io/faulty_file_system.h"
#include "storage/segment.h"
#include "tests/model/model.h"
#include "tests/support/log/test_log.h"

namespace tidemark::model {
namespace {

using test::TestLog;
using test::TestLogOptions;

struct Record {
    std::string key;                        // "_": none
    std::optional<std::string> value;
    Timestamp timestamp{};
    ProducerId producer = no_producer_id;
    enum class Fate { plain, open, committed, aborted } fate = Fate::plain;
};

class History {
public:
    explicit History(std::uint64_t seed) : seed_(seed), random_(seed), disk_(std::make_unique<io::FaultyFileSystem>(io::FaultOptions{.clock = &clock_})) {
        static constexpr record::Codec codecs[] = {record::Codec::none, record::Codec::none, record::Codec::lz4, record::Codec::zstd, record::Codec::gzip, record::Codec::snappy};
        options_.codec = codecs[random_.below(6)];
        options_.clock = &clock_;
        options_.map_slots = random_.once_in(2) ? 10'000 : random_.between(3, 40);
        options_.buffer_bytes = random_.once_in(2) ? 262'144 : random_.between(64, 2000);
        auto& c = options_.config;
        c.segment_bytes = random_.between(200, 3000);
        c.index_interval_bytes = random_.between(0, 400);
        c.segment_index_bytes = random_.between(96, 2000);
        c.delete_retention_ms = random_.between(0, 5000);
        c.timestamp_after_max_ms = storage::unlimited;
        if (random_.once_in(3)) {
            c.deletes = true;
            c.retention_ms = random_.between(2000, 20'000);
            c.max_compaction_lag_ms = random_.between(2000, 20'000);
            c.segment_ms = 3'600'000;
        }
        if (random_.once_in(4)) c.min_compaction_lag_ms = random_.between(1, 3000);
        open(true);
    }

    /// Values that passes removed for their age.
    std::int64_t expired() const { return expired_; }

    void run(int steps) {
        for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
            SCOPED_TRACE("MODEL_SEED=" + std::to_string(seed_) + " step " + std::to_string(i) + ": " + step());
            check();
        }
    }

private:
    void open(bool clean) {
        options_.files = disk_.get();
        options_.clean_stop = clean;
        const auto checkpoint = log_ ? log_->checkpoint : stored_checkpoint_;
        log_.reset();
        log_ = std::make_unique<TestLog>(options_);
        log_->checkpoint = checkpoint;
    }

    std::string step() {
        switch (random_.below(16)) {
            case 0: return roll();
            case 1: case 2: return clean();
            case 3: return clean_horizons();
            case 4: return advance();
            case 5: return random_.once_in(2) ? reopen(true) : reopen(false);
            case 6: return random_.once_in(2) ? power_cut() : append_plain();
            case 7: case 8: return append_transactional();
            case 9: return append_idempotent();
            case 10: return end_transaction();
            default: return append_plain();
        }
    }

    // --- steps -------------------------------------------------------------------------------------------------------

    std::string roll() {
        EXPECT_TRUE(log_->append("|"));
        return "roll";
    }

    std::string advance() {
        const auto by = random_.between(0, 3000);
        clock_.advance(std::chrono::milliseconds{by});
        return "advance " + std::to_string(by);
    }

    std::string reopen(bool clean) {
        if (!clean && random_.once_in(2)) remove_snapshots_ = true;
        if (remove_snapshots_) {
            for (const auto& name : log_->files()) {
                if (name.ends_with(".snapshot")) {
                    EXPECT_TRUE(disk_->remove("/logs/t-0/" + name));
                }
            }
            remove_snapshots_ = false;
        }
        log_->reopen(clean);
        return clean ? "reopen" : "reopen after a kill";
    }

    std::string clean() {
        note_tombstones();
        const auto stats = log_->clean();
        EXPECT_TRUE(stats) << stats.error().message();
        if (!stats || stats->segments_before == 0) return "clean, with nothing to do";
        expired_ += stats->expired;
        for (const auto offset : offsets_left()) {
            EXPECT_FALSE(offset < stats->end_offset && may_have_expired(records_.at(offset))) << "the value at " << offset.value << " has expired and is still there";
        }
        return "clean";
    }

    std::string clean_horizons() {
        for (const auto& segment : *log_->log->segments()) {
            if (!segment->earliest_delete_horizon()) {
                EXPECT_TRUE(cleaner::scan_for_horizons(*segment));
            }
        }
        const auto stats = log_->clean_horizons();
        EXPECT_TRUE(stats) << stats.error().message();
        return "clean horizons";
    }

    /// A pass that the power does not let end.
    std::string power_cut() {
        note_tombstones();
        EXPECT_TRUE(log_->log->flush());
        // Some groups may be swapped in, while the first dirty offset stays.
        cleaned_below_ = std::max(cleaned_below_, log_->decide().cleanable_end);
        const auto at = static_cast<int>(random_.below(120));
        disk_->inject({.lose_power_at = at, .clock = &clock_});
        const bool ended = log_->clean().has_value();
        if (!disk_->tripped()) {
            EXPECT_TRUE(ended);
            disk_->inject({.clock = &clock_});
            return "clean, without the power cut at " + std::to_string(at);
        }
        stored_checkpoint_ = log_->checkpoint;
        log_->log.reset();
        log_.reset();
        const auto seed = random_.below(1000);
        disk_ = std::make_unique<io::FaultyFileSystem>(io::FaultOptions{.clock = &clock_}, disk_->after_restart({.seed = seed}));
        open(false);
        return "power cut at " + std::to_string(at) + ", seed " + std::to_string(seed);
    }

    std::string append(const std::string& prefix, ProducerId producer, Record::Fate fate) {
        const auto count = random_.between(1, 4);
        std::string text = prefix + (count > 1 ? "[" : "");
        const auto first = log_->log->log_end_offset();
        for (std::int64_t i = 0; i < count; ++i) {
            Record r;
            r.key = producer == no_producer_id && random_.once_in(30) ? "_" : "k" + std::to_string(random_.below(12));
            if (!random_.once_in(5)) r.value = "v" + std::to_string(first.value + i);
            // A producer without timestamps would have expired (append-and-read 4.5).
            r.timestamp = producer == no_producer_id && random_.once_in(10) ? no_timestamp : Timestamp{clock_.now().value + random_.between(-4000, 2000)};
            r.producer = producer;
            r.fate = fate;
            text += (i > 0 ? " " : "") + r.key + "=" + r.value.value_or("~") + "@" + std::to_string(r.timestamp.value);
            records_[first + i] = r;
        }
        if (count > 1) text += "]";
        const auto appended = log_->append(text);
        EXPECT_TRUE(appended) << appended.error().message() << ": " << text;
        end_ = first + count;
        if (producer != no_producer_id) sequences_[producer] += static_cast<Sequence>(count);
        return text;
    }

    std::string append_plain() { return append("", no_producer_id, Record::Fate::plain); }
    std::string append_idempotent() {
        const auto producer = 10 + static_cast<ProducerId>(random_.below(3));
        return append("p" + std::to_string(producer) + ":", producer, Record::Fate::plain);
    }
    std::string append_transactional() {
        const auto producer = static_cast<ProducerId>(random_.below(4));
        open_.try_emplace(producer, log_->log->log_end_offset());
        return append("t" + std::to_string(producer) + ":", producer, Record::Fate::open);
    }

    std::string end_transaction() {
        if (open_.empty()) return roll();
        auto it = open_.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(random_.below(open_.size())));
        const auto [producer, first] = *it;
        open_.erase(it);
        const bool commit = random_.once_in(2);
        for (auto& [offset, r] : records_) {
            if (r.producer == producer && r.fate == Record::Fate::open) r.fate = commit ? Record::Fate::committed : Record::Fate::aborted;
        }
        const auto marker = (commit ? "c" : "x") + std::to_string(producer);
        EXPECT_TRUE(log_->append(marker));
        ++end_;
        return marker;
    }

    // --- what must hold ----------------------------------------------------------------------------------------------

    Offset last_stable() const {
        auto stable = end_;
        for (const auto& [producer, first] : open_) stable = std::min(stable, first);
        return stable;
    }

    /// When a tombstone can first have been seen by a pass: its time begins then at the earliest.
    void note_tombstones() {
        for (const auto& [offset, r] : records_) {
            if (!r.value) first_pass_.try_emplace(offset, clock_.now());
        }
    }

    bool may_have_expired(const Record& r) const {
        const auto before = cleaner::expired_before(options_.config, clock_.now());
        return before && r.value && r.timestamp >= Timestamp{0} && r.timestamp < *before;
    }

    void check() {
        EXPECT_EQ(log_->log->log_end_offset(), end_);
        ASSERT_TRUE(log_->log->load_producers());
        EXPECT_EQ(log_->log->last_stable_offset(), last_stable());
        check_records();
        check_latest();
        check_producers();
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "the log: " << log_->text();
        }
    }

    void for_each_record(const std::function<void(const record::RecordView&)>& visit) const {
        record::RecordReader reader;
        for (const auto& segment : *log_->log->segments()) {
            std::vector<std::byte> bytes(static_cast<std::size_t>(segment->bytes()));
            ASSERT_TRUE((*segment->file())->read(FilePosition{0}, bytes));
            record::BatchCursor cursor(bytes);
            while (const auto batch = *cursor.next()) {
                if (batch->is_control()) continue;
                ASSERT_TRUE(reader.open(*batch));
                while (const auto r = *reader.next()) visit(*r);
            }
        }
    }
    std::set<Offset> offsets_left() const {
        std::set<Offset> left;
        for_each_record([&](const record::RecordView& r) { left.insert(r.offset); });
        return left;
    }

    void check_records() {
        const auto first_kept = std::max(log_->checkpoint.value_or(Offset{0}), cleaned_below_);
        for_each_record([&](const record::RecordView& r) {
            const auto wanted = records_.find(r.offset);
            ASSERT_NE(wanted, records_.end()) << "a record at " << r.offset.value << ", where none was";
            EXPECT_EQ(r.key ? std::string{as_text(*r.key)} : "_", wanted->second.key);
            EXPECT_EQ(r.value ? std::optional{std::string{as_text(*r.value)}} : std::nullopt, wanted->second.value);
            EXPECT_EQ(r.timestamp, wanted->second.timestamp);
        });
        const auto left = offsets_left();
        for (const auto& [offset, r] : records_) {
            if (offset < first_kept || left.contains(offset) || r.fate == Record::Fate::aborted) continue;
            // Tombstones beyond the mapped part may be past a horizon that a pass gave their batch; they stay until mapped.
            ADD_FAILURE() << "the record at " << offset.value << " is missing; the first dirty offset is " << first_kept.value;
        }
        // A tombstone that is the latest of its key stays for delete.retention.ms after the first pass that can have seen it.
        for (const auto& [key, offset] : latest_offsets()) {
            const auto& r = records_.at(offset);
            if (r.value || left.contains(offset)) continue;
            const auto seen = first_pass_.find(offset);
            ASSERT_NE(seen, first_pass_.end()) << "the tombstone at " << offset.value << " is gone before any pass";
            EXPECT_GE(clock_.now() - seen->second, options_.config.delete_retention_ms) << "the tombstone at " << offset.value << " went early";
        }
    }

    /// Offset of the latest visible record of each key.
    std::map<std::string, Offset> latest_offsets() const {
        std::map<std::string, Offset> latest;
        const auto stable = last_stable();
        for (const auto& [offset, r] : records_) {
            if (r.key == "_" || r.fate == Record::Fate::aborted || r.fate == Record::Fate::open || offset >= stable) continue;
            latest[r.key] = offset;
        }
        return latest;
    }

    void check_latest() {
        const auto ours = log_->committed();
        for (const auto& [key, offset] : latest_offsets()) {
            const auto& r = records_.at(offset);
            const auto found = ours.find(key);
            if (!r.value) {
                EXPECT_EQ(found, ours.end()) << key << " was deleted at " << offset.value << " and is back as " << found->second;
            } else if (found == ours.end()) {
                EXPECT_TRUE(may_have_expired(r)) << "the value of " << key << " at " << offset.value << " is lost";
            } else {
                EXPECT_EQ(found->second, *r.value) << "of " << key << " at " << offset.value;
            }
        }
    }

    void check_producers() {
        std::map<ProducerId, Sequence> ours;
        std::map<ProducerId, Offset> open;
        for (const auto& p : log_->log->producers()) {
            ours[p.producer_id] = p.last_sequence;
            if (p.current_transaction_first_offset) open[p.producer_id] = *p.current_transaction_first_offset;
        }
        EXPECT_EQ(open, open_);
        for (const auto& [producer, sequence] : sequences_) EXPECT_EQ(ours[producer], sequence - 1) << "producer " << producer;
    }

    const std::uint64_t seed_;
    Random random_;
    ManualClock clock_;
    std::unique_ptr<io::FaultyFileSystem> disk_;
    TestLogOptions options_;
    std::unique_ptr<TestLog> log_;
    std::optional<Offset> stored_checkpoint_;
    bool remove_snapshots_ = false;
    Offset cleaned_below_{0};

    std::map<Offset, Record> records_;
    std::map<ProducerId, Offset> open_;
    std::map<ProducerId, Sequence> sequences_;
    std::map<Offset, Timestamp> first_pass_;
    Offset end_{0};
    std::int64_t expired_ = 0;
};

TEST(CleanerModel, NoHistoryLosesOrRevivesAnything) {
    const auto first = from_environment("MODEL_SEED", 1), runs = from_environment("MODEL_RUNS", std::getenv("MODEL_SEED") ? 1 : 150);
    std::int64_t expired = 0;
    for (auto seed = first; seed < first + runs && !HasFailure(); ++seed) {
        History history(seed);
        history.run(120);
        expired += history.expired();
    }
    if (runs < 20) return;
    EXPECT_GT(expired, 30) << "the histories reach what they are to try";
}

}  // namespace
}  // namespace tidemark::model
