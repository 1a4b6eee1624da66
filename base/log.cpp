#include "base/log.h"

#include <spdlog/spdlog.h>

#include <chrono>

namespace tidemark {
namespace {

spdlog::level::level_enum level_of(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::debug: return spdlog::level::debug;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::warning: return spdlog::level::warn;
        case LogLevel::error: return spdlog::level::err;
    }
    return spdlog::level::err;
}

}  // namespace

bool log_enabled(LogLevel level) noexcept { return spdlog::should_log(level_of(level)); }

void set_log_level(LogLevel level) { spdlog::set_level(level_of(level)); }

void log_line(LogLevel level, std::string_view line) { spdlog::log(level_of(level), "{}", line); }

std::int64_t LogLimit::admit() noexcept {
    using namespace std::chrono;
    const auto now = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
    auto next = next_ms_.load(std::memory_order_relaxed);
    if (now < next || !next_ms_.compare_exchange_strong(next, now + interval_ms_)) {
        held_.fetch_add(1, std::memory_order_relaxed);
        return -1;
    }
    return held_.exchange(0);
}

}  // namespace tidemark
