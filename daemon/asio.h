/// The parts of Boost.Asio that this folder uses, with the executor fixed: an event loop is an io_context with one thread,
/// so what runs on it needs no strands and no type-erased executors.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

namespace tidemark::daemon {

namespace asio = boost::asio;
using asio::ip::tcp;

using Executor = asio::io_context::executor_type;
/// A coroutine on an event loop.
template <class T = void>
using Task = asio::awaitable<T, Executor>;
using Socket = asio::basic_stream_socket<tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock, asio::wait_traits<std::chrono::steady_clock>, Executor>;

/// `const auto [error, n] = co_await socket.async_read_some(buffer, as_value)`: what goes wrong at a peer is a value.
inline constexpr asio::as_tuple_t<asio::use_awaitable_t<Executor>> as_value{};

}  // namespace tidemark::daemon
