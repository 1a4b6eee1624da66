/// How a handler of each kind becomes an entry of the table.
#pragma once

#include "daemon/broker.h"
#include "daemon/call.h"
#include "daemon/served_api.h"

namespace tidemark::daemon::handlers {

template <class Handler>
struct Signature;
template <class Response_, class Request_>
struct Signature<Response_ (*)(Broker&, Call&, Request_&)> {
    using Response = Response_;
    using Request = Request_;
};

template <auto handle>
void run_here(Broker& broker, const std::shared_ptr<Call>& call) {
    if (auto request = call->parse<typename Signature<decltype(handle)>::Request>()) call->finish(handle(broker, *call, *request));
}

/// Finishes the call with what `answer` returns on the disk pool; the connection reads no further until then. What it
/// throws fails the call, not the daemon.
template <class Answer>
void answer_on_disk(Broker& broker, const std::shared_ptr<Call>& call, Answer answer) {
    call->hold_reading();
    broker.disk().submit([call, answer = std::move(answer)] {
        try {
            call->finish(answer());
        } catch (const std::exception& error) {
            call->fail(error.what());
        }
    });
}

template <auto handle>
void run_on_disk(Broker& broker, const std::shared_ptr<Call>& call) {
    using Request = typename Signature<decltype(handle)>::Request;
    auto parsed = call->parse<Request>();
    if (!parsed) return;
    answer_on_disk(broker, call, [&broker, call, request = std::make_shared<Request>(*std::move(parsed))] { return handle(broker, *call, *request); });
}

template <auto handle>
ServedApi here() {
    return {protocol::find_api(Signature<decltype(handle)>::Request::api_key), &run_here<handle>};
}
template <auto handle>
ServedApi on_disk() {
    return {protocol::find_api(Signature<decltype(handle)>::Request::api_key), &run_on_disk<handle>};
}
inline ServedApi begin(protocol::ApiKey key, void (*start)(Broker&, const std::shared_ptr<Call>&)) { return {protocol::find_api(key), start}; }

}  // namespace tidemark::daemon::handlers
