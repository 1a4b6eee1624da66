/// What the tests of records share: hex, records as values, batches made from them and read back.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "record/builder.h"
#include "record/compression.h"
#include "record/record.h"

namespace tidemark::record::testing {

using Buffer = std::vector<std::byte>;

inline constexpr Codec all_codecs[] = {Codec::none, Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};
inline constexpr Codec real_codecs[] = {Codec::gzip, Codec::snappy, Codec::lz4, Codec::zstd};

Buffer from_hex(std::string_view hex);
std::string to_hex(Bytes bytes);

/// A record by value.
struct Rec {
    std::int64_t offset = 0;
    std::int64_t timestamp = -1;
    std::optional<std::string> key = {};
    std::optional<std::string> value = {};
    std::vector<std::pair<std::string, std::optional<std::string>>> headers = {};
    Sequence sequence = -1;   ///< as read; not used when building

    friend bool operator==(const Rec&, const Rec&) = default;
    friend std::ostream& operator<<(std::ostream& to, const Rec& record);
};

Rec to_rec(const RecordView& record);
std::optional<Bytes> bytes_of(const std::optional<std::string>& text);

void append(BatchBuilder& builder, const Rec& record);
Buffer build(const BatchOptions& options, const std::vector<Rec>& records);

/// The batch at the front; a test that passes bad bytes fails.
BatchView view(const Buffer& bytes);
std::vector<BatchView> all_batches(Bytes bytes);
Result<std::vector<Rec>> read_all(const BatchView& batch, RecordReader& reader);
Result<std::vector<Rec>> read_all(const BatchView& batch);
/// The records of a batch that must be good.
std::vector<Rec> records_of(const Buffer& bytes);

/// A v2 batch around `payload`, with a right CRC; for contents that no builder makes.
struct RawBatch {
    std::int64_t base_offset = 0;
    std::uint16_t attributes = 0;
    std::int32_t last_offset_delta = 0;
    std::int64_t base_timestamp = 0;
    std::int64_t max_timestamp = 0;
    ProducerId producer_id = -1;
    ProducerEpoch producer_epoch = -1;
    Sequence base_sequence = -1;
    std::int32_t count = 1;
    Buffer payload = {};
};
Buffer raw_batch(const RawBatch& batch);

/// Computes the CRC of a changed entry anew.
void fix_crc(Buffer& entry);

/// Where the golden data lie, or nothing.
std::optional<std::string> shared_directory();

}  // namespace tidemark::record::testing
