/// How an answer of a coordinator becomes the answer to a call.
#pragma once

#include <memory>
#include <utility>

#include "coordinator/errors.h"
#include "coordinator/state_machine.h"
#include "daemon/call.h"

namespace tidemark::daemon::handlers {

/// Finishes `call` on its loop with the response, or with what `refuse` makes of the error that kept the coordinator from it.
template <class Response, class Refuse>
coordinator::Reply<Response> reply_to(std::shared_ptr<Call> call, Refuse refuse) {
    // Shared, since a reply is copied on its way and a refusal may hold much.
    return [call = std::move(call), refuse = std::make_shared<const Refuse>(std::move(refuse))](coordinator::Coded<Response> answered) {
        // Storage's sync thread has better things to do than to write answers.
        asio::dispatch(call->executor(), [call, refuse, answered = std::move(answered)]() mutable {
            if (answered) return call->finish(*answered);
            const auto code = coordinator::coordinator_error(answered.error().code);
            call->count(code);
            call->finish((*refuse)(code));
        });
    };
}

}  // namespace tidemark::daemon::handlers
