#include "protocol/api.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "protocol/error_code.h"

namespace tidemark::protocol {
namespace {

/// "min-max" of what a broker says in its ApiVersions response, by key (wire-behaviour 2, observed).
TEST(Api, AdvertisesWhatKafkaDoes) {
    const std::map<int, std::pair<int, int>> observed{
        {0, {0, 13}}, {1, {4, 18}}, {2, {1, 11}}, {3, {0, 13}}, {8, {2, 10}}, {9, {1, 10}}, {10, {0, 6}}, {11, {0, 9}},
        {12, {0, 4}}, {13, {0, 5}}, {14, {0, 5}}, {15, {0, 6}}, {16, {0, 5}}, {17, {0, 1}}, {18, {0, 5}}, {19, {2, 7}},
        {20, {1, 6}}, {21, {0, 2}}, {22, {0, 5}}, {23, {2, 4}}, {24, {0, 5}}, {25, {0, 4}}, {26, {0, 5}}, {27, {1, 2}},
        {28, {0, 6}}, {29, {1, 3}}, {30, {1, 3}}, {31, {1, 3}}, {32, {1, 4}}, {33, {0, 2}}, {34, {1, 2}}, {35, {1, 5}},
        {36, {0, 2}}, {37, {0, 3}}, {38, {1, 3}}, {39, {1, 2}}, {40, {1, 2}}, {41, {1, 3}}, {42, {0, 3}}, {43, {0, 2}},
        {44, {0, 1}}, {45, {0, 1}}, {46, {0, 0}}, {47, {0, 0}}, {48, {0, 1}}, {49, {0, 1}}, {50, {0, 0}}, {51, {0, 0}},
        {55, {0, 2}}, {57, {0, 2}}, {60, {0, 2}}, {61, {0, 0}}, {64, {0, 0}}, {65, {0, 0}}, {66, {0, 2}}, {68, {0, 1}},
        {69, {0, 1}}, {74, {0, 1}}, {75, {0, 0}}, {76, {1, 1}}, {77, {1, 1}}, {78, {1, 2}}, {79, {1, 2}}, {80, {0, 1}},
        {81, {0, 0}}, {83, {0, 0}}, {84, {0, 0}}, {85, {0, 1}}, {86, {0, 0}}, {87, {0, 1}}, {88, {0, 1}}, {89, {0, 1}},
        {90, {0, 1}}, {91, {0, 0}}, {92, {0, 0}}, {93, {0, 0}}, {94, {0, 0}},
    };
    std::map<int, std::pair<int, int>> ours;
    for (const auto& api : apis()) {
        // Telemetry is left out where nothing receives it.
        if (!api.on_broker || api.key == ApiKey::get_telemetry_subscriptions || api.key == ApiKey::push_telemetry) continue;
        ours[static_cast<int>(api.key)] = {api.advertised().min, api.advertised().max};
    }
    EXPECT_EQ(ours, observed);
}

TEST(Api, OffersNoUnstableVersion) {
    const auto* init = find_api(ApiKey::init_producer_id);
    ASSERT_TRUE(init);
    EXPECT_TRUE(init->has_unstable_version);
    EXPECT_EQ(init->versions, (VersionRange{0, 5}));
    EXPECT_EQ(std::ranges::count_if(apis(), &Api::has_unstable_version), 1);
}

TEST(Api, ProduceIsAdvertisedFromZeroAndServedFromThree) {
    const auto* produce = find_api(ApiKey::produce);
    ASSERT_TRUE(produce);
    EXPECT_EQ(produce->name, "Produce");
    EXPECT_EQ(produce->versions, (VersionRange{3, 13}));
    EXPECT_EQ(produce->advertised(), (VersionRange{0, 13}));
}

TEST(Api, IsFoundByKey) {
    for (const auto& api : apis()) EXPECT_EQ(find_api(api.key), &api);
    for (const int key : {-32768, -1, 4, 5, 6, 7, 95, 9999, 32767}) EXPECT_EQ(find_api(static_cast<std::int16_t>(key)), nullptr) << key;
}

TEST(ErrorCode, HasKafkasNames) {
    EXPECT_EQ(to_string(ErrorCode::none), "NONE");
    EXPECT_EQ(static_cast<int>(ErrorCode::unknown_server_error), -1);
    EXPECT_EQ(to_string(ErrorCode::unsupported_version), "UNSUPPORTED_VERSION");
    EXPECT_EQ(static_cast<int>(ErrorCode::unsupported_version), 35);
    EXPECT_EQ(to_string(ErrorCode{12345}), "UNKNOWN");
    std::set<std::string_view> names;
    for (int code = -1; code <= 136; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
    EXPECT_EQ(names.size(), 138u);
    EXPECT_FALSE(names.contains("UNKNOWN"));
}

TEST(ErrorCode, SaysWhatMayBeRepeated) {
    EXPECT_TRUE(is_retriable(ErrorCode::not_leader_or_follower));
    EXPECT_TRUE(is_retriable(ErrorCode::coordinator_load_in_progress));
    EXPECT_FALSE(is_retriable(ErrorCode::none));
    EXPECT_FALSE(is_retriable(ErrorCode::message_too_large));
    EXPECT_FALSE(is_retriable(ErrorCode{12345}));
}

}  // namespace
}  // namespace tidemark::protocol
