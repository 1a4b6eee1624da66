// coordinator-tests-to-mirror 11: groups between the classic protocol and KIP-848's.
#include "tests/unit/coordinator/consumer_fixture.h"
#include "coordinator/group/embedded_protocol.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/sync_group_request.h"
#include "protocol/writer.h"

namespace tidemark::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using protocol::ErrorCode;
using protocol::JoinGroupRequest;
using protocol::SyncGroupRequest;

std::vector<std::byte> versioned(const auto& message, std::int16_t version) {
    protocol::Writer writer;
    writer.int16(version);
    message.write(writer, version);
    return *std::move(writer).finish_bytes();
}

class ConsumerGroupMigration : public ::testing::Test {
protected:
    ConsumerCoordinator c;
    Uuid data = c.put_topic("data", 4);

    /// `owned`: partitions of data that the client still has.
    JoinGroupRequest joining(const std::string& member, std::vector<std::int32_t> owned = {}, std::optional<std::string> instance = {}) const {
        protocol::ConsumerProtocolSubscription subscription;
        subscription.topics = {"data"};
        if (!owned.empty()) subscription.owned_partitions.push_back({.topic = "data", .partitions = std::move(owned)});
        JoinGroupRequest request;
        request.group_id = "g";
        request.member_id = member;
        request.group_instance_id = std::move(instance);
        request.session_timeout_ms = 10'000;
        request.rebalance_timeout_ms = 5000;
        request.protocol_type = "consumer";
        request.protocols.push_back({.name = "range", .metadata = versioned(subscription, 3)});
        return request;
    }
    SyncGroupRequest syncing(const std::string& member, std::int32_t generation) const {
        SyncGroupRequest request;
        request.group_id = "g";
        request.member_id = member;
        request.generation_id = generation;
        request.protocol_type = "consumer";
        request.protocol_name = "range";
        return request;
    }
    std::vector<std::byte> assignment(std::vector<std::int32_t> partitions, std::optional<std::vector<std::byte>> user_data = {}) const {
        protocol::ConsumerProtocolAssignment assigned;
        assigned.assigned_partitions.push_back({.topic = "data", .partitions = std::move(partitions)});
        assigned.user_data = std::move(user_data);
        return versioned(assigned, 3);
    }
    /// Of the one topic.
    std::vector<std::int32_t> partitions(const std::vector<std::byte>& assigned) const {
        const auto parsed = parse_assignment(assigned);
        return parsed && !parsed->assigned_partitions.empty() ? parsed->assigned_partitions.front().partitions : std::vector<std::int32_t>{};
    }
    /// A classic group of one member that was given `assigned`; returns the member's id. Generation 1, Stable.
    std::string classic_group(const std::vector<std::byte>& assigned, const std::string& type = "consumer") {
        auto request = joining("");
        request.protocol_type = type;
        const auto id = c.classic_join(request).member_id;
        request.member_id = id;
        EXPECT_EQ(c.classic_join(request).generation_id, 1);
        auto sync = syncing(id, 1);
        sync.protocol_type = type;
        sync.assignments.push_back({.member_id = id, .assignment = assigned});
        EXPECT_EQ(c.classic_sync(sync).error_code, ErrorCode::none);
        return id;
    }
    /// A classic member of the consumer group, which it is asked to be by its own id.
    std::string join_classic(std::vector<std::int32_t> owned = {}) {
        const auto required = c.classic_join(joining(""));
        EXPECT_EQ(required.error_code, ErrorCode::member_id_required);
        EXPECT_THAT(c.last_written, IsEmpty());
        const auto joined = c.classic_join(joining(required.member_id, std::move(owned)));
        EXPECT_EQ(joined.error_code, ErrorCode::none);
        return required.member_id;
    }
};

TEST_F(ConsumerGroupMigration, AnEmptyClassicGroupBecomesAConsumerGroup) {
    c.options->migration_policy = MigrationPolicy::disabled;
    c.classic_join(joining(""));   // is told its id, and the group exists
    ASSERT_NE(c.classic_group(), nullptr);
    const auto joined = c.join("a", {"data"});
    EXPECT_EQ(joined.error_code, ErrorCode::none);
    EXPECT_EQ(joined.member_epoch, 2);
    EXPECT_EQ(types(c.last_written), "~2 5 3 7 6 8");
    EXPECT_EQ(c.classic_group(), nullptr);
}

TEST_F(ConsumerGroupMigration, AStableClassicGroupIsUpgraded) {
    const auto old = classic_group(assignment({0, 1, 2, 3}));
    const auto joined = c.join("a", {"data"});
    EXPECT_EQ(joined.error_code, ErrorCode::none);
    EXPECT_EQ(joined.member_epoch, 2);
    EXPECT_EQ(types(c.last_written), "~2 5 3 7 6 8 5 3 7 7 6 8");
    EXPECT_EQ(c.group().epoch(), 2);
    EXPECT_EQ(c.member(old).current.epoch, 1);
    EXPECT_TRUE(c.member(old).is_classic());
    EXPECT_EQ(c.consumer.describe(c, "g").members.size(), 2u);

    // The old member has to rejoin: it gives up what is not its any more.
    EXPECT_EQ(c.classic_beat(old, 1), ErrorCode::rebalance_in_progress);
    const auto told = c.classic_join(joining(old, {0, 1, 2, 3}));
    EXPECT_EQ(told.error_code, ErrorCode::none);
    EXPECT_EQ(told.generation_id, 1);
    EXPECT_EQ(told.leader, "");
    EXPECT_THAT(told.members, IsEmpty());
    EXPECT_EQ(told.protocol_name, "range");
    const auto kept = partitions(c.classic_sync(syncing(old, 1)).assignment);
    EXPECT_EQ(kept.size(), 2u);
    EXPECT_EQ(c.classic_beat(old, 1), ErrorCode::rebalance_in_progress);   // it has not said so yet
    const auto rejoined = c.classic_join(joining(old, kept));
    EXPECT_EQ(rejoined.generation_id, 2);
    EXPECT_EQ(partitions(c.classic_sync(syncing(old, 2)).assignment), kept);
    EXPECT_EQ(c.classic_beat(old, 2), ErrorCode::none);
    EXPECT_EQ(c.beat("a", 2).assignment->topic_partitions.front().partitions.size(), 2u);
    EXPECT_EQ(c.group().state_name(), "Stable");
}

TEST_F(ConsumerGroupMigration, UpgradesThatAreRefusedLeaveTheClassicGroup) {
    const auto refused = [&](const std::string& what) {
        const auto before = c.written.size();
        const auto answer = c.join("a", {"data"});
        EXPECT_EQ(answer.error_code, ErrorCode::group_id_not_found) << what;
        EXPECT_EQ(c.written.size(), before) << what;
        EXPECT_NE(c.classic_group(), nullptr) << what;
        EXPECT_EQ(c.classic_group()->state_name(), "Stable") << what;
    };
    const auto id = classic_group(assignment({0, 1, 2, 3}));
    for (const auto policy : {MigrationPolicy::disabled, MigrationPolicy::downgrade}) {
        c.options->migration_policy = policy;
        refused("policy");
    }
    c.options->migration_policy = MigrationPolicy::upgrade;
    c.options->consumer_size_max = 0;
    refused("size");
    c.options->consumer_size_max = 10;
    auto& member = *c.classic_group()->find(id);
    const auto good = member;
    member.assignment = assignment({0}, std::vector<std::byte>(3));
    refused("user data");
    member = good;
    member.assignment.resize(5);
    refused("malformed assignment");
    member = good;
    member.protocols.front().metadata.resize(3);
    refused("malformed subscription");
    member = good;
    c.classic_group()->type_name = "connect";
    refused("type");
    c.classic_group()->type_name = "consumer";
    EXPECT_EQ(c.join("a", {"data"}).error_code, ErrorCode::none);
}

TEST_F(ConsumerGroupMigration, OnlyAJoinUpgrades) {
    classic_group(assignment({0, 1, 2, 3}));
    EXPECT_EQ(c.beat("a", 1).error_code, ErrorCode::group_id_not_found);
    EXPECT_EQ(c.leave("a").error_code, ErrorCode::group_id_not_found);
    EXPECT_NE(c.classic_group(), nullptr);
}

TEST_F(ConsumerGroupMigration, AClassicMemberJoinsAConsumerGroup) {
    c.join("a", {"data"});
    const auto id = join_classic();
    EXPECT_EQ(types(c.last_written), "5 3 7 7 6 8");
    EXPECT_EQ(c.member(id).current.epoch, 3);
    EXPECT_EQ(c.member(id).current.state, MemberState::unreleased_partitions);
    // It has nothing yet and waits for a, so there is no reason to rejoin.
    EXPECT_THAT(partitions(c.classic_sync(syncing(id, 3)).assignment), IsEmpty());
    EXPECT_EQ(c.classic_beat(id, 3), ErrorCode::none);
    c.beat("a", 2, Partitions{{data, {0, 1, 2, 3}}});
    c.beat("a", 2, Partitions{{data, {0, 1}}});
    EXPECT_EQ(c.classic_beat(id, 3), ErrorCode::rebalance_in_progress);   // there is something to fetch now
    EXPECT_EQ(c.classic_join(joining(id)).generation_id, 3);
    EXPECT_THAT(partitions(c.classic_sync(syncing(id, 3)).assignment), ElementsAre(2, 3));
}

TEST_F(ConsumerGroupMigration, ClassicMembersAreChecked) {
    c.join("a", {"data"});
    const auto id = join_classic();
    EXPECT_EQ(c.classic_beat("a", 3), ErrorCode::unknown_member_id);   // not a classic one
    EXPECT_EQ(c.classic_beat("x", 3), ErrorCode::unknown_member_id);
    EXPECT_EQ(c.classic_beat(id, 2), ErrorCode::illegal_generation);
    EXPECT_EQ(c.classic_sync(syncing("a", 2)).error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(c.classic_sync(syncing(id, 2)).error_code, ErrorCode::illegal_generation);
    auto other = syncing(id, 3);
    other.protocol_name = "roundrobin";
    EXPECT_EQ(c.classic_sync(other).error_code, ErrorCode::inconsistent_group_protocol);
    other = syncing(id, 3);
    other.protocol_type = "connect";
    EXPECT_EQ(c.classic_sync(other).error_code, ErrorCode::inconsistent_group_protocol);
    auto join = joining("");
    join.protocol_type = "connect";
    EXPECT_EQ(c.classic_join(join).error_code, ErrorCode::inconsistent_group_protocol);
    join = joining("");
    join.protocols.front().name = "roundrobin";   // the other classic member does not know it
    EXPECT_EQ(c.classic_join(join).error_code, ErrorCode::inconsistent_group_protocol);
    join = joining("");
    join.session_timeout_ms = 1;
    EXPECT_EQ(c.classic_join(join).error_code, ErrorCode::invalid_session_timeout);
    c.options->consumer_size_max = 2;
    EXPECT_EQ(c.classic_join(joining("")).error_code, ErrorCode::group_max_size_reached);
    c.options->consumer_size_max = 10;
    c.options->migration_policy = MigrationPolicy::disabled;
    EXPECT_EQ(c.classic_join(joining("")).error_code, ErrorCode::inconsistent_group_protocol);
}

TEST_F(ConsumerGroupMigration, ClassicMembersCommitWithTheirGeneration) {
    c.join("a", {"data"});
    const auto id = join_classic();
    const std::vector<CommittedPartition> partitions{{data, "data", 0}};
    const auto commit = [&](std::int32_t generation) {
        return c.group().check_commit({.claim = {.member_id = id, .instance_id = {}, .epoch = generation}, .version = 5, .partitions = partitions});
    };
    EXPECT_EQ(commit(3), ErrorCode::none);   // in a version that native members may not use
    EXPECT_EQ(commit(2), ErrorCode::illegal_generation);
    EXPECT_EQ(commit(4), ErrorCode::illegal_generation);
    EXPECT_EQ(c.group().check_fetch({.member_id = id, .instance_id = {}, .epoch = 2}), ErrorCode::illegal_generation);
}

TEST_F(ConsumerGroupMigration, ClassicMembersHaveTimersOfTheirOwn) {
    c.join("a", {"data"});
    const auto silent = join_classic();
    c.advance(4999ms);
    EXPECT_NE(c.group().find(silent), nullptr);
    c.advance(1ms);   // it never synced
    EXPECT_EQ(c.group().find(silent), nullptr);

    const auto id = join_classic();
    c.classic_sync(syncing(id, c.member(id).current.epoch));
    c.advance(9s);
    c.beat("a", 2, Partitions{{data, {0, 1, 2, 3}}});
    c.beat("a", 2, Partitions{{data, {0, 1}}});
    EXPECT_EQ(c.classic_beat(id, c.member(id).current.epoch), ErrorCode::rebalance_in_progress);
    c.classic_join(joining(id));
    c.classic_sync(syncing(id, c.member(id).current.epoch));
    c.advance(9s);
    EXPECT_NE(c.group().find(id), nullptr);
    c.advance(1s);   // its session timeout is 10 s, a's 45 s
    EXPECT_EQ(c.group().find(id), nullptr);
}

TEST_F(ConsumerGroupMigration, AClassicMemberThatIsToldToRejoinHasToInTime) {
    c.join("a", {"data"});
    const auto id = join_classic();
    const auto epoch = c.member(id).current.epoch;
    c.classic_sync(syncing(id, epoch));
    c.join("b", {"data"});
    EXPECT_EQ(c.classic_beat(id, epoch), ErrorCode::rebalance_in_progress);
    c.advance(3s);
    EXPECT_EQ(c.classic_beat(id, epoch), ErrorCode::rebalance_in_progress);   // the time goes on
    EXPECT_EQ(c.classic_sync(syncing(id, epoch)).error_code, ErrorCode::rebalance_in_progress);
    c.advance(1999ms);
    EXPECT_NE(c.group().find(id), nullptr);
    c.advance(1ms);
    EXPECT_EQ(c.group().find(id), nullptr);
}

TEST_F(ConsumerGroupMigration, WhenTheLastNativeMemberLeavesTheGroupIsClassicAgain) {
    c.join("a", {"data"});
    const auto id = join_classic();
    EXPECT_EQ(c.leave("a").member_epoch, -1);
    EXPECT_EQ(types(c.last_written), "~8 ~8 ~7 ~7 ~6 ~5 ~5 ~4 ~3 2");
    auto* classic = c.classic_group();
    ASSERT_NE(classic, nullptr);
    EXPECT_EQ(classic->generation, 3);
    EXPECT_EQ(classic->protocol_type(), "consumer");
    EXPECT_EQ(classic->state_name(), "PreparingRebalance");
    EXPECT_EQ(partitions(classic->find(id)->assignment).size(), 2u);   // its target
    EXPECT_EQ(c.classic_beat(id, 3), ErrorCode::rebalance_in_progress);
    const auto rejoined = c.classic_join(joining(id));
    EXPECT_EQ(rejoined.generation_id, 4);
    EXPECT_EQ(rejoined.leader, id);
}

TEST_F(ConsumerGroupMigration, ANativeMemberThatExpiresDowngradesToo) {
    c.join("a", {"data"});
    const auto id = join_classic();
    const auto epoch = c.member(id).current.epoch;
    c.classic_sync(syncing(id, epoch));
    for (int i = 0; i < 9; ++i) {
        c.advance(5s);
        if (c.classic_group() == nullptr) c.classic_beat(id, epoch);
    }
    ASSERT_NE(c.classic_group(), nullptr);
    EXPECT_EQ(c.classic_group()->generation, 3);
}

TEST_F(ConsumerGroupMigration, AFailedRevocationDowngradesToo) {
    c.join("a", {"data"});
    const auto id = join_classic();
    c.classic_sync(syncing(id, 3));
    c.beat("a", 2);   // has to give two up within 5 s
    c.advance(5s);
    EXPECT_NE(c.classic_group(), nullptr);
}

TEST_F(ConsumerGroupMigration, WithoutTheRightPolicyAMixedGroupLivesOn) {
    c.options->migration_policy = MigrationPolicy::upgrade;
    c.join("a", {"data"});
    const auto id = join_classic();
    c.leave("a");
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3");
    EXPECT_EQ(c.group().members().size(), 1u);
    EXPECT_EQ(c.classic_beat(id, 3), ErrorCode::rebalance_in_progress);   // what a had is free
    EXPECT_EQ(c.classic_join(joining(id)).generation_id, 4);
    EXPECT_EQ(partitions(c.classic_sync(syncing(id, 4)).assignment).size(), 4u);
}

TEST_F(ConsumerGroupMigration, ADowngradeThatCannotBeWrittenLeavesTheGroup) {
    c.join("a", {"data"});
    join_classic();
    const auto before = records_of(c.group());
    c.fail_writes = Error{Errc::no_space, "disk"};
    EXPECT_EQ(c.leave("a").error_code, ErrorCode::not_coordinator);
    c.fail_writes.reset();
    EXPECT_EQ(records_of(c.group()), before);
    EXPECT_EQ(c.beat("a", 2).error_code, ErrorCode::none);
}

TEST_F(ConsumerGroupMigration, AClassicStaticMemberReplacesTheLastNativeOne) {
    ConsumerCoordinator::Request native;
    native.group_id = "g";
    native.member_id = "a";
    native.instance_id = "i";
    native.rebalance_timeout_ms = 5000;
    native.subscribed_topic_names = {"data"};
    native.topic_partitions.emplace();
    c.send(native);
    const auto joined = c.classic_join(joining("", {}, "i"));
    EXPECT_EQ(joined.error_code, ErrorCode::none);
    EXPECT_EQ(joined.generation_id, 2);
    auto* classic = c.classic_group();
    ASSERT_NE(classic, nullptr);
    EXPECT_EQ(classic->generation, 2);
    EXPECT_EQ(classic->state_name(), "Stable");   // no rebalance, since its target is current
    EXPECT_THAT(partitions(c.classic_sync(syncing(joined.member_id, 2)).assignment), ElementsAre(0, 1, 2, 3));
}

TEST_F(ConsumerGroupMigration, ANativeStaticMemberReplacesAClassicOne) {
    c.join("a", {"data"});
    const auto classic = c.classic_join(joining("", {}, "i"));
    EXPECT_EQ(classic.error_code, ErrorCode::none);
    ConsumerCoordinator::Request native;
    native.group_id = "g";
    native.member_id = "b";
    native.instance_id = "i";
    native.rebalance_timeout_ms = 5000;
    native.subscribed_topic_names = {"data"};
    native.topic_partitions.emplace();
    EXPECT_EQ(c.send(native).error_code, ErrorCode::none);
    EXPECT_EQ(c.group().find(classic.member_id), nullptr);
    EXPECT_FALSE(c.member("b").is_classic());
    EXPECT_EQ(c.classic_beat(classic.member_id, classic.generation_id), ErrorCode::unknown_member_id);
}

TEST_F(ConsumerGroupMigration, ManyMayLeaveAtOnce) {
    c.join("a", {"data"});
    const auto one = join_classic();
    const auto two = join_classic();
    const auto left = c.classic_leave({one, "x", two, one});
    ASSERT_EQ(left.members.size(), 4u);
    EXPECT_EQ(left.members[0].error_code, ErrorCode::none);
    EXPECT_EQ(left.members[1].error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(left.members[2].error_code, ErrorCode::none);
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 ~8 ~7 ~5 3");
    EXPECT_EQ(c.group().members().size(), 1u);
}

TEST_F(ConsumerGroupMigration, AnEagerMemberGivesUpEverythingFirst) {
    const auto old = classic_group(assignment({0, 1, 2, 3}));
    c.join("a", {"data"});
    const auto rejoined = c.classic_join(joining(old));   // owns nothing
    EXPECT_EQ(rejoined.generation_id, 2);
    EXPECT_EQ(partitions(c.classic_sync(syncing(old, 2)).assignment).size(), 2u);
    EXPECT_EQ(c.beat("a", 2).assignment->topic_partitions.front().partitions.size(), 2u);
}

TEST_F(ConsumerGroupMigration, AMixedGroupSurvivesARestart) {
    c.join("a", {"data"});
    const auto id = join_classic();
    c.restart();
    EXPECT_EQ(c.classic_beat(id, 3), ErrorCode::none);
    EXPECT_EQ(c.beat("a", 2).member_epoch, 2);
}

}  // namespace
}  // namespace tidemark::coordinator
