#include "cleaner/grouping.h"

#include <gmock/gmock.h>

namespace tidemark::cleaner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t huge = 1'000'000'000;

/// Segments of `span` offsets, `bytes`, and index sizes.
std::vector<SegmentSize> segments(int n, std::int64_t bytes, std::int64_t offset_index = 0, std::int64_t time_index = 0, std::int64_t span = 10) {
    std::vector<SegmentSize> out;
    for (int i = 0; i < n; ++i) out.push_back({Offset{i * span}, bytes, offset_index, time_index});
    return out;
}

std::vector<std::size_t> counts(std::span<const SegmentSize> s, const GroupLimits& limits) {
    std::vector<std::size_t> out;
    std::size_t next = 0;
    for (const auto& g : group(s, limits)) {
        EXPECT_EQ(g.first, next);
        next += g.count;
        out.push_back(g.count);
    }
    EXPECT_EQ(next, s.size());
    return out;
}

TEST(Grouping, JoinsUpToEachLimitExactly) {
    EXPECT_THAT(counts(segments(5, 100, 24, 12), {huge, huge, Offset{50}}), ElementsAre(5u));
    EXPECT_THAT(counts({}, {huge, huge, Offset{50}}), IsEmpty());
    EXPECT_THAT(counts(segments(4, 71), {141, huge, Offset{40}}), ElementsAre(1u, 1u, 1u, 1u));
    EXPECT_THAT(counts(segments(4, 71), {142, huge, Offset{40}}), ElementsAre(2u, 2u));
    EXPECT_THAT(counts(segments(6, 71), {213, huge, Offset{60}}), ElementsAre(3u, 3u));
    EXPECT_THAT(counts(segments(4, 1, 24, 0), {huge, 47, Offset{40}}), ElementsAre(1u, 1u, 1u, 1u));
    EXPECT_THAT(counts(segments(4, 1, 24, 0), {huge, 48, Offset{40}}), ElementsAre(2u, 2u));
    EXPECT_THAT(counts(segments(4, 1, 0, 12), {huge, 23, Offset{40}}), ElementsAre(1u, 1u, 1u, 1u));
    EXPECT_THAT(counts(segments(4, 1, 0, 12), {huge, 24, Offset{40}}), ElementsAre(2u, 2u));
    EXPECT_THAT(counts(segments(3, 100), {1, 1, Offset{30}}), ElementsAre(1u, 1u, 1u));   // one alone always fits
}

TEST(Grouping, SpansNoMoreThanAnIndexCanHold) {
    constexpr std::int64_t max = 2'147'483'647;
    const auto at = [](std::int64_t second, std::int64_t bytes) {
        return std::vector<SegmentSize>{{Offset{0}, 10, 0, 0}, {Offset{second}, bytes, 0, 0}};
    };
    EXPECT_THAT(counts(at(10, 10), {huge, huge, Offset{max + 1}}), ElementsAre(2u));        // last offset max
    EXPECT_THAT(counts(at(10, 10), {huge, huge, Offset{max + 2}}), ElementsAre(1u, 1u));
    EXPECT_THAT(counts(at(10, 0), {huge, huge, Offset{max + 2}}), ElementsAre(2u));         // an empty one holds no offsets
    // The next base counts for all but the last, whatever the segment really holds.
    const std::vector<SegmentSize> three = {{Offset{0}, 10, 0, 0}, {Offset{10}, 10, 0, 0}, {Offset{max + 2}, 10, 0, 0}};
    EXPECT_THAT(counts(three, {huge, huge, Offset{max + 3}}), ElementsAre(1u, 2u));
}

}  // namespace
}  // namespace tidemark::cleaner
