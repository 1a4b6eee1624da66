#include "http/router.h"

#include <gmock/gmock.h>

namespace tidemark::http {
namespace {

using ::testing::HasSubstr;

TEST(ParseTarget, TakesPathAndQueryApart) {
    const auto target = parse_target("/api/v1/topics?name=a%20b&x=1+2&flag&x=3");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->path, "/api/v1/topics");
    EXPECT_EQ(target->query, (std::map<std::string, std::string>{{"name", "a b"}, {"x", "3"}, {"flag", ""}}));
}

TEST(ParseTarget, RefusesWhatItCannotRead) {
    for (const auto* bad : {"", "metrics", "/%", "/%4", "/%zz", "/a?x=%f", "?x=1"}) EXPECT_FALSE(parse_target(bad)) << bad;
}

class RouterTest : public ::testing::Test {
protected:
    RouterTest() {
        router.add("GET", "/metrics", [](const Request&) { return Response{.body = "m"}; });
        router.add("POST", "/v1/clean", [](const Request& r) { return Response{.body = r.query.at("topic") + r.body}; });
        router.add("GET", "/api/v1/topics/", [](const Request& r) { return Response{.body = r.path.substr(15)}; });
    }
    Router router;
};

TEST_F(RouterTest, CallsTheHandlerOfPathAndMethod) {
    EXPECT_EQ(router.answer("GET", "/metrics?x=1", "").body, "m");
    EXPECT_EQ(router.answer("HEAD", "/metrics", "").body, "m");
    EXPECT_EQ(router.answer("POST", "/v1/clean?topic=a", "b").body, "ab");
    EXPECT_EQ(router.answer("GET", "/api/v1/topics/a%2fb/c", "").body, "a/b/c");
}

TEST_F(RouterTest, SaysWhatThereIs) {
    const auto missing = router.answer("GET", "/nothing", "");
    EXPECT_EQ(missing.status, 404);
    EXPECT_THAT(missing.body, HasSubstr("/metrics"));
    const auto wrong = router.answer("POST", "/metrics", "");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.allow, "GET, HEAD");
    EXPECT_EQ(router.answer("GET", "nothing", "").status, 400);
}

TEST_F(RouterTest, AHandlerThatThrowsIsA500) {
    EXPECT_EQ(router.answer("POST", "/v1/clean", "").status, 500);
}

}  // namespace
}  // namespace tidemark::http
