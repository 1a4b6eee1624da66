#include "cleaner/live_records.h"

#include <gmock/gmock.h>

#include <random>

#include "record/builder.h"
#include "storage/segment.h"
#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using test::TestLog;
using test::TestLogOptions;

/// A batch of `count` records at consecutive offsets, its claim to end at `last` included.
class Batch {
public:
    Batch(std::int64_t first, int count, std::optional<std::int64_t> last = std::nullopt, std::int8_t magic = 2) {
        record::BatchBuilder builder;
        builder.start({.magic = magic, .base_offset = Offset{first}, .last_offset = last ? std::optional{Offset{*last}} : std::nullopt});
        for (int i = 0; i < count; ++i) builder.append(Offset{first + i}, Timestamp{1}, as_bytes("k"), as_bytes("v"));
        builder.finish(bytes_);
    }
    record::BatchView view() const { return record::BatchView::parse(bytes_).value(); }
private:
    std::vector<std::byte> bytes_;
};

/// Shows the batch and its records, one per offset from `first` on.
std::uint32_t walk(LiveRecords& live, const record::BatchView& batch, std::int64_t first, int count) {
    const auto number = live.begin(batch);
    for (int i = 0; i < count; ++i) live.add(Offset{first + i}, true, false);
    return number;
}

TEST(LiveRecords, CountsWhatABatchHoldsAndWhatCameAgain) {
    LiveRecords live;
    live.clear(Offset{100});
    const Batch batch(100, 70), second(170, 4);
    const auto number = live.begin(batch.view());
    ASSERT_NE(number, 0u);
    for (int i = 0; i < 70; ++i) live.add(Offset{100 + i}, i != 1, i == 2 || i == 3);
    ASSERT_NE(walk(live, second.view(), 170, 4), 0u);
    for (const auto offset : {100, 163, 164, 169}) live.supersede(number, Offset{offset});

    const auto* known = live.find(batch.view());
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(known->records, 70);
    EXPECT_EQ(known->keyless, 1);
    EXPECT_EQ(known->tombstones, 2);
    EXPECT_EQ(known->superseded, 4);
    for (std::int64_t offset = 100; offset < 170; ++offset) {
        EXPECT_EQ(live.is_superseded(*known, Offset{offset}), offset == 100 || offset == 163 || offset == 164 || offset == 169) << offset;
    }
    ASSERT_NE(live.find(second.view()), nullptr);
    EXPECT_EQ(live.find(second.view())->superseded, 0);
    live.clear(Offset{0});
    EXPECT_EQ(live.find(batch.view()), nullptr);
}

TEST(LiveRecords, FollowsWhatIsWorthItAndHasRoom) {
    LiveRecords live;
    live.clear(Offset{10});
    EXPECT_EQ(live.begin(Batch(5, 10).view()), 0u) << "begins below the first dirty offset";
    EXPECT_EQ(live.begin(Batch(20, 3).view()), 0u) << "three records";
    EXPECT_EQ(live.begin(Batch(30, 4, 94).view()), 0u) << "four records in 65 offsets";
    EXPECT_NE(live.begin(Batch(100, 4, 163).view()), 0u) << "four records in 64 offsets";
    EXPECT_EQ(live.begin(Batch(200, 1, std::nullopt, 1).view()), 0u) << "an old format";
    EXPECT_NE(live.begin(Batch(300, 4).view()), 0u);

    LiveRecords small(100);   // bytes: two batches of 32 with a word of bits each
    small.clear(Offset{0});
    EXPECT_EQ(walk(small, Batch(0, 4).view(), 0, 4), 1u);
    EXPECT_EQ(walk(small, Batch(10, 4).view(), 10, 4), 2u);
    EXPECT_EQ(walk(small, Batch(20, 4).view(), 20, 4), 0u);
    EXPECT_NE(small.find(Batch(10, 4).view()), nullptr);
    EXPECT_EQ(small.find(Batch(20, 4).view()), nullptr);
    LiveRecords none(0);
    none.clear(Offset{0});
    EXPECT_EQ(walk(none, Batch(0, 4).view(), 0, 4), 0u);
}

TEST(LiveRecords, SaysNothingOfTheBatchInWhichTheWalkEnded) {
    LiveRecords live;
    live.clear(Offset{0});
    walk(live, Batch(0, 4).view(), 0, 4);
    live.begin(Batch(4, 4).view());
    live.add(Offset{4}, true, false);
    live.abandon();
    EXPECT_NE(live.find(Batch(0, 4).view()), nullptr);
    EXPECT_EQ(live.find(Batch(4, 4).view()), nullptr);
}

/// What cannot be in a log that a broker wrote: there the map alone decides.
TEST(LiveRecords, SaysNothingOnceOffsetsDoNotRise) {
    const Batch first(0, 4), same(0, 4), overlapping(3, 4), next(4, 4);
    const auto known_after = [&](auto disturb) {
        LiveRecords live;
        live.clear(Offset{0});
        const auto number = walk(live, first.view(), 0, 4);
        disturb(live);
        live.supersede(number, Offset{0});   // what still comes does no harm
        return live.find(first.view()) != nullptr;
    };
    EXPECT_TRUE(known_after([&](LiveRecords& live) { walk(live, next.view(), 4, 4); }));
    EXPECT_FALSE(known_after([&](LiveRecords& live) { live.begin(same.view()); }));
    EXPECT_FALSE(known_after([&](LiveRecords& live) { live.begin(overlapping.view()); }));
    EXPECT_FALSE(known_after([&](LiveRecords& live) { walk(live, next.view(), 3, 1); })) << "a record below its batch";
    EXPECT_FALSE(known_after([&](LiveRecords& live) { walk(live, next.view(), 8, 1); })) << "a record above its batch";
    EXPECT_FALSE(known_after([&](LiveRecords& live) {
        live.begin(next.view());
        live.add(Offset{5}, true, false);
        live.add(Offset{5}, true, false);
    })) << "an offset twice";
}

// --- the pass with and without it ------------------------------------------------------------------------------------

/// The same log twice; one of them is cleaned by the map alone.
struct Twins {
    explicit Twins(const TestLogOptions& options) : with(options), without(options) { without.work.live = LiveRecords(0); }
    void append(const std::string& text) {
        const auto a = with.append(text), b = without.append(text);
        ASSERT_TRUE(a) << a.error().message() << ": " << text;
        ASSERT_TRUE(b) << b.error().message() << ": " << text;
    }
    void clean() {
        const auto a = with.clean(), b = without.clean();
        ASSERT_TRUE(a) << a.error().message();
        ASSERT_TRUE(b) << b.error().message();
        expect_equal(*a, *b);
    }
    void clean_horizons() {
        for (auto* log : {&with, &without}) {
            for (const auto& segment : *log->log->segments()) ASSERT_TRUE(scan_for_horizons(*segment));
        }
        const auto a = with.clean_horizons(), b = without.clean_horizons();
        ASSERT_TRUE(a) << a.error().message();
        ASSERT_TRUE(b) << b.error().message();
        expect_equal(*a, *b);
    }
    void expect_equal(const PassStats& a, const PassStats& b) {
        EXPECT_EQ(with.checkpoint, without.checkpoint);
        EXPECT_EQ(a.bytes_read, b.bytes_read);
        EXPECT_EQ(a.bytes_written, b.bytes_written);
        EXPECT_EQ(a.messages_read, b.messages_read);
        EXPECT_EQ(a.messages_written, b.messages_written);
        EXPECT_EQ(a.invalid_messages_read, b.invalid_messages_read);
        EXPECT_EQ(a.superseded, b.superseded);
        EXPECT_EQ(a.tombstones_removed, b.tombstones_removed);
        EXPECT_EQ(a.expired, b.expired);
        ASSERT_EQ(with.files(), without.files());
        for (const auto& name : with.files()) {
            const auto path = "/logs/t-0/" + name;
            EXPECT_EQ(io::read_whole(with.disk, path).value(), io::read_whole(without.disk, path).value()) << name << "\n" << with.text() << "\n" << without.text();
        }
        const auto& one = *with.log->segments();
        const auto& other = *without.log->segments();
        for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i]->earliest_delete_horizon(), other[i]->earliest_delete_horizon()) << "segment " << i;
    }
    void advance(std::int64_t milliseconds) {
        for (auto* log : {&with, &without}) log->clock.advance(std::chrono::milliseconds{milliseconds});
    }

    TestLog with, without;
};

TEST(LiveRecords, WholeBatchesAreTreatedAsTheMapWouldTreatThem) {
    for (const auto codec : {record::Codec::none, record::Codec::lz4}) {
        TestLogOptions options{.codec = codec};
        options.config.delete_retention_ms = 1000;
        Twins twins(options);
        // Whole and dead; whole and alive; mixed; with tombstones; without keys; a key twice in one batch.
        twins.append("[a=1 b=1 c=1 d=1] [e=1 f=1 g=1 h=1] [i=1 j=1 k=1 l=1] [m=~ n=1 o=1 p=~] [_=1 _=2 _=3 _=4] [q=1 q=2 r=1 r=2] p1:[s=1 t=1 u=1 v=1]");
        twins.append("[a=2 b=2 c=2 d=2] | [i=2 j=2 s=2 t=2 u=2 v=2] | z=1");
        twins.clean();
        EXPECT_EQ(twins.with.text().find("a=1"), std::string::npos);
        EXPECT_THAT(twins.with.text(), testing::HasSubstr("4:e=1 5:f=1 6:g=1 7:h=1"));
        EXPECT_THAT(twins.with.text(), testing::HasSubstr("(p1)"));
        // The dirty part begins where a batch with a horizon, whole and alive, was copied before.
        twins.with.checkpoint = twins.without.checkpoint = Offset{0};
        twins.clean();
        EXPECT_THAT(twins.with.text(), testing::HasSubstr("m=~"));
        twins.advance(1000);
        twins.with.checkpoint = twins.without.checkpoint = Offset{0};
        twins.clean();
        EXPECT_EQ(twins.with.text().find("m=~"), std::string::npos);
    }
}

class RandomTwins {
public:
    explicit RandomTwins(std::uint64_t seed) : random_(seed), twins_(options()) {}
    void run() {
        for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) {
            const auto dice = below(12);
            if (dice == 0) twins_.append("|");
            else if (dice == 1) twins_.advance(static_cast<std::int64_t>(below(2000)));
            else if (dice == 2 && open_) twins_.append(below(2) == 0 ? "c1" : "x1"), open_ = false;
            else if (dice == 3) twins_.clean_horizons();
            else if (dice <= 5) twins_.append("|"), twins_.clean();
            else twins_.append(batch());
        }
    }

private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    TestLogOptions options() {
        static constexpr record::Codec codecs[] = {record::Codec::none, record::Codec::gzip, record::Codec::snappy, record::Codec::lz4, record::Codec::zstd};
        TestLogOptions o{.codec = codecs[below(5)], .map_slots = below(2) == 0 ? 10'000 : 3 + static_cast<std::int64_t>(below(30))};
        o.buffer_bytes = below(2) == 0 ? 262'144 : 100 + static_cast<std::int64_t>(below(1000));
        o.config.segment_bytes = 1000 + static_cast<std::int64_t>(below(3000));
        o.config.delete_retention_ms = static_cast<std::int64_t>(below(3000));
        o.config.timestamp_after_max_ms = storage::unlimited;
        if (below(4) == 0) {
            o.config.deletes = true;
            o.config.retention_ms = 1500;
            o.config.max_compaction_lag_ms = 2000;
        }
        return o;
    }

    std::string batch() {
        std::string text = below(4) == 0 ? "p7:" : "";
        if (text.empty() && below(3) == 0) text = "t1:", open_ = true;
        const bool plain = text.empty();
        text += "[";
        // Neighbouring keys come and go together, so that whole batches do.
        const auto first = below(6) * 8;
        for (std::uint64_t i = 0, count = 1 + below(12); i < count; ++i) {
            const auto key = below(5) == 0 ? below(60) : first + i % 8;
            text += (i == 0 ? "" : " ") + (plain && below(40) == 0 ? std::string{"_"} : "k" + std::to_string(key)) + (below(12) == 0 ? "=~" : "=v" + std::to_string(random_() % 1000));
        }
        return text + "]";
    }

    std::mt19937_64 random_;
    Twins twins_;
    bool open_ = false;
};

TEST(LiveRecords, RandomLogsAreCleanedToTheSameBytesAsByTheMapAlone) {
    for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        RandomTwins(seed).run();
    }
}

}  // namespace
}  // namespace tidemark::cleaner
