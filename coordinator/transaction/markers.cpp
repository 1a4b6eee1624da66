#include "coordinator/transaction/markers.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"
#include "coordinator/internal_topics.h"
#include "metadata/image.h"
#include "record/control.h"

namespace tidemark::coordinator {

namespace {

constexpr Moment first_pause{20}, longest_pause{5000};

ErrorCode code_of(const Error& error) {
    switch (error.code) {
        case Errc::io:
        case Errc::no_space:
        case Errc::storage_offline: return ErrorCode::kafka_storage_error;
        case Errc::not_found: return ErrorCode::unknown_topic_or_partition;
        case Errc::invalid_producer_epoch: return ErrorCode::invalid_producer_epoch;
        case Errc::coordinator_fenced: return ErrorCode::transaction_coordinator_fenced;
        case Errc::too_large: return ErrorCode::message_too_large;
        case Errc::corrupt: return ErrorCode::corrupt_message;
        default: return ErrorCode::unknown_server_error;
    }
}

}  // namespace

MarkerFate fate_of(ErrorCode answer) {
    switch (answer) {
        case ErrorCode::none: return MarkerFate::written;
        case ErrorCode::unknown_topic_or_partition:
        case ErrorCode::not_leader_or_follower:
        case ErrorCode::not_enough_replicas:
        case ErrorCode::not_enough_replicas_after_append:
        case ErrorCode::request_timed_out:
        case ErrorCode::kafka_storage_error:
        case ErrorCode::coordinator_load_in_progress:
        case ErrorCode::coordinator_not_available:
        case ErrorCode::not_coordinator: return MarkerFate::again;
        case ErrorCode::unsupported_for_message_format:
        case ErrorCode::unsupported_version: return MarkerFate::dropped;
        default: return MarkerFate::given_up;
    }
}

/// One transaction's. Guarded by the sender's mutex, but for what is constant.
struct MarkerSender::Sending {
    const DueMarkers due;
    const std::function<void(const DueMarkers&)> done;
    std::set<TopicPartition> outstanding;   // being written, or to be written again
    std::set<TopicPartition> again = {};
    Moment pause = first_pause;
    bool given_up = false;
};

MarkerSender::MarkerSender(Parts parts) : parts_(std::move(parts)) {}

void MarkerSender::write(const TopicPartition& partition, const Marker& marker, Written done) {
    if (partition.topic == group_topic && parts_.write_group_marker) return parts_.write_group_marker(partition.partition, marker, std::move(done));
    const auto journal = parts_.open_journal(partition);
    if (!journal) return done(ErrorCode::kafka_storage_error);
    std::vector<std::byte> batch;
    record::write_marker({.timestamp = parts_.clock.now(),
                          .producer_id = marker.producer_id,
                          .producer_epoch = marker.producer_epoch,
                          .marker = {.type = marker.commit ? record::ControlType::commit : record::ControlType::abort, .coordinator_epoch = marker.coordinator_epoch}},
                         batch);
    const auto at = journal->append(batch, {.transaction_version = marker.transaction_version});
    if (!at) return done(code_of(at.error()));
    journal->when_durable(*at + 1, [done = std::move(done)](const Result<>& synced) { done(synced ? ErrorCode::none : code_of(synced.error())); });
}

void MarkerSender::send(DueMarkers due, std::function<void(const DueMarkers&)> done) {
    auto to = due.to;
    const auto sending = std::make_shared<Sending>(Sending{.due = std::move(due), .done = std::move(done), .outstanding = to});
    {
        MutexLock lock(mutex_);
        if (stopped_) return;
        outstanding_ += to.size();
    }
    // Offsets at once, which only puts them into their coordinator's queue: it answers later questions with them.
    const auto is_group_marker = [this](const TopicPartition& partition) { return partition.topic == group_topic && parts_.write_group_marker; };
    std::set<TopicPartition> offsets;
    std::ranges::copy_if(to, std::inserter(offsets, offsets.end()), is_group_marker);
    if (!offsets.empty()) {
        std::erase_if(to, is_group_marker);
        write_all(sending, offsets);
        if (to.empty()) return;
    }
    parts_.executor([this, sending, to = std::move(to)] {
        if (to.empty()) return sending->done(sending->due);   // an abort of nothing
        write_all(sending, to);
    });
}

void MarkerSender::write_all(const std::shared_ptr<Sending>& sending, const std::set<TopicPartition>& to) {
    const auto image = parts_.image();
    for (const auto& partition : to) {
        if (!image->find(partition)) {
            settle(sending, partition, ErrorCode::none);   // its topic is gone, and the open transaction with it
            continue;
        }
        write(partition, sending->due.marker, [this, sending, partition](ErrorCode answer) { settle(sending, partition, answer); });
    }
}

void MarkerSender::settle(const std::shared_ptr<Sending>& sending, const TopicPartition& partition, ErrorCode answer) {
    const auto fate = fate_of(answer);
    const auto& due = sending->due;
    if (fate == MarkerFate::given_up) {
        log_error("[{}] the marker of {} (producer {}, epoch {}) is refused with {}: the transaction stays undecided until it is loaded again", partition, due.id,
                  due.marker.producer_id, due.marker.producer_epoch, protocol::to_string(answer));
    }
    bool complete = false;
    {
        MutexLock lock(mutex_);
        if (fate == MarkerFate::again) {
            if (sending->again.empty()) {
                again_.emplace(parts_.clock.since_boot() + sending->pause, sending);
                sending->pause = std::min(sending->pause * 2, longest_pause);
            }
            sending->again.insert(partition);
            return;
        }
        --outstanding_;
        sending->outstanding.erase(partition);
        sending->given_up |= fate == MarkerFate::given_up;
        complete = sending->outstanding.empty() && !sending->given_up && !stopped_;
    }
    if (complete) sending->done(due);
}

void MarkerSender::tick() {
    const auto now = parts_.clock.since_boot();
    std::vector<std::pair<std::shared_ptr<Sending>, std::set<TopicPartition>>> due;
    {
        MutexLock lock(mutex_);
        while (!again_.empty() && again_.begin()->first <= now) {
            const auto sending = again_.begin()->second;
            again_.erase(again_.begin());
            due.emplace_back(sending, std::exchange(sending->again, {}));
        }
    }
    for (auto& [sending, to] : due) {
        parts_.executor([this, sending = sending, to = std::move(to)] { write_all(sending, to); });
    }
}

void MarkerSender::stop() {
    MutexLock lock(mutex_);
    stopped_ = true;
    again_.clear();
}

std::size_t MarkerSender::outstanding() const {
    MutexLock lock(mutex_);
    return outstanding_;
}

}  // namespace tidemark::coordinator
