/// Asks a running daemon: one HTTP request over TCP or its Unix socket.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidemark::tool {

/// The answer's JSON. Errc::io: nobody listens there; Errc::invalid_argument with the daemon's text: it refused.
Result<boost::json::value> get_tcp(const std::string& host_and_port, const std::string& target);
Result<boost::json::value> ask_unix(const std::string& path, const std::string& method, const std::string& target);

/// A member of an answer as text: "-" for null or none.
std::string member_text(const boost::json::object&, std::string_view key);

/// Says to standard error what went wrong; returns the exit status that it deserves.
int failed(const Error&);

/// Percent-encoded for a query.
std::string encoded(std::string_view text);

}  // namespace tidemark::tool
