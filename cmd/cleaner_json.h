/// The cleaner's decisions as JSON: what the HTTP door answers and what `tidemark plan` prints are the same objects.
#pragma once

#include <boost/json/object.hpp>

#include "cleaner/cleaner_pool.h"

namespace tidemark {

/// One log. Times are milliseconds since the epoch, null where there is none.
boost::json::object to_json(const cleaner::PlannedPass&);

}  // namespace tidemark
