#include "cmd/retention_json.h"

#include <boost/json.hpp>

#include <string>

namespace tidemark {
namespace {

namespace json = boost::json;

json::value or_null(const std::optional<std::int64_t>& value) { return value ? json::value(*value) : json::value(nullptr); }
json::value or_null(const std::optional<Timestamp>& value) { return value ? json::value(value->value) : json::value(nullptr); }
json::value unless_unlimited(std::int64_t value) { return value == storage::unlimited ? json::value(nullptr) : json::value(value); }

const char* policy_of(const storage::LogConfig& config) {
    if (config.compacts) return config.deletes ? "compact,delete" : "compact";
    return config.deletes ? "delete" : "";
}

json::object segment_of(const retention::LogState& log, std::size_t i) {
    const auto& s = log.segments[i];
    return {{"base_offset", s.base_offset.value},
            {"end_offset", (i + 1 < log.segments.size() ? log.segments[i + 1].base_offset : log.log_end_offset).value},
            {"bytes", s.bytes},
            {"largest_timestamp", or_null(s.largest_record_timestamp)},
            {"file_time", or_null(s.modified)},
            {"active", i + 1 == log.segments.size()}};
}

json::array due_of(const retention::Plan& plan) {
    json::array due;
    for (const auto& deletion : plan.decision.deletions) {
        auto segment = segment_of(plan.state, deletion.segment);
        segment["rule"] = retention::to_string(deletion.rule);
        segment["why"] = deletion.text();
        due.push_back(std::move(segment));
    }
    return due;
}

/// `expires`: when retention.ms lets it go by itself; `goes`: when those in front of it are gone as well.
json::array staying_of(const retention::Plan& plan) {
    json::array staying;
    for (const auto& f : plan.forecasts) {
        auto segment = segment_of(plan.state, f.segment);
        segment["expires"] = or_null(f.expires);
        segment["goes"] = or_null(f.goes);
        if (plan.state.segments[f.segment].timestamps_unknown) segment["timestamps"] = "being read";
        staying.push_back(std::move(segment));
    }
    return staying;
}

}  // namespace

json::object to_json(const std::array<retention::Deleted, retention::rule_count>& deleted) {
    json::object by_rule;
    for (std::size_t i = 0; i < deleted.size(); ++i)
        by_rule[retention::to_string(static_cast<retention::Rule>(i))] = {{"segments", deleted[i].segments}, {"bytes", deleted[i].bytes}, {"records", deleted[i].records}};
    return by_rule;
}

json::object to_json(const retention::Plan& plan, bool segments) {
    const auto& config = plan.config;
    std::int64_t bytes = 0;
    for (const auto& s : plan.state.segments) bytes += s.bytes;
    json::object log{{"topic", plan.partition.topic},
                     {"partition", plan.partition.partition},
                     {"cleanup_policy", policy_of(config)},
                     {"compacts", config.compacts},
                     {"deletes", config.deletes},
                     {"retention_ms", or_null(config.retention_ms)},
                     {"retention_bytes", or_null(config.retention_bytes)},
                     {"min_timestamp", or_null(config.retention_min_timestamp)},
                     {"min_compaction_lag_ms", config.min_compaction_lag_ms},
                     {"max_compaction_lag_ms", unless_unlimited(config.max_compaction_lag_ms)},
                     {"log_start_offset", plan.state.log_start_offset.value},
                     {"high_watermark", plan.state.high_watermark.value},
                     {"log_end_offset", plan.state.log_end_offset.value},
                     {"bytes", bytes},
                     {"segments", plan.state.segments.size()},
                     {"future_segments", plan.decision.future.size()},
                     {"held_back_segments", plan.decision.held_back},
                     {"next_deletion", or_null(plan.decision.next_deletion)},
                     {"due", due_of(plan)}};
    if (segments) log["staying"] = staying_of(plan);
    return log;
}

}  // namespace tidemark
