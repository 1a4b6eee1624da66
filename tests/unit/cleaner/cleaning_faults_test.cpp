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

/// Three segments that become one; two that stay two, since a joined index would be one entry too small (D16); one that loses
/// everything and the next one; transactions in them and over their ends.
constexpr auto script =
    "a=1 b=1 k=old | t1:c=1 x1 a=2 | t2:d=1 c2 b=~ | e=1 f=1 g=1 h=1 i=1 | j=1 l=1 m=1 n=1 o=1 | gone=1 gone=2 | gone=3 k=new t1:p=1 c1 | z=1";

TestLogOptions options(io::FileSystem& disk, ManualClock& clock) {
    TestLogOptions o;
    o.config.index_interval_bytes = 0;
    o.config.segment_bytes = 800;
    o.config.segment_index_bytes = 64;
    o.config.delete_retention_ms = 1000;
    o.files = &disk;
    o.clock = &clock;
    return o;
}

struct Outcome {
    Result<PassStats> result;
    bool tripped = false;
};

enum class Work : std::uint8_t { pass, horizon_pass };

/// Everything on disk, then one pass with the fault armed, until the old files are unlinked.
Outcome clean_with(io::FaultyFileSystem& disk, ManualClock& clock, const io::FaultOptions& faults, Work work = Work::pass) {
    TestLog log(options(disk, clock));
    EXPECT_TRUE(log.append(script));
    EXPECT_TRUE(log.log->flush());
    if (work == Work::horizon_pass) {
        EXPECT_TRUE(log.clean());
        clock.advance(std::chrono::seconds{1});
        log.run_background();
    }
    disk.inject(faults);
    Outcome out{.result = work == Work::pass ? log.clean() : log.clean_horizons()};
    if (out.result) {
        EXPECT_EQ(out.result->tombstones_removed, work == Work::pass ? 0 : 1);
        clock.advance(std::chrono::milliseconds{log.config().file_delete_delay_ms});
        log.run_background();
    }
    out.tripped = disk.tripped();
    if (out.tripped) {
        log.log.reset();   // nobody closes a log whose machine is gone
    } else {
        disk.inject({.clock = &clock});
    }
    return out;
}

/// Files of the partition that hold the bytes.
std::vector<std::string> files_with(io::FileSystem& disk, std::string_view bytes) {
    std::vector<std::string> found;
    for (const auto& entry : disk.list("/logs/t-0").value()) {
        if (as_text(io::read_whole(disk, "/logs/t-0/" + entry.name).value()).find(bytes) != std::string_view::npos) found.push_back(entry.name);
    }
    return found;
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
    // Also the files that were waiting to be unlinked: what was erased from the log leaves the disk.
    for (const auto& file : log.files()) EXPECT_FALSE(file.ends_with(".cleaned") || file.ends_with(".swap") || file.ends_with(".deleted")) << file;
    Offset last{-1};
    for (const auto& segment : *log.log->segments()) {
        EXPECT_GT(segment->base_offset(), last);
        last = segment->next_offset().value() - 1;
    }
    const auto cleaned = log.clean();
    ASSERT_TRUE(cleaned) << cleaned.error().message();
    EXPECT_EQ(log.committed(), latest);
    EXPECT_THAT(log.text(), testing::Not(testing::HasSubstr("k=old")));
    clock.advance(std::chrono::milliseconds{log.config().file_delete_delay_ms});
    log.run_background();
    EXPECT_THAT(files_with(disk, "old"), testing::IsEmpty());
}

TEST(CleaningFaults, ThePassWithoutFaults) {
    ManualClock clock;
    io::FaultyFileSystem disk({.clock = &clock});
    const auto done = clean_with(disk, clock, {.clock = &clock});
    ASSERT_TRUE(done.result) << done.result.error().message();
    EXPECT_EQ(done.result->segments_before, 7);
    EXPECT_EQ(done.result->segments_after, 4);
    expect_sound(disk, clock, "no fault");
}

void lose_power_everywhere(Work work) {
    int step = 0;
    for (;; ++step) {
        ManualClock clock;
        io::FaultyFileSystem disk({.clock = &clock});
        const auto done = clean_with(disk, clock, {.lose_power_at = step, .clock = &clock}, work);
        if (!done.tripped) break;
        for (const auto unsynced : {io::Unsynced::lost, io::Unsynced::kept, io::Unsynced::torn}) {
            for (std::uint64_t seed = 0; seed < (unsynced == io::Unsynced::torn ? 2u : 1u); ++seed) {
                auto after = disk.after_restart({.unsynced = unsynced, .seed = seed});
                expect_sound(after, clock, "power lost at step " + std::to_string(step) + ", unsynced " + std::to_string(static_cast<int>(unsynced)) + ", seed " + std::to_string(seed));
                if (testing::Test::HasFailure()) return;
            }
        }
    }
    EXPECT_GT(step, work == Work::pass ? 80 : 20);
}

void fail_everywhere(Work work, io::Fault fault, int steps_min, std::function<bool(const io::Call&)> counted = {}) {
    int step = 0;
    for (;; ++step) {
        ManualClock clock;
        io::FaultyFileSystem disk({.clock = &clock});
        const auto done = clean_with(disk, clock, {.fail_at = step, .fault = fault, .counted = counted, .clock = &clock}, work);
        if (!done.tripped) break;
        disk.inject({.clock = &clock});
        auto after = disk.after_restart({.unsynced = io::Unsynced::kept});
        expect_sound(after, clock, "fault " + std::to_string(static_cast<int>(fault)) + " at step " + std::to_string(step));
        if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(step, steps_min);
}

TEST(CleaningFaults, ThePassIsSoundWheneverPowerIsLost) { lose_power_everywhere(Work::pass); }
TEST(CleaningFaults, AHorizonPassIsSoundWheneverPowerIsLost) { lose_power_everywhere(Work::horizon_pass); }

TEST(CleaningFaults, ThePassIsSoundWhateverCallFails) {
    for (const auto work : {Work::pass, Work::horizon_pass}) {
        for (const auto fault : {io::Fault::io_error, io::Fault::no_space, io::Fault::short_write}) fail_everywhere(work, fault, work == Work::pass ? 80 : 20);
    }
}

TEST(CleaningFaults, ThePassIsSoundWhateverReadFails) {
    for (const auto work : {Work::pass, Work::horizon_pass}) fail_everywhere(work, io::Fault::io_error, 1, [](const io::Call& call) { return call.operation == io::Operation::read; });
}

}  // namespace
}  // namespace tidemark::cleaner
