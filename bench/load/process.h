/// What the kernel says of the broker's process: CPU time and memory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"

namespace tidemark::bench {

struct ProcessUse {
    double cpu_seconds = 0;       ///< user and system, of all threads, also those that ended
    std::int64_t resident_bytes = 0;
};

/// Errors: io, when there is no such process on this machine.
Result<ProcessUse> process_use(int pid);

}  // namespace tidemark::bench
