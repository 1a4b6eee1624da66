// What is acknowledged is there, once and in order, however often the broker dies.
//
// 1. Partition p's records are the numbers 0, 1, 2 … so a record's number is its offset, its sequence number, and how many
//    came before it. Nobody else writes to the topic.
// 2. Each writer owns some partitions, one producer id and one connection. Per partition up to `in_flight` batches are
//    unacknowledged; when the connection ends they are sent again in order, with the same sequence numbers.
// 3. Answers come in order, so what is acknowledged is always a prefix: one number per partition remembers all of it.
// 4. Readers follow the partitions' ends through the same kills and never see a number twice, out of order or missing.
#include <boost/json.hpp>
#include <cstdio>
#include <deque>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "bench/load/modes.h"
#include "protocol/messages/fetch_response.h"
#include "protocol/messages/init_producer_id_request.h"
#include "protocol/messages/init_producer_id_response.h"
#include "protocol/messages/produce_response.h"
#include "record/record.h"

namespace tidemark::bench {

namespace {

constexpr auto reconnect_pause = std::chrono::milliseconds(2);
constexpr auto rate_pause = std::chrono::milliseconds(1);

/// What all threads know of one partition.
struct Counts {
    std::atomic<std::int64_t> acknowledged{0};  ///< records; the numbers below it
    std::atomic<std::int64_t> read{0};          ///< by the reader that follows it
};

struct Shared {
    explicit Shared(const VerifyOptions& o) : options(o), counts(static_cast<std::size_t>(o.partitions)) {}

    const VerifyOptions& options;
    std::deque<Counts> counts;
    std::atomic<std::int64_t> batches{0}, sent_again{0}, connections{0};
    std::atomic<bool> stopping{false};
    std::atomic<bool> writers_done{false};

    void complain(const std::string& what) {
        const std::lock_guard lock(mutex_);
        if (complaints_.size() < 100) complaints_.push_back(what);
        failed_ = true;
    }
    bool failed() const { return failed_; }
    boost::json::array complaints() {
        const std::lock_guard lock(mutex_);
        boost::json::array out;
        for (const auto& text : complaints_) out.emplace_back(text);
        return out;
    }
    std::int64_t sum(std::atomic<std::int64_t> Counts::*what) const {
        std::int64_t n = 0;
        for (const auto& one : counts) n += one.*what;
        return n;
    }

private:
    std::mutex mutex_;
    std::vector<std::string> complaints_;
    std::atomic<bool> failed_{false};
};

/// Errc::aborted: try again on a new connection. What a broker that has just started may say; a client would retry, too.
Error retry(const std::string& what, protocol::ErrorCode code) { return in_context(Error{Errc::aborted, std::string(to_string(code))}, what); }
bool may_retry(protocol::ErrorCode code) { return is_retriable(code) && code != protocol::ErrorCode::corrupt_message; }

bool is_disconnect(const Error& error) { return error.code == Errc::io || error.code == Errc::aborted; }

/// The key is the partition, the value begins with the number and goes on with bytes that follow from it.
void fill_value(std::int64_t number, std::vector<std::byte>& value) {
    store_be(value.data(), number);
    auto mixed = static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u + 1;
    for (std::size_t i = 8; i < value.size(); ++i) {
        if (i % 8 == 0) mixed ^= mixed << 13, mixed ^= mixed >> 7, mixed ^= mixed << 17;
        value[i] = static_cast<std::byte>(mixed >> (i % 8 * 8));
    }
}

/// Takes a batch that was read: its numbers go on from `next`, which moves on. Errc::corrupt: what is wrong.
class Judge {
public:
    Judge(std::int32_t partition, std::int32_t record_bytes) : partition_(partition), expected_(static_cast<std::size_t>(record_bytes)) {}

    Result<> take(const record::BatchView& batch, std::int64_t& next) {
        if (!batch.crc_matches()) return wrong(next, "a batch's checksum is wrong");
        TM_TRYV(reader_.open(batch));
        for (;;) {
            TM_TRY(const auto record, reader_.next());
            if (!record) return {};
            if (!record->value || record->value->size() < 8) return wrong(next, "a record without a number");
            const auto number = load_be<std::int64_t>(record->value->data());
            if (number != next) return wrong(next, "number " + std::to_string(number) + " at offset " + std::to_string(record->offset.value));
            if (record->offset.value != number) return wrong(next, "it is at offset " + std::to_string(record->offset.value));
            fill_value(number, expected_);
            if (!equal(*record->value, expected_)) return wrong(next, "its value has changed");
            if (!record->key || record->key->size() != 4 || load_be<std::int32_t>(record->key->data()) != partition_) return wrong(next, "its key has changed");
            ++next;
        }
    }

private:
    Error wrong(std::int64_t next, const std::string& what) const {
        return Error{Errc::corrupt, "partition " + std::to_string(partition_) + ", number " + std::to_string(next) + " expected: " + what};
    }
    std::int32_t partition_;
    std::vector<std::byte> expected_;
    record::RecordReader reader_;
};

/// A thread that works on one connection after the other until its work is done or has failed.
template <class Session>
void through_kills(Shared& shared, const char* name, std::int64_t& last_answer_ns, Session session) {
    last_answer_ns = monotonic_ns();
    for (;;) {
        const Result<> ended = session();
        if (ended || shared.failed()) return;
        if (!is_disconnect(ended.error())) return shared.complain(std::string(name) + ": " + ended.error().message());
        if (static_cast<double>(monotonic_ns() - last_answer_ns) / 1e9 > shared.options.give_up_seconds) {
            return shared.complain(std::string(name) + ": no answer for too long, last: " + ended.error().message());
        }
        std::this_thread::sleep_for(reconnect_pause);
    }
}

/// Waits for an answer; a broker that neither answers nor closes is given up.
Result<> await_answer(Connection& connection, const Shared& shared) {
    TM_TRY(const bool readable, connection.wait_readable(std::chrono::nanoseconds(static_cast<std::int64_t>(shared.options.give_up_seconds * 1e9))));
    if (!readable) return Error{Errc::timed_out, "the connection stands but no answer comes"};
    return {};
}

class Writer {
public:
    Writer(Shared& shared, std::size_t number) : shared_(shared), random_(shared.options.seed + number) {
        for (auto p = static_cast<std::int32_t>(number); p < shared.options.partitions; p += static_cast<std::int32_t>(shared.options.writers)) lanes_.push_back({p, 0, {}});
    }

    void run() {
        through_kills(shared_, "writer", last_answer_ns_, [&] { return session(); });
    }

private:
    struct Batch {
        std::int64_t first = 0;
        std::int32_t count = 0;
        std::vector<std::byte> bytes = {};
    };
    struct Lane {
        std::int32_t partition = 0;
        std::int64_t next = 0;              ///< number of the next new record
        std::deque<Batch> unacknowledged = {};
    };
    struct Sent {
        std::int32_t correlation_id = 0;
        Lane* lane = nullptr;
    };

    Result<> session() {
        TM_TRY(auto connection, Connection::open(shared_.options.broker));
        ++shared_.connections;
        if (producer_id_ == no_producer_id) TM_TRYV(become_producer(connection));
        sent_.clear();
        for (std::size_t n = 0; n < shared_.options.in_flight; ++n) {
            for (auto& lane : lanes_) {
                if (n >= lane.unacknowledged.size()) continue;
                TM_TRYV(send(connection, lane, lane.unacknowledged[n]));
                ++shared_.sent_again;
            }
        }
        while (!shared_.failed()) {
            if (!shared_.stopping) TM_TRYV(send_more(connection));
            if (sent_.empty()) {
                if (shared_.stopping) return {};
                // Ahead of the rate. An end of the connection is as good as its beginning.
                TM_TRY(const bool closed, connection.wait_readable(rate_pause));
                if (closed) return Error{Errc::io, "closed while nothing was in flight"};
                last_answer_ns_ = monotonic_ns();
                continue;
            }
            TM_TRYV(await_answer(connection, shared_));
            TM_TRYV(take_answer(connection));
        }
        return {};
    }

    /// Time that is spent without a connection counts: the rate is caught up with at once when the broker is back.
    bool is_ahead_of_rate() const {
        const double rate = shared_.options.batches_per_second;
        return rate > 0 && static_cast<double>(made_) > rate * static_cast<double>(monotonic_ns() - begin_ns_) / 1e9;
    }

    Result<> become_producer(Connection& connection) {
        protocol::InitProducerIdRequest request;
        request.transactional_id.reset();
    request.transaction_timeout_ms = 60000;
        TM_TRY(const auto answer, connection.ask<protocol::InitProducerIdResponse>(request, 4));
        if (may_retry(answer.error_code)) return retry("InitProducerId", answer.error_code);
        if (answer.error_code != protocol::ErrorCode::none) return refused("InitProducerId", answer.error_code);
        producer_id_ = answer.producer_id;
        producer_epoch_ = answer.producer_epoch;
        return {};
    }

    Result<> send_more(Connection& connection) {
        for (std::size_t n = 0; n < lanes_.size(); ++n) {
            if (is_ahead_of_rate()) return {};
            auto& lane = lanes_[turn_++ % lanes_.size()];
            if (lane.unacknowledged.size() >= shared_.options.in_flight) continue;
            ++made_;
            lane.unacknowledged.push_back(make_batch(lane));
            TM_TRYV(send(connection, lane, lane.unacknowledged.back()));
        }
        return {};
    }

    Batch make_batch(Lane& lane) {
        Batch batch{.first = lane.next, .count = static_cast<std::int32_t>(1 + random_() % static_cast<std::uint64_t>(shared_.options.batch_records_max))};
        record::BatchOptions options;
        options.producer_id = producer_id_;
        options.producer_epoch = producer_epoch_;
        options.base_sequence = static_cast<Sequence>(lane.next & 0x7fffffff);
        builder_.start(options);
        std::vector<std::byte> key(4), value(static_cast<std::size_t>(shared_.options.record_bytes));
        store_be(key.data(), lane.partition);
        const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
        for (std::int32_t i = 0; i < batch.count; ++i) {
            fill_value(lane.next++, value);
            builder_.append(Offset{i}, Timestamp{now}, Bytes(key), Bytes(value));
        }
        builder_.finish(batch.bytes);
        return batch;
    }

    Result<> send(Connection& connection, Lane& lane, Batch& batch) {
        const std::int32_t id = connection.next_correlation_id();
        TM_TRY(const auto frame, produce_frame(shared_.options.topic, lane.partition, -1, batch.bytes, id));
        sent_.push_back({id, &lane});
        return connection.send(frame);
    }

    Result<> take_answer(Connection& connection) {
        const Sent sent = sent_.front();
        sent_.pop_front();
        TM_TRY(const auto answer, connection.answer<protocol::ProduceResponse>(sent.correlation_id, produce_version));
        last_answer_ns_ = monotonic_ns();
        if (answer.responses.size() != 1 || answer.responses[0].partition_responses.size() != 1) return Error{Errc::corrupt, "not the answer to this request"};
        const auto& result = answer.responses[0].partition_responses[0];
        const Batch& batch = sent.lane->unacknowledged.front();
        const std::string where = "partition " + std::to_string(sent.lane->partition) + ", batch from " + std::to_string(batch.first);
        if (may_retry(result.error_code)) return retry(where, result.error_code);
        if (result.error_code != protocol::ErrorCode::none) return refused(where, result.error_code);
        if (result.base_offset != batch.first) return Error{Errc::corrupt, where + " was acknowledged at offset " + std::to_string(result.base_offset)};
        shared_.counts[static_cast<std::size_t>(sent.lane->partition)].acknowledged = batch.first + batch.count;
        ++shared_.batches;
        sent.lane->unacknowledged.pop_front();
        return {};
    }

    Shared& shared_;
    std::mt19937_64 random_;
    std::vector<Lane> lanes_;
    std::deque<Sent> sent_;  ///< on this connection, unanswered
    ProducerId producer_id_ = no_producer_id;
    ProducerEpoch producer_epoch_ = -1;
    record::BatchBuilder builder_;
    const std::int64_t begin_ns_ = monotonic_ns();
    std::int64_t made_ = 0;  ///< batches
    std::size_t turn_ = 0;   ///< whose lane is next
    std::int64_t last_answer_ns_ = 0;
};

/// One fetch of some partitions; every batch goes to `take(partition, batch)`, every high watermark to `mark(partition, offset)`.
template <class Take, class Mark>
Result<> fetch_once(Connection& connection, const Shared& shared, const std::vector<FetchPosition>& wanted, const FetchOptions& options, Take take, Mark mark) {
    const std::int32_t id = connection.next_correlation_id();
    TM_TRY(const auto frame, fetch_frame(id, shared.options.topic, wanted, options));
    TM_TRYV(connection.send(frame.bytes));
    TM_TRYV(await_answer(connection, shared));
    TM_TRY(const auto answer, connection.answer<protocol::FetchResponse>(id, fetch_version));
    if (may_retry(answer.error_code)) return retry("fetch", answer.error_code);
    if (answer.error_code != protocol::ErrorCode::none) return refused("fetch", answer.error_code);
    for (const auto& topic : answer.responses) {
        for (const auto& partition : topic.partitions) {
            const std::string where = "fetching partition " + std::to_string(partition.partition_index);
            if (may_retry(partition.error_code)) return retry(where, partition.error_code);
            if (partition.error_code != protocol::ErrorCode::none) return refused(where, partition.error_code);
            record::BatchCursor cursor(partition.records ? Bytes(partition.records->bytes) : Bytes());
            for (;;) {
                TM_TRY(const auto batch, cursor.next());
                if (!batch) break;
                TM_TRYV(take(partition.partition_index, *batch));
            }
            mark(partition.partition_index, partition.high_watermark);
        }
    }
    return {};
}

/// Follows the ends of some partitions.
class Follower {
public:
    Follower(Shared& shared, std::size_t number) : shared_(shared) {
        for (auto p = static_cast<std::int32_t>(number); p < shared.options.partitions; p += static_cast<std::int32_t>(shared.options.readers)) {
            positions_.push_back({p, 0});
            judges_.emplace(p, Judge(p, shared.options.record_bytes));
        }
    }

    void run() {
        through_kills(shared_, "reader", last_answer_ns_, [&] { return session(); });
    }

private:
    Result<> session() {
        TM_TRY(auto connection, Connection::open(shared_.options.broker));
        while (!shared_.failed() && !done()) {
            const auto take = [&](std::int32_t partition, const record::BatchView& batch) -> Result<> {
                auto& position = *std::find_if(positions_.begin(), positions_.end(), [&](const auto& one) { return one.partition == partition; });
                TM_TRYV(judges_.at(partition).take(batch, position.offset));
                shared_.counts[static_cast<std::size_t>(partition)].read = position.offset;
                return {};
            };
            TM_TRYV(fetch_once(connection, shared_, positions_, {.max_wait_ms = 100}, take, [](std::int32_t, std::int64_t) {}));
            last_answer_ns_ = monotonic_ns();
            std::rotate(positions_.begin(), positions_.begin() + 1, positions_.end());
        }
        return {};
    }

    /// The writers have ended and everything acknowledged has been read.
    bool done() const {
        if (!shared_.writers_done) return false;
        return std::all_of(positions_.begin(), positions_.end(), [&](const auto& one) {
            return one.offset >= shared_.counts[static_cast<std::size_t>(one.partition)].acknowledged;
        });
    }

    Shared& shared_;
    std::vector<FetchPosition> positions_;
    std::map<std::int32_t, Judge> judges_;
    std::int64_t last_answer_ns_ = 0;
};

/// Reads one partition from its beginning to its end; the number of records.
Result<std::int64_t> count_all(Connection& connection, const Shared& shared, std::int32_t partition) {
    Judge judge(partition, shared.options.record_bytes);
    std::int64_t next = 0, end = -1;
    while (end < 0 || next < end) {
        const std::int64_t before = next;
        TM_TRYV(fetch_once(
            connection, shared, {{partition, next}}, {.max_wait_ms = 0}, [&](std::int32_t, const record::BatchView& batch) { return judge.take(batch, next); },
            [&](std::int32_t, std::int64_t high_watermark) { if (end < 0) end = high_watermark; }));
        if (next == before && next < end) return Error{Errc::corrupt, "partition " + std::to_string(partition) + ": no record at " + std::to_string(next) + " below the high watermark"};
    }
    return next;
}

/// `all`: nothing is in flight, so what is there is exactly what was acknowledged.
Result<> check(Shared& shared, bool all) {
    std::vector<std::int64_t> acknowledged;
    for (const auto& one : shared.counts) acknowledged.push_back(one.acknowledged);
    TM_TRY(auto connection, Connection::open(shared.options.broker));
    for (std::size_t p = 0; p < acknowledged.size(); ++p) {
        TM_TRY(const std::int64_t there, count_all(connection, shared, static_cast<std::int32_t>(p)));
        const std::string numbers = std::to_string(there) + " records, " + std::to_string(acknowledged[p]) + " were acknowledged";
        if (there < acknowledged[p] || (all && there != acknowledged[p])) return Error{Errc::corrupt, "partition " + std::to_string(p) + " holds " + numbers};
    }
    return {};
}

/// One line.
void say(const char* event, Shared& shared) {
    const boost::json::object line{
        {"event", event},
        {"acknowledged", shared.sum(&Counts::acknowledged)},
        {"read", shared.sum(&Counts::read)},
        {"batches", shared.batches.load()},
        {"sent_again", shared.sent_again.load()},
        {"connections", shared.connections.load()},
        {"complaints", shared.complaints()},
    };
    const std::string text = boost::json::serialize(line) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void check_and_say(const char* event, Shared& shared, bool all) {
    if (const auto checked = check(shared, all); !checked) shared.complain(std::string(event) + ": " + checked.error().message());
    say(event, shared);
}

}  // namespace

int verify(const VerifyOptions& options) {
    Shared shared(options);
    const auto prepare = [&]() -> Result<> {
        TM_TRY(auto connection, Connection::open(options.broker));
        return ensure_topic(connection, {.name = options.topic, .partitions = options.partitions, .configs = options.topic_configs});
    };
    if (const auto prepared = prepare(); !prepared) {
        shared.complain(prepared.error().message());
        say("failed", shared);
        return 1;
    }
    std::deque<Writer> writers;
    std::deque<Follower> followers;
    std::vector<std::jthread> writing, reading;
    for (std::size_t n = 0; n < options.writers; ++n) writers.emplace_back(shared, n);
    for (std::size_t n = 0; n < options.readers; ++n) followers.emplace_back(shared, n);
    for (auto& writer : writers) writing.emplace_back([&writer] { writer.run(); });
    for (auto& follower : followers) reading.emplace_back([&follower] { follower.run(); });
    say("started", shared);

    for (std::string order; std::getline(std::cin, order) && order != "stop";) {
        if (order == "status") say("status", shared);
        else if (order == "check") check_and_say("check", shared, false);
        else shared.complain("no such order: " + order);
    }
    shared.stopping = true;
    writing.clear();
    shared.writers_done = true;
    reading.clear();
    check_and_say("stopped", shared, true);
    return shared.failed() ? 1 : 0;
}

}  // namespace tidemark::bench
