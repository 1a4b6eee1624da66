#include "retention/policy.h"

#include <gmock/gmock.h>

#include <limits>

namespace tidemark::retention {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using storage::LogConfig;

constexpr auto max64 = std::numeric_limits<std::int64_t>::max();

/// Segments of ten offsets and 100 bytes each with these largest timestamps (-1: none); the last one is active.
LogState log_with(std::vector<std::int64_t> timestamps, Timestamp modified = Timestamp{500}) {
    LogState log;
    for (std::size_t i = 0; i < timestamps.size(); ++i) {
        SegmentState s;
        s.base_offset = Offset{static_cast<std::int64_t>(i) * 10};
        s.bytes = 100;
        s.modified = modified;
        if (timestamps[i] >= 0) s.largest_record_timestamp = Timestamp{timestamps[i]};
        log.segments.push_back(s);
    }
    log.log_end_offset = log.high_watermark = Offset{static_cast<std::int64_t>(timestamps.size()) * 10};
    return log;
}

LogConfig unlimited_config() {
    LogConfig config;
    config.retention_ms = std::nullopt;
    return config;
}

/// "0L 1S 2T 3M": segment and rule.
std::vector<std::string> text(const Decision& d) {
    std::vector<std::string> out;
    for (const auto& x : d.deletions) out.push_back(std::to_string(x.segment) + "LSTM"[static_cast<std::size_t>(x.rule)]);
    return out;
}

TEST(RetentionByTime, ComparesTheLargestTimestampStrictly) {
    struct Row {
        std::int64_t now, retention_ms;
        std::vector<std::string> goes;
    };
    const std::vector<Row> rows = {
        {1100, 1000, {}},                                   // exactly at the limit
        {1101, 1000, {"0T"}},                               // one millisecond later
        {1301, 1000, {"0T", "1T", "2T"}},
        {10'000, 0, {"0T", "1T", "2T", "3T"}},              // the active segment as well
        {10'000, max64, {}},                                // now − limit must not overflow
        {max64, 1000, {"0T", "1T", "2T", "3T"}},
        {100, 0, {}},
    };
    for (const auto& row : rows) {
        auto config = unlimited_config();
        config.retention_ms = row.retention_ms;
        EXPECT_THAT(text(decide(log_with({100, 200, 300, 400}), config, Timestamp{row.now}, {})), testing::ElementsAreArray(row.goes)) << row.now << " " << row.retention_ms;
    }
}

TEST(RetentionByTime, UnlimitedMeansNever) {
    EXPECT_THAT(text(decide(log_with({0, 1, 2}), unlimited_config(), Timestamp{max64}, {})), IsEmpty());
    auto config = unlimited_config();
    config.retention_ms = -1;
    EXPECT_THAT(text(decide(log_with({0, 1, 2}), config, Timestamp{max64}, {})), IsEmpty());
}

TEST(RetentionByTime, FileTimeStandsInForMissingTimestampsOnly) {
    auto config = unlimited_config();
    config.retention_ms = 100;
    const auto d = decide(log_with({-1, 100, -1}, Timestamp{500}), config, Timestamp{601}, {});
    EXPECT_THAT(text(d), ElementsAre("0T", "1T", "2T"));
    EXPECT_TRUE(d.deletions[0].by_file_time);
    EXPECT_FALSE(d.deletions[1].by_file_time);
    EXPECT_EQ(d.deletions[0].text(), "retention.ms 100: largest timestamp 500 (file time)");
    EXPECT_THAT(text(decide(log_with({-1, 100}, Timestamp{500}), config, Timestamp{600}, {})), IsEmpty());
}

TEST(RetentionByTime, ASegmentWhoseTimeIndexIsBeingRebuiltStays) {
    auto config = unlimited_config();
    config.retention_ms = 100;
    config.retention_min_timestamp = Timestamp{5000};
    auto log = log_with({100, 100, 100});
    log.segments[1].timestamps_unknown = true;
    EXPECT_THAT(text(decide(log, config, Timestamp{10'000}, {})), ElementsAre("0T"));
}

TEST(RetentionByTime, AFutureTimestampHoldsUpWhatIsBehindIt) {
    auto config = unlimited_config();
    config.retention_ms = 100;
    const auto log = log_with({5000, 100, 200, 4000}, Timestamp{500});
    auto d = decide(log, config, Timestamp{1000}, {});
    EXPECT_THAT(text(d), IsEmpty());
    EXPECT_THAT(d.future, ElementsAre(0u, 3u));
    EXPECT_EQ(d.held_back, 2u);
    EXPECT_EQ(d.next_deletion, Timestamp{5101});

    d = decide(log, config, Timestamp{1000}, {.future_timestamps_use_file_time = true});
    EXPECT_THAT(text(d), ElementsAre("0T", "1T", "2T", "3T"));
    EXPECT_TRUE(d.deletions[0].by_file_time);
    EXPECT_FALSE(d.deletions[1].by_file_time);
}

TEST(RetentionBySize, IsALowerBound) {
    struct Row {
        std::int64_t retention_bytes;
        std::vector<std::string> goes;
    };
    // Closed segments of 1 and 2 MiB, 1 MiB active.
    const std::vector<Row> rows = {{2 << 20, {"0S"}}, {3 << 20, {"0S"}}, {(3 << 20) + 1, {}}, {4 << 20, {}}, {1 << 20, {"0S", "1S"}},
                                   {1, {"0S", "1S"}}, {0, {"0S", "1S", "2S"}}, {-1, {}}, {max64, {}}};
    for (const auto& row : rows) {
        auto log = log_with({0, 0, 0});
        log.segments[0].bytes = 1 << 20;
        log.segments[1].bytes = 2 << 20;
        log.segments[2].bytes = 1 << 20;
        auto config = unlimited_config();
        config.retention_bytes = row.retention_bytes;
        EXPECT_THAT(text(decide(log, config, Timestamp{1000}, {})), testing::ElementsAreArray(row.goes)) << row.retention_bytes;
    }
}

TEST(RetentionBySize, AnEmptySegmentGoesWheneverThereIsExcess) {
    auto log = log_with({0, 0, 0});
    log.segments[0].bytes = 0;
    auto config = unlimited_config();
    config.retention_bytes = 200;
    EXPECT_THAT(text(decide(log, config, Timestamp{1000}, {})), ElementsAre("0S"));
    config.retention_bytes = 201;
    EXPECT_THAT(text(decide(log, config, Timestamp{1000}, {})), IsEmpty());
}

TEST(RetentionByLogStart, TakesWhatLiesWhollyBelowWhateverThePolicy) {
    for (const bool deletes : {true, false}) {
        for (const auto& [start, count] : std::vector<std::pair<int, std::size_t>>{{0, 0}, {9, 0}, {10, 1}, {15, 1}, {20, 2}, {29, 2}, {30, 2}}) {
            auto log = log_with({0, 0, 0});
            log.log_start_offset = Offset{start};
            auto config = unlimited_config();
            config.deletes = deletes;
            EXPECT_EQ(decide(log, config, Timestamp{1000}, {}).deletions.size(), count) << start;   // the active one never
        }
    }
}

TEST(Retention, StopsAtTheHighWatermark) {
    auto config = unlimited_config();
    config.retention_ms = 0;
    for (int high_watermark = 0; high_watermark <= 30; ++high_watermark) {
        auto log = log_with({0, 0, 0});
        log.high_watermark = Offset{high_watermark};
        EXPECT_EQ(decide(log, config, Timestamp{1000}, {}).deletions.size(), static_cast<std::size_t>(high_watermark / 10));
    }
}

TEST(Retention, AnEmptyActiveSegmentStays) {
    auto config = unlimited_config();
    config.retention_ms = 0;
    config.retention_bytes = 0;
    auto log = log_with({0, 0, 0});
    log.segments[2].bytes = 0;
    EXPECT_EQ(decide(log, config, Timestamp{1000}, {}).deletions.size(), 2u);
}

TEST(Retention, OnlyPoliciesWithDeleteApplyMoreThanTheLogStart) {
    auto config = unlimited_config();
    config.retention_ms = 0;
    config.retention_bytes = 0;
    config.retention_min_timestamp = Timestamp{5000};
    config.deletes = false;
    config.compacts = true;
    EXPECT_THAT(text(decide(log_with({0, 0, 0}), config, Timestamp{1000}, {})), IsEmpty());
    config.deletes = true;
    EXPECT_EQ(decide(log_with({0, 0, 0}), config, Timestamp{1000}, {}).deletions.size(), 3u);
}

TEST(Retention, EarlierRulesMakeRoomForLaterOnes) {
    auto log = log_with({5000, 100, 3000, 3000});
    log.log_start_offset = Offset{12};
    auto config = unlimited_config();
    config.retention_ms = 100;
    config.retention_min_timestamp = Timestamp{3001};
    // The future segment 0 goes by the log start, then 1 by time, then 2 and the active 3 by the minimum timestamp.
    EXPECT_THAT(text(decide(log, config, Timestamp{1000}, {})), ElementsAre("0L", "1T", "2M", "3M"));
    config.retention_bytes = 200;
    EXPECT_THAT(text(decide(log, config, Timestamp{1000}, {})), ElementsAre("0L", "1S", "2M", "3M"));
}

TEST(Retention, TheSameInstantTwiceDeletesNothingMore) {
    // Times 1000, 1001, 1100 and a log start inside the first.
    auto log = log_with({1000, 1001, 1100});
    log.log_start_offset = Offset{5};
    auto config = unlimited_config();
    config.retention_ms = 1000;
    const auto first = decide(log, config, Timestamp{2002}, {});
    EXPECT_THAT(text(first), ElementsAre("0T", "1T"));
    log.segments.erase(log.segments.begin(), log.segments.begin() + 2);
    log.log_start_offset = Offset{20};
    EXPECT_THAT(text(decide(log, config, Timestamp{2002}, {})), IsEmpty());
}

TEST(MinTimestamp, TheQuestionsOfKip47) {
    const auto log = log_with({100, 300, 200, 400});
    const auto run = [&](std::int64_t t, auto... change) {
        auto config = unlimited_config();
        config.retention_min_timestamp = Timestamp{t};
        (change(config), ...);
        return text(decide(log, config, Timestamp{450}, {}));
    };
    EXPECT_THAT(run(250), ElementsAre("0M"));                        // 200 stays: 300 is before it
    EXPECT_THAT(run(100), IsEmpty());                                // equality stays
    EXPECT_THAT(run(101), ElementsAre("0M"));
    EXPECT_THAT(run(0), IsEmpty());
    EXPECT_THAT(run(-5), IsEmpty());
    EXPECT_THAT(run(max64), ElementsAre("0M", "1M", "2M", "3M"));    // the active one too
    EXPECT_THAT(run(250, [](LogConfig& c) { c.retention_ms = 100; }), ElementsAre("0T", "1T", "2T"));   // any rule suffices
    EXPECT_THAT(run(250, [](LogConfig& c) { c.retention_bytes = 150; }), ElementsAre("0S", "1S", "2M"));      // and makes room
    EXPECT_THAT(run(250, [](LogConfig& c) { c.deletes = false; c.compacts = true; }), IsEmpty());
    EXPECT_EQ(decide(log, [] { auto c = unlimited_config(); c.retention_min_timestamp = Timestamp{250}; return c; }(), Timestamp{450}, {}).held_back, 1u);
}

TEST(MinTimestamp, FileTimesCountOnlyWhenAskedFor) {
    auto config = unlimited_config();
    config.retention_min_timestamp = Timestamp{1000};
    const auto log = log_with({-1, -1}, Timestamp{500});
    EXPECT_THAT(text(decide(log, config, Timestamp{2000}, {})), IsEmpty());
    EXPECT_THAT(text(decide(log, config, Timestamp{2000}, {.min_timestamp_uses_file_time = true})), ElementsAre("0M", "1M"));
    EXPECT_THAT(text(decide(log_with({1, 1}), config, Timestamp{2000}, Differences::none())), IsEmpty());
}

/// "index: own expiry/when it goes", "-" for never.
std::vector<std::string> forecasts_of(const LogState& log, const LogConfig& config, Timestamp now, const Differences& differences = {}) {
    const auto shown = [](const std::optional<Timestamp>& t) { return t ? std::to_string(t->value) : std::string{"-"}; };
    std::vector<std::string> out;
    for (const auto& f : forecast(log, decide(log, config, now, differences), config, now, differences))
        out.push_back(std::to_string(f.segment) + ": " + shown(f.expires) + "/" + shown(f.goes));
    return out;
}

TEST(Forecast, ASegmentGoesWhenItAndAllInFrontAreOldEnough) {
    auto config = unlimited_config();
    config.retention_ms = 1000;
    EXPECT_THAT(forecasts_of(log_with({100, 300, 200, 400}), config, Timestamp{500}),
                ElementsAre("0: 1101/1101", "1: 1301/1301", "2: 1201/1301", "3: 1401/1401"));
    EXPECT_THAT(forecasts_of(log_with({100, 300, 200, 400}), config, Timestamp{1101}), ElementsAre("1: 1301/1301", "2: 1201/1301", "3: 1401/1401"));
    EXPECT_THAT(forecasts_of(log_with({-1, 300}, Timestamp{50}), config, Timestamp{500}), ElementsAre("0: 1051/1051", "1: 1301/1301"));
    EXPECT_THAT(forecasts_of(log_with({100, 200}), unlimited_config(), Timestamp{500}), ElementsAre("0: -/-", "1: -/-"));
    config.deletes = false;
    EXPECT_THAT(forecasts_of(log_with({100}), config, Timestamp{500}), ElementsAre("0: -/-"));
}

TEST(Forecast, WhatIsUnknownOrBeyondEveryClockIsNever) {
    auto config = unlimited_config();
    config.retention_ms = 1000;
    auto log = log_with({100, 200, 300});
    log.segments[1].timestamps_unknown = true;
    EXPECT_THAT(forecasts_of(log, config, Timestamp{500}), ElementsAre("0: 1101/1101", "1: -/-", "2: 1301/-"));
    config.retention_ms = max64;
    EXPECT_THAT(forecasts_of(log_with({100, 0}), config, Timestamp{500}), ElementsAre("0: -/-", "1: -/-"));
    auto empty = log_with({100, -1});
    empty.segments[1].bytes = 0;                            // an empty active segment holds nothing to forget
    config.retention_ms = 1000;
    EXPECT_THAT(forecasts_of(empty, config, Timestamp{500}), ElementsAre("0: 1101/1101"));
}

TEST(Forecast, IsWhatDecideDoesWhenThatTimeComes) {
    // Every combination of three timestamps, file times and limits: at the forecast instant the segment goes, just before it does not.
    const std::vector<std::int64_t> timestamps = {-1, 0, 700, 3000, max64};
    for (const auto a : timestamps)
        for (const auto b : timestamps)
            for (const std::int64_t modified : {0, 900, 5000})
                for (const std::int64_t limit : {0, 100, 2500})
                    for (const bool by_file : {false, true}) {
                        const Differences differences{.future_timestamps_use_file_time = by_file};
                        auto config = unlimited_config();
                        config.retention_ms = limit;
                        const auto log = log_with({a, b}, Timestamp{modified});
                        const Timestamp now{1000};
                        Timestamp before = now;   // when the one in front went
                        for (const auto& f : forecast(log, decide(log, config, now, differences), config, now, differences)) {
                            const auto where = testing::Message() << a << " " << b << " " << modified << " " << limit << " " << by_file << " segment " << f.segment;
                            if (!f.goes) break;
                            auto rest = log;
                            rest.segments.erase(rest.segments.begin(), rest.segments.begin() + static_cast<std::ptrdiff_t>(f.segment));
                            EXPECT_FALSE(decide(rest, config, *f.goes, differences).deletions.empty()) << where;
                            EXPECT_GE(*f.goes, before) << where;
                            if (*f.goes > before) {
                                EXPECT_TRUE(decide(rest, config, Timestamp{f.goes->value - 1}, differences).deletions.empty()) << where;
                                EXPECT_TRUE(decide(rest, config, before, differences).deletions.empty()) << where;
                            }
                            before = *f.goes;
                        }
                    }
}

}  // namespace
}  // namespace tidemark::retention
