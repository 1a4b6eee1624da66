#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "coordinator/group/consumer/assignor.h"

namespace tidemark::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<std::int32_t>;

const Uuid t1 = Uuid::of(1), t2 = Uuid::of(2), t3 = Uuid::of(3);

/// "m" subscribes to the topics, none of whose partitions it has.
AssignmentInput::Member subscriber(std::vector<Uuid> topics, std::optional<std::string> instance = {}) { return {instance, std::move(topics), {}}; }

AssignmentInput next(AssignmentInput input, const Assignment& assigned) {
    for (auto& [id, member] : input.members) {
        if (const auto found = assigned.find(id); found != assigned.end()) member.current = found->second;
    }
    return input;
}

std::size_t count(const Partitions& partitions) {
    return std::accumulate(partitions.begin(), partitions.end(), std::size_t{0}, [](std::size_t n, const auto& entry) { return n + entry.second.size(); });
}

/// Partitions of `before` that their member does not have after.
std::size_t moved(const Assignment& before, const Assignment& after) {
    std::size_t n = 0;
    for (const auto& [id, partitions] : before) {
        for (const auto& [topic, numbers] : partitions) {
            for (const auto number : numbers) {
                const auto member = after.find(id);
                const bool kept = member != after.end() && member->second.contains(topic) && std::ranges::count(member->second.at(topic), number) > 0;
                n += kept ? 0 : 1;
            }
        }
    }
    return n;
}

TEST(RangeAssignor, GivesRunsPerTopic) {
    const auto assigned = assign_range({.members = {{"a", subscriber({t1, t2})}, {"b", subscriber({t1, t2})}}, .topics = {{t1, 3}, {t2, 2}}});
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0, 1}}, {t2, {0}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {2}}, {t2, {1}}}));
}

TEST(RangeAssignor, GivesTheSameNumbersOfTopicsThatAreAlike) {
    const auto assigned = assign_range({.members = {{"a", subscriber({t1, t2})}, {"b", subscriber({t1, t2})}, {"c", subscriber({t1, t2})}}, .topics = {{t1, 5}, {t2, 5}}});
    for (const auto& [id, partitions] : assigned) EXPECT_EQ(partitions.at(t1), partitions.at(t2)) << id;
}

TEST(RangeAssignor, LeavesTheLastWithoutWhenThereAreMoreMembersThanPartitions) {
    const auto assigned = assign_range({.members = {{"a", subscriber({t1})}, {"b", subscriber({t1})}, {"c", subscriber({t1})}}, .topics = {{t1, 2}}});
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {1}}}));
    EXPECT_THAT(assigned.at("c"), IsEmpty());
}

TEST(RangeAssignor, CountsOnlyATopicsSubscribers) {
    const auto assigned = assign_range({.members = {{"a", subscriber({t1, t2})}, {"b", subscriber({t3})}, {"c", subscriber({t2, t3})}},
                                        .topics = {{t1, 3}, {t2, 3}, {t3, 2}},
                                        .same_subscription = false});
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0, 1, 2}}, {t2, {0, 1}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t3, {0}}}));
    EXPECT_EQ(assigned.at("c"), (Partitions{{t2, {2}}, {t3, {1}}}));
}

TEST(RangeAssignor, PlacesStaticMembersFirstByInstance) {
    const auto assigned = assign_range({.members = {{"a", subscriber({t1})}, {"b", subscriber({t1}, "i2")}, {"c", subscriber({t1}, "i1")}}, .topics = {{t1, 3}}});
    EXPECT_EQ(assigned.at("c"), (Partitions{{t1, {0}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {1}}}));
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {2}}}));
}

TEST(RangeAssignor, IsNotSticky) {
    auto input = AssignmentInput{.members = {{"b", subscriber({t1})}}, .topics = {{t1, 4}}};
    input = next(input, assign_range(input));
    input.members["a"] = subscriber({t1});
    const auto assigned = assign_range(input);
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0, 1}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {2, 3}}}));
}

TEST(UniformAssignor, GivesTwoToEachOfThree) {
    const auto assigned = assign_uniform({.members = {{"a", subscriber({t1, t2})}, {"b", subscriber({t1, t2})}, {"c", subscriber({t1, t2})}}, .topics = {{t1, 3}, {t2, 3}}});
    for (const auto& [id, partitions] : assigned) EXPECT_EQ(count(partitions), 2u) << id;
}

TEST(UniformAssignor, MovesOnlyTheSurplusToANewMember) {
    auto input = AssignmentInput{.members = {{"a", subscriber({t1})}}, .topics = {{t1, 4}}};
    input = next(input, assign_uniform(input));
    input.members["b"] = subscriber({t1});
    const auto assigned = assign_uniform(input);
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0, 1}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {2, 3}}}));
}

TEST(UniformAssignor, DropsWhatNobodySubscribesToAnyMore) {
    auto input = AssignmentInput{.members = {{"a", subscriber({t1, t2})}}, .topics = {{t1, 2}, {t2, 2}}};
    input = next(input, assign_uniform(input));
    input.members["a"].topics = {t1};
    input.topics.erase(t2);
    EXPECT_EQ(assign_uniform(input).at("a"), (Partitions{{t1, {0, 1}}}));
}

TEST(UniformAssignor, GivesATopicToItsOnlySubscriberAndBalancesTheRest) {
    // Kafka's golden group c-reconciling: a had data 0 to 3, then b joined with data and other.
    const auto assigned = assign_uniform({.members = {{"a", {{}, {t1}, {{t1, {0, 1, 2, 3}}}}}, {"b", subscriber({t1, t2})}},
                                          .topics = {{t1, 4}, {t2, 1}},
                                          .same_subscription = false});
    EXPECT_EQ(assigned.at("a"), (Partitions{{t1, {0, 1, 2}}}));
    EXPECT_EQ(assigned.at("b"), (Partitions{{t1, {3}}, {t2, {0}}}));
}

TEST(Assignors, NoTopicsGiveEmptyAssignments) {
    for (const auto& assignor : assignors) {
        for (const bool same : {true, false}) {
            const auto assigned = assignor.assign({.members = {{"a", subscriber({})}}, .topics = {}, .same_subscription = same});
            EXPECT_THAT(assigned.at("a"), IsEmpty()) << assignor.name;
            EXPECT_THAT(assignor.assign({.members = {}, .topics = {}, .same_subscription = same}), IsEmpty()) << assignor.name;
        }
    }
}

TEST(Assignors, AreFoundByName) {
    EXPECT_EQ(find_assignor("range")->assign, &assign_range);
    EXPECT_EQ(find_assignor("uniform")->assign, &assign_uniform);
    EXPECT_EQ(find_assignor("sticky"), nullptr);
}

// --- what holds for every input --------------------------------------------------------------------------------------

AssignmentInput any_input(bool same_subscription) {
    const auto topics = *rc::gen::inRange(0, 6);
    const auto members = *rc::gen::inRange(1, 8);
    AssignmentInput input{.members = {}, .topics = {}, .same_subscription = same_subscription};
    std::map<Uuid, std::int32_t> sizes;
    for (int t = 0; t < topics; ++t) sizes[Uuid::of(static_cast<unsigned char>(t + 1))] = *rc::gen::inRange(1, 12);
    for (int m = 0; m < members; ++m) {
        AssignmentInput::Member member;
        if (*rc::gen::inRange(0, 4) == 0) member.instance_id = "i" + std::to_string(9 - m);
        for (const auto& [topic, size] : sizes) {
            if (same_subscription || *rc::gen::arbitrary<bool>()) member.topics.push_back(topic);
        }
        for (const auto& topic : member.topics) input.topics[topic] = sizes[topic];
        input.members["m" + std::to_string(m)] = member;
    }
    // Some old target: any partitions, some of them twice, some that do not exist.
    for (auto& [id, member] : input.members) {
        for (const auto& [topic, size] : sizes) {
            for (std::int32_t p = 0; p < size + 2; ++p) {
                if (*rc::gen::inRange(0, 3) == 0) member.current[topic].push_back(p);
            }
        }
    }
    return input;
}

/// Each partition of a subscribed topic exactly once, to a subscriber, in ascending lists that are not empty.
void assert_complete(const AssignmentInput& input, const Assignment& assigned) {
    RC_ASSERT(assigned.size() == input.members.size());
    std::map<Uuid, Numbers> all;
    for (const auto& [id, partitions] : assigned) {
        for (const auto& [topic, numbers] : partitions) {
            RC_ASSERT(!numbers.empty());
            RC_ASSERT(std::ranges::is_sorted(numbers));
            RC_ASSERT(std::ranges::count(input.members.at(id).topics, topic) == 1);
            all[topic].insert(all[topic].end(), numbers.begin(), numbers.end());
        }
    }
    RC_ASSERT(all.size() == input.topics.size());
    for (auto& [topic, numbers] : all) {
        std::ranges::sort(numbers);
        Numbers expected(static_cast<std::size_t>(input.topics.at(topic)));
        std::iota(expected.begin(), expected.end(), 0);
        RC_ASSERT(numbers == expected);
    }
}

RC_GTEST_PROP(RangeAssignor, AssignsEachPartitionOnceInRuns, ()) {
    const auto input = any_input(*rc::gen::arbitrary<bool>());
    const auto assigned = assign_range(input);
    assert_complete(input, assigned);
    for (const auto& [id, partitions] : assigned) {
        for (const auto& [topic, numbers] : partitions) RC_ASSERT(numbers.back() - numbers.front() + 1 == static_cast<std::int32_t>(numbers.size()));
    }
}

RC_GTEST_PROP(UniformAssignor, SameSubscriptionGivesEqualShares, ()) {
    const auto input = any_input(true);
    const auto assigned = assign_uniform(input);
    assert_complete(input, assigned);
    std::set<std::size_t> sizes;
    for (const auto& [id, partitions] : assigned) sizes.insert(count(partitions));
    RC_ASSERT(*sizes.rbegin() - *sizes.begin() <= 1);
}

RC_GTEST_PROP(UniformAssignor, IsStableWithoutChanges, ()) {
    const auto input = any_input(*rc::gen::arbitrary<bool>());
    const auto first = assign_uniform(input);
    RC_ASSERT(assign_uniform(next(input, first)) == first);
}

RC_GTEST_PROP(UniformAssignor, ALeavingMemberMovesOnlyItsOwn, ()) {
    auto input = any_input(true);
    const auto before = assign_uniform(input);
    RC_PRE(before.size() > 1u);
    auto left = next(input, before);
    const auto gone = left.members.begin()->first;
    left.members.erase(gone);
    auto remaining = before;
    remaining.erase(gone);
    const auto after = assign_uniform(left);
    assert_complete(left, after);
    RC_ASSERT(moved(remaining, after) == 0u);
}

RC_GTEST_PROP(UniformAssignor, ANewMemberTakesNoMoreThanItsShare, ()) {
    auto input = any_input(true);
    const auto before = assign_uniform(input);
    auto joined = next(input, before);
    joined.members["new"] = AssignmentInput::Member{{}, joined.members.begin()->second.topics, {}};
    const auto after = assign_uniform(joined);
    assert_complete(joined, after);
    RC_ASSERT(moved(before, after) == count(after.at("new")));
}

RC_GTEST_PROP(UniformAssignor, DifferentSubscriptionsLeaveNoMoveThatWouldEven, ()) {
    const auto input = any_input(false);
    const auto assigned = assign_uniform(input);
    assert_complete(input, assigned);
    for (const auto& [from, partitions] : assigned) {
        for (const auto& [topic, numbers] : partitions) {
            for (const auto& [to, member] : input.members) {
                if (std::ranges::count(member.topics, topic) == 0) continue;
                RC_ASSERT(count(partitions) <= count(assigned.at(to)) + 1);
            }
        }
    }
}

}  // namespace
}  // namespace tidemark::coordinator
