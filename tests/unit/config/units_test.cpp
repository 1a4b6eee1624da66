#include "config/units.h"

#include <gmock/gmock.h>

namespace tidemark::config {
namespace {

TEST(Units, TheKeysNameSaysWhatANumberMeans) {
    EXPECT_EQ(unit_of("log.retention.ms"), Unit::milliseconds);
    EXPECT_EQ(unit_of("log.segment.bytes"), Unit::bytes);
    EXPECT_EQ(unit_of("log.cleaner.dedupe.buffer.size"), Unit::bytes);
    EXPECT_EQ(unit_of("log.cleaner.io.max.bytes.per.second"), Unit::bytes);
    EXPECT_EQ(unit_of("log.retention.hours"), Unit::none);
    EXPECT_EQ(unit_of("max.connections"), Unit::none);
}

TEST(Units, NumbersWithUnits) {
    struct Case {
        Unit unit;
        const char *text, *number;
    };
    for (const auto& [unit, text, number] : {
             Case{Unit::milliseconds, "7d", "604800000"},
             Case{Unit::milliseconds, "1.5 h", "5400000"},
             Case{Unit::milliseconds, "250ms", "250"},
             Case{Unit::milliseconds, "2w", "1209600000"},
             Case{Unit::milliseconds, "0.001s", "1"},
             Case{Unit::bytes, "1GiB", "1073741824"},
             Case{Unit::bytes, "1.5KiB", "1536"},
             Case{Unit::bytes, "10kB", "10000"},
             Case{Unit::bytes, "3 MB", "3000000"},
             Case{Unit::bytes, "0B", "0"},
             // Left to the key's own parser.
             Case{Unit::milliseconds, "-1", "-1"},
             Case{Unit::milliseconds, "12", "12"},
             Case{Unit::milliseconds, "", ""},
             Case{Unit::milliseconds, "week", "week"},
             Case{Unit::bytes, "1.7976931348623157E308", "1.7976931348623157E308"},
             Case{Unit::none, "7d", "7d"},
         }) {
        const auto result = in_unit(unit, text);
        ASSERT_TRUE(result) << text << ": " << result.error().message();
        EXPECT_EQ(*result, number) << text;
    }
}

TEST(Units, RefusesWhatIsNoWholeNumberOfThem) {
    for (const auto& [unit, text] : {std::pair{Unit::milliseconds, "7GiB"}, {Unit::milliseconds, "1.0005s"}, {Unit::milliseconds, "9999999999999w"}, {Unit::milliseconds, "99999999999999999999d"},
                                     {Unit::milliseconds, "5 days"}, {Unit::bytes, "7d"}, {Unit::bytes, "1.3B"}, {Unit::bytes, "1gib"}})
        EXPECT_FALSE(in_unit(unit, text)) << text;
}

}  // namespace
}  // namespace tidemark::config
