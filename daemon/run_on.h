/// File work off the network threads: `auto bytes = co_await run_on(pool, std::move(job));`
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <memory>
#include <type_traits>
#include <utility>

#include "daemon/asio.h"
#include "daemon/disk_pool.h"

namespace tidemark::daemon {

/// Runs `job` on the pool and resumes the coroutine on its own loop with what it returned. The job owns all it uses: the
/// coroutine's frame may be gone before it runs. Returns values only (no void), which are default constructible or not.
/// Give the job a name; a lambda that stands inside a co_await expression loses its captures twice in GCC 12.
template <class Job>
Task<std::invoke_result_t<Job&>> run_on(DiskPool& pool, Job job) {
    using Value = std::invoke_result_t<Job&>;
    auto start = [&pool, job = std::move(job)](auto handler) mutable {
        auto executor = asio::get_associated_executor(handler);
        struct Running {
            Job job;
            decltype(handler) done;
        };
        auto running = std::make_shared<Running>(Running{std::move(job), std::move(handler)});
        pool.submit([running = std::move(running), executor] {
            auto value = std::make_shared<Value>(running->job());
            asio::post(executor, [running, value] { std::move(running->done)(std::move(*value)); });
        });
    };
    co_return co_await asio::async_initiate<const asio::use_awaitable_t<Executor>, void(Value)>(std::move(start), asio::use_awaitable_t<Executor>{});
}

}  // namespace tidemark::daemon
