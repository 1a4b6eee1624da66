#include "config/listeners.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace tidemark::config {
namespace {

std::string upper(std::string_view text) {
    std::string out{text};
    for (char& c : out)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return out;
}

Error invalid(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

/// Listener name → security protocol; names that are protocols stand for themselves.
std::map<std::string, std::string> protocols_of(const std::vector<std::string>& pairs) {
    std::map<std::string, std::string> map;
    for (const auto& pair : pairs) {
        const auto colon = pair.find(':');
        if (colon != std::string::npos) map[upper(pair.substr(0, colon))] = upper(pair.substr(colon + 1));
    }
    return map;
}

class Maker {
public:
    explicit Maker(const ListenerSettings& settings) : settings_(settings), protocols_(protocols_of(settings.protocol_map)) {
        for (const auto& name : settings.controller_names) controllers_.insert(upper(name));
    }

    Result<Listeners> make() {
        for (const auto& text : settings_.listeners) take(text);
        for (const auto& text : settings_.advertised) advertise(text);
        if (made_.clients.empty() && mistakes_.empty()) mistake("listeners names no address for clients");
        if (!mistakes_.empty()) return invalid(mistakes_);
        return std::move(made_);
    }

private:
    void take(const std::string& text) {
        auto parsed = parse_listener(text);
        if (!parsed) return mistake(parsed.error().context);
        const bool controller = controllers_.contains(parsed->name);
        const auto found = protocols_.find(parsed->name);
        const auto& protocol = found == protocols_.end() ? parsed->name : found->second;
        if (protocol != "PLAINTEXT" && !controller)
            return mistake("listeners: " + text + " wants " + protocol + ", and only PLAINTEXT is offered yet; put a TLS proxy in front, or listen on an address that only trusted machines reach");
        if (!names_.insert(parsed->name).second) return mistake("listeners: " + parsed->name + " stands there twice");
        daemon::Listener listener{.name = parsed->name, .host = parsed->host, .port = parsed->port};
        if (controller) {
            made_.controller = std::move(listener);
            return;
        }
        if (parsed->port != 0 && !addresses_.insert({parsed->host, parsed->port}).second) return mistake("listeners: port " + std::to_string(parsed->port) + " stands there twice");
        made_.clients.push_back(std::move(listener));
    }

    void advertise(const std::string& text) {
        auto parsed = parse_listener(text);
        if (!parsed) return mistake("advertised." + parsed.error().context);
        if (controllers_.contains(parsed->name)) return;
        const auto listener = std::ranges::find(made_.clients, parsed->name, &daemon::Listener::name);
        if (listener == made_.clients.end()) return mistake("advertised.listeners: there is no listener " + parsed->name);
        if (parsed->host == "0.0.0.0" || parsed->host == "::") return mistake("advertised.listeners: no client can connect to " + parsed->host);
        listener->advertised_host = parsed->host;
        listener->advertised_port = parsed->port;
    }

    void mistake(const std::string& text) { mistakes_ += (mistakes_.empty() ? "" : "\n") + text; }

    const ListenerSettings& settings_;
    const std::map<std::string, std::string> protocols_;
    std::set<std::string> controllers_;
    std::set<std::string> names_;
    std::set<std::pair<std::string, std::uint16_t>> addresses_;
    Listeners made_;
    std::string mistakes_;
};

}  // namespace

Result<HostPort> parse_host_port(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return invalid("'" + std::string(text) + "' is not host:port");
    auto host = text.substr(0, colon);
    const auto digits = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string_view::npos) return invalid("'" + std::string(text) + "': an IPv6 address stands in brackets");
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc{} || end != digits.data() + digits.size()) return invalid("'" + std::string(text) + "' has no port from 0 to 65535 at its end");
    return HostPort{std::string(host), port};
}

Result<ListenerText> parse_listener(std::string_view text) {
    const auto slashes = text.find("://");
    if (slashes == std::string_view::npos || slashes == 0) return invalid("listeners: '" + std::string(text) + "' is not NAME://host:port");
    auto address = parse_host_port(text.substr(slashes + 3));
    if (!address) return in_context(address.error(), "listeners");
    return ListenerText{upper(text.substr(0, slashes)), address->host, address->port};
}

Result<Listeners> make_listeners(const ListenerSettings& settings) { return Maker{settings}.make(); }

}  // namespace tidemark::config
