/// What the daemon tells systemd (sd_notify(3)). Without systemd every call does nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace tidemark::service {

void ready(const std::string& status);
/// SIGHUP's work begins; ready() ends it.
void reloading();
void stopping(const std::string& status);
/// Asks for more time than TimeoutStartSec or TimeoutStopSec allow.
void extend_timeout(std::chrono::seconds);
/// Feeds the watchdog. Call only while the event loops are alive.
void alive();
/// How often alive() is expected at the latest; nothing when nobody watches.
std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace tidemark::service
