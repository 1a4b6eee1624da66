/// Record sets as bytes, through everything that reads them.
///
/// Input: a byte of choices, the rest entries. Invariants: no crash, no memory for claims; every reader sees the same
/// records; a batch built again from its records reads back as the same; what a filter keeps is what it was given; a
/// validated set has one batch with a right CRC, the offsets it was assigned and as many records as were counted.
#include <cstdlib>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "record/control.h"
#include "record/filter.h"
#include "record/validation.h"

namespace {

using namespace tidemark;
using namespace tidemark::record;

constexpr ReadLimits limits{.record_bytes_max = 1 << 20, .rewind_bytes_max = 1 << 16};

void require(bool condition) {
    if (!condition) std::abort();
}

struct Rec {
    std::int64_t offset, timestamp;
    Sequence sequence;
    std::optional<std::string> key, value;
    std::string headers;
    std::int32_t header_count;
    friend bool operator==(const Rec&, const Rec&) = default;
};

Rec copy(const RecordView& record) {
    Rec rec{.offset = record.offset.value, .timestamp = record.timestamp.value, .sequence = record.sequence, .key = {}, .value = {},
            .headers = std::string{as_text(record.headers)}, .header_count = record.header_count};
    if (record.key) rec.key = as_text(*record.key);
    if (record.value) rec.value = as_text(*record.value);
    std::int32_t headers = 0;
    for (HeaderCursor cursor{record}; cursor.next();) ++headers;
    require(headers == record.header_count);
    return rec;
}

Result<std::vector<Rec>> read(RecordReader& reader) {
    std::vector<Rec> records;
    for (;;) {
        TM_TRY(const auto record, reader.next());
        if (!record) return records;
        if (const auto type = control_type(*record)) (void)transaction_marker(*record);
        records.push_back(copy(*record));
    }
}

class EverySecond final : public RecordJudge {
public:
    bool keeps(const BatchView&, const RecordView&) override { return (asked_++ & 1) == 0; }

private:
    int asked_ = 0;
};

void check_filter(const BatchView& batch, const std::vector<Rec>& records) {
    BatchFilter filter{limits.record_bytes_max};
    EverySecond judge;
    std::vector<std::byte> out;
    const auto outcome = filter.filter(batch, {.retention = Retention::keep_when_empty, .now = Timestamp{1000}, .delete_retention_ms = 10}, judge, out);
    if (!outcome) return require(out.empty());
    require(outcome->records_read == static_cast<std::int64_t>(records.size()));
    if (outcome->output != FilterOutcome::Output::rebuilt) return;
    const auto rebuilt = BatchView::parse(out);
    require(rebuilt && rebuilt->size() == out.size() && rebuilt->crc_matches());
    RecordReader reader{limits};
    require(reader.open(*rebuilt).has_value());
    const auto kept = read(reader);
    require(kept && static_cast<std::int64_t>(kept->size()) == outcome->records_kept);
    for (std::size_t i = 0; i < kept->size(); ++i) {
        Rec expected = records[2 * i];
        if (batch.is_legacy()) expected.sequence = -1;
        require((*kept)[i] == expected);
    }
}

void check_validate(MutableBytes records, std::uint8_t choices) {
    const Origin origin = (choices & 0x80) != 0 ? Origin::client : Origin::coordinator;
    const auto info = analyze(records, {.origin = origin});
    if (!info || info->valid_bytes == 0) return;
    Validator validator{limits};
    std::vector<RecordError> rejected;
    auto validated = validator.validate(records, *info,
                                        {.origin = origin,
                                         .codec = (choices & 0x40) != 0 ? std::optional{static_cast<Codec>(choices % 5)} : std::nullopt,
                                         .compacted = (choices & 0x20) != 0,
                                         .timestamp_type = (choices & 0x10) != 0 ? TimestampType::log_append_time : TimestampType::create_time,
                                         .now = Timestamp{1000},
                                         .rebuild_bytes_max = 1 << 22},
                                        &rejected);
    if (!validated) return;
    require(rejected.empty());
    assign_offsets(*validated, Offset{77}, 3);
    if (validated->bytes().empty()) return require(validated->record_count() == 0);
    const auto batch = BatchView::parse(validated->bytes());
    require(batch && batch->size() == validated->bytes().size() && batch->crc_matches() && batch->magic() == 2);
    require(batch->last_offset() == validated->last_offset() && batch->leader_epoch() == 3);
    RecordReader reader{limits};
    require(reader.open(*batch).has_value());
    const auto read_back = read(reader);
    require(read_back && static_cast<std::int32_t>(read_back->size()) == validated->record_count());
}

void check_batch(const BatchView& batch) {
    RecordReader reader{limits}, small{{.record_bytes_max = limits.record_bytes_max}};
    if (const auto opened = reader.open(batch); !opened) return require(!small.open(batch));
    require(small.open(batch).has_value());
    const auto records = read(reader), again = read(small);
    require(records.has_value() == again.has_value());
    if (!records) return require(!reader.next().value());
    require(*records == *again);
    require(reader.rewind() && *read(reader) == *records);
    check_filter(batch, *records);
}

/// Right CRCs let the input get past analyze().
void fix_crcs(MutableBytes bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
        const auto batch = BatchView::parse(bytes.subspan(at));
        if (!batch) return;
        if (!batch->is_legacy()) store_be(bytes.data() + at + 17, crc32c(batch->bytes().subspan(21)));
        at += batch->size();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    std::vector<std::byte> bytes = to_vector(std::as_bytes(std::span{data + 1, size - 1}));
    for (BatchCursor cursor{bytes};;) {
        const auto batch = cursor.next();
        if (!batch || !*batch) break;
        check_batch(**batch);
    }
    fix_crcs(bytes);
    check_validate(bytes, data[0]);
    return 0;
}
