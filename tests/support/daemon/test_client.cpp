#include "tests/support/daemon/test_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tidemark::test {

namespace {

/// False when the time is over.
bool wait_readable(int socket, std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) > 0;
}

}  // namespace

TestClient::TestClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TM_ASSERT(socket_ >= 0 && ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

TestClient::~TestClient() {
    if (socket_ >= 0) ::close(socket_);
}

TestClient::TestClient(TestClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), next_correlation_id_(other.next_correlation_id_), frame_(std::move(other.frame_)) {}

void TestClient::send_bytes(Bytes bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;   // the peer has closed: what comes next shows it
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
}

bool TestClient::receive_exactly(MutableBytes into, std::chrono::steady_clock::time_point until) {
    while (!into.empty()) {
        if (!wait_readable(socket_, until)) return false;
        const auto got = ::recv(socket_, into.data(), into.size(), 0);
        if (got <= 0) return false;
        into = into.subspan(static_cast<std::size_t>(got));
    }
    return true;
}

std::optional<std::vector<std::byte>> TestClient::receive_frame(std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    std::array<std::byte, protocol::frame_prefix_bytes> prefix;
    if (!receive_exactly(prefix, until)) return std::nullopt;
    std::vector<std::byte> frame(static_cast<std::size_t>(load_be<std::int32_t>(prefix.data())));
    if (!receive_exactly(frame, until)) return std::nullopt;
    return frame;
}

bool TestClient::is_closed_by_peer(std::chrono::milliseconds patience) {
    if (!wait_readable(socket_, std::chrono::steady_clock::now() + patience)) return false;
    std::byte byte;
    return ::recv(socket_, &byte, 1, 0) <= 0;   // 0: closed; -1: reset, since it had not read all
}

void TestClient::finish_sending() { ::shutdown(socket_, SHUT_WR); }

}  // namespace tidemark::test
