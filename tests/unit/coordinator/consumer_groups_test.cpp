// coordinator-tests-to-mirror 8 and 9: heartbeats, epochs, timers, static members, expressions.
#include "tests/unit/coordinator/consumer_fixture.h"

namespace tidemark::coordinator {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using protocol::ErrorCode;

class ConsumerGroups : public ::testing::Test {
protected:
    using Request = ConsumerCoordinator::Request;
    using Response = ConsumerCoordinator::Response;

    ConsumerCoordinator c;
    Uuid data = c.put_topic("data", 4);

    Request request(const std::string& member, std::int32_t epoch) const {
        Request made;
        made.group_id = "g";
        made.member_id = member;
        made.member_epoch = epoch;
        return made;
    }
    Request joining(const std::string& member) const {
        auto made = request(member, 0);
        made.rebalance_timeout_ms = 5000;
        made.subscribed_topic_names = {"data"};
        made.topic_partitions.emplace();
        return made;
    }
    Request joining_static(const std::string& member, const std::string& instance) const {
        auto made = joining(member);
        made.instance_id = instance;
        return made;
    }
    Request joining_regex(const std::string& member, const std::string& pattern) const {
        auto made = joining(member);
        made.subscribed_topic_names.reset();
        made.subscribed_topic_regex = pattern;
        return made;
    }
    /// a and b have two partitions each, at epoch 3.
    void two_members() {
        c.join("a", {"data"});
        c.join("b", {"data"});
        c.beat("a", 2, Partitions{{data, {0, 1, 2, 3}}});
        c.beat("a", 2, Partitions{{data, {0, 1}}});
        c.beat("b", 3);
        ASSERT_EQ(c.group().state(), ConsumerGroup::State::stable);
    }
};

std::optional<Partitions> assigned(const ConsumerCoordinator::Response& response) {
    if (!response.assignment) return std::nullopt;
    Partitions partitions;
    for (const auto& topic : response.assignment->topic_partitions) partitions[topic.topic_id] = topic.partitions;
    return partitions;
}

using OptionalPartitions = std::optional<Partitions>;

// --- 8. request checks -------------------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, RefuseWhatIsNoHeartbeat) {
    const auto code = [&](auto change, std::int16_t version = 1) {
        auto made = joining("a");
        change(made);
        return c.send(made, version).error_code;
    };
    const auto invalid = ErrorCode::invalid_request;
    EXPECT_EQ(code([](Request& r) { r.member_id = ""; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.member_id = "  "; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.member_id = "", r.member_epoch = 1; }, 0), invalid);
    EXPECT_EQ(code([](Request& r) { r.member_id = "", r.member_epoch = -1; }, 0), invalid);
    EXPECT_EQ(code([](Request& r) { r.group_id = ""; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.group_id = "  "; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.instance_id = ""; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.rack_id = "  "; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.rebalance_timeout_ms = -1; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.topic_partitions.reset(); }), invalid);
    EXPECT_EQ(code([](Request& r) { r.topic_partitions->emplace_back(); }), invalid);
    EXPECT_EQ(code([](Request& r) { r.subscribed_topic_names.reset(); }), invalid);
    EXPECT_EQ(code([](Request& r) { r.member_epoch = -2; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.member_epoch = -3, r.instance_id = "i"; }), invalid);
    EXPECT_EQ(code([](Request& r) { r.server_assignor = "sticky"; }), ErrorCode::unsupported_assignor);
    EXPECT_EQ(code([](Request& r) { r.member_epoch = 1; }), ErrorCode::group_id_not_found);
    EXPECT_EQ(code([](Request& r) { r.member_epoch = -1; }), ErrorCode::group_id_not_found);
    EXPECT_THAT(c.written, IsEmpty());
    EXPECT_EQ(c.groups.size(), 0u);
    // An empty list of names is a subscription.
    EXPECT_EQ(code([](Request& r) { r.subscribed_topic_names.emplace().clear(); }), ErrorCode::none);
}

TEST_F(ConsumerGroups, NameVersion0sMembers) {
    auto made = joining("");
    const auto response = c.send(made, 0);
    EXPECT_EQ(response.error_code, ErrorCode::none);
    EXPECT_EQ(response.member_id->size(), 22u);
    EXPECT_EQ(assigned(response), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
}

TEST_F(ConsumerGroups, AreRefusedWhileTheFeatureIsOff) {
    c.put_image([](metadata::Image& image) { image.features["group.version"] = 0; });
    EXPECT_EQ(c.send(joining("a")).error_code, ErrorCode::unsupported_version);
    EXPECT_EQ(c.consumer.describe(c, "g").error_code, ErrorCode::unsupported_version);
    c.put_image([](metadata::Image& image) { image.features["group.version"] = 1; });
    c.options->consumer_protocol = false;
    EXPECT_EQ(c.send(joining("a")).error_code, ErrorCode::unsupported_version);
}

TEST_F(ConsumerGroups, FirstJoinWritesInKafkasOrder) {
    const auto response = c.send(joining("a"));
    EXPECT_EQ(response.error_code, ErrorCode::none);
    EXPECT_EQ(response.member_id, "a");
    EXPECT_EQ(response.member_epoch, 2);
    EXPECT_EQ(response.heartbeat_interval_ms, 5000);
    EXPECT_EQ(assigned(response), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_EQ(types(c.last_written), "5 3 7 6 8");
    EXPECT_EQ(c.group().epoch(), 2);
    EXPECT_EQ(c.group().state_name(), "Stable");
}

TEST_F(ConsumerGroups, RepeatTheAssignmentToThoseWhoAskOnly) {
    c.send(joining("a"));
    EXPECT_EQ(assigned(c.beat("a", 2)), OptionalPartitions());
    auto full = request("a", 2);
    full.rebalance_timeout_ms = 5000;
    full.subscribed_topic_names = {"data"};
    full.topic_partitions.emplace();
    EXPECT_EQ(assigned(c.send(full)), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_THAT(c.last_written, IsEmpty());
    const auto again = c.send(joining("a"));
    EXPECT_EQ(again.member_epoch, 2);
    EXPECT_EQ(assigned(again), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_THAT(c.last_written, IsEmpty());
}

TEST_F(ConsumerGroups, FenceWrongEpochs) {
    two_members();
    EXPECT_EQ(c.beat("a", 4).error_code, ErrorCode::fenced_member_epoch);
    EXPECT_EQ(c.beat("a", 1).error_code, ErrorCode::fenced_member_epoch);
    EXPECT_EQ(c.beat("x", 3).error_code, ErrorCode::unknown_member_id);
    // a's previous epoch is 2: the answer that said 3 may have been lost.
    EXPECT_EQ(c.beat("a", 2).error_code, ErrorCode::fenced_member_epoch);
    EXPECT_EQ(c.beat("a", 2, Partitions{{data, {0, 2}}}).error_code, ErrorCode::fenced_member_epoch);
    const auto repeated = c.beat("a", 2, Partitions{{data, {0, 1}}});
    EXPECT_EQ(repeated.error_code, ErrorCode::none);
    EXPECT_EQ(repeated.member_epoch, 3);
    EXPECT_EQ(c.beat("a", 2, Partitions{}).error_code, ErrorCode::none);
}

TEST_F(ConsumerGroups, HaveASizeLimit) {
    c.options->consumer_size_max = 2;
    c.send(joining_static("a", "i"));
    c.send(joining("b"));
    EXPECT_EQ(c.send(joining("c")).error_code, ErrorCode::group_max_size_reached);
    EXPECT_THAT(c.last_written, IsEmpty());
    EXPECT_EQ(c.send(joining("b")).error_code, ErrorCode::none);
    c.leave("a", -2, "i");
    EXPECT_EQ(c.send(joining_static("d", "i")).error_code, ErrorCode::none);
    c.options->consumer_size_max = 1;
    EXPECT_EQ(c.beat("b", 0, Partitions{}).error_code, ErrorCode::invalid_request);   // not a join, and still a member
    EXPECT_EQ(c.send(joining("b")).error_code, ErrorCode::none);
}

TEST_F(ConsumerGroups, WaitForTopicsThatDoNotExistYet) {
    const auto first = c.join("a", {"later"});
    EXPECT_EQ(first.member_epoch, 2);
    EXPECT_EQ(assigned(first), OptionalPartitions(Partitions{}));
    const auto later = c.put_topic("later", 1);
    const auto response = c.beat("a", 2);
    EXPECT_EQ(response.member_epoch, 3);
    EXPECT_EQ(assigned(response), OptionalPartitions(Partitions{{later, {0}}}));
    EXPECT_EQ(types(c.last_written), "3 7 6 8");
}

TEST_F(ConsumerGroups, MayReadInternalTopics) {
    const auto offsets = c.put_topic("__consumer_offsets", 2);
    EXPECT_EQ(assigned(c.join("a", {"__consumer_offsets"})), OptionalPartitions(Partitions{{offsets, {0, 1}}}));
}

TEST_F(ConsumerGroups, ARefusedFirstJoinLeavesNoGroup) {
    EXPECT_EQ(c.send(joining_regex("a", "[")).error_code, ErrorCode::invalid_regular_expression);
    EXPECT_EQ(c.groups.size(), 0u);
    EXPECT_THAT(c.written, IsEmpty());
}

TEST_F(ConsumerGroups, AreAsBeforeWhenTheirRecordsCannotBeWritten) {
    two_members();
    const auto before = records_of(c.group());
    const std::tuple failures{std::pair{Errc::no_space, ErrorCode::not_coordinator}, std::pair{Errc::too_large, ErrorCode::unknown_server_error}};
    const auto fails = [&](const std::pair<Errc, ErrorCode>& failure) {
        c.fail_writes = Error{failure.first, "disk"};
        EXPECT_EQ(c.send(joining("c")).error_code, failure.second);
        EXPECT_EQ(c.leave("a").error_code, failure.second);
        EXPECT_EQ(c.send(joining_regex("b", "da.*")).error_code, failure.second);
        c.fail_writes.reset();
        EXPECT_EQ(records_of(c.group()), before);
    };
    fails(std::get<0>(failures));
    fails(std::get<1>(failures));
    // A timer tries again.
    c.fail_writes = Error{Errc::no_space, "disk"};
    c.advance(45s);
    EXPECT_EQ(c.group().members().size(), 2u);
    c.fail_writes.reset();
    c.advance(500ms);
    EXPECT_TRUE(c.group().is_empty());
}

// --- 9. epochs and reconciliation --------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, MoveAPartitionFromOneMemberToAnother) {
    c.join("a", {"data"});
    const auto joined = c.join("b", {"data"});
    EXPECT_EQ(joined.member_epoch, 3);
    EXPECT_EQ(assigned(joined), OptionalPartitions(Partitions{}));
    EXPECT_EQ(c.member("b").current.state, MemberState::unreleased_partitions);

    const auto shrunk = c.beat("a", 2);
    EXPECT_EQ(shrunk.member_epoch, 2);
    EXPECT_EQ(assigned(shrunk), OptionalPartitions(Partitions{{data, {0, 1}}}));
    EXPECT_EQ(types(c.last_written), "8");
    EXPECT_EQ(c.member("a").current.previous_epoch, 2);

    EXPECT_EQ(c.beat("a", 2, Partitions{{data, {0, 1, 3}}}).member_epoch, 2);
    EXPECT_THAT(c.last_written, IsEmpty());
    EXPECT_EQ(c.beat("b", 3).member_epoch, 3);
    EXPECT_EQ(c.member("b").current.state, MemberState::unreleased_partitions);

    EXPECT_EQ(c.beat("a", 2, Partitions{{data, {0, 1}}}).member_epoch, 3);
    const auto got = c.beat("b", 3);
    EXPECT_EQ(got.member_epoch, 3);
    EXPECT_EQ(assigned(got), OptionalPartitions(Partitions{{data, {2, 3}}}));
    EXPECT_EQ(c.member("b").current.previous_epoch, 3);
    EXPECT_EQ(c.group().state_name(), "Stable");
}

TEST_F(ConsumerGroups, RemoveAMemberThatDoesNotRevokeInTime) {
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    c.advance(4999ms);
    EXPECT_EQ(c.group().members().size(), 2u);
    c.advance(1ms);
    EXPECT_EQ(c.group().find("a"), nullptr);
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3");
    EXPECT_EQ(c.group().epoch(), 4);
    EXPECT_EQ(assigned(c.beat("b", 3)), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
}

TEST_F(ConsumerGroups, AReportInTimeKeepsTheMember) {
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    c.advance(4999ms);
    c.beat("a", 2, Partitions{{data, {0, 1}}});
    c.advance(5s);
    EXPECT_EQ(c.group().members().size(), 2u);
}

TEST_F(ConsumerGroups, AnotherSubscriptionDoesNotExtendTheTimeToRevoke) {
    c.put_topic("other", 1);
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    c.advance(3s);
    auto more = request("a", 2);
    more.subscribed_topic_names = {"data", "other"};
    EXPECT_EQ(c.send(more).error_code, ErrorCode::none);
    c.advance(2s);
    EXPECT_EQ(c.group().find("a"), nullptr);
}

TEST_F(ConsumerGroups, APartitionOnItsWayWaitsForItsHolderOnly) {
    // a holds all. b joins and should have two; before a has given any up, b leaves and d joins in its place.
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    c.leave("b");
    EXPECT_EQ(c.join("d", {"data"}).member_epoch, 5);
    EXPECT_EQ(c.member("d").current.state, MemberState::unreleased_partitions);
    c.beat("a", 2, Partitions{{data, {0, 1}}});
    EXPECT_EQ(assigned(c.beat("d", 5)), OptionalPartitions(Partitions{{data, {2, 3}}}));
}

TEST_F(ConsumerGroups, AMemberInALaterVersionsStateHasToGiveUpEverything) {
    c.join("a", {"data"});
    auto later = c.member("a").current;
    later.state = MemberState::unknown;
    const auto record = assignment_record("g", "a", later);
    ASSERT_TRUE(c.write({&record, 1}));
    EXPECT_EQ(c.beat("a", 2).error_code, ErrorCode::fenced_member_epoch);
    EXPECT_EQ(c.beat("a", 2, Partitions{{data, {0}}}).error_code, ErrorCode::fenced_member_epoch);
    const auto back = c.beat("a", 2, Partitions{});
    EXPECT_EQ(back.error_code, ErrorCode::none);
    EXPECT_EQ(back.member_epoch, 2);
    EXPECT_EQ(c.group().state_name(), "Stable");
}

TEST_F(ConsumerGroups, UnsubscribingRevokesBeforeTheEpochRises) {
    const auto other = c.put_topic("other", 1);
    EXPECT_EQ(assigned(c.join("a", {"data", "other"})), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}, {other, {0}}}));
    auto less = request("a", 2);
    less.subscribed_topic_names = {"data"};
    const auto response = c.send(less);
    EXPECT_EQ(response.member_epoch, 2);
    EXPECT_EQ(assigned(response), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_EQ(c.member("a").current.state, MemberState::unrevoked_partitions);
    EXPECT_EQ(c.beat("a", 2, Partitions{{data, {0, 1, 2, 3}}}).member_epoch, 3);
}

TEST_F(ConsumerGroups, ALeavingMemberIsForgotten) {
    two_members();
    const auto left = c.leave("a");
    EXPECT_EQ(left.member_id, "a");
    EXPECT_EQ(left.member_epoch, -1);
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3");
    EXPECT_EQ(c.group().epoch(), 4);
    EXPECT_EQ(assigned(c.beat("b", 3)), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_EQ(c.leave("a").error_code, ErrorCode::unknown_member_id);

    c.leave("b");
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3 6");
    EXPECT_EQ(c.group().epoch(), 5);
    EXPECT_EQ(c.group().assignment_epoch(), 5);
    EXPECT_EQ(c.group().state_name(), "Empty");
    EXPECT_EQ(c.group().metadata_hash(), 0);
}

TEST_F(ConsumerGroups, ComputeAssignmentsNoMoreOftenThanTheInterval) {
    c.options->assignment_interval.value = 1000;
    EXPECT_EQ(c.join("a", {"data"}).member_epoch, 2);
    const auto early = c.join("b", {"data"});
    EXPECT_EQ(early.member_epoch, 2);
    EXPECT_EQ(assigned(early), OptionalPartitions(Partitions{}));
    EXPECT_EQ(c.group().state_name(), "Assigning");
    c.advance(999ms);
    EXPECT_EQ(c.beat("b", 2).member_epoch, 2);
    c.advance(1ms);
    EXPECT_EQ(c.beat("b", 2).member_epoch, 3);
    EXPECT_EQ(c.group().state_name(), "Reconciling");
}

TEST_F(ConsumerGroups, TakeTheAssignorOfTheMajority) {
    auto a = joining("a");
    c.send(a);
    EXPECT_EQ(c.consumer.describe(c, "g").assignor_name, "uniform");
    auto b = joining("b");
    b.server_assignor = "range";
    c.send(b);
    EXPECT_EQ(c.consumer.describe(c, "g").assignor_name, "range");   // one vote is enough when the others have none
    auto change = request("a", 2);
    change.server_assignor = "range";
    const auto epoch = c.group().epoch();
    c.send(change);
    EXPECT_EQ(c.group().epoch(), epoch);   // the same assignor as before
    EXPECT_EQ(types(c.last_written), "5 8");
    c.leave("b");
    change.server_assignor = "uniform";
    const auto before = c.group().epoch();
    EXPECT_EQ(c.send(change).error_code, ErrorCode::none);
    EXPECT_EQ(c.group().epoch(), before + 1);
}

TEST_F(ConsumerGroups, CountTheVotesForAnAssignor) {
    const auto after = [&](const std::string& member, const std::string& wanted) {
        auto made = joining(member);
        made.server_assignor = wanted;
        c.send(made);
        return c.consumer.describe(c, "g").assignor_name;
    };
    EXPECT_EQ(after("a", "uniform"), "uniform");
    after("b", "range");   // either
    EXPECT_EQ(after("c", "range"), "range");
    after("d", "uniform");
    EXPECT_EQ(after("e", "uniform"), "uniform");
}

TEST_F(ConsumerGroups, FollowTheirTopics) {
    c.join("a", {"data"});
    c.put_topic("data", 6);
    const auto grown = c.beat("a", 2);
    EXPECT_EQ(grown.member_epoch, 3);
    EXPECT_EQ(assigned(grown), OptionalPartitions(Partitions{{data, {0, 1, 2, 3, 4, 5}}}));
    c.put_topic("unrelated", 1);
    EXPECT_EQ(c.beat("a", 3).member_epoch, 3);
    EXPECT_THAT(c.last_written, IsEmpty());
    c.delete_topic("data");
    c.beat("a", 3);
    EXPECT_EQ(c.group().epoch(), 4);
    EXPECT_EQ(assigned(c.beat("a", 3, Partitions{})), OptionalPartitions());
    EXPECT_EQ(c.group().state_name(), "Stable");
    EXPECT_THAT(c.member("a").current.assigned, IsEmpty());
}

TEST_F(ConsumerGroups, ARestartChangesNothing) {
    two_members();
    c.restart();
    EXPECT_EQ(c.beat("a", 3).member_epoch, 3);
    EXPECT_THAT(c.last_written, IsEmpty());
    EXPECT_EQ(c.group().state_name(), "Stable");
    // Sessions begin anew, also for those who never come back.
    c.advance(44999ms);
    c.beat("a", 3);
    EXPECT_EQ(c.group().members().size(), 2u);
    c.advance(1ms);
    EXPECT_EQ(c.group().members().size(), 1u);
}

TEST_F(ConsumerGroups, ARestartKeepsTheTimeToRevoke) {
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    c.restart();
    c.advance(5s);
    EXPECT_EQ(c.group().find("a"), nullptr);
}

TEST_F(ConsumerGroups, SessionsTimeOut) {
    c.join("a", {"data"});
    c.advance(44999ms);
    c.beat("a", 2);
    c.advance(44999ms);
    EXPECT_EQ(c.group().members().size(), 1u);
    c.advance(1ms);
    EXPECT_TRUE(c.group().is_empty());
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3 6");
}

TEST_F(ConsumerGroups, HaveSettingsOfTheirOwn) {
    c.join("a", {"data"});
    c.put_group_config("g", "consumer.session.timeout.ms", "50000");
    c.put_group_config("g", "consumer.heartbeat.interval.ms", "6000");
    EXPECT_EQ(c.beat("a", 2).heartbeat_interval_ms, 6000);
    c.advance(49999ms);
    EXPECT_EQ(c.group().members().size(), 1u);
    c.put_group_config("g", "consumer.session.timeout.ms", "70000");   // clamped to 60000
    c.beat("a", 2);
    c.advance(59999ms);
    EXPECT_EQ(c.group().members().size(), 1u);
    c.advance(1ms);
    EXPECT_TRUE(c.group().is_empty());
    c.put_group_config("g", "consumer.assignment.interval.ms", "2000");
    EXPECT_EQ(c.join("a", {"data"}).member_epoch, 4);
    EXPECT_EQ(c.join("b", {"data"}).member_epoch, 4);
    c.advance(2s);
    EXPECT_EQ(c.beat("b", 4).member_epoch, 5);
}

TEST_F(ConsumerGroups, AClientThatSubscribesToAnotherTopicGetsIt) {
    const auto other = c.put_topic("other", 1);
    c.join("a", {"data"});
    auto change = request("a", 2);
    change.subscribed_topic_names = {"other", "data", "other"};
    const auto response = c.send(change);
    EXPECT_EQ(response.member_epoch, 3);
    EXPECT_EQ(assigned(response), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}, {other, {0}}}));
    EXPECT_THAT(c.member("a").facts.topics, ElementsAre("data", "other"));
}

// --- static members ----------------------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, AStaticMemberComesBackAsAnother) {
    c.send(joining_static("a", "i"));
    EXPECT_EQ(c.send(joining_static("b", "i")).error_code, ErrorCode::unreleased_instance_id);

    const auto away = c.leave("a", -2, "i");
    EXPECT_EQ(away.member_epoch, -2);
    EXPECT_EQ(types(c.last_written), "8");
    EXPECT_EQ(c.group().epoch(), 2);
    EXPECT_EQ(c.group().state_name(), "Reconciling");
    EXPECT_EQ(c.member("a").current.assigned, (HeldPartitions{{data, {{0, 0}, {1, 0}, {2, 0}, {3, 0}}}}));
    // Its partitions stay its own.
    EXPECT_EQ(assigned(c.join("d", {"data"})), OptionalPartitions(Partitions{}));
    c.leave("d");

    const auto back = c.send(joining_static("b", "i"));
    EXPECT_EQ(back.error_code, ErrorCode::none);
    EXPECT_EQ(assigned(back), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_EQ(c.group().find("a"), nullptr);
    // The old one is nobody any more.
    EXPECT_EQ(c.beat("a", 2).error_code, ErrorCode::unknown_member_id);
    auto old = request("a", 2);
    old.instance_id = "i";
    EXPECT_EQ(c.send(old).error_code, ErrorCode::fenced_instance_id);
    old.instance_id = "j";
    EXPECT_EQ(c.send(old).error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(c.leave("a", -1, "i").error_code, ErrorCode::fenced_instance_id);
}

TEST_F(ConsumerGroups, ATakeoverAloneIsNoNewEpoch) {
    c.send(joining_static("a", "i"));
    c.leave("a", -2, "i");
    const auto back = c.send(joining_static("b", "i"));
    EXPECT_EQ(back.member_epoch, 2);
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 5 7 8 8");
    EXPECT_EQ(c.group().epoch(), 2);
    EXPECT_EQ(c.group().state_name(), "Stable");
}

TEST_F(ConsumerGroups, ATakeoverMayBeByTheSameMemberId) {
    c.send(joining_static("a", "i"));
    c.leave("a", -2, "i");
    const auto back = c.send(joining_static("a", "i"));
    EXPECT_EQ(back.member_epoch, 2);
    EXPECT_EQ(assigned(back), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    c.advance(44999ms);
    EXPECT_EQ(c.group().members().size(), 1u);
}

TEST_F(ConsumerGroups, ATakeoverWithAnotherSubscriptionIsANewEpoch) {
    const auto other = c.put_topic("other", 1);
    c.send(joining_static("a", "i"));
    c.leave("a", -2, "i");
    auto changed = joining_static("b", "i");
    changed.subscribed_topic_names = {"data", "other"};
    const auto back = c.send(changed);
    EXPECT_EQ(back.member_epoch, 3);
    EXPECT_EQ(assigned(back), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}, {other, {0}}}));
}

TEST_F(ConsumerGroups, AStaticMemberThatStaysAwayIsRemoved) {
    c.send(joining_static("a", "i"));
    c.leave("a", -2, "i");
    c.advance(44999ms);
    EXPECT_EQ(c.group().members().size(), 1u);
    c.advance(1ms);
    EXPECT_TRUE(c.group().is_empty());
    EXPECT_EQ(c.group().epoch(), 3);
}

TEST_F(ConsumerGroups, AStaticMemberMayLeaveForGood) {
    c.send(joining_static("a", "i"));
    EXPECT_EQ(c.leave("a", -1, "i").member_epoch, -1);
    EXPECT_EQ(c.group().epoch(), 3);
    EXPECT_EQ(c.send(joining_static("b", "i")).member_epoch, 4);
}

// --- expressions -------------------------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, ResolveExpressionsBesideTheHeartbeat) {
    const auto first = c.send(joining_regex("a", "da.*"));
    EXPECT_EQ(first.member_epoch, 1);
    EXPECT_EQ(assigned(first), OptionalPartitions(Partitions{}));
    EXPECT_EQ(types(c.last_written), "5 8");
    c.advance(0ms);
    EXPECT_EQ(types(c.last_written), "16 3");
    const auto second = c.beat("a", 1);
    EXPECT_EQ(second.member_epoch, 2);
    EXPECT_EQ(assigned(second), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}}));
    EXPECT_EQ(types(c.last_written), "7 6 8");
}

TEST_F(ConsumerGroups, SeeNewMatchesAfterTenSeconds) {
    c.send(joining_regex("a", "da.*"));
    c.advance(0ms);
    c.beat("a", 1);
    const auto date = c.put_topic("date", 1);
    c.advance(10s);
    c.beat("a", 2);
    c.advance(0ms);
    EXPECT_THAT(c.last_written, IsEmpty());
    c.advance(1ms);
    c.beat("a", 2);
    c.advance(0ms);
    EXPECT_EQ(types(c.last_written), "16 3");
    EXPECT_EQ(assigned(c.beat("a", 2)), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}, {date, {0}}}));
}

TEST_F(ConsumerGroups, DoNotResolveWithoutNeed) {
    c.send(joining_regex("a", "da.*"));
    c.advance(0ms);
    c.beat("a", 1);
    for (int i = 0; i < 5; ++i) {
        c.advance(30s);
        c.beat("a", 2);
        c.advance(0ms);
        EXPECT_THAT(c.last_written, IsEmpty());
    }
}

TEST_F(ConsumerGroups, ShareAResolutionAmongMembers) {
    c.send(joining_regex("a", "da.*"));
    c.advance(0ms);
    c.beat("a", 1);
    const auto second = c.send(joining_regex("b", "da.*"));
    EXPECT_EQ(second.member_epoch, 3);   // its topics are known
    EXPECT_EQ(types(c.last_written), "5 3 7 7 6 8");
    c.leave("a");
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 3");
    c.leave("b");
    EXPECT_EQ(types(c.last_written), "~8 ~7 ~5 ~16 3 6");
}

TEST_F(ConsumerGroups, ForgetAnExpressionThatNobodyUses) {
    c.send(joining_regex("a", "da.*"));
    c.advance(0ms);
    c.beat("a", 1);
    auto change = request("a", 2);
    change.subscribed_topic_regex = "";
    change.subscribed_topic_names = {"data"};
    c.send(change);
    EXPECT_EQ(types(c.last_written), "5 ~16 3 6 8");   // its partitions are the same
    EXPECT_EQ(c.member("a").current.epoch, 3);
    EXPECT_THAT(c.group().regexes(), IsEmpty());
}

TEST_F(ConsumerGroups, UniteNamesAndExpressions) {
    const auto other = c.put_topic("other", 1);
    auto both = joining_regex("a", "da.*");
    both.subscribed_topic_names = {"other"};
    EXPECT_EQ(assigned(c.send(both)), OptionalPartitions(Partitions{{other, {0}}}));
    c.advance(0ms);
    EXPECT_EQ(assigned(c.beat("a", 2)), OptionalPartitions(Partitions{{data, {0, 1, 2, 3}}, {other, {0}}}));
}

TEST_F(ConsumerGroups, AnExpressionWithoutMatchesIsResolvedOnce) {
    c.send(joining_regex("a", "nothing"));
    c.advance(0ms);
    EXPECT_EQ(types(c.last_written), "16");
    c.advance(11s);
    c.beat("a", 1);
    c.advance(0ms);
    EXPECT_THAT(c.last_written, IsEmpty());
}

TEST_F(ConsumerGroups, AnInvalidExpressionChangesNothing) {
    c.join("a", {"data"});
    auto change = request("a", 2);
    change.subscribed_topic_regex = "(";
    EXPECT_EQ(c.send(change).error_code, ErrorCode::invalid_regular_expression);
    EXPECT_THAT(c.last_written, IsEmpty());
    EXPECT_EQ(c.member("a").facts.regex, "");
}

// --- describe ----------------------------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, DescribeThemselves) {
    EXPECT_EQ(c.consumer.describe(c, "").error_code, ErrorCode::invalid_group_id);
    EXPECT_EQ(c.consumer.describe(c, "x").error_code, ErrorCode::group_id_not_found);
    EXPECT_EQ(c.consumer.describe(c, "x").error_message, "Group x not found.");
    c.groups.put(std::make_unique<ClassicGroup>("classic", c.now()));
    EXPECT_EQ(c.consumer.describe(c, "classic").error_message, "Group classic is not a consumer group.");

    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);   // has to give two up
    const auto described = c.consumer.describe(c, "g");
    EXPECT_EQ(described.group_state, "Reconciling");
    EXPECT_EQ(described.group_epoch, 3);
    EXPECT_EQ(described.assignment_epoch, 3);
    ASSERT_EQ(described.members.size(), 2u);
    const auto& a = described.members[0];
    EXPECT_EQ(a.member_id, "a");
    EXPECT_EQ(a.client_id, "client");
    EXPECT_EQ(a.client_host, "/127.0.0.1");
    EXPECT_EQ(a.member_epoch, 2);
    EXPECT_EQ(a.member_type, 1);
    ASSERT_EQ(a.assignment.topic_partitions.size(), 1u);
    EXPECT_EQ(a.assignment.topic_partitions[0].topic_name, "data");
    EXPECT_THAT(a.assignment.topic_partitions[0].partitions, ElementsAre(0, 1, 2, 3));   // what it still holds
    EXPECT_THAT(a.target_assignment.topic_partitions[0].partitions, ElementsAre(0, 1));
    EXPECT_THAT(described.members[1].assignment.topic_partitions, IsEmpty());
}

// --- offsets (5) -------------------------------------------------------------------------------------------------------

TEST_F(ConsumerGroups, CheckCommits) {
    two_members();   // a: 0 and 1 since epoch 2; b: 2 and 3 since epoch 3
    const auto code = [&](const std::string& member, std::int32_t epoch, std::vector<CommittedPartition> partitions, std::int16_t version = 9, bool transactional = false) {
        return c.group().check_commit({.claim = {.member_id = member, .instance_id = {}, .epoch = epoch}, .version = version, .transactional = transactional, .partitions = partitions});
    };
    const CommittedPartition p0{data, "data", 0}, p2{data, "data", 2};
    EXPECT_EQ(code("a", 3, {p0}), ErrorCode::none);
    EXPECT_EQ(code("a", 3, {p2}), ErrorCode::none);                              // of another member
    EXPECT_EQ(code("x", 3, {p0}), ErrorCode::unknown_member_id);
    EXPECT_EQ(code("", -1, {p0}), ErrorCode::unknown_member_id);
    EXPECT_EQ(code("a", 4, {p0}), ErrorCode::stale_member_epoch);
    EXPECT_EQ(code("a", 2, {p0}), ErrorCode::none);                              // held all the time
    EXPECT_EQ(code("a", 1, {p0}), ErrorCode::stale_member_epoch);
    EXPECT_EQ(code("a", 2, {p0, p2}), ErrorCode::stale_member_epoch);            // one given away: the whole request
    EXPECT_EQ(code("b", 2, {p2}), ErrorCode::stale_member_epoch);
    EXPECT_EQ(code("a", 3, {p0}, 8), ErrorCode::unsupported_version);
    EXPECT_EQ(code("a", 3, {p0}, 5, true), ErrorCode::none);
    c.leave("a");
    c.leave("b");
    EXPECT_EQ(code("whoever", -1, {p0}), ErrorCode::none);
    EXPECT_EQ(code("a", 3, {p0}), ErrorCode::unknown_member_id);
}

TEST_F(ConsumerGroups, ACommitForWhatIsBeingRevokedIsFine) {
    c.join("a", {"data"});
    c.join("b", {"data"});
    c.beat("a", 2);
    const std::vector<CommittedPartition> revoked{{data, "data", 3}};
    EXPECT_EQ(c.group().check_commit({.claim = {.member_id = "a", .instance_id = {}, .epoch = 2}, .version = 9, .partitions = revoked}), ErrorCode::none);
}

TEST_F(ConsumerGroups, CheckFetches) {
    two_members();
    const auto code = [&](const std::string& member, std::int32_t epoch) { return c.group().check_fetch({.member_id = member, .instance_id = {}, .epoch = epoch}); };
    EXPECT_EQ(code("", -1), ErrorCode::none);
    EXPECT_EQ(code("a", 3), ErrorCode::none);
    EXPECT_EQ(code("a", 2), ErrorCode::stale_member_epoch);
    EXPECT_EQ(code("x", 3), ErrorCode::unknown_member_id);
}

TEST_F(ConsumerGroups, KnowTheirTopics) {
    auto both = joining_regex("a", "da.*");
    both.subscribed_topic_names = {"other"};
    c.send(both);
    c.advance(0ms);
    EXPECT_TRUE(c.group().is_subscribed("data"));
    EXPECT_TRUE(c.group().is_subscribed("other"));
    EXPECT_FALSE(c.group().is_subscribed("date"));
    EXPECT_EQ(c.group().offset_expiry().base, OffsetExpiry::Base::commit_time);
    EXPECT_EQ(c.group().type(), GroupType::consumer);
    EXPECT_EQ(c.group().protocol_type(), "consumer");
}

}  // namespace
}  // namespace tidemark::coordinator
