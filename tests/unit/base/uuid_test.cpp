#include "base/uuid.h"

#include <gtest/gtest.h>

#include <set>
#include <unordered_set>

namespace tidemark {
namespace {

TEST(Uuid, HasKafkasText) {
    const struct {
        Uuid uuid;
        const char* text;
    } table[] = {
        {Uuid::of(0), "AAAAAAAAAAAAAAAAAAAAAA"},
        {Uuid::of(1), "AAAAAAAAAAAAAAAAAAAAAQ"},  // the topic id of __cluster_metadata
        {Uuid::of(255), "AAAAAAAAAAAAAAAAAAAA_w"},
    };
    for (const auto& [uuid, text] : table) {
        EXPECT_EQ(uuid.text(), text);
        EXPECT_EQ(Uuid::parse(text), uuid);
    }
}

TEST(Uuid, SurvivesItsTextWhateverItsBytes) {
    for (std::size_t at = 0; at < 16; ++at) {
        for (int value = 0; value < 256; ++value) {
            Uuid uuid = Uuid::of(7);
            uuid.bytes[at] = static_cast<std::byte>(value);
            ASSERT_EQ(uuid.text().size(), 22u);
            ASSERT_EQ(Uuid::parse(uuid.text()), uuid) << "byte " << at << " is " << value;
        }
    }
}

TEST(Uuid, RefusesWhatIsNoUuid) {
    EXPECT_TRUE(Uuid::parse("AAAAAAAAAAAAAAAAAAAAAQ").has_value());
    for (const char* text : {"", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQA", "AAAAAAAAAAAAAAAAAAAAAQ==", "AAAAAAAAAA+AAAAAAAAAAQ",
                             "AAAAAAAAAA/AAAAAAAAAAQ", "AAAAAAAAAA AAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAR"}) {  // the last: 4 bits too many
        EXPECT_EQ(Uuid::parse(text), std::nullopt) << text;
    }
}

TEST(Uuid, IsRandomAndOfVersion4) {
    std::set<Uuid> seen;
    for (int i = 0; i < 2000; ++i) {
        const auto uuid = Uuid::random();
        ASSERT_NE(uuid.text().front(), '-');
        ASSERT_EQ(uuid.bytes[6] & std::byte{0xf0}, std::byte{0x40});
        ASSERT_EQ(uuid.bytes[8] & std::byte{0xc0}, std::byte{0x80});
        ASSERT_TRUE(seen.insert(uuid).second) << uuid.text() << " came twice";
    }
}

TEST(Uuid, WritesHexInOrderOfTheBytes) {
    Uuid uuid;
    for (std::size_t i = 0; i < 16; ++i) uuid.bytes[i] = static_cast<std::byte>(i * 17);
    EXPECT_EQ(uuid.hex(), "00112233445566778899aabbccddeeff");
}

TEST(Uuid, IsAKey) {
    EXPECT_TRUE(Uuid{}.is_zero());
    EXPECT_FALSE(Uuid::of(1).is_zero());
    EXPECT_LT(Uuid::of(1), Uuid::of(2));
    const std::unordered_set<Uuid> ids{Uuid::of(1), Uuid::of(2), Uuid::of(1)};
    EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace tidemark
