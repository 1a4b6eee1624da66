#include "cleaner/transactions.h"

namespace tidemark::cleaner {

void TransactionTracker::add(std::span<const AbortedTransaction> aborted) {
    for (const auto& transaction : aborted) ahead_.push(transaction);
}

void TransactionTracker::open_up_to(Offset last) {
    while (!ahead_.empty() && ahead_.top().first_offset <= last) {
        // The one that is there already wins: it may have seen data, and the other is its copy.
        open_.try_emplace(ahead_.top().producer_id, Open{ahead_.top()});
        ahead_.pop();
    }
}

bool TransactionTracker::is_aborted(const record::BatchView& data) {
    open_up_to(data.last_offset());
    if (!data.is_transactional()) return false;
    if (const auto open = open_.find(data.producer_id()); open != open_.end()) {
        open->second.has_data = true;
        return true;
    }
    committed_.insert(data.producer_id());
    return false;
}

TransactionTracker::Marker TransactionTracker::see_control(const record::BatchView& control, std::optional<record::ControlType> type) {
    open_up_to(control.last_offset());
    if (!type) return {.discardable = true};
    switch (*type) {
        case record::ControlType::abort: {
            const auto open = open_.extract(control.producer_id());
            if (open.empty() || !open.mapped().has_data) return {.discardable = true};
            return {.discardable = false, .aborted = open.mapped().transaction};
        }
        case record::ControlType::commit: return {.discardable = committed_.erase(control.producer_id()) == 0};
        default: return {.discardable = false};
    }
}

}  // namespace tidemark::cleaner
