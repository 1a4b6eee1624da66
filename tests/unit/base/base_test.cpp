#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/published.h"
#include "base/topic_partition.h"
#include "base/types.h"

namespace tidemark {
namespace {

using namespace std::chrono_literals;

TEST(Types, CountLikeNumbersAndKeepTheirMeaning) {
    Offset offset{41};
    EXPECT_EQ(++offset, Offset{42});
    EXPECT_EQ(offset + 8, Offset{50});
    EXPECT_EQ(offset - 2, Offset{40});
    EXPECT_EQ(Offset{50} - offset, 8);
    EXPECT_LT(Offset{-1}, Offset{0});
    offset += 3;
    EXPECT_EQ(offset.value, 45);
    static_assert(!std::is_convertible_v<Offset, Timestamp>);
    static_assert(!std::is_convertible_v<std::int64_t, Offset>);
}

TEST(Bytes, AreBigEndianAtAnyAlignment) {
    std::vector<std::byte> bytes{std::byte{0xee}};
    append_be(bytes, std::int16_t{-2});
    append_be(bytes, std::uint32_t{0x01020304});
    append_be(bytes, std::int64_t{-1'000'000'007});
    append_be(bytes, std::int8_t{-5});
    ASSERT_EQ(bytes.size(), 16u);
    EXPECT_TRUE(equal(Bytes(bytes).subspan(3, 4), as_bytes(std::string_view("\1\2\3\4"))));
    EXPECT_EQ(load_be<std::int16_t>(bytes.data() + 1), -2);
    EXPECT_EQ(load_be<std::uint32_t>(bytes.data() + 3), 0x01020304u);
    EXPECT_EQ(load_be<std::int64_t>(bytes.data() + 7), -1'000'000'007);
    EXPECT_EQ(load_be<std::int8_t>(bytes.data() + 15), -5);
    EXPECT_EQ(as_text(as_bytes("text")), "text");
    EXPECT_TRUE(equal({}, {}));
    EXPECT_FALSE(equal(as_bytes("a"), as_bytes("ab")));
    EXPECT_FALSE(equal(as_bytes("a"), as_bytes("b")));
}

TEST(TopicPartition, HasTheNameOfItsDirectory) {
    const TopicPartition partition{"orders.v-2", 13};
    EXPECT_EQ(partition.text(), "orders.v-2-13");
    EXPECT_EQ(fmt::format("[{}] rolled", partition), "[orders.v-2-13] rolled");
    std::unordered_map<TopicPartition, int> sizes{{partition, 1}};
    EXPECT_TRUE(sizes.contains(TopicPartition{"orders.v-2", 13}));
    EXPECT_FALSE(sizes.contains(TopicPartition{"orders.v-2", 12}));
}

TEST(Clock, OfTheSystemGoesOn) {
    const SystemClock clock;
    const auto boot = clock.since_boot();
    EXPECT_GT(boot, 0ms);
    EXPECT_GT(clock.now(), Timestamp{1'600'000'000'000});  // after 2020: milliseconds, not seconds or microseconds
    EXPECT_LT(clock.now(), Timestamp{16'000'000'000'000});
    while (clock.since_boot() == boot) std::this_thread::yield();  // ends, since it goes on
    EXPECT_GT(clock.since_boot(), boot);
}

TEST(Clock, OfATestMovesWhenTold) {
    ManualClock clock(Timestamp{1000});
    EXPECT_EQ(clock.now(), Timestamp{1000});
    clock.advance(5s);
    EXPECT_EQ(clock.now(), Timestamp{6000});
    EXPECT_EQ(clock.since_boot(), 5s);
    clock.jump_to(Timestamp{10});
    EXPECT_EQ(clock.now(), Timestamp{10});
    EXPECT_EQ(clock.since_boot(), 5s) << "a jump of the wall clock does not touch the other";
}

/// Both halves are always written together, so a reader that sees them differ has seen half a replacement.
struct Pair {
    int a, b;
    std::shared_ptr<std::atomic<int>> alive;
    Pair(int n, std::shared_ptr<std::atomic<int>> count) : a(n), b(n), alive(std::move(count)) { ++*alive; }
    Pair(const Pair&) = delete;
    ~Pair() { --*alive; }
};

TEST(Published, ReadersKeepWhatTheyTookAndSeeWholeValues) {
    const auto alive = std::make_shared<std::atomic<int>>(0);
    {
        Published<Pair> published(std::make_shared<const Pair>(0, alive));
        const auto kept = published.get();
        std::atomic<bool> stop{false};
        std::atomic<int> reads{0}, backwards{0}, torn{0};
        std::vector<std::jthread> readers;
        for (int i = 0; i < 3; ++i) {
            readers.emplace_back([&] {
                for (int last = 0; !stop; ++reads) {
                    const auto value = published.get();
                    if (value->a != value->b) ++torn;
                    if (value->a < last) ++backwards;
                    last = value->a;
                }
            });
        }
        int n = 0;
        while (n < 2000 || reads < 1000) {
            ++n;
            const auto before = published.put(std::make_shared<const Pair>(n, alive));
            ASSERT_EQ(before->a, n - 1) << "put() returns what stood there";
        }
        stop = true;
        readers.clear();
        EXPECT_EQ(torn, 0);
        EXPECT_EQ(backwards, 0);
        EXPECT_EQ(published.get()->a, n);
        EXPECT_EQ(kept->a, 0);
        EXPECT_EQ(*alive, 2) << "the value kept and the one that is up";
    }
    EXPECT_EQ(*alive, 0);
}

TEST(Published, IsEmptyUntilTheFirstPut) {
    Published<int> published;
    EXPECT_EQ(published.get(), nullptr);
    EXPECT_EQ(published.put(std::make_shared<const int>(1)), nullptr);
    EXPECT_EQ(*published.get(), 1);
}

TEST(Mutex, ConditionWakesWhoWaits) {
    Mutex mutex;
    Condition condition;
    bool asked = false, answered = false;
    std::jthread other([&] {
        MutexLock lock(mutex);
        while (!asked) condition.wait(mutex);
        answered = true;
        condition.notify_all();
    });
    MutexLock lock(mutex);
    EXPECT_FALSE(condition.wait_for(mutex, 1ms)) << "nobody notified";
    asked = true;
    condition.notify_all();
    while (!answered) condition.wait(mutex);
    EXPECT_TRUE(answered);
}

TEST(Mutex, CanBeTriedWithoutWaiting) {
    Mutex mutex;
    const auto tried_elsewhere = [&] {
        bool got = false;
        std::jthread([&] {
            if (!mutex.try_lock()) return;
            got = true;
            mutex.unlock();
        }).join();
        return got;
    };
    EXPECT_TRUE(tried_elsewhere());
    MutexLock lock(mutex);
    EXPECT_FALSE(tried_elsewhere());
}

TEST(LogLimit, LetsOneLinePassAndCountsTheOthers) {
    LogLimit limit{3'600'000};
    EXPECT_EQ(limit.admit(), 0);
    EXPECT_EQ(limit.admit(), -1);
    EXPECT_EQ(limit.admit(), -1);
    LogLimit none{0};
    EXPECT_EQ(none.admit(), 0);
    EXPECT_EQ(none.admit(), 0) << "an interval of 0 holds nothing back";
}

TEST(AssertDeathTest, StopsWithTheExpressionAndThePlace) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const int one = 1;
    TM_ASSERT(one == 1);
    EXPECT_DEATH(TM_ASSERT(one == 2), "assertion failed: one == 2 \\(.*base_test.cpp:[0-9]+\\)");
}

}  // namespace
}  // namespace tidemark
