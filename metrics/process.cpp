#include "metrics/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string>

namespace tidemark::metrics {
namespace {

std::string first_line(const char* path) {
    std::ifstream in{path};
    std::string line;
    std::getline(in, line);
    return line;
}

/// When the machine was booted, from two clocks rather than /proc/stat, which a sandbox may hide.
double read_boot_time() {
    timespec wall{}, since_boot{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return static_cast<double>(wall.tv_sec - since_boot.tv_sec) + static_cast<double>(wall.tv_nsec - since_boot.tv_nsec) * 1e-9;
}

double count_open_fds() {
    auto* directory = ::opendir("/proc/self/fd");
    if (directory == nullptr) return 0;
    int entries = 0;
    while (::readdir(directory) != nullptr) ++entries;
    ::closedir(directory);
    return entries - 3;  // ".", ".." and the descriptor that reads them
}

}  // namespace

std::optional<ProcessStats> parse_proc_stat(std::string_view line, const ProcFacts& facts) {
    // pid (name) state ppid …: the fields are counted from behind the last ')', the state being field 3 of proc(5).
    const auto name_end = line.rfind(')');
    if (name_end == std::string_view::npos) return std::nullopt;
    auto rest = line.substr(name_end + 1);
    double field[25] = {};
    int number = 2;
    while (number < 24) {
        const auto begin = rest.find_first_not_of(' ');
        if (begin == std::string_view::npos) return std::nullopt;
        rest = rest.substr(begin);
        const auto end = rest.find(' ');
        const auto word = rest.substr(0, end);
        ++number;
        if (number > 3) {
            const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), field[number]);
            if (error != std::errc{}) return std::nullopt;
        }
        if (end == std::string_view::npos) break;
        rest = rest.substr(end);
    }
    if (number < 24) return std::nullopt;
    ProcessStats stats;
    stats.cpu_seconds = (field[14] + field[15]) / facts.ticks_per_second;
    stats.threads = field[20];
    stats.start_time_seconds = facts.boot_time_seconds + field[22] / facts.ticks_per_second;
    stats.virtual_memory_bytes = field[23];
    stats.resident_memory_bytes = field[24] * facts.page_bytes;
    return stats;
}

ProcessStats read_process_stats() {
    static const ProcFacts facts{.ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK)), .page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE)), .boot_time_seconds = read_boot_time()};
    auto stats = parse_proc_stat(first_line("/proc/self/stat"), facts).value_or(ProcessStats{});
    stats.open_fds = count_open_fds();
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = static_cast<double>(limit.rlim_cur);
    return stats;
}

FamilyList families_of(const ProcessStats& stats) {
    FamilyList families;
    add_counter(families, "process_cpu_seconds_total", "User and system CPU time spent.", stats.cpu_seconds);
    add_gauge(families, "process_start_time_seconds", "When the process was started, since the epoch.", stats.start_time_seconds);
    add_gauge(families, "process_virtual_memory_bytes", "Virtual memory.", stats.virtual_memory_bytes);
    add_gauge(families, "process_resident_memory_bytes", "Resident memory.", stats.resident_memory_bytes);
    add_gauge(families, "process_open_fds", "Open file descriptors.", stats.open_fds);
    add_gauge(families, "process_max_fds", "The limit of open file descriptors.", stats.max_fds);
    add_gauge(families, "process_threads", "Threads.", stats.threads);
    return families;
}

FamilyList build_families() {
    FamilyList families;
    auto info = gauge("tidemark_build_info", "Always 1; its labels say what was built, and which Apache Kafka it speaks like.");
    info.add({{"version", TIDEMARK_VERSION}, {"compiler", __VERSION__}, {"kafka", "4.4.0"}}, 1);
    std::move(info).move_to(families);
    return families;
}

}  // namespace tidemark::metrics
