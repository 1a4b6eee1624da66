#include "bench/load/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <ctime>

namespace tidemark::bench {

namespace {

constexpr std::size_t buffer_bytes_min = 256 * 1024;

Error system_error(const char* what) { return Error{Errc::io, what, std::error_code(errno, std::system_category())}; }

}  // namespace

std::int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<Address> Address::parse(const std::string& text) {
    const auto colon = text.rfind(':');
    Address address;
    const char* end = text.data() + text.size();
    if (colon == std::string::npos || colon == 0) return Error{Errc::invalid_argument, "not host:port: " + text};
    const auto [stopped, failure] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (failure != std::errc{} || stopped != end) return Error{Errc::invalid_argument, "not host:port: " + text};
    address.host = text.substr(0, colon);
    return address;
}

Result<Connection> Connection::open(const Address& address) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found); failed != 0) {
        return Error{Errc::io, address.host + ": " + gai_strerror(failed)};
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
    const int descriptor = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return system_error("socket");
    Connection connection{descriptor};
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int connected = -1;
    do {
        connected = ::connect(descriptor, found->ai_addr, found->ai_addrlen);
    } while (connected != 0 && errno == EINTR);
    if (connected != 0) return system_error("connect");
    return connection;
}

Connection::~Connection() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Connection::Connection(Connection&& other) noexcept { *this = std::move(other); }

Connection& Connection::operator=(Connection&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(correlation_id_, other.correlation_id_);
    std::swap(buffer_, other.buffer_);
    std::swap(capacity_, other.capacity_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    return *this;
}

protocol::RequestHeader Connection::header(std::int32_t correlation_id, std::int16_t version) {
    protocol::RequestHeader header;
    header.request_api_version = version;
    header.correlation_id = correlation_id;
    header.client_id = "tidemark_load";
    return header;
}

Result<> Connection::send(Bytes frame) {
    while (!frame.empty()) {
        const ssize_t sent = ::send(descriptor_, frame.data(), frame.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return system_error("send");
        frame = frame.subspan(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<MutableBytes> Connection::receive() {
    TM_TRYV(fill(protocol::frame_prefix_bytes));
    const auto prefix = std::span<const std::byte, protocol::frame_prefix_bytes>(buffer_.get() + begin_, protocol::frame_prefix_bytes);
    TM_TRY(const std::size_t size, protocol::frame_size(prefix, std::size_t{1} << 30));
    TM_TRYV(fill(protocol::frame_prefix_bytes + size));
    const MutableBytes frame(buffer_.get() + begin_ + protocol::frame_prefix_bytes, size);
    begin_ += protocol::frame_prefix_bytes + size;
    return frame;
}

Result<> Connection::fill(std::size_t size) {
    if (end_ - begin_ >= size) return {};
    if (begin_ + size > capacity_ || begin_ == end_) {
        // The frames that were handed out are done with: what is left moves to the front.
        std::unique_ptr<std::byte[]> old;
        const std::byte* from = buffer_.get() + begin_;
        if (size > capacity_) {
            capacity_ = std::max(buffer_bytes_min, size + size / 4);
            old = std::exchange(buffer_, std::make_unique_for_overwrite<std::byte[]>(capacity_));
        }
        if (end_ > begin_) std::memmove(buffer_.get(), from, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
    }
    while (end_ - begin_ < size) {
        const ssize_t got = ::recv(descriptor_, buffer_.get() + end_, capacity_ - end_, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_error("recv");
        if (got == 0) return Error{Errc::io, "the broker closed the connection"};
        end_ += static_cast<std::size_t>(got);
    }
    return {};
}

Result<bool> Connection::wait_readable(std::chrono::nanoseconds at_most) {
    if (end_ > begin_) return true;
    pollfd wanted{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const auto ns = std::max<std::int64_t>(at_most.count(), 0);
    const timespec timeout{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    const int ready = ::ppoll(&wanted, 1, &timeout, nullptr);
    if (ready < 0 && errno != EINTR) return system_error("poll");
    return ready > 0;
}

}  // namespace tidemark::bench
