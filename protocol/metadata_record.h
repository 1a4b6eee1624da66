/// Records of the metadata log: the frame around each (metadata-log 2.2).
///
///   unsigned varint  frame version, 1
///   unsigned varint  record type
///   unsigned varint  version
///   the record in the flexible encoding of that version; nothing follows
///
/// Control records have no frame: parse<LeaderChangeMessage>() and so on take their value as it is (metadata-log 2.1).
#pragma once

#include "protocol/metadata_records.h"
#include "protocol/reader.h"
#include "protocol/writer.h"

namespace tidemark::protocol {

/// The record in a value of the metadata log. Errors: unsupported for a frame version, record type or version that this
/// program does not know (it must not skip such a record), corrupt for anything else, bytes behind the record included.
Result<MetadataRecord> read_metadata_record(Bytes value);

/// The version that was written, which a reader usually need not know.
struct VersionedMetadataRecord {
    MetadataRecord record = {};
    std::int16_t version = 0;
};
Result<VersionedMetadataRecord> read_versioned_metadata_record(Bytes value);

/// A value for the metadata log. Errors as Writer::finish().
Result<std::vector<std::byte>> metadata_record_value(const MetadataRecord& record, std::int16_t version);

/// "TopicRecord" and so on.
const char* name_of(const MetadataRecord& record);
std::int16_t type_of(const MetadataRecord& record);

/// Without the frame. Behind read_metadata_record(): generated.
Result<MetadataRecord> parse_metadata_record(Reader& reader, std::uint32_t type, std::int16_t version);

}  // namespace tidemark::protocol
