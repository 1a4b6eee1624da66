#include "http/server.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio.hpp>
#include <string>

namespace tidemark::http {
namespace {

namespace asio = boost::asio;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Router router() {
    Router r;
    r.add("GET", "/metrics", [](const Request&) { return Response{.body = "tidemark_up 1\n"}; });
    r.add("POST", "/echo", [](const Request& request) { return Response{.body = request.body}; });
    return r;
}

/// Everything the peer says until it closes, or `until` has been read.
template <class Socket>
std::string read_until(Socket& socket, std::string_view until) {
    std::string text;
    char buffer[4096];
    boost::system::error_code error;
    while (text.find(until) == std::string::npos || until.empty()) {
        const auto bytes = socket.read_some(asio::buffer(buffer), error);
        if (error) break;
        text.append(buffer, bytes);
    }
    return text;
}

class ServerTest : public ::testing::Test {
protected:
    void start(Limits limits = {}) {
        server = std::make_unique<Server>(limits);
        ASSERT_TRUE(server->listen_tcp("127.0.0.1", 0, router()));
        server->start();
    }
    asio::ip::tcp::socket connect() {
        asio::ip::tcp::socket socket{context};
        socket.connect({asio::ip::make_address("127.0.0.1"), server->tcp_port()});
        return socket;
    }
    std::string ask(std::string_view text) {
        auto socket = connect();
        asio::write(socket, asio::buffer(text));
        return read_until(socket, "");
    }
    asio::io_context context;
    std::unique_ptr<Server> server;
};

TEST_F(ServerTest, AnswersAndCloses) {
    start();
    const auto answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Length: 14\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\ntidemark_up 1\n"));
}

TEST_F(ServerTest, KeepsAConnectionForPipelinedRequests) {
    start();
    auto socket = connect();
    asio::write(socket, asio::buffer(std::string("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nlater")));
    const auto text = read_until(socket, "later");
    EXPECT_THAT(text, HasSubstr("tidemark_up 1"));
    EXPECT_THAT(text, EndsWith("later"));
}

TEST_F(ServerTest, HeadSendsTheLengthWithoutTheBody) {
    start();
    const auto answer = ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, HasSubstr("Content-Length: 14\r\n"));
    EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(ServerTest, RefusesGarbageAndWhatIsTooLarge) {
    start({.header_bytes_max = 1024, .body_bytes_max = 16});
    EXPECT_THAT(ask(std::string("\x00\x00\x00\x05hello\r\n\r\n", 13)), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(ask("GET /" + std::string(3000, 'x')), StartsWith("HTTP/1.1 431"));
    EXPECT_THAT(ask("POST /echo HTTP/1.1\r\nContent-Length: 17\r\n\r\n"), StartsWith("HTTP/1.1 413"));
}

TEST_F(ServerTest, APeerThatSendsHalfARequestIsClosedInTime) {
    start({.request_time_max = std::chrono::milliseconds{50}});
    EXPECT_EQ(ask("GET /metrics HT"), "");
}

TEST_F(ServerTest, ASilentPeerIsClosedInTime) {
    start({.idle_time_max = std::chrono::milliseconds{50}});
    EXPECT_EQ(ask(""), "");
}

TEST_F(ServerTest, OneConnectionTooManyIsClosedAtOnce) {
    start({.connections_max = 1});
    auto first = connect();
    asio::write(first, asio::buffer(std::string("GET /metrics HTTP/1.1\r\n\r\n")));
    ASSERT_THAT(read_until(first, "up 1"), HasSubstr("200 OK"));
    EXPECT_EQ(ask(""), "");
    first.close();
    // The slot is free once the server has seen the close: ask until it has.
    std::string answer;
    while (answer.empty()) answer = ask("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(answer, HasSubstr("200 OK"));
}

TEST_F(ServerTest, AnAddressInUseIsAnErrorThatNamesIt) {
    start();
    Server second;
    const auto result = second.listen_tcp("127.0.0.1", server->tcp_port(), router());
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message(), HasSubstr("127.0.0.1:" + std::to_string(server->tcp_port())));
}

TEST_F(ServerTest, StopsWhileAPeerIsConnected) {
    start();
    auto socket = connect();
    asio::write(socket, asio::buffer(std::string("GET /metrics HTTP/1.1\r\n\r\n")));
    read_until(socket, "up 1");
    server->stop();
    EXPECT_EQ(read_until(socket, ""), "");
}

class UnixSocketTest : public ::testing::Test {
protected:
    void SetUp() override {
        char name[] = "/tmp/tidemark-http-XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory = name;
        path = directory + "/admin.socket";
    }
    void TearDown() override {
        ::unlink(path.c_str());
        ::rmdir(directory.c_str());
    }
    std::string directory, path;
};

TEST_F(UnixSocketTest, ServesItsOwnRouterAndRemovesTheFile) {
    Server server;
    ASSERT_TRUE(server.listen_unix(path, router()));
    server.start();
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660u);

    asio::io_context context;
    asio::local::stream_protocol::socket socket{context};
    socket.connect(asio::local::stream_protocol::endpoint{path});
    asio::write(socket, asio::buffer(std::string("POST /echo HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")));
    EXPECT_THAT(read_until(socket, ""), EndsWith("hi"));

    server.stop();
    EXPECT_NE(::stat(path.c_str(), &status), 0);
}

TEST_F(UnixSocketTest, ReplacesADeadSocketButNotALiveOne) {
    {
        asio::io_context context;
        asio::local::stream_protocol::acceptor dead{context, asio::local::stream_protocol::endpoint{path}};
    }
    Server server;
    ASSERT_TRUE(server.listen_unix(path, router()));
    server.start();
    Server second;
    const auto result = second.listen_unix(path, router());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::locked);
}

}  // namespace
}  // namespace tidemark::http
