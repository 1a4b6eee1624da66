/// One line per event, the partition first: log_info("[{}] rolled at offset {}", partition, offset).
///
/// Where the lines go (journald, a file, the terminal) main decides by setting spdlog's default logger.
/// Threads: all functions from any thread.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <string_view>

namespace tidemark {

enum class LogLevel : std::uint8_t { debug, info, warning, error };

bool log_enabled(LogLevel) noexcept;
/// From now on lines below this level are dropped.
void set_log_level(LogLevel);
void log_line(LogLevel, std::string_view line);

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
    if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) { log_at(LogLevel::debug, format, std::forward<Args>(args)...); }
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) { log_at(LogLevel::info, format, std::forward<Args>(args)...); }
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) { log_at(LogLevel::warning, format, std::forward<Args>(args)...); }
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) { log_at(LogLevel::error, format, std::forward<Args>(args)...); }

/// At most one line in `interval_ms` where a client can cause them; the next one that passes says how many were held.
/// `static LogLimit limit{10000}; if (auto held = limit.admit(); held >= 0) log_warning("... ({} more not shown)", held);`
class LogLimit {
public:
    explicit constexpr LogLimit(std::int64_t interval_ms) : interval_ms_(interval_ms) {}
    /// The number of lines held back since the last admitted one, or -1 when this one is held back too.
    std::int64_t admit() noexcept;
private:
    const std::int64_t interval_ms_;
    std::atomic<std::int64_t> next_ms_{0};
    std::atomic<std::int64_t> held_{0};
};

}  // namespace tidemark
