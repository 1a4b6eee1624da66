#include <thread>

#include "bench/load/modes.h"
#include "protocol/messages/metadata_request.h"
#include "protocol/messages/metadata_response.h"

namespace tidemark::bench {

namespace {

constexpr auto retry_pause = std::chrono::microseconds(500);

Result<> serves(const ReadyOptions& options) {
    TM_TRY(auto connection, Connection::open(options.broker));
    protocol::MetadataRequest request;
    request.topics.emplace();
    TM_TRY(const auto answer, connection.ask<protocol::MetadataResponse>(request, metadata_version));
    if (answer.brokers.empty()) return Error{Errc::not_found, "metadata without a broker"};
    if (!options.topic.empty()) TM_TRYV(offsets(connection, options.topic, options.partitions, Position::latest));
    return {};
}

}  // namespace

Result<Report> ready(const ReadyOptions& options) {
    const std::int64_t begin = options.since_ns > 0 ? options.since_ns : monotonic_ns();
    for (;;) {
        const auto served = serves(options);
        const double passed = static_cast<double>(monotonic_ns() - begin) / 1e9;
        if (served) {
            Report report;
            report.mode = "ready";
            report.seconds = passed;
            return report;
        }
        if (passed > options.give_up_seconds) return in_context(served.error(), "not ready");
        std::this_thread::sleep_for(retry_pause);
    }
}

}  // namespace tidemark::bench
