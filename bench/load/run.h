/// A measured run: workers that run until told to stop, and somebody who warms up, measures, and stops them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "bench/load/connection.h"
#include "bench/load/report.h"

namespace tidemark::bench {

struct RunOptions {
    Address broker;
    double warm_up_seconds = 0;    ///< not measured
    double seconds = 10;           ///< measured
    std::int64_t bytes = 0;        ///< above zero: measured until so many bytes are done, `seconds` or not
    int broker_pid = 0;            ///< above zero: its CPU time and memory are part of the report
};

/// What one worker has done so far. Written by the worker, read by run().
struct Progress {
    std::atomic<std::int64_t> requests{0}, records{0}, bytes{0};

    void add(std::int64_t more_requests, std::int64_t more_records, std::int64_t more_bytes) {
        requests.fetch_add(more_requests, std::memory_order_relaxed);
        records.fetch_add(more_records, std::memory_order_relaxed);
        bytes.fetch_add(more_bytes, std::memory_order_relaxed);
    }
};

/// Threads: all members from any thread.
class Control {
public:
    bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
    /// Latencies count from now on.
    bool measuring() const { return measuring_.load(std::memory_order_relaxed); }

private:
    friend Result<Report> run(const char*, const RunOptions&, std::size_t, const std::function<Result<>(std::size_t, Control&, Progress&, Latencies&)>&);
    std::atomic<bool> stopping_{false}, measuring_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t running_ = 0;           // guarded by mutex_
    std::optional<Error> failure_;      // guarded by mutex_: the first
};

/// Runs `workers` threads of `work(number, control, progress, latencies)`, which return when Control::stopping() or when
/// there is nothing more to do. Errors: the first worker's.
Result<Report> run(const char* mode, const RunOptions&, std::size_t workers, const std::function<Result<>(std::size_t, Control&, Progress&, Latencies&)>& work);

}  // namespace tidemark::bench
