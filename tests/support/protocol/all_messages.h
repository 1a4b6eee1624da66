/// Every message and record of the protocol behind one signature, for tests and fuzzing.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "protocol/wire_types.h"

namespace tidemark::protocol {

/// What became of bytes that were read.
struct RoundTrip {
    std::size_t consumed = 0;                     ///< of the bytes
    Result<std::vector<std::byte>> written;       ///< what was read, written in the same version
    bool same_when_read_again = false;            ///< `written`, read once more, equals what was read first
};

struct AnyMessage {
    std::string_view name = {};
    VersionRange versions = {};
    std::int16_t flexible_from = never_flexible;
    Result<RoundTrip> (*round_trip)(MutableBytes, std::int16_t version) = nullptr;
    /// Parses only.
    Result<> (*read)(MutableBytes, std::int16_t version) = nullptr;
    /// A message with every field at its default.
    Result<std::vector<std::byte>> (*write_default)(std::int16_t version) = nullptr;
};

std::span<const AnyMessage> all_messages();
/// Null if none has that name.
const AnyMessage* find_message(std::string_view name);

}  // namespace tidemark::protocol
