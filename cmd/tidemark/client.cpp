#include "cmd/tidemark/client.h"

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

namespace tidemark::tool {
namespace {

namespace asio = boost::asio;
namespace bhttp = boost::beast::http;

template <class Socket>
Result<boost::json::value> ask(Socket& socket, const std::string& method, const std::string& target) {
    bhttp::request<bhttp::empty_body> request{bhttp::string_to_verb(method), target, 11};
    request.set(bhttp::field::host, "tidemarkd");
    request.keep_alive(false);
    request.prepare_payload();
    boost::system::error_code error;
    bhttp::write(socket, request, error);
    boost::beast::flat_buffer buffer;
    bhttp::response_parser<bhttp::string_body> parser;
    parser.body_limit(boost::none);
    if (!error) bhttp::read(socket, buffer, parser, error);
    if (error) return Error{Errc::io, "the daemon did not answer", error};
    const auto& response = parser.get();
    auto body = boost::json::parse(response.body(), error);
    if (response.result_int() != 200) {
        const auto* text = !error && body.is_object() ? body.as_object().if_contains("error") : nullptr;
        return Error{Errc::invalid_argument, text != nullptr && text->is_string() ? std::string(text->as_string()) : fmt::format("the daemon answered {}", response.result_int())};
    }
    if (error) return Error{Errc::corrupt, "the daemon's answer is not JSON", error};
    return body;
}

}  // namespace

int failed(const Error& error) {
    std::fprintf(stderr, "%s\n", error.context.empty() ? error.message().c_str() : (error.context + (error.os ? ": " + error.os.message() : "")).c_str());
    return error.code == Errc::invalid_argument ? 2 : 1;
}

Result<boost::json::value> get_tcp(const std::string& host_and_port, const std::string& target) {
    const auto colon = host_and_port.rfind(':');
    if (colon == std::string::npos) return Error{Errc::invalid_argument, host_and_port + " is not host:port"};
    asio::io_context context;
    boost::system::error_code error;
    const auto found = asio::ip::tcp::resolver{context}.resolve(host_and_port.substr(0, colon), host_and_port.substr(colon + 1), error);
    asio::ip::tcp::socket socket{context};
    if (!error) asio::connect(socket, found, error);
    if (error) return Error{Errc::io, "no daemon at http://" + host_and_port + " (http.listener; --http says another place)", error};
    return ask(socket, "GET", target);
}

Result<boost::json::value> ask_unix(const std::string& path, const std::string& method, const std::string& target) {
    asio::io_context context;
    asio::local::stream_protocol::socket socket{context};
    boost::system::error_code error;
    socket.connect(asio::local::stream_protocol::endpoint{path}, error);
    if (error) return Error{Errc::io, "no daemon at " + path + " (admin.socket; --admin-socket says another place)", error};
    return ask(socket, method, target);
}

std::string encoded(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
        if (plain) out += c;
        else out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

std::string member_text(const boost::json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return "-";
    if (value->is_string()) return std::string(value->as_string());
    if (value->is_double()) return fmt::format("{:.3f}", value->as_double());
    return boost::json::serialize(*value);
}

}  // namespace tidemark::tool
