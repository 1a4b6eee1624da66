#include "daemon/frame.h"

#include <gmock/gmock.h>

#include "base/bytes.h"

namespace tidemark::daemon {
namespace {

TEST(FrameCapacity, NeverBelievesMoreThanTwiceWhatArrived) {
    constexpr std::size_t huge = 100 << 20;
    EXPECT_EQ(frame_capacity(huge, 1, 0), 4096u);
    EXPECT_EQ(frame_capacity(huge, 4096, 0), 8192u);
    EXPECT_EQ(frame_capacity(huge, 60 << 20, 0), huge);
    EXPECT_EQ(frame_capacity(10, 1, 0), 10u) << "a small frame gets what it needs";
    EXPECT_EQ(frame_capacity(huge, 1, 1 << 20), std::size_t{1} << 20) << "what this client has sent before may be expected again";
}

TEST(Frame, KeepsItsBytesWhileItGrows) {
    FrameBudget budget{-1};
    Frame frame{budget};
    frame.reserve(4);
    frame.append(as_bytes("abcd"));
    frame.reserve(1 << 20);
    EXPECT_EQ(as_text(frame.bytes()), "abcd");
    EXPECT_EQ(frame.room().size(), (1u << 20) - 4);
    EXPECT_EQ(budget.held(), 1 << 20);
    frame.release();
    EXPECT_EQ(budget.held(), 0);
}

TEST(Frame, GivesItsBudgetBackOnceHoweverItIsMoved) {
    FrameBudget budget{-1};
    {
        Frame first{budget};
        first.reserve(100);
        Frame second{std::move(first)};
        Frame third;
        third = std::move(second);
        EXPECT_EQ(budget.held(), 100);
    }
    EXPECT_EQ(budget.held(), 0);
}

TEST(FrameBudget, TellsWhenThereIsRoomAgain) {
    FrameBudget budget{1000};
    int called = 0;
    const auto retry = [&] { ++called; };
    EXPECT_TRUE(budget.has_room(retry));
    budget.take(1500);
    EXPECT_FALSE(budget.has_room(retry));
    budget.give_back(400);
    EXPECT_EQ(called, 0) << "still more than the limit";
    budget.give_back(200);
    EXPECT_EQ(called, 1);
    EXPECT_TRUE(budget.has_room(retry));
    budget.take(100);
    EXPECT_FALSE(budget.has_room(retry));
    budget.set_limit(-1);
    EXPECT_EQ(called, 2);
}

}  // namespace
}  // namespace tidemark::daemon
