/// One round of the cleaner's thread on one log: what selection decides, a pass when it was selected, then retention.
#pragma once

#include "cleaner/cleaning.h"
#include "cleaner/log_state.h"
#include "retention/apply.h"
#include "tests/golden/golden_case.h"

namespace tidemark::golden {

struct CleanRound {
    cleaner::CleaningDecision decision;
    std::optional<Result<cleaner::PassStats>> pass = {};        ///< nothing when it was not selected
    std::optional<Result<retention::Applied>> retention = {};   ///< nothing when the pass broke down
    std::optional<Offset> checkpoint = {};                      ///< of the cleaner, after it
};
/// Throws when the log cannot be read.
CleanRound clean_round(OpenCase&, std::optional<Offset> checkpoint, const Switches&);

void compare_deletions(const retention::Applied&, const json::array&, Differences&);

}  // namespace tidemark::golden
