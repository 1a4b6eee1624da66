// Building a batch: records are encoded as they come, behind one another; finish() compresses them when asked to and puts
// the header before them. Formats 0 and 1 without a codec are entries of their own from the start.
#include "record/builder.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/assert.h"
#include "base/crc32c.h"
#include "record/compression.h"
#include "record/varint.h"

namespace tidemark::record {
namespace {

constexpr std::size_t record_overhead_max = 32;  // five varints and varlongs of length, timestamp, offset and sizes, attributes, header count
constexpr std::size_t legacy_overhead_max = 34;

std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// Bytes that grow at the end; unlike a vector's, its growth leaves new bytes as they are.
class Buffer {
public:
    std::byte* reserve(std::size_t more) {
        if (capacity_ - size_ < more) {
            capacity_ = std::max({2 * capacity_, size_ + more, std::size_t{16} * 1024});
            auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity_);
            if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
            bytes_ = std::move(larger);
        }
        return bytes_.get() + size_;
    }
    void end_at(const std::byte* end) { size_ = static_cast<std::size_t>(end - bytes_.get()); }
    void clear() {
        size_ = 0;
        if (capacity_ > kept_max) {
            bytes_.reset();
            capacity_ = 0;
        }
    }
    Bytes bytes() const { return {bytes_.get(), size_}; }

private:
    static constexpr std::size_t kept_max = 4 * 1024 * 1024;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0, capacity_ = 0;
};

std::byte* write_bytes(std::byte* to, Bytes from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return to + from.size();
}

std::int32_t sized(const std::optional<Bytes>& bytes) {
    if (!bytes) return -1;
    TM_ASSERT(bytes->size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
    return static_cast<std::int32_t>(bytes->size());
}

std::byte* write_varint_sized(std::byte* to, const std::optional<Bytes>& bytes) {
    to = write_varint(to, sized(bytes));
    return bytes ? write_bytes(to, *bytes) : to;
}

std::byte* write_int32_sized(std::byte* to, const std::optional<Bytes>& bytes) {
    store_be(to, sized(bytes));
    return bytes ? write_bytes(to + 4, *bytes) : to + 4;
}

/// The CRC-32 of a legacy entry that starts at `entry` and ends at `end`.
void close_legacy_entry(std::byte* entry, const std::byte* end) {
    const auto covered = static_cast<std::size_t>(end - entry) - 16;
    store_be(entry + 8, static_cast<std::int32_t>(covered + 4));
    store_be(entry + 12, static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(entry + 16), covered)));
}

struct V2Header {
    std::int64_t base_offset = 0;
    LeaderEpoch leader_epoch = no_leader_epoch;
    std::uint16_t attributes = 0;
    std::int32_t last_offset_delta = 0;
    std::int64_t base_timestamp = -1;
    std::int64_t max_timestamp = -1;
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = -1;
    Sequence base_sequence = -1;
    std::int32_t record_count = 0;
};

/// Fills in the first 61 bytes of `batch`, whose payload is in place.
void write_v2_header(MutableBytes batch, const V2Header& header) {
    TM_ASSERT(batch.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
    std::byte* const to = batch.data();
    store_be(to, header.base_offset);
    store_be(to + 8, static_cast<std::int32_t>(batch.size() - log_overhead));
    store_be(to + 12, header.leader_epoch);
    store_be(to + 16, std::int8_t{2});
    store_be(to + 21, header.attributes);
    store_be(to + 23, header.last_offset_delta);
    store_be(to + 27, header.base_timestamp);
    store_be(to + 35, header.max_timestamp);
    store_be(to + 43, header.producer_id);
    store_be(to + 51, header.producer_epoch);
    store_be(to + 53, header.base_sequence);
    store_be(to + 57, header.record_count);
    store_be(to + 17, crc32c(Bytes{batch}.subspan(21)));
}

}  // namespace

struct BatchBuilder::State {
    BatchOptions options;
    Buffer records;
    Compressor compressor;
    std::int32_t count = 0;
    std::int64_t last_offset = 0;
    std::int64_t base_timestamp = -1;
    std::int64_t max_timestamp = -1;
    std::vector<std::byte> headers;  // of append() with a list of them

    void append_v2(Offset, Timestamp, std::optional<Bytes> key, std::optional<Bytes> value, Bytes encoded_headers, std::int32_t header_count);
    void append_legacy(Offset, Timestamp, std::optional<Bytes> key, std::optional<Bytes> value);
    void finish_v2(std::vector<std::byte>& to);
    void finish_wrapper(std::vector<std::byte>& to);

    bool append_time() const { return options.timestamp_type == TimestampType::log_append_time; }
    std::int64_t final_max_timestamp() const { return append_time() ? options.log_append_time->value : max_timestamp; }
};

BatchBuilder::BatchBuilder() : state_(std::make_unique<State>()) {}
BatchBuilder::~BatchBuilder() = default;
BatchBuilder::BatchBuilder(BatchBuilder&&) noexcept = default;
BatchBuilder& BatchBuilder::operator=(BatchBuilder&&) noexcept = default;

void BatchBuilder::start(const BatchOptions& options) {
    TM_ASSERT(options.magic >= 0 && options.magic <= 2);
    TM_ASSERT(!options.transactional || options.producer_id != no_producer_id);
    if (options.producer_id != no_producer_id) {
        TM_ASSERT(options.producer_epoch >= 0);
        TM_ASSERT(options.control || options.base_sequence >= 0);
    }
    if (options.magic == 2) {
        TM_ASSERT(options.timestamp_type != TimestampType::none);
    } else {
        TM_ASSERT(!options.transactional && !options.control && !options.delete_horizon && options.codec != Codec::zstd);
        TM_ASSERT(options.magic == 1 || options.timestamp_type != TimestampType::log_append_time);
    }
    TM_ASSERT(options.timestamp_type != TimestampType::log_append_time || options.log_append_time.has_value());
    State& s = *state_;
    s.options = options;
    s.records.clear();
    s.count = 0;
    s.last_offset = 0;
    s.base_timestamp = options.delete_horizon ? options.delete_horizon->value : -1;
    s.max_timestamp = -1;
}

void BatchBuilder::append(Offset offset, Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
                          Bytes headers, std::int32_t header_count) {
    State& s = *state_;
    TM_ASSERT(s.count == 0 ? offset >= s.options.base_offset : offset.value > s.last_offset);
    TM_ASSERT(offset - s.options.base_offset <= std::numeric_limits<std::int32_t>::max());
    TM_ASSERT(timestamp.value >= -1);
    TM_ASSERT(s.count < std::numeric_limits<std::int32_t>::max());
    if (s.options.magic == 2) {
        s.append_v2(offset, timestamp, key, value, headers, header_count);
    } else {
        TM_ASSERT(header_count == 0);
        s.append_legacy(offset, timestamp, key, value);
    }
    ++s.count;
    s.last_offset = offset.value;
    s.max_timestamp = std::max(s.max_timestamp, timestamp.value);
}

void BatchBuilder::append(Offset offset, Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
                          const std::vector<Header>& headers) {
    auto& encoded = state_->headers;
    encoded.clear();
    for (const Header& header : headers) {
        append_varint(encoded, static_cast<std::int32_t>(header.key.size()));
        append_bytes(encoded, as_bytes(header.key));
        append_varint(encoded, header.value ? static_cast<std::int32_t>(header.value->size()) : -1);
        if (header.value) append_bytes(encoded, *header.value);
    }
    append(offset, timestamp, key, value, encoded, static_cast<std::int32_t>(headers.size()));
}

std::int32_t BatchBuilder::record_count() const { return state_->count; }

std::size_t BatchBuilder::uncompressed_bytes() const {
    return state_->records.bytes().size() + (state_->options.magic == 2 ? v2_header_bytes : 0);
}

void BatchBuilder::State::append_v2(Offset offset, Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value,
                                    Bytes encoded_headers, std::int32_t header_count) {
    if (count == 0 && !options.delete_horizon) base_timestamp = timestamp.value;
    const auto timestamp_delta = wrapping_difference(timestamp.value, base_timestamp);
    const auto offset_delta = static_cast<std::int32_t>(offset - options.base_offset);
    const std::size_t key_bytes = key ? key->size() : 0;
    const std::size_t value_bytes = value ? value->size() : 0;
    const std::size_t body = 1 + varlong_bytes(timestamp_delta) + varint_bytes(offset_delta) + varint_bytes(sized(key)) + key_bytes +
                             varint_bytes(sized(value)) + value_bytes + varint_bytes(header_count) + encoded_headers.size();
    TM_ASSERT(body <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
    std::byte* to = records.reserve(record_overhead_max + key_bytes + value_bytes + encoded_headers.size());
    to = write_varint(to, static_cast<std::int32_t>(body));
    *to++ = std::byte{0};
    to = write_varlong(to, timestamp_delta);
    to = write_varint(to, offset_delta);
    to = write_varint_sized(to, key);
    to = write_varint_sized(to, value);
    to = write_varint(to, header_count);
    records.end_at(write_bytes(to, encoded_headers));
}

void BatchBuilder::State::append_legacy(Offset offset, Timestamp timestamp, std::optional<Bytes> key, std::optional<Bytes> value) {
    const bool compressed = options.codec != Codec::none;
    const bool relative = compressed && options.magic == 1;
    std::byte* const entry = records.reserve(legacy_overhead_max + (key ? key->size() : 0) + (value ? value->size() : 0));
    store_be(entry, relative ? offset - options.base_offset : offset.value);
    store_be(entry + 16, options.magic);
    entry[17] = append_time() ? std::byte{attribute::log_append_time} : std::byte{0};
    std::byte* at = entry + 18;
    if (options.magic == 1) {
        store_be(at, !compressed && append_time() ? options.log_append_time->value : timestamp.value);
        at += 8;
    }
    at = write_int32_sized(at, key);
    at = write_int32_sized(at, value);
    close_legacy_entry(entry, at);
    records.end_at(at);
}

void BatchBuilder::finish(std::vector<std::byte>& to) {
    State& s = *state_;
    if (s.count > 0) {
        if (s.options.magic == 2) {
            s.finish_v2(to);
        } else if (s.options.codec != Codec::none) {
            s.finish_wrapper(to);
        } else {
            append_bytes(to, s.records.bytes());
        }
    }
    s.records.clear();
    s.count = 0;
}

void BatchBuilder::State::finish_v2(std::vector<std::byte>& to) {
    const auto at = to.size();
    to.resize(at + v2_header_bytes);
    if (options.codec == Codec::none) append_bytes(to, records.bytes());
    else compressor.compress(options.codec, records.bytes(), to, options.level, {.magic = 2});
    std::uint16_t attributes = static_cast<std::uint8_t>(options.codec);
    if (append_time()) attributes |= attribute::log_append_time;
    if (options.transactional) attributes |= attribute::transactional;
    if (options.control) attributes |= attribute::control;
    if (options.delete_horizon) attributes |= attribute::delete_horizon;
    const auto last = options.last_offset ? options.last_offset->value : last_offset;
    const auto last_delta = last - options.base_offset.value;
    TM_ASSERT(last >= last_offset && last_delta <= std::numeric_limits<std::int32_t>::max());
    write_v2_header(MutableBytes{to}.subspan(at), {.base_offset = options.base_offset.value,
                                                   .leader_epoch = options.leader_epoch,
                                                   .attributes = attributes,
                                                   .last_offset_delta = static_cast<std::int32_t>(last_delta),
                                                   .base_timestamp = base_timestamp,
                                                   .max_timestamp = final_max_timestamp(),
                                                   .producer_id = options.producer_id,
                                                   .producer_epoch = options.producer_epoch,
                                                   .base_sequence = options.base_sequence,
                                                   .record_count = count});
}

void BatchBuilder::State::finish_wrapper(std::vector<std::byte>& to) {
    const auto at = to.size();
    const std::size_t value_length_at = at + (options.magic == 0 ? 22 : 30);
    to.resize(value_length_at + 4);
    compressor.compress(options.codec, records.bytes(), to, options.level, {.magic = options.magic});
    std::byte* const entry = to.data() + at;
    store_be(entry, last_offset);
    store_be(entry + 16, options.magic);
    entry[17] = static_cast<std::byte>(options.codec);
    if (append_time()) entry[17] |= std::byte{attribute::log_append_time};
    if (options.magic == 1) store_be(entry + 18, final_max_timestamp());
    store_be(to.data() + value_length_at - 4, std::int32_t{-1});  // no key
    store_be(to.data() + value_length_at, static_cast<std::int32_t>(to.size() - value_length_at - 4));
    close_legacy_entry(entry, to.data() + to.size());
}

Result<> check_buildable(const BatchView& batch) {
    const char* wrong = nullptr;
    if (batch.producer_id() < no_producer_id) wrong = "a negative producer id";
    else if (batch.is_transactional() && !batch.has_producer_id()) wrong = "transactional without a producer id";
    else if (batch.has_producer_id() && batch.producer_epoch() < 0) wrong = "a producer id without an epoch";
    else if (batch.has_producer_id() && batch.base_sequence() < 0 && !batch.is_control()) wrong = "a producer id without a sequence";
    if (wrong == nullptr) return {};
    return Error{Errc::invalid_record, "batch at offset " + std::to_string(batch.base_offset().value) + ": " + wrong};
}

void write_empty_batch(const BatchView& of, std::vector<std::byte>& to) {
    TM_ASSERT(!of.is_legacy());
    const auto kept = attribute::log_append_time | attribute::transactional | attribute::control;
    const auto at = to.size();
    to.resize(at + v2_header_bytes);
    write_v2_header(MutableBytes{to}.subspan(at), {.base_offset = of.base_offset().value,
                                                   .leader_epoch = of.leader_epoch(),
                                                   .attributes = static_cast<std::uint16_t>(of.attributes() & kept),
                                                   .last_offset_delta = of.last_offset_delta(),
                                                   .base_timestamp = -1,
                                                   .max_timestamp = of.max_timestamp().value,
                                                   .producer_id = of.producer_id(),
                                                   .producer_epoch = of.producer_epoch(),
                                                   .base_sequence = of.base_sequence(),
                                                   .record_count = 0});
}

}  // namespace tidemark::record
