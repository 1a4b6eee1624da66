/// Keys and values of the internal topics __consumer_offsets and __transaction_state.
///
///   key    int16 record type, then the key in version 0
///   value  int16 version, then the value in that version; null is a tombstone
///
/// The record type (OffsetCommitKey::record_type and so on) was once the key's version, and is unique per topic. Keys
/// of types that a reader does not know are skipped, as Kafka does after a downgrade.
///
///   TM_TRY(const auto type, record_type_of(record.key));
///   switch (type) {
///       case OffsetCommitKey::record_type: { TM_TRY(const auto key, read_key<OffsetCommitKey>(record.key)); …
#pragma once

#include "protocol/reader.h"
#include "protocol/writer.h"

namespace tidemark::protocol {

/// The first two bytes. Errors: corrupt if there are none.
inline Result<std::int16_t> record_type_of(Bytes key) {
    Reader reader{key};
    const auto type = reader.int16();
    TM_TRYV(reader.result());
    return type;
}

/// A key whose type is known to be Key's.
template <class Key>
Result<Key> read_key(Bytes bytes) {
    Reader reader{bytes};
    if (reader.int16() != Key::record_type) reader.fail(std::string("not a ") + Key::message_name);
    TM_TRYV(reader.result());
    return parse<Key>(reader, 0);
}

/// Errors: corrupt; unsupported for a version that this program does not know.
template <class Value>
Result<Value> read_value(Bytes bytes) {
    Reader reader{bytes};
    const auto version = reader.int16();
    TM_TRYV(reader.result());
    return parse<Value>(reader, version);
}

template <class Key>
Result<std::vector<std::byte>> key_bytes(const Key& key) {
    Writer writer;
    writer.int16(Key::record_type);
    key.write(writer, 0);
    return std::move(writer).finish_bytes();
}

/// Errors as Writer::finish().
template <class Value>
Result<std::vector<std::byte>> value_bytes(const Value& value, std::int16_t version) {
    Writer writer;
    writer.int16(version);
    value.write(writer, version);
    return std::move(writer).finish_bytes();
}

}  // namespace tidemark::protocol
