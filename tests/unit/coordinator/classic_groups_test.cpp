// Joins, syncs, heartbeats, leaves and static members of classic groups, as Apache Kafka's own tests and broker show them.
#include <gmock/gmock.h>

#include "tests/support/coordinator/test_groups.h"

namespace tidemark::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const GroupOptions at_once{.initial_rebalance_delay_ms = 0};

std::string text(const std::vector<std::byte>& bytes) { return std::string{as_text(bytes)}; }

// --- JoinGroup -----------------------------------------------------------------------------------------------------------

TEST(ClassicJoin, ChecksGroupIdAndSessionTimeout) {
    TestGroups groups{at_once};
    EXPECT_EQ(groups.join({.group = ""})->error_code, ErrorCode::invalid_group_id);
    EXPECT_EQ(groups.join({.session_ms = 5999})->error_code, ErrorCode::invalid_session_timeout);
    EXPECT_EQ(groups.join({.session_ms = 1'800'001})->error_code, ErrorCode::invalid_session_timeout);
    EXPECT_EQ(groups.join({.session_ms = 6000, .version = 3})->error_code, ErrorCode::none);
    EXPECT_EQ(groups.join({.group = "h", .session_ms = 1'800'000, .version = 3})->error_code, ErrorCode::none);
}

TEST(ClassicJoin, AnUnknownMemberMakesNoGroup) {
    TestGroups groups{at_once};
    EXPECT_EQ(groups.join({.member = "somebody"})->error_code, ErrorCode::unknown_member_id);
    EXPECT_THAT(groups.list(), IsEmpty());
    EXPECT_THAT(groups.written(), IsEmpty());
}

TEST(ClassicJoin, WithoutProtocolsTheGroupIsMadeAllTheSame) {
    for (const auto& args : {JoinArgs{.protocols = {}}, JoinArgs{.type = ""}}) {
        TestGroups groups{at_once};
        const auto refused = groups.join(args);
        EXPECT_EQ(refused->error_code, ErrorCode::inconsistent_group_protocol);
        EXPECT_EQ(refused->generation_id, -1);
        EXPECT_EQ(refused->protocol_name, std::nullopt);
        EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));
        EXPECT_THAT(groups.written(), ElementsAre("group g gen 0 members 0 type  protocol null"));
    }
}

TEST(ClassicJoin, GivesANewMemberItsIdFirst) {
    TestGroups groups{at_once};
    const auto first = groups.join({});
    EXPECT_EQ(first->error_code, ErrorCode::member_id_required);
    EXPECT_THAT(first->member_id, StartsWith("client-"));
    EXPECT_EQ(first->member_id.size(), std::string_view{"client-"}.size() + 36);
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));

    const auto joined = groups.join({.member = first->member_id});
    EXPECT_EQ(joined->error_code, ErrorCode::none);
    EXPECT_EQ(joined->generation_id, 1);
    EXPECT_EQ(joined->leader, first->member_id);
    EXPECT_EQ(joined->protocol_name, "range");
    EXPECT_EQ(joined->protocol_type, "consumer");
    ASSERT_EQ(joined->members.size(), 1u);
    EXPECT_EQ(text(joined->members[0].metadata), "meta");
    EXPECT_FALSE(joined->skip_assignment);
}

TEST(ClassicJoin, OldVersionsJoinAtOnce) {
    TestGroups groups{at_once};
    const auto joined = groups.join({.version = 3});
    EXPECT_EQ(joined->error_code, ErrorCode::none);
    EXPECT_EQ(joined->generation_id, 1);
}

TEST(ClassicJoin, RefusesTypesAndProtocolsThatDoNotFit) {
    TestGroups groups{at_once};
    groups.stable_group();
    EXPECT_EQ(groups.join_new({.type = "connect"})->error_code, ErrorCode::inconsistent_group_protocol);
    EXPECT_EQ(groups.join_new({.protocols = {{"sticky", ""}}})->error_code, ErrorCode::inconsistent_group_protocol);
    EXPECT_EQ(groups.state(), "Stable");
}

TEST(ClassicJoin, MostVotesAmongTheSharedProtocolsWin) {
    TestGroups groups;   // all join within the first delay
    const auto a = groups.join_new({.protocols = {{"range", "a"}, {"roundrobin", "a"}}});
    const auto b = groups.join_new({.protocols = {{"range", "b"}}});
    const auto c = groups.join_new({.protocols = {{"roundrobin", "c"}, {"range", "c"}}});
    groups.advance(10s);
    for (const auto& joined : {a, b, c}) EXPECT_EQ(joined->protocol_name, "range");

    TestGroups split;
    const auto d = split.join_new({.protocols = {{"range", ""}, {"roundrobin", ""}}});
    const auto e = split.join_new({.protocols = {{"sticky", ""}, {"roundrobin", ""}}});
    split.advance(10s);
    EXPECT_EQ(d->protocol_name, "roundrobin");
    EXPECT_EQ(e->protocol_name, "roundrobin");
}

TEST(ClassicJoin, TheLeaderAloneIsToldOfTheMembersAndOfTheChosenProtocol) {
    TestGroups groups;
    const auto leader = groups.join_new({.protocols = {{"range", "a, range"}, {"roundrobin", "a, robin"}}});
    const auto follower = groups.join({.instance = "i", .protocols = {{"roundrobin", "b, robin"}}});
    groups.advance(10s);
    std::vector<std::string> told;
    for (const auto& member : leader->members) told.push_back(member.member_id + " " + member.group_instance_id.value_or("-") + ": " + text(member.metadata));
    EXPECT_THAT(told, UnorderedElementsAre(leader->member_id + " -: a, robin", follower->member_id + " i: b, robin"));
    EXPECT_EQ(follower->leader, leader->member_id);
    EXPECT_THAT(follower->members, IsEmpty());
}

TEST(ClassicJoin, APendingIdIsForgottenAfterItsSession) {
    TestGroups groups{at_once};
    const auto id = groups.join({})->member_id;
    groups.advance(9900ms);
    EXPECT_FALSE(groups.join({.member = id}).waits());

    const auto late = groups.join({.group = "h"})->member_id;
    groups.advance(10s);
    EXPECT_EQ(groups.join({.group = "h", .member = late})->error_code, ErrorCode::unknown_member_id);
    const auto confused = groups.join({.group = "h"})->member_id;
    EXPECT_EQ(groups.join({.group = "h", .member = confused, .instance = "i"})->error_code, ErrorCode::unknown_server_error);
}

TEST(ClassicJoin, AJoinPhaseWaitsForPendingIds) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group();
    groups.join({.session_ms = 6000});   // takes an id and does not come back
    const auto leader = groups.join({.member = ids[0], .protocols = {{"range", "new"}}, .rebalance_ms = 60'000});
    groups.advance(5900ms);
    EXPECT_TRUE(leader.waits());
    groups.advance(200ms);
    EXPECT_EQ(leader->generation_id, 2);
}

struct DelayCase {
    std::int32_t delay, rebalance;
    std::vector<std::int64_t> later_joins;
    std::int64_t completes;
};

TEST(ClassicJoin, TheFirstRebalanceIsDelayedWhileMembersCome) {
    for (const auto& c : {DelayCase{3000, 5000, {}, 3000}, DelayCase{3000, 5000, {1000}, 5000}, DelayCase{3000, 1000, {}, 3000}, DelayCase{3000, 1000, {500}, 3000},
                          DelayCase{3000, 10'000, {1000, 4000, 7000, 9500}, 10'000}, DelayCase{3000, 10'000, {1000}, 6000}}) {
        TestGroups groups{{.initial_rebalance_delay_ms = c.delay}};
        const auto first = groups.join_new({.rebalance_ms = c.rebalance});
        std::int64_t now = 0;
        std::vector<Asked<protocol::JoinGroupResponse>> joins;
        while (first.waits() && now < 60'000) {
            if (std::ranges::find(c.later_joins, now) != c.later_joins.end()) joins.push_back(groups.join_new({.rebalance_ms = c.rebalance}));
            groups.advance(100ms);
            now += 100;
        }
        EXPECT_EQ(now, c.completes) << "rebalance timeout " << c.rebalance << ", " << c.later_joins.size() << " later joins";
        EXPECT_EQ(first->generation_id, 1);
        for (const auto& join : joins) EXPECT_FALSE(join.waits());
    }
}

TEST(ClassicJoin, ANewMemberIsGivenFiveMinutesForItsFirstPhase) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(1, {.session_ms = 1'800'000, .rebalance_ms = 1'800'000});
    const auto newcomer = groups.join_new({.session_ms = 6000, .rebalance_ms = 6000});
    groups.advance(299s, 1s);
    EXPECT_TRUE(newcomer.waits());
    groups.advance(1s, 1s);
    EXPECT_EQ(newcomer->error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.describe().members.size(), 1u);
}

TEST(ClassicJoin, RejoiningAStableGroup) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2);
    const auto generation = groups.generation;
    const auto follower = groups.join({.member = ids[1]});
    EXPECT_EQ(follower->generation_id, generation);
    EXPECT_THAT(follower->members, IsEmpty());
    EXPECT_EQ(follower->leader, ids[0]);
    EXPECT_EQ(groups.state(), "Stable");

    EXPECT_TRUE(groups.join({.member = ids[0]}).waits());   // the leader may want another assignment
    EXPECT_EQ(groups.state(), "PreparingRebalance");
    EXPECT_EQ(groups.join({.member = ids[1]})->generation_id, generation + 1);
}

TEST(ClassicJoin, AFollowerWithOtherMetadataRebalances) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2);
    EXPECT_TRUE(groups.join({.member = ids[1], .protocols = {{"range", "other"}}}).waits());
    const auto leader = groups.join({.member = ids[0]});
    ASSERT_EQ(leader->members.size(), 2u);
    for (const auto& member : leader->members) EXPECT_EQ(text(member.metadata), member.member_id == ids[1] ? "other" : "meta");
}

TEST(ClassicJoin, WhileSyncsAreAwaited) {
    TestGroups groups{at_once};
    const auto first = groups.join_new();
    const auto newcomer = groups.join_new();
    const auto leader = groups.join({.member = first->member_id});
    ASSERT_EQ(groups.state(), "CompletingRebalance");
    // The same again: it may not have got its answer.
    EXPECT_EQ(groups.join({.member = leader->member_id})->members.size(), 2u);
    EXPECT_THAT(groups.join({.member = newcomer->member_id})->members, IsEmpty());
    EXPECT_EQ(groups.state(), "CompletingRebalance");

    const auto parked = groups.sync({.member = newcomer->member_id, .generation = 2});
    EXPECT_TRUE(parked.waits());
    const auto changed = groups.join({.member = leader->member_id, .protocols = {{"range", "other"}}});
    EXPECT_EQ(parked->error_code, ErrorCode::rebalance_in_progress);
    EXPECT_TRUE(changed.waits());
    groups.join({.member = newcomer->member_id});
    EXPECT_EQ(changed->generation_id, 3);
}

TEST(ClassicJoin, WhoDoesNotComeBackInTimeIsRemoved) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2, {.session_ms = 60'000, .rebalance_ms = 5000});
    const auto follower = groups.join({.member = ids[1], .protocols = {{"range", "other"}}, .session_ms = 60'000, .rebalance_ms = 8000});
    groups.advance(7900ms);   // the largest rebalance timeout counts
    EXPECT_TRUE(follower.waits());
    groups.advance(200ms);
    EXPECT_EQ(follower->generation_id, groups.generation + 1);
    EXPECT_EQ(follower->leader, ids[1]);
    EXPECT_EQ(follower->members.size(), 1u);
}

TEST(ClassicJoin, SizeIsLimited) {
    TestGroups groups{{.initial_rebalance_delay_ms = 0, .size_max = 2}};
    groups.stable_group(2);
    const auto refused = groups.join({});
    EXPECT_EQ(refused->error_code, ErrorCode::group_max_size_reached);
    EXPECT_EQ(refused->member_id, "");
    EXPECT_EQ(groups.state(), "Stable");

    // An empty group gives out as many ids as are asked for; who comes first, joins.
    TestGroups delayed{{.size_max = 2}};
    std::vector<std::string> ids;
    for (int i = 0; i < 3; ++i) ids.push_back(delayed.join({})->member_id);
    EXPECT_TRUE(delayed.join({.member = ids[2]}).waits());
    EXPECT_TRUE(delayed.join({.member = ids[0]}).waits());
    EXPECT_EQ(delayed.join({.member = ids[1]})->error_code, ErrorCode::group_max_size_reached);
    EXPECT_TRUE(delayed.join({.member = ids[0]}).waits());   // who waits may come again
    EXPECT_EQ(delayed.join({.member = ids[1]})->error_code, ErrorCode::group_max_size_reached);
}

TEST(ClassicJoin, AGroupThatShrankToNothingIsEmptyAndKeepsItsType) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group();
    EXPECT_THAT(groups.leave({{ids[0], std::nullopt}}), ElementsAre(ErrorCode::none));
    EXPECT_EQ(groups.state(), "Empty");
    EXPECT_EQ(groups.written().back(), "group g gen 2 members 0 type consumer protocol null");
}

// --- SyncGroup -----------------------------------------------------------------------------------------------------------

TEST(ClassicSync, RefusesWhatDoesNotFit) {
    TestGroups groups{at_once};
    EXPECT_EQ(groups.sync({.group = ""})->error_code, ErrorCode::invalid_group_id);
    EXPECT_EQ(groups.sync({.member = "m"})->error_code, ErrorCode::unknown_member_id);
    const auto ids = groups.stable_group();
    EXPECT_EQ(groups.sync({.member = "m"})->error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.sync({.member = ids[0], .generation = 7})->error_code, ErrorCode::illegal_generation);
    EXPECT_EQ(groups.sync({.member = ids[0], .protocol = "sticky"})->error_code, ErrorCode::inconsistent_group_protocol);
    EXPECT_EQ(groups.sync({.member = ids[0], .type = "connect"})->error_code, ErrorCode::inconsistent_group_protocol);
    EXPECT_EQ(groups.sync({.member = ids[0], .type = std::nullopt})->error_code, ErrorCode::inconsistent_group_protocol);
    EXPECT_EQ(groups.sync({.member = ids[0], .version = 4})->error_code, ErrorCode::none);
    groups.leave({{ids[0], std::nullopt}});
    EXPECT_EQ(groups.sync({.member = ids[0]})->error_code, ErrorCode::unknown_member_id);
}

TEST(ClassicSync, FollowersWaitForTheLeader) {
    TestGroups groups{at_once};
    const auto first = groups.join_new();
    const auto second = groups.join_new();
    groups.join({.member = first->member_id});
    const auto parked = groups.sync({.member = second->member_id, .generation = 2});
    EXPECT_TRUE(parked.waits());
    // Who is left out of the assignments gets an empty one.
    const auto leader = groups.sync({.member = first->member_id, .generation = 2, .assignments = {{second->member_id, "part"}}});
    EXPECT_EQ(text(leader->assignment), "");
    EXPECT_EQ(text(parked->assignment), "part");
    EXPECT_EQ(parked->protocol_name, "range");
    EXPECT_EQ(groups.written().back(), "group g gen 2 members 2 type consumer protocol range");
    EXPECT_EQ(text(groups.sync({.member = second->member_id, .generation = 2})->assignment), "part");   // and again
}

TEST(ClassicSync, DuringAJoinPhase) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2);
    groups.join({.member = ids[1], .protocols = {{"range", "other"}}});
    EXPECT_EQ(groups.sync({.member = ids[0], .generation = groups.generation})->error_code, ErrorCode::rebalance_in_progress);
}

TEST(ClassicSync, AFailedAppendIsToldAndTheGroupRebalances) {
    struct Case {
        Errc fails;
        ErrorCode told;
    };
    for (const auto& c : {Case{Errc::not_found, ErrorCode::coordinator_not_available}, Case{Errc::storage_offline, ErrorCode::not_coordinator}, Case{Errc::too_large, ErrorCode::unknown_server_error},
                          Case{Errc::batch_set_too_large, ErrorCode::unknown_server_error}, Case{Errc::no_space, ErrorCode::not_coordinator}, Case{Errc::corrupt, ErrorCode::unknown_server_error}}) {
        TestGroups groups{at_once};
        const auto first = groups.join_new();
        const auto second = groups.join_new();
        groups.join({.member = first->member_id});
        const auto parked = groups.sync({.member = second->member_id, .generation = 2});
        groups.journal->fail_appends = c.fails;
        EXPECT_EQ(groups.sync({.member = first->member_id, .generation = 2})->error_code, c.told);
        EXPECT_EQ(parked->error_code, c.told);
        EXPECT_EQ(groups.state(), "PreparingRebalance");
    }
}

TEST(ClassicSync, WhoDoesNotSyncInTimeIsRemoved) {
    TestGroups groups{at_once};
    const auto alone = groups.join_new({.rebalance_ms = 5000});
    groups.advance(5100ms);
    EXPECT_EQ(groups.state(), "Empty");
    EXPECT_EQ(groups.heartbeat(alone->member_id, 1), ErrorCode::unknown_member_id);
}

TEST(ClassicSync, AFollowerThatDoesNotSyncIsRemovedFromAStableGroup) {
    TestGroups groups{at_once};
    const JoinArgs args{.session_ms = 60'000};
    const auto first = groups.join_new(args);
    const auto second = groups.join_new(args);
    groups.join({.member = first->member_id, .session_ms = 60'000});
    EXPECT_EQ(groups.sync({.member = first->member_id, .generation = 2})->error_code, ErrorCode::none);
    EXPECT_EQ(groups.state(), "Stable");
    groups.advance(5100ms);
    EXPECT_EQ(groups.state(), "PreparingRebalance");
    EXPECT_EQ(groups.heartbeat(second->member_id, 2), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.heartbeat(first->member_id, 2), ErrorCode::rebalance_in_progress);
}

TEST(ClassicSync, OnceAllHaveSyncedNobodyIsRemoved) {
    TestGroups groups{at_once};
    groups.stable_group(2, {.session_ms = 60'000});
    groups.advance(30s);
    EXPECT_EQ(groups.state(), "Stable");
}

// --- Heartbeat, LeaveGroup -----------------------------------------------------------------------------------------------

TEST(ClassicHeartbeat, TellsHowThingsAre) {
    TestGroups groups{at_once};
    EXPECT_EQ(groups.heartbeat("m", 1), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.heartbeat("m", 1, std::nullopt, ""), ErrorCode::invalid_group_id);
    const auto first = groups.join_new();
    EXPECT_EQ(groups.heartbeat(first->member_id, 1), ErrorCode::none);   // CompletingRebalance
    EXPECT_EQ(groups.heartbeat("m", 1), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.heartbeat(first->member_id, 2), ErrorCode::illegal_generation);
    groups.sync({.member = first->member_id});
    EXPECT_EQ(groups.heartbeat(first->member_id, 1), ErrorCode::none);
    const auto newcomer = groups.join_new();
    EXPECT_EQ(groups.heartbeat(first->member_id, 1), ErrorCode::rebalance_in_progress);
}

TEST(ClassicHeartbeat, KeepsASessionAlive) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(1, {.session_ms = 6000});
    for (int i = 0; i < 5; ++i) {
        groups.advance(5900ms);
        ASSERT_EQ(groups.heartbeat(ids[0], 1), ErrorCode::none);
    }
    groups.advance(6000ms);
    EXPECT_EQ(groups.heartbeat(ids[0], 1), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.state(), "Empty");
}

TEST(ClassicHeartbeat, WhoWaitsForAnAnswerIsNotSilent) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2, {.session_ms = 6000, .rebalance_ms = 60'000});
    const auto parked = groups.join({.member = ids[0], .session_ms = 6000, .rebalance_ms = 60'000});
    groups.advance(5900ms);
    EXPECT_TRUE(parked.waits());
    groups.advance(200ms);   // the other one was silent
    EXPECT_EQ(parked->members.size(), 1u);
    EXPECT_EQ(groups.heartbeat(ids[1], groups.generation), ErrorCode::unknown_member_id);
}

TEST(ClassicLeave, EachMemberGetsItsOwnAnswer) {
    TestGroups groups{at_once};
    EXPECT_THAT(groups.leave({{"a", std::nullopt}, {"b", std::nullopt}}), ElementsAre(ErrorCode::unknown_member_id, ErrorCode::unknown_member_id));
    const auto ids = groups.stable_group(2);
    EXPECT_THAT(groups.leave({{"a", std::nullopt}}), ElementsAre(ErrorCode::unknown_member_id));
    EXPECT_EQ(groups.state(), "Stable");
    EXPECT_THAT(groups.leave({{"a", std::nullopt}, {ids[1], std::nullopt}}), ElementsAre(ErrorCode::unknown_member_id, ErrorCode::none));
    EXPECT_EQ(groups.state(), "PreparingRebalance");
}

TEST(ClassicLeave, OfAPendingIdAndOfOneThatIsParked) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group();
    const auto pending = groups.join({})->member_id;
    const auto leader = groups.join({.member = ids[0]});
    EXPECT_TRUE(leader.waits());
    EXPECT_THAT(groups.leave({{pending, std::nullopt}}), ElementsAre(ErrorCode::none));
    EXPECT_EQ(leader->generation_id, 2);

    const auto newcomer = groups.join_new({.version = 3});
    EXPECT_TRUE(newcomer.waits());
    const auto described = groups.describe();
    const auto other = std::ranges::find_if(described.members, [&](const auto& m) { return m.member_id != ids[0]; })->member_id;
    EXPECT_THAT(groups.leave({{other, std::nullopt}}), ElementsAre(ErrorCode::none));
    EXPECT_EQ(newcomer->error_code, ErrorCode::unknown_member_id);
}

TEST(ClassicLeave, CompletesAJoinPhaseThatWaitedForIt) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2);
    const auto leader = groups.join({.member = ids[0]});
    EXPECT_TRUE(leader.waits());
    groups.leave({{ids[1], std::nullopt}});
    EXPECT_EQ(leader->generation_id, groups.generation + 1);
}

// --- static members ------------------------------------------------------------------------------------------------------

TEST(StaticMember, JoinsAtOnce) {
    TestGroups groups{at_once};
    const auto joined = groups.join({.instance = "i"});
    EXPECT_EQ(joined->generation_id, 1);
    EXPECT_THAT(joined->member_id, StartsWith("i-"));
}

TEST(StaticMember, ComesBackUnnoticed) {
    for (const auto version : {std::int16_t{9}, std::int16_t{8}}) {
        TestGroups groups{at_once};
        const auto ids = groups.stable_group(1, {.instance = "i", .version = version});
        const auto batches = groups.journal->batches.size();
        const auto again = groups.join({.instance = "i", .version = version});
        EXPECT_NE(again->member_id, ids[0]);
        EXPECT_EQ(again->generation_id, 1);
        EXPECT_EQ(groups.state(), "Stable");
        EXPECT_EQ(groups.journal->batches.size(), batches + 1);
        EXPECT_EQ(again->skip_assignment, version == 9);
        EXPECT_EQ(again->members.size(), version == 9 ? 1u : 0u);
        EXPECT_EQ(again->leader, version == 9 ? again->member_id : ids[0]);
        EXPECT_EQ(text(groups.sync({.member = again->member_id, .instance = "i"})->assignment), "for " + ids[0]);

        EXPECT_EQ(groups.heartbeat(ids[0], 1, "i"), ErrorCode::fenced_instance_id);
        EXPECT_EQ(groups.heartbeat(ids[0], 1), ErrorCode::unknown_member_id);
        EXPECT_EQ(groups.sync({.member = ids[0], .instance = "i"})->error_code, ErrorCode::fenced_instance_id);
        EXPECT_EQ(groups.join({.member = ids[0], .instance = "i"})->error_code, ErrorCode::fenced_instance_id);
        EXPECT_EQ(groups.commit({.member = ids[0], .generation = 1, .instance = "i"}), ErrorCode::fenced_instance_id);
    }
}

TEST(StaticMember, OtherMetadataAndTheSameSelectionChangeNothing) {
    TestGroups groups{at_once};
    groups.stable_group(1, {.instance = "i", .protocols = {{"range", "a"}, {"sticky", "a"}}});
    EXPECT_EQ(groups.join({.instance = "i", .protocols = {{"range", "b"}}})->generation_id, 1);
    EXPECT_EQ(groups.state(), "Stable");
    const auto other = groups.join({.instance = "i", .protocols = {{"sticky", "b"}, {"range", "b"}}});
    EXPECT_TRUE(other.waits() || other->generation_id == 2) << "another selection is another generation";
}

TEST(StaticMember, WhoseReturnCannotBeWrittenIsAsBefore) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(1, {.instance = "i"});
    groups.journal->fail_appends = Errc::not_found;
    EXPECT_EQ(groups.join({.instance = "i"})->error_code, ErrorCode::coordinator_not_available);
    groups.journal->fail_appends.reset();
    EXPECT_EQ(groups.heartbeat(ids[0], 1, "i"), ErrorCode::none);
    EXPECT_EQ(groups.describe().members.front().member_id, ids[0]);
}

TEST(StaticMember, ComesBackWhileOthersJoinOrSync) {
    TestGroups groups{at_once};
    const auto first = groups.join({.instance = "i"});
    ASSERT_EQ(groups.state(), "CompletingRebalance");
    const auto parked = groups.join({.instance = "j"});
    EXPECT_TRUE(parked.waits());
    const auto again = groups.join({.instance = "j"});   // in PreparingRebalance
    EXPECT_EQ(parked->error_code, ErrorCode::fenced_instance_id);
    EXPECT_TRUE(again.waits());
    const auto leader = groups.join({.member = first->member_id, .instance = "i"});
    EXPECT_EQ(again->generation_id, 2);
    ASSERT_EQ(groups.state(), "CompletingRebalance");
    groups.join({.instance = "j"});                      // in CompletingRebalance
    EXPECT_EQ(groups.state(), "PreparingRebalance");
}

TEST(StaticMember, IsKeptWhenItMissesAJoinPhase) {
    for (const bool leader_comes : {false, true}) {
        TestGroups groups{at_once};
        const auto first = groups.join({.instance = "i", .session_ms = 60'000});
        groups.join({.instance = "j", .session_ms = 60'000});
        const auto leader = groups.join({.member = first->member_id, .instance = "i", .session_ms = 60'000});
        for (const auto& member : leader->members) groups.sync({.member = member.member_id, .generation = 2, .instance = member.group_instance_id});
        ASSERT_EQ(groups.state(), "Stable");
        const auto follower_id = std::ranges::find_if(leader->members, [&](const auto& m) { return m.member_id != leader->member_id; })->member_id;

        // Whoever comes, leads, and has the other one to assign to.
        const auto& [id, instance, missing] = leader_comes ? std::tuple{leader->member_id, "i", follower_id} : std::tuple{follower_id, "j", leader->member_id};
        const auto came = groups.join({.member = id, .instance = instance, .protocols = {{"range", "other"}}, .session_ms = 60'000});
        EXPECT_TRUE(came.waits());
        groups.advance(5100ms);
        EXPECT_EQ(came->leader, id);
        EXPECT_EQ(came->members.size(), 2u);
        groups.sync({.member = id, .generation = 3, .assignments = {{missing, "kept"}}, .instance = instance});
        const auto described = groups.describe();
        EXPECT_EQ(described.group_state, "Stable");
        EXPECT_EQ(text(std::ranges::find(described.members, missing, &protocol::DescribeGroupsResponse::DescribedGroupMember::member_id)->member_assignment), "kept");
    }
}

TEST(StaticMember, WhenNobodyComesThePhaseIsProlonged) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(1, {.instance = "i", .session_ms = 60'000});
    groups.join({.session_ms = 60'000, .version = 3});   // rebalance, but the newcomer leaves again
    std::string newcomer;
    for (const auto& member : groups.describe().members) {
        if (member.member_id != ids[0]) newcomer = member.member_id;
    }
    groups.leave({{newcomer, std::nullopt}});
    groups.advance(12s);
    EXPECT_EQ(groups.state(), "PreparingRebalance");
    EXPECT_EQ(groups.join({.member = ids[0], .instance = "i", .session_ms = 60'000})->generation_id, 2);
}

TEST(StaticMember, LeavesByItsInstance) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(1, {.instance = "i"});
    EXPECT_THAT(groups.leave({{"wrong", "i"}, {"", "unknown"}, {"", "i"}}), ElementsAre(ErrorCode::fenced_instance_id, ErrorCode::unknown_member_id, ErrorCode::none));
    EXPECT_EQ(groups.state(), "Empty");
}

TEST(StaticMember, SilentForItsSessionIsRemoved) {
    TestGroups groups{at_once};
    groups.stable_group(1, {.instance = "i"});
    groups.advance(10'100ms);
    EXPECT_EQ(groups.state(), "Empty");
}

// --- loading -------------------------------------------------------------------------------------------------------------

TEST(ClassicLoad, MembersGoOnWithTheirGeneration) {
    TestGroups groups{at_once};
    const auto ids = groups.stable_group(2);
    groups.restart();
    EXPECT_EQ(groups.state(), "Stable");
    EXPECT_EQ(groups.heartbeat(ids[0], groups.generation), ErrorCode::none);
    EXPECT_EQ(text(groups.sync({.member = ids[1], .generation = groups.generation})->assignment), "for " + ids[1]);
    groups.advance(9900ms);
    EXPECT_EQ(groups.heartbeat(ids[0], groups.generation), ErrorCode::none);
    groups.advance(200ms);   // the other one has not been heard of since
    EXPECT_EQ(groups.heartbeat(ids[1], groups.generation), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.state(), "PreparingRebalance");
}

TEST(ClassicLoad, AGroupThatIsTooLargeRebalances) {
    TestGroups groups{at_once};
    groups.stable_group(2);
    groups.restart(GroupOptions{.initial_rebalance_delay_ms = 0, .size_max = 1});
    EXPECT_EQ(groups.state(), "PreparingRebalance");
}

TEST(ClassicLoad, ParkedAnswersAreToldOfAStop) {
    TestGroups groups;
    const auto parked = groups.join_new();
    EXPECT_TRUE(parked.waits());
    groups->stop();
    EXPECT_EQ(parked.failure(), ErrorCode::coordinator_not_available);
    EXPECT_EQ(groups.heartbeat("m", 1), ErrorCode::coordinator_not_available);
}

TEST(ClassicLoad, OldValueVersionsAreRead) {
    using namespace protocol;
    for (std::int16_t version = 0; version <= 4; ++version) {
        GroupMetadataValue value{.protocol_type = "consumer", .generation = 5, .protocol = "range", .leader = "m", .current_state_timestamp = 77};
        value.members.push_back({.member_id = "m", .client_id = "c", .client_host = "/h", .rebalance_timeout = 4000, .session_timeout = 9000, .subscription = {}, .assignment = {}});
        const auto record = record_of(GroupMetadataKey{.group = "g"}, value, version);
        const auto read = read_value<GroupMetadataValue>(*record.value).value();
        const auto group = ClassicGroup::from_record("g", read);
        EXPECT_EQ(group->state, ClassicState::stable);
        EXPECT_EQ(group->members.at("m").rebalance_timeout_ms, version == 0 ? 9000 : 4000);
        EXPECT_EQ(group->state_timestamp.has_value(), version >= 2);

        value.members.clear();   // since when it is empty is not known: its offsets count from their commits
        const auto empty = ClassicGroup::from_record("g", read_value<GroupMetadataValue>(*record_of(GroupMetadataKey{.group = "g"}, value, version).value).value());
        EXPECT_EQ(empty->offset_expiry().base, version >= 2 ? OffsetExpiry::Base::since : OffsetExpiry::Base::commit_time);
    }
}

// --- lists ---------------------------------------------------------------------------------------------------------------

TEST(ClassicDescribe, ShowsMembersAndHidesWhatIsNotAgreed) {
    TestGroups groups{at_once};
    EXPECT_EQ(groups.describe("none", 6).error_code, ErrorCode::group_id_not_found);
    EXPECT_EQ(groups.describe("none", 6).group_state, "Dead");
    EXPECT_EQ(groups.describe("none", 5).error_code, ErrorCode::none);
    EXPECT_EQ(groups.describe("none", 5).group_state, "Dead");
    EXPECT_EQ(groups.describe("", 6).error_code, ErrorCode::invalid_group_id);

    const auto ids = groups.stable_group();
    auto stable = groups.describe();
    EXPECT_EQ(stable.protocol_data, "range");
    ASSERT_EQ(stable.members.size(), 1u);
    EXPECT_EQ(stable.members[0].client_host, "/127.0.0.1");
    EXPECT_EQ(text(stable.members[0].member_metadata), "meta");
    EXPECT_EQ(text(stable.members[0].member_assignment), "for " + ids[0]);
    groups.join_new();
    const auto rebalancing = groups.describe();
    EXPECT_EQ(rebalancing.group_state, "PreparingRebalance");
    EXPECT_EQ(rebalancing.protocol_data, "");
    for (const auto& member : rebalancing.members) EXPECT_THAT(member.member_metadata, IsEmpty());
}

TEST(ClassicList, FiltersInAnyCase) {
    TestGroups groups{at_once};
    groups.stable_group(1, {.group = "s"});
    groups.commit({.group = "simple"});
    EXPECT_THAT(groups.list(), ElementsAre("s:Stable:classic", "simple:Empty:classic"));
    EXPECT_THAT(groups.list({"sTABLE"}), ElementsAre("s:Stable:classic"));
    EXPECT_THAT(groups.list({"nonsense"}), IsEmpty());
    EXPECT_THAT(groups.list({}, {"Classic"}), UnorderedElementsAre("s:Stable:classic", "simple:Empty:classic"));
    EXPECT_THAT(groups.list({}, {"consumer"}), IsEmpty());
}

}  // namespace
}  // namespace tidemark::test
