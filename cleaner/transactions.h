/// Follows transactions through the batches of a pass: whose data was aborted, and which markers have nothing left to mark.
///
/// Source: cleaner 7.2, KIP-98, KIP-534. A marker outlives its data by one pass: the pass that removes the last data batch
/// (or leaves it as an empty one) still has seen it.
#pragma once

#include <queue>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/control.h"
#include "storage/transaction_index.h"

namespace tidemark::cleaner {

using storage::AbortedTransaction;

/// Life:    one for each of a pass's two walks, over all its segments and groups. Batches come in offset order.
/// Threads: one.
class TransactionTracker {
public:
    /// Entries of the transaction indexes that overlap what comes next; the same one may come more than once.
    void add(std::span<const AbortedTransaction>);

    /// A data batch. True: it belongs to an aborted transaction, its records go.
    bool is_aborted(const record::BatchView& data);

    struct Marker {
        bool discardable = false;                          ///< nothing that it marks was seen in this walk
        std::optional<AbortedTransaction> aborted = {};    ///< goes into the transaction index of the output
    };
    /// A control batch; `type` is that of its record, nothing when it has none (an earlier pass emptied it).
    Marker see_control(const record::BatchView& control, std::optional<record::ControlType> type);

private:
    struct Open {
        AbortedTransaction transaction;
        bool has_data = false;
    };
    void open_up_to(Offset last);

    struct LaterFirst {
        bool operator()(const AbortedTransaction& a, const AbortedTransaction& b) const { return a.first_offset > b.first_offset; }
    };
    std::priority_queue<AbortedTransaction, std::vector<AbortedTransaction>, LaterFirst> ahead_;   // by first offset
    std::unordered_map<ProducerId, Open> open_;
    std::unordered_set<ProducerId> committed_;         // has data of a transaction that is, so far, not aborted
};

}  // namespace tidemark::cleaner
