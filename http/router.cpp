#include "http/router.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/log.h"

namespace tidemark::http {
namespace {

std::optional<int> hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return std::nullopt;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '%') {
            if (i + 2 >= text.size()) return std::nullopt;
            const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
            if (!high || !low) return std::nullopt;
            out.push_back(static_cast<char>(*high * 16 + *low));
            i += 2;
        } else {
            out.push_back(plus_is_space && text[i] == '+' ? ' ' : text[i]);
        }
    }
    return out;
}

bool serves(const std::string& route, const std::string& path) {
    if (route == path) return true;
    return route.size() > 1 && route.back() == '/' && path.starts_with(route);
}

}  // namespace

std::optional<Target> parse_target(std::string_view target) {
    const auto question = target.find('?');
    auto path = percent_decoded(target.substr(0, question), false);
    if (!path || path->empty() || path->front() != '/') return std::nullopt;
    Target parsed{.path = *std::move(path), .query = {}};
    auto rest = question == std::string_view::npos ? std::string_view{} : target.substr(question + 1);
    while (!rest.empty()) {
        const auto end = rest.find('&');
        const auto pair = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        auto key = percent_decoded(pair.substr(0, equals), true);
        auto value = equals == std::string_view::npos ? std::string{} : percent_decoded(pair.substr(equals + 1), true);
        if (!key || !value) return std::nullopt;
        parsed.query[*std::move(key)] = *std::move(value);
    }
    return parsed;
}

Response json_error(int status, std::string_view text) {
    return {.status = status, .content_type = std::string(json_type), .body = boost::json::serialize(boost::json::object{{"error", text}}) + "\n"};
}

void Router::add(std::string method, std::string path, Handler handler) {
    routes_.push_back({std::move(method), std::move(path), std::move(handler)});
}

Response Router::answer(std::string_view method, std::string_view target, std::string body) const {
    auto parsed = parse_target(target);
    if (!parsed) return json_error(400, "the request's target cannot be read");
    const auto wanted = method == "HEAD" ? std::string_view{"GET"} : method;
    std::string allowed;
    for (const auto& route : routes_) {
        if (!serves(route.path, parsed->path)) continue;
        if (route.method == wanted) {
            try {
                return route.handler({std::string(method), std::move(parsed->path), std::move(parsed->query), std::move(body)});
            } catch (const std::exception& e) {
                // Only libraries and memory throw; one request's failure must not end the daemon.
                log_error("http: {} failed: {}", route.path, e.what());
                return json_error(500, "the request failed, see the log");
            }
        }
        if (!allowed.empty()) allowed += ", ";
        allowed += route.method == "GET" ? "GET, HEAD" : route.method;
    }
    if (!allowed.empty()) {
        auto response = json_error(405, "this path knows " + allowed);
        response.allow = allowed;
        return response;
    }
    std::string paths;
    for (const auto& route : routes_) paths += (paths.empty() ? "" : ", ") + route.path;
    return json_error(404, "there is nothing at this path; there are: " + paths);
}

}  // namespace tidemark::http
