/// The cleaner: KIP-354's two gauges under their own names, Kafka's LogCleaner and LogCleanerManager, and the same per partition.
#pragma once

#include "cleaner/cleaner_pool.h"
#include "metrics/families.h"
#include "metrics/storage_metrics.h"

namespace tidemark::metrics {

FamilyList families_of(const cleaner::PoolStats&, const Cardinality&);

}  // namespace tidemark::metrics
