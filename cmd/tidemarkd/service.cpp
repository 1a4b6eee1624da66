#include "cmd/tidemarkd/service.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <fmt/format.h>

namespace tidemark::service {
namespace {

void notify(const std::string& text) { ::sd_notify(0, text.c_str()); }

}  // namespace

void ready(const std::string& status) { notify("READY=1\nSTATUS=" + status); }

void reloading() {
    // Type=notify-reload compares the time with that of its signal.
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000));
}

void stopping(const std::string& status) { notify("STOPPING=1\nSTATUS=" + status); }

void extend_timeout(std::chrono::seconds by) { notify(fmt::format("EXTEND_TIMEOUT_USEC={}", std::chrono::microseconds{by}.count())); }

void alive() { notify("WATCHDOG=1"); }

std::optional<std::chrono::microseconds> watchdog_interval() {
    std::uint64_t interval = 0;
    if (::sd_watchdog_enabled(0, &interval) <= 0) return std::nullopt;
    return std::chrono::microseconds{interval};
}

}  // namespace tidemark::service
