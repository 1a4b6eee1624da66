#include <atomic>
#include <memory>
#include <thread>

#include "bench/load/modes.h"
#include "protocol/messages/fetch_response.h"
#include "protocol/messages/produce_response.h"

namespace tidemark::bench {

namespace {

/// When each request's turn came, by number; written by the producer before it sends, read by the consumers after.
struct Turns {
    explicit Turns(std::size_t n) : ns(std::make_unique<std::atomic<std::int64_t>[]>(n)), size(n) {}
    std::unique_ptr<std::atomic<std::int64_t>[]> ns;
    std::size_t size;
};

Result<> write(const ProduceOptions& options, Turns& turns, Control& control, Progress& progress) {
    TM_TRY(auto connection, Connection::open(options.run.broker));
    TM_TRY(auto frame, ProduceFrame::make(options.topic.name, 0, options.acks, options.batch));
    const double interval_ns = 1e9 * frame.records() / options.records_per_second;
    const std::int64_t begin = monotonic_ns();
    std::size_t sent = 0;
    std::int32_t answered = 0;
    const std::int32_t first = connection.next_correlation_id();
    std::int32_t last = first - 1;
    while ((!control.stopping() && sent < turns.size) || first + answered <= last) {
        const std::int64_t due = begin + static_cast<std::int64_t>(static_cast<double>(sent) * interval_ns);
        const bool done = control.stopping() || sent == turns.size;
        if (!done && due <= monotonic_ns()) {
            turns.ns[sent].store(due, std::memory_order_release);
            last = first + static_cast<std::int32_t>(sent);
            TM_TRYV(connection.send(frame.with_correlation_id(last)));
            ++sent;
            progress.add(1, frame.records(), static_cast<std::int64_t>(frame.batch_bytes()));
            continue;
        }
        TM_TRY(const bool readable, connection.wait_readable(std::chrono::nanoseconds(done ? 100'000'000 : due - monotonic_ns())));
        if (!readable) continue;
        TM_TRY(const auto answer, connection.answer<protocol::ProduceResponse>(first + answered, produce_version));
        ++answered;
        for (const auto& topic : answer.responses) {
            for (const auto& partition : topic.partition_responses) {
                if (partition.error_code != protocol::ErrorCode::none) return refused("produce", partition.error_code);
            }
        }
    }
    return {};
}

Result<> follow(const TailOptions& options, std::int64_t begin, std::int32_t records_per_batch, const Turns& turns, Control& control, Latencies& latencies) {
    TM_TRY(auto connection, Connection::open(options.produce.run.broker));
    std::int64_t at = begin;
    while (!control.stopping()) {
        const std::int32_t id = connection.next_correlation_id();
        TM_TRY(const auto frame, fetch_frame(id, options.produce.topic.name, {{0, at}}, options.fetch));
        TM_TRYV(connection.send(frame.bytes));
        TM_TRY(const auto answer, connection.answer<protocol::FetchResponse>(id, fetch_version));
        const std::int64_t now = monotonic_ns();
        if (answer.responses.size() != 1 || answer.responses[0].partitions.size() != 1) return Error{Errc::corrupt, "not the answer to this fetch"};
        const auto& partition = answer.responses[0].partitions[0];
        if (partition.error_code != protocol::ErrorCode::none) return refused("fetch", partition.error_code);
        record::BatchCursor cursor(partition.records ? Bytes(partition.records->bytes) : Bytes());
        for (;;) {
            TM_TRY(const auto batch, cursor.next());
            if (!batch) break;
            const auto number = static_cast<std::size_t>((batch->base_offset().value - begin) / records_per_batch);
            if (number >= turns.size) return Error{Errc::corrupt, "somebody else writes to the topic too"};
            if (control.measuring()) latencies.add(now - turns.ns[number].load(std::memory_order_acquire));
            at = batch->next_offset().value;
        }
    }
    return {};
}

}  // namespace

Result<Report> tail(const TailOptions& options) {
    const auto& produce = options.produce;
    if (produce.records_per_second <= 0 || produce.acks == 0) return Error{Errc::invalid_argument, "tail wants a rate, and acks 1 or all"};
    TM_TRY(auto connection, Connection::open(produce.run.broker));
    TM_TRYV(ensure_topic(connection, produce.topic));
    TM_TRY(const auto ends, offsets(connection, produce.topic.name, 1, Position::latest));
    TM_TRY(const auto shape, ProduceFrame::make(produce.topic.name, 0, produce.acks, produce.batch));
    Turns turns(static_cast<std::size_t>((produce.run.warm_up_seconds + produce.run.seconds + 5) * produce.records_per_second / shape.records()) + 1);
    return run("tail", produce.run, 1 + options.consumers, [&](std::size_t number, Control& control, Progress& progress, Latencies& latencies) {
        if (number == 0) return write(produce, turns, control, progress);
        return follow(options, ends[0], shape.records(), turns, control, latencies);
    });
}

}  // namespace tidemark::bench
