// golden_test [--filter TEXT] [DIRECTORY…]: plays golden cases with every difference from Kafka turned off and compares
// decisions, files and bytes. A DIRECTORY is a case or holds cases; without one, the shared golden data. Prints a line per
// case; exit code 1 when one failed, 77 when there was nothing to play.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "tests/golden/golden_case.h"

namespace {

namespace fs = std::filesystem;
using tidemark::golden::Case;
using tidemark::golden::Differences;

void find_cases(const fs::path& path, std::vector<std::string>& cases) {
    if (fs::exists(path / "expect.json")) {
        cases.push_back(path.string());
        return;
    }
    if (!fs::is_directory(path)) return;
    for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.is_directory()) find_cases(entry.path(), cases);
    }
}

struct Counts {
    int played = 0, failed = 0, not_played = 0;
};

Differences play(const Case& golden, std::size_t action, std::string_view kind) {
    try {
        return kind == "clean" ? tidemark::golden::play_clean(golden, action) : tidemark::golden::play_retain(golden, action);
    } catch (const std::exception& e) {
        Differences differences;
        differences.add(e.what());
        return differences;
    }
}

bool play_case(const std::string& path, Counts& counts) {
    const Case golden(path);
    bool all_well = true;
    int played = 0;
    std::string failures;
    for (std::size_t i = 0; i < golden.actions().size(); ++i) {
        const std::string kind{golden.actions()[i].at("outcome").at("action").as_string()};
        if (kind != "clean" && kind != "retain") {
            ++counts.not_played;
            continue;
        }
        ++played;
        ++counts.played;
        const auto differences = play(golden, i, kind);
        if (differences.lines().empty()) continue;
        ++counts.failed;
        all_well = false;
        failures += fmt::format("    action {} ({}):\n", i + 1, kind);
        for (const auto& line : differences.lines()) failures += "        " + line + "\n";
    }
    if (played > 0) std::printf("%-4s  %s  %d\n%s", all_well ? "ok" : "FAIL", golden.name().c_str(), played, failures.c_str());
    return all_well;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> cases;
    std::string filter;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view{argv[i]} == "--filter" && i + 1 < argc) filter = argv[++i];
        else find_cases(argv[i], cases);
    }
    const bool given = argc > 1 && !(argc == 3 && !filter.empty());
    if (!given) {
        const char* shared = std::getenv("TIDEMARK_SHARED");
        find_cases(fs::path(shared != nullptr ? shared : "../shared") / "golden", cases);
    }
    std::erase_if(cases, [&](const std::string& path) { return path.find(filter) == std::string::npos; });
    std::ranges::sort(cases);
    if (cases.empty()) {
        std::puts("SKIPPED: no golden cases found");
        return 77;
    }
    Counts counts;
    int failed_cases = 0;
    for (const auto& path : cases) failed_cases += play_case(path, counts) ? 0 : 1;
    std::printf("%zu cases, %d failed; %d actions played, %d failed; %d actions of other kinds not played\n", cases.size(), failed_cases, counts.played, counts.failed,
                counts.not_played);
    return failed_cases == 0 ? 0 : 1;
}
