#include "daemon/delayed_fetch.h"

#include <gmock/gmock.h>

#include <thread>

#include "base/mutex.h"

namespace tidemark::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Woken final : DelayedFetches::Waiter {
    void wake(std::size_t index) override {
        MutexLock lock(mutex);
        indexes.push_back(index);
    }
    std::vector<std::size_t> take() {
        MutexLock lock(mutex);
        return std::exchange(indexes, {});
    }
    Mutex mutex;
    std::vector<std::size_t> indexes GUARDED_BY(mutex);
};

const std::vector<TopicPartition> two{{"a", 0}, {"b", 3}};

TEST(DelayedFetches, WakesWhoWaitsForThePartition) {
    DelayedFetches fetches;
    const auto waiter = std::make_shared<Woken>();
    fetches.wait(waiter, two);
    EXPECT_EQ(fetches.waiting(), 1u);
    fetches.end_offset_moved({"b", 3});
    EXPECT_THAT(waiter->take(), ElementsAre(1u));
    fetches.start_offset_moved({"a", 0});
    fetches.log_gone({"b", 3});
    EXPECT_THAT(waiter->take(), ElementsAre(0u, 1u));
    fetches.end_offset_moved({"b", 4});
    EXPECT_THAT(waiter->take(), IsEmpty());
}

TEST(DelayedFetches, ForgottenOnesSleep) {
    DelayedFetches fetches;
    const auto gone = std::make_shared<Woken>(), stays = std::make_shared<Woken>();
    fetches.wait(gone, two);
    fetches.wait(stays, two);
    fetches.forget(*gone, two);
    EXPECT_EQ(gone.use_count(), 1) << "nothing of it is kept";
    EXPECT_EQ(fetches.waiting(), 1u);
    fetches.end_offset_moved({"a", 0});
    EXPECT_THAT(gone->take(), IsEmpty());
    EXPECT_THAT(stays->take(), ElementsAre(0u));
}

TEST(DelayedFetches, OneThatStandsTwiceIsWokenTwiceAndForgottenOnce) {
    DelayedFetches fetches;
    const auto waiter = std::make_shared<Woken>();
    const std::vector<TopicPartition> twice{{"a", 0}, {"a", 0}};
    fetches.wait(waiter, twice);
    fetches.end_offset_moved({"a", 0});
    EXPECT_THAT(waiter->take(), ElementsAre(0u, 1u));
    fetches.forget(*waiter, twice);
    EXPECT_EQ(waiter.use_count(), 1);
    fetches.end_offset_moved({"a", 0});
    EXPECT_THAT(waiter->take(), IsEmpty());
}

TEST(DelayedFetches, NoAppendFallsBetweenLookingAndWaiting) {
    // The waiter looks after it has registered; the append is published before it wakes. One of both must see the other.
    DelayedFetches fetches;
    for (int round = 0; round < 2000; ++round) {
        std::atomic<bool> appended{false};
        const auto waiter = std::make_shared<Woken>();
        std::thread appender{[&] {
            appended.store(true, std::memory_order_release);
            fetches.end_offset_moved({"a", 0});
        }};
        fetches.wait(waiter, two);
        const bool seen = appended.load(std::memory_order_acquire);
        appender.join();
        ASSERT_TRUE(seen || !waiter->take().empty()) << "round " << round;
        fetches.forget(*waiter, two);
    }
}

}  // namespace
}  // namespace tidemark::daemon
