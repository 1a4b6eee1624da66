#include "cleaner/offset_map.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_map>

namespace tidemark::cleaner {
namespace {

constexpr HashKey reference_key{0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(KeyHash, IsSipHash) {
    // Of the bytes 0, 1, 2, … under the key 0, 1, … 15; computed with OpenSSL's SIPHASH, size 16.
    struct Row {
        int length;
        std::uint64_t low_be, high_be;
    };
    const std::vector<Row> rows = {
        {0, 0xA3817F04BA25A8E6, 0x6DF67214C7550293}, {1, 0xDA87C1D86B99AF44, 0x347659119B22FC45}, {7, 0xA1F1EBBED8DBC153, 0xC0B84AA61FF08239},
        {8, 0x3B62A9BA6258F561, 0x0F83E264F31497B4}, {15, 0x5493E99933B0A811, 0x7E08EC0F97CFC3D9}, {16, 0x6EE2A4CA67B054BB, 0xFD3315BF85230577},
        {63, 0x5150D1772F50834A, 0x503E069A973FBD7C},
    };
    for (const auto& row : rows) {
        std::string input;
        for (int i = 0; i < row.length; ++i) input.push_back(static_cast<char>(i));
        const auto hash = hash_key(reference_key, as_bytes(input));
        EXPECT_EQ(hash.low, byte_swapped(row.low_be)) << row.length;
        EXPECT_EQ(hash.high, byte_swapped(row.high_be)) << row.length;
    }
}

TEST(KeyHash, EveryProcessDrawsItsOwnKey) {
    const auto a = HashKey::random(), b = HashKey::random();
    EXPECT_FALSE(hash_key(a, as_bytes("k")) == hash_key(b, as_bytes("k")));
}

TEST(OffsetMap, TakesAsManyKeysAsKafkas) {
    const OffsetMap defaults({}, reference_key);
    EXPECT_EQ(defaults.slots(), 5'592'405);
    EXPECT_EQ(defaults.limit(), 5'033'164);
    const OffsetMap largest({.buffer_bytes = std::int64_t{1} << 40}, reference_key);
    EXPECT_EQ(largest.slots(), 2'147'483'647 / 24);
    const OffsetMap small({.buffer_bytes = 1 << 20, .load = 0.5}, reference_key);
    EXPECT_EQ(small.slots(), 43'690);
    EXPECT_EQ(small.limit(), 21'845);
}

TEST(OffsetMap, TheLastPutWinsAndUnknownKeysAreUnknown) {
    OffsetMap map({.buffer_bytes = 24 * 1000}, reference_key);
    map.prepare(Offset{0}, Offset{1000});
    EXPECT_EQ(map.latest_offset(), Offset{-1});
    map.put(map.hash(as_bytes("a")), Offset{7});
    map.put(map.hash(as_bytes("b")), Offset{8});
    map.put(map.hash(as_bytes("a")), Offset{3});    // no maximum: the last one
    EXPECT_EQ(map.get(map.hash(as_bytes("a"))), Offset{3});
    EXPECT_EQ(map.get(map.hash(as_bytes("b"))), Offset{8});
    EXPECT_EQ(map.get(map.hash(as_bytes("c"))), std::nullopt);
    EXPECT_EQ(map.size(), 2);
    EXPECT_EQ(map.latest_offset(), Offset{3});
    map.prepare(Offset{0}, Offset{1000});
    EXPECT_EQ(map.get(map.hash(as_bytes("a"))), std::nullopt);
    EXPECT_EQ(map.size(), 0);
    EXPECT_EQ(map.latest_offset(), Offset{-1});
}

TEST(OffsetMap, AgreesWithAnOrdinaryMapUpToItsLimit) {
    std::mt19937_64 random(20240501);
    for (const std::int64_t slots : {2, 16, 17, 100, 5'000, 60'000}) {
        OffsetMap map({.buffer_bytes = 24 * slots}, reference_key);
        std::unordered_map<std::string, std::int64_t> expected;
        map.prepare(Offset{0}, Offset{1 << 30});
        for (std::int64_t offset = 0; !map.full(); ++offset) {
            const auto key = std::to_string(random() % static_cast<std::uint64_t>(2 * slots));
            map.put(map.hash(as_bytes(key)), Offset{offset});
            expected[key] = offset;
        }
        EXPECT_EQ(map.size(), map.limit());
        EXPECT_EQ(map.size(), static_cast<std::int64_t>(expected.size()));
        for (std::int64_t i = 0; i < 2 * slots; ++i) {
            const auto key = std::to_string(i);
            const auto found = map.get(map.hash(as_bytes(key)));
            const auto wanted = expected.find(key);
            ASSERT_EQ(found.has_value(), wanted != expected.end()) << key;
            if (found) {
                ASSERT_EQ(found->value, wanted->second) << key;
            }
        }
    }
}

TEST(OffsetMap, AsManyKeysAsItWasAskedFor) {
    for (const std::int64_t keys : {10, 100, 1000, 5000}) {
        OffsetMap map({.buffer_bytes = 2 * 24 * keys, .load = 0.5}, reference_key);
        ASSERT_EQ(map.limit(), keys);
        map.prepare(Offset{0}, Offset{keys + 1});
        const auto hash = [&](std::int64_t key) { return map.hash(as_bytes(std::to_string(key))); };
        for (std::int64_t key = 0; key < keys; ++key) {
            EXPECT_FALSE(map.full());
            map.put(hash(key), Offset{key});
            EXPECT_EQ(map.latest_offset(), Offset{key});
        }
        EXPECT_TRUE(map.full());
        EXPECT_DOUBLE_EQ(map.utilization(), 0.5);
        for (std::int64_t key = 0; key < keys; ++key) EXPECT_EQ(map.get(hash(key)), Offset{key});
        for (std::int64_t key = keys; key < 2 * keys; ++key) EXPECT_EQ(map.get(hash(key)), std::nullopt);
        map.set_latest_offset(Offset{keys});   // over records without a key
        EXPECT_EQ(map.latest_offset(), Offset{keys});
        map.prepare(Offset{0}, Offset{keys});
        for (std::int64_t key = 0; key < keys; ++key) EXPECT_EQ(map.get(hash(key)), std::nullopt);
    }
}

TEST(OffsetMap, TellsWhatAPutReplaced) {
    const Offset base{1000};
    for (const auto end : {base + (std::int64_t{1} << 40), base + (std::int64_t{1} << 40) + 1, Offset{std::int64_t{1} << 62}}) {
        OffsetMap map({.buffer_bytes = 24 * 1000}, reference_key);
        map.prepare(base, end);
        const auto key = map.hash(as_bytes("a"));
        EXPECT_FALSE(map.put(key, base, 7));
        auto before = map.put(key, end - 1, OffsetMap::note_max);
        ASSERT_TRUE(before);
        EXPECT_EQ(before->offset, base);
        const bool notes = end - base <= std::int64_t{1} << 40;
        EXPECT_EQ(before->note, notes ? 7u : 0u);
        EXPECT_EQ(map.get(key), end - 1);
        before = map.put(key, base + 1);
        EXPECT_EQ(before->offset, end - 1);
        EXPECT_EQ(before->note, notes ? OffsetMap::note_max : 0u);
    }
}

TEST(OffsetMap, FewKeysNeedLittleMemoryAndReleaseGivesItBack) {
    OffsetMap map({}, reference_key);
    map.prepare(Offset{0}, Offset{10});
    for (int i = 0; i < 10; ++i) map.put(map.hash(as_bytes(std::to_string(i))), Offset{i});
    EXPECT_EQ(map.get(map.hash(as_bytes("9"))), Offset{9});
    map.release();
    EXPECT_EQ(map.get(map.hash(as_bytes("9"))), std::nullopt);
    map.prepare(Offset{0}, Offset{20});
    map.put(map.hash(as_bytes("x")), Offset{1});
    EXPECT_EQ(map.get(map.hash(as_bytes("x"))), Offset{1});
}

TEST(OffsetMap, SlotsTakeNoMoreThanKafkas) {
    // One tag and 23 bytes a slot, and never more slots than the budget has at the default load.
    const OffsetMap map({}, reference_key);
    const auto groups = std::max(map.limit() + map.limit() / 9, map.limit() * 16 / 15) / 16 + 1;
    EXPECT_LE(groups * 16 * 24, 134'217'728 + 16 * 24);
}

}  // namespace
}  // namespace tidemark::cleaner
