/// A small HTTP/1.1 server for machines that watch the daemon and people who ask it: one thread, two kinds of door.
///
/// The TCP door (http.listener) only reads; the Unix socket (admin.socket) may change something, and the permissions of
/// its directory say who may. Both speak HTTP, so curl reaches both.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "http/router.h"

namespace tidemark::http {

/// What one peer may cost.
struct Limits {
    std::size_t connections_max = 64;               ///< both doors together; one more is closed at once
    std::uint32_t header_bytes_max = 16 * 1024;
    std::uint64_t body_bytes_max = 64 * 1024;
    std::chrono::milliseconds request_time_max{10'000};   ///< from a request's first byte awaited to its last, and for each answer
    std::chrono::milliseconds idle_time_max{60'000};      ///< between two requests of one connection
};

/// Life:    construct; listen_*() as needed; start(); stop() or destroy.
/// Threads: the handlers run on the server's own thread, one at a time; they may take locks for a short while. All
///          members are called from one thread at a time.
class Server {
public:
    explicit Server(Limits = {});
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Binds and listens; port 0 takes a free one. Errc::io when the address is taken: the text says by what setting.
    Result<> listen_tcp(const std::string& host, std::uint16_t port, Router);
    /// Binds a Unix socket of mode 0660. A socket file that nobody listens on is replaced; a live one is Errc::locked.
    Result<> listen_unix(const std::string& path, Router);
    /// The port of listen_tcp(), also when it was asked for 0.
    std::uint16_t tcp_port() const;

    void start();
    /// Closes the doors and every connection, waits for the handler that runs, and removes the Unix socket.
    void stop();

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::http
