// Each request finds its transaction, lets decisions.h decide, writes the outcome as one record, and answers when that is
// durable. Two things happen later: markers_written() completes what was decided, tick() looks for what has taken too long.
#include "coordinator/transaction/machine.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "coordinator/errors.h"
#include "coordinator/internal_topics.h"
#include "metadata/image.h"

namespace tidemark::coordinator {

namespace {

bool is_open(const Transaction& transaction) { return transaction.state == TransactionState::ongoing || is_prepared(transaction.state); }

void answer(Context& context, std::function<void(ErrorCode)> reply, ErrorCode error) {
    context.when_durable([reply = std::move(reply), error](ErrorCode failure) { reply(failure == ErrorCode::none ? error : failure); });
}

constexpr std::size_t tombstones_per_batch = 1000;
constexpr Moment completion_retry{1000};

}  // namespace

TransactionMachine::TransactionMachine(std::int32_t partition, const TransactionOptions& options, TransactionSurroundings& surroundings,
                                       std::shared_ptr<TransactionGauges> gauges)
    : partition_(partition),
      options_(options),
      surroundings_(surroundings),
      new_producer_id_([this] { return surroundings_.new_producer_id(); }),
      gauges_(std::move(gauges)) {}

std::int16_t TransactionMachine::level(const Context& context) const { return context.image()->feature("transaction.version"); }

DecisionContext TransactionMachine::decision_context(Context& context) const {
    return {.now = context.now(), .transaction_version = level(context), .new_producer_id = new_producer_id_};
}

// --- requests ------------------------------------------------------------------------------------------------------------

void TransactionMachine::init_producer_id(Context& context, const std::string& id, std::int32_t timeout_ms, const ExpectedProducer& expected, Reply<ProducerAnswer> reply) {
    const auto found = entries_.find(id);
    const auto decision = coordinator::init_producer_id(found == entries_.end() ? Transaction{} : found->second.transaction, timeout_ms, expected, decision_context(context));
    if (!decision.next) return context.answer(std::move(reply), ProducerAnswer{.error = decision.error});
    // An id whose first record cannot be written was never there.
    auto& entry = entries_[id];
    const auto error = carry_out(context, id, entry, decision);
    if (entry.transaction.producer_epoch == no_producer_epoch) entries_.erase(id);
    publish_gauges();
    if (error != ErrorCode::none) return context.answer(std::move(reply), ProducerAnswer{.error = error});
    context.answer(std::move(reply), ProducerAnswer{.producer_id = decision.producer_id, .producer_epoch = decision.producer_epoch});
}

void TransactionMachine::add_partitions(Context& context, const std::string& id, const Producer& producer, const std::set<TopicPartition>& partitions,
                                        std::int16_t client_version, bool patient, std::function<void(ErrorCode)> reply) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return answer(context, std::move(reply), ErrorCode::invalid_producer_id_mapping);
    auto& entry = found->second;
    const auto decision = coordinator::add_partitions(entry.transaction, producer, partitions, client_version, context.now());
    if (patient && decision.error == ErrorCode::concurrent_transactions && options_.retry_ms_max > 0) {
        const auto deadline = context.moment() + Moment{options_.retry_ms_max};
        if (entry.waiting.empty()) waiting_.emplace(deadline, id);
        entry.waiting.push_back({.deadline = deadline, .producer = producer, .partitions = partitions, .client_version = client_version, .reply = std::move(reply)});
        return;
    }
    const auto error = carry_out(context, id, entry, decision);
    answer(context, std::move(reply), error);
}

void TransactionMachine::verify_partitions(Context& context, const std::string& id, const Producer& producer, const std::set<TopicPartition>& partitions, Reply<VerifyAnswer> reply) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return context.answer(std::move(reply), VerifyAnswer{.error = ErrorCode::invalid_producer_id_mapping});
    VerifyAnswer answer{.error = verify_producer(found->second.transaction, producer)};
    const auto& known = found->second.transaction.partitions;
    if (answer.error == ErrorCode::none) std::ranges::set_difference(partitions, known, std::inserter(answer.missing, answer.missing.end()));
    context.answer(std::move(reply), std::move(answer));
}

void TransactionMachine::end_transaction(Context& context, const std::string& id, const Producer& producer, bool commit, std::int16_t request_version, Reply<ProducerAnswer> reply) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return context.answer(std::move(reply), ProducerAnswer{.error = ErrorCode::invalid_producer_id_mapping});
    const auto decision = coordinator::end_transaction(found->second.transaction, producer, commit, request_version, decision_context(context));
    const auto error = carry_out(context, id, found->second, decision);
    if (error != ErrorCode::none) return context.answer(std::move(reply), ProducerAnswer{.error = error});
    context.answer(std::move(reply), ProducerAnswer{.producer_id = decision.producer_id, .producer_epoch = decision.producer_epoch});
}

void TransactionMachine::list(Context& context, std::optional<std::string> id, Reply<ListAnswer> reply) {
    ListAnswer answer;
    if (id) {
        if (const auto found = entries_.find(*id); found != entries_.end()) answer.transactions.push_back({found->first, found->second.transaction});
    } else {
        for (const auto& [name, entry] : entries_) answer.transactions.push_back({name, entry.transaction});
    }
    context.answer(std::move(reply), std::move(answer));
}

// --- what was decided ----------------------------------------------------------------------------------------------------

ErrorCode TransactionMachine::carry_out(Context& context, const std::string& id, Entry& entry, const Decision& decision) {
    if (!decision.next) return decision.error;
    const Record record[]{transaction_record(id, *decision.next, level(context))};
    if (const auto written = context.write(record, {.replay = false}); !written) {
        if (decision.raises_fence) {
            entry.transaction.producer_epoch = decision.next->producer_epoch;
            entry.transaction.fence_failed = true;
        }
        static LogLimit limit{1000};
        if (const auto held = limit.admit(); held >= 0) log_error("[{}-{}] not written: {} ({} more not shown)", transaction_topic, partition_, written.error().message(), held);
        return coordinator_error(written.error().code);
    }
    keep(entry, *decision.next);
    if (is_prepared(entry.transaction.state)) {
        entry.decided_at = context.now();
        when_decided(context, id, entry);
    }
    return decision.error;
}

void TransactionMachine::keep(Entry& entry, Transaction now) {
    if (is_open(entry.transaction)) open_starts_.erase(open_starts_.find(entry.transaction.start));
    if (is_open(now)) open_starts_.insert(now.start);
    entry.transaction = std::move(now);
    publish_gauges();
}

void TransactionMachine::publish_gauges() {
    gauges_->ids.store(static_cast<std::int64_t>(entries_.size()));
    gauges_->open.store(static_cast<std::int64_t>(open_starts_.size()));
    gauges_->oldest_start_ms.store(open_starts_.empty() ? -1 : open_starts_.begin()->value);
}

void TransactionMachine::when_decided(Context& context, const std::string& id, Entry& entry) {
    const auto& decided = entry.transaction;
    DueMarkers due{.partition = partition_,
                   .id = id,
                   .to = decided.partitions,
                   .marker = {.producer_id = decided.producer_id,
                              .producer_epoch = decided.producer_epoch,
                              .coordinator_epoch = context.leader_epoch(),
                              .transaction_version = decided.client_version,
                              .commit = decided.state == TransactionState::prepare_commit}};
    context.when_durable([&surroundings = surroundings_, due = std::move(due)](ErrorCode failure) mutable {
        if (failure == ErrorCode::none) surroundings.send_markers(std::move(due));
        else if (failure == ErrorCode::request_timed_out) surroundings.decision_delayed(due.partition, std::move(due.id));
        // Else the partition is not served any more, and whoever loads it next sends them.
    });
}

void TransactionMachine::send_markers_again(Context& context, const std::string& id) {
    const auto found = entries_.find(id);
    if (found != entries_.end() && is_prepared(found->second.transaction.state)) when_decided(context, id, found->second);
}

void TransactionMachine::markers_written(Context& context, const std::string& id, const Producer& producer) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    const auto& decided = found->second.transaction;
    if (!is_prepared(decided.state) || decided.producer_id != producer.id || decided.producer_epoch != producer.epoch) return;
    complete(context, id, found->second);
}

void TransactionMachine::complete(Context& context, const std::string& id, Entry& entry) {
    const Decision completion{.next = coordinator::complete(entry.transaction, entry.decided_at)};
    if (carry_out(context, id, entry, completion) != ErrorCode::none) {
        incomplete_.insert(id);
        next_completion_ = context.moment() + completion_retry;
        return;
    }
    const bool committed = entry.transaction.state == TransactionState::complete_commit;
    (committed ? gauges_->committed : gauges_->aborted).fetch_add(1);
    answer_waiting(context, id, entry);
}

void TransactionMachine::answer_waiting(Context& context, const std::string& id, Entry& entry) {
    if (entry.waiting.empty()) return;
    waiting_.erase({entry.waiting.front().deadline, id});
    for (auto& add : std::exchange(entry.waiting, {})) {
        add_partitions(context, id, add.producer, add.partitions, add.client_version, false, std::move(add.reply));
    }
}

// --- life and time -------------------------------------------------------------------------------------------------------

Result<> TransactionMachine::replay(const ReplayedRecord& record) {
    TM_TRY(auto read, read_transaction_record(record.key, record.value));
    if (!read) {
        static LogLimit limit{10'000};
        if (const auto held = limit.admit(); held >= 0) {
            log_warning("[{}-{}] the record at offset {} is of a kind that this version does not know ({} more not shown)", transaction_topic, partition_, record.offset.value, held);
        }
        return {};
    }
    const auto found = entries_.find(read->id);
    if (read->transaction) {
        keep(entries_[read->id], *std::move(read->transaction));
    } else if (found != entries_.end()) {
        keep(found->second, {});
        entries_.erase(found);
        publish_gauges();
    }
    return {};
}

void TransactionMachine::loaded(Context& context) {
    next_abort_ = context.moment() + Moment{options_.abort_interval_ms};
    next_expire_ = context.moment() + Moment{options_.expire_interval_ms};
    for (auto& [id, entry] : entries_) {
        if (!is_prepared(entry.transaction.state)) continue;
        entry.decided_at = context.now();
        when_decided(context, id, entry);
    }
}

void TransactionMachine::unloaded(ErrorCode reason) {
    for (auto& [id, entry] : entries_) {
        for (auto& add : std::exchange(entry.waiting, {})) add.reply(reason);
    }
    entries_.clear();
    open_starts_.clear();
    waiting_.clear();
    publish_gauges();
}

std::optional<Moment> TransactionMachine::next_deadline() const {
    if (entries_.empty()) return std::nullopt;
    auto next = next_abort_;
    const auto consider = [&](std::optional<Moment> moment) {
        if (moment && (!next || *moment < *next)) next = moment;
    };
    consider(next_expire_);
    consider(next_completion_);
    if (!waiting_.empty()) consider(waiting_.begin()->first);
    return next;
}

void TransactionMachine::tick(Context& context) {
    const auto due = [&](std::optional<Moment>& moment) { return moment && *moment <= context.moment(); };
    fail_late_waiting(context);
    if (due(next_completion_)) {
        next_completion_.reset();
        for (const auto& id : std::exchange(incomplete_, {})) complete(context, id, entries_.at(id));
    }
    if (due(next_abort_)) {
        abort_timed_out(context);
        next_abort_ = context.moment() + Moment{options_.abort_interval_ms};
    }
    if (due(next_expire_)) {
        remove_expired(context);
        next_expire_ = context.moment() + Moment{options_.expire_interval_ms};
    }
}

void TransactionMachine::fail_late_waiting(Context& context) {
    while (!waiting_.empty() && waiting_.begin()->first <= context.moment()) {
        const auto id = waiting_.begin()->second;
        waiting_.erase(waiting_.begin());
        auto& waiting = entries_.at(id).waiting;
        const auto late = std::ranges::find_if(waiting, [&](const WaitingAdd& add) { return add.deadline > context.moment(); });
        for (auto add = waiting.begin(); add != late; ++add) answer(context, std::move(add->reply), ErrorCode::concurrent_transactions);
        waiting.erase(waiting.begin(), late);
        if (!waiting.empty()) waiting_.emplace(waiting.front().deadline, id);
    }
}

void TransactionMachine::abort_timed_out(Context& context) {
    for (auto& [id, entry] : entries_) {
        if (!is_timed_out(entry.transaction, context.now())) continue;
        if (carry_out(context, id, entry, fence(entry.transaction, decision_context(context))) != ErrorCode::none) continue;
        gauges_->timed_out.fetch_add(1);
        log_info("[{}-{}] the transaction of {} is aborted, it began more than {} ms ago", transaction_topic, partition_, id, entry.transaction.timeout_ms);
    }
}

void TransactionMachine::remove_expired(Context& context) {
    std::vector<std::string> expired;
    for (const auto& [id, entry] : entries_) {
        if (is_expired(entry.transaction, context.now(), options_.expiration_ms)) expired.push_back(id);
    }
    const std::span all{expired};
    for (std::size_t at = 0; at < all.size(); at += tombstones_per_batch) forget(context, all.subspan(at, std::min(tombstones_per_batch, all.size() - at)));
}

/// A batch that is larger than the topic allows goes in halves. What cannot be written stays, and is found again.
void TransactionMachine::forget(Context& context, std::span<const std::string> ids) {
    std::vector<Record> tombstones;
    for (const auto& id : ids) tombstones.push_back(transaction_tombstone(id));
    if (const auto written = context.write(tombstones); written) {
        gauges_->expired_ids.fetch_add(ids.size());
    } else if (written.error().code == Errc::too_large && ids.size() > 1) {
        forget(context, ids.first(ids.size() / 2));
        forget(context, ids.subspan(ids.size() / 2));
    } else {
        log_error("[{}-{}] {} expired ids cannot be removed: {}", transaction_topic, partition_, ids.size(), written.error().message());
    }
}

}  // namespace tidemark::coordinator
