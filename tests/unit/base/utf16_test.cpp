#include "base/utf16.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tidemark {
namespace {

using ::testing::ElementsAre;

std::vector<std::uint16_t> units(std::string_view text) {
    std::vector<std::uint16_t> result;
    for_each_utf16_unit(text, [&](std::uint16_t unit) { result.push_back(unit); });
    return result;
}

TEST(Utf16, SplitsPointsBeyondTheBasicPlane) {
    EXPECT_THAT(units("aé"), ElementsAre(0x61, 0xE9));
    EXPECT_THAT(units("€"), ElementsAre(0x20AC));
    EXPECT_THAT(units("😀"), ElementsAre(0xD83D, 0xDE00));
    EXPECT_THAT(units(""), ElementsAre());
}

TEST(Utf16, ReplacesWhatIsNotUtf8) {
    EXPECT_THAT(units("\x80z"), ElementsAre(0xFFFD, 'z'));
    EXPECT_THAT(units("\xC0\xAF"), ElementsAre(0xFFFD, 0xFFFD));                     // overlong
    EXPECT_THAT(units("\xED\xA0\x80"), ElementsAre(0xFFFD, 0xFFFD, 0xFFFD));         // a surrogate
    EXPECT_THAT(units("a\xE2\x82"), ElementsAre('a', 0xFFFD, 0xFFFD));               // cut off
    EXPECT_THAT(units("\xF5\x80\x80\x80"), ElementsAre(0xFFFD, 0xFFFD, 0xFFFD, 0xFFFD));
}

}  // namespace
}  // namespace tidemark
