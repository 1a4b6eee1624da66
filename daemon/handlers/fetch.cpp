// Fetch (1), versions 4 to 18: wire-behaviour 8, append-and-read 7.
//
//   1. the session says which partitions are meant, in which order (fetch_sessions.h);
//   2. each is read: a slice of a segment's file within the limits, no bytes yet;
//   3. enough of them, an error while reading, or nothing to wait for: answered at once;
//   4. else the fetch waits (delayed_fetch.h) until something happens to one of its partitions, looks whether it is
//      enough, and at the latest after MaxWaitMs reads again and answers what there is.
//
// Left out: replicas on other nodes, so no preferred read replica; throttling.
#include "protocol/messages/fetch_request.h"
#include "protocol/messages/fetch_response.h"

#include <boost/asio/bind_executor.hpp>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "record/batch.h"
#include "storage/segment.h"

namespace tidemark::daemon::handlers {

namespace {

using protocol::fetch_response::PartitionData;

/// One partition of the fetch.
struct Target {
    FetchPartition request = {};
    TopicPartition name = {};                               ///< empty topic: the id is unknown
    ErrorCode error = ErrorCode::none;                   ///< there is no such partition: told, but no reason to end a wait
    storage::Isolation isolation = storage::Isolation::read_uncommitted;
    std::shared_ptr<storage::Log> log = {};
    LeaderEpoch leader_epoch = no_leader_epoch;          ///< when it was last read
};

/// What reading it gave.
struct Read {
    ErrorCode error = ErrorCode::none;
    storage::LogSlice slice = {};                        ///< without error
    std::optional<storage::EpochEnd> diverging = {};
    std::optional<metadata::Partition> leader = {};         ///< for the client to find it (6, 74)
};

class FetchOperation final : public DelayedFetches::Waiter, public std::enable_shared_from_this<FetchOperation> {
public:
    FetchOperation(Broker& broker, std::shared_ptr<Call> call, const protocol::FetchRequest& request, FetchContext context)
        : broker_(broker), call_(std::move(call)), context_(std::move(context)), isolation_(request.isolation_level == 1 ? storage::Isolation::read_committed : storage::Isolation::read_uncommitted),
          replica_id_(call_->version() >= 15 ? request.replica_state.replica_id : request.replica_id),
          bytes_max_(std::max(std::min(request.max_bytes, broker.options()->limits.fetch_bytes_max), 0)),
          bytes_min_(std::min(request.min_bytes, bytes_max_)), max_wait_(request.max_wait_ms), timer_(call_->executor()) {}

    void start();
    void wake(std::size_t index) override;

private:
    void resolve(const metadata::Image&);
    void read_all();
    Read read(Target&, const metadata::Image&, std::int64_t left, bool first_batch_whole) const;
    std::optional<storage::EpochEnd> divergence(const Target&, ErrorCode& error) const;
    bool is_answerable_now() const;
    void wait();
    void look(std::size_t first);
    bool is_enough(std::size_t first) const;
    void stop_waiting();
    void read_and_answer();
    void answer();
    PartitionData describe(const Target&, const Read&, std::vector<storage::LogSlice>& slices) const;

    Broker& broker_;
    const std::shared_ptr<Call> call_;
    const FetchContext context_;
    const storage::Isolation isolation_;
    const std::int32_t replica_id_;
    const std::int32_t bytes_max_, bytes_min_, max_wait_;

    std::vector<Target> targets_;
    std::vector<Read> reads_;                            // of targets_, in their order
    std::int64_t bytes_read_ = 0;
    Timer timer_;
    std::vector<TopicPartition> watched_;                // targets_ that exist
    std::vector<std::size_t> watched_targets_;           // their indexes
    bool waiting_ = false;                               // registered with DelayedFetches
    bool answered_ = false;
    std::atomic<bool> look_posted_{false};               // from any thread; the rest on the loop
};

void FetchOperation::start() {
    resolve(*broker_.image());
    read_all();
    if (is_answerable_now()) return answer();
    wait();
}

void FetchOperation::resolve(const metadata::Image& image) {
    targets_.reserve(context_.partitions.size());
    for (const auto& partition : context_.partitions) {
        auto& target = targets_.emplace_back(Target{.request = partition, .name = {"", partition.key.partition}, .isolation = isolation_});
        const auto* topic = context_.by_id ? image.find(partition.key.topic_id) : image.find(partition.key.topic);
        if (!topic) {
            target.error = context_.by_id ? ErrorCode::unknown_topic_id : ErrorCode::unknown_topic_or_partition;
            continue;
        }
        target.name.topic = topic->name;
        if (!topic->partitions.contains(partition.key.partition)) target.error = ErrorCode::unknown_topic_or_partition;
    }
}

/// Whether the piece holds its first batch whole. A piece that was cut by the limit may not.
bool holds_whole_batch(const storage::LogSlice& slice) {
    std::array<std::byte, record::log_overhead> prefix;
    if (slice.bytes < static_cast<std::int64_t>(prefix.size())) return false;
    const auto got = slice.file->read(slice.position, prefix);
    return got && *got == prefix.size() && load_be<std::int32_t>(prefix.data() + 8) + static_cast<std::int64_t>(record::log_overhead) <= slice.bytes;
}

void FetchOperation::read_all() {
    const auto image = broker_.image();
    reads_.clear();
    reads_.reserve(targets_.size());
    bytes_read_ = 0;
    for (auto& target : targets_) {
        auto& read = reads_.emplace_back();
        if (target.error != ErrorCode::none) {
            read.error = target.error;
            continue;
        }
        read = this->read(target, *image, bytes_max_ - bytes_read_, bytes_read_ == 0);
        bytes_read_ += read.slice.bytes;
    }
}

Read FetchOperation::read(Target& target, const metadata::Image& image, std::int64_t left, bool first_batch_whole) const {
    auto found = find_partition(broker_, image, target.name, target.request.current_leader_epoch);
    const auto refused = [&](ErrorCode error) {
        Read read{.error = error};
        if (found.partition && (error == ErrorCode::not_leader_or_follower || error == ErrorCode::fenced_leader_epoch)) read.leader = *found.partition;
        return read;
    };
    // It was there when the request was read: the topic has been deleted since.
    if (found.error == ErrorCode::unknown_topic_or_partition && context_.by_id) return refused(ErrorCode::unknown_topic_id);
    if (found.error != ErrorCode::none) return refused(found.error);
    if (replica_id_ >= 0) {
        if (std::ranges::find(found.partition->replicas, replica_id_) == found.partition->replicas.end()) return refused(ErrorCode::not_leader_or_follower);
        target.isolation = storage::Isolation::log_end;
    }
    target.log = found.log;
    target.leader_epoch = found.partition->leader_epoch;

    ErrorCode error = ErrorCode::none;
    const auto diverging = divergence(target, error);
    if (error != ErrorCode::none) return refused(error);
    const auto& log = *target.log;
    if (diverging) {
        Read read{.diverging = diverging};
        read.slice.high_watermark = log.high_watermark();
        read.slice.last_stable_offset = log.last_stable_offset();
        read.slice.log_start_offset = log.log_start_offset();
        return read;
    }
    const auto bytes_max = std::max<std::int64_t>(std::min(target.request.bytes_max, left), 0);
    auto slice = log.read({.from = target.request.offset, .bytes_max = bytes_max, .first_batch_whole = first_batch_whole, .isolation = target.isolation});
    if (!slice) return refused(to_error_code(slice.error()));
    // Only the first records of an answer may exceed a limit; elsewhere nothing is better than a part.
    if (!first_batch_whole && slice->bytes != 0 && slice->bytes >= bytes_max && !holds_whole_batch(*slice)) {
        slice->bytes = 0;
        slice->file = nullptr;
    }
    return {.slice = *std::move(slice)};
}

/// KIP-595: where the client's log and ours part, if the epoch that it read last says so.
std::optional<storage::EpochEnd> FetchOperation::divergence(const Target& target, ErrorCode& error) const {
    const auto epoch = target.request.last_fetched_epoch;
    if (epoch < 0) return std::nullopt;
    const auto end = target.log->end_of_epoch(epoch);
    if (end.epoch < 0 || end.end_offset < Offset{0} || target.request.offset < target.log->log_start_offset()) {
        error = ErrorCode::offset_out_of_range;
        return std::nullopt;
    }
    if (end.epoch < epoch || end.end_offset < target.request.offset) return end;
    return std::nullopt;
}

bool FetchOperation::is_answerable_now() const {
    if (max_wait_ <= 0 || bytes_read_ >= bytes_min_) return true;
    bool any_valid = false;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (targets_[i].error != ErrorCode::none) continue;
        any_valid = true;
        if (reads_[i].error != ErrorCode::none || reads_[i].diverging) return true;
    }
    return !any_valid;
}

// --- waiting -----------------------------------------------------------------------------------------------------------

void FetchOperation::wait() {
    reads_.clear();   // they hold files open
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        if (targets_[i].error != ErrorCode::none) continue;
        watched_.push_back(targets_[i].name);
        watched_targets_.push_back(i);
    }
    waiting_ = true;
    broker_.delayed_fetches().wait(shared_from_this(), watched_);
    timer_.expires_after(std::chrono::milliseconds{max_wait_});
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
        if (!error) self->read_and_answer();
    });
    call_->set_hurry([self = shared_from_this()] { self->read_and_answer(); });
    look(0);   // what came between reading and registering
}

void FetchOperation::wake(std::size_t index) {
    if (look_posted_.exchange(true)) return;
    asio::post(call_->executor(), [self = shared_from_this(), index] {
        self->look_posted_ = false;
        self->look(index);
    });
}

void FetchOperation::look(std::size_t first) {
    if (!answered_ && is_enough(first)) read_and_answer();
}

/// Looks at watched_[first] first: it was the cause to look at all.
bool FetchOperation::is_enough(std::size_t first) const {
    const auto image = broker_.image();
    std::int64_t bytes = 0;
    for (std::size_t n = 0; n < watched_.size(); ++n) {
        const auto at = (first + n) % watched_.size();
        const auto& target = targets_[watched_targets_[at]];
        const auto* partition = image->find(target.name);
        if (!partition || partition->leader_epoch != target.leader_epoch || partition->leader != broker_.node_id()) return true;
        const auto there = target.log->available(target.request.offset, std::max<std::int64_t>(target.request.bytes_max, 0), target.isolation);
        if (!there) return true;
        bytes += *there;
        if (bytes >= bytes_min_) return true;
        // What stands in an older segment than the end can be answered now and grows no more.
        if (*there > 0 && target.request.offset < target.log->segments()->back()->base_offset()) return true;
        ErrorCode error = ErrorCode::none;
        if (divergence(target, error) || error != ErrorCode::none) return true;
    }
    return false;
}

void FetchOperation::stop_waiting() {
    if (!waiting_) return;
    waiting_ = false;
    timer_.cancel();
    broker_.delayed_fetches().forget(*this, watched_);
}

void FetchOperation::read_and_answer() {
    if (answered_) return;
    stop_waiting();
    // Topics that went meanwhile answer as unknown; others under the same name are told apart by their id.
    targets_.clear();
    resolve(*broker_.image());
    read_all();
    answer();
}

// --- answering ---------------------------------------------------------------------------------------------------------

PartitionData FetchOperation::describe(const Target& target, const Read& read, std::vector<storage::LogSlice>& slices) const {
    PartitionData data{.partition_index = target.request.key.partition, .error_code = read.error, .high_watermark = -1};
    if (call_->version() >= 16 && read.leader) data.current_leader = {.leader_id = read.leader->leader, .leader_epoch = read.leader->leader_epoch};
    if (read.error != ErrorCode::none) {
        // Errors found while reading have no list of aborted transactions, those found before an empty one.
        if (target.error == ErrorCode::none) data.aborted_transactions.reset();
        return data;
    }
    data.high_watermark = read.slice.high_watermark.value;
    data.last_stable_offset = read.slice.last_stable_offset.value;
    data.log_start_offset = read.slice.log_start_offset.value;
    if (read.diverging) data.diverging_epoch = {.epoch = read.diverging->epoch, .end_offset = read.diverging->end_offset.value};
    if (target.isolation != storage::Isolation::read_committed || read.diverging) data.aborted_transactions.reset();
    else for (const auto& aborted : read.slice.aborted) data.aborted_transactions->push_back({.producer_id = aborted.producer_id, .first_offset = aborted.first_offset.value});
    if (read.slice.bytes != 0) {
        data.records->elsewhere = {.slice = static_cast<std::uint32_t>(slices.size()), .size = static_cast<std::size_t>(read.slice.bytes)};
        slices.push_back(read.slice);
    }
    return data;
}

void FetchOperation::answer() {
    answered_ = true;
    const auto news_of = [](const Read& read) {
        const bool good = read.error == ErrorCode::none;
        return FetchNews{.error = read.error,
                         .high_watermark = good ? read.slice.high_watermark : Offset{-1},
                         .log_start_offset = good ? read.slice.log_start_offset : Offset{-1},
                         .has_records = read.slice.bytes != 0,
                         .diverging = read.diverging.has_value()};
    };
    protocol::FetchResponse response;
    std::vector<bool> named(targets_.size(), true);
    if (context_.kind == FetchContext::Kind::incremental) {
        std::vector<std::pair<FetchKey, FetchNews>> told;
        for (std::size_t i = 0; i < targets_.size(); ++i) told.emplace_back(targets_[i].request.key, news_of(reads_[i]));
        named = broker_.fetch_sessions().tell(context_.session_id, told);
        response.session_id = context_.session_id;
    } else if (context_.kind == FetchContext::Kind::create) {
        std::vector<std::pair<FetchPartition, FetchNews>> told;
        for (std::size_t i = 0; i < targets_.size(); ++i) told.emplace_back(targets_[i].request, news_of(reads_[i]));
        response.session_id = broker_.fetch_sessions().create(told, context_.by_id, replica_id_ >= 0, broker_.clock().now());
    }

    std::vector<storage::LogSlice> slices;
    bool names_leader = false;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
        const auto& target = targets_[i];
        if (reads_[i].error == ErrorCode::none) {
            const auto counters = broker_.stats().topic(target.name.topic);
            add(counters->fetch_requests);
            add(counters->bytes_out, static_cast<std::uint64_t>(reads_[i].slice.bytes));
        } else {
            call_->count(reads_[i].error);
            if (target.error == ErrorCode::none) add(broker_.stats().topic(target.name.topic)->failed_fetch_requests);
        }
        if (!named[i]) continue;
        auto& topics = response.responses;
        if (topics.empty() || topics.back().topic_id != target.request.key.topic_id || topics.back().topic != target.request.key.topic) {
            topics.push_back({.topic = target.request.key.topic, .topic_id = target.request.key.topic_id});
        }
        topics.back().partitions.push_back(describe(target, reads_[i], slices));
        names_leader |= topics.back().partitions.back().current_leader.leader_id == broker_.node_id();
    }
    if (names_leader) {
        const auto& endpoint = broker_.endpoint(call_->peer().listener);
        response.node_endpoints.push_back({.node_id = broker_.node_id(), .host = endpoint.host, .port = endpoint.port, .rack = broker_.options()->rack});
    }
    call_->finish(response, std::move(slices));
}

FetchSessions::Request session_request(const protocol::FetchRequest& request, std::int16_t version) {
    FetchSessions::Request session{.session_id = request.session_id, .epoch = request.session_epoch, .by_id = version >= 13};
    for (const auto& topic : request.topics) {
        for (const auto& partition : topic.partitions) {
            session.partitions.push_back({.key = {topic.topic_id, topic.topic, partition.partition},
                                          .offset = Offset{partition.fetch_offset},
                                          .bytes_max = partition.partition_max_bytes,
                                          .current_leader_epoch = partition.current_leader_epoch,
                                          .last_fetched_epoch = partition.last_fetched_epoch});
        }
    }
    for (const auto& topic : request.forgotten_topics_data) {
        for (const auto partition : topic.partitions) session.forgotten.push_back({topic.topic_id, topic.topic, partition});
    }
    return session;
}

/// The whole request fails: the code at the top (version 7 and above) and in each partition.
protocol::FetchResponse failed(const protocol::FetchRequest& request, ErrorCode error) {
    protocol::FetchResponse response{.error_code = error, .session_id = request.session_id};
    for (const auto& topic : request.topics) {
        auto& answer = response.responses.emplace_back();
        answer.topic = topic.topic;
        answer.topic_id = topic.topic_id;
        for (const auto& partition : topic.partitions) answer.partitions.push_back({.partition_index = partition.partition, .error_code = error, .high_watermark = -1});
    }
    return response;
}

}  // namespace

void fetch(Broker& broker, const std::shared_ptr<Call>& call) {
    const auto request = call->parse<protocol::FetchRequest>();
    if (!request) return;
    call->release_frame();
    if (request->isolation_level != 0 && request->isolation_level != 1) {
        call->count(ErrorCode::unknown_server_error);
        return call->finish(failed(*request, ErrorCode::unknown_server_error));
    }
    auto context = broker.fetch_sessions().begin(session_request(*request, call->version()), broker.clock().now());
    if (context.kind == FetchContext::Kind::refused) {
        call->count(context.error);
        return call->finish(protocol::FetchResponse{.error_code = context.error});
    }
    std::make_shared<FetchOperation>(broker, call, *request, std::move(context))->start();
}

}  // namespace tidemark::daemon::handlers
