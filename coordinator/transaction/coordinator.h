/// The transaction coordinator as handlers see it: every request of transaction-coordinator 4 to 6 and 11, for all partitions
/// of __transaction_state.
///
///   coordinator.image_changed(…);      // at the start with the first image, then with each
///   coordinator.tick();                // often
///   coordinator.stop();
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coordinator/runtime.h"
#include "coordinator/transaction/machine.h"
#include "coordinator/transaction/markers.h"
#include "coordinator/transaction/stats.h"

namespace tidemark::coordinator {

/// InitProducerId with a transactional id, as it came.
struct InitTransactions {
    std::string id;
    std::int32_t timeout_ms = 0;
    bool two_phase_commit = false;
    bool keep_prepared = false;
    ExpectedProducer expected = {};
};

/// ListTransactions; what is empty lets everything pass.
struct TransactionFilter {
    std::set<TransactionState> states = {};
    bool only_unknown_states = false;                        ///< states were asked for, but none that there is
    std::set<ProducerId> producers = {};
    std::int64_t running_longer_than_ms = -1;                ///< below 0: all
    std::function<bool(std::string_view id)> id = {};
};
bool matches(const TransactionFilter&, const NamedTransaction&, Timestamp now);

/// Threads: all members from any thread, image_changed() one at a time. Answers come from any thread; they must not block.
class TransactionCoordinator final : public TransactionSurroundings {
public:
    template <class Answer>
    using Then = std::function<void(Answer)>;

    struct Parts {
        RuntimeParts runtime;
        std::function<metadata::ImagePtr()> image;                   ///< the newest
        std::function<Result<ProducerId>()> next_producer_id;        ///< may block: it is called on the executor
        /// As MarkerSender::Parts says.
        std::function<void(std::int32_t partition, const Marker&, std::function<void(ErrorCode)>)> write_group_marker;
    };
    TransactionCoordinator(const TransactionOptions&, RuntimeOptions, Parts);

    std::optional<std::int32_t> partition_of(std::string_view id) const { return runtime_.partition_of(id); }

    void init_producer_id(InitTransactions, Then<ProducerAnswer>);
    /// `patient`: see TransactionMachine.
    void add_partitions(const std::string& id, const Producer&, std::set<TopicPartition>, std::int16_t client_version, bool patient, Then<ErrorCode>);
    void verify_partitions(const std::string& id, const Producer&, std::set<TopicPartition>, Then<VerifyAnswer>);
    void end_transaction(const std::string& id, const Producer&, bool commit, std::int16_t request_version, Then<ProducerAnswer>);
    /// With no error and no transaction: transactional_id_not_found.
    void describe(const std::string& id, Then<ListAnswer>);
    void list(TransactionFilter, Then<ListAnswer>);
    /// WriteTxnMarkers: one marker of an administrator or another broker.
    void write_marker(const TopicPartition&, const Marker&, Then<ErrorCode>);

    void image_changed(const metadata::ImagePtr& after) { runtime_.image_changed(after); }
    void tick();
    void stop();
    TransactionStats stats() const EXCLUDES(gauges_mutex_);

private:
    template <class Answer>
    using Operation = std::function<void(TransactionMachine&, Context&, Reply<Answer>)>;
    /// Runs it where the id lives; whatever keeps it from being answered becomes the answer's error.
    template <class Answer>
    void request(const std::string& id, Then<Answer>, Operation<Answer>);

    Coded<ProducerId> new_producer_id() override;
    void send_markers(DueMarkers) override;
    void decision_delayed(std::int32_t partition, std::string id) override;
    std::unique_ptr<StateMachine> make_machine(std::int32_t partition) EXCLUDES(gauges_mutex_);

    const TransactionOptions options_;
    const Parts parts_;
    mutable Mutex gauges_mutex_;
    std::unordered_map<std::int32_t, std::shared_ptr<TransactionGauges>> gauges_ GUARDED_BY(gauges_mutex_);
    MarkerSender markers_;
    Runtime<TransactionMachine> runtime_;
};

}  // namespace tidemark::coordinator
