// Consumer groups through the whole group coordinator: beside classic groups, with offsets, over a journal.
#include <gmock/gmock.h>

#include "coordinator/group/embedded_protocol.h"
#include "protocol/messages/consumer_group_heartbeat_request.h"
#include "protocol/messages/consumer_group_heartbeat_response.h"
#include "protocol/messages/consumer_protocol_subscription.h"
#include "protocol/messages/delete_groups_response.h"
#include "protocol/messages/list_groups_request.h"
#include "tests/support/coordinator/test_groups.h"

namespace tidemark::coordinator {
namespace {

using protocol::ErrorCode;
using test::Asked;
using test::FetchedOffset;
using test::TestGroups;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Response = protocol::ConsumerGroupHeartbeatResponse;

Response beat(TestGroups& groups, const std::string& member, std::int32_t epoch) {
    protocol::ConsumerGroupHeartbeatRequest request;
    request.group_id = "g";
    request.member_id = member;
    request.member_epoch = epoch;
    if (epoch == 0) {
        request.rebalance_timeout_ms = 5000;
        request.subscribed_topic_names = {"data"};
        request.topic_partitions.emplace();
    }
    Asked<Response> asked;
    groups->heartbeat({.id = "client", .host = "/127.0.0.1"}, request, 1, asked.reply());
    return *asked;
}

std::vector<std::string> list(TestGroups& groups, std::vector<std::string> types, std::vector<std::string> states = {}) {
    protocol::ListGroupsRequest request;
    request.types_filter = std::move(types);
    request.states_filter = std::move(states);
    Asked<protocol::ListGroupsResponse> asked;
    groups->list(request, asked.reply());
    std::vector<std::string> listed;
    for (const auto& group : asked->groups) listed.push_back(group.group_id + " " + group.group_type + " " + group.protocol_type + " " + group.group_state);
    return listed;
}

ErrorCode remove(TestGroups& groups) {
    Asked<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>> asked;
    groups->delete_groups({"g"}, asked.reply());
    return asked->front().error_code;
}

TEST(ConsumerGroupsOverAJournal, SurviveARestart) {
    TestGroups groups;
    EXPECT_EQ(beat(groups, "a", 0).member_epoch, 2);
    groups.restart();
    EXPECT_EQ(beat(groups, "a", 2).error_code, ErrorCode::none);
    EXPECT_THAT(list(groups, {}), ElementsAre("g consumer consumer Stable"));
}

TEST(ConsumerGroupsOverAJournal, AreListedByTypeAndState) {
    TestGroups groups;
    beat(groups, "a", 0);
    groups.commit({.group = "simple", .offset = 1});
    EXPECT_THAT(list(groups, {"Consumer"}), ElementsAre("g consumer consumer Stable"));
    EXPECT_THAT(list(groups, {"classic"}), ElementsAre("simple classic  Empty"));
    EXPECT_THAT(list(groups, {}, {"sTaBlE"}), ElementsAre("g consumer consumer Stable"));
    EXPECT_THAT(list(groups, {"share"}), IsEmpty());
    beat(groups, "a", -1);
    EXPECT_THAT(list(groups, {"consumer"}, {"empty"}), ElementsAre("g consumer consumer Empty"));
}

TEST(ConsumerGroupsOverAJournal, CommitWithTheirEpoch) {
    TestGroups groups;
    beat(groups, "a", 0);
    EXPECT_EQ(groups.commit({.member = "a", .generation = 2, .offset = 7}), ErrorCode::none);
    EXPECT_EQ(groups.commit({.member = "a", .generation = 3, .offset = 8}), ErrorCode::stale_member_epoch);
    EXPECT_EQ(groups.commit({.member = "b", .generation = 2, .offset = 8}), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.commit({.member = "a", .generation = 2, .offset = 8, .version = 8}), ErrorCode::unsupported_version);
    // In a transaction versions differ in what they are told, not in what they may.
    EXPECT_EQ(groups.commit({.member = "a", .generation = 3, .offset = 8, .version = 5, .producer = 7}), ErrorCode::illegal_generation);
    EXPECT_EQ(groups.commit({.member = "a", .generation = 3, .offset = 8, .version = 6, .producer = 7}), ErrorCode::stale_member_epoch);
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
}

TEST(ConsumerGroupsOverAJournal, AreDeletedWhenEmpty) {
    TestGroups groups;
    beat(groups, "a", 0);
    groups.commit({.member = "a", .generation = 2, .offset = 7});
    EXPECT_EQ(remove(groups), ErrorCode::non_empty_group);
    beat(groups, "a", -1);
    EXPECT_EQ(remove(groups), ErrorCode::none);
    EXPECT_EQ(remove(groups), ErrorCode::group_id_not_found);
    EXPECT_THAT(list(groups, {}), IsEmpty());
    EXPECT_EQ(groups.fetch(), FetchedOffset{});
    groups.restart();
    EXPECT_THAT(list(groups, {}), IsEmpty());
    EXPECT_EQ(beat(groups, "a", 0).member_epoch, 2);
}

TEST(ConsumerGroupsOverAJournal, BecomeClassicWhenEmptyAndKeepTheirOffsets) {
    for (const auto policy : {MigrationPolicy::disabled, MigrationPolicy::downgrade, MigrationPolicy::upgrade, MigrationPolicy::bidirectional}) {
        TestGroups groups{{.migration_policy = policy}};
        beat(groups, "a", 0);
        groups.commit({.member = "a", .generation = 2, .offset = 7});
        beat(groups, "a", -1);
        EXPECT_EQ(groups.join({.version = 9})->error_code, ErrorCode::member_id_required);
        EXPECT_THAT(list(groups, {}), ElementsAre("g classic  Empty"));
        EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
        groups.restart();
        EXPECT_THAT(list(groups, {}), ElementsAre("g classic  Empty"));
        EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
        EXPECT_EQ(beat(groups, "a", 0).error_code, ErrorCode::none);   // and back
        EXPECT_THAT(list(groups, {}), ElementsAre("g consumer consumer Stable"));
        EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
    }
}

TEST(ConsumerGroupsOverAJournal, AnUpgradeSendsThoseWhoWaitToJoinAgain) {
    protocol::Writer writer;
    writer.int16(0);
    protocol::ConsumerProtocolSubscription{.topics = {"data"}}.write(writer, 0);
    const test::JoinArgs args{.protocols = {{"range", std::string{as_text(std::move(writer).finish_bytes().value())}}}};
    const auto of = [&](const std::string& member) {
        auto again = args;
        again.member = member;
        return again;
    };
    for (const bool while_joining : {true, false}) {
        TestGroups groups{{.initial_rebalance_delay_ms = 0}};
        const auto first = groups.join_new(args);
        const auto second = groups.join_new(args);
        EXPECT_TRUE(second.waits());
        if (while_joining) {
            EXPECT_EQ(beat(groups, "new", 0).error_code, ErrorCode::none);
            EXPECT_EQ(second->error_code, ErrorCode::rebalance_in_progress);
        } else {
            groups.join(of(first->member_id));
            const auto synced = groups.sync({.member = second->member_id, .generation = 2});
            EXPECT_TRUE(synced.waits());
            EXPECT_EQ(beat(groups, "new", 0).error_code, ErrorCode::none);
            EXPECT_EQ(synced->error_code, ErrorCode::rebalance_in_progress);
        }
        EXPECT_THAT(list(groups, {"consumer"}), ElementsAre("g consumer consumer Reconciling"));
    }
}

TEST(ConsumerGroupsOverAJournal, TakeTheOffsetsOfASimpleGroup) {
    TestGroups groups;
    groups.commit({.offset = 7});
    EXPECT_EQ(beat(groups, "a", 0).member_epoch, 2);
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
    groups.restart();
    EXPECT_THAT(list(groups, {}), ElementsAre("g consumer consumer Stable"));
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
}

TEST(ConsumerGroupsOverAJournal, ExpireOnlyWhatTheyDoNotRead) {
    TestGroups groups{{.offsets_retention_ms = 60'000, .retention_check_interval_ms = 1000}};
    beat(groups, "a", 0);
    groups.commit({.member = "a", .generation = 2, .offset = 7});
    groups.commit({.member = "a", .generation = 2, .offset = 8, .topic = "other"});
    for (int i = 0; i < 7; ++i) {
        groups.advance(10s);
        EXPECT_EQ(beat(groups, "a", 2).error_code, ErrorCode::none);
    }
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
    EXPECT_EQ(groups.fetch("g", "other"), FetchedOffset{});
    beat(groups, "a", -1);
    groups.advance(2s);
    EXPECT_THAT(list(groups, {}), IsEmpty());
    groups.restart();
    EXPECT_THAT(list(groups, {}), IsEmpty());
}

TEST(ConsumerGroupsOverAJournal, RemoveSilentMembersByTheTimer) {
    TestGroups groups;
    beat(groups, "a", 0);
    groups.advance(44'900ms);
    EXPECT_THAT(list(groups, {}), ElementsAre("g consumer consumer Stable"));
    groups.advance(200ms);
    EXPECT_THAT(list(groups, {}), ElementsAre("g consumer consumer Empty"));
}

}  // namespace
}  // namespace tidemark::coordinator
