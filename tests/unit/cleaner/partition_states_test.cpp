#include "cleaner/partition_states.h"

#include <gtest/gtest.h>

#include <thread>

namespace tidemark::cleaner {
namespace {

const TopicPartition p{"t", 0};

TEST(PartitionStates, OneWorkerAtATime) {
    PartitionStates states;
    EXPECT_TRUE(states.begin(p));
    EXPECT_FALSE(states.begin(p));
    EXPECT_FALSE(states.pause_if_idle(p));
    EXPECT_EQ(states.state(p), WorkState::in_progress);
    EXPECT_TRUE(states.done(p));
    EXPECT_EQ(states.state(p), std::nullopt);
}

TEST(PartitionStates, PausesAreCounted) {
    PartitionStates states;
    EXPECT_TRUE(states.pause_if_idle(p));                 // retention
    EXPECT_TRUE(states.abort_and_pause(p).has_value());   // truncation
    EXPECT_TRUE(states.abort_and_pause(p).has_value());   // removal
    EXPECT_FALSE(states.begin(p));
    EXPECT_TRUE(states.resume(p).has_value());
    EXPECT_TRUE(states.resume(p).has_value());
    EXPECT_EQ(states.state(p), WorkState::paused);
    EXPECT_TRUE(states.resume(p).has_value());
    EXPECT_EQ(states.state(p), std::nullopt);
    EXPECT_EQ(states.resume(p).error().code, Errc::invalid_argument);
    EXPECT_TRUE(states.begin(p));
}

TEST(PartitionStates, AbortWaitsForTheWorkerToNotice) {
    PartitionStates states;
    ASSERT_TRUE(states.begin(p));
    std::jthread truncation([&] { EXPECT_TRUE(states.abort_and_pause(p).has_value()); });
    while (!states.is_aborted(p)) std::this_thread::yield();
    EXPECT_EQ(states.abort_and_pause(p).error().code, Errc::invalid_argument);   // somebody waits already
    EXPECT_FALSE(states.done(p));                                                 // the result does not count
    truncation.join();
    EXPECT_EQ(states.state(p), WorkState::paused);
    EXPECT_TRUE(states.resume(p).has_value());
    EXPECT_TRUE(states.begin(p));
}

TEST(PartitionStatesDeathTest, DoneWithoutBeginIsABug) {
    PartitionStates states;
    EXPECT_DEATH(states.done(p), "entries_");
    ASSERT_TRUE(states.pause_if_idle(p));
    EXPECT_DEATH(states.done(p), "paused");
}

}  // namespace
}  // namespace tidemark::cleaner
