// group-coordinator 6.4. Topics t1 and t2; "held" are the partitions that somebody holds, the member itself included.
#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/group/consumer/reconciliation.h"

namespace tidemark::coordinator {
namespace {

const Uuid t1 = Uuid::of(1), t2 = Uuid::of(2);

struct Step {
    MemberAssignment current;
    Partitions target;
    std::int32_t target_epoch = 11;
    std::set<Uuid> subscribed = {t1, t2};
    bool subscription_changed = false;
    Partitions held_by_others = {};
    std::optional<Partitions> owned = {};

    Result<MemberAssignment> result() const {
        return reconcile({.current = current,
                          .target = target,
                          .target_epoch = target_epoch,
                          .subscribed = subscribed,
                          .subscription_changed = subscription_changed,
                          .is_held = [this](const Uuid& topic, std::int32_t partition) {
                              const auto found = held_by_others.find(topic);
                              return holds(current.assigned, topic, partition) || holds(current.pending_revocation, topic, partition) ||
                                     (found != held_by_others.end() && std::ranges::count(found->second, partition) > 0);
                          },
                          .owned = owned});
    }
};

MemberAssignment member(std::int32_t epoch, std::int32_t previous, MemberState state, HeldPartitions assigned, HeldPartitions pending = {}) {
    return {epoch, previous, state, std::move(assigned), std::move(pending)};
}

constexpr auto stable = MemberState::stable;
constexpr auto unrevoked = MemberState::unrevoked_partitions;
constexpr auto unreleased = MemberState::unreleased_partitions;

void expect(const Step& step, const MemberAssignment& expected) {
    const auto result = step.result();
    ASSERT_TRUE(result.has_value()) << result.error().message();
    EXPECT_EQ(*result, expected);
}

TEST(Reconciliation, NothingToDoAtTheTarget) {
    const auto current = member(11, 10, stable, {{t1, {{0, 11}}}});
    expect({.current = current, .target = {{t1, {0}}}}, current);
}

TEST(Reconciliation, StableTakesWhatIsFree) {
    expect({.current = member(10, 9, stable, {{t1, {{0, 9}}}}), .target = {{t1, {0, 1}}, {t2, {3}}}},
           member(11, 10, stable, {{t1, {{0, 9}, {1, 11}}}, {t2, {{3, 11}}}}));
}

TEST(Reconciliation, StableWithoutDifferenceOnlyRisesInEpoch) {
    expect({.current = member(10, 10, stable, {{t1, {{0, 9}}}}), .target = {{t1, {0}}}}, member(11, 10, stable, {{t1, {{0, 9}}}}));
}

TEST(Reconciliation, StableWaitsForWhatOthersHold) {
    expect({.current = member(10, 9, stable, {{t1, {{0, 9}}}}), .target = {{t1, {0, 1, 2}}}, .held_by_others = {{t1, {1}}}},
           member(11, 10, unreleased, {{t1, {{0, 9}, {2, 11}}}}));
}

TEST(Reconciliation, RevocationComesFirstAtTheOldEpoch) {
    expect({.current = member(10, 9, stable, {{t1, {{0, 9}, {1, 10}}}}), .target = {{t1, {0}}, {t2, {0}}}},
           member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{1, 10}}}}));
}

TEST(Reconciliation, NothingIsRevokedThatTheMemberDoesNotOwn) {
    expect({.current = member(10, 9, stable, {{t1, {{0, 9}, {1, 10}}}}), .target = {{t1, {0}}, {t2, {0}}}, .owned = Partitions{{t1, {0}}}},
           member(11, 10, stable, {{t1, {{0, 9}}}, {t2, {{0, 11}}}}));
}

TEST(Reconciliation, UnrevokedStaysUntilItReportsThatAllIsGone) {
    const auto current = member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{1, 10}, {2, 10}}}});
    expect({.current = current, .target = {{t1, {0}}}}, current);
    expect({.current = current, .target = {{t1, {0}}}, .owned = Partitions{{t1, {0, 2}}}}, current);
    expect({.current = current, .target = {{t1, {0}}}, .owned = Partitions{{t1, {0}}}}, member(11, 10, stable, {{t1, {{0, 9}}}}));
    expect({.current = current, .target = {{t1, {0}}}, .owned = Partitions{}}, member(11, 10, stable, {{t1, {{0, 9}}}}));
}

TEST(Reconciliation, UnrevokedToUnreleased) {
    expect({.current = member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{1, 10}}}}), .target = {{t1, {0, 5}}}, .held_by_others = {{t1, {5}}}, .owned = Partitions{{t1, {0}}}},
           member(11, 10, unreleased, {{t1, {{0, 9}}}}));
}

TEST(Reconciliation, UnrevokedToUnrevokedOnANewerTarget) {
    expect({.current = member(10, 10, unrevoked, {{t1, {{0, 9}, {3, 9}}}}, {{t1, {{1, 10}}}}), .target = {{t1, {0}}}, .target_epoch = 12, .owned = Partitions{{t1, {0, 3}}}},
           member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{3, 9}}}}));
}

TEST(Reconciliation, WhatItGivesUpItselfIsFreeForIt) {
    // The newer target gives partition 1 back.
    expect({.current = member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{1, 10}}}}), .target = {{t1, {0, 1}}}, .target_epoch = 12, .owned = Partitions{{t1, {0}}}},
           member(12, 10, stable, {{t1, {{0, 9}, {1, 12}}}}));
}

TEST(Reconciliation, UnreleasedTakesWhatHasBecomeFree) {
    const auto current = member(11, 10, unreleased, {{t1, {{0, 9}}}});
    expect({.current = current, .target = {{t1, {0, 1, 2}}}, .held_by_others = {{t1, {2}}}}, member(11, 11, unreleased, {{t1, {{0, 9}, {1, 11}}}}));
    expect({.current = current, .target = {{t1, {0, 1, 2}}}}, member(11, 11, stable, {{t1, {{0, 9}, {1, 11}, {2, 11}}}}));
}

TEST(Reconciliation, ASubscriptionChangeRevokesAtTheTargetsEpoch) {
    expect({.current = member(11, 10, stable, {{t1, {{0, 9}}}, {t2, {{0, 9}}}}), .target = {{t1, {0}}, {t2, {0}}}, .subscribed = {t1}, .subscription_changed = true},
           member(11, 11, unrevoked, {{t1, {{0, 9}}}}, {{t2, {{0, 9}}}}));
    // Without a partition of the topic there is nothing to give up.
    const auto current = member(11, 10, stable, {{t1, {{0, 9}}}});
    expect({.current = current, .target = {{t1, {0}}}, .subscribed = {t1}, .subscription_changed = true}, current);
}

TEST(Reconciliation, ASubscriptionChangeAddsToARevocationUnderWay) {
    expect({.current = member(10, 10, unrevoked, {{t1, {{0, 9}}}, {t2, {{0, 9}}}}, {{t1, {{1, 10}}}}),
            .target = {{t1, {0}}, {t2, {0}}},
            .subscribed = {t1},
            .subscription_changed = true,
            .owned = Partitions{{t1, {0, 1}}, {t2, {0}}}},
           member(10, 10, unrevoked, {{t1, {{0, 9}}}}, {{t1, {{1, 10}}}, {t2, {{0, 9}}}}));
}

TEST(Reconciliation, TheTargetCountsOnlyForSubscribedTopics) {
    expect({.current = member(10, 9, stable, {}), .target = {{t1, {0}}, {t2, {0}}}, .subscribed = {t2}}, member(11, 10, stable, {{t2, {{0, 11}}}}));
}

TEST(Reconciliation, AnUnknownStateIsLeftOnlyWithoutPartitions) {
    const auto current = member(10, 9, MemberState::unknown, {{t1, {{0, 9}, {1, 9}}}});
    EXPECT_FALSE((Step{.current = current, .target = {{t1, {0}}}}.result().has_value()));
    EXPECT_FALSE((Step{.current = current, .target = {{t1, {0}}}, .owned = Partitions{{t1, {0}}}}.result().has_value()));
    expect({.current = current, .target = {{t1, {0}}}, .owned = Partitions{}}, member(11, 10, stable, {{t1, {{0, 9}}}}));
}

TEST(Reconciliation, ANewMemberWithoutPartitionsHasPreviousEpochZero) {
    // Golden group c-two, member-b: everything is still held by member-a.
    expect({.current = {}, .target = {{t1, {2, 3}}}, .target_epoch = 3, .held_by_others = {{t1, {2, 3}}}}, member(3, 0, unreleased, {}));
}

}  // namespace
}  // namespace tidemark::coordinator
