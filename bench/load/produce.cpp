// One thread and one connection per worker: requests go out until `depth` are unanswered, then answers are awaited.
#include <sys/prctl.h>

#include <deque>

#include "bench/load/modes.h"
#include "protocol/messages/produce_response.h"

namespace tidemark::bench {

namespace {

/// When the next request may go: always, or by a steady beat.
class Beat {
public:
    explicit Beat(double requests_per_second) : interval_ns_(requests_per_second > 0 ? 1e9 / requests_per_second : 0), begin_ns_(monotonic_ns()) {}
    bool has_rate() const { return interval_ns_ > 0; }
    std::int64_t due_ns() const { return begin_ns_ + static_cast<std::int64_t>(static_cast<double>(count_) * interval_ns_); }
    void next() { ++count_; }

private:
    double interval_ns_;
    std::int64_t begin_ns_;
    std::int64_t count_ = 0;
};

struct InFlight {
    std::int32_t correlation_id = 0;
    std::int64_t since_ns = 0;
    std::size_t frame = 0;
};

Result<> check(const protocol::ProduceResponse& answer) {
    for (const auto& topic : answer.responses) {
        for (const auto& partition : topic.partition_responses) {
            if (partition.error_code != protocol::ErrorCode::none) return refused(topic.name + "-" + std::to_string(partition.index), partition.error_code);
        }
    }
    return {};
}

Result<> produce_worker(const ProduceOptions& options, std::size_t number, Control& control, Progress& progress, Latencies& latencies) {
    // A beat finer than the default slack of 50 µs.
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    TM_TRY(auto connection, Connection::open(options.run.broker));
    std::vector<ProduceFrame> frames;
    for (std::size_t p = number; p < static_cast<std::size_t>(options.topic.partitions); p += options.connections) {
        TM_TRY(auto frame, ProduceFrame::make(options.topic.name, static_cast<std::int32_t>(p), options.acks, options.batch));
        frames.push_back(std::move(frame));
    }
    // More connections than partitions: they share.
    if (frames.empty()) {
        TM_TRY(auto frame, ProduceFrame::make(options.topic.name, static_cast<std::int32_t>(number) % options.topic.partitions, options.acks, options.batch));
        frames.push_back(std::move(frame));
    }
    Beat beat(options.records_per_second / static_cast<double>(options.connections) / frames.front().records());
    std::deque<InFlight> in_flight;
    std::size_t turn = 0;
    while (!control.stopping() || !in_flight.empty()) {
        const std::int64_t now = monotonic_ns();
        const bool due = !beat.has_rate() || beat.due_ns() <= now;
        if (!control.stopping() && due && in_flight.size() < options.depth) {
            InFlight request{connection.next_correlation_id(), beat.has_rate() ? beat.due_ns() : now, turn};
            TM_TRYV(connection.send(frames[turn].with_correlation_id(request.correlation_id)));
            if (options.acks == 0) progress.add(1, frames[turn].records(), static_cast<std::int64_t>(frames[turn].batch_bytes()));
            else in_flight.push_back(request);
            turn = (turn + 1) % frames.size();
            beat.next();
            continue;
        }
        const bool waits_for_beat = in_flight.size() < options.depth && beat.has_rate() && !control.stopping();
        const auto wait = std::chrono::nanoseconds(waits_for_beat ? beat.due_ns() - now : 100'000'000);
        TM_TRY(const bool readable, connection.wait_readable(wait));
        if (!readable || in_flight.empty()) continue;
        TM_TRY(const auto answer, connection.answer<protocol::ProduceResponse>(in_flight.front().correlation_id, produce_version));
        TM_TRYV(check(answer));
        const InFlight done = in_flight.front();
        in_flight.pop_front();
        if (control.measuring()) latencies.add(monotonic_ns() - done.since_ns);
        progress.add(1, frames[done.frame].records(), static_cast<std::int64_t>(frames[done.frame].batch_bytes()));
    }
    return {};
}

}  // namespace

Result<Report> produce(const ProduceOptions& options) {
    TM_TRY(auto connection, Connection::open(options.run.broker));
    TM_TRYV(ensure_topic(connection, options.topic));
    return run("produce", options.run, options.connections, [&](std::size_t number, Control& control, Progress& progress, Latencies& latencies) {
        return produce_worker(options, number, control, progress, latencies);
    });
}

}  // namespace tidemark::bench
