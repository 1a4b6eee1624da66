// `compact`: random keys, some of them deleted again, and what a reader finds once the broker has compacted the log.
#include <cstdio>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "bench/load/modes.h"
#include "protocol/messages/fetch_response.h"
#include "protocol/messages/produce_response.h"
#include "record/record.h"

namespace tidemark::bench {
namespace {

/// What one partition must come to.
struct Partition {
    std::map<std::string, std::int64_t, std::less<>> latest;   // key → number of the message that set it
};

class Compaction {
public:
    explicit Compaction(const CompactOptions& options) : options_(options), random_(options.seed), partitions_(static_cast<std::size_t>(options.partitions)) {}

    Result<> run() {
        TM_TRY(auto connection, Connection::open(options_.broker));
        TM_TRYV(ensure_topic(connection, {.name = options_.topic, .partitions = options_.partitions, .configs = options_.topic_configs}));
        TM_TRYV(write(connection));
        std::int64_t left = 0;
        const auto give_up = monotonic_ns() + static_cast<std::int64_t>(options_.give_up_seconds * 1e9);
        for (;;) {
            TM_TRY(left, read_and_check(connection));
            if (static_cast<double>(left) <= options_.left_max * static_cast<double>(options_.messages)) break;
            if (monotonic_ns() > give_up) return Error{Errc::invalid_argument, fmt::format("{} of {} messages are still there", left, options_.messages)};
            std::this_thread::sleep_for(std::chrono::seconds(1));   // the broker's turn
        }
        std::int64_t living = 0;
        for (const auto& partition : partitions_) living += static_cast<std::int64_t>(partition.latest.size());
        std::printf("{\"messages\": %lld, \"deletes\": %lld, \"left\": %lld, \"living\": %lld}\n", static_cast<long long>(options_.messages), static_cast<long long>(deletes_),
                    static_cast<long long>(left), static_cast<long long>(living));
        return {};
    }

private:
    std::uint64_t below(std::uint64_t n) { return random_() % n; }

    Result<> write(Connection& connection) {
        record::BatchBuilder builder;
        std::vector<std::byte> batch;
        const Timestamp now{std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count()};
        for (std::int64_t number = 0; number < options_.messages;) {
            const auto p = static_cast<std::int32_t>(below(partitions_.size()));
            auto& latest = partitions_[static_cast<std::size_t>(p)].latest;
            builder.start({.codec = options_.codec});
            for (int i = 0; i < options_.batch_records && number < options_.messages; ++i, ++number) {
                const auto key = "key-" + std::to_string(below(static_cast<std::uint64_t>(options_.keys)));
                const bool deletes = below(100) < static_cast<std::uint64_t>(options_.delete_percent);
                const auto value = key + "=" + std::to_string(number);
                builder.append(Offset{i}, now, as_bytes(key), deletes ? std::nullopt : std::optional{as_bytes(value)});
                if (deletes) latest.erase(key), ++deletes_;
                else latest[key] = number;
            }
            batch.clear();
            builder.finish(batch);
            const auto id = connection.next_correlation_id();
            TM_TRY(const auto frame, produce_frame(options_.topic, p, 1, batch, id));
            TM_TRYV(connection.send(frame));
            TM_TRY(const auto answer, connection.answer<protocol::ProduceResponse>(id, produce_version));
            const auto& answered = answer.responses.at(0).partition_responses.at(0);
            if (answered.error_code != protocol::ErrorCode::none) return refused("produce", answered.error_code);
        }
        return {};
    }

    /// Reads every partition from its beginning; the number of records in them.
    Result<std::int64_t> read_and_check(Connection& connection) {
        std::int64_t records = 0;
        TM_TRY(const auto begins, offsets(connection, options_.topic, options_.partitions, Position::earliest));
        TM_TRY(const auto ends, offsets(connection, options_.topic, options_.partitions, Position::latest));
        for (std::size_t p = 0; p < partitions_.size(); ++p) {
            std::map<std::string, std::int64_t, std::less<>> found;
            FetchPosition at{static_cast<std::int32_t>(p), begins[p]};
            while (at.offset < ends[p]) {
                const auto id = connection.next_correlation_id();
                TM_TRY(const auto frame, fetch_frame(id, options_.topic, {at}, {}));
                TM_TRYV(connection.send(frame.bytes));
                TM_TRY(const auto answer, connection.answer<protocol::FetchResponse>(id, fetch_version));
                const auto& fetched = answer.responses.at(0).partitions.at(0);
                if (fetched.error_code != protocol::ErrorCode::none) return refused("fetch", fetched.error_code);
                if (!fetched.records || fetched.records->bytes.empty()) return Error{Errc::corrupt, fmt::format("nothing at {} below the end {}", at.offset, ends[p])};
                TM_TRY(const auto count, take(fetched.records->bytes, at, found));
                records += count;
            }
            TM_TRYV(compare(p, found));
        }
        return records;
    }

    Result<std::int64_t> take(Bytes bytes, FetchPosition& at, std::map<std::string, std::int64_t, std::less<>>& found) {
        std::int64_t count = 0;
        record::BatchCursor cursor(bytes);
        for (;;) {
            TM_TRY(const auto batch, cursor.next());
            if (!batch) return count;
            if (!batch->crc_matches()) return Error{Errc::corrupt, fmt::format("CRC mismatch at {}", batch->base_offset().value)};
            TM_TRYV(reader_.open(*batch));
            for (;;) {
                TM_TRY(const auto record, reader_.next());
                if (!record) break;
                if (record->offset.value < at.offset) continue;   // a batch comes whole
                at.offset = record->offset.value + 1;
                ++count;
                const auto key = as_text(*record->key);
                if (!record->value) {
                    if (const auto known = found.find(key); known != found.end()) found.erase(known);
                    continue;
                }
                const auto value = as_text(*record->value);
                if (!value.starts_with(std::string(key) + "=")) return Error{Errc::corrupt, fmt::format("at {}: {} has the value {}", record->offset.value, key, value)};
                found[std::string(key)] = std::stoll(std::string(value.substr(key.size() + 1)));
            }
            at.offset = std::max(at.offset, batch->next_offset().value);
        }
    }

    Result<> compare(std::size_t p, const std::map<std::string, std::int64_t, std::less<>>& found) const {
        const auto& wanted = partitions_[p].latest;
        if (found == wanted) return {};
        for (const auto& [key, number] : wanted) {
            const auto known = found.find(key);
            if (known == found.end()) return Error{Errc::corrupt, fmt::format("partition {}: {} is lost", p, key)};
            if (known->second != number) return Error{Errc::corrupt, fmt::format("partition {}: {} has message {} instead of {}", p, key, known->second, number)};
        }
        for (const auto& [key, number] : found) {
            if (!wanted.contains(key)) return Error{Errc::corrupt, fmt::format("partition {}: {} was deleted and is back as message {}", p, key, number)};
        }
        return {};
    }

    const CompactOptions& options_;
    std::mt19937_64 random_;
    std::vector<Partition> partitions_;
    record::RecordReader reader_;
    std::int64_t deletes_ = 0;
};

}  // namespace

Result<> compact(const CompactOptions& options) { return Compaction(options).run(); }

}  // namespace tidemark::bench
