/// What may be found on a disk that lost power, for tests that try all of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/faulty_file_system.h"

namespace tidemark::test {

/// Everything unsynced lost, everything kept, and `torn` disks on which some of it is there.
inline std::vector<io::AfterRestart> disks_after_power_loss(std::uint64_t torn) {
    std::vector<io::AfterRestart> disks = {{.unsynced = io::Unsynced::lost}, {.unsynced = io::Unsynced::kept}};
    for (std::uint64_t seed = 1; seed <= torn; ++seed) disks.push_back({.unsynced = io::Unsynced::torn, .seed = seed});
    return disks;
}

/// For the trace of a failure.
template <class Step>
std::string power_loss_text(Step step, const io::AfterRestart& how) {
    return "power lost at step " + std::to_string(step) + ", unsynced " + std::to_string(static_cast<int>(how.unsynced)) + ", seed " + std::to_string(how.seed);
}

}  // namespace tidemark::test
