/// Record batches as bytes: the entries that a log file, a produce request and a fetch answer are made of.
///
///      0        8      12      16 17    21    23      27         35        43       51     53      57     61
///      | base   | size | leader|m.| crc | attr| last  | base     | max     | prod. | prod.| base  | count| records…
///      | offset |      | epoch |  |     |     | delta | timestamp|timestamp| id    | epoch| seq.  |      |
///
/// The size counts what follows it; the CRC-32C covers everything from the attributes on. Formats 0 and 1 share the
/// first 17 bytes, with a CRC-32 in the leader epoch's place. Source: record-format, sections 1, 2 and 4.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "base/types.h"

namespace tidemark::record {

enum class Codec : std::uint8_t { none = 0, gzip = 1, snappy = 2, lz4 = 3, zstd = 4 };
enum class TimestampType : std::uint8_t { none, create_time, log_append_time };

inline constexpr std::size_t log_overhead = 12;        ///< offset and size, before every entry
inline constexpr std::size_t magic_end = 17;           ///< the prefix that all formats share
inline constexpr std::size_t v2_header_bytes = 61;
inline constexpr std::int32_t legal_size_min = 14;     ///< smallest legal size field: a v0 message

namespace attribute {
inline constexpr std::uint16_t codec_mask = 0x07;
inline constexpr std::uint16_t log_append_time = 0x08;
inline constexpr std::uint16_t transactional = 0x10;
inline constexpr std::uint16_t control = 0x20;
inline constexpr std::uint16_t delete_horizon = 0x40;
}  // namespace attribute

/// The header of one entry of any format, over bytes that somebody else owns. Made only from bytes that hold the whole
/// entry, so no accessor reads outside; what the fields say is not otherwise trusted.
class BatchView {
public:
    /// The entry at the front of `bytes`, which may go on behind it. Errc::corrupt: fewer bytes than the size field says,
    /// a size below the format's minimum, a magic outside 0..2, or (v2) fewer than 61 bytes. The CRC is not looked at.
    static Result<BatchView> parse(Bytes bytes);
    /// The same for an entry that lies in a log file: a magic above 2 is read as v2, as Kafka's file reader does, because
    /// the CRC does not cover it and the batch behind a flipped byte there is whole (record-format 1).
    static Result<BatchView> parse_stored(Bytes bytes);

    Bytes bytes() const { return bytes_; }
    std::size_t size() const { return bytes_.size(); }
    std::int8_t magic() const { return load_be<std::int8_t>(bytes_.data() + 16); }
    bool is_legacy() const { return magic() < 2; }
    /// The stored CRC equals the computed one (CRC-32C in v2, CRC-32 before).
    bool crc_matches() const;
    std::uint32_t crc() const;

    /// v2: of the first offset it claims. Legacy: of the prefix, so the last inner message's for a compressed wrapper;
    /// whoever needs a wrapper's first offset asks records.h.
    Offset base_offset() const { return Offset{load_be<std::int64_t>(bytes_.data())}; }
    Offset last_offset() const { return is_legacy() ? base_offset() : sum(base_offset(), last_offset_delta()); }
    Offset next_offset() const { return sum(last_offset(), 1); }
    std::int32_t last_offset_delta() const { return is_legacy() ? 0 : load_be<std::int32_t>(bytes_.data() + 23); }
    LeaderEpoch leader_epoch() const { return is_legacy() ? no_leader_epoch : load_be<std::int32_t>(bytes_.data() + 12); }

    std::uint16_t attributes() const;
    /// The codec bits as they are: 5 to 7 name none.
    std::uint8_t codec_bits() const { return attributes() & attribute::codec_mask; }
    Codec codec() const { return static_cast<Codec>(codec_bits()); }
    bool is_compressed() const { return codec_bits() != 0; }
    TimestampType timestamp_type() const;
    bool is_transactional() const { return !is_legacy() && (attributes() & attribute::transactional) != 0; }
    bool is_control() const { return !is_legacy() && (attributes() & attribute::control) != 0; }

    /// v2 only; with a delete horizon it holds the horizon (KIP-534).
    Timestamp base_timestamp() const { return Timestamp{load_be<std::int64_t>(bytes_.data() + 27)}; }
    /// -1 where the batch carries none (v0, or v2 so written).
    Timestamp max_timestamp() const;
    std::optional<Timestamp> delete_horizon() const;

    ProducerId producer_id() const { return is_legacy() ? no_producer_id : load_be<std::int64_t>(bytes_.data() + 43); }
    bool has_producer_id() const { return producer_id() > no_producer_id; }
    ProducerEpoch producer_epoch() const { return is_legacy() ? std::int16_t{-1} : load_be<std::int16_t>(bytes_.data() + 51); }
    Sequence base_sequence() const { return is_legacy() ? -1 : load_be<std::int32_t>(bytes_.data() + 53); }
    Sequence last_sequence() const;
    /// v2: of the header, may be negative or a lie. Legacy: nothing is known before it is read.
    std::optional<std::int32_t> record_count() const;
    /// v2: what follows the header, compressed when is_compressed().
    Bytes payload() const { return bytes_.subspan(v2_header_bytes); }

private:
    explicit BatchView(Bytes bytes) : bytes_(bytes) {}
    static Result<BatchView> parse(Bytes bytes, std::int8_t magic_max);
    /// Wraps instead of overflowing: both come from the bytes.
    static Offset sum(Offset a, std::int64_t b) {
        return Offset{static_cast<std::int64_t>(static_cast<std::uint64_t>(a.value) + static_cast<std::uint64_t>(b))};
    }
    Bytes bytes_;
};

/// Sequence numbers wrap from 2147483647 to 0.
Sequence increment_sequence(Sequence, std::int32_t by);
Sequence decrement_sequence(Sequence, std::int32_t by);

/// Walks entries in memory. Stops at the end and at an incomplete last entry; rest() then tells which.
class BatchCursor {
public:
    explicit BatchCursor(Bytes bytes) : rest_(bytes) {}
    /// The next entry, nothing at the end or before a cut one. Errc::corrupt: size field below 14, magic outside 0..2.
    Result<std::optional<BatchView>> next();
    /// What has not been handed out: the cut entry after next() returned nothing.
    Bytes rest() const { return rest_; }
private:
    Bytes rest_;
};

/// Changes to a v2 batch in place, as the append path makes them. Each leaves the CRC right.
/// Precondition: BatchView::parse accepted these bytes, magic 2.
namespace in_place {
void set_base_offset(MutableBytes batch, Offset);            // outside the CRC
void set_leader_epoch(MutableBytes batch, LeaderEpoch);      // outside the CRC
/// Timestamp type and largest timestamp; the CRC is computed anew only when something changed.
void set_max_timestamp(MutableBytes batch, TimestampType, Timestamp);
}  // namespace in_place

}  // namespace tidemark::record
