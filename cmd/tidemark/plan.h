/// The parts of `tidemark plan`: what prints does not care whether a daemon or the tool itself decided.
#pragma once

#include <boost/json/object.hpp>

#include "cmd/tidemark/commands.h"

namespace tidemark::tool {

/// `cleaner`: logs as cmd/cleaner_json.h makes them.
void print_cleaner(const boost::json::object& cleaner);

/// `retention`: clock_trusted, clock_reason, next_run (null: nobody runs), logs as cmd/retention_json.h makes them, with segments.
void print_retention(const boost::json::object& retention);
/// The plan for a directory that no daemon has open.
int plan_at_rest(const PlanOptions&);

}  // namespace tidemark::tool
