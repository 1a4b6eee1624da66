// plan, the part about the cleaner: what is cleaned next, and why.
#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

#include "cmd/tidemark/client.h"
#include "cmd/tidemark/plan.h"

namespace tidemark::tool {

namespace json = boost::json;

void print_cleaner(const json::object& cleaner) {
    std::fputs("cleaner\n", stdout);
    std::fputs(fmt::format("  {:<40} {:<14} {:>10} {:>10} {:>12} {:>7}  {:<14} {:<16}\n", "log", "next", "from", "to", "dirty bytes", "ratio", "deadline ms", "held by").c_str(), stdout);
    for (const auto& entry : cleaner.at("logs").as_array()) {
        const auto& log = entry.as_object();
        std::fputs(fmt::format("  {:<40} {:<14} {:>10} {:>10} {:>12} {:>7}  {:<14} {:<16}\n", member_text(log, "topic") + "-" + member_text(log, "partition"), member_text(log, "next"), member_text(log, "first_dirty_offset"),
                               member_text(log, "cleanable_end_offset"), member_text(log, "cleanable_bytes"), member_text(log, "dirty_ratio"), member_text(log, "deadline"), member_text(log, "held_by")).c_str(), stdout);
        if (const auto why = member_text(log, "uncleanable"); why != "-") std::fputs(("    cannot be cleaned: " + why + "\n").c_str(), stdout);
    }
}

}  // namespace tidemark::tool
