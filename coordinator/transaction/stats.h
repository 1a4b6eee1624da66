/// Numbers of the transaction coordinator, as metrics/ reads them: a copy taken at one moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"

namespace tidemark::coordinator {

struct TransactionStats {
    std::int64_t ids = 0;                                    ///< transactional ids that are known
    std::int64_t open = 0;                                   ///< transactions that have begun and are not complete
    std::optional<Timestamp> oldest_start = {};              ///< of those open
    double oldest_seconds = 0;                               ///< how long ago that was; 0: none is open
    std::uint64_t committed = 0, aborted = 0;                ///< completed since the start
    std::uint64_t timed_out = 0;                             ///< the part of the aborted whose time was over
    std::uint64_t expired_ids = 0;
    std::size_t markers_outstanding = 0;
};

}  // namespace tidemark::coordinator
