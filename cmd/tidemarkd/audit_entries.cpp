#include "cmd/tidemarkd/audit_entries.h"

namespace tidemark {

storage::CleaningEntry audit_entry(const cleaner::PassReport& report) {
    const auto& s = report.stats;
    return {.partition = report.partition,
            .reason = report.requested && report.why != cleaner::Why::erasure ? "requested" : cleaner::to_string(report.why),
            .began = report.began,
            .seconds = s.seconds,
            .from = report.first_dirty,
            .to = s.end_offset,
            .deadline = report.deadline,
            .bytes_before = s.bytes_read,
            .bytes_after = s.bytes_written,
            .segments_before = s.segments_before,
            .segments_after = s.segments_after,
            .superseded = s.superseded,
            .tombstones = s.tombstones_removed,
            .expired = s.expired,
            .erased = s.erased,
            .keyless = s.invalid_messages_read,
            .markers = s.markers_removed,
            .aborted_batches = s.aborted_batches};
}

storage::DeletionEntry audit_entry(const retention::SegmentReport& report, Timestamp now, std::int64_t file_delete_delay_ms) {
    return {.partition = report.partition,
            .from = report.base_offset,
            .to = report.end_offset,
            .bytes = report.bytes,
            .records = report.records,
            .rule = to_string(report.deletion.rule),
            .reason = report.deletion.text(),
            .limit = report.deletion.limit,
            .largest_timestamp = report.largest_record_timestamp,
            .gone_at = now + file_delete_delay_ms};
}

}  // namespace tidemark
