/// One request on its way through the daemon: where it came from, what it says, where its answer belongs.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/assert.h"
#include "base/log.h"
#include "daemon/answer.h"
#include "daemon/asio.h"
#include "daemon/frame.h"
#include "daemon/options.h"
#include "daemon/request_stats.h"
#include "protocol/framing.h"

namespace tidemark::daemon {

class Broker;
class Connection;
struct ServedApi;

/// What handlers may know of the connection.
struct Peer {
    std::size_t listener = 0;                 ///< index in Options::listeners
    std::string address = {};                    ///< "192.0.2.1:50312"
    std::string host = {};                      ///< "192.0.2.1", as ACLs and describe calls show it
    std::string software_name = {}, software_version = {};   ///< from ApiVersions, counted by RequestStats
};

/// Life:    made by its Connection, which keeps it in its queue until the answer is sent; a handler that waits keeps it too.
/// Threads: finish() and fail() once, from any thread; the rest on the connection's loop, or before the handler returns.
class Call : public std::enable_shared_from_this<Call> {
public:
    using Moment = std::chrono::steady_clock::time_point;

    Call(std::shared_ptr<Connection>, const ServedApi&, protocol::RequestHeader, Frame, std::size_t body_at, Broker&);
    ~Call();

    std::int16_t version() const { return header_.request_api_version; }
    const protocol::RequestHeader& header() const { return header_; }
    /// Null and "" are both allowed.
    std::string client_id() const { return header_.client_id.value_or(""); }
    const ServedApi& api() const { return api_; }
    Peer& peer() const;
    Executor executor() const;

    /// The body. On an error the call has failed: the connection closes, as Kafka's does.
    template <class Request>
    Result<Request> parse() {
        auto reader = protocol::Reader::of_frame(frame_.bytes().subspan(body_at_));
        auto request = protocol::parse<Request>(reader, version());
        if (!request) fail(request.error().message());
        return request;
    }
    /// The request's bytes are not needed any more.
    void release_frame() { frame_.release(); }

    template <class Response>
    void finish(const Response& response, std::vector<storage::LogSlice> slices = {}) {
        finish_version(response, version(), std::move(slices));
    }
    /// ApiVersions answers unknown versions in version 0.
    template <class Response>
    void finish_version(const Response& response, std::int16_t version, std::vector<storage::LogSlice> slices = {}) {
        auto frame = protocol::response_frame(header_.correlation_id, response, version);
        if (!frame) return fail_encoding(frame.error());
        complete({.frame = *std::move(frame), .slices = std::move(slices)});
    }
    /// Nothing is answered: acks=0.
    void finish_silently() { complete({}); }
    /// Closes the connection instead of an answer; the reason goes to the log, at most one line in a while.
    void fail(std::string_view reason);

    /// For the metrics: an error code that the answer carries.
    void count(protocol::ErrorCode code) { counters_.count_error(code); }

    /// The connection reads no further request before this one is done, since another thread works on it: effects keep the
    /// order of the requests.
    void hold_reading() { holds_reading_ = true; }

    /// Called on the loop when the answer should come at once, with what there is: the server stops or the client has
    /// closed its side. A call that waits for something sets it; it is forgotten when the call is done.
    void set_hurry(std::function<void()> hurry) { hurry_ = std::move(hurry); }

private:
    friend class Connection;
    void complete(Answer);
    void fail_encoding(const Error&);

    std::shared_ptr<Connection> connection_;   // never null before the destructor
    const ServedApi& api_;
    const protocol::RequestHeader header_;
    Frame frame_;
    const std::size_t body_at_;
    Broker& broker_;
    ApiCounters& counters_;
    const Moment arrived_ = std::chrono::steady_clock::now();

    // On the loop only.
    Answer answer_;
    bool done_ = false;
    bool holds_reading_ = false;
    std::function<void()> hurry_;
};

}  // namespace tidemark::daemon
