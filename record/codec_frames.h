/// Constants of the frames around compressed blocks, shared by the codecs' two halves (record-format 5).
///
///     gzip    10 bytes header | deflate | CRC-32 and length, little-endian
///     snappy  82 "SNAPPY" 00 | version | oldest version | { length | block }…              (xerial)
///     lz4     magic | FLG | BD | [content size] | header checksum | { length | block }… | 0   (little-endian)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tidemark::record {

/// Deflate, no name, no time, no extra flags, operating system unknown.
inline constexpr std::array<std::uint8_t, 10> gzip_header = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};

inline constexpr std::array<std::uint8_t, 8> snappy_magic = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
inline constexpr std::int32_t snappy_version = 1;
inline constexpr std::size_t snappy_header_bytes = 16;
inline constexpr std::size_t snappy_block_bytes = 32 * 1024;     ///< uncompressed, of the blocks we write

inline constexpr std::uint32_t lz4_magic = 0x184D2204;
inline constexpr std::uint8_t lz4_flags = 0x60;                  ///< version 1, independent blocks, no checksums
inline constexpr std::uint8_t lz4_block_descriptor = 0x40;       ///< 64 KiB
inline constexpr std::size_t lz4_block_bytes = 64 * 1024;
inline constexpr std::uint32_t lz4_stored = 0x80000000;          ///< in a block's length: not compressed
inline constexpr int lz4_level_fast = 9;                         ///< Kafka's default: the fast compressor, others are HC

}  // namespace tidemark::record
