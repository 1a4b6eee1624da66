/// The history of leader epochs of one log: where each began (log-directory 3.2).
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tidemark::storage {

struct EpochStart {
    LeaderEpoch epoch = no_leader_epoch;
    Offset start{};
    friend bool operator==(const EpochStart&, const EpochStart&) = default;
};

/// The largest known epoch that is not above the one asked for, and where it ends.
struct EpochEnd {
    LeaderEpoch epoch = no_leader_epoch;
    Offset end_offset{-1};
    friend bool operator==(const EpochEnd&, const EpochEnd&) = default;
};

/// Sorted by epoch and by start. Plain values: whoever holds one writes the checkpoint when a change is reported.
class LeaderEpochs {
public:
    LeaderEpochs() = default;
    /// Takes what a checkpoint says; entries that are out of order are dropped by assign()'s rule.
    explicit LeaderEpochs(const std::vector<EpochStart>& entries);

    /// Returns whether something changed. Ignored when the latest entry has this epoch and does not begin later; otherwise
    /// entries with a higher or equal epoch or start go from the end first. Precondition: neither is negative.
    bool assign(LeaderEpoch epoch, Offset start);
    /// Removes entries that begin at or behind `end`.
    bool truncate_from_end(Offset end);
    /// Removes entries that begin at or before `start`; the last of these begins at `start` then.
    bool truncate_from_start(Offset start);
    bool clear();

    const std::vector<EpochStart>& entries() const { return entries_; }
    std::optional<EpochStart> latest() const;
    std::optional<EpochStart> earliest() const;
    /// The epoch that an offset was written in.
    std::optional<LeaderEpoch> epoch_at(Offset) const;
    /// OffsetForLeaderEpoch; (-1, -1) when nothing is known.
    EpochEnd end_of(LeaderEpoch epoch, Offset log_end) const;

private:
    std::vector<EpochStart> entries_;
};

}  // namespace tidemark::storage
