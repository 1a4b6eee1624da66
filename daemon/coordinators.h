/// The coordinators on this node, between the handlers that bring them requests, the metadata that opens them, and the disk
/// pool, on which runs what may take long.
#pragma once

#include "base/mutex.h"
#include "coordinator/group/group_coordinator.h"
#include "coordinator/transaction/coordinator.h"
#include "daemon/stats.h"
#include "metadata/image.h"

namespace tidemark::daemon {

class Broker;

/// Life:    made and ended by its Broker; stop() while the disk pool still works.
/// Threads: all members from any thread.
class Coordinators {
public:
    explicit Coordinators(Broker&);

    coordinator::GroupCoordinator& groups() { return groups_; }
    coordinator::TransactionCoordinator& transactions() { return transactions_; }

    /// Topics or settings are others now; images older than one seen before are passed over.
    void image_changed(const metadata::ImagePtr&) EXCLUDES(mutex_);
    /// Timers: call it often, a twentieth of a second apart at most.
    void tick();
    void stop();

    /// Waits for the coordinators, a second at most; what has not answered by then is left out.
    std::vector<GroupStats> group_stats();

    /// Begins to create an internal topic, unless that is going on already.
    void create_group_topic();
    void create_transaction_topic();

private:
    Broker& broker_;
    Mutex mutex_;
    Offset seen_ GUARDED_BY(mutex_){-1};
    coordinator::GroupCoordinator groups_;
    coordinator::TransactionCoordinator transactions_;
};

}  // namespace tidemark::daemon
