#include "cmd/cleaner_json.h"

#include <boost/json/value.hpp>

namespace tidemark {
namespace {

namespace json = boost::json;

json::value or_null(const std::optional<Timestamp>& value) { return value ? json::value(value->value) : json::value(nullptr); }

}  // namespace

json::object to_json(const cleaner::PlannedPass& planned) {
    const auto& decision = planned.decision;
    return {{"topic", planned.partition.topic},
            {"partition", planned.partition.partition},
            {"next", planned.why ? json::value(cleaner::to_string(*planned.why)) : json::value(nullptr)},
            {"first_dirty_offset", decision.first_dirty.value},
            {"cleanable_end_offset", decision.cleanable_end.value},
            {"held_by", cleaner::to_string(decision.held_by)},
            {"clean_bytes", decision.clean_bytes},
            {"cleanable_bytes", decision.cleanable_bytes},
            {"dirty_ratio", decision.total_bytes() > 0 ? decision.ratio() : 0.0},
            {"deadline", or_null(decision.deadline)},
            {"held_deadline", or_null(decision.held_deadline)},
            {"delay_ms", decision.delay_ms},
            {"delete_horizon_due", or_null(decision.horizon_due)},
            {"idle_roll", cleaner::to_string(planned.idle_roll)},
            {"state", planned.state ? json::value(cleaner::to_string(*planned.state)) : json::value(nullptr)},
            {"uncleanable", planned.uncleanable ? json::value(planned.uncleanable->reason) : json::value(nullptr)}};
}

}  // namespace tidemark
