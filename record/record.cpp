// How records are read.
//
// Plain v2:       views on the batch; nothing is copied.
// Compressed v2:  a window over the decompressed stream. It holds the record that next() handed out and what the
//                 decompressor gave beyond; consumed bytes make room before the window grows.
// Legacy message: one record, a view on the entry.
// Legacy wrapper: the inner offsets of magic 1 count from the last one, so the stream is read twice: first the prefixes
//                 only, then the messages (record-format 4.1).
#include "record/record.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/assert.h"
#include "record/compression.h"
#include "record/varint.h"

namespace tidemark::record {
namespace {

constexpr std::size_t window_bytes_initial = 128 * 1024;
constexpr std::size_t window_bytes_kept = 1024 * 1024;   // a larger one is given back when the next batch starts
constexpr std::size_t window_read_min = 64 * 1024;       // less room than this makes the decompressors copy

constexpr std::size_t legacy_attributes_at = 17;
constexpr std::size_t v1_timestamp_at = 18;

std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// The decompressed stream, as far as it has been read and is still needed.
class Window {
public:
    explicit Window(std::size_t keep_max) : keep_max_(keep_max) {}

    void start(Decompressor* from) {
        if (capacity_ > std::max(window_bytes_kept, keep_max_)) {
            bytes_.reset();
            capacity_ = 0;
        }
        from_ = from;
        begin_ = end_ = 0;
        at_end_ = false;
        complete_from_start_ = true;
    }
    /// Back to the stream's start; false when its first bytes are gone.
    bool rewind() {
        if (!complete_from_start_) return false;
        begin_ = 0;
        return true;
    }

    const std::byte* begin() const { return bytes_.get() + begin_; }
    const std::byte* end() const { return bytes_.get() + end_; }
    std::size_t size() const { return end_ - begin_; }
    void consume(std::size_t n) { begin_ += n; }

    /// Reads on until `wanted` bytes are there or the stream has ended: size() tells. Moves the bytes.
    Result<> fill(std::size_t wanted) {
        while (size() < wanted && !at_end_) {
            make_room();
            TM_TRY(const auto got, from_->read({bytes_.get() + end_, capacity_ - end_}));
            end_ += got;
            at_end_ = got == 0;
        }
        return {};
    }

private:
    void make_room() {
        if (capacity_ - end_ >= window_read_min) return;
        const bool keep = complete_from_start_ && capacity_ < keep_max_;
        if (!keep && begin_ > 0) {
            std::memmove(bytes_.get(), begin(), size());
            end_ -= begin_;
            begin_ = 0;
            complete_from_start_ = false;
        }
        // What is there has been received: twice of it is the most that a claim can make us hold.
        if (end_ == capacity_ || keep) grow(std::max(window_bytes_initial, 2 * capacity_));
    }
    void grow(std::size_t capacity) {
        auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
        if (end_ > 0) std::memcpy(larger.get(), bytes_.get(), end_);
        bytes_ = std::move(larger);
        capacity_ = capacity;
    }

    std::size_t keep_max_;
    Decompressor* from_ = nullptr;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    bool at_end_ = false;
    bool complete_from_start_ = true;
};

/// What a v2 batch's header adds to each of its records.
struct V2Base {
    std::int64_t offset = 0;
    std::int64_t timestamp = 0;
    bool append_time = false;   // then `timestamp` is every record's
    Sequence sequence = -1;
};

/// A length and as many bytes, nothing for a negative length; false when they end early.
bool read_sized(const std::byte*& at, const std::byte* end, std::optional<Bytes>* to) {
    std::int32_t size = 0;
    at = read_varint(at, end, &size);
    if (at == nullptr) return false;
    if (size < 0) {
        to->reset();
        return true;
    }
    if (end - at < size) return false;
    *to = Bytes{at, static_cast<std::size_t>(size)};
    at += size;
    return true;
}

/// Walks the headers in [at, end), which must fill it exactly. The reason when they do not.
const char* check_headers(const std::byte* at, const std::byte* end, std::int32_t count) {
    std::optional<Bytes> part;
    for (std::int32_t i = 0; i < count; ++i) {
        if (!read_sized(at, end, &part)) return "a header's key exceeds the record";
        if (!part) return "a header's key is null";
        if (!read_sized(at, end, &part)) return "a header's value exceeds the record";
    }
    return at == end ? nullptr : "its length is not its contents'";
}

/// Parses one record's body; nullptr when it is whole, else what is wrong.
const char* parse_v2_body(const std::byte* at, const std::byte* end, const V2Base& base, RecordView* record) {
    if (at == end) return "it has no attributes";
    ++at;  // attributes: no bit is defined
    std::int64_t timestamp_delta = 0;
    at = read_varlong(at, end, &timestamp_delta);
    if (at == nullptr) return "bad timestamp delta";
    std::int32_t offset_delta = 0;
    at = read_varint(at, end, &offset_delta);
    if (at == nullptr) return "bad offset delta";
    if (!read_sized(at, end, &record->key)) return "its key exceeds it";
    if (!read_sized(at, end, &record->value)) return "its value exceeds it";
    at = read_varint(at, end, &record->header_count);
    if (at == nullptr || record->header_count < 0 || record->header_count > end - at) return "bad number of headers";
    record->headers = Bytes{at, end};
    record->offset = Offset{wrapping_sum(base.offset, offset_delta)};
    record->timestamp = Timestamp{base.append_time ? base.timestamp : wrapping_sum(base.timestamp, timestamp_delta)};
    record->sequence = base.sequence < 0 ? -1 : increment_sequence(base.sequence, offset_delta);
    if (record->header_count == 0) return at == end ? nullptr : "its length is not its contents'";
    return check_headers(at, end, record->header_count);
}

/// Key and value of a legacy message that fills [at, end); nullptr or what is wrong. Bytes behind the value are ignored,
/// as Kafka does.
const char* parse_legacy_body(const std::byte* at, const std::byte* end, RecordView* record) {
    for (auto* part : {&record->key, &record->value}) {
        if (end - at < 4) return "a length field is cut";
        const auto size = load_be<std::int32_t>(at);
        at += 4;
        if (size < 0) {
            part->reset();
            continue;
        }
        if (end - at < size) return "its key or value exceeds it";
        *part = Bytes{at, static_cast<std::size_t>(size)};
        at += size;
    }
    return nullptr;
}

}  // namespace

struct RecordReader::State {
    enum class Mode { ended, v2_plain, v2_compressed, message, wrapper };

    explicit State(ReadLimits given) : limits(given), window(given.rewind_bytes_max) {}

    ReadLimits limits;
    Window window;
    std::array<std::unique_ptr<Decompressor>, 5> decompressors;

    std::optional<BatchView> batch;
    Mode mode = Mode::ended;
    V2Base base;
    std::int32_t count = 0;
    std::int32_t read = 0;
    const std::byte* at = nullptr;    // v2_plain: what is left
    const std::byte* end = nullptr;
    bool relative_offsets = false;    // wrapper: magic 1's
    std::int64_t wrapper_base = 0;
    RecordView record;

    Error failed(Errc code, std::string_view what) {
        mode = Mode::ended;
        return Error{code, "record " + std::to_string(read) + " of the batch at offset " +
                               std::to_string(batch->base_offset().value) + ": " + std::string{what}};
    }
    Error failed(std::string_view what) { return failed(Errc::invalid_record, what); }

    Result<> start();
    Result<> start_v2();
    Result<> start_wrapper();
    Result<> decompress(Bytes from);
    /// Window::fill, with a broken stream as this reader's error.
    Result<> fill(std::size_t wanted);
    Result<bool> next_v2_plain();
    Result<bool> next_v2_compressed();
    Result<bool> next_message();
    Result<bool> next_wrapper();
    Result<bool> fill_inner(std::size_t* size);
};

Result<> RecordReader::State::decompress(Bytes from) {
    auto& decompressor = decompressors[batch->codec_bits()];
    if (!decompressor) decompressor = make_decompressor(batch->codec());
    window.start(decompressor.get());
    if (auto opened = decompressor->open(from, {.magic = batch->magic()}); !opened) return failed(opened.error().context);
    return {};
}

Result<> RecordReader::State::fill(std::size_t wanted) {
    if (window.size() >= wanted) return {};
    if (auto filled = window.fill(wanted); !filled) return failed(filled.error().context);
    return {};
}

Result<> RecordReader::State::start() {
    mode = Mode::ended;
    read = 0;
    record = {};
    record.magic = batch->magic();
    if (!batch->is_legacy()) return start_v2();
    if (!batch->is_compressed()) {
        mode = Mode::message;
        return {};
    }
    return start_wrapper();
}

Result<> RecordReader::State::start_v2() {
    count = *batch->record_count();
    if (count < 0) return failed("the record count " + std::to_string(count) + " is negative");
    if (count == 0) return {};
    if (batch->codec_bits() > static_cast<std::uint8_t>(Codec::zstd)) {
        return failed(Errc::unsupported_compression, "unknown compression type " + std::to_string(batch->codec_bits()));
    }
    const bool append_time = batch->timestamp_type() == TimestampType::log_append_time;
    base = {.offset = batch->base_offset().value,
            .timestamp = (append_time ? batch->max_timestamp() : batch->base_timestamp()).value,
            .append_time = append_time,
            .sequence = batch->base_sequence()};
    if (batch->is_compressed()) {
        TM_TRYV(decompress(batch->payload()));
        mode = Mode::v2_compressed;
        return {};
    }
    at = batch->payload().data();
    end = at + batch->payload().size();
    mode = Mode::v2_plain;
    return {};
}

Result<bool> RecordReader::State::next_v2_plain() {
    if (read == count) {
        if (at != end) return failed("records still remaining after the last one counted");
        mode = Mode::ended;
        return false;
    }
    std::int32_t size = 0;
    const std::byte* body = read_varint(at, end, &size);
    if (body == nullptr) return failed(at == end ? "fewer records than counted" : "bad length");
    if (size < 0 || end - body < size) return failed("length " + std::to_string(size) + " of " + std::to_string(end - body) + " bytes left");
    if (const char* wrong = parse_v2_body(body, body + size, base, &record)) return failed(wrong);
    record.body_bytes = size;
    at = body + size;
    ++read;
    return true;
}

Result<bool> RecordReader::State::next_v2_compressed() {
    if (read == count) {
        TM_TRYV(fill(1));
        if (window.size() > 0) return failed("records still remaining after the last one counted");
        mode = Mode::ended;
        return false;
    }
    TM_TRYV(fill(varint_bytes_max));
    std::int32_t size = 0;
    const std::byte* body = read_varint(window.begin(), window.end(), &size);
    if (body == nullptr) return failed(window.size() == 0 ? "fewer records than counted" : "bad length");
    if (size < 0) return failed("length " + std::to_string(size));
    if (size > limits.record_bytes_max) {
        return failed("length " + std::to_string(size) + " exceeds the limit of " + std::to_string(limits.record_bytes_max));
    }
    const auto length_bytes = static_cast<std::size_t>(body - window.begin());
    const auto whole = length_bytes + static_cast<std::size_t>(size);
    TM_TRYV(fill(whole));
    if (window.size() < whole) return failed("length " + std::to_string(size) + " goes beyond the compressed data");
    body = window.begin() + length_bytes;
    if (const char* wrong = parse_v2_body(body, body + size, base, &record)) return failed(wrong);
    record.body_bytes = size;
    window.consume(whole);
    ++read;
    return true;
}

Result<bool> RecordReader::State::next_message() {
    if (read == 1) {
        mode = Mode::ended;
        return false;
    }
    const Bytes bytes = batch->bytes();
    const std::size_t body_at = batch->magic() == 0 ? v1_timestamp_at : v1_timestamp_at + 8;
    if (const char* wrong = parse_legacy_body(bytes.data() + body_at, bytes.data() + bytes.size(), &record)) return failed(wrong);
    record.offset = batch->base_offset();
    record.timestamp = batch->max_timestamp();
    ++read;
    return true;
}

/// Brings a whole inner entry into the window; false at the end of the stream, also when the last entry is cut (Kafka).
Result<bool> RecordReader::State::fill_inner(std::size_t* size) {
    TM_TRYV(fill(log_overhead));
    if (window.size() < log_overhead) return false;
    const auto claimed = load_be<std::int32_t>(window.begin() + 8);
    if (claimed < legal_size_min) return failed(Errc::corrupt, "inner message of size " + std::to_string(claimed));
    if (claimed > limits.record_bytes_max) return failed(Errc::corrupt, "inner message of size " + std::to_string(claimed) + " exceeds the limit");
    *size = log_overhead + static_cast<std::size_t>(claimed);
    TM_TRYV(fill(*size));
    return window.size() >= *size;
}

Result<> RecordReader::State::start_wrapper() {
    if (batch->codec_bits() > static_cast<std::uint8_t>(Codec::lz4)) {
        return failed(Errc::unsupported_compression, "compression type " + std::to_string(batch->codec_bits()) + " with magic " + std::to_string(batch->magic()));
    }
    RecordView wrapper;
    const Bytes bytes = batch->bytes();
    const std::size_t body_at = batch->magic() == 0 ? v1_timestamp_at : v1_timestamp_at + 8;
    if (const char* wrong = parse_legacy_body(bytes.data() + body_at, bytes.data() + bytes.size(), &wrapper)) return failed(wrong);
    if (!wrapper.value) return failed("a compressed message without a value");

    TM_TRYV(decompress(*wrapper.value));
    std::int64_t last = 0;
    std::size_t size = 0;
    bool any = false;
    for (;; any = true) {
        TM_TRY(const bool there, fill_inner(&size));
        if (!there) break;
        last = load_be<std::int64_t>(window.begin());
        window.consume(size);
    }
    if (!any) return failed("a compressed message without inner messages");

    relative_offsets = batch->magic() == 1;
    const auto wrapper_offset = batch->base_offset().value;
    if (relative_offsets && wrapper_offset != 0) {
        if (wrapper_offset < last) return failed("its offset is below the last inner one, " + std::to_string(last));
        wrapper_base = wrapping_sum(wrapper_offset, -last);
    } else {
        wrapper_base = 0;
    }
    if (!window.rewind()) TM_TRYV(decompress(*wrapper.value));
    mode = Mode::wrapper;
    return {};
}

Result<bool> RecordReader::State::next_wrapper() {
    std::size_t size = 0;
    TM_TRY(const bool there, fill_inner(&size));
    if (!there) {
        mode = Mode::ended;
        return false;
    }
    const std::byte* const entry = window.begin();
    const auto magic = load_be<std::int8_t>(entry + 16);
    const auto attributes = load_be<std::uint8_t>(entry + legacy_attributes_at);
    if (magic != 0 && magic != 1) return failed("inner message of magic " + std::to_string(magic));
    const std::size_t body_at = magic == 0 ? v1_timestamp_at : v1_timestamp_at + 8;
    if (size < body_at) return failed("inner message of size " + std::to_string(size));
    if ((attributes & attribute::codec_mask) != 0) return failed("an inner message is itself compressed");
    if (::crc32_z(0, reinterpret_cast<const unsigned char*>(entry + 16), size - 16) != load_be<std::uint32_t>(entry + 12)) {
        return failed(Errc::corrupt, "inner message with a wrong CRC");
    }
    if (const char* wrong = parse_legacy_body(entry + body_at, entry + size, &record)) return failed(wrong);
    record.magic = magic;
    record.offset = Offset{wrapping_sum(relative_offsets ? wrapper_base : 0, load_be<std::int64_t>(entry))};
    if (magic == 0) {
        record.timestamp = no_timestamp;
    } else if (batch->timestamp_type() == TimestampType::log_append_time) {
        record.timestamp = batch->max_timestamp();
    } else {
        record.timestamp = Timestamp{load_be<std::int64_t>(entry + v1_timestamp_at)};
    }
    window.consume(size);
    ++read;
    return true;
}

RecordReader::RecordReader(ReadLimits limits) : state_(std::make_unique<State>(limits)) {}
RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;

Result<> RecordReader::open(const BatchView& batch) {
    state_->batch = batch;
    return state_->start();
}

Result<> RecordReader::rewind() {
    TM_ASSERT(state_->batch.has_value());
    State& s = *state_;
    const bool from_window = !s.batch->is_legacy() && s.batch->is_compressed() && s.count > 0 && s.window.rewind();
    if (!from_window) return s.start();
    s.read = 0;
    s.mode = State::Mode::v2_compressed;
    return {};
}

Result<std::optional<RecordView>> RecordReader::next() {
    State& s = *state_;
    Result<bool> there = false;
    switch (s.mode) {
        case State::Mode::ended: break;
        case State::Mode::v2_plain: there = s.next_v2_plain(); break;
        case State::Mode::v2_compressed: there = s.next_v2_compressed(); break;
        case State::Mode::message: there = s.next_message(); break;
        case State::Mode::wrapper: there = s.next_wrapper(); break;
    }
    if (!there) return std::move(there).error();
    if (!*there) return std::optional<RecordView>{};
    return std::optional<RecordView>{s.record};
}

Result<Offset> first_offset(const BatchView& batch, RecordReader& reader) {
    if (!batch.is_legacy() || !batch.is_compressed()) return batch.base_offset();
    TM_TRYV(reader.open(batch));
    TM_TRY(const auto record, reader.next());
    TM_ASSERT(record.has_value());  // open() refused a wrapper without messages
    return record->offset;
}

std::optional<HeaderView> HeaderCursor::next() {
    if (left_ <= 0) return std::nullopt;
    --left_;
    const std::byte* at = rest_.data();
    const std::byte* const end = at + rest_.size();
    std::optional<Bytes> key;
    HeaderView header;
    if (!read_sized(at, end, &key) || !key || !read_sized(at, end, &header.value)) {
        left_ = 0;  // only of a record that no reader has checked
        return std::nullopt;
    }
    header.key = as_text(*key);
    rest_ = Bytes{at, end};
    return header;
}

}  // namespace tidemark::record
