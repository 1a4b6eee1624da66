// Records of consumer groups that a load meets: in an order that nobody writes, and of other writers than this one.
#include <gtest/gtest.h>

#include "protocol/messages/consumer_group_current_member_assignment_key.h"
#include "protocol/messages/consumer_group_current_member_assignment_value.h"
#include "protocol/messages/consumer_group_metadata_key.h"
#include "protocol/messages/consumer_group_target_assignment_metadata_key.h"
#include "tests/unit/coordinator/consumer_fixture.h"

namespace tidemark::coordinator {
namespace {

using AssignmentKey = protocol::ConsumerGroupCurrentMemberAssignmentKey;
using AssignmentValue = protocol::ConsumerGroupCurrentMemberAssignmentValue;

const Uuid topic = Uuid::of(7);

class ConsumerGroupReplay : public ::testing::Test {
protected:
    Result<> replay(const Record& record) {
        return world.consumer.replay(*protocol::record_type_of(record.key), {.key = record.key, .value = record.value ? std::optional<Bytes>{*record.value} : std::nullopt});
    }
    void loads(const Record& record) {
        const auto result = replay(record);
        EXPECT_TRUE(result.has_value()) << result.error().message();
    }
    void fails(const Record& record) {
        const auto result = replay(record);
        ASSERT_FALSE(result.has_value());
        EXPECT_EQ(result.error().code, Errc::corrupt);
    }
    /// Group "g" at epoch 3 with its one member "a".
    void make_group() {
        MemberFacts facts;
        facts.topics = {"data"};
        facts.rebalance_timeout_ms = 5000;
        loads(member_record("g", "a", facts));
        loads(epoch_record("g", 3, 1));
        loads(target_record("g", "a", {{topic, {0, 1}}}));
        loads(assignment_epoch_record("g", 3, Timestamp{1}));
        loads(assignment_record("g", "a", {.epoch = 3, .previous_epoch = 2, .assigned = {{topic, {{0, 3}, {1, 3}}}}, .pending_revocation = {}}));
    }
    /// What the member holds after a type 8 record of that epoch, its partitions 0 and 1 with `epochs`.
    HeldPartitions held(std::int32_t member_epoch, std::optional<std::vector<std::int32_t>> epochs) {
        AssignmentValue value;
        value.member_epoch = member_epoch;
        auto& entry = value.assigned_partitions.emplace_back();
        entry.topic_id = topic;
        entry.partitions = {0, 1};
        entry.assignment_epochs = std::move(epochs);
        loads(record_of(AssignmentKey{.group_id = "g", .member_id = "a"}, value, 0));
        return world.member("a").current.assigned;
    }

    const Record group_tombstone = tombstone_of(protocol::ConsumerGroupMetadataKey{.group_id = "g"});
    const Record assignment_epoch_tombstone = tombstone_of(protocol::ConsumerGroupTargetAssignmentMetadataKey{.group_id = "g"});
    ConsumerCoordinator world;
};

TEST_F(ConsumerGroupReplay, TombstonesInTheirOrderRemoveTheGroup) {
    make_group();
    for (const auto& record : {assignment_tombstone("g", "a"), target_tombstone("g", "a"), assignment_epoch_tombstone, member_tombstone("g", "a"), group_tombstone}) loads(record);
    EXPECT_EQ(world.groups.find("g"), nullptr);
}

TEST_F(ConsumerGroupReplay, AMemberGoesAfterItsAssignmentAndItsTarget) {
    make_group();
    fails(member_tombstone("g", "a"));
    loads(target_tombstone("g", "a"));
    fails(member_tombstone("g", "a"));
    loads(target_record("g", "a", {{topic, {0}}}));
    loads(assignment_tombstone("g", "a"));
    fails(member_tombstone("g", "a"));
    EXPECT_NE(world.group().find("a"), nullptr);
    loads(target_tombstone("g", "a"));
    loads(member_tombstone("g", "a"));
    EXPECT_EQ(world.group().find("a"), nullptr);
}

TEST_F(ConsumerGroupReplay, AGroupGoesAfterItsMembersAndItsTarget) {
    make_group();
    fails(group_tombstone);
    fails(assignment_epoch_tombstone);
    loads(assignment_tombstone("g", "a"));
    loads(target_tombstone("g", "a"));
    fails(group_tombstone);
    loads(member_tombstone("g", "a"));
    fails(group_tombstone);   // the target's epoch is still there
    EXPECT_NE(world.groups.find("g"), nullptr);
}

TEST_F(ConsumerGroupReplay, TombstonesOfWhatIsNotThereAreIgnored) {
    const auto all = {assignment_tombstone("g", "a"), target_tombstone("g", "a"), assignment_epoch_tombstone, member_tombstone("g", "a"), regex_tombstone("g", "x"), group_tombstone};
    for (const auto& record : all) loads(record);
    EXPECT_EQ(world.groups.find("g"), nullptr);
    make_group();
    for (const auto& record : {assignment_tombstone("g", "b"), target_tombstone("g", "b"), member_tombstone("g", "b"), regex_tombstone("g", "x")}) loads(record);
    EXPECT_NE(world.group().find("a"), nullptr);
    EXPECT_EQ(world.group().find("b"), nullptr);
}

TEST_F(ConsumerGroupReplay, PartitionsWithoutEpochsHaveTheMembers) {
    make_group();
    const auto both = [](std::int32_t first, std::int32_t second) { return HeldPartitions{{topic, {{0, first}, {1, second}}}}; };
    EXPECT_EQ(held(5, std::vector<std::int32_t>{4, 5}), both(4, 5));
    EXPECT_EQ(held(5, std::nullopt), both(5, 5));
    EXPECT_EQ(held(5, std::vector<std::int32_t>{4}), both(5, 5)) << "of another length";
    EXPECT_EQ(held(leaving_static_epoch, std::nullopt), both(0, 0)) << "a static member that is away";
}

}  // namespace
}  // namespace tidemark::coordinator
