#include "daemon/fetch_sessions.h"

#include <gmock/gmock.h>

namespace tidemark::daemon {
namespace {

using protocol::ErrorCode;
using testing::ElementsAre;

constexpr Timestamp start{1'000'000};

FetchPartition partition(std::int32_t index, std::int64_t offset = 0) {
    return {.key = {.topic = "t", .partition = index}, .offset = Offset{offset}, .bytes_max = 1 << 20};
}

std::vector<std::int32_t> indexes(const FetchContext& context) {
    std::vector<std::int32_t> all;
    for (const auto& partition : context.partitions) all.push_back(partition.key.partition);
    return all;
}

constexpr FetchNews quiet{.high_watermark = Offset{5}, .log_start_offset = Offset{0}};
constexpr FetchNews with_records{.high_watermark = Offset{5}, .log_start_offset = Offset{0}, .has_records = true};

/// A session of partitions 0, 1, 2, which were all told of.
struct OpenSession {
    FetchSessions sessions{{.sessions_max = 2, .evict_ms = 120'000}};
    std::int32_t id = create(sessions, 3);

    static std::int32_t create(FetchSessions& sessions, int partitions, Timestamp now = start) {
        std::vector<std::pair<FetchPartition, FetchNews>> told;
        for (int i = 0; i < partitions; ++i) told.emplace_back(partition(i), quiet);
        return sessions.create(told, false, false, now);
    }
    FetchContext next(std::int32_t epoch, std::vector<FetchPartition> partitions = {}, std::vector<FetchKey> forgotten = {}) {
        return sessions.begin({.session_id = id, .epoch = epoch, .partitions = std::move(partitions), .forgotten = std::move(forgotten)}, start);
    }
    bool tells(std::int32_t index, FetchNews news) { return sessions.tell(id, {{partition(index).key, news}}).front(); }
};

TEST(FetchSessions, FullFetchWithoutSessionEndsTheOneItNames) {
    OpenSession open;
    const auto context = open.sessions.begin({.session_id = open.id, .epoch = -1, .partitions = {partition(7)}}, start);
    EXPECT_EQ(context.kind, FetchContext::Kind::sessionless);
    EXPECT_THAT(indexes(context), ElementsAre(7));
    EXPECT_EQ(open.next(1).error, ErrorCode::fetch_session_id_not_found);
}

TEST(FetchSessions, EpochZeroAsksForANewOneAndEndsTheOld) {
    OpenSession open;
    EXPECT_EQ(open.sessions.begin({.session_id = open.id, .epoch = 0, .partitions = {partition(0)}}, start).kind, FetchContext::Kind::create);
    EXPECT_EQ(open.sessions.stats().sessions, 0u);
}

TEST(FetchSessions, IncrementalFetchReadsAllThatIsRemembered) {
    OpenSession open;
    const auto context = open.next(1, {partition(5), partition(1, 42)}, {partition(0).key});
    EXPECT_EQ(context.kind, FetchContext::Kind::incremental);
    EXPECT_THAT(indexes(context), ElementsAre(1, 2, 5));
    EXPECT_EQ(context.partitions[0].offset, Offset{42});
    EXPECT_EQ(open.sessions.stats().partitions, 3u);
}

TEST(FetchSessions, RefusesWhatDoesNotFit) {
    OpenSession open;
    EXPECT_EQ(open.sessions.begin({.session_id = open.id + 1, .epoch = 1}, start).error, ErrorCode::fetch_session_id_not_found);
    EXPECT_EQ(open.sessions.begin({.session_id = 0, .epoch = 1}, start).error, ErrorCode::fetch_session_id_not_found);
    EXPECT_EQ(open.sessions.begin({.session_id = 0, .epoch = -2}, start).error, ErrorCode::fetch_session_id_not_found);
    EXPECT_EQ(open.next(2).error, ErrorCode::invalid_fetch_session_epoch);
    EXPECT_EQ(open.sessions.begin({.session_id = open.id, .epoch = 1, .by_id = true}, start).error, ErrorCode::fetch_session_topic_id_error);
    EXPECT_EQ(open.next(1).error, ErrorCode::none) << "the session survives all of that";
    EXPECT_EQ(open.next(1).error, ErrorCode::invalid_fetch_session_epoch);
    EXPECT_EQ(open.next(2).error, ErrorCode::none);
}

TEST(FetchSessions, EpochsGoOnWithOneAfterTheLast) {
    EXPECT_EQ(FetchSession::epoch_after(1), 2);
    EXPECT_EQ(FetchSession::epoch_after(2147483646), 2147483647);
    EXPECT_EQ(FetchSession::epoch_after(2147483647), 1);
}

TEST(FetchSessions, SessionLeftWithoutPartitionsIsClosed) {
    OpenSession open;
    const auto context = open.next(1, {}, {partition(0).key, partition(1).key, partition(2).key});
    EXPECT_EQ(context.kind, FetchContext::Kind::sessionless);
    EXPECT_EQ(open.sessions.stats().sessions, 0u);
}

TEST(FetchSessions, TellsOnlyNews) {
    OpenSession open;
    EXPECT_FALSE(open.tells(0, quiet));
    EXPECT_TRUE(open.tells(0, with_records));
    EXPECT_FALSE(open.tells(0, quiet));
    FetchNews moved = quiet;
    moved.high_watermark = Offset{6};
    EXPECT_TRUE(open.tells(0, moved));
    EXPECT_FALSE(open.tells(0, moved));
    moved.log_start_offset = Offset{2};
    EXPECT_TRUE(open.tells(0, moved));
    moved.diverging = true;
    EXPECT_TRUE(open.tells(0, moved));
    EXPECT_TRUE(open.tells(0, moved));
}

TEST(FetchSessions, ErrorsAreToldEveryTimeAndWhatFollowsThemToo) {
    OpenSession open;
    const FetchNews error{.error = ErrorCode::offset_out_of_range};
    EXPECT_TRUE(open.tells(0, error));
    EXPECT_TRUE(open.tells(0, error));
    EXPECT_TRUE(open.tells(0, quiet));
    EXPECT_FALSE(open.tells(0, quiet));
}

TEST(FetchSessions, PartitionAddedLaterIsToldOnce) {
    OpenSession open;
    open.next(1, {partition(9)});
    EXPECT_TRUE(open.tells(9, quiet));
    EXPECT_FALSE(open.tells(9, quiet));
}

TEST(FetchSessions, PartitionsWithRecordsGoToTheEnd) {
    OpenSession open;
    open.sessions.tell(open.id, {{partition(0).key, with_records}, {partition(1).key, quiet}, {partition(2).key, quiet}});
    EXPECT_THAT(indexes(open.next(1)), ElementsAre(1, 2, 0));
}

TEST(FetchSessions, GoneWhileItWaitedTellsEverything) {
    OpenSession open;
    open.sessions.begin({.session_id = open.id, .epoch = -1}, start);
    EXPECT_TRUE(open.tells(0, quiet));
}

TEST(FetchSessions, OneThatWasNotUsedForLongMakesRoom) {
    OpenSession open;
    const auto second = OpenSession::create(open.sessions, 1, start + 1000);
    EXPECT_NE(second, 0);
    EXPECT_EQ(OpenSession::create(open.sessions, 10, start + 120'000), 0) << "neither is old enough";
    EXPECT_NE(OpenSession::create(open.sessions, 1, start + 120'001), 0);
    EXPECT_EQ(open.next(1).error, ErrorCode::fetch_session_id_not_found);
    EXPECT_EQ(open.sessions.stats().evicted, 1u);
}

TEST(FetchSessions, OlderSmallerOneMakesRoomForALargerOne) {
    OpenSession open;
    OpenSession::create(open.sessions, 1, start);
    const auto later = start + 121'000;
    for (auto epoch = 1; epoch <= 1; ++epoch) {   // both are in use, so neither is merely old
        EXPECT_EQ(open.sessions.begin({.session_id = open.id, .epoch = epoch}, later).error, ErrorCode::none);
    }
    EXPECT_NE(OpenSession::create(open.sessions, 2, later), 0);
    EXPECT_EQ(open.sessions.begin({.session_id = open.id, .epoch = 2}, later).error, ErrorCode::none) << "the larger one stays";
}

TEST(FetchSessions, NoSlotsNoSession) {
    FetchSessions none{{.sessions_max = 0, .evict_ms = 1}};
    EXPECT_EQ(OpenSession::create(none, 1), 0);
}

}  // namespace
}  // namespace tidemark::daemon
