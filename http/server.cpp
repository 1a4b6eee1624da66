// One coroutine accepts per door, one serves per connection:
//   1. read a request's header and body within the limits; an answer of our own for what is malformed or too large
//   2. let the router answer
//   3. write the answer; go on when both sides keep the connection
// Every wait on a peer has a deadline by basic_stream's timer, so a silent peer costs a slot for a bounded time.
#include "http/server.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/thread.h"

namespace tidemark::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace bhttp = boost::beast::http;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Stream = beast::basic_stream<Protocol>;

constexpr auto use_value = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t read_bytes_max = 4096;

bhttp::response<bhttp::string_body> message_of(Response&& response, unsigned version, bool keep_alive, bool head) {
    bhttp::response<bhttp::string_body> message{static_cast<bhttp::status>(response.status), version};
    message.set(bhttp::field::server, "tidemarkd");
    message.set(bhttp::field::content_type, response.content_type);
    message.set(bhttp::field::cache_control, "no-store");
    if (response.allow) message.set(bhttp::field::allow, *response.allow);
    message.keep_alive(keep_alive);
    const auto length = response.body.size();
    if (!head) message.body() = std::move(response.body);
    message.content_length(length);
    return message;
}

/// What a request that Beast refused is told; nothing when the connection is simply over.
std::optional<Response> answer_to(const error_code& error) {
    if (error == bhttp::error::header_limit || error == bhttp::error::buffer_overflow) return json_error(431, "the request's header is too large");
    if (error == bhttp::error::body_limit) return json_error(413, "the request's body is too large");
    if (error == bhttp::error::end_of_stream || error == bhttp::error::partial_message) return std::nullopt;
    if (error.category() == bhttp::make_error_code(bhttp::error::bad_method).category()) return json_error(400, "this is not HTTP/1.1: " + error.message());
    return std::nullopt;
}

struct Door {
    asio::basic_socket_acceptor<Protocol> acceptor;
    Router router;
    std::string name;
};

}  // namespace

struct Server::Impl {
    explicit Impl(Limits given) : limits(given) {}

    const Limits limits;
    std::set<Stream*> open;                     // one per connection; touched on the server's thread only. Outlives the
                                                // context, whose end destroys the coroutines that still wait
    asio::io_context context{1};
    std::vector<std::unique_ptr<Door>> doors;
    std::uint16_t port = 0;
    std::string unix_path;
    std::thread thread;
    bool stopping = false;                      // touched on the server's thread only

    Result<> add_door(const Protocol::endpoint& endpoint, const std::string& name, Router router, bool reuse_address);
    asio::awaitable<void> accept(Door& door);
    asio::awaitable<void> serve(std::shared_ptr<Stream> stream, const Router& router);
};

Result<> Server::Impl::add_door(const Protocol::endpoint& endpoint, const std::string& name, Router router, bool reuse_address) {
    auto door = std::make_unique<Door>(Door{asio::basic_socket_acceptor<Protocol>{context}, std::move(router), name});
    error_code error;
    door->acceptor.open(endpoint.protocol(), error);
    if (!error && reuse_address) door->acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) door->acceptor.bind(endpoint, error);
    if (!error) door->acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return Error{Errc::io, "cannot listen on " + name, error};
    doors.push_back(std::move(door));
    return {};
}

asio::awaitable<void> Server::Impl::accept(Door& door) {
    for (;;) {
        auto [error, socket] = co_await door.acceptor.async_accept(use_value);
        if (error == asio::error::operation_aborted || stopping) co_return;
        if (error) {
            // Out of descriptors or memory: the queue stays, so wait instead of spinning.
            static LogLimit limit{10'000};
            if (const auto held = limit.admit(); held >= 0) log_warning("http: accepting on {} failed: {} ({} more not shown)", door.name, error.message(), held);
            asio::steady_timer pause{context, std::chrono::milliseconds{100}};
            co_await pause.async_wait(use_value);
            continue;
        }
        if (open.size() >= limits.connections_max) {
            static LogLimit limit{10'000};
            if (const auto held = limit.admit(); held >= 0) log_warning("http: more than {} connections, one closed ({} more not shown)", limits.connections_max, held);
            continue;  // the socket closes itself
        }
        asio::co_spawn(context, serve(std::make_shared<Stream>(std::move(socket)), door.router), asio::detached);
    }
}

asio::awaitable<void> Server::Impl::serve(std::shared_ptr<Stream> stream, const Router& router) {
    // Whatever ends this coroutine, an exception from a library included, gives the slot back.
    struct Slot {
        Impl& server;
        Stream* stream;
        ~Slot() { server.open.erase(stream); }
    } slot{*this, stream.get()};
    open.insert(stream.get());
    beast::flat_buffer buffer{std::max<std::size_t>(limits.header_bytes_max + limits.body_bytes_max, read_bytes_max)};
    for (;;) {
        bhttp::request_parser<bhttp::string_body> parser;
        parser.header_limit(limits.header_bytes_max);
        parser.body_limit(limits.body_bytes_max);

        // A connection may rest between requests; once a request has begun it has request_time_max to arrive whole.
        if (buffer.size() == 0) {
            stream->expires_after(limits.idle_time_max);
            auto [error, bytes] = co_await stream->async_read_some(buffer.prepare(read_bytes_max), use_value);
            if (error) break;
            buffer.commit(bytes);
        }
        stream->expires_after(limits.request_time_max);
        auto [read_error, read_bytes] = co_await bhttp::async_read(*stream, buffer, parser, use_value);

        bool keep_alive = false, head = false;
        unsigned version = 11;
        Response response;
        if (read_error) {
            auto refused = answer_to(read_error);
            if (!refused) break;
            response = *std::move(refused);
        } else {
            auto request = parser.release();
            keep_alive = request.keep_alive();
            head = request.method() == bhttp::verb::head;
            version = request.version();
            response = router.answer({request.method_string().data(), request.method_string().size()},
                                     {request.target().data(), request.target().size()}, std::move(request.body()));
        }
        if (stopping) break;
        auto message = message_of(std::move(response), version, keep_alive, head);
        stream->expires_after(limits.request_time_max);
        // A HEAD's answer states the length of a body that is not sent.
        bhttp::response_serializer<bhttp::string_body> serializer{message};
        error_code write_error;
        if (head) {
            auto [error, bytes] = co_await bhttp::async_write_header(*stream, serializer, use_value);
            write_error = error;
        } else {
            auto [error, bytes] = co_await bhttp::async_write(*stream, serializer, use_value);
            write_error = error;
        }
        if (write_error || !keep_alive) break;
    }
    // What the peer had still to say is read away for a moment: closing over unread bytes would reset the connection
    // and take the answer with it.
    error_code ignored;
    stream->socket().shutdown(asio::socket_base::shutdown_send, ignored);
    buffer.clear();
    stream->expires_after(std::min(limits.request_time_max, std::chrono::milliseconds{1000}));
    for (;;) {
        auto [error, bytes] = co_await stream->async_read_some(buffer.prepare(read_bytes_max), use_value);
        if (error) break;
    }
}

Server::Server(Limits limits) : impl_(std::make_unique<Impl>(limits)) {}
Server::~Server() { stop(); }

Result<> Server::listen_tcp(const std::string& host, std::uint16_t port, Router router) {
    const auto name = host + ":" + std::to_string(port);
    error_code error;
    asio::ip::tcp::resolver resolver{impl_->context};
    const auto found = resolver.resolve(host, std::to_string(port), asio::ip::resolver_base::passive | asio::ip::resolver_base::numeric_service, error);
    if (error || found.empty()) return Error{Errc::io, "cannot resolve " + host, error};
    TM_TRYV(impl_->add_door(Protocol::endpoint{found.begin()->endpoint()}, name, std::move(router), true));
    const auto bound = impl_->doors.back()->acceptor.local_endpoint(error);
    if (error) return Error{Errc::io, "no address for " + name, error};
    asio::ip::tcp::endpoint endpoint;
    endpoint.resize(bound.size());
    std::memcpy(endpoint.data(), bound.data(), bound.size());
    impl_->port = endpoint.port();
    return {};
}

Result<> Server::listen_unix(const std::string& path, Router router) {
    if (path.size() >= sizeof(sockaddr_un{}.sun_path)) return Error{Errc::invalid_argument, path + ": longer than a socket's name may be (107 bytes)"};
    const asio::local::stream_protocol::endpoint endpoint{path};
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) {
        if (!S_ISSOCK(status.st_mode)) return Error{Errc::already_exists, path + " exists and is not a socket"};
        error_code error;
        asio::local::stream_protocol::socket probe{impl_->context};
        probe.connect(endpoint, error);
        if (!error) return Error{Errc::locked, path + ": another process listens there"};
        if (::unlink(path.c_str()) != 0) return Error{Errc::io, path, std::error_code(errno, std::generic_category())};
    }
    // Between bind and a chmod anybody could connect, so the mode comes from the umask. The daemon binds before its threads run.
    const auto old_mask = ::umask(0117);
    auto result = impl_->add_door(Protocol::endpoint{endpoint}, path, std::move(router), false);
    ::umask(old_mask);
    if (result) impl_->unix_path = path;
    return result;
}

std::uint16_t Server::tcp_port() const { return impl_->port; }

void Server::start() {
    for (auto& door : impl_->doors) asio::co_spawn(impl_->context, impl_->accept(*door), asio::detached);
    impl_->thread = std::thread([this] {
        name_this_thread("http");
        impl_->context.run();
    });
}

void Server::stop() {
    if (!impl_->thread.joinable()) return;
    asio::post(impl_->context, [impl = impl_.get()] {
        impl->stopping = true;
        error_code ignored;
        for (auto& door : impl->doors) door->acceptor.close(ignored);
        for (auto* stream : impl->open) stream->close();
        impl->context.stop();
    });
    impl_->thread.join();
    if (!impl_->unix_path.empty()) ::unlink(impl_->unix_path.c_str());
}

}  // namespace tidemark::http
