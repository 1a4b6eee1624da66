#include "base/clock.h"

#include <ctime>

namespace tidemark {
namespace {

std::int64_t milliseconds_of(clockid_t id) {
    timespec t{};
    ::clock_gettime(id, &t);
    return std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

}  // namespace

Timestamp SystemClock::now() const { return Timestamp{milliseconds_of(CLOCK_REALTIME)}; }

std::chrono::milliseconds SystemClock::since_boot() const { return std::chrono::milliseconds{milliseconds_of(CLOCK_BOOTTIME)}; }

}  // namespace tidemark
