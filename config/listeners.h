/// `listeners`, `advertised.listeners`, `controller.listener.names`, `listener.security.protocol.map`: Kafka's way to say
/// where clients connect, taken apart. Only PLAINTEXT is offered (D25).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/options.h"

namespace tidemark::config {

/// `NAME://host:port`; the host may be empty, or an IPv6 address in brackets.
struct ListenerText {
    std::string name, host;
    std::uint16_t port = 0;
    friend bool operator==(const ListenerText&, const ListenerText&) = default;
};
Result<ListenerText> parse_listener(std::string_view text);

struct ListenerSettings {
    std::vector<std::string> listeners;
    std::vector<std::string> advertised;            ///< empty: as `listeners`
    std::vector<std::string> controller_names;
    std::vector<std::string> protocol_map;          ///< `NAME:PROTOCOL`
};
struct Listeners {
    std::vector<daemon::Listener> clients;
    std::optional<daemon::Listener> controller;
};
/// Errc::invalid_argument with all mistakes, one per line.
Result<Listeners> make_listeners(const ListenerSettings&);

/// `host:port`, also `[::1]:port` and `:port`; for http.listener.
struct HostPort {
    std::string host;
    std::uint16_t port = 0;
    friend bool operator==(const HostPort&, const HostPort&) = default;
};
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace tidemark::config
