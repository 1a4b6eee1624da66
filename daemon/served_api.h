/// The APIs that this daemon serves: exactly those that have a handler, in exactly the versions of Kafka 4.4.
#pragma once

#include <memory>
#include <span>

#include "protocol/api.h"

namespace tidemark::daemon {

class Broker;
class Call;

struct ServedApi {
    const protocol::Api* api = nullptr;
    /// Begins the call, on its connection's loop. What it changes is changed when this returns, or, after hold_reading(),
    /// when the call is done; the answer may come later in any case.
    void (*start)(Broker&, const std::shared_ptr<Call>&) = nullptr;
};

/// By ascending key. Another room that serves APIs (the coordinators) adds its handlers to the table in
/// handlers/served_apis.cpp; what has none is neither served nor advertised.
std::span<const ServedApi> served_apis();
const ServedApi* find_served_api(std::int16_t key);

}  // namespace tidemark::daemon
