#include "bench/load/process.h"

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tidemark::bench {

Result<ProcessUse> process_use(int pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    if (!std::getline(file, line)) return Error{Errc::io, "no process " + std::to_string(pid)};
    // The second field is the program's name in brackets and may hold anything; utime and stime are the fields 14 and 15, rss is 24.
    std::istringstream rest(line.substr(line.rfind(')') + 1));
    std::string state;
    rest >> state;
    std::int64_t field[25] = {};
    for (int n = 4; n <= 24; ++n) rest >> field[n];
    if (!rest) return Error{Errc::io, "/proc/" + std::to_string(pid) + "/stat cannot be read"};
    return ProcessUse{
        .cpu_seconds = static_cast<double>(field[14] + field[15]) / static_cast<double>(sysconf(_SC_CLK_TCK)),
        .resident_bytes = field[24] * sysconf(_SC_PAGESIZE),
    };
}

}  // namespace tidemark::bench
