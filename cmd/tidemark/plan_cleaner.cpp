// plan, the part about the cleaner: what is cleaned next, and why.
#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

#include "cmd/tidemark/plan.h"

namespace tidemark::tool {
namespace {

namespace json = boost::json;

/// A member as text: "-" for null or none.
std::string text(const json::object& object, std::string_view key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return "-";
    if (value->is_string()) return std::string(value->as_string());
    if (value->is_double()) return fmt::format("{:.3f}", value->as_double());
    return json::serialize(*value);
}

}  // namespace

void print_cleaner(const json::object& cleaner) {
    std::fputs("cleaner\n", stdout);
    std::fputs(fmt::format("  {:<40} {:<14} {:>10} {:>10} {:>12} {:>7}  {:<14} {:<16}\n", "log", "next", "from", "to", "dirty bytes", "ratio", "deadline ms", "held by").c_str(), stdout);
    for (const auto& entry : cleaner.at("logs").as_array()) {
        const auto& log = entry.as_object();
        std::fputs(fmt::format("  {:<40} {:<14} {:>10} {:>10} {:>12} {:>7}  {:<14} {:<16}\n", text(log, "topic") + "-" + text(log, "partition"), text(log, "next"), text(log, "first_dirty_offset"),
                               text(log, "cleanable_end_offset"), text(log, "cleanable_bytes"), text(log, "dirty_ratio"), text(log, "deadline"), text(log, "held_by")).c_str(), stdout);
        if (const auto why = text(log, "uncleanable"); why != "-") std::fputs(("    cannot be cleaned: " + why + "\n").c_str(), stdout);
    }
}

}  // namespace tidemark::tool
