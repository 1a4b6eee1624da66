#include <sys/resource.h>

#include <thread>

#include "bench/load/modes.h"
#include "protocol/messages/api_versions_request.h"
#include "protocol/messages/api_versions_response.h"

namespace tidemark::bench {

namespace {

/// A descriptor for each connection and some for the rest.
Result<> allow_descriptors(std::size_t n) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= n) return {};
    limit.rlim_cur = std::min<rlim_t>(n, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < n) return Error{Errc::invalid_argument, "the limit of open files is " + std::to_string(limit.rlim_max)};
    return {};
}

}  // namespace

Result<Report> idle(const IdleOptions& options) {
    TM_TRYV(allow_descriptors(options.connections + 64));
    std::vector<Connection> connections;
    connections.reserve(options.connections);
    Report report;
    report.mode = "idle";
    for (std::size_t n = 0; n < options.connections; ++n) {
        TM_TRY(auto connection, Connection::open(options.broker));
        connections.push_back(std::move(connection));
        protocol::ApiVersionsRequest request;
        request.client_software_name = "tidemark-load";
        request.client_software_version = "1";
        TM_TRY(const auto answer, connections.back().ask<protocol::ApiVersionsResponse>(request, 3));
        if (answer.error_code != protocol::ErrorCode::none) return refused("ApiVersions", answer.error_code);
        ++report.requests;
    }
    if (options.broker_pid > 0) {
        TM_TRY(report.broker_begin, process_use(options.broker_pid));
    }
    const std::int64_t begin = monotonic_ns();
    std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
    report.seconds = static_cast<double>(monotonic_ns() - begin) / 1e9;
    if (options.broker_pid > 0) {
        TM_TRY(report.broker_end, process_use(options.broker_pid));
    }
    // Whoever was dropped meanwhile reads an end.
    for (auto& connection : connections) {
        TM_TRY(const bool readable, connection.wait_readable(std::chrono::nanoseconds(0)));
        if (readable) return Error{Errc::io, "the broker closed an idle connection"};
    }
    return report;
}

}  // namespace tidemark::bench
