/// Requests, connections, topics' traffic and the event loops.
#pragma once

#include "daemon/stats.h"
#include "metrics/families.h"

namespace tidemark::metrics {

/// At most so many different pairs of client software names and versions get a series; clients choose these words.
inline constexpr std::size_t client_software_max = 100;

FamilyList families_of(const daemon::ServerStats&);

}  // namespace tidemark::metrics
