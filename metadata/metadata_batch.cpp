#include "metadata/metadata_batch.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "metadata/replay.h"
#include "record/builder.h"

namespace tidemark::metadata {
namespace {

Error against_rules(const record::BatchView& batch, std::string_view what) {
    return {Errc::corrupt, fmt::format("the metadata batch at offset {}: {}", batch.base_offset().value, what)};
}

record::BatchOptions options_at(const BatchPlace& place) {
    record::BatchOptions options;
    options.base_offset = place.base_offset;
    options.leader_epoch = place.epoch;
    return options;
}

Result<ControlEntry> control_entry(const record::BatchView& batch, const record::RecordView& record) {
    if (!record.key || record.key->empty() || !record.value || record.value->empty()) return against_rules(batch, "a control record without key or value");
    TM_TRY(const auto type, record::control_type(record));
    using enum record::ControlType;
    if (type != leader_change && type != snapshot_header && type != snapshot_footer && type != kraft_version && type != kraft_voters) {
        return Error{Errc::unsupported, fmt::format("the metadata log at offset {} holds a control record of type {}", record.offset.value, static_cast<int>(type))};
    }
    return ControlEntry{type, to_vector(*record.value)};
}

}  // namespace

Result<MetadataBatch> read_metadata_batch(const record::BatchView& batch, record::RecordReader& reader) {
    if (batch.is_legacy()) return against_rules(batch, "its format is older than 2");
    if (!batch.crc_matches()) return against_rules(batch, "its CRC does not match");
    if (batch.is_compressed() || batch.is_transactional() || batch.has_producer_id()) return against_rules(batch, "compressed or written by a producer");
    MetadataBatch decoded;
    decoded.base_offset = batch.base_offset();
    decoded.last_offset = batch.last_offset();
    decoded.epoch = batch.leader_epoch();
    decoded.timestamp = batch.base_timestamp();
    if (batch.is_control()) decoded.entries.emplace<std::vector<ControlEntry>>();
    TM_TRYV(reader.open(batch));
    Offset expected = batch.base_offset();
    for (;; ++expected) {
        TM_TRY(const auto next, reader.next());
        if (!next) break;
        const record::RecordView& record = *next;
        if (record.offset != expected) return against_rules(batch, "a gap between its records");
        if (record.timestamp != batch.base_timestamp()) return against_rules(batch, "records of different times");
        if (record.header_count != 0) return against_rules(batch, "a record with headers");
        if (batch.is_control()) {
            TM_TRY(auto entry, control_entry(batch, record));
            std::get<std::vector<ControlEntry>>(decoded.entries).push_back(std::move(entry));
            continue;
        }
        if (record.key || !record.value || record.value->empty()) return against_rules(batch, "a record with a key or without a value");
        auto decoded_record = protocol::read_versioned_metadata_record(*record.value);
        if (!decoded_record.has_value()) return in_context(std::move(decoded_record).error(), fmt::format("the metadata log at offset {}", record.offset.value));
        std::get<std::vector<protocol::VersionedMetadataRecord>>(decoded.entries).push_back(*std::move(decoded_record));
    }
    if (expected != batch.next_offset() || expected == batch.base_offset()) return against_rules(batch, "fewer records than its header says");
    return decoded;
}

Result<> write_metadata_batch(const BatchPlace& place, std::span<const protocol::VersionedMetadataRecord> records, std::vector<std::byte>& to) {
    TM_ASSERT(!records.empty());
    record::BatchBuilder builder;
    builder.start(options_at(place));
    Offset offset = place.base_offset;
    for (const auto& record : records) {
        TM_TRY(const auto value, protocol::metadata_record_value(record.record, record.version));
        builder.append(offset, place.timestamp, std::nullopt, Bytes(value));
        ++offset;
    }
    const std::size_t before = to.size();
    builder.finish(to);
    if (const std::size_t bytes = to.size() - before; bytes > static_cast<std::size_t>(metadata_batch_bytes_max)) {
        to.resize(before);
        return Error{Errc::too_large, fmt::format("a metadata batch of {} records and {} bytes", records.size(), bytes)};
    }
    return {};
}

Result<> write_metadata_batch(const BatchPlace& place, std::span<const protocol::MetadataRecord> records, std::int16_t metadata_version, std::vector<std::byte>& to) {
    std::vector<protocol::VersionedMetadataRecord> versioned;
    versioned.reserve(records.size());
    for (const auto& record : records) versioned.push_back({record, record_version(record, metadata_version)});
    return write_metadata_batch(place, versioned, to);
}

void write_control_batch(const BatchPlace& place, std::span<const ControlEntry> entries, std::vector<std::byte>& to) {
    TM_ASSERT(!entries.empty());
    record::BatchOptions options = options_at(place);
    options.control = true;
    record::BatchBuilder builder;
    builder.start(options);
    Offset offset = place.base_offset;
    for (const ControlEntry& entry : entries) {
        const auto key = record::control_key(entry.type);
        builder.append(offset, place.timestamp, Bytes(key), Bytes(entry.value));
        ++offset;
    }
    builder.finish(to);
}

}  // namespace tidemark::metadata
