/// Times as the tool shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tidemark::tool {

/// Milliseconds since the epoch in UTC: strftime's `format`, then ".250". Nothing for years that no calendar has.
std::optional<std::string> utc_text(std::int64_t ms, const char* format);

}  // namespace tidemark::tool
