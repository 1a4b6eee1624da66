#include "cleaner/throttle.h"

#include <gtest/gtest.h>

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;

TEST(Throttle, NobodyWaitsBelowTheRate) {
    ManualClock clock;
    Throttle unlimited(clock);
    for (int i = 0; i < 10; ++i) {
        clock.advance(1s);
        EXPECT_LE(unlimited.note(1 << 30), clock.since_boot());
    }
    Throttle limited(clock, 1000);
    for (int i = 0; i < 100; ++i) {
        clock.advance(100ms);
        EXPECT_LE(limited.note(70), clock.since_boot());
    }
}

TEST(Throttle, TheRateHoldsOverTime) {
    ManualClock clock;
    Throttle throttle(clock, 1000);
    const auto began = clock.since_boot();
    std::int64_t bytes = 0;
    for (int i = 0; i < 1000; ++i) {
        clock.advance(10ms);                       // the work itself; 10,000 bytes per second if nobody waited
        const auto resume = throttle.note(100);
        bytes += 100;
        if (resume > clock.since_boot()) clock.advance(resume - clock.since_boot());
    }
    const auto seconds = std::chrono::duration<double>(clock.since_boot() - began).count();
    EXPECT_NEAR(static_cast<double>(bytes) / seconds, 1000, 50);
    EXPECT_EQ(throttle.bytes_total(), 100'000u);
}

TEST(Throttle, TwoCallersShareOneRate) {
    ManualClock clock;
    Throttle throttle(clock, 1000);
    throttle.note(0);
    clock.advance(301ms);
    const auto first = throttle.note(1301);        // a second too early
    EXPECT_EQ(first, clock.since_boot() + 1000ms);
    EXPECT_EQ(throttle.note(1), first);            // the other one waits as well
}

TEST(Throttle, ANewRateForgetsWhatWasOwed) {
    ManualClock clock;
    Throttle throttle(clock, 0.001);
    throttle.note(1000);
    clock.advance(301ms);
    EXPECT_EQ(throttle.note(1000), clock.since_boot() + 1h) << "no longer than that at a time";
    throttle.set_rate(0.001);
    EXPECT_GT(throttle.note(1), clock.since_boot()) << "the same rate is no news";
    throttle.set_rate(1e9);
    EXPECT_LE(throttle.note(1), clock.since_boot());
}

}  // namespace
}  // namespace tidemark::cleaner
