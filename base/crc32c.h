/// CRC-32C (Castagnoli), the checksum of v2 batches and producer snapshots.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace tidemark {

/// Continues a checksum: crc32c(b, crc32c(a)) == crc32c(a followed by b). Three SSE4.2 streams side by side where the
/// processor has them (checked at run time), tables of eight elsewhere.
std::uint32_t crc32c(Bytes data, std::uint32_t crc = 0) noexcept;

/// The portable way, for the test that compares both.
std::uint32_t crc32c_portable(Bytes data, std::uint32_t crc = 0) noexcept;

}  // namespace tidemark
