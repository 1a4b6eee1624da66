// A pass on a disk that loses power, or fails, at every call that there is.
#include <gmock/gmock.h>

#include "cleaner/cleaning.h"
#include "io/faulty_file_system.h"
#include "storage/segment.h"
#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using test::TestLog;
using test::TestLogOptions;

/// Three segments that become one, one that becomes two (its index is too small for what it holds since), one that loses
/// everything, and a transaction over two of them.
constexpr auto script =
    "a=1 b=1 k=old | t1:c=1 x1 a=2 | t2:d=1 c2 b=~ | e=1 f=1 g=1 h=1 i=1 j=1 l=1 m=1 n=1 o=1 | gone=1 gone=2 | gone=3 k=new t1:p=1 c1 | z=1";

TestLogOptions options(io::FileSystem& disk, ManualClock& clock) {
    TestLogOptions o;
    o.config.index_interval_bytes = 0;
    o.config.segment_bytes = 800;
    o.config.delete_retention_ms = 1000;
    o.files = &disk;
    o.clock = &clock;
    return o;
}

struct Outcome {
    Result<> result = {};
    bool tripped = false;
};

/// Everything on disk, then one pass with the fault armed.
Outcome clean_with(io::FaultyFileSystem& disk, ManualClock& clock, const io::FaultOptions& faults) {
    TestLog log(options(disk, clock));
    EXPECT_TRUE(log.append(script));
    EXPECT_TRUE(log.log->flush());
    disk.inject(faults);
    Outcome out;
    const auto cleaned = log.clean();
    if (!cleaned) out.result = cleaned.error();
    out.tripped = disk.tripped();
    if (out.tripped) {
        log.log.reset();   // nobody closes a log whose machine is gone
    }
    return out;
}

const std::map<std::string, std::string> latest = {{"a", "2"}, {"d", "1"}, {"e", "1"}, {"f", "1"}, {"g", "1"}, {"h", "1"}, {"i", "1"}, {"j", "1"}, {"l", "1"},
                                                   {"m", "1"}, {"n", "1"}, {"o", "1"}, {"gone", "3"}, {"k", "new"}, {"p", "1"}, {"z", "1"}};

/// What the disk holds is a log with the same latest values and the same end, and a pass over it works.
void expect_sound(io::FileSystem& disk, ManualClock& clock, const std::string& what) {
    SCOPED_TRACE(what);
    auto o = options(disk, clock);
    o.clean_stop = false;
    TestLog log(o);
    ASSERT_TRUE(log.log);
    EXPECT_EQ(log.committed(), latest);
    EXPECT_EQ(log.log->log_end_offset(), Offset{26});
    EXPECT_EQ(log.log->last_stable_offset(), Offset{26});
    for (const auto& file : log.files()) EXPECT_FALSE(file.ends_with(".cleaned") || file.ends_with(".swap")) << file;
    Offset last{-1};
    for (const auto& segment : *log.log->segments()) {
        EXPECT_GT(segment->base_offset(), last);
        last = segment->next_offset().value() - 1;
    }
    const auto cleaned = log.clean();
    ASSERT_TRUE(cleaned) << cleaned.error().message();
    EXPECT_EQ(log.committed(), latest);
    EXPECT_THAT(log.text(), testing::Not(testing::HasSubstr("k=old")));
}

TEST(CleaningFaults, ThePassWithoutFaults) {
    ManualClock clock;
    io::FaultyFileSystem disk({.clock = &clock});
    const auto done = clean_with(disk, clock, {.clock = &clock});
    ASSERT_TRUE(done.result) << done.result.error().message();
    EXPECT_GT(disk.calls(), 50);
    expect_sound(disk, clock, "no fault");
}

TEST(CleaningFaults, ThePassIsSoundWheneverPowerIsLost) {
    int step = 0;
    for (;; ++step) {
        ManualClock clock;
        io::FaultyFileSystem disk({.clock = &clock});
        const auto done = clean_with(disk, clock, {.lose_power_at = step, .clock = &clock});
        if (!done.tripped) break;
        for (const auto unsynced : {io::Unsynced::lost, io::Unsynced::kept, io::Unsynced::torn}) {
            for (std::uint64_t seed = 0; seed < (unsynced == io::Unsynced::torn ? 2u : 1u); ++seed) {
                auto after = disk.after_restart({.unsynced = unsynced, .seed = seed});
                expect_sound(after, clock, "power lost at step " + std::to_string(step) + ", unsynced " + std::to_string(static_cast<int>(unsynced)) + ", seed " + std::to_string(seed));
                if (testing::Test::HasFailure()) return;
            }
        }
    }
    EXPECT_GT(step, 50);
}

TEST(CleaningFaults, ThePassIsSoundWhateverCallFails) {
    for (const auto fault : {io::Fault::io_error, io::Fault::short_write}) {
        for (int step = 0;; ++step) {
            ManualClock clock;
            io::FaultyFileSystem disk({.clock = &clock});
            const auto done = clean_with(disk, clock, {.fail_at = step, .fault = fault, .clock = &clock});
            if (!done.tripped) break;
            auto after = disk.after_restart({.unsynced = io::Unsynced::kept});
            expect_sound(after, clock, "fault " + std::to_string(static_cast<int>(fault)) + " at step " + std::to_string(step));
            if (testing::Test::HasFailure()) return;
        }
    }
}

}  // namespace
}  // namespace tidemark::cleaner
