#include "record/batch.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/assert.h"
#include "base/crc32c.h"

namespace tidemark::record {
namespace {

constexpr std::size_t size_at = 8;
constexpr std::size_t legacy_crc_at = 12;
constexpr std::size_t epoch_at = 12;
constexpr std::size_t magic_at = 16;
constexpr std::size_t crc_at = 17;
constexpr std::size_t attributes_at = 21;  // and start of what the CRC-32C covers
constexpr std::size_t max_timestamp_at = 35;
constexpr std::size_t count_at = 57;
constexpr std::size_t v1_timestamp_at = 18;

/// Smallest whole entry per magic: an empty message, or a batch's header.
constexpr std::array<std::size_t, 3> entry_bytes_min = {log_overhead + 14, log_overhead + 22, v2_header_bytes};

constexpr std::int32_t sequence_max = 2147483647;

std::string at_offset(Bytes bytes) {
    return "entry at offset " + std::to_string(load_be<std::int64_t>(bytes.data()));
}

}  // namespace

Result<BatchView> BatchView::parse(Bytes bytes) { return parse(bytes, 2); }
Result<BatchView> BatchView::parse_stored(Bytes bytes) { return parse(bytes, std::numeric_limits<std::int8_t>::max()); }

Result<BatchView> BatchView::parse(Bytes bytes, std::int8_t magic_max) {
    if (bytes.size() < magic_end) {
        return Error{Errc::corrupt, std::to_string(bytes.size()) + " bytes are too few for an entry's first " + std::to_string(magic_end)};
    }
    const auto size = load_be<std::int32_t>(bytes.data() + size_at);
    if (size < legal_size_min) return Error{Errc::corrupt, at_offset(bytes) + ": size " + std::to_string(size) + " is below the smallest legal one"};
    const auto magic = load_be<std::int8_t>(bytes.data() + magic_at);
    if (magic < 0 || magic > magic_max) return Error{Errc::corrupt, at_offset(bytes) + ": unknown magic " + std::to_string(magic)};
    const auto whole = static_cast<std::size_t>(size) + log_overhead;
    if (whole > bytes.size()) {
        return Error{Errc::corrupt, at_offset(bytes) + ": needs " + std::to_string(whole) + " bytes, " + std::to_string(bytes.size()) + " are there"};
    }
    if (whole < entry_bytes_min[std::min<std::size_t>(static_cast<std::size_t>(magic), 2)]) {
        return Error{Errc::corrupt, at_offset(bytes) + ": " + std::to_string(whole) + " bytes are too few for magic " + std::to_string(magic)};
    }
    return BatchView{bytes.first(whole)};
}

std::uint32_t BatchView::crc() const {
    return load_be<std::uint32_t>(bytes_.data() + (is_legacy() ? legacy_crc_at : crc_at));
}

bool BatchView::crc_matches() const {
    if (!is_legacy()) return crc32c(bytes_.subspan(attributes_at)) == crc();
    const Bytes covered = bytes_.subspan(magic_at);
    return ::crc32_z(0, reinterpret_cast<const unsigned char*>(covered.data()), covered.size()) == crc();
}

std::uint16_t BatchView::attributes() const {
    return is_legacy() ? load_be<std::uint8_t>(bytes_.data() + 17) : load_be<std::uint16_t>(bytes_.data() + attributes_at);
}

TimestampType BatchView::timestamp_type() const {
    if (magic() == 0) return TimestampType::none;
    return (attributes() & attribute::log_append_time) != 0 ? TimestampType::log_append_time : TimestampType::create_time;
}

Timestamp BatchView::max_timestamp() const {
    if (magic() == 0) return no_timestamp;
    return Timestamp{load_be<std::int64_t>(bytes_.data() + (is_legacy() ? v1_timestamp_at : max_timestamp_at))};
}

std::optional<Timestamp> BatchView::delete_horizon() const {
    if (is_legacy() || (attributes() & attribute::delete_horizon) == 0) return std::nullopt;
    return base_timestamp();
}

Sequence BatchView::last_sequence() const {
    const Sequence base = base_sequence();
    return base == -1 ? -1 : increment_sequence(base, last_offset_delta());
}

std::optional<std::int32_t> BatchView::record_count() const {
    if (is_legacy()) return std::nullopt;
    return load_be<std::int32_t>(bytes_.data() + count_at);
}

// In 64 bits and cut to 32, because the inputs come from headers that may lie.
Sequence increment_sequence(Sequence sequence, std::int32_t by) {
    const std::int64_t sum = static_cast<std::int64_t>(sequence) + by;
    return static_cast<Sequence>(sum > sequence_max ? sum - sequence_max - 1 : sum);
}

Sequence decrement_sequence(Sequence sequence, std::int32_t by) {
    const std::int64_t difference = static_cast<std::int64_t>(sequence) - by;
    return static_cast<Sequence>(difference < 0 ? difference + sequence_max + 1 : difference);
}

Result<std::optional<BatchView>> BatchCursor::next() {
    if (rest_.size() < log_overhead) return std::optional<BatchView>{};
    const auto size = load_be<std::int32_t>(rest_.data() + size_at);
    if (size >= legal_size_min) {
        if (rest_.size() < magic_end) return std::optional<BatchView>{};
        const auto magic = load_be<std::int8_t>(rest_.data() + magic_at);
        const bool known = magic >= 0 && magic <= 2;
        if (known && rest_.size() - log_overhead < static_cast<std::size_t>(size)) return std::optional<BatchView>{};
    } else {
        return Error{Errc::corrupt, at_offset(rest_) + ": size " + std::to_string(size) + " is below the smallest legal one"};
    }
    TM_TRY(const BatchView batch, BatchView::parse(rest_));
    rest_ = rest_.subspan(batch.size());
    return std::optional<BatchView>{batch};
}

namespace in_place {
namespace {

void check(MutableBytes batch) {
    TM_ASSERT(batch.size() >= v2_header_bytes && load_be<std::int8_t>(batch.data() + magic_at) == 2);
}

}  // namespace

void set_base_offset(MutableBytes batch, Offset base) {
    check(batch);
    store_be(batch.data(), base.value);
}

void set_leader_epoch(MutableBytes batch, LeaderEpoch epoch) {
    check(batch);
    store_be(batch.data() + epoch_at, epoch);
}

void set_max_timestamp(MutableBytes batch, TimestampType type, Timestamp max) {
    check(batch);
    TM_ASSERT(type != TimestampType::none);
    const auto before = load_be<std::uint16_t>(batch.data() + attributes_at);
    auto attributes = static_cast<std::uint16_t>(before & ~attribute::log_append_time);
    if (type == TimestampType::log_append_time) attributes |= attribute::log_append_time;
    if (attributes == before && load_be<std::int64_t>(batch.data() + max_timestamp_at) == max.value) return;
    store_be(batch.data() + attributes_at, attributes);
    store_be(batch.data() + max_timestamp_at, max.value);
    const auto whole = static_cast<std::size_t>(load_be<std::int32_t>(batch.data() + size_at)) + log_overhead;
    TM_ASSERT(whole >= v2_header_bytes && whole <= batch.size());
    store_be(batch.data() + crc_at, crc32c(Bytes{batch}.subspan(attributes_at, whole - attributes_at)));
}

}  // namespace in_place

}  // namespace tidemark::record
