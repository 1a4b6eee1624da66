// Reading (append-and-read 7) and lookups (8). Nothing here takes the append lock: a reader takes the end's position, then
// the published segment list, and sees whole batches below its bound. When a segment leaves the log between both, or its
// files are renamed, the read starts over on the next list.
#include <algorithm>

#include "base/bytes.h"
#include "record/record.h"
#include "storage/log.h"
#include "storage/log_state.h"

namespace tidemark::storage {
namespace {

constexpr int attempts_max = 16;  // each needs a segment to leave the log in the same microseconds

Error out_of_range(const TopicPartition& partition, Offset from, Offset start, Offset end) {
    return {Errc::offset_out_of_range, "[" + partition.text() + "] offset " + std::to_string(from.value) + " is outside " +
                                           std::to_string(start.value) + " to " + std::to_string(end.value)};
}

/// One whole batch, for its records.
Result<std::vector<std::byte>> read_batch(const io::File& file, const BatchPosition& at) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(at.bytes));
    TM_TRY(const auto got, file.read(at.position, bytes));
    if (got != bytes.size()) return Error{Errc::corrupt, "at " + std::to_string(at.position.value) + ": the file ends inside the batch"};
    if (load_be<std::int8_t>(bytes.data() + 16) > 2) bytes[16] = std::byte{2};  // as BatchWalk
    return bytes;
}

/// The first record of the batch that `wanted` accepts.
template <class Wanted>
Result<std::optional<FoundOffset>> find_record(const io::File& file, const BatchPosition& at, record::RecordReader& reader, Wanted wanted) {
    TM_TRY(const auto bytes, read_batch(file, at));
    TM_TRY(const auto batch, record::BatchView::parse(bytes));
    TM_TRYV(reader.open(batch));
    for (;;) {
        TM_TRY(const auto record, reader.next());
        if (!record) return std::optional<FoundOffset>{};
        if (wanted(*record)) {
            return std::optional(FoundOffset{.timestamp = record->timestamp, .offset = record->offset, .leader_epoch = batch.leader_epoch()});
        }
    }
}

/// The first record at or behind `start` whose timestamp ≥ `target`, looking at batches from `from` on.
Result<std::optional<FoundOffset>> find_time(const Segment& segment, FilePosition from, Timestamp target, Offset start, Offset bound) {
    TM_TRY(const auto file, segment.file());
    record::RecordReader reader;
    HeaderWalk walk(*file, from, segment.bytes());
    for (Offset first{0};;) {
        TM_TRY(const auto at, walk.next());
        if (!at) return std::optional<FoundOffset>{};
        if (first >= bound) return std::optional<FoundOffset>{};
        first = at->last_offset + 1;  // of the next batch at the earliest: a compressed legacy entry does not say where it begins
        if (at->max_timestamp < target || at->last_offset < start) continue;
        TM_TRY(const auto found, find_record(*file, *at, reader, [&](const record::RecordView& r) { return r.timestamp >= target && r.offset >= start; }));
        if (found) return found;
    }
}

}  // namespace

std::optional<std::size_t> floor_segment(const SegmentList& list, Offset offset) {
    const auto above = std::upper_bound(list.begin(), list.end(), offset, [](Offset o, const auto& segment) { return o < segment->base_offset(); });
    if (above == list.begin()) return std::nullopt;
    return static_cast<std::size_t>(above - list.begin()) - 1;
}

Result<LogPosition> Log::State::position_of(const SegmentList& list, Offset bound, const LogPosition& at_end) const {
    if (bound >= at_end.offset) return at_end;
    {
        MutexLock lock(position_mutex);
        if (stable.offset == bound) return stable;
    }
    const auto floor = floor_segment(list, bound);
    if (!floor) return LogPosition{bound, Offset{-1}, 0};
    const auto& segment = *list[*floor];
    TM_TRY(const auto batch, segment.find(bound));
    const LogPosition found{bound, segment.base_offset(), batch ? batch->position.value : segment.bytes()};
    MutexLock lock(position_mutex);
    stable = found;
    return found;
}

// --- read --------------------------------------------------------------------------------------------------------------

namespace {

/// Where a read begins and how far it may go.
struct Start {
    std::size_t segment = 0;
    BatchPosition batch;
    std::int64_t end = 0;         // in the segment's file
};

/// Bytes of the segment that a reader with this bound may see.
std::int64_t readable_bytes(const Segment& segment, const LogPosition& bound) {
    if (segment.base_offset() < bound.segment_base) return segment.bytes();
    if (segment.base_offset() == bound.segment_base) return bound.bytes;
    return 0;
}

/// The batch that a read from `from` begins with; nothing when there is none below the bound.
Result<std::optional<Start>> find_start(const SegmentList& list, Offset from, const LogPosition& bound) {
    const auto floor = floor_segment(list, from);
    for (auto i = floor.value_or(0); i < list.size(); ++i) {
        const auto end = readable_bytes(*list[i], bound);
        if (end == 0 && list[i]->base_offset() > bound.segment_base) break;
        TM_TRY(const auto batch, list[i]->find(from));
        if (!batch) continue;  // a gap at the segment's end: the next one's first batch is larger
        if (batch->position.value >= end) break;
        return std::optional(Start{i, *batch, end});
    }
    return std::optional<Start>{};
}

}  // namespace

Result<LogSlice> Log::read(const ReadOptions& options) const {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    if (!s.producers_ready.load(std::memory_order_acquire)) {
        MutexLock lock(s.append_mutex);  // the last stable offset, part of every answer, is known once the producers are
        if (auto loaded = s.load_producers(); !loaded) return s.failed(std::move(loaded).error(), "loading producers");
    }
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        const auto at_end = s.end_position();
        const auto list = s.published.get();
        LogSlice slice;
        slice.high_watermark = std::min(high_watermark(), at_end.offset);
        slice.log_start_offset = log_start_offset();
        slice.log_end_offset = at_end.offset;
        slice.last_stable_offset = std::min(s.bound_of(Isolation::read_committed), slice.high_watermark);
        if (options.from < slice.log_start_offset || options.from > at_end.offset) {
            return out_of_range(s.partition, options.from, slice.log_start_offset, at_end.offset);
        }
        const auto bound_offset = options.isolation == Isolation::log_end          ? at_end.offset
                                  : options.isolation == Isolation::read_committed ? slice.last_stable_offset
                                                                                   : slice.high_watermark;
        if (options.from >= bound_offset) return slice;
        const auto filled = [&]() -> Result<> {
            TM_TRY(const auto bound, s.position_of(*list, bound_offset, at_end));
            TM_TRY(const auto start, find_start(*list, options.from, bound));
            if (!start) return {};
            const auto& segment = list->at(start->segment);
            TM_TRY(slice.file, segment->file());
            slice.segment = segment;
            slice.position = start->batch.position;
            const auto limit = options.first_batch_whole ? std::max(options.bytes_max, start->batch.bytes) : options.bytes_max;
            slice.bytes = std::min(std::max<std::int64_t>(limit, 0), start->end - slice.position.value);
            if (options.isolation != Isolation::read_committed || slice.bytes == 0) return {};
            TM_TRY(const auto entry, segment->index_first_at_or_after(slice.position + slice.bytes));
            const auto upper = entry ? entry->offset : start->segment + 1 < list->size() ? (*list)[start->segment + 1]->base_offset() : at_end.offset;
            for (auto i = start->segment; i < list->size(); ++i) {
                TM_TRY(auto found, (*list)[i]->aborted_between(options.from, upper));
                slice.aborted.insert(slice.aborted.end(), found.aborted.begin(), found.aborted.end());
                if (found.complete) break;
            }
            return {};
        }();
        if (filled) return slice;
        if (filled.error().code != Errc::not_found) return s.failed(filled.error(), "reading");
        if (auto usable = s.check_usable(); !usable) return std::move(usable).error();
    }
    return s.failed(Error{Errc::io, "files of its segments are missing"}, "reading");
}

Result<std::int64_t> Log::available(Offset from, std::int64_t bytes_max, Isolation isolation) const {
    const auto& s = *state_;
    TM_TRYV(s.check_usable());
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        const auto at_end = s.end_position();
        const auto list = s.published.get();
        if (from < log_start_offset() || from > at_end.offset) return out_of_range(s.partition, from, log_start_offset(), at_end.offset);
        const auto bound_offset = std::min(s.bound_of(isolation), at_end.offset);
        if (from >= bound_offset) return std::int64_t{0};
        const auto counted = [&]() -> Result<std::int64_t> {
            TM_TRY(const auto bound, s.position_of(*list, bound_offset, at_end));
            TM_TRY(const auto start, find_start(*list, from, bound));
            if (!start) return std::int64_t{0};
            auto bytes = start->end - start->batch.position.value;
            for (auto i = start->segment + 1; i < list->size() && bytes < bytes_max; ++i) bytes += readable_bytes(*(*list)[i], bound);
            return std::min(bytes, bytes_max);
        }();
        if (counted) return counted;
        if (counted.error().code != Errc::not_found) return s.failed(counted.error(), "reading");
        if (auto usable = s.check_usable(); !usable) return std::move(usable).error();
    }
    return s.failed(Error{Errc::io, "files of its segments are missing"}, "reading");
}

std::vector<AbortedTransaction> Log::aborted_between(Offset from, Offset to) const {
    std::vector<AbortedTransaction> aborted;
    const auto list = state_->published.get();
    for (auto i = floor_segment(*list, from).value_or(0); i < list->size(); ++i) {
        const auto found = (*list)[i]->aborted_between(from, to);
        if (!found) continue;
        aborted.insert(aborted.end(), found->aborted.begin(), found->aborted.end());
        if (found->complete) break;
    }
    return aborted;
}

// --- lookups -----------------------------------------------------------------------------------------------------------

FoundOffset Log::latest_offset(Isolation isolation) const {
    return {.timestamp = no_timestamp, .offset = state_->bound_of(isolation), .leader_epoch = latest_epoch()};
}

FoundOffset Log::earliest_offset() const {
    FoundOffset found{.timestamp = no_timestamp, .offset = log_start_offset()};
    MutexLock lock(state_->append_mutex);
    const auto first = state_->epochs.earliest();
    if (first && first->start <= found.offset) found.leader_epoch = first->epoch;
    return found;
}

namespace {

/// D9: the index that a lookup needs, now.
Result<> need_time_index(const Segment& segment) {
    if (!segment.time_index_is_missing()) return {};
    return segment.rebuild_time_index();
}

/// D24: the lowest offset ≥ `start` whose timestamp ≥ `target` below the bound, in any segment.
Result<std::optional<FoundOffset>> exact_offset_for_time(const SegmentList& list, Timestamp target, Offset start, Offset bound) {
    for (auto i = floor_segment(list, start).value_or(0); i < list.size() && list[i]->base_offset() < bound; ++i) {
        const auto& segment = *list[i];
        TM_TRYV(need_time_index(segment));
        TM_TRY(const auto largest, segment.largest_entry());
        if (largest.timestamp < target) continue;
        TM_TRY(const auto before, segment.time_lookup(target));
        TM_TRY(const auto entry, segment.index_lookup(std::max(before.offset, start)));
        TM_TRY(const auto found, find_time(segment, entry.position, target, start, bound));
        if (found) return found;
    }
    return std::optional<FoundOffset>{};
}

/// Kafka's: the first segment whose largest timestamp, or file time, qualifies is the only one that is searched.
Result<std::optional<FoundOffset>> first_segment_offset_for_time(const SegmentList& list, Timestamp target, Offset start) {
    for (const auto& segment : list) {
        TM_TRY(const auto largest, segment->largest_timestamp());
        if (largest.value < target) continue;
        TM_TRY(const auto before, segment->time_lookup(target));
        TM_TRY(const auto entry, segment->index_lookup(std::max(before.offset, start)));
        return find_time(*segment, entry.position, target, start, Offset{std::numeric_limits<std::int64_t>::max()});
    }
    return std::optional<FoundOffset>{};
}

Result<std::optional<FoundOffset>> max_timestamp_offset(const SegmentList& list) {
    const Segment* holder = nullptr;
    TimeIndex::Entry largest;
    for (const auto& segment : list) {
        TM_TRYV(need_time_index(*segment));
        TM_TRY(const auto entry, segment->largest_entry());
        if (holder != nullptr && entry.timestamp <= largest.timestamp) continue;
        holder = segment.get();
        largest = entry;
    }
    if (holder == nullptr) return std::optional<FoundOffset>{};
    TM_TRY(const auto from, holder->index_lookup(largest.offset));
    TM_TRY(const auto file, holder->file());
    HeaderWalk walk(*file, from.position, holder->bytes());
    for (;;) {
        TM_TRY(const auto at, walk.next());
        if (!at) return std::optional<FoundOffset>{};
        if (at->max_timestamp != largest.timestamp) continue;
        record::RecordReader reader;
        TM_TRY(const auto bytes, read_batch(*file, *at));
        TM_TRY(const auto batch, record::BatchView::parse(bytes));
        if (batch.magic() == 0) return std::optional<FoundOffset>{};
        return find_record(*file, *at, reader, [&](const record::RecordView& r) { return r.timestamp == largest.timestamp; });
    }
}

}  // namespace

Result<std::optional<FoundOffset>> Log::offset_for_time(Timestamp target, Isolation isolation) const {
    const auto& s = *state_;
    TM_TRYV(s.check_usable());
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        const auto list = s.published.get();
        const auto bound = s.bound_of(isolation);
        auto found = s.directory().options().differences.exact_lookup ? exact_offset_for_time(*list, target, log_start_offset(), bound)
                                                                    : first_segment_offset_for_time(*list, target, log_start_offset());
        if (found && *found && (*found)->offset >= bound) return std::optional<FoundOffset>{};
        if (found) return found;
        if (found.error().code != Errc::not_found) return s.failed(std::move(found).error(), "looking up a time");
        TM_TRYV(s.check_usable());
    }
    return s.failed(Error{Errc::io, "files of its segments are missing"}, "looking up a time");
}

Result<std::optional<FoundOffset>> Log::offset_of_max_timestamp(Isolation isolation) const {
    const auto& s = *state_;
    TM_TRYV(s.check_usable());
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        auto found = max_timestamp_offset(*s.published.get());
        if (found && *found && (*found)->offset >= s.bound_of(isolation)) return std::optional<FoundOffset>{};
        if (found) return found;
        if (found.error().code != Errc::not_found) return s.failed(std::move(found).error(), "looking up the largest timestamp");
        TM_TRYV(s.check_usable());
    }
    return s.failed(Error{Errc::io, "files of its segments are missing"}, "looking up the largest timestamp");
}

}  // namespace tidemark::storage
