#include "storage/leader_epochs.h"

#include <algorithm>

#include "base/assert.h"

namespace tidemark::storage {

LeaderEpochs::LeaderEpochs(const std::vector<EpochStart>& entries) {
    for (const auto& entry : entries) assign(entry.epoch, entry.start);
}

bool LeaderEpochs::assign(LeaderEpoch epoch, Offset start) {
    TM_ASSERT(epoch >= 0 && start.value >= 0);
    if (!entries_.empty() && entries_.back().epoch == epoch && entries_.back().start <= start) return false;
    while (!entries_.empty() && (entries_.back().epoch >= epoch || entries_.back().start >= start)) entries_.pop_back();
    entries_.push_back({epoch, start});
    return true;
}

bool LeaderEpochs::truncate_from_end(Offset end) {
    bool changed = false;
    for (; !entries_.empty() && entries_.back().start >= end; changed = true) entries_.pop_back();
    return changed;
}

bool LeaderEpochs::truncate_from_start(Offset start) {
    const auto kept = std::find_if(entries_.begin(), entries_.end(), [&](const EpochStart& e) { return e.start > start; });
    if (kept == entries_.begin()) return false;
    const auto last_removed = *std::prev(kept);
    if (kept == std::next(entries_.begin()) && last_removed.start == start) return false;
    entries_.erase(entries_.begin(), kept);
    entries_.insert(entries_.begin(), {last_removed.epoch, start});
    return true;
}

bool LeaderEpochs::clear() {
    if (entries_.empty()) return false;
    entries_.clear();
    return true;
}

std::optional<EpochStart> LeaderEpochs::latest() const { return entries_.empty() ? std::nullopt : std::optional(entries_.back()); }
std::optional<EpochStart> LeaderEpochs::earliest() const { return entries_.empty() ? std::nullopt : std::optional(entries_.front()); }

std::optional<LeaderEpoch> LeaderEpochs::epoch_at(Offset offset) const {
    std::optional<LeaderEpoch> found;
    for (const auto& entry : entries_) {
        if (entry.start > offset) break;
        found = entry.epoch;
    }
    return found;
}

EpochEnd LeaderEpochs::end_of(LeaderEpoch epoch, Offset log_end) const {
    if (epoch < 0 || entries_.empty()) return {};
    if (entries_.back().epoch == epoch) return {epoch, log_end};
    const auto above = std::find_if(entries_.begin(), entries_.end(), [&](const EpochStart& e) { return e.epoch > epoch; });
    if (above == entries_.end()) return {};                       // an epoch that is still to come
    if (above == entries_.begin()) return {epoch, above->start};  // before all that is known: it ended where they begin
    return {std::prev(above)->epoch, above->start};
}

}  // namespace tidemark::storage
