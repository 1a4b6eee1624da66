#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/group/consumer/topic_regex.h"
#include "metadata/image.h"

namespace tidemark::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

metadata::Image image_of(std::initializer_list<const char*> names) {
    metadata::Image image;
    for (const auto* name : names) image.topics[name] = std::make_shared<metadata::Topic>(metadata::Topic{name, Uuid::random(), {}});
    return image;
}

TEST(TopicRegex, MatchesWholeNames) {
    const auto image = image_of({"data", "database", "da", "other", "__consumer_offsets"});
    EXPECT_THAT(matching_topics("da.*", image), ElementsAre("da", "data", "database"));
    EXPECT_THAT(matching_topics("data", image), ElementsAre("data"));
    EXPECT_THAT(matching_topics("at", image), IsEmpty());
    EXPECT_THAT(matching_topics("data|other", image), ElementsAre("data", "other"));
    EXPECT_THAT(matching_topics(".*", image), ElementsAre("__consumer_offsets", "da", "data", "database", "other"));
}

TEST(TopicRegex, RefusesWhatRe2Refuses) {
    EXPECT_FALSE(regex_problem("a+(b|c)*"));
    EXPECT_TRUE(regex_problem("a[b"));
    EXPECT_TRUE(regex_problem("*a"));
    EXPECT_TRUE(regex_problem("(?=a)b"));    // look-ahead
    EXPECT_TRUE(regex_problem("(a)\\1"));    // back reference
    EXPECT_TRUE(regex_problem("(((a{1000}){1000}){1000})"));
    EXPECT_THAT(matching_topics("a[b", image_of({"a"})), IsEmpty());
}

}  // namespace
}  // namespace tidemark::coordinator
