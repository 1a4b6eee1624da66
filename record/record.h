/// The records inside a batch, of every format and codec.
#pragma once

#include <memory>

#include "record/batch.h"

namespace tidemark::record {

/// One record; its bytes belong to the reader and are good until its next next().
struct RecordView {
    Offset offset{};
    Timestamp timestamp{-1};
    Sequence sequence = -1;
    std::optional<Bytes> key;       ///< nothing: a null key
    std::optional<Bytes> value;     ///< nothing: a null value, a tombstone in a compacted topic
    std::int32_t header_count = 0;
    Bytes headers;                  ///< the headers as they are encoded, behind their count
    std::int8_t magic = 2;          ///< of the entry it was read from (a v1 wrapper can hold v0 messages, KAFKA-4298)
    std::int32_t body_bytes = 0;    ///< v2: the length field's value

    /// Of key, value and headers together.
    std::size_t content_bytes() const { return (key ? key->size() : 0) + (value ? value->size() : 0) + headers.size(); }
};

struct ReadLimits {
    /// max.decompressed.message.bytes: a v2 record in a compressed batch that claims more is invalid, before allocating.
    std::int32_t record_bytes_max = 2147483639;
    /// Decompressed batches up to this size stay in memory until the next open(), so that rewind() costs nothing.
    std::size_t rewind_bytes_max = 0;
};

/// Reads the records of one batch in order, decompressing as it goes: in memory is the largest record, not the batch.
///
/// Errors are Errc::invalid_record (contents disagree with header or lengths, a broken compressed stream), Errc::corrupt
/// (an inner message's size or CRC), Errc::unsupported_compression (codec bits 5 to 7, zstd below magic 2). After an
/// error the reader is at its end. The outer CRC is the caller's to check, once.
/// Memory: grows with bytes that have arrived, never with what a length claims.
/// Threads: one at a time. Reuse one reader for many batches: it keeps its buffers (no allocation per record).
class RecordReader {
public:
    explicit RecordReader(ReadLimits limits = {});
    ~RecordReader();
    RecordReader(RecordReader&&) noexcept;
    RecordReader& operator=(RecordReader&&) noexcept;

    /// Starts on a batch, whose bytes must stay until the last next().
    Result<> open(const BatchView&);
    /// The next record; nothing after the last, when the contents were exactly what the header promised. A batch that
    /// counts zero records has none, whatever follows its header.
    Result<std::optional<RecordView>> next();
    /// Back to the first record of the batch that open() took.
    Result<> rewind();

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// First offset of an entry of any format; a legacy wrapper is decompressed for it.
Result<Offset> first_offset(const BatchView&, RecordReader&);

/// The headers of a record, one at a time: `for (HeaderCursor c{record}; auto h = c.next();)`.
struct HeaderView {
    std::string_view key;
    std::optional<Bytes> value;
};
class HeaderCursor {
public:
    explicit HeaderCursor(const RecordView& record) : rest_(record.headers), left_(record.header_count) {}
    std::optional<HeaderView> next();
private:
    Bytes rest_;
    std::int32_t left_;
};

}  // namespace tidemark::record
