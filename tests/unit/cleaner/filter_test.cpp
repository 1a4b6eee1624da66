#include "cleaner/filter.h"

#include <gtest/gtest.h>

#include "record/control.h"

namespace tidemark::cleaner {
namespace {

using record::BatchView;
using record::Retention;

constexpr Timestamp now{1'000'000};

struct BatchShape {
    std::int64_t offset = 10;
    ProducerId producer = no_producer_id;
    std::optional<std::int64_t> horizon = {};
    bool control = false;
    ProducerEpoch epoch = 3;
    std::int8_t magic = 2;
};

/// A batch of one record by hand.
class Batch {
public:
    explicit Batch(const BatchShape& s) {
        if (s.control && !s.horizon) {
            record::write_marker({.offset = Offset{s.offset}, .timestamp = Timestamp{5}, .producer_id = s.producer, .producer_epoch = s.epoch, .marker = {}}, bytes_);
            return;
        }
        record::BatchBuilder builder;
        const auto horizon = s.horizon ? std::optional{Timestamp{*s.horizon}} : std::nullopt;
        const bool produced = s.producer != no_producer_id;
        builder.start({.magic = s.magic, .base_offset = Offset{s.offset}, .producer_id = s.producer, .producer_epoch = produced ? s.epoch : ProducerEpoch{-1},
                       .base_sequence = produced && !s.control ? 0 : -1, .transactional = s.control, .control = s.control, .delete_horizon = horizon});
        const auto key = s.control ? Bytes(control_) : as_bytes("k");
        builder.append(Offset{s.offset}, Timestamp{5}, key, as_bytes("value!"));
        builder.finish(bytes_);
    }
    BatchView view() const { return *BatchView::parse(bytes_); }
private:
    const std::array<std::byte, 4> control_ = record::control_key(record::ControlType::commit);
    std::vector<std::byte> bytes_;
};

PassRules rules(std::int64_t high_watermark = 1000) { return {.now = now, .high_watermark = Offset{high_watermark}, .delete_retention_ms = 100}; }

TEST(JudgeBatch, RetentionClasses) {
    struct Row {
        const char* what;
        BatchShape batch;
        bool discardable;
        std::optional<storage::LastProducerRecord> last;
        std::int64_t high_watermark;
        Retention retention;
        bool drop, empty_marker;
    };
    using Last = storage::LastProducerRecord;
    const std::vector<Row> rows = {
        {"plain", {}, false, {}, 1000, Retention::remove_when_empty, false, false},
        {"ends at the high watermark", {.offset = 9}, false, {}, 10, Retention::keep_when_empty, false, false},
        {"one below it", {.offset = 8}, false, {}, 10, Retention::remove_when_empty, false, false},
        {"last of its producer", {.producer = 1}, false, Last{Offset{10}, 3}, 1000, Retention::keep_when_empty, false, false},
        {"not its last", {.producer = 1}, false, Last{Offset{11}, 3}, 1000, Retention::remove_when_empty, false, false},
        {"producer expired", {.producer = 1}, false, {}, 1000, Retention::remove_when_empty, false, false},
        {"aborted", {.producer = 1}, true, Last{Offset{11}, 3}, 1000, Retention::remove, true, false},
        {"aborted, last of its producer", {.producer = 1}, true, Last{Offset{10}, 3}, 1000, Retention::keep_when_empty, true, false},
        {"aborted, at the high watermark", {.offset = 9, .producer = 1}, true, {}, 10, Retention::keep_when_empty, true, false},
        {"marker with data", {.producer = 1, .control = true}, false, Last{Offset{5}, 3}, 1000, Retention::remove_when_empty, false, false},
        {"marker without data, no horizon", {.producer = 1, .control = true}, true, Last{Offset{5}, 3}, 1000, Retention::remove_when_empty, false, true},
        {"horizon ahead", {.producer = 1, .horizon = now.value + 1, .control = true}, true, Last{Offset{5}, 3}, 1000, Retention::remove_when_empty, false, true},
        {"horizon now", {.producer = 1, .horizon = now.value, .control = true}, true, Last{Offset{5}, 3}, 1000, Retention::remove, true, true},
        {"horizon passed, but data again", {.producer = 1, .horizon = now.value, .control = true}, false, Last{Offset{5}, 3}, 1000, Retention::remove_when_empty, false, false},
        {"only markers seen, same epoch", {.producer = 1, .horizon = now.value, .control = true}, true, Last{{}, 3}, 1000, Retention::keep_when_empty, true, true},
        {"only markers seen, older epoch", {.producer = 1, .horizon = now.value, .control = true}, true, Last{{}, 4}, 1000, Retention::remove, true, true},
    };
    for (const auto& row : rows) {
        const Batch batch(row.batch);
        const auto v = judge_batch(batch.view(), row.discardable, row.last ? &*row.last : nullptr, rules(row.high_watermark));
        EXPECT_EQ(v.retention, row.retention) << row.what;
        EXPECT_EQ(v.drop_records, row.drop) << row.what;
        EXPECT_EQ(v.marker_of_empty_transaction, row.empty_marker) << row.what;
        EXPECT_FALSE(v.copy) << row.what;
    }
}

TEST(JudgeBatch, NoHorizonPassesWhileTheClockIsNotTrusted) {
    auto r = rules();
    r.horizons_expire = false;
    const Batch marker({.producer = 1, .horizon = 5, .control = true});
    EXPECT_FALSE(judge_batch(marker.view(), true, nullptr, r).drop_records);
    const Batch data({.horizon = 5});
    EXPECT_EQ(judge_record({Offset{10}, Timestamp{1}, true, true}, data.view(), {}, Offset{10}, Offset{20}, false, r), RecordVerdict::keep);
}

TEST(JudgeBatch, AnErasingPassLooksIntoDataBelowTheLogsStartOnly) {
    auto r = rules();
    r.erase_below = Offset{10};
    const Batch at_start({.offset = 10}), below({.offset = 9}), marker({.offset = 9, .producer = 1, .horizon = 5, .control = true});
    EXPECT_TRUE(judge_batch(at_start.view(), false, nullptr, r).copy);
    EXPECT_TRUE(judge_batch(marker.view(), false, nullptr, r).copy);
    EXPECT_FALSE(judge_batch(below.view(), false, nullptr, r).copy);
    const auto verdict = [&](std::int64_t offset, bool has_key) { return judge_record({Offset{offset}, {}, has_key, false}, below.view(), {}, Offset{20}, Offset{30}, false, r); };
    EXPECT_EQ(verdict(9, false), RecordVerdict::drop);
    EXPECT_EQ(verdict(10, false), RecordVerdict::keep) << "keys do not matter, nor what the map knows";
    EXPECT_EQ(verdict(10, true), RecordVerdict::keep);
}

TEST(JudgeRecord, TheRulesInTheirOrder) {
    const Batch plain({}), control({.producer = 1, .control = true}), ahead({.horizon = now.value + 1}), passed({.horizon = now.value}), legacy({.magic = 1});
    struct Row {
        const char* what;
        const Batch& batch;
        RecordFacts record;
        std::optional<std::int64_t> latest;
        bool drop_all, legacy_stays;
        RecordVerdict verdict;
    };
    using enum RecordVerdict;
    const std::vector<Row> rows = {
        {"newest", plain, {Offset{10}, {}, true, false}, 10, false, false, keep},
        {"superseded", plain, {Offset{10}, {}, true, false}, 11, false, false, drop},
        {"key unknown to the map", plain, {Offset{10}, {}, true, false}, {}, false, false, keep},
        {"map holds an older one", plain, {Offset{10}, {}, true, false}, 9, false, false, keep},
        {"keyless", plain, {Offset{10}, {}, false, false}, {}, false, false, drop_keyless},
        {"beyond the map", plain, {Offset{21}, {}, true, false}, {}, false, false, keep},
        {"keyless beyond the map", plain, {Offset{21}, {}, false, true}, {}, false, false, keep},
        {"aborted", plain, {Offset{21}, {}, true, false}, {}, true, false, drop},
        {"marker", control, {Offset{10}, {}, true, false}, 15, false, false, keep},
        {"tombstone without horizon", plain, {Offset{10}, {}, true, true}, 10, false, false, keep},
        {"horizon ahead", ahead, {Offset{10}, {}, true, true}, 10, false, false, keep},
        {"horizon now", passed, {Offset{10}, {}, true, true}, 10, false, false, drop},
        {"value beside an old horizon", passed, {Offset{10}, {}, true, false}, 10, false, false, keep},
        {"old format, young segment", legacy, {Offset{10}, {}, true, true}, 10, false, true, keep},
        {"old format, old segment", legacy, {Offset{10}, {}, true, true}, 10, false, false, drop},
        {"superseded tombstone", plain, {Offset{10}, {}, true, true}, 12, false, false, drop},
    };
    for (const auto& row : rows) {
        const BatchVerdict verdict{.drop_records = row.drop_all};
        const auto latest = row.latest ? std::optional{Offset{*row.latest}} : std::nullopt;
        EXPECT_EQ(judge_record(row.record, row.batch.view(), verdict, latest, Offset{20}, row.legacy_stays, rules()), row.verdict) << row.what;
    }
}

TEST(RecordExpiry, TakesValuesOlderThanBothLimits) {
    storage::LogConfig config;
    config.compacts = config.deletes = true;
    config.retention_ms = 500;
    EXPECT_EQ(expired_before(config, now), std::nullopt);            // off while the lag is at its default
    config.max_compaction_lag_ms = 700;
    EXPECT_EQ(expired_before(config, now), now - 700);
    config.retention_ms = 900;
    EXPECT_EQ(expired_before(config, now), now - 900);
    config.retention_ms.reset();
    EXPECT_EQ(expired_before(config, now), std::nullopt);
    config.retention_ms = storage::unlimited;
    EXPECT_EQ(expired_before(config, now), std::nullopt);            // must not overflow
    config.retention_ms = 900;
    config.deletes = false;
    EXPECT_EQ(expired_before(config, now), std::nullopt);

    auto r = rules();
    r.expired_before = now - 900;
    const Batch plain({});
    const auto judge = [&](std::int64_t timestamp, bool tombstone = false, std::int64_t offset = 10) {
        return judge_record({Offset{offset}, Timestamp{timestamp}, true, tombstone}, plain.view(), {}, std::nullopt, Offset{20}, false, r);
    };
    EXPECT_EQ(judge(now.value - 900), RecordVerdict::keep);
    EXPECT_EQ(judge(now.value - 901), RecordVerdict::drop);
    EXPECT_EQ(judge(0), RecordVerdict::drop);
    EXPECT_EQ(judge(-1), RecordVerdict::keep);                       // no timestamp
    EXPECT_EQ(judge(0, true), RecordVerdict::keep);                  // tombstones go by their horizon only
    EXPECT_EQ(judge(0, false, 21), RecordVerdict::keep);             // beyond the map
}

TEST(HorizonPass, TouchesOnlyWhatIsDueBelowTheFirstDirtyOffset) {
    auto r = rules();
    r.horizons_only_below = Offset{20};
    EXPECT_TRUE(judge_batch(Batch({}).view(), false, nullptr, r).copy);
    EXPECT_TRUE(judge_batch(Batch({.horizon = now.value + 1}).view(), false, nullptr, r).copy);
    EXPECT_TRUE(judge_batch(Batch({.offset = 20, .horizon = 5}).view(), false, nullptr, r).copy);
    EXPECT_TRUE(judge_batch(Batch({.producer = 1, .control = true}).view(), false, nullptr, r).copy);      // kept, even without data
    const Batch due({.horizon = 5});
    const auto data = judge_batch(due.view(), false, nullptr, r);
    EXPECT_FALSE(data.copy);
    EXPECT_FALSE(data.drop_records);
    EXPECT_EQ(judge_record({Offset{10}, {}, true, true}, due.view(), data, {}, Offset{-1}, false, r), RecordVerdict::drop);
    EXPECT_EQ(judge_record({Offset{10}, {}, true, false}, due.view(), data, {}, Offset{-1}, false, r), RecordVerdict::keep);
    EXPECT_EQ(judge_record({Offset{20}, {}, true, true}, due.view(), data, {}, Offset{-1}, false, r), RecordVerdict::keep);
    EXPECT_EQ(judge_record({Offset{10}, {}, false, false}, due.view(), data, {}, Offset{-1}, false, r), RecordVerdict::keep);   // keyless: not its business
    const auto marker = judge_batch(Batch({.producer = 1, .horizon = 5, .control = true}).view(), false, nullptr, r);
    EXPECT_TRUE(marker.drop_records);
    EXPECT_EQ(marker.retention, Retention::remove);
    EXPECT_FALSE(marker.marker_of_empty_transaction);
    const storage::LastProducerRecord last{{}, 3};
    EXPECT_EQ(judge_batch(Batch({.producer = 1, .horizon = 5, .control = true}).view(), false, &last, r).retention, Retention::keep_when_empty);
}

TEST(LegacyHorizon, IsTheLastCleanSegmentsTimeLessTheRetention) {
    EXPECT_EQ(legacy_horizon(std::nullopt, 100), Timestamp{0});
    EXPECT_EQ(legacy_horizon(Timestamp{1000}, 100), Timestamp{900});
    EXPECT_LT(legacy_horizon(Timestamp{-2}, storage::unlimited), Timestamp{0});
}

}  // namespace
}  // namespace tidemark::cleaner
