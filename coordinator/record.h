/// One record of an internal topic, as it is written and as it is read back.
///
///   records.push_back(record_of(OffsetCommitKey{…}, OffsetCommitValue{…}, 4));
///   records.push_back(tombstone_of(OffsetCommitKey{…}));
#pragma once

#include <optional>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "protocol/coordinator_record.h"

namespace tidemark::coordinator {

struct Record {
    std::vector<std::byte> key;
    std::optional<std::vector<std::byte>> value;   ///< nothing: a tombstone
    friend bool operator==(const Record&, const Record&) = default;
};

/// What a state machine is told of a record of its log; the bytes are good until replay() returns.
struct ReplayedRecord {
    Bytes key;
    std::optional<Bytes> value;
    Offset offset{};
    Timestamp timestamp = no_timestamp;
    ProducerId producer_id = no_producer_id;       ///< of its batch
    ProducerEpoch producer_epoch = -1;
};

/// A marker that ends a transaction in this partition.
struct ReplayedMarker {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = -1;
    std::int32_t coordinator_epoch = 0;
    bool committed = false;
};

/// Precondition: key and value can be written, that is no string is longer than its length field can say. Whoever lets a
/// client's bytes in has seen to that, since they came through the same kind of field.
template <class Key, class Value>
Record record_of(const Key& key, const Value& value, std::int16_t version) {
    auto key_bytes = protocol::key_bytes(key);
    auto value_bytes = protocol::value_bytes(value, version);
    TM_ASSERT(key_bytes.has_value() && value_bytes.has_value());
    return {.key = *std::move(key_bytes), .value = *std::move(value_bytes)};
}
template <class Key>
Record tombstone_of(const Key& key) {
    auto key_bytes = protocol::key_bytes(key);
    TM_ASSERT(key_bytes.has_value());
    return {.key = *std::move(key_bytes), .value = std::nullopt};
}

}  // namespace tidemark::coordinator
