#include "cleaner/log_state.h"

#include <algorithm>

#include "record/record.h"
#include "storage/batch_reader.h"
#include "storage/segment.h"

namespace tidemark::cleaner {

Result<std::vector<SegmentState>> read_segment_states(const storage::Log& log, Offset first_dirty) {
    std::vector<SegmentState> states;
    const auto segments = log.segments();
    for (std::size_t i = 0; i < segments->size(); ++i) {
        const auto& segment = *(*segments)[i];
        SegmentState s;
        s.base_offset = segment.base_offset();
        s.bytes = segment.bytes();
        if (const auto horizon = segment.earliest_delete_horizon()) s.earliest_horizon = *horizon;
        // The one before the first dirty one matters too: its largest timestamp bounds when the next began (KIP-354).
        const bool far_below = i + 2 < segments->size() && (*segments)[i + 2]->base_offset() <= first_dirty;
        if (!far_below) {
            TM_TRY(s.modified, segment.modified());
            TM_TRY(s.largest_record_timestamp, segment.largest_record_timestamp());
            TM_TRY(s.first_batch_timestamp, segment.first_batch_timestamp());
            if (s.first_batch_timestamp && *s.first_batch_timestamp <= Timestamp{0}) s.first_batch_timestamp.reset();
            s.first_append = segment.first_append_time();
        }
        states.push_back(s);
    }
    return states;
}

Result<LogState> read_log_state(const storage::Log& log, std::optional<Offset> checkpoint) {
    LogState state;
    state.checkpoint = checkpoint;
    TM_TRYV(log.load_producers());   // an open transaction of theirs bounds what may be cleaned
    state.log_start_offset = log.log_start_offset();
    state.last_stable_offset = log.last_stable_offset();
    state.log_end_offset = log.log_end_offset();
    const bool usable = checkpoint && *checkpoint >= state.log_start_offset && *checkpoint <= state.log_end_offset;
    TM_TRY(state.segments, read_segment_states(log, usable ? *checkpoint : state.log_start_offset));
    return state;
}

Result<std::int64_t> scan_for_horizons(storage::Segment& segment) {
    TM_TRY(const auto file, segment.file());
    const auto end = segment.bytes();
    storage::HeaderWalk headers(*file, FilePosition{0}, end);
    record::RecordReader reader;
    std::vector<std::byte> bytes;
    std::optional<Timestamp> earliest;
    for (;;) {
        TM_TRY(const auto at, headers.next());
        if (!at) break;
        if (!at->delete_horizon || (earliest && *earliest <= *at->delete_horizon)) continue;
        bytes.resize(static_cast<std::size_t>(at->bytes));
        TM_TRY(const auto got, file->read(at->position, bytes));
        TM_TRY(const auto batch, record::BatchView::parse(Bytes(bytes).first(got)));
        TM_TRYV(reader.open(batch));
        for (;;) {
            TM_TRY(const auto record, reader.next());
            if (!record) break;
            if (!batch.is_control() && record->value) continue;
            earliest = at->delete_horizon;
            break;
        }
    }
    segment.set_earliest_delete_horizon(earliest);
    return end;
}

}  // namespace tidemark::cleaner
