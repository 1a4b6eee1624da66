#include "config/yaml_file.h"

#include <gmock/gmock.h>

namespace tidemark::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::pair<std::string, std::string>> pairs(const YamlFile& file) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const auto& setting : file.settings) all.emplace_back(setting.key, setting.value);
    return all;
}
using Pair = std::pair<std::string, std::string>;

TEST(ReadYaml, NestedAndDottedKeysAreTheSame) {
    const auto file = read_yaml("log.retention.ms: 5\nlog:\n  cleaner: {threads: 2}\n  roll.ms: 7\n", "t.yaml");
    EXPECT_THAT(file.mistakes, IsEmpty());
    EXPECT_THAT(pairs(file), ElementsAre(Pair{"log.retention.ms", "5"}, Pair{"log.cleaner.threads", "2"}, Pair{"log.roll.ms", "7"}));
    EXPECT_EQ(file.settings[1].at, (Position{3, 13}));
    EXPECT_EQ(file.settings[2].value_at, (Position{4, 12}));
}

TEST(ReadYaml, ListsBecomeKafkasLists) {
    EXPECT_THAT(pairs(read_yaml("log.dirs: [/a, /b]\nlog.cleanup.policy:\n- compact\n- delete\nx: []\n", "t.yaml")),
                ElementsAre(Pair{"log.dirs", "/a,/b"}, Pair{"log.cleanup.policy", "compact,delete"}, Pair{"x", ""}));
}

TEST(ReadYaml, AnEmptyFileHasNoSettings) {
    for (const auto* text : {"", "\n", "# only a comment\n", "---\n", "{}"}) {
        const auto file = read_yaml(text, "t.yaml");
        EXPECT_THAT(file.settings, IsEmpty()) << text;
        EXPECT_THAT(file.mistakes, IsEmpty()) << text;
    }
}

TEST(ReadYaml, SaysWhereAndWhat) {
    struct Case {
        const char* text;
        const char* line;
    };
    for (const auto& [text, line] : {
             Case{"a: 1\na: 2\n", "t.yaml:2:1: a was set already in line 1"},
             Case{"a: {b: 1}\na.b: 2\n", "t.yaml:2:1: a.b was set already in line 1"},
             Case{"a:\n", "t.yaml:1:1: a has no value; leave it out to have the default, or write \"\" for an empty one"},
             Case{"a: [1, [2]]\n", "t.yaml:1:8: a: a list holds words only"},
             Case{"- a\n", "t.yaml:1:1: the file must be a list of `key: value`"},
         }) {
        const auto file = read_yaml(text, "t.yaml");
        ASSERT_EQ(file.mistakes.size(), 1u) << text;
        EXPECT_EQ(file.mistakes[0].line(), line);
    }
    const auto broken = read_yaml("a: 1\nb: [1, 2\n", "t.yaml");
    ASSERT_EQ(broken.mistakes.size(), 1u);
    EXPECT_THAT(broken.mistakes[0].line(), HasSubstr("this is not YAML"));
    EXPECT_GT(broken.mistakes[0].at.line, 1);
}

TEST(YamlScalar, ReadsBackTheSame) {
    for (const auto* value : {"", "5", "-1", "-", "data/x", "PLAINTEXT://:9092", "a: b", "yes # no", "\"q\\", "a\nb\tc", "~", "[x]", "0.5", "1.7976931348623157E308", " blank ", "grüße"}) {
        const auto file = read_yaml("k: " + yaml_scalar(value), "t.yaml");
        EXPECT_THAT(pairs(file), ElementsAre(Pair{"k", value})) << yaml_scalar(value);
    }
}

}  // namespace
}  // namespace tidemark::config
