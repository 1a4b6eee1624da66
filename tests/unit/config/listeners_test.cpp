#include "config/listeners.h"

#include <gmock/gmock.h>

namespace tidemark::config {
namespace {

using ::testing::HasSubstr;

TEST(ParseListener, TakesItApart) {
    EXPECT_EQ(*parse_listener("PLAINTEXT://:9092"), (ListenerText{"PLAINTEXT", "", 9092}));
    EXPECT_EQ(*parse_listener("plaintext://0.0.0.0:0"), (ListenerText{"PLAINTEXT", "0.0.0.0", 0}));
    EXPECT_EQ(*parse_listener("A_B://[::1]:65535"), (ListenerText{"A_B", "::1", 65535}));
    for (const auto* bad : {"", "localhost:9092", "://x:1", "PLAINTEXT://x", "PLAINTEXT://x:65536", "PLAINTEXT://x:-1", "PLAINTEXT://::1:9092", "PLAINTEXT://x:9092/"})
        EXPECT_FALSE(parse_listener(bad)) << bad;
}

TEST(MakeListeners, AdvertisedAddressesGoToTheirListener) {
    const auto made = make_listeners({.listeners = {"PLAINTEXT://0.0.0.0:9092", "INSIDE://10.0.0.1:9093", "CONTROLLER://:9094"},
                                      .advertised = {"PLAINTEXT://broker.example:19092"},
                                      .controller_names = {"CONTROLLER"},
                                      .protocol_map = {"PLAINTEXT:PLAINTEXT", "INSIDE:PLAINTEXT"}});
    ASSERT_TRUE(made) << made.error().message();
    ASSERT_EQ(made->clients.size(), 2u);
    EXPECT_EQ(made->clients[0].advertised_host, "broker.example");
    EXPECT_EQ(made->clients[0].advertised_port, 19092);
    EXPECT_EQ(made->clients[1].name, "INSIDE");
    EXPECT_EQ(made->clients[1].advertised_host, "");
    ASSERT_TRUE(made->controller);
    EXPECT_EQ(made->controller->port, 9094);
}

TEST(MakeListeners, RefusesWhatIsNotPlaintextAndNamesEveryMistake) {
    const auto made = make_listeners({.listeners = {"SSL://:9093", "X://:9094", "PLAINTEXT://:1", "PLAINTEXT://:2"}, .advertised = {"Y://a:1"}, .controller_names = {}, .protocol_map = {"X:SASL_SSL"}});
    ASSERT_FALSE(made);
    const auto& text = made.error().context;
    EXPECT_THAT(text, HasSubstr("SSL://:9093 wants SSL, and only PLAINTEXT"));
    EXPECT_THAT(text, HasSubstr("X://:9094 wants SASL_SSL"));
    EXPECT_THAT(text, HasSubstr("PLAINTEXT stands there twice"));
    EXPECT_THAT(text, HasSubstr("there is no listener Y"));
    EXPECT_FALSE(make_listeners({.listeners = {"CONTROLLER://:1"}, .advertised = {}, .controller_names = {"CONTROLLER"}, .protocol_map = {}}));
    EXPECT_FALSE(make_listeners({.listeners = {"PLAINTEXT://:1"}, .advertised = {"PLAINTEXT://0.0.0.0:1"}, .controller_names = {}, .protocol_map = {}}));
}

TEST(ParseHostPort, Addresses) {
    EXPECT_EQ(*parse_host_port("127.0.0.1:9404"), (HostPort{"127.0.0.1", 9404}));
    EXPECT_EQ(*parse_host_port(":0"), (HostPort{"", 0}));
    EXPECT_EQ(*parse_host_port("[::1]:80"), (HostPort{"::1", 80}));
    EXPECT_FALSE(parse_host_port("9404"));
}

}  // namespace
}  // namespace tidemark::config
