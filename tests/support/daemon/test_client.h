/// A client of a few lines: one blocking socket, frames out, frames in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/assert.h"
#include "protocol/framing.h"

namespace tidemark::test {

/// Threads: one. What cannot happen in a test that is right ends it (TM_ASSERT).
class TestClient {
public:
    explicit TestClient(std::uint16_t port);
    ~TestClient();
    TestClient(TestClient&&) noexcept;
    TestClient& operator=(TestClient&&) = delete;

    /// Sends a request without waiting; returns its correlation id.
    template <class Request>
    std::int32_t send(const Request& request, std::int16_t version = Request::versions.max) {
        const auto id = next_correlation_id_++;
        auto frame = protocol::request_frame({.request_api_version = version, .correlation_id = id, .client_id = "test"}, request);
        TM_ASSERT(frame && frame->gaps.empty());
        send_bytes(frame->bytes);
        return id;
    }
    /// The next answer, which must be to `correlation_id`. Nothing: the connection was closed, or the time is over.
    template <class Response>
    std::optional<Response> receive(std::int32_t correlation_id, std::int16_t version = Response::versions.max, std::chrono::milliseconds patience = std::chrono::seconds{20}) {
        auto frame = receive_frame(patience);
        if (!frame) return std::nullopt;
        // Records are views of the frame, which stays until the next answer.
        frame_ = *std::move(frame);
        auto reader = protocol::Reader::of_frame(frame_);
        const auto answered = protocol::read_response_header(reader, Response::api_key, version);
        TM_ASSERT(answered && *answered == correlation_id);
        auto response = protocol::parse<Response>(reader, version);
        TM_ASSERT(response && reader.remaining() == 0);
        return *std::move(response);
    }
    /// Both. The connection must stay.
    template <class Response, class Request>
    Response ask(const Request& request, std::int16_t version = Request::versions.max) {
        auto response = receive<Response>(send(request, version), version);
        TM_ASSERT(response.has_value());
        return *std::move(response);
    }

    void send_bytes(Bytes);
    /// A frame without its size; nothing when the peer closes or the time is over.
    std::optional<std::vector<std::byte>> receive_frame(std::chrono::milliseconds patience = std::chrono::seconds{20});
    /// Waits for the peer to close, and for no byte before that.
    bool is_closed_by_peer(std::chrono::milliseconds patience = std::chrono::seconds{20});
    /// No more will be sent (FIN); answers can still be read.
    void finish_sending();
    int descriptor() const { return socket_; }

private:
    bool receive_exactly(MutableBytes, std::chrono::steady_clock::time_point until);

    int socket_ = -1;
    std::int32_t next_correlation_id_ = 1;
    std::vector<std::byte> frame_;
};

}  // namespace tidemark::test
