/// Random messages as bytes, made from the schema without the generated codecs.
#pragma once

#include <random>

#include "tests/support/protocol/schema.h"

namespace tidemark::protocol {

using Random = std::mt19937_64;

struct RandomMessage {
    /// A length or count inside `bytes`.
    struct Length {
        enum class Kind : std::uint8_t { int16, int32, varint };
        std::size_t at = 0;
        std::size_t size = 0;  ///< bytes of the length itself
        Kind kind = Kind::int32;
    };

    std::vector<std::byte> bytes = {};
    std::vector<Length> lengths = {};
};

/// A message as a writer that keeps to the rules would write it: tagged fields in order and only where they differ
/// from their default, varints in their shortest form, nulls only where allowed. Some structures of flexible versions
/// carry tagged fields that the schema does not have.
RandomMessage random_message(const schema::Message& message, std::int16_t version, Random& random);

}  // namespace tidemark::protocol
