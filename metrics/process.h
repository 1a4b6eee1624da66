/// The process and the build: the `process_*` metrics that every Prometheus client library has, and tidemark_build_info.
#pragma once

#include <optional>
#include <string_view>

#include "metrics/families.h"

namespace tidemark::metrics {

/// What /proc says of a process.
struct ProcessStats {
    double cpu_seconds = 0;
    double start_time_seconds = 0;          ///< since the epoch
    double virtual_memory_bytes = 0, resident_memory_bytes = 0;
    double open_fds = 0, max_fds = 0, threads = 0;
};

struct ProcFacts {
    double ticks_per_second = 100, page_bytes = 4096;
    double boot_time_seconds = 0;           ///< since the epoch
};
/// Takes the line of /proc/<pid>/stat apart; nothing when it is not one. The program's name in it may hold anything.
std::optional<ProcessStats> parse_proc_stat(std::string_view line, const ProcFacts&);

/// Of this process; what the system does not tell is 0.
ProcessStats read_process_stats();

FamilyList families_of(const ProcessStats&);
FamilyList build_families();

}  // namespace tidemark::metrics
