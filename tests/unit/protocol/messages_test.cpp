/// Every message in every version, against bytes that are made from the schema without the generated codecs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/bytes.h"
#include "protocol/reader.h"
#include "tests/support/protocol/all_messages.h"
#include "tests/support/protocol/random_message.h"
#include "tests/unit/protocol/support.h"

namespace tidemark::protocol {
namespace {

const std::vector<schema::Message>& schemas() {
    static const auto all = schema::read("protocol/schemas");
    return all;
}

/// Calls for every version of every message; stops at the first fatal failure.
void for_every_version(const std::function<void(const AnyMessage&, const schema::Message&, std::int16_t)>& check) {
    for (const auto& message : schemas()) {
        const auto* any = find_message(message.name);
        ASSERT_TRUE(any) << message.name;
        for (auto version = message.versions.min; version <= message.versions.max; ++version) {
            SCOPED_TRACE(message.name + " version " + std::to_string(version) + ", seed " + std::to_string(test_seed()));
            check(*any, message, version);
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

TEST(Messages, AreThoseOfTheSchema) {
    EXPECT_EQ(all_messages().size(), schemas().size());
    for (const auto& message : schemas()) {
        const auto* any = find_message(message.name);
        ASSERT_TRUE(any) << message.name;
        EXPECT_EQ(any->versions, message.versions) << message.name;
        EXPECT_EQ(any->flexible_from, message.flexible.empty() ? never_flexible : message.flexible.min) << message.name;
    }
}

TEST(Messages, SurviveReadingAndWriting) {
    Random random{test_seed()};
    for_every_version([&](const AnyMessage& any, const schema::Message& message, std::int16_t version) {
        for (int i = 0; i < 20; ++i) {
            const auto made = random_message(message, version, random);
            const GuardedBytes bytes{made.bytes};
            const auto result = any.round_trip(bytes.get(), version);
            ASSERT_TRUE(result) << result.error().message() << "\n" << hex(made.bytes);
            EXPECT_EQ(result->consumed, made.bytes.size());
            ASSERT_TRUE(result->written) << result->written.error().message() << "\n" << hex(made.bytes);
            ASSERT_EQ(hex(*result->written), hex(made.bytes));
            EXPECT_TRUE(result->same_when_read_again);
        }
    });
}

TEST(Messages, DefaultsCanBeWrittenInEveryVersion) {
    for_every_version([](const AnyMessage& any, const schema::Message&, std::int16_t version) {
        auto written = any.write_default(version);
        ASSERT_TRUE(written) << written.error().message();
        const auto result = any.round_trip(*written, version);
        ASSERT_TRUE(result) << result.error().message();
        ASSERT_TRUE(result->written) << result->written.error().message();
        EXPECT_EQ(hex(*result->written), hex(*written));
    });
}

TEST(Messages, RefuseVersionsThatDoNotExist) {
    for (const auto& any : all_messages()) {
        std::vector<std::byte> bytes(1000);
        for (const int version : {any.versions.min - 1, any.versions.max + 1, -32768, 32767}) {
            const auto read = any.read(bytes, static_cast<std::int16_t>(version));
            ASSERT_FALSE(read) << any.name << " " << version;
            EXPECT_EQ(read.error().code, Errc::unsupported);
            const auto written = any.write_default(static_cast<std::int16_t>(version));
            ASSERT_FALSE(written) << any.name << " " << version;
            EXPECT_EQ(written.error().code, Errc::unsupported);
        }
    }
}

TEST(Messages, CutAnywhereAreCorrupt) {
    Random random{test_seed()};
    for_every_version([&](const AnyMessage& any, const schema::Message& message, std::int16_t version) {
        const auto made = random_message(message, version, random);
        GuardedBytes bytes{made.bytes};
        for (std::size_t n = 0; n < made.bytes.size(); ++n) {
            const auto result = any.read(bytes.first(n), version);
            ASSERT_FALSE(result) << n << " bytes of " << hex(made.bytes);
            ASSERT_EQ(result.error().code, Errc::corrupt);
        }
    });
}

TEST(Messages, BytesBehindThemAreLeftAlone) {
    Random random{test_seed()};
    for_every_version([&](const AnyMessage& any, const schema::Message& message, std::int16_t version) {
        auto bytes = random_message(message, version, random).bytes;
        const auto size = bytes.size();
        append_bytes(bytes, bytes_of("ff ff ff ff ff ff ff ff"));
        const auto result = any.round_trip(bytes, version);
        ASSERT_TRUE(result) << result.error().message();
        EXPECT_EQ(result->consumed, size);
    });
}

struct Claim {
    std::string_view bytes;
    bool is_possible;  ///< as null, as empty, or because so many bytes might be there
};

/// What a length can claim to be, by its kind.
std::vector<Claim> claims(RandomMessage::Length::Kind kind) {
    using Kind = RandomMessage::Length::Kind;
    switch (kind) {
        case Kind::int16: return {{"7fff", true}, {"ffff", true}, {"fffe", false}, {"8000", false}, {"0001", true}};
        case Kind::int32: return {{"7fffffff", false}, {"ffffffff", true}, {"fffffffe", false}, {"80000000", false}, {"10000000", false}};
        case Kind::varint:
            return {{"00", true}, {"ffffffff07", false}, {"ffffffff0f", false}, {"8080808008", false}, {"ffffffffff", false},
                    {"ffffffffffffffffffff", false}, {"8080808080808080808000", false}, {"80808040", false}};
    }
    return {};
}

TEST(Messages, AllocateNoMoreThanTheirBytesAreWorth) {
    Random random{test_seed()};
    for_every_version([&](const AnyMessage& any, const schema::Message& message, std::int16_t version) {
        const auto made = random_message(message, version, random);
        for (const auto& length : made.lengths) {
            for (const auto& claim : claims(length.kind)) {
                std::vector<std::byte> hostile(made.bytes.begin(), made.bytes.begin() + static_cast<std::ptrdiff_t>(length.at));
                append_bytes(hostile, bytes_of(claim.bytes));
                append_bytes(hostile, Bytes(made.bytes).subspan(length.at + length.size));
                const GuardedBytes bytes{hostile};
                const auto before = allocated_bytes();
                const auto result = any.read(bytes.get(), version);
                const auto allocated = allocated_bytes() - before;
                // Vectors, the text of strings and bytes, and an error's own text.
                ASSERT_LE(allocated, Reader::memory_max(hostile.size()) + 2 * hostile.size() + 2048) << hex(hostile);
                if (result) {
                    ASSERT_TRUE(claim.is_possible) << claim.bytes << " at " << length.at << ": " << hex(hostile);
                } else {
                    ASSERT_EQ(result.error().code, Errc::corrupt) << hex(hostile);
                }
            }
        }
    });
}

TEST(Messages, OfRandomBytesNeverCrash) {
    Random random{test_seed()};
    for_every_version([&](const AnyMessage& any, const schema::Message&, std::int16_t version) {
        for (int i = 0; i < 30; ++i) {
            std::vector<std::byte> noise(random() % 100);
            for (auto& b : noise) b = random() % 2 == 0 ? static_cast<std::byte>(random() % 4) : static_cast<std::byte>(random());
            const GuardedBytes bytes{noise};
            const auto result = any.round_trip(bytes.get(), version);
            if (!result) {
                ASSERT_EQ(result.error().code, Errc::corrupt);
            } else if (result->written) {  // tags out of order can be read, but not written
                ASSERT_TRUE(result->same_when_read_again) << hex(noise);
            }
        }
    });
}

}  // namespace
}  // namespace tidemark::protocol
