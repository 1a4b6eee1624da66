/// The parts of `tidemark plan`: what prints does not care whether a daemon or the tool itself decided.
#pragma once

#include <boost/json/object.hpp>

namespace tidemark::tool {

/// `retention`: clock_trusted, clock_reason, next_run (null: nobody runs), logs as cmd/retention_json.h makes them, with segments.
void print_retention(const boost::json::object& retention);

}  // namespace tidemark::tool
