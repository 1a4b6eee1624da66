/// Batches of the metadata log and of its snapshots: records in, bytes out, and back (metadata-log 2).
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "protocol/metadata_record.h"
#include "record/control.h"

namespace tidemark::metadata {

/// The largest batch that Kafka's raft layer reads.
inline constexpr std::int64_t metadata_batch_bytes_max = 8 * 1024 * 1024;

/// A record of the raft layer itself; its value is a message without a frame.
struct ControlEntry {
    record::ControlType type = record::ControlType::leader_change;
    std::vector<std::byte> value = {};
};

struct MetadataBatch {
    Offset base_offset{};
    Offset last_offset{};
    LeaderEpoch epoch = 0;                ///< of the raft leader that wrote it
    Timestamp timestamp{};
    /// One kind or the other: the two never mix in a batch.
    std::variant<std::vector<protocol::VersionedMetadataRecord>, std::vector<ControlEntry>> entries = {};
};

/// Errors: corrupt (CRC, or against the rules of metadata-log 2: compressed, timestamps that differ, headers, a key where
/// none belongs …), unsupported (a record that this program does not know, or a control type). Offsets of the records run
/// from the batch's base without gaps.
Result<MetadataBatch> read_metadata_batch(const record::BatchView&, record::RecordReader&);

struct BatchPlace {
    Offset base_offset{};
    LeaderEpoch epoch = 0;
    Timestamp timestamp{};
};
/// One batch behind what `to` holds. Errors: too_large above metadata_batch_bytes_max, otherwise as Writer::finish().
/// Precondition: there is a record.
Result<> write_metadata_batch(const BatchPlace&, std::span<const protocol::MetadataRecord>, std::int16_t metadata_version, std::vector<std::byte>& to);
/// The same with each record in a given version.
Result<> write_metadata_batch(const BatchPlace&, std::span<const protocol::VersionedMetadataRecord>, std::vector<std::byte>& to);
void write_control_batch(const BatchPlace&, std::span<const ControlEntry>, std::vector<std::byte>& to);

}  // namespace tidemark::metadata
