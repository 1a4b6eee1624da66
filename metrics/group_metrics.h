/// Groups: how many, their members, and how far each is behind, per partition.
#pragma once

#include "daemon/stats.h"
#include "metrics/families.h"
#include "metrics/storage_metrics.h"

namespace tidemark::metrics {

FamilyList families_of(const std::vector<daemon::GroupStats>&, const Cardinality&);

}  // namespace tidemark::metrics
