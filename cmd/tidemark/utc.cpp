#include "cmd/tidemark/utc.h"

#include <ctime>

#include <fmt/format.h>

namespace tidemark::tool {

std::optional<std::string> utc_text(std::int64_t ms, const char* format) {
    constexpr std::int64_t first = -62'135'596'800'000, last = 253'402'300'799'999;   // of the years 1 to 9999
    if (ms < first || ms > last) return std::nullopt;
    const std::time_t seconds = ms / 1000 - (ms % 1000 < 0 ? 1 : 0);
    std::tm broken{};
    char text[32];
    if (::gmtime_r(&seconds, &broken) == nullptr) return std::nullopt;
    std::strftime(text, sizeof text, format, &broken);
    return fmt::format("{}.{:03}", text, ms - seconds * 1000);
}

}  // namespace tidemark::tool
