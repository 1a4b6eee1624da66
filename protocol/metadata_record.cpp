#include "protocol/metadata_record.h"

namespace tidemark::protocol {
namespace {

constexpr std::uint32_t frame_version = 1;

}  // namespace

Result<VersionedMetadataRecord> read_versioned_metadata_record(Bytes value) {
    Reader reader{value};
    const auto frame = reader.unsigned_varint();
    TM_TRYV(reader.result());
    if (frame != frame_version) return Error{Errc::unsupported, "metadata record in frame version " + std::to_string(frame)};
    const auto type = reader.unsigned_varint();
    const auto version = reader.unsigned_varint();
    TM_TRYV(reader.result());
    if (version > 0x7fff) return Error{Errc::unsupported, "metadata record of version " + std::to_string(version)};
    TM_TRY(auto record, parse_metadata_record(reader, type, static_cast<std::int16_t>(version)));
    if (reader.remaining() != 0) {
        return Error{Errc::corrupt, std::string(name_of(record)) + ": " + std::to_string(reader.remaining()) + " bytes behind the record"};
    }
    return VersionedMetadataRecord{std::move(record), static_cast<std::int16_t>(version)};
}

Result<MetadataRecord> read_metadata_record(Bytes value) {
    TM_TRY(auto versioned, read_versioned_metadata_record(value));
    return std::move(versioned.record);
}

Result<std::vector<std::byte>> metadata_record_value(const MetadataRecord& record, std::int16_t version) {
    Writer writer;
    writer.unsigned_varint(frame_version);
    writer.unsigned_varint(static_cast<std::uint32_t>(type_of(record)));
    writer.unsigned_varint(static_cast<std::uint32_t>(version));
    std::visit([&](const auto& r) { r.write(writer, version); }, record);
    return std::move(writer).finish_bytes();
}

const char* name_of(const MetadataRecord& record) {
    return std::visit([](const auto& r) { return r.message_name; }, record);
}

std::int16_t type_of(const MetadataRecord& record) {
    return std::visit([](const auto& r) { return r.record_type; }, record);
}

}  // namespace tidemark::protocol
