/// Making and rewriting batches, to the byte as Kafka does (record-format, section 8).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace tidemark::record {

struct Header {
    std::string key;
    std::optional<std::vector<std::byte>> value;
};

struct BatchOptions {
    std::int8_t magic = 2;                       ///< 0 and 1 exist for tests that make old logs
    Codec codec = Codec::none;
    std::optional<int> level = {};               ///< nothing: the codec's default
    TimestampType timestamp_type = TimestampType::create_time;
    std::optional<Timestamp> log_append_time = {};    ///< needed for log_append_time
    Offset base_offset{0};
    LeaderEpoch leader_epoch = no_leader_epoch;
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = -1;
    Sequence base_sequence = -1;
    bool transactional = false;
    bool control = false;
    std::optional<Timestamp> delete_horizon = {};     ///< becomes the base timestamp, attribute bit 6
    std::optional<Offset> last_offset = {};      ///< instead of the last record's: a compacted batch keeps its range
};

/// Collects records and writes one batch. Broken rules (offsets that do not rise, producer id without epoch) are bugs of
/// the caller: TM_ASSERT. Reuse: start() begins the next batch with the buffers kept.
class BatchBuilder {
public:
    BatchBuilder();
    ~BatchBuilder();
    BatchBuilder(BatchBuilder&&) noexcept;
    BatchBuilder& operator=(BatchBuilder&&) noexcept;

    void start(const BatchOptions&);
    /// `headers` as RecordView carries them: encoded, behind their count.
    void append(Offset, Timestamp, std::optional<Bytes> key, std::optional<Bytes> value, Bytes headers = {}, std::int32_t header_count = 0);
    void append(Offset, Timestamp, std::optional<Bytes> key, std::optional<Bytes> value, const std::vector<Header>&);
    std::int32_t record_count() const;
    /// What the batch would take without a codec so far.
    std::size_t uncompressed_bytes() const;
    /// Appends the finished batch to `to`; zero records yield zero bytes. Magic 0 and 1 with a codec: one wrapper.
    void finish(std::vector<std::byte>& to);

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// What start() takes for granted of producer fields, for a header that was read: Errc::invalid_record when a batch like it
/// cannot be built (transactional without a producer id; a producer id without epoch, or without sequence unless control).
Result<> check_buildable(const BatchView&);

/// The 61-byte batch that remembers a producer's last sequence, or the end of the log, when no record of `of` survives
/// (record-format 2.7). `of` is v2.
void write_empty_batch(const BatchView& of, std::vector<std::byte>& to);

}  // namespace tidemark::record
