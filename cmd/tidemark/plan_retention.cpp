// plan, the part about retention: what goes at the next pass, and when the rest goes.
#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

#include "cmd/tidemark/client.h"
#include "cmd/tidemark/commands.h"
#include "cmd/tidemark/plan.h"
#include "cmd/tidemark/utc.h"

namespace tidemark::tool {
namespace {

namespace json = boost::json;

template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
    std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stdout);
}

/// "2026-11-30 12:00:00.250" in UTC; years that no calendar has as milliseconds.
std::string time_text(const json::value& ms) {
    if (ms.is_null()) return "never";
    const auto text = utc_text(ms.as_int64(), "%F %T");
    return text ? *text : fmt::format("{} ms", ms.as_int64());
}

std::string limit_text(const char* key, const json::value& limit) { return limit.is_null() ? std::string{} : fmt::format(", {}={}", key, limit.as_int64()); }

std::string span_text(const json::object& segment) {
    const auto& largest = segment.at("largest_timestamp");
    const auto from = segment.at("base_offset").as_int64(), to = segment.at("end_offset").as_int64() - 1;
    return fmt::format("{} to {}{}, {} bytes, newest {}", from, to, segment.at("active").as_bool() ? " (active)" : "", segment.at("bytes").as_int64(),
                       largest.is_null() ? time_text(segment.at("file_time")) + " (file time)" : time_text(largest));
}

/// What a segment that stays waits for.
std::string waits_text(const json::object& segment) {
    const auto &expires = segment.at("expires"), &goes = segment.at("goes");
    if (segment.contains("timestamps")) return "not known yet: its time index is being rebuilt";
    if (goes.is_null()) return expires.is_null() ? "stays" : fmt::format("old enough {}, held by an older one", time_text(expires));
    return fmt::format("{}{}", time_text(goes), goes == expires ? "" : fmt::format(" (old enough {}, held by an older one)", time_text(expires)));
}

void print_log(const json::object& log) {
    if (log.at("bytes").as_int64() == 0) return;
    const auto policy = std::string(log.at("cleanup_policy").as_string());
    print("  {}-{}: cleanup.policy={}{}{}{}, {} bytes in {} segments\n", std::string_view(log.at("topic").as_string()), log.at("partition").as_int64(), policy.empty() ? "(none)" : policy,
          log.at("deletes").as_bool() ? limit_text("retention.ms", log.at("retention_ms")) : "", log.at("deletes").as_bool() ? limit_text("retention.bytes", log.at("retention_bytes")) : "",
          log.at("deletes").as_bool() ? limit_text("log.retention.mintimestamp", log.at("min_timestamp")) : "", log.at("bytes").as_int64(), log.at("segments").to_number<std::int64_t>());
    for (const auto& entry : log.at("due").as_array()) print("    now    {}: {}\n", span_text(entry.as_object()), std::string_view(entry.at("why").as_string()));
    for (const auto& entry : log.at("staying").as_array()) print("    later  {}: {}\n", span_text(entry.as_object()), waits_text(entry.as_object()));
}

}  // namespace

void print_retention(const json::object& retention) {
    std::fputs("retention, times in UTC\n", stdout);
    if (!retention.at("clock_trusted").as_bool()) print("  the clock is not trusted, deletion by time waits: {}\n", std::string_view(retention.at("clock_reason").as_string()));
    if (!retention.at("next_run").is_null()) print("  the next pass is at {}; compacted logs have theirs after each round of the cleaner\n", time_text(retention.at("next_run")));
    for (const auto& log : retention.at("logs").as_array()) print_log(log.as_object());
}

int plan_retention(const PlanOptions& options) {
    std::string target = "/api/v1/retention?segments=yes";
    if (!options.topic.empty()) target += "&topic=" + encoded(options.topic);
    for (const auto& [key, value] : options.settings) target += "&set." + encoded(key) + "=" + encoded(value);
    const auto retention = get_tcp(options.daemon.http, target);
    if (!retention) return failed(retention.error());
    print_retention(retention->as_object());
    return 0;
}

}  // namespace tidemark::tool
