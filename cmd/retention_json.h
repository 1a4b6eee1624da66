/// Retention as JSON: what the HTTP door answers and what `tidemark plan` prints are the same objects.
#pragma once

#include <boost/json/object.hpp>

#include "retention/scheduler.h"

namespace tidemark {

/// One log: its rules, its bounds, `due` (what goes at the next pass, with the reason) and, with `segments`, for each of the
/// others when it goes. Times are milliseconds since the epoch, null where there is none.
boost::json::object to_json(const retention::Plan&, bool segments);
/// {"retention.ms": {"segments": 1, "bytes": 2, "records": 3}, …}: what went, by rule.
boost::json::object to_json(const std::array<retention::Deleted, retention::rule_count>&);

}  // namespace tidemark
