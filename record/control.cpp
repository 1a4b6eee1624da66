#include "record/control.h"

#include "base/assert.h"
#include "record/builder.h"

namespace tidemark::record {
namespace {

constexpr std::size_t key_bytes = 4;
constexpr std::size_t marker_value_bytes = 6;

Error invalid(const RecordView& record, const char* what) {
    return {Errc::invalid_record, "control record at offset " + std::to_string(record.offset.value) + ": " + what};
}

}  // namespace

Result<ControlType> control_type(const RecordView& record) {
    if (!record.key || record.key->size() < key_bytes) return invalid(record, "its key is shorter than 4 bytes");
    if (load_be<std::int16_t>(record.key->data()) < 0) return invalid(record, "its key has a negative version");
    const auto type = load_be<std::int16_t>(record.key->data() + 2);
    const bool known = type >= 0 && type <= static_cast<std::int16_t>(ControlType::kraft_voters);
    return known ? static_cast<ControlType>(type) : ControlType::unknown;
}

Result<TransactionMarker> transaction_marker(const RecordView& record) {
    TM_TRY(const auto type, control_type(record));
    if (type != ControlType::abort && type != ControlType::commit) return invalid(record, "it is no transaction marker");
    if (!record.value || record.value->size() < marker_value_bytes) return invalid(record, "its value is shorter than 6 bytes");
    if (load_be<std::int16_t>(record.value->data()) < 0) return invalid(record, "its value has a negative version");
    return TransactionMarker{.type = type, .coordinator_epoch = load_be<std::int32_t>(record.value->data() + 2)};
}

void write_marker(const MarkerOptions& options, std::vector<std::byte>& to) {
    TM_ASSERT(options.marker.type == ControlType::abort || options.marker.type == ControlType::commit);
    const auto key = control_key(options.marker.type);
    std::array<std::byte, marker_value_bytes> value{};
    store_be<std::int16_t>(value.data(), 0);
    store_be(value.data() + 2, options.marker.coordinator_epoch);
    BatchBuilder builder;
    builder.start({.base_offset = options.offset,
                   .leader_epoch = options.leader_epoch,
                   .producer_id = options.producer_id,
                   .producer_epoch = options.producer_epoch,
                   .transactional = true,
                   .control = true});
    builder.append(options.offset, options.timestamp, Bytes{key}, Bytes{value});
    builder.finish(to);
}

std::array<std::byte, 4> control_key(ControlType type) {
    TM_ASSERT(type != ControlType::unknown);
    std::array<std::byte, key_bytes> key{};
    store_be<std::int16_t>(key.data(), 0);
    store_be(key.data() + 2, static_cast<std::int16_t>(type));
    return key;
}

}  // namespace tidemark::record
