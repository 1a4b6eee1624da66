#include "coordinator/transaction/coordinator.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/errors.h"
#include "coordinator/gather.h"

namespace tidemark::coordinator {

bool matches(const TransactionFilter& filter, const NamedTransaction& named, Timestamp now) {
    const auto& transaction = named.transaction;
    if (filter.only_unknown_states || (!filter.states.empty() && !filter.states.contains(transaction.state))) return false;
    if (!filter.producers.empty() && !filter.producers.contains(transaction.producer_id)) return false;
    // One that has not begun began at -1, and so matches every duration, as in Kafka.
    if (filter.running_longer_than_ms >= 0 && now - transaction.start <= filter.running_longer_than_ms) return false;
    return !filter.id || filter.id(named.id);
}

TransactionCoordinator::TransactionCoordinator(const TransactionOptions& options, RuntimeOptions runtime, Parts parts)
    : options_(options),
      parts_(std::move(parts)),
      markers_({.clock = parts_.runtime.clock,
                .image = parts_.image,
                .open_journal = parts_.runtime.open_journal,
                .write_group_marker = parts_.write_group_marker,
                .executor = parts_.runtime.executor}),
      runtime_(std::move(runtime), parts_.runtime, [this](std::int32_t partition) { return make_machine(partition); }) {}

std::unique_ptr<StateMachine> TransactionCoordinator::make_machine(std::int32_t partition) {
    MutexLock lock(gauges_mutex_);
    auto& gauges = gauges_[partition];
    if (!gauges) gauges = std::make_shared<TransactionGauges>();
    return std::make_unique<TransactionMachine>(partition, options_, *this, gauges);
}

// --- requests ------------------------------------------------------------------------------------------------------------

namespace {

/// Clients of this coordinator find in the answer why there is none.
template <class Answer>
Reply<Answer> reply_to(std::function<void(Answer)> then) {
    return [then = std::move(then)](Coded<Answer> answer) { then(answer ? *std::move(answer) : Answer{.error = coordinator_error(answer.error().code)}); };
}

}  // namespace

template <class Answer>
void TransactionCoordinator::request(const std::string& id, Then<Answer> then, Operation<Answer> run) {
    runtime_.request<Answer>(id, reply_to(std::move(then)), std::move(run));
}

void TransactionCoordinator::init_producer_id(InitTransactions asked, Then<ProducerAnswer> then) {
    const auto refuse = [&](ErrorCode error) { then({.error = error}); };
    if (asked.id.empty()) return refuse(ErrorCode::invalid_request);
    if (asked.two_phase_commit && !options_.two_phase_commit) return refuse(ErrorCode::transactional_id_authorization_failed);
    if (asked.keep_prepared) return refuse(ErrorCode::unsupported_version);
    if (!asked.two_phase_commit && (asked.timeout_ms <= 0 || asked.timeout_ms > options_.timeout_ms_max)) return refuse(ErrorCode::invalid_transaction_timeout);
    const auto timeout_ms = asked.two_phase_commit ? timeout_never : asked.timeout_ms;
    const auto partition = runtime_.partition_of(asked.id);
    if (!partition) return refuse(ErrorCode::not_coordinator);
    const auto reply = reply_to(std::move(then));
    // Not on the caller's thread: a new block of producer ids waits for the metadata log, and for whoever changes it just now.
    runtime_.submit(*partition, [reply, id = asked.id, timeout_ms, expected = asked.expected](TransactionMachine& machine, Context& context) {
        machine.init_producer_id(context, id, timeout_ms, expected, reply);
    }, [reply](ErrorCode why) { reply(Failure{why}); });
}

void TransactionCoordinator::add_partitions(const std::string& id, const Producer& producer, std::set<TopicPartition> partitions, std::int16_t client_version, bool patient, Then<ErrorCode> then) {
    if (id.empty()) return then(ErrorCode::invalid_request);
    const auto partition = runtime_.partition_of(id);
    if (!partition) return then(ErrorCode::not_coordinator);
    const auto reply = [then = std::move(then)](ErrorCode error) { then(coordinator_error(error)); };
    runtime_.submit(*partition, [=, partitions = std::move(partitions)](TransactionMachine& machine, Context& context) {
        machine.add_partitions(context, id, producer, partitions, client_version, patient, reply);
    }, reply, RunsOn::caller);
}

void TransactionCoordinator::verify_partitions(const std::string& id, const Producer& producer, std::set<TopicPartition> partitions, Then<VerifyAnswer> then) {
    if (id.empty()) return then({.error = ErrorCode::invalid_request});
    request<VerifyAnswer>(id, std::move(then), [=, partitions = std::move(partitions)](TransactionMachine& machine, Context& context, Reply<VerifyAnswer> reply) {
        machine.verify_partitions(context, id, producer, partitions, std::move(reply));
    });
}

void TransactionCoordinator::end_transaction(const std::string& id, const Producer& producer, bool commit, std::int16_t request_version, Then<ProducerAnswer> then) {
    if (id.empty()) return then({.error = ErrorCode::invalid_request});
    request<ProducerAnswer>(id, std::move(then), [=](TransactionMachine& machine, Context& context, Reply<ProducerAnswer> reply) {
        machine.end_transaction(context, id, producer, commit, request_version, std::move(reply));
    });
}

void TransactionCoordinator::describe(const std::string& id, Then<ListAnswer> then) {
    if (id.empty()) return then({.error = ErrorCode::invalid_request});
    request<ListAnswer>(id, [then = std::move(then)](ListAnswer answer) {
        if (answer.error == ErrorCode::none && answer.transactions.empty()) answer.error = ErrorCode::transactional_id_not_found;
        then(std::move(answer));
    }, [id](TransactionMachine& machine, Context& context, Reply<ListAnswer> reply) { machine.list(context, id, std::move(reply)); });
}

void TransactionCoordinator::list(TransactionFilter filter, Then<ListAnswer> then) {
    const auto partitions = runtime_.partitions();
    using Answers = std::vector<Coded<ListAnswer>>;
    const auto gather = Gather<Answers>::make(Answers(partitions.size()), [then = std::move(then), filter = std::move(filter), now = parts_.runtime.clock.now()](Answers answers) {
        ListAnswer whole;
        for (auto& part : answers) {
            if (part) {
                for (auto& transaction : part->transactions) {
                    if (matches(filter, transaction, now)) whole.transactions.push_back(std::move(transaction));
                }
            } else if (part.error().code != ErrorCode::not_coordinator) {   // a partition that cannot be read hides its own ids only
                whole.error = coordinator_error(part.error().code);
            }
        }
        if (whole.error != ErrorCode::none) whole.transactions.clear();
        then(std::move(whole));
    });
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        runtime_.submit(partitions[i],
                        [gather, i](TransactionMachine& machine, Context& context) {
                            machine.list(context, std::nullopt, [gather, i](Coded<ListAnswer> part) { gather->whole[i] = std::move(part); });
                        },
                        [gather, i](ErrorCode why) { gather->whole[i] = Failure{why}; });
    }
}

void TransactionCoordinator::write_marker(const TopicPartition& partition, const Marker& marker, Then<ErrorCode> then) { markers_.write(partition, marker, std::move(then)); }

// --- what state machines need --------------------------------------------------------------------------------------------

Coded<ProducerId> TransactionCoordinator::new_producer_id() {
    auto id = parts_.next_producer_id();
    if (id) return *id;
    log_error("no producer id: {}", id.error().message());
    return Failure{id.error().code == Errc::unsupported ? ErrorCode::unknown_server_error : ErrorCode::coordinator_load_in_progress};
}

void TransactionCoordinator::send_markers(DueMarkers due) {
    markers_.send(std::move(due), [this](const DueMarkers& written) {
        runtime_.submit(written.partition,
                        [id = written.id, producer = Producer{written.marker.producer_id, written.marker.producer_epoch}](TransactionMachine& machine, Context& context) {
                            machine.markers_written(context, id, producer);
                        },
                        [](ErrorCode) { /* whoever loads the partition next sends the markers again */ });
    });
}

void TransactionCoordinator::decision_delayed(std::int32_t partition, std::string id) {
    runtime_.submit(partition, [id = std::move(id)](TransactionMachine& machine, Context& context) { machine.send_markers_again(context, id); }, [](ErrorCode) {});
}

// --- life ----------------------------------------------------------------------------------------------------------------

void TransactionCoordinator::tick() {
    runtime_.tick();
    markers_.tick();
}

void TransactionCoordinator::stop() {
    runtime_.stop();
    markers_.stop();
}

TransactionStats TransactionCoordinator::stats() const {
    TransactionStats stats{.markers_outstanding = markers_.outstanding()};
    MutexLock lock(gauges_mutex_);
    for (const auto& [partition, gauges] : gauges_) {
        stats.ids += gauges->ids.load();
        stats.open += gauges->open.load();
        const Timestamp oldest{gauges->oldest_start_ms.load()};
        if (oldest != no_timestamp && (!stats.oldest_start || oldest < *stats.oldest_start)) stats.oldest_start = oldest;
        stats.committed += gauges->committed.load();
        stats.aborted += gauges->aborted.load();
        stats.timed_out += gauges->timed_out.load();
        stats.expired_ids += gauges->expired_ids.load();
    }
    if (stats.oldest_start) stats.oldest_seconds = static_cast<double>(std::max<std::int64_t>(parts_.runtime.clock.now() - *stats.oldest_start, 0)) / 1000;
    return stats;
}

}  // namespace tidemark::coordinator
