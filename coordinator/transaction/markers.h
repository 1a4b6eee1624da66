/// Markers on their way: each decided transaction's to each of its partitions, until all are durable (transaction-coordinator 9).
#pragma once

#include <map>
#include <memory>
#include <set>

#include "coordinator/runtime.h"
#include "coordinator/transaction/machine.h"

namespace tidemark::coordinator {

/// What becomes of a marker that got this answer.
enum class MarkerFate : std::uint8_t {
    written,
    again,      ///< later: the partition or its disk is away for a while
    dropped,    ///< never, and the transaction completes without it
    given_up,   ///< this coordinator is not the one any more: the transaction stays as it is until it is loaded again
};
MarkerFate fate_of(ErrorCode);

/// Life:    the owner keeps it until its executor runs no more of its jobs.
/// Threads: all members from any thread. `done` comes from the executor or from a storage's sync thread.
class MarkerSender {
public:
    using Written = std::function<void(ErrorCode)>;
    struct Parts {
        const Clock& clock;
        std::function<metadata::ImagePtr()> image;
        /// Of a partition that the image names; null: it has no log.
        std::function<std::shared_ptr<Journal>(const TopicPartition&)> open_journal;
        /// Into a partition of __consumer_offsets, between the other operations of its coordinator, which ends the pending
        /// offsets of the producer with it. Does not block. Null: there is no group coordinator, and its log is one like others.
        std::function<void(std::int32_t partition, const Marker&, Written)> write_group_marker;
        Executor executor;
    };
    explicit MarkerSender(Parts);

    /// One marker, on this thread but for the sync: none once it is durable.
    void write(const TopicPartition&, const Marker&, Written done);

    /// All of them, on the executor, but for those of groups: when this returns, they are with their coordinator, so who asks it
    /// for offsets after the transaction's answer sees them. Those that cannot be written are tried again by tick(). Never calls
    /// `done` when one is given up or the sender is stopped.
    void send(DueMarkers, std::function<void(const DueMarkers&)> done) EXCLUDES(mutex_);
    void tick() EXCLUDES(mutex_);
    void stop() EXCLUDES(mutex_);
    /// Markers that are not written yet.
    std::size_t outstanding() const EXCLUDES(mutex_);

private:
    struct Sending;
    void write_all(const std::shared_ptr<Sending>&, const std::set<TopicPartition>&) EXCLUDES(mutex_);
    void settle(const std::shared_ptr<Sending>&, const TopicPartition&, ErrorCode) EXCLUDES(mutex_);

    const Parts parts_;
    mutable Mutex mutex_;
    std::multimap<Moment, std::shared_ptr<Sending>> again_ GUARDED_BY(mutex_);
    std::size_t outstanding_ GUARDED_BY(mutex_) = 0;
    bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace tidemark::coordinator
