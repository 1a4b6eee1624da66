#include "bench/load/run.h"

#include <chrono>
#include <deque>
#include <thread>

namespace tidemark::bench {

namespace {

using std::chrono::duration;

constexpr auto progress_interval = std::chrono::milliseconds(2);

Progress& total(const std::deque<Progress>& workers, Progress& to) {
    to.requests = to.records = to.bytes = 0;
    for (const auto& one : workers) to.add(one.requests, one.records, one.bytes);
    return to;
}

}  // namespace

Result<Report> run(const char* mode, const RunOptions& options, std::size_t workers, const std::function<Result<>(std::size_t, Control&, Progress&, Latencies&)>& work) {
    Control control;
    std::deque<Progress> progress(workers);
    std::deque<Latencies> latencies(workers);
    std::vector<std::jthread> threads;
    control.running_ = workers;
    control.measuring_ = options.warm_up_seconds <= 0;

    Report report;
    report.mode = mode;
    if (options.broker_pid > 0) {
        TM_TRY(report.broker_begin, process_use(options.broker_pid));
    }
    std::int64_t begin_ns = monotonic_ns();
    for (std::size_t n = 0; n < workers; ++n) {
        threads.emplace_back([&, n] {
            auto done = work(n, control, progress[n], latencies[n]);
            const std::lock_guard lock(control.mutex_);
            if (!done && !control.failure_) control.failure_ = std::move(done).error();
            if (!done) control.stopping_ = true;
            --control.running_;
            control.changed_.notify_all();
        });
    }

    // False: the work is over, or has failed.
    std::unique_lock lock(control.mutex_);
    const auto go_on_for = [&](duration<double> time) { return !control.changed_.wait_for(lock, time, [&] { return control.running_ == 0 || control.failure_; }); };

    Progress before, after;
    if (options.warm_up_seconds > 0 && go_on_for(duration<double>(options.warm_up_seconds))) {
        control.measuring_ = true;
        if (options.broker_pid > 0) {
            if (auto use = process_use(options.broker_pid)) report.broker_begin = *use;
        }
        begin_ns = monotonic_ns();
        total(progress, before);
    }
    if (options.bytes > 0) {
        while (total(progress, after).bytes - before.bytes < options.bytes && go_on_for(progress_interval)) {}
    } else {
        go_on_for(duration<double>(options.seconds));
    }
    total(progress, after);
    report.seconds = static_cast<double>(monotonic_ns() - begin_ns) / 1e9;
    if (options.broker_pid > 0) {
        if (auto use = process_use(options.broker_pid)) report.broker_end = *use;
    }
    control.stopping_ = true;
    lock.unlock();
    threads.clear();
    if (control.failure_) return *control.failure_;

    report.requests = after.requests - before.requests;
    report.records = after.records - before.records;
    report.bytes = after.bytes - before.bytes;
    for (const auto& one : latencies) report.latencies.add(one);
    return report;
}

}  // namespace tidemark::bench
