// golden_test [--parity] [--filter TEXT] [DIRECTORY…]: plays golden cases on the project's own storage, cleaner and retention, twice:
// with every difference from Kafka turned off, against what Kafka did; and with the defaults, against the same, or where a
// difference shows, against the project's own expectation (differences/<case>.json); and once more for each
// differences/<case>+<what>.json, whose settings ask for something that Kafka does not have. --parity leaves these out. A
// DIRECTORY is a case or holds cases; without one, the shared golden data. Prints a line per case; exit code 1 when one
// failed, 77 when there was nothing to play.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/log.h"
#include "tests/golden/golden_case.h"

namespace {

namespace fs = std::filesystem;
namespace golden = tidemark::golden;
using golden::Case;
using golden::Differences;

const fs::path expectations = "tests/golden/differences";

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
    int failed_cases = 0, failed = 0;
    std::map<std::string, int> played = {};
};

const std::map<std::string, Differences (*)(const Case&, std::size_t)> players = {
    {"clean", golden::play_clean}, {"retain", golden::play_retain}, {"recover", golden::play_recover}, {"lookup", golden::play_lookup}, {"extend", golden::play_extend},
};

template <class Play>
Differences guarded(Play play) {
    try {
        return play();
    } catch (const std::exception& e) {
        Differences differences;
        differences.add(e.what());
        return differences;
    }
}

void play_case(const Case& which, const char* how, Counts& counts) {
    int played = 0;
    std::string failures;
    const auto note = [&](const std::string& kind, const std::string& step, const Differences& differences) {
        ++played;
        ++counts.played[kind];
        if (differences.lines().empty()) return;
        ++counts.failed;
        failures += fmt::format("    {} ({}):\n", step, kind);
        for (const auto& line : differences.lines()) failures += "        " + line + "\n";
    };
    if (golden::has_playable_build(which)) note("build", "build", guarded([&] { return golden::play_build(which); }));
    for (std::size_t i = 0; i < which.actions().size(); ++i) {
        const std::string kind{which.actions()[i].at("outcome").at("action").as_string()};
        note(kind, fmt::format("action {}", i + 1), guarded([&] { return players.at(kind)(which, i); }));
    }
    if (!failures.empty()) ++counts.failed_cases;
    std::printf("%-4s  %s  %s  %d\n%s", failures.empty() ? "ok" : "FAIL", which.name().c_str(), how, played, failures.c_str());
}

std::vector<fs::path> settings_of(const std::string& name) {
    std::vector<fs::path> files;
    if (!fs::exists(expectations)) return files;
    for (const auto& entry : fs::directory_iterator(expectations)) {
        if (entry.path().filename().string().starts_with(name + "+")) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

void play(const std::string& path, bool parity_only, Counts& counts) {
    play_case(Case(path), "parity", counts);
    if (parity_only) return;
    const auto own = expectations / (fs::path(path).filename().string() + ".json");
    play_case(Case(path, golden::Switches::ours(), fs::exists(own) ? own.string() : std::string{}), "defaults", counts);
    for (const auto& asked : settings_of(fs::path(path).filename().string())) play_case(Case(path, golden::Switches::ours(), asked.string()), asked.stem().c_str(), counts);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> cases;
    std::string filter;
    bool given = false, parity_only = false;
    for (int i = 1; i < argc; ++i) {
        if (std::string_view{argv[i]} == "--filter" && i + 1 < argc) {
            filter = argv[++i];
        } else if (std::string_view{argv[i]} == "--parity") {
            parity_only = true;
        } else {
            find_cases(argv[i], cases);
            given = true;
        }
    }
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
    for (const auto& path : cases) play(path, parity_only, counts);
    std::printf("%zu cases, %s: %d failed\n", cases.size(), parity_only ? "in parity" : "each in parity and with the defaults, some with settings of ours", counts.failed_cases);
    for (const auto& [kind, n] : counts.played) std::printf("    %4d  %s\n", n, kind.c_str());
    return counts.failed_cases == 0 ? 0 : 1;
}
