/// What a partition knows of its producers: sequences against duplicates, open transactions, and from these the last
/// stable offset (append-and-read 4). Memory only; producer_snapshots.h puts it on disk.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "record/control.h"
#include "record/record.h"
#include "record/validation.h"

namespace tidemark::storage {

/// One of a producer's last batches.
struct ProducerBatch {
    Sequence last_sequence = -1;
    Offset last_offset{-1};
    std::int32_t offset_delta = 0;           ///< last offset − first offset
    Timestamp timestamp = no_timestamp;      ///< the batch's largest

    Sequence first_sequence() const { return record::decrement_sequence(last_sequence, offset_delta); }
    Offset first_offset() const { return last_offset - offset_delta; }
    friend bool operator==(const ProducerBatch&, const ProducerBatch&) = default;
};

/// Precondition: it carries a producer id.
ProducerBatch batch_of(const record::BatchView&);

inline constexpr std::size_t remembered_batches_max = 5;

struct ProducerEntry {
    ProducerId id = no_producer_id;
    ProducerEpoch epoch = -1;
    std::int32_t coordinator_epoch = -1;
    Timestamp last_timestamp = no_timestamp;             ///< of records, not of the wall clock
    std::optional<Offset> transaction_first_offset = {}; ///< while one is open
    std::vector<ProducerBatch> batches = {};             ///< oldest first, at most five

    Sequence last_sequence() const { return batches.empty() ? -1 : batches.back().last_sequence; }
    /// A remembered batch of the same epoch with exactly these sequences.
    std::optional<ProducerBatch> duplicate_of(const record::BatchView&) const;
    /// Another epoch forgets the batches of the one before.
    void set_epoch(ProducerEpoch);
    void add(const ProducerBatch&);
};

/// A transaction whose marker has been seen.
struct CompletedTransaction {
    ProducerId producer_id = no_producer_id;
    Offset first_offset{};
    Offset marker_offset{};
    bool aborted = false;
};

/// A transaction of which the coordinator is being asked, so that no late request of an ended one can open another (KIP-890).
enum class VerificationId : std::uint64_t { none = 0 };
struct Verification {
    VerificationId id = VerificationId::none;
    ProducerEpoch epoch = -1;
    Sequence lowest_sequence = -1;               ///< of the requests of this epoch
    bool bumps_epochs = false;                   ///< of a client that goes on with a new epoch after each end
    Timestamp began{};                           ///< by the wall clock
};

class ProducerState;

/// What an append would change: checked batch by batch, applied as a whole once the bytes are written.
class ProducerChanges {
public:
    ProducerChanges(const ProducerState& state, record::Origin origin, std::int16_t transaction_version = 0)
        : state_(state), origin_(origin), transaction_version_(transaction_version) {}

    /// Errc::invalid_producer_epoch, out_of_order_sequence, invalid_transaction_state, coordinator_fenced, invalid_record (a
    /// marker that cannot be read). For replication, which repeats what a leader accepted, only a plain batch inside an
    /// open transaction is an error.
    /// Precondition: the batch carries its offsets and a producer id.
    Result<> add(const record::BatchView& batch);
    const std::vector<CompletedTransaction>& completed() const { return completed_; }

private:
    friend class ProducerState;
    ProducerEntry& entry_of(ProducerId);
    Result<> add_data(const record::BatchView&);
    Result<> add_marker(const record::BatchView&, const record::TransactionMarker&, Timestamp);
    Result<> check_epoch(const ProducerEntry&, const record::BatchView&, bool marker) const;
    Result<> check_sequence(const ProducerEntry&, const record::BatchView&) const;

    const ProducerState& state_;
    const record::Origin origin_;
    const std::int16_t transaction_version_;
    std::map<ProducerId, ProducerEntry> entries_;
    std::map<Offset, ProducerId> started_;
    std::vector<CompletedTransaction> completed_;
    std::vector<std::pair<ProducerId, std::optional<ProducerEpoch>>> decided_;   // transactional batches; markers with their epoch
};

/// Threads: none; the Log's append lock.
class ProducerState {
public:
    const ProducerEntry* find(ProducerId) const;
    bool has_open_transaction(ProducerId, ProducerEpoch) const;
    const std::unordered_map<ProducerId, ProducerEntry>& entries() const { return entries_; }
    bool empty() const { return entries_.empty() && open_.empty(); }

    void apply(ProducerChanges&&);
    /// The last stable offset right after this marker: the first offset of the earliest transaction that another producer
    /// has open, else what follows the marker.
    Offset last_stable_offset_after(const CompletedTransaction&) const;
    /// It is no longer open; until the high watermark passes its marker it still holds the last stable offset down.
    void complete(const CompletedTransaction&);
    /// Forgets completed transactions whose marker lies below `high_watermark` (or the log start).
    void forget_completed_below(Offset high_watermark);
    /// The first offset that is not decided for every reader.
    std::optional<Offset> first_unstable_offset() const;
    /// The earliest timestamp of a producer with an open transaction (metric: late transactions).
    std::optional<Timestamp> oldest_open_transaction() const;

    /// A later request of the same epoch shares the id of the first; a higher epoch begins anew.
    VerificationId begin_verification(ProducerId, ProducerEpoch, Sequence first, bool bumps_epochs, Timestamp now);
    const Verification* find_verification(ProducerId) const;

    void expire(Timestamp now, std::int64_t expiration_ms);
    static bool is_expired(const ProducerEntry&, Timestamp now, std::int64_t expiration_ms);

    /// The offset up to which the log has been looked at: what a snapshot taken now stands for.
    Offset end_offset() const { return end_offset_; }
    void set_end_offset(Offset offset) { end_offset_ = offset; }

    void clear();
    /// As a snapshot gives it.
    void load(ProducerEntry);
    /// A snapshot keeps one batch of each producer. `earlier`, oldest first, ends with that one and comes from the log: the
    /// entry then remembers as many as lead up to it without a gap. Nothing happens when the epoch or the last batch differ.
    void recall(ProducerId, ProducerEpoch, const std::vector<ProducerBatch>& earlier);
    /// Whether any entry may have had more batches than it remembers.
    bool may_lack_batches() const;

private:
    std::unordered_map<ProducerId, ProducerEntry> entries_;
    std::map<Offset, ProducerId> open_;                          // by first offset
    std::map<Offset, CompletedTransaction> unreplicated_;        // completed, the marker at or above the high watermark
    std::unordered_map<ProducerId, Verification> verifications_;
    std::uint64_t verifications_begun_ = 0;
    Offset end_offset_{};
};

}  // namespace tidemark::storage
