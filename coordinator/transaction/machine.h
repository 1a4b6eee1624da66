/// The transactions of one partition of __transaction_state: requests, markers done, time (transaction-coordinator 3 to 8, 11).
///
///   begin ──► partitions added ──► PrepareCommit | PrepareAbort written, durable ──► answer, markers (marker_sender.h)
///                                  CompleteCommit | CompleteAbort written ◄───────── every marker durable
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coordinator/transaction/decisions.h"

namespace tidemark::coordinator {

/// Kafka's keys and defaults (transaction-coordinator 12).
struct TransactionOptions {
    std::int32_t timeout_ms_max = 900'000;               ///< transaction.max.timeout.ms
    std::int64_t expiration_ms = 604'800'000;            ///< transactional.id.expiration.ms
    std::int64_t abort_interval_ms = 10'000;             ///< transaction.abort.timed.out.transaction.cleanup.interval.ms
    std::int64_t expire_interval_ms = 3'600'000;         ///< transaction.remove.expired.transaction.cleanup.interval.ms
    std::int64_t retry_ms_max = 100;                     ///< add.partitions.to.txn.retry.backoff.max.ms
    bool two_phase_commit = false;                       ///< transaction.two.phase.commit.enable
};

/// What InitProducerId and EndTxn answer: -1 where they answer no producer.
struct ProducerAnswer {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = no_producer_epoch;
    ErrorCode error = ErrorCode::none;
};

/// VerifyOnly. With an error `missing` says nothing.
struct VerifyAnswer {
    std::set<TopicPartition> missing = {};               ///< of those asked for, not in the transaction
    ErrorCode error = ErrorCode::none;

    ErrorCode of(const TopicPartition& partition) const {
        return error == ErrorCode::none && missing.contains(partition) ? ErrorCode::transaction_abortable : error;
    }
};

struct NamedTransaction {
    std::string id;
    Transaction transaction;
};
struct ListAnswer {
    std::vector<NamedTransaction> transactions = {};
    ErrorCode error = ErrorCode::none;
};

/// A decided transaction whose markers are due.
struct DueMarkers {
    std::int32_t partition = 0;                          ///< of __transaction_state
    std::string id;
    std::set<TopicPartition> to;
    Marker marker;
};

/// What state machines reach of the world beside their Context. Threads: all members from any thread.
class TransactionSurroundings {
public:
    virtual ~TransactionSurroundings() = default;
    virtual Coded<ProducerId> new_producer_id() = 0;
    /// The decision is durable: TransactionMachine::markers_written() is to follow.
    virtual void send_markers(DueMarkers) = 0;
    /// It could not be made durable in time: TransactionMachine::send_markers_again() is to follow.
    virtual void decision_delayed(std::int32_t partition, std::string id) = 0;
};

/// Read by the metrics at any time.
struct TransactionGauges {
    std::atomic<std::int64_t> ids{0}, open{0};
    std::atomic<std::int64_t> oldest_start_ms{-1};       ///< of those open; -1: none
    std::atomic<std::uint64_t> timed_out{0}, committed{0}, aborted{0}, expired_ids{0};
};

class TransactionMachine final : public StateMachine {
public:
    TransactionMachine(std::int32_t partition, const TransactionOptions&, TransactionSurroundings&, std::shared_ptr<TransactionGauges>);

    // --- requests; ids are not empty -------------------------------------------------------------------------------

    void init_producer_id(Context&, const std::string& id, std::int32_t timeout_ms, const ExpectedProducer&, Reply<ProducerAnswer>);
    /// `patient`: while markers of the transaction before are outstanding it waits, for retry_ms_max, instead of an error.
    void add_partitions(Context&, const std::string& id, const Producer&, const std::set<TopicPartition>&, std::int16_t client_version, bool patient, std::function<void(ErrorCode)>);
    void verify_partitions(Context&, const std::string& id, const Producer&, const std::set<TopicPartition>&, Reply<VerifyAnswer>);
    void end_transaction(Context&, const std::string& id, const Producer&, bool commit, std::int16_t request_version, Reply<ProducerAnswer>);
    /// All of them, or the one with this id, if it is there.
    void list(Context&, std::optional<std::string> id, Reply<ListAnswer>);

    // --- markers ---------------------------------------------------------------------------------------------------

    /// The markers of `id` that were due at this producer's epoch are durable.
    void markers_written(Context&, const std::string& id, const Producer&);
    void send_markers_again(Context&, const std::string& id);

    // --- StateMachine ----------------------------------------------------------------------------------------------

    Result<> replay(const ReplayedRecord&) override;
    void loaded(Context&) override;
    void unloaded(ErrorCode reason) override;
    std::optional<Moment> next_deadline() const override;
    void tick(Context&) override;

private:
    struct WaitingAdd {
        Moment deadline{};
        Producer producer;
        std::set<TopicPartition> partitions;
        std::int16_t client_version = 0;
        std::function<void(ErrorCode)> reply;
    };
    struct Entry {
        Transaction transaction;
        Timestamp decided_at = no_timestamp;             // last update of the completion's record
        std::vector<WaitingAdd> waiting = {};            // for the completion
    };
    using Entries = std::map<std::string, Entry, std::less<>>;

    std::int16_t level(const Context&) const;
    DecisionContext decision_context(Context&) const;
    /// Writes what was decided, keeps it, and sends markers when it is a result. The error that the client is told.
    ErrorCode carry_out(Context&, const std::string& id, Entry&, const Decision&);
    void keep(Entry&, Transaction);
    void when_decided(Context&, const std::string& id, Entry&);
    void complete(Context&, const std::string& id, Entry&);
    void answer_waiting(Context&, const std::string& id, Entry&);
    void fail_late_waiting(Context&);
    void abort_timed_out(Context&);
    void remove_expired(Context&);
    void forget(Context&, std::span<const std::string> ids);
    void publish_gauges();

    const std::int32_t partition_;
    const TransactionOptions options_;
    TransactionSurroundings& surroundings_;
    const NewProducerId new_producer_id_;
    const std::shared_ptr<TransactionGauges> gauges_;
    Entries entries_;
    std::multiset<Timestamp> open_starts_;               // of those ongoing or prepared
    std::set<std::pair<Moment, std::string>> waiting_;   // earliest deadline of each entry with waiting adds
    std::set<std::string> incomplete_;                   // markers written, completion not
    std::optional<Moment> next_abort_, next_expire_, next_completion_;
};

}  // namespace tidemark::coordinator
