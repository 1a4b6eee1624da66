#include "retention/clock_trust.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "io/memory_file_system.h"

namespace tidemark::retention {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::int64_t hour = 3'600'000, ten_minutes = 600'000;
constexpr Timestamp t0{1'700'000'000'000};

TEST(ClockJudge, ForwardJumpsAreDistrustedForTheGraceTime) {
    ClockJudge judge(hour, ten_minutes);
    judge.start(t0, 0ms, std::nullopt);
    judge.look(t0 + 1000, 1000ms);
    EXPECT_TRUE(judge.trusted());
    judge.look(t0 + 2000 + hour, 2000ms);                    // exactly the limit may be
    EXPECT_TRUE(judge.trusted());
    judge.look(t0 + 3001 + 2 * hour, 3000ms);
    EXPECT_FALSE(judge.trusted());
    EXPECT_THAT(judge.reason(), HasSubstr("jumped ahead by 3600001 ms"));
    EXPECT_EQ(judge.highest(), t0 + 2000 + hour);            // what nobody believes is not remembered
    judge.look(t0 + 2 * hour + ten_minutes, 3000ms + 599'999ms);
    EXPECT_FALSE(judge.trusted());
    judge.look(t0 + 2 * hour + ten_minutes + 1, 3000ms + 600'000ms);
    EXPECT_TRUE(judge.trusted());
    EXPECT_EQ(judge.jumps(), 1u);
}

TEST(ClockJudge, SuspendAndSlowDriftAreNoJumps) {
    ClockJudge judge(hour, ten_minutes);
    judge.start(t0, 0ms, std::nullopt);
    judge.look(t0 + 100 * hour, std::chrono::milliseconds{100 * hour});   // CLOCK_BOOTTIME runs through a suspend
    EXPECT_TRUE(judge.trusted());
    judge.look(t0, std::chrono::milliseconds{100 * hour + 1});            // back: nothing is deleted too early by that
    EXPECT_TRUE(judge.trusted());
}

TEST(ClockJudge, AClockBehindTheLastRunIsDistrustedUntilConfirmed) {
    ClockJudge judge(hour, ten_minutes);
    judge.start(t0, 5ms, t0 + 1);
    EXPECT_FALSE(judge.trusted());
    EXPECT_EQ(judge.highest(), t0 + 1);
    judge.confirm();
    EXPECT_TRUE(judge.trusted());
    EXPECT_EQ(judge.highest(), t0);
    ClockJudge fine(hour, ten_minutes);
    fine.start(t0, 5ms, t0);
    EXPECT_TRUE(fine.trusted());
}

TEST(ClockTrust, RemembersOverARestart) {
    ManualClock clock(t0);
    io::MemoryFileSystem files({.clock = &clock});
    ASSERT_TRUE(files.create_directory("/logs"));
    {
        ClockTrust trust(files, "/logs", clock, {});
        trust.start();
        EXPECT_TRUE(trust.trusted());
        clock.advance(2h);
        trust.tick();
        EXPECT_TRUE(trust.trusted());
    }
    clock.jump_to(t0);
    ClockTrust trust(files, "/logs", clock, {});
    trust.start();
    EXPECT_FALSE(trust.trusted());
    EXPECT_THAT(trust.stats().reason, HasSubstr("7200000 ms behind"));
    trust.confirm();
    EXPECT_TRUE(trust.trusted());
    ClockTrust again(files, "/logs", clock, {});
    again.start();
    EXPECT_TRUE(again.trusted());                             // what was confirmed is remembered

    RetentionOptions off;
    off.differences = Differences::none();
    clock.jump_to(Timestamp{5});
    ClockTrust kafka(files, "/logs", clock, off);
    kafka.start();
    EXPECT_TRUE(kafka.trusted());
}

TEST(ClockTrust, AFileThatHoldsNoTimeCountsAsNone) {
    ManualClock clock(t0);
    io::MemoryFileSystem files({.clock = &clock});
    ASSERT_TRUE(files.create_directory("/logs"));
    for (const char* content : {"", "x", "-5\n", "99999999999999999999"}) {
        ASSERT_TRUE(io::replace_content(files, "/logs/tidemark-clock", as_bytes(content)));
        ClockTrust trust(files, "/logs", clock, {});
        trust.start();
        EXPECT_TRUE(trust.trusted()) << content;
    }
}

}  // namespace
}  // namespace tidemark::retention
