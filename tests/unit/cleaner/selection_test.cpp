#include "cleaner/selection.h"

#include <gmock/gmock.h>

#include <cmath>

namespace tidemark::cleaner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using storage::LogConfig;

constexpr std::int64_t hour = 3'600'000;
constexpr std::int64_t t0 = 1'700'000'000'000;
const Differences kafka = Differences::none();

/// Closed segments of ten offsets and 100 bytes whose first and largest timestamps these are (-1: none), and an active one.
LogState log_with(std::vector<std::int64_t> timestamps, Timestamp modified = Timestamp{t0}) {
    LogState log;
    for (std::size_t i = 0; i <= timestamps.size(); ++i) {
        SegmentState s;
        s.base_offset = Offset{static_cast<std::int64_t>(i) * 10};
        s.bytes = 100;
        s.modified = modified;
        if (i < timestamps.size() && timestamps[i] > 0) s.largest_record_timestamp = s.first_batch_timestamp = Timestamp{timestamps[i]};
        log.segments.push_back(s);
    }
    log.log_end_offset = log.last_stable_offset = Offset{static_cast<std::int64_t>(timestamps.size()) * 10 + 5};
    return log;
}

LogConfig compacted() {
    LogConfig config;
    config.compacts = true;
    config.deletes = false;
    return config;
}

CleaningDecision run(const LogState& log, const LogConfig& config = compacted(), std::int64_t now = t0, const Differences& differences = kafka) {
    return decide(log, config, Timestamp{now}, 15'000, differences);
}

TEST(CleanableRange, ReachesFromTheCheckpointToTheActiveSegment) {
    auto log = log_with({t0, t0, t0});
    auto d = run(log);
    EXPECT_EQ(d.first_dirty, Offset{0});
    EXPECT_EQ(d.first_uncleanable, Offset{30});
    EXPECT_EQ(d.cleanable_end, Offset{30});
    EXPECT_EQ(d.held_by, HeldBy::active_segment);
    EXPECT_EQ(d.clean_bytes, 0);
    EXPECT_EQ(d.cleanable_bytes, 300);
    log.checkpoint = Offset{10};
    d = run(log);
    EXPECT_EQ(d.clean_bytes, 100);
    EXPECT_EQ(d.cleanable_bytes, 200);
    EXPECT_DOUBLE_EQ(d.ratio(), 2.0 / 3);
    log.checkpoint = Offset{15};    // inside a segment: it counts as clean and as cleanable
    d = run(log);
    EXPECT_EQ(d.first_dirty, Offset{15});
    EXPECT_EQ(d.clean_bytes, 200);
    EXPECT_EQ(d.cleanable_bytes, 200);
}

TEST(CleanableRange, RepairsACheckpointOutsideTheLog) {
    struct Row {
        std::int64_t checkpoint, first_dirty;
        bool deletes, repaired, unexpected;
    };
    const std::vector<Row> rows = {
        {5, 12, false, true, true},     // below the log start: worth a warning
        {5, 12, true, true, false},     // unless retention moved it
        {12, 12, false, false, false},
        {35, 35, false, false, false},  // the log end itself is inside
        {36, 12, false, true, true},
        {36, 12, true, true, true},
    };
    for (const auto& row : rows) {
        auto log = log_with({t0, t0, t0});
        log.log_start_offset = Offset{12};
        log.checkpoint = Offset{row.checkpoint};
        auto config = compacted();
        config.deletes = row.deletes;
        const auto d = run(log, config);
        EXPECT_EQ(d.first_dirty, Offset{row.first_dirty}) << row.checkpoint;
        EXPECT_EQ(d.repaired_checkpoint.has_value(), row.repaired) << row.checkpoint;
        EXPECT_EQ(d.repair_is_unexpected, row.unexpected) << row.checkpoint;
    }
    auto log = log_with({t0});
    log.log_start_offset = Offset{3};
    EXPECT_EQ(run(log).first_dirty, Offset{3});
    EXPECT_FALSE(run(log).repaired_checkpoint);     // none stored: nothing to repair
}

TEST(CleanableRange, ACheckpointInsideTheActiveSegmentMeansNothingToClean) {
    for (const auto checkpoint : {30, 33, 35}) {
        auto log = log_with({t0 - 100 * hour, t0, t0});
        log.checkpoint = Offset{checkpoint};
        auto config = compacted();
        config.max_compaction_lag_ms = hour;
        config.min_cleanable_dirty_ratio = 0;
        const auto d = run(log, config);
        EXPECT_EQ(d.cleanable_bytes, 0);
        EXPECT_EQ(d.clean_bytes, checkpoint == 30 ? 300 : 400);
        EXPECT_FALSE(d.above_ratio);
        EXPECT_EQ(d.delay_ms, 0);
        EXPECT_THAT(d.estimates, IsEmpty());
    }
}

TEST(CleanableRange, StopsAtTheSegmentOfTheLastStableOffset) {
    auto log = log_with({t0, t0, t0});
    log.last_stable_offset = Offset{17};
    auto d = run(log);
    EXPECT_EQ(d.first_uncleanable, Offset{17});
    EXPECT_EQ(d.cleanable_end, Offset{10});
    EXPECT_EQ(d.held_by, HeldBy::open_transaction);
    EXPECT_EQ(d.cleanable_bytes, 100);
    log.last_stable_offset = Offset{7};
    d = run(log);
    EXPECT_EQ(d.cleanable_end, Offset{0});
    EXPECT_EQ(d.cleanable_bytes, 0);
    EXPECT_TRUE(std::isnan(d.ratio()));     // no clean and no cleanable bytes
    log.checkpoint = Offset{20};        // an open transaction below the checkpoint cannot be, but must not confuse
    d = run(log);
    EXPECT_EQ(d.first_uncleanable, Offset{20});
    EXPECT_EQ(d.cleanable_bytes, 0);
}

TEST(CleanableRange, MinCompactionLagCountsFromTheFirstDirtySegment) {
    auto config = compacted();
    config.min_compaction_lag_ms = hour;
    struct Row {
        std::vector<std::int64_t> timestamps;
        std::int64_t checkpoint, end;
    };
    const std::vector<Row> rows = {
        {{t0 - hour, t0 - hour + 1, t0 - hour}, 0, 10},       // exactly at the lag may go
        {{t0 - hour, t0 - hour, t0 - hour}, 0, 30},
        {{t0 + hour, t0 - hour, t0 - hour}, 10, 30},          // a young one that is clean already does not count
        {{t0 + hour, t0 - hour, t0 - hour}, 5, 5},            // the checkpoint lies in it: nothing is cleanable
    };
    for (const auto& row : rows) {
        auto log = log_with(row.timestamps);
        log.checkpoint = Offset{row.checkpoint};
        const auto d = run(log, config);
        EXPECT_EQ(d.first_uncleanable, Offset{row.end});
        EXPECT_EQ(d.held_by, row.end == 30 ? HeldBy::active_segment : HeldBy::min_compaction_lag);
    }
    // Where no record has a timestamp the file time stands in.
    EXPECT_EQ(run(log_with({-1}, Timestamp{t0 - hour + 1}), config).cleanable_end, Offset{0});
    EXPECT_EQ(run(log_with({-1}, Timestamp{t0 - hour}), config).cleanable_end, Offset{10});
}

TEST(CleanableRange, CountsWhatIsCleanAndWhatIsCleanable) {
    // Six segments; two are clean, two cleanable, two held.
    auto log = log_with({t0, t0, t0, t0, t0});
    for (std::size_t i = 0; i < log.segments.size(); ++i) log.segments[i].bytes = 1 << i;
    log.checkpoint = Offset{20};
    log.last_stable_offset = Offset{40};
    const auto d = run(log);
    EXPECT_EQ(d.clean_bytes, 1 + 2);
    EXPECT_EQ(d.cleanable_bytes, 4 + 8);
    EXPECT_EQ(d.total_bytes(), 15);
    EXPECT_DOUBLE_EQ(d.ratio(), 12.0 / 15);
}

TEST(CleanableRange, AnOpenTransactionHoldsWhateverTheLag) {
    auto config = compacted();
    config.min_compaction_lag_ms = hour;
    auto log = log_with({t0 - 2 * hour});
    log.last_stable_offset = Offset{0};
    EXPECT_EQ(run(log, config).first_uncleanable, Offset{0});
    EXPECT_EQ(run(log, config).held_by, HeldBy::open_transaction);
    log.last_stable_offset = Offset{10};   // it was aborted
    EXPECT_EQ(run(log, config).first_uncleanable, Offset{10});
}

TEST(CompactionDelay, KafkasRuleTakesFirstBatchesOnly) {
    auto config = compacted();
    config.max_compaction_lag_ms = hour;
    auto d = run(log_with({-1, t0 - hour - 7, t0 - hour - 9}), config);
    EXPECT_THAT(d.estimates, ElementsAre(std::nullopt, Timestamp{t0 - hour - 7}, Timestamp{t0 - hour - 9}));
    EXPECT_EQ(d.earliest_uncompacted, Timestamp{t0 - hour - 9});
    EXPECT_EQ(d.delay_ms, 9);
    EXPECT_TRUE(d.must_clean);
    EXPECT_EQ(d.deadline, Timestamp{t0 - 9});
    d = run(log_with({t0 - hour}), config);
    EXPECT_EQ(d.delay_ms, 0);
    EXPECT_FALSE(d.must_clean);
    EXPECT_EQ(run(log_with({1}), compacted()).delay_ms, 0);       // no limit
    EXPECT_FALSE(run(log_with({1}), compacted()).deadline);
    EXPECT_EQ(run(log_with({-1, -1}), config).delay_ms, 0);
}

TEST(CompactionDelay, ASegmentAboveTheLimitDelaysButIsOnlyReported) {
    auto config = compacted();
    config.max_compaction_lag_ms = hour;
    auto log = log_with({t0 - hour + 50, t0 - hour - 7});
    log.last_stable_offset = Offset{10};
    const auto d = run(log, config, t0, {});
    EXPECT_EQ(d.delay_ms, 7);
    EXPECT_EQ(d.overdue_ms, 0);
    EXPECT_EQ(d.deadline, Timestamp{t0 + 50});
    EXPECT_EQ(d.held_deadline, Timestamp{t0 - 7});
    LagGauges gauges;
    gauges.add(d);
    gauges.add(run(log_with({t0}), config));
    EXPECT_EQ(gauges.logs_delayed, 1);
    EXPECT_EQ(gauges.max_delay_ms, 7);
}

TEST(CompactionDelay, MissingTimestampsAreEstimated) {
    auto config = compacted();
    config.max_compaction_lag_ms = hour;
    config.segment_ms = 1000;
    // First: largest minus the roll limit. Later ones: the largest of the one before. File times stand in.
    EXPECT_THAT(run(log_with({-1, -1, t0 - 5, -1}, Timestamp{t0 - 3}), config, t0, {}).estimates,
                ElementsAre(Timestamp{t0 - 3 - 1000}, Timestamp{t0 - 3}, Timestamp{t0 - 5}, Timestamp{t0 - 5}));
    auto log = log_with({-1, -1}, Timestamp{t0});
    log.segments[0].largest_record_timestamp = Timestamp{t0 - 77};    // the first batch alone has none
    EXPECT_THAT(run(log, config, t0, {}).estimates, ElementsAre(Timestamp{t0 - 77 - 1000}, Timestamp{t0 - 77}));
    // The append time, where it is known, is exact.
    log.segments[1].first_append = Timestamp{t0 - 20};
    EXPECT_THAT(run(log, config, t0, {}).estimates, ElementsAre(Timestamp{t0 - 77 - 1000}, Timestamp{t0 - 20}));
    // The segment before the first dirty one is known as well.
    log.checkpoint = Offset{10};
    log.segments[1].first_append.reset();
    EXPECT_THAT(run(log, config, t0, {}).estimates, ElementsAre(Timestamp{t0 - 1000}));
    log.segments[0].bytes = 0;
    log.checkpoint = Offset{0};
    EXPECT_EQ(run(log, config, t0, {}).estimates[0], std::nullopt);   // nothing in it
}

TEST(CompactionDelay, AClockFromTheFutureDoesNotPostponeADeadline) {
    auto config = compacted();
    config.max_compaction_lag_ms = hour;
    auto log = log_with({t0 + 24 * hour, t0 + 24 * hour}, Timestamp{t0 - 3});
    log.segments[1].first_append = Timestamp{t0 - 10};
    EXPECT_THAT(run(log, config, t0, {}).estimates, ElementsAre(Timestamp{t0 - 3}, Timestamp{t0 - 10}));
    EXPECT_EQ(run(log, config, t0, {}).deadline, Timestamp{t0 - 10 + hour});
    EXPECT_THAT(run(log, config, t0, kafka).estimates, ElementsAre(Timestamp{t0 + 24 * hour}, Timestamp{t0 + 24 * hour}));
}

TEST(Eligibility, TheRatioMustBeExceeded) {
    auto config = compacted();
    auto log = log_with({t0, t0});
    log.checkpoint = Offset{10};
    config.min_cleanable_dirty_ratio = 0.5;
    EXPECT_FALSE(run(log, config).above_ratio);
    config.min_cleanable_dirty_ratio = 0.499;
    EXPECT_TRUE(run(log, config).above_ratio);
    config.min_cleanable_dirty_ratio = 0;
    log.checkpoint = Offset{20};
    EXPECT_FALSE(run(log, config).above_ratio);     // nothing dirty
    for (auto& s : log.segments) s.bytes = 0;
    EXPECT_TRUE(std::isnan(run(log, config).ratio()));
    EXPECT_FALSE(run(log, config).above_ratio);
}

/// Decisions by hand: which is taken, in which order.
CleaningDecision dirty(double ratio, bool above) {
    CleaningDecision d;
    d.cleanable_bytes = static_cast<std::int64_t>(ratio * 1000);
    d.clean_bytes = 1000 - d.cleanable_bytes;
    d.above_ratio = above;
    return d;
}
CleaningDecision due(std::int64_t deadline, double ratio = 0.1) {
    auto d = dirty(ratio, false);
    d.deadline = Timestamp{deadline};
    d.overdue_ms = d.delay_ms = std::max<std::int64_t>(0, t0 - deadline);
    d.must_clean = d.delay_ms > 0;
    return d;
}
CleaningDecision expired(std::int64_t horizon) {
    auto d = dirty(0, false);
    d.horizon_due = Timestamp{horizon};
    return d;
}

std::vector<std::string> order(const std::vector<CleaningDecision>& decisions, const Differences& differences, const CleaningSpeed& speed = {}) {
    std::vector<Candidate> candidates;
    for (const auto& d : decisions) candidates.push_back({&d, {}});
    std::vector<std::string> out;
    const auto all = schedule(candidates, speed, Timestamp{t0}, differences);
    for (const auto& s : all) out.push_back(std::to_string(s.index) + "ONRH"[static_cast<std::size_t>(s.why)]);
    const auto first = select_next(candidates, speed, Timestamp{t0}, differences);
    EXPECT_EQ(first.has_value(), !all.empty());
    if (first) {
        EXPECT_EQ(first->index, all.front().index);
    }
    return out;
}

TEST(Schedule, KafkaTakesTheDirtiestOfTheEligible) {
    EXPECT_THAT(order({dirty(0.3, true), due(t0 - 5, 0.2), dirty(0.6, true), dirty(0.9, false), expired(t0 - 1)}, kafka), ElementsAre("2R", "0R", "1O"));
    EXPECT_THAT(order({dirty(0.9, false), due(t0 + 1)}, kafka), IsEmpty());
}

TEST(Schedule, EarliestDeadlineFirstThenTheDirtiestThenHorizons) {
    EXPECT_THAT(order({dirty(0.3, true), due(t0 - 5, 0.2), dirty(0.6, true), due(t0 - 9, 0.1), expired(t0 - 1), expired(t0 - 2)}, {}),
                ElementsAre("3O", "1O", "2R", "0R", "5H", "4H"));
}

TEST(Schedule, ADeadlineNearerThanTheCleaningTakesIsDue) {
    CleaningSpeed slow;
    slow.bytes_per_second.fill(100);      // 1000 bytes take 10 seconds
    EXPECT_THAT(order({due(t0 + 10'001), due(t0 + 10'000), due(t0 - 1), dirty(0.9, true)}, {}, slow), ElementsAre("2O", "1N", "3R"));
    EXPECT_THAT(order({due(t0 + 10'000)}, kafka, slow), IsEmpty());
}

TEST(Schedule, WhatIsHeldDoesNotMakeALogRun) {
    auto held = dirty(0, false);          // late, but nothing of it is cleanable
    held.delay_ms = 1000;
    held.held_deadline = Timestamp{t0 - 1000};
    auto none = due(t0 - 5);
    none.cleanable_bytes = 0;
    EXPECT_THAT(order({held, none}, {}), IsEmpty());
}

TEST(Schedule, SpeedIsMeasuredPerCodec) {
    CleaningSpeed speed;
    const auto before = speed.milliseconds_for(100'000'000, record::Codec::zstd);
    speed.measured(record::Codec::zstd, 1000, 10);               // too little to say anything
    EXPECT_EQ(speed.milliseconds_for(100'000'000, record::Codec::zstd), before);
    for (int i = 0; i < 50; ++i) speed.measured(record::Codec::zstd, 100'000'000, 10);
    EXPECT_NEAR(static_cast<double>(speed.milliseconds_for(100'000'000, record::Codec::zstd)), 10'000, 10);
    EXPECT_EQ(speed.milliseconds_for(100'000'000, record::Codec::none), 1000);
    EXPECT_GE(speed.milliseconds_for(100'000'000, std::nullopt), 9'990);   // unknown: the slowest
}

TEST(HorizonPass, AsksOnceInADeleteRetentionForWhatLiesInTheCleanPart) {
    auto config = compacted();
    config.delete_retention_ms = hour;
    auto log = log_with({t0, t0, t0});
    log.checkpoint = Offset{20};
    log.segments[0].earliest_horizon = Timestamp{t0 + 1};
    log.segments[1].earliest_horizon = Timestamp{t0};
    log.segments[2].earliest_horizon = Timestamp{t0 - 9};       // dirty: the ordinary pass looks after it
    EXPECT_EQ(run(log, config, t0, {}).horizon_due, Timestamp{t0});
    EXPECT_EQ(run(log, config, t0 - 1, {}).horizon_due, std::nullopt);
    EXPECT_EQ(run(log, config, t0, kafka).horizon_due, std::nullopt);
    log.last_horizon_pass = Timestamp{t0 - hour + 1};
    EXPECT_EQ(run(log, config, t0, {}).horizon_due, std::nullopt);
    log.last_horizon_pass = Timestamp{t0 - hour};
    EXPECT_EQ(run(log, config, t0, {}).horizon_due, Timestamp{t0});
    config.delete_retention_ms = 0;
    log.last_horizon_pass = Timestamp{t0 - 14'999};              // not more often than the backoff
    EXPECT_EQ(run(log, config, t0, {}).horizon_due, std::nullopt);
}

TEST(IdleRoll, TheActiveSegmentsAgeByTheWallClock) {
    LogConfig config;                                            // policy delete: segment.ms alone
    config.segment_ms = hour;
    auto log = log_with({t0});
    auto& active = log.segments.back();
    active.first_append = Timestamp{t0};
    const auto at = [&](std::int64_t now, std::int64_t jitter = 0) { return decide_idle_roll(log.segments, Offset{0}, config, {}, jitter, Timestamp{now}, {}); };
    EXPECT_EQ(at(t0 + hour), IdleRoll::none);
    EXPECT_EQ(at(t0 + hour + 1), IdleRoll::segment_ms);
    EXPECT_EQ(at(t0 + hour, 1), IdleRoll::segment_ms);
    active.first_append.reset();                                 // unknown: the file time
    active.modified = Timestamp{t0 - 1};
    EXPECT_EQ(at(t0 + hour), IdleRoll::segment_ms);
    active.bytes = 0;
    EXPECT_EQ(at(t0 + 100 * hour), IdleRoll::none);
    active.bytes = 1;
    EXPECT_EQ(decide_idle_roll(log.segments, Offset{0}, config, {}, 0, Timestamp{t0 + 100 * hour}, kafka), IdleRoll::none);
}

TEST(IdleRoll, TheCompactionLagOncePerLag) {
    auto config = compacted();
    config.max_compaction_lag_ms = 60'000;
    struct Row {
        std::int64_t first_timestamp, after;
        IdleRoll roll;
    };
    const std::vector<Row> rows = {
        {t0, 60'000, IdleRoll::none},
        {t0, 60'001, IdleRoll::max_compaction_lag},
        {t0 + 24 * hour, 60'001, IdleRoll::max_compaction_lag},     // a day ahead: by its append
        {-1, 60'001, IdleRoll::max_compaction_lag},
        {-1, 60'000, IdleRoll::none},
        {t0 - 9000 * hour, 1, IdleRoll::max_compaction_lag},        // old already
    };
    for (const auto& row : rows) {
        auto log = log_with({});
        auto& active = log.segments.back();
        active.first_append = active.modified = Timestamp{t0};
        if (row.first_timestamp > 0) active.first_batch_timestamp = Timestamp{row.first_timestamp};
        const auto roll = [&](std::optional<Timestamp> last) { return decide_idle_roll(log.segments, Offset{0}, config, last, 0, Timestamp{t0 + row.after}, {}); };
        EXPECT_EQ(roll({}), row.roll) << row.first_timestamp << " " << row.after;
        EXPECT_EQ(roll(Timestamp{t0 + row.after - 59'999}), IdleRoll::none);
        EXPECT_EQ(roll(Timestamp{t0 + row.after - 60'000}), row.roll);
        config.compacts = false;
        EXPECT_EQ(roll({}), IdleRoll::none);
        config.compacts = true;
    }
}

}  // namespace
}  // namespace tidemark::cleaner
