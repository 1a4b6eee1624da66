/// One blocking TCP connection that carries Kafka frames. Nothing is copied on the way out, once on the way in.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "protocol/framing.h"

namespace tidemark::bench {

/// Nanoseconds on the monotonic clock.
std::int64_t monotonic_ns();

struct Address {
    std::string host = "127.0.0.1";
    std::uint16_t port = 9092;

    /// "host:port". Errors: invalid_argument.
    static Result<Address> parse(const std::string& text);
};

/// Errors are Errc::io, with the system's error where there is one; the connection is then of no use any more.
/// Threads: one at a time.
class Connection {
public:
    static Result<Connection> open(const Address&);
    ~Connection();
    Connection(Connection&&) noexcept;
    Connection& operator=(Connection&&) noexcept;

    Result<> send(Bytes frame);
    /// The next frame without its size; it is good until the next receive().
    Result<MutableBytes> receive();
    /// Waits until receive() has something to read (the peer's close counts), or until the time is over: false.
    Result<bool> wait_readable(std::chrono::nanoseconds at_most);
    int descriptor() const { return descriptor_; }

    /// One request and its answer, whose `records` are good until the next receive(). Nothing may be in flight.
    template <class Response, class Request>
    Result<Response> ask(const Request& request, std::int16_t version) {
        static_assert(Request::api_key == Response::api_key);
        const std::int32_t correlation_id = next_correlation_id();
        TM_TRY(const auto frame, protocol::request_frame(header(correlation_id, version), request));
        TM_TRYV(send(frame.bytes));
        return answer<Response>(correlation_id, version);
    }
    /// The answer that comes next, which must be the one to `correlation_id`.
    template <class Response>
    Result<Response> answer(std::int32_t correlation_id, std::int16_t version) {
        TM_TRY(const MutableBytes frame, receive());
        auto reader = protocol::Reader::of_frame(frame);
        TM_TRY(const std::int32_t answered, protocol::read_response_header(reader, Response::api_key, version));
        if (answered != correlation_id) return Error{Errc::corrupt, "the answer belongs to another request"};
        return protocol::parse<Response>(reader, version);
    }

    std::int32_t next_correlation_id() { return ++correlation_id_; }
    static protocol::RequestHeader header(std::int32_t correlation_id, std::int16_t version);

private:
    explicit Connection(int descriptor) : descriptor_(descriptor) {}
    /// Reads until `size` bytes are in the buffer.
    Result<> fill(std::size_t size);

    int descriptor_ = -1;
    std::int32_t correlation_id_ = 0;
    std::unique_ptr<std::byte[]> buffer_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;  // of what has been read and not handed out
    std::size_t end_ = 0;
};

}  // namespace tidemark::bench
