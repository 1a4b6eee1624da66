// When appends roll a segment by time, with jitter (append-and-read 5).
#include <gmock/gmock.h>

#include <set>

#include "storage/segment.h"
#include "tests/support/storage_log.h"

namespace tidemark::retention {
namespace {

using test::StorageLog;

storage::LogConfig rolling(std::int64_t segment_ms, std::int64_t jitter_ms) {
    storage::LogConfig config;
    config.segment_ms = segment_ms;
    config.segment_jitter_ms = jitter_ms;
    config.timestamp_after_max_ms = storage::unlimited;
    return config;
}

TEST(Rolling, EachSegmentHasAJitterOfItsOwn) {
    for (const std::int64_t jitter : {400, 1'000'000}) {
        std::set<std::int64_t> drawn;
        for (int i = 0; i < 10; ++i) {
            StorageLog log({.config = rolling(1000, jitter)});
            for (int segment = 0; segment < 4; ++segment) {
                const auto own = log->segments()->back()->roll_jitter_ms();
                EXPECT_GE(own, 0);
                EXPECT_LT(own, std::min<std::int64_t>(jitter, 1000));
                drawn.insert(own);
                const auto from = segment * 10'000;
                log.append("a=1@" + std::to_string(from));
                log.append("b=1@" + std::to_string(from + 1000 - own));
                ASSERT_EQ(log->segments()->size(), static_cast<std::size_t>(2 * segment + 1)) << "not before segment.ms less its jitter";
                log.append("c=1@" + std::to_string(from + 1000 - own + 1));
                ASSERT_EQ(log->segments()->size(), static_cast<std::size_t>(2 * segment + 2));
                ASSERT_TRUE(log->roll());
            }
            while (log->segments()->size() > 1) ASSERT_TRUE(log->delete_oldest_segments(1, "test"));
        }
        EXPECT_GT(drawn.size(), 10u);
    }
    EXPECT_EQ(StorageLog({.config = rolling(1000, 0)})->segments()->back()->roll_jitter_ms(), 0);
}

TEST(Rolling, OldTimestampsNeverRollAndAJumpAheadRollsAtOnce) {
    StorageLog log({.config = rolling(1000, 0)});
    log.append("a=1@0");
    log.clock.advance(std::chrono::hours{1});
    log.append("b=1@-500000 c=1@1000");
    EXPECT_EQ(log.text(), "0:a=1 1:b=1 2:c=1");
    log.append("d=1@90000000");
    EXPECT_EQ(log.text(), "0:a=1 1:b=1 2:c=1 | 3:d=1");
    log.append("e=1@0");
    EXPECT_EQ(log.text(), "0:a=1 1:b=1 2:c=1 | 3:d=1 4:e=1");
}

TEST(Rolling, TheFirstBatchDecidesWhichClockCounts) {
    // Its first batch has no timestamp: the wall clock counts, whatever later ones say.
    StorageLog log({.config = rolling(1000, 0)});
    const auto untimed = [&] {
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, no_timestamp, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        return bytes;
    };
    ASSERT_TRUE(log.append_as_client(untimed()));
    log.append("b=1@900000");
    EXPECT_EQ(log->segments()->size(), 1u);
    log.clock.advance(std::chrono::milliseconds{1000});
    log.append("c=1@0");
    EXPECT_EQ(log->segments()->size(), 1u);
    log.clock.advance(std::chrono::milliseconds{1});
    log.append("d=1@0");
    EXPECT_EQ(log->segments()->size(), 2u);
    // The new one's first has one: the wall clock no longer counts.
    log.clock.advance(std::chrono::hours{1});
    ASSERT_TRUE(log.append_as_client(untimed()));
    EXPECT_EQ(log->segments()->size(), 2u);
}

TEST(Rolling, AnEmptySegmentStays) {
    StorageLog log({.config = rolling(1, 0)});
    log.clock.advance(std::chrono::hours{1});
    ASSERT_TRUE(log->roll());
    EXPECT_EQ(log->segments()->size(), 1u);
    log.append("a=1");
    EXPECT_EQ(log.text(), "0:a=1");
    log.clock.advance(std::chrono::hours{1});
    ASSERT_TRUE(log.append_as_client({})) << "nothing at all";
    EXPECT_EQ(log->segments()->size(), 1u);
}

}  // namespace
}  // namespace tidemark::retention
