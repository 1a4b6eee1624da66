// Produce (0), versions 3 to 13: wire-behaviour 7, append-and-read 2 to 4, transaction-coordinator 7.
//
//   1. partitions where a transactional batch would open a transaction: the coordinator is asked whether it may, or from
//      version 12 on told to add them (KIP-890); the connection is read no further until the answer is there;
//   2. each partition's record set is looked at: one whole batch of format 2, in a codec that the version knows;
//   3. it is appended on the connection's loop, in the buffer that the socket was read into; the bytes are in the page cache then;
//   4. acks=1 is answered; acks=all waits for the group commit of each log that was appended to (D10);
//   5. acks=0 has no answer: a failure closes the connection instead, which is all that its client can notice.
#include "protocol/messages/produce_request.h"
#include "protocol/messages/produce_response.h"

#include <map>
#include <set>
#include <unordered_map>

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/verification.h"
#include "record/batch.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::produce_request::PartitionProduceData;
using protocol::produce_response::PartitionProduceResponse;

/// A response whose partitions wait for their syncs. Each sync writes to its own partition's entry only.
struct Waiting {
    std::shared_ptr<Call> call;
    protocol::ProduceResponse response;
    std::atomic<std::size_t> syncs{1};   // one for begin() itself, so that it cannot end before all have begun

    static void one_done(const std::shared_ptr<Waiting>& waiting) {
        if (waiting->syncs.fetch_sub(1) != 1) return;
        // The sync thread has better things to do than to write answers.
        asio::dispatch(waiting->call->executor(), [waiting] { waiting->call->finish(waiting->response); });
    }
};

/// What stands at the front of a record set, before anything else is judged: ProduceRequest's own checks in Kafka.
Refusal check_record_set(Bytes records, std::int16_t version) {
    const auto text = [version](std::string_view rest) { return "Produce requests with version " + std::to_string(version) + std::string{rest}; };
    record::BatchCursor cursor{records};
    const auto first = cursor.next();
    if (!first) {
        if (records.size() >= record::magic_end && std::to_integer<std::int8_t>(records[16]) > 2) {
            return {ErrorCode::corrupt_message, "Invalid magic found in record: " + std::to_string(std::to_integer<int>(records[16]))};
        }
        return {ErrorCode::corrupt_message, first.error().context};
    }
    if (!*first) return {ErrorCode::invalid_record, text(" must have at least one record batch per partition")};
    const auto& batch = **first;
    if (batch.magic() != 2) return {ErrorCode::invalid_record, text(" are only allowed to contain record batches with magic version 2")};
    if (version < 7 && batch.codec() == record::Codec::zstd) return {ErrorCode::unsupported_compression_type, text(" are not allowed to use ZStandard compression")};
    const auto second = cursor.next();
    if (!second) return {ErrorCode::corrupt_message, second.error().context};
    if (*second) return {ErrorCode::invalid_record, text(" are only allowed to contain exactly one record batch")};
    return {};
}

std::optional<record::BatchView> first_batch(const PartitionProduceData& partition) {
    if (!partition.records) return std::nullopt;
    record::BatchCursor cursor{partition.records->bytes};
    const auto first = cursor.next();
    return first && *first ? **first : std::optional<record::BatchView>{};
}

/// The producers of all transactional batches. One request is of one producer, or it is refused.
std::set<std::pair<ProducerId, ProducerEpoch>> transactional_producers(const protocol::ProduceRequest& request) {
    std::set<std::pair<ProducerId, ProducerEpoch>> producers;
    for (const auto& topic : request.topic_data) {
        for (const auto& partition : topic.partition_data) {
            const auto batch = first_batch(partition);
            if (batch && batch->is_transactional()) producers.emplace(batch->producer_id(), batch->producer_epoch());
        }
    }
    return producers;
}

/// What step 1 found out about a partition.
struct Verdict {
    Refusal refusal = {};
    storage::VerificationId verification{};
};

std::string rejected_text(const Error& error, const std::vector<storage::RecordError>& rejected) {
    if (error.code == Errc::invalid_timestamp) return "One or more records have been rejected due to invalid timestamp";
    std::string shown;
    for (std::size_t i = 0; i < rejected.size() && i < 3; ++i) {
        shown += fmt::format("{}RecordError(batchIndex={}, message='{}')", i == 0 ? "" : ", ", rejected[i].index, rejected[i].message);
    }
    return fmt::format("One or more records have been rejected due to {} record errors in total, and only showing the first three errors at most: [{}]",
                       rejected.size(), shown);
}

/// One request on its way through the steps.
class Produce : public std::enable_shared_from_this<Produce> {
public:
    Produce(Broker& broker, std::shared_ptr<Call> call, protocol::ProduceRequest request)
        : broker_(broker), call_(std::move(call)), client_(client_of_produce(call_->version())), request_(std::move(request)), image_(broker.image()), waiting_(std::make_shared<Waiting>()) {
        waiting_->call = call_;
    }

    void run() {
        const auto producers = transactional_producers(request_);
        if (producers.empty()) return append_all(ErrorCode::none);
        // Without an authorizer everybody may write to any transactional id, but there must be one.
        if (!request_.transactional_id) return append_all(ErrorCode::transactional_id_authorization_failed);
        if (producers.size() > 1) return append_all(ErrorCode::invalid_producer_id_mapping);
        const auto [id, epoch] = *producers.begin();
        auto unopened = begin_verifications();
        if (unopened.empty()) return append_all(ErrorCode::none);
        call_->hold_reading();
        ask_coordinator({id, epoch}, std::move(unopened));
    }

private:
    bool adds() const { return client_ == TransactionClient::adding; }
    bool verifies() const { return adds() || broker_.options()->verify_transactions; }

    /// Partitions here that a transactional batch would open a transaction in. Those that cannot have one get their verdict.
    std::set<TopicPartition> begin_verifications() {
        std::set<TopicPartition> unopened;
        if (!verifies()) return unopened;
        for (auto& topic : request_.topic_data) {
            const auto* known = call_->version() >= 13 ? image_->find(topic.topic_id) : image_->find(topic.name);
            if (!known || is_internal_topic(known->name)) continue;
            for (const auto& partition : topic.partition_data) {
                const auto batch = first_batch(partition);
                if (!batch || !batch->is_transactional()) continue;
                const TopicPartition name{known->name, partition.index};
                const auto found = find_partition(broker_, *image_, name);
                if (found.error != ErrorCode::none) continue;   // step 2 says so
                const auto begun = found.log->begin_verification({.producer_id = batch->producer_id(),
                                                                  .epoch = batch->producer_epoch(),
                                                                  .first_sequence = batch->base_sequence(),
                                                                  .bumps_epochs = adds()});
                if (!begun) {
                    verdicts_[name].refusal = {to_error_code(begun.error()), ""};
                } else if (*begun) {
                    verdicts_[name].verification = **begun;
                    unopened.insert(name);
                }
            }
        }
        return unopened;
    }

    void ask_coordinator(const coordinator::Producer& producer, std::set<TopicPartition> unopened) {
        const auto go_on = [self = shared_from_this(), unopened](const coordinator::VerifyAnswer& answer) {
            for (const auto& partition : unopened) self->verdicts_[partition].refusal = produce_refusal(answer.of(partition), self->client_);
            asio::dispatch(self->call_->executor(), [self] { self->append_all(ErrorCode::none); });
        };
        ask_transaction(broker_.coordinators().transactions(), *request_.transactional_id, producer, std::move(unopened), client_, true, go_on);
    }

    void append_all(ErrorCode refuse_all) {
        auto& topics = waiting_->response.responses;
        topics.reserve(request_.topic_data.size());   // entries are pointed to by syncs
        for (auto& topic : request_.topic_data) {
            auto& answer = topics.emplace_back();
            answer.name = topic.name;
            answer.topic_id = topic.topic_id;
            answer.partition_responses.reserve(topic.partition_data.size());
            const auto* known = call_->version() >= 13 ? image_->find(topic.topic_id) : image_->find(topic.name);
            const auto last = last_of_each(topic.partition_data);
            for (std::size_t i = 0; i < topic.partition_data.size(); ++i) {
                auto& from = topic.partition_data[i];
                if (last.at(from.index) != i) continue;
                auto& partition = answer.partition_responses.emplace_back();
                partition.index = from.index;
                partition.base_offset = -1;
                partition.error_code = refuse_all;
                std::optional<Undurable> undurable;
                if (refuse_all == ErrorCode::none) undurable = one_partition(known, from, partition);
                if (partition.error_code != ErrorCode::none) note_failure(known, partition);
                // From here on the entry may be the sync thread's.
                if (undurable) wait_for_disk(*undurable, partition);
            }
        }
        answer();
    }

    /// Of a partition that is named twice the last entry counts.
    static std::unordered_map<std::int32_t, std::size_t> last_of_each(const std::vector<PartitionProduceData>& partitions) {
        std::unordered_map<std::int32_t, std::size_t> last;
        for (std::size_t i = 0; i < partitions.size(); ++i) last[partitions[i].index] = i;
        return last;
    }

    /// What an answer waits for.
    struct Undurable {
        std::shared_ptr<storage::Log> log;
        Offset end{};
    };

    std::optional<Undurable> one_partition(const metadata::Topic* topic, PartitionProduceData& from, PartitionProduceResponse& to) {
        const auto refuse = [&to](ErrorCode code, std::optional<std::string> text = {}) {
            to.error_code = code;
            to.error_message = std::move(text);
            return std::nullopt;
        };
        if (!topic) return refuse(call_->version() >= 13 ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition);
        const TopicPartition name{topic->name, from.index};
        const auto found = find_partition(broker_, *image_, name);
        if (found.error == ErrorCode::unknown_topic_or_partition) return refuse(found.error);
        const auto records = from.records ? from.records->bytes : MutableBytes{};
        if (auto bad = check_record_set(records, call_->version()); bad.code != ErrorCode::none) return refuse(bad.code, std::move(bad.text));
        if (request_.acks < -1 || request_.acks > 1) return refuse(ErrorCode::invalid_required_acks);
        if (is_internal_topic(topic->name)) return refuse(ErrorCode::invalid_topic_exception);
        if (found.error != ErrorCode::none) {
            refuse(found.error);
            if (found.error == ErrorCode::not_leader_or_follower) add_leader(*found.partition, to);
            return std::nullopt;
        }
        const auto batch = *first_batch(from);
        const auto verdict = verdicts_.find(name);
        if (verdict != verdicts_.end() && verdict->second.refusal.code != ErrorCode::none) {
            const auto& [code, text] = verdict->second.refusal;
            return refuse(code, text.empty() ? std::nullopt : std::optional{text});
        }
        if (batch.codec_bits() > static_cast<std::uint8_t>(record::Codec::zstd)) {
            to.log_start_offset = found.log->log_start_offset().value;
            return refuse(ErrorCode::unknown_server_error);
        }
        const auto end = append(*found.log, {.leader_epoch = found.partition->leader_epoch,
                                             .transaction_verified = !verifies(),
                                             .verification = verdict == verdicts_.end() ? storage::VerificationId{} : verdict->second.verification},
                                records, to);
        // A duplicate is acknowledged once more, and so must be on disk as well.
        if (!end || !broker_.waits_for_disk(request_.acks)) return std::nullopt;
        return Undurable{found.log, *end};
    }

    /// The offset behind what was appended, or had been before.
    std::optional<Offset> append(storage::Log& log, storage::AppendOptions options, MutableBytes records, PartitionProduceResponse& to) {
        std::vector<storage::RecordError> rejected;
        const auto counters = broker_.stats().topic(log.partition().topic);
        add(counters->produce_requests);
        options.rejected = &rejected;
        const auto appended = log.append(records, options);
        if (!appended) {
            append_failed(log, appended.error(), rejected, to);
            return std::nullopt;
        }
        to.base_offset = appended->first_offset.value;
        to.log_append_time_ms = appended->log_append_time.value_or(no_timestamp).value;
        to.log_start_offset = appended->log_start_offset.value;
        if (!appended->duplicate) {
            add(counters->bytes_in, static_cast<std::uint64_t>(appended->bytes));
            add(counters->records_in, static_cast<std::uint64_t>(appended->records));
        }
        return appended->last_offset + 1;
    }

    void append_failed(const storage::Log& log, const Error& error, const std::vector<storage::RecordError>& rejected, PartitionProduceResponse& to) {
        to.error_code = to_error_code(error);
        for (const auto& record : rejected) to.record_errors.push_back({.batch_index = record.index, .batch_index_error_message = record.message});
        if (!rejected.empty()) to.error_message = rejected_text(error, rejected);
        switch (to.error_code) {
            case ErrorCode::corrupt_message:
            case ErrorCode::message_too_large:
            case ErrorCode::record_list_too_large: break;
            case ErrorCode::kafka_storage_error:
            case ErrorCode::unknown_server_error: {
                static LogLimit limit{1000};
                if (const auto held = limit.admit(); held >= 0) log_error("[{}] append failed: {} ({} more not shown)", log.partition(), error.message(), held);
                break;
            }
            default: to.log_start_offset = log.log_start_offset().value; break;
        }
    }

    void wait_for_disk(const Undurable& what, PartitionProduceResponse& to) {
        waiting_->syncs.fetch_add(1);
        what.log->when_durable(what.end, [waiting = waiting_, &to, name = what.log->partition()](const Result<>& synced) {
            if (!synced) {
                to.error_code = to_error_code(synced.error());
                to.base_offset = to.log_append_time_ms = to.log_start_offset = -1;
                static LogLimit limit{1000};
                if (const auto held = limit.admit(); held >= 0) log_error("[{}] not on disk: {} ({} more not shown)", name, synced.error().message(), held);
            }
            Waiting::one_done(waiting);
        });
    }

    void add_leader(const metadata::Partition& partition, PartitionProduceResponse& to) {
        if (call_->version() < 10) return;
        to.current_leader = {.leader_id = partition.leader, .leader_epoch = partition.leader_epoch};
    }

    void note_failure(const metadata::Topic* topic, const PartitionProduceResponse& partition) {
        call_->count(partition.error_code);
        failed_ = true;
        if (topic) add(broker_.stats().topic(topic->name)->failed_produce_requests);
    }

    void answer() {
        call_->release_frame();
        if (request_.acks == 0) {
            if (!failed_) return call_->finish_silently();
            return call_->fail("acks=0, and not everything could be appended: " + first_failure());
        }
        Waiting::one_done(waiting_);
    }

    std::string first_failure() const {
        for (const auto& topic : waiting_->response.responses) {
            for (const auto& partition : topic.partition_responses) {
                if (partition.error_code != ErrorCode::none) {
                    return fmt::format("{}-{} {}", topic.name.empty() ? topic.topic_id.text() : topic.name, partition.index, protocol::to_string(partition.error_code));
                }
            }
        }
        return "";
    }

    Broker& broker_;
    const std::shared_ptr<Call> call_;
    const TransactionClient client_;
    protocol::ProduceRequest request_;
    const std::shared_ptr<const metadata::Image> image_;
    const std::shared_ptr<Waiting> waiting_;
    std::map<TopicPartition, Verdict> verdicts_;   // by step 1; the coordinator's thread, then the loop
    bool failed_ = false;
};

}  // namespace

void produce(Broker& broker, const std::shared_ptr<Call>& call) {
    if (auto request = call->parse<protocol::ProduceRequest>()) std::make_shared<Produce>(broker, call, *std::move(request))->run();
}

}  // namespace tidemark::daemon::handlers
