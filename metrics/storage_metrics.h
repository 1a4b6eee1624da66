/// Logs and log directories.
#pragma once

#include <cstddef>
#include <vector>

#include "base/topic_partition.h"
#include "metrics/families.h"
#include "storage/log_manager.h"

namespace tidemark::metrics {

/// How many series a scrape may have (B69: a broker with many partitions can drown a small Prometheus).
struct Cardinality {
    bool per_partition = true;              ///< metrics.per.partition.enable
    std::size_t partitions_max = 10'000;    ///< metrics.partitions.max: above it none of them is shown one by one

    bool shows(std::size_t partitions) const { return per_partition && partitions <= partitions_max; }
};

struct PartitionLogStats {
    TopicPartition partition;
    storage::LogStats stats;
};

/// Sums over all logs always, series per partition within the limit.
FamilyList families_of(const std::vector<PartitionLogStats>&, const Cardinality&);
FamilyList families_of(const std::vector<storage::LogDirStats>&);

/// Both, read from the manager now. A log that is deleted meanwhile is left out.
FamilyList storage_families(const storage::LogManager&, const Cardinality&);

}  // namespace tidemark::metrics
