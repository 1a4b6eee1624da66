#include "tests/unit/record/tools.h"

#include <zlib.h>

#include <cstdlib>
#include <filesystem>

#include "base/crc32c.h"

namespace tidemark::record::testing {

Buffer from_hex(std::string_view hex) {
    Buffer bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16)));
    }
    return bytes;
}

std::string to_hex(Bytes bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string hex;
    for (const auto b : bytes) {
        hex += digits[static_cast<unsigned>(b) >> 4];
        hex += digits[static_cast<unsigned>(b) & 15];
    }
    return hex;
}

std::ostream& operator<<(std::ostream& to, const Rec& record) {
    to << record.offset << "@" << record.timestamp << ":" << record.key.value_or("(null)") << "=" << record.value.value_or("~");
    for (const auto& [key, value] : record.headers) to << " " << key << ":" << value.value_or("~");
    return to << " #" << record.sequence;
}

Rec to_rec(const RecordView& record) {
    Rec rec{.offset = record.offset.value, .timestamp = record.timestamp.value, .sequence = record.sequence};
    if (record.key) rec.key = as_text(*record.key);
    if (record.value) rec.value = as_text(*record.value);
    HeaderCursor cursor{record};
    while (const auto header = cursor.next()) {
        rec.headers.emplace_back(header->key, header->value ? std::optional{std::string{as_text(*header->value)}} : std::nullopt);
    }
    return rec;
}

std::optional<Bytes> bytes_of(const std::optional<std::string>& text) {
    return text ? std::optional{as_bytes(*text)} : std::nullopt;
}

void append(BatchBuilder& builder, const Rec& record) {
    std::vector<Header> headers;
    for (const auto& [key, value] : record.headers) {
        headers.push_back({key, value ? std::optional{to_vector(as_bytes(*value))} : std::nullopt});
    }
    builder.append(Offset{record.offset}, Timestamp{record.timestamp}, bytes_of(record.key), bytes_of(record.value), headers);
}

Buffer build(const BatchOptions& options, const std::vector<Rec>& records) {
    BatchBuilder builder;
    builder.start(options);
    for (const Rec& record : records) append(builder, record);
    Buffer bytes;
    builder.finish(bytes);
    return bytes;
}

BatchView view(const Buffer& bytes) { return BatchView::parse(bytes).value(); }

std::vector<BatchView> all_batches(Bytes bytes) {
    std::vector<BatchView> batches;
    for (BatchCursor cursor{bytes};;) {
        const auto batch = cursor.next().value();
        if (!batch) return batches;
        batches.push_back(*batch);
    }
}

Result<std::vector<Rec>> read_all(const BatchView& batch, RecordReader& reader) {
    std::vector<Rec> records;
    TM_TRYV(reader.open(batch));
    for (;;) {
        TM_TRY(const auto record, reader.next());
        if (!record) return records;
        records.push_back(to_rec(*record));
    }
}

Result<std::vector<Rec>> read_all(const BatchView& batch) {
    RecordReader reader;
    return read_all(batch, reader);
}

std::vector<Rec> records_of(const Buffer& bytes) { return read_all(view(bytes)).value(); }

Buffer raw_batch(const RawBatch& batch) {
    Buffer bytes(v2_header_bytes);
    append_bytes(bytes, batch.payload);
    std::byte* const to = bytes.data();
    store_be(to, batch.base_offset);
    store_be(to + 8, static_cast<std::int32_t>(bytes.size() - log_overhead));
    store_be(to + 12, std::int32_t{-1});
    store_be(to + 16, std::int8_t{2});
    store_be(to + 21, batch.attributes);
    store_be(to + 23, batch.last_offset_delta);
    store_be(to + 27, batch.base_timestamp);
    store_be(to + 35, batch.max_timestamp);
    store_be(to + 43, batch.producer_id);
    store_be(to + 51, batch.producer_epoch);
    store_be(to + 53, batch.base_sequence);
    store_be(to + 57, batch.count);
    fix_crc(bytes);
    return bytes;
}

void fix_crc(Buffer& entry) {
    if (load_be<std::int8_t>(entry.data() + 16) == 2) {
        store_be(entry.data() + 17, crc32c(Bytes{entry}.subspan(21)));
    } else {
        const auto covered = reinterpret_cast<const unsigned char*>(entry.data() + 16);
        store_be(entry.data() + 12, static_cast<std::uint32_t>(::crc32_z(0, covered, entry.size() - 16)));
    }
}

std::optional<std::string> shared_directory() {
    namespace fs = std::filesystem;
    const char* const named = std::getenv("TIDEMARK_SHARED");
    // Tests run in the source root.
    for (const auto& candidate : {fs::path{named != nullptr ? named : ""}, fs::path{".."} / "shared"}) {
        if (!candidate.empty() && fs::is_directory(candidate / "golden")) return candidate.string();
    }
    return std::nullopt;
}

}  // namespace tidemark::record::testing
