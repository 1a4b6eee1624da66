// Every small file beside the data: whatever its bytes, the parser answers; what it takes, it writes the same again.
#include "base/assert.h"
#include "base/bytes.h"
#include "storage/checkpoint.h"
#include "storage/directory_names.h"
#include "storage/producer_snapshots.h"
#include "storage/segments_file.h"
#include "storage/transaction_index.h"

using namespace tidemark;
using namespace tidemark::storage;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto text = as_text(bytes);
    if (const auto parsed = parse_offset_checkpoint(text)) TM_ASSERT(*parse_offset_checkpoint(format_offset_checkpoint(*parsed)) == *parsed);
    if (const auto parsed = parse_leader_epochs(text)) {
        TM_ASSERT(*parse_leader_epochs(format_leader_epochs(*parsed)) == *parsed);
        const LeaderEpochs epochs(*parsed);
        for (std::size_t i = 1; i < epochs.entries().size(); ++i) {
            TM_ASSERT(epochs.entries()[i - 1].epoch < epochs.entries()[i].epoch && epochs.entries()[i - 1].start < epochs.entries()[i].start);
        }
    }
    if (const auto parsed = parse_partition_metadata(text)) TM_ASSERT(*parse_partition_metadata(format_partition_metadata(*parsed)) == *parsed);
    if (const auto parsed = parse_meta_properties(text)) (void)format_meta_properties(*parsed);
    if (const auto parsed = parse_segments_file(text)) TM_ASSERT(format_segments_file(*parsed) == text);
    (void)parse_clean_shutdown(text);
    if (const auto entries = decode_snapshot(bytes)) {
        ProducerState state;
        for (const auto& entry : *entries) state.load(entry);
        TM_ASSERT(decode_snapshot(encode_snapshot(state)));
    }
    if (const auto entries = decode_transaction_index(bytes)) {
        std::vector<std::byte> again(entries->size() * aborted_transaction_bytes);
        for (std::size_t i = 0; i < entries->size(); ++i) encode((*entries)[i], again.data() + i * aborted_transaction_bytes);
        TM_ASSERT(equal(again, bytes.first(again.size())));
    }
    if (const auto parsed = parse_directory_name(text); parsed && parsed->kind == DirectoryKind::live) {
        TM_ASSERT(parse_directory_name(live_directory_name(parsed->partition))->partition == parsed->partition);
    }
    const auto file = parse_file_name(text);
    if (file.kind != FileKind::other) TM_ASSERT(parse_file_name(segment_file_name(file.offset, file.kind, file.suffix)).offset == file.offset);
    return 0;
}
