#include "bench/load/modes.h"
#include "protocol/messages/fetch_response.h"

namespace tidemark::bench {

namespace {

struct Reading {
    FetchPosition at;
    std::int64_t begin = 0, end = 0;
    std::int32_t rounds_left = 1;
};

/// Moves on behind the whole batches of one answer. A batch that begins before the position (a fetch gets whole ones) counts whole.
Result<> advance(Reading& reading, Bytes records, Progress& progress) {
    record::BatchCursor cursor(records);
    std::int64_t count = 0, bytes = 0;
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) break;
        count += batch->record_count().value_or(0);
        bytes += static_cast<std::int64_t>(batch->size());
        reading.at.offset = batch->next_offset().value;
    }
    progress.add(0, count, bytes);
    while (reading.at.offset >= reading.end && reading.rounds_left > 0) {
        --reading.rounds_left;
        reading.at.offset = reading.begin;
        if (reading.begin == reading.end) reading.rounds_left = 0;
    }
    return {};
}

Result<> consume_worker(const ConsumeOptions& options, std::size_t number, Control& control, Progress& progress, Latencies& latencies) {
    TM_TRY(auto connection, Connection::open(options.run.broker));
    TM_TRY(const auto begins, offsets(connection, options.topic, options.partitions, Position::earliest));
    TM_TRY(const auto ends, offsets(connection, options.topic, options.partitions, Position::latest));
    std::vector<Reading> readings;
    for (std::size_t p = number; p < begins.size(); p += options.connections) {
        if (begins[p] < ends[p]) readings.push_back({{static_cast<std::int32_t>(p), begins[p]}, begins[p], ends[p], options.rounds});
    }
    while (!readings.empty() && !control.stopping()) {
        std::vector<FetchPosition> wanted;
        for (const auto& reading : readings) wanted.push_back(reading.at);
        const std::int64_t begin = monotonic_ns();
        const std::int32_t id = connection.next_correlation_id();
        TM_TRY(const auto frame, fetch_frame(id, options.topic, wanted, options.fetch));
        TM_TRYV(connection.send(frame.bytes));
        TM_TRY(const auto answer, connection.answer<protocol::FetchResponse>(id, fetch_version));
        if (control.measuring()) latencies.add(monotonic_ns() - begin);
        progress.add(1, 0, 0);
        if (answer.error_code != protocol::ErrorCode::none) return refused("fetch", answer.error_code);
        for (const auto& topic : answer.responses) {
            for (const auto& partition : topic.partitions) {
                if (partition.error_code != protocol::ErrorCode::none) return refused(options.topic + "-" + std::to_string(partition.partition_index), partition.error_code);
                for (auto& reading : readings) {
                    if (reading.at.partition == partition.partition_index && partition.records) TM_TRYV(advance(reading, partition.records->bytes, progress));
                }
            }
        }
        std::erase_if(readings, [](const Reading& reading) { return reading.rounds_left == 0; });
        // Those that were answered last are first next time, or a large one at the front would starve the others.
        if (readings.size() > 1) std::rotate(readings.begin(), readings.begin() + 1, readings.end());
    }
    return {};
}

}  // namespace

Result<Report> consume(const ConsumeOptions& options) {
    return run("fetch", options.run, options.connections, [&](std::size_t number, Control& control, Progress& progress, Latencies& latencies) {
        return consume_worker(options, number, control, progress, latencies);
    });
}

}  // namespace tidemark::bench
