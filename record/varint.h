/// Zig-zag varints of the record format (record-format 2.4).
#pragma once

#include <vector>

#include "base/types.h"

namespace tidemark::record {

/// Reads at `*at`, moving it on; nothing when the bytes end or the last allowed byte continues (5 for int, 10 for long).
std::optional<std::int32_t> read_varint(Bytes bytes, std::size_t* at);
std::optional<std::int64_t> read_varlong(Bytes bytes, std::size_t* at);
void append_varint(std::vector<std::byte>& to, std::int32_t);
void append_varlong(std::vector<std::byte>& to, std::int64_t);
std::size_t varint_bytes(std::int32_t);
std::size_t varlong_bytes(std::int64_t);

}  // namespace tidemark::record
