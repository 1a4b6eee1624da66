/// Which function answers which path. Knows no socket: tests call answer() with plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidemark::http {

/// One request, its target taken apart: `GET /api/v1/topics?name=a%20b` has path "/api/v1/topics" and query {name: "a b"}.
struct Request {
    std::string method;                          ///< in capitals, as it came
    std::string path;
    std::map<std::string, std::string> query;    ///< percent-decoded; of a repeated key the last one
    std::string body;
};

struct Response {
    int status = 200;
    std::string content_type = "text/plain; charset=utf-8";
    std::string body;
    std::optional<std::string> allow = {};       ///< the Allow header of a 405
};

using Handler = std::function<Response(const Request&)>;

inline constexpr std::string_view json_type = "application/json";

/// Path and query of a request's target; nothing when an escape is broken or the path does not begin with '/'.
struct Target {
    std::string path;
    std::map<std::string, std::string> query;
};
std::optional<Target> parse_target(std::string_view target);

/// `{"error": text}` with a status.
Response json_error(int status, std::string_view text);

/// Life:    filled before the server starts, then constant.
/// Threads: answer() from any thread when the handlers are.
class Router {
public:
    /// `method` is GET or POST; a GET route answers HEAD too. A path that ends in '/' serves all below it.
    void add(std::string method, std::string path, Handler);
    /// 404 with a list of the paths for what is not there, 405 for a method the path does not know, 500 when a handler
    /// throws. `target` is the request line's.
    Response answer(std::string_view method, std::string_view target, std::string body) const;
private:
    struct Route {
        std::string method, path;
        Handler handler;
    };
    std::vector<Route> routes_;
};

}  // namespace tidemark::http
