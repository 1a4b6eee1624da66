// Opening a log, in the order of log-directory 7.2:
//
//  1. temporary files go; an interrupted swap is undone          6. no segment at all: one at the log start
//  2. or finished                                                7. the end; the recovery point
//  3. segments are opened; one without index is recovered        8. the last segment takes appends
//  4. after an unclean stop: all from the recovery point on      9. log start, leader epochs
//  5. an end below the checkpointed log start: start over       10., 11. producer snapshots and state
//
// 12. A segment that spans more offsets than its indexes can hold is split (7.5), and 3 starts again.
#include "storage/recovery.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "storage/checkpoint.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t tail_looked_at_max = 64 << 20;
constexpr std::size_t piece_bytes = 512;       // what a disk writes as a whole
constexpr std::size_t zeros_that_count = 8;    // as long as a base offset, which is never all zeros behind the first batch
constexpr int crc_tries_max = 4096;
constexpr std::size_t split_chunk_bytes = 1 << 20;

}  // namespace

// --- decisions ---------------------------------------------------------------------------------------------------------

Leftovers plan_leftovers(const std::vector<std::string>& names) {
    Leftovers plan;
    std::optional<Offset> smallest_cleaned;
    std::vector<std::pair<Offset, std::string>> swaps;
    for (const auto& name : names) {
        const auto parsed = parse_file_name(name);
        if (parsed.suffix == FileSuffix::deleted && !name.ends_with(".checkpoint.deleted")) plan.discard.push_back(name);
        if (parsed.suffix == FileSuffix::cleaned) {
            plan.discard.push_back(name);
            if (parsed.kind != FileKind::other && (!smallest_cleaned || parsed.offset < *smallest_cleaned)) smallest_cleaned = parsed.offset;
        }
        if (parsed.suffix == FileSuffix::swap && parsed.kind != FileKind::other) swaps.emplace_back(parsed.offset, name);
        if (parsed.suffix == FileSuffix::none && (name.ends_with(".tmp") || name == file_name::move_complete)) plan.discard.push_back(name);
    }
    std::sort(swaps.begin(), swaps.end());
    for (auto& [offset, name] : swaps) {
        const bool undone = smallest_cleaned && offset >= *smallest_cleaned;
        (undone ? plan.discard_first : plan.finish).push_back(std::move(name));
    }
    return plan;
}

std::vector<std::string> replaced_by_swap(const std::vector<std::string>& names, const std::vector<SwapRange>& ranges) {
    std::vector<std::string> replaced;
    if (ranges.empty()) return replaced;
    Offset from = ranges.front().base, to = ranges.front().next;
    for (const auto& range : ranges) {
        from = std::min(from, range.base);
        to = std::max(to, range.next);
    }
    for (const auto& name : names) {
        const auto parsed = parse_file_name(name);
        if (parsed.kind == FileKind::other || parsed.suffix == FileSuffix::swap) continue;
        // An empty segment's range is empty, and still the old indexes of its name are not its own.
        const bool is_index = parsed.kind != FileKind::log && parsed.kind != FileKind::snapshot;
        const bool shares_name = is_index && std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) { return range.base == parsed.offset; });
        if ((parsed.offset >= from && parsed.offset < to) || shares_name) replaced.push_back(name);
    }
    return replaced;
}

std::optional<record::BatchView> valid_batch_at(Bytes bytes, std::size_t at, Offset expected, int& crc_tries) {
    if (bytes.size() - at < record::v2_header_bytes || bytes[at + 16] != std::byte{2}) return std::nullopt;
    const auto parsed = record::BatchView::parse(bytes.subspan(at));
    if (!parsed || parsed->base_offset() < expected || parsed->base_offset() - expected > relative_offset_max) return std::nullopt;
    if (parsed->last_offset_delta() < 0 || (parsed->attributes() & ~0x7f) != 0) return std::nullopt;
    if (crc_tries-- <= 0 || !parsed->crc_matches()) return std::nullopt;
    return *parsed;
}

Damage classify_damage(Bytes tail, FilePosition position, Offset expected) {
    if (tail.empty()) return Damage::none;
    int crc_tries = crc_tries_max;
    std::size_t follows = 1;
    for (; follows < tail.size(); ++follows) {
        if (valid_batch_at(tail, follows, expected, crc_tries)) break;
    }
    if (follows >= tail.size()) return Damage::torn;
    // A disk that lost power gives back pieces that were never synced as zeros, and what lies behind them may have reached
    // it: nothing of that was acknowledged. Anything else has been damaged later.
    const auto begin = static_cast<std::size_t>(position.value);
    for (auto piece = begin / piece_bytes; piece * piece_bytes < begin + follows; ++piece) {
        const auto from = std::max(piece * piece_bytes, begin) - begin;
        const auto to = std::min((piece + 1) * piece_bytes, begin + follows) - begin;
        const auto part = tail.subspan(from, to - from);
        if (part.size() >= zeros_that_count && std::all_of(part.begin(), part.end(), [](std::byte b) { return b == std::byte{0}; })) return Damage::torn;
    }
    return Damage::damaged;
}

bool may_have_lost_records(const StopTraces& t) {
    if (t.clean) return false;
    return t.truncated_bytes > 0 || t.end < t.recovery_point || (t.high_watermark && t.end < *t.high_watermark) || t.machine_restarted;
}

// --- producer state ----------------------------------------------------------------------------------------------------

namespace {

Result<> apply_batch(ProducerState& state, const record::BatchView& batch, Segment* note_aborted_in) {
    if (batch.has_producer_id()) {
        ProducerChanges changes(state, record::Origin::replication);
        TM_TRYV(changes.add(batch));
        const auto completed = changes.completed();
        state.apply(std::move(changes));
        for (const auto& transaction : completed) {
            if (transaction.aborted && note_aborted_in != nullptr) {
                TM_TRYV(note_aborted_in->append_aborted({.producer_id = transaction.producer_id,
                                                         .first_offset = transaction.first_offset,
                                                         .last_offset = transaction.marker_offset,
                                                         .last_stable_offset = state.last_stable_offset_after(transaction)}));
            }
            state.complete(transaction);
        }
    }
    return {};
}

/// The batches of one segment from the one that holds `from` up to `end`.
Result<> replay_segment(ProducerState& state, const Segment& segment, Offset from, Offset end) {
    TM_TRY(const auto first, segment.find(from));
    if (!first) return {};
    TM_TRY(const auto file, segment.file());
    BatchWalk walk(*file, first->position, segment.bytes());
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch || batch->base_offset() >= end) return {};
        TM_TRYV(apply_batch(state, *batch, nullptr));
    }
}

/// How far back producers' earlier batches are looked for: five of a mebibyte each, a producer's usual limit, and some more.
constexpr std::int64_t recall_bytes[] = {1 << 20, 8 << 20};

/// Where the last `bytes` of a segment begin, as well as its index knows; its end when that knows nothing.
Result<FilePosition> tail_of(const Segment& segment, std::int64_t bytes) {
    if (bytes >= segment.bytes()) return FilePosition{0};
    TM_TRY(const auto entry, segment.index_first_at_or_after(FilePosition{segment.bytes() - bytes}));
    return entry ? entry->position : FilePosition{segment.bytes()};
}

/// D28: what the last `bytes` of the log say of producers' last batches.
Result<> recall_batches(ProducerState& state, const SegmentMap& segments, std::int64_t bytes) {
    auto first = segments.end();
    std::int64_t left = bytes;
    while (first != segments.begin() && left > 0) left -= (--first)->second->bytes();
    std::map<std::pair<ProducerId, ProducerEpoch>, std::vector<ProducerBatch>> seen;
    for (auto at = first; at != segments.end(); ++at) {
        const auto& segment = *at->second;
        TM_TRY(const auto from, tail_of(segment, at == first ? segment.bytes() + std::min<std::int64_t>(left, 0) : segment.bytes()));
        TM_TRY(const auto file, segment.file());
        BatchWalk walk(*file, from, segment.bytes());
        for (;;) {
            TM_TRY(const auto batch, walk.next());
            if (!batch) break;
            if (!batch->has_producer_id() || batch->is_control()) continue;
            auto& batches = seen[{batch->producer_id(), batch->producer_epoch()}];
            if (batches.size() == remembered_batches_max) batches.erase(batches.begin());
            batches.push_back(batch_of(*batch));
        }
    }
    for (const auto& [producer, batches] : seen) state.recall(producer.first, producer.second, batches);
    return {};
}

}  // namespace

Result<bool> rebuild_producers(ProducerState& state, ProducerSnapshots& snapshots, const SegmentMap& segments, const ProducerRebuild& r) {
    std::set<Offset> snapshot_at{r.end};
    for (auto segment = segments.rbegin(); segment != segments.rend() && snapshot_at.size() < 3; ++segment) snapshot_at.insert(segment->first);
    const auto take = [&](Offset at) {
        state.set_end_offset(at);
        // Without it the next load reads more: no reason not to open the log (a full disk).
        if (auto taken = snapshots.take(state); !taken) log_warning("[{}] no producer snapshot at {}: {}", r.partition_text, at.value, taken.error().message());
    };
    if (!snapshots.latest() && r.clean && r.trust_missing_snapshots) {
        for (const auto at : snapshot_at) take(at);
        return false;
    }
    const bool without_snapshot = r.clean && !snapshots.latest();
    const bool was_empty = state.empty() && state.end_offset() >= r.end;
    TM_TRYV(snapshots.truncate_and_reload(state, r.log_start, r.end, r.now, r.expiration_ms));
    bool read = false;
    if (r.end > state.end_offset() && !was_empty) {
        auto segment = segments.upper_bound(state.end_offset());
        if (segment != segments.begin()) --segment;
        for (; segment != segments.end() && segment->first < r.end; ++segment) {
            const auto from = std::max({segment->first, state.end_offset(), r.log_start});
            state.set_end_offset(from);
            if (snapshot_at.contains(segment->first)) take(from);
            read |= segment->second->bytes() > 0;
            TM_TRYV(replay_segment(state, *segment->second, from, r.end));
        }
    }
    take(r.end);
    return without_snapshot && read;
}

// --- the loader --------------------------------------------------------------------------------------------------------

namespace {

class Loader {
public:
    Loader(LogDirectory& directory, const OpenLogOptions& options, Log::State& state, RecoveryReport& report)
        : directory_(directory), options_(options), state_(state), report_(report), strict_(directory.options().differences.keep_damaged_tail),
          segment_options_(state.segment_options()) {}

    Result<> load();

private:
    io::FileSystem& files() const { return directory_.files(); }
    io::Path in_directory(std::string_view name) const { return io::join(options_.directory, name); }
    Result<> sync_names() const { return sync_names_in(files(), options_.directory); }
    Result<std::vector<std::string>> names() const;
    Result<> remove_files(const std::vector<std::string>& names) const;

    Result<> remove_leftovers();
    Result<> finish_swap(const std::vector<std::string>& swap_files);
    Result<SwapRange> range_of_swap(Offset base) const;
    Result<> load_segments();
    Result<> load_segment(Offset base, const Segment::Found&, bool unflushed, bool* was_split);
    Result<> recover_unflushed();
    /// Bytes that were cut.
    Result<std::int64_t> recover(Segment&, const SegmentMap& known);
    Result<> keep_damaged(Segment&, std::int64_t valid, Offset expected);
    Result<> keep_later_segments(Offset damaged);
    Result<bool> overflows(const Segment&) const;
    Result<> split(Segment&);
    Result<> settle_end();
    Result<> look_for_loss();
    Result<> load_epochs();
    Result<> load_producers();
    Result<std::set<Offset>> snapshots_on_disk() const;
    void delete_later(SegmentList gone, bool with_snapshots);
    Result<> create_segment(Offset base);
    Result<> remember(Segment&) const;

    LogDirectory& directory_;
    const OpenLogOptions& options_;
    Log::State& state_;
    RecoveryReport& report_;
    const bool strict_;
    const SegmentOptions segment_options_;
    SegmentMap segments_;
    LeaderEpochs epochs_;
    bool epochs_changed_ = false;
    Offset end_{};
};

Result<std::vector<std::string>> Loader::names() const {
    TM_TRY(const auto entries, files().list(options_.directory));
    std::vector<std::string> names;
    for (const auto& entry : entries) {
        if (!entry.is_directory) names.push_back(entry.name);
    }
    return names;
}

Result<> Loader::remove_files(const std::vector<std::string>& gone) const {
    for (const auto& name : gone) {
        auto removed = files().remove(in_directory(name));
        if (!removed && removed.error().code != Errc::not_found) return removed;
    }
    return {};
}

Result<> Loader::remove_leftovers() {
    TM_TRY(const auto found, names());
    const auto plan = plan_leftovers(found);
    if (!plan.discard_first.empty()) {
        TM_TRYV(remove_files(plan.discard_first));
        TM_TRYV(sync_names());  // a `.cleaned` that went earlier would let the next start take them for complete
    }
    TM_TRYV(remove_files(plan.discard));
    for (const auto& name : found) {
        if (!parse_damaged_file_name(name)) continue;
        report_.damaged_file = name;
        if (strict_ && !options_.serve_damaged) state_.damaged = true;
    }
    if (!plan.finish.empty()) TM_TRYV(finish_swap(plan.finish));
    return {};
}

Result<SwapRange> Loader::range_of_swap(Offset base) const {
    auto options = segment_options_;
    options.rebuild_missing_time_index = true;  // its time index is not asked for
    TM_TRY(const auto segment, Segment::open(directory_.open_files(), directory_.clock(), state_.path(), base, options, {}, FileSuffix::swap));
    // Headers only: a `.swap` was synced before it got its name. What does not end with a whole batch was damaged later.
    TM_TRY(const auto file, segment->file());
    HeaderWalk walk(*file, FilePosition{0}, segment->bytes());
    Offset next = base;
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) break;
        next = batch->last_offset + 1;
    }
    if (walk.position().value != segment->bytes()) {
        return Error{Errc::corrupt, segment_file_name(base, FileKind::log, FileSuffix::swap) + ": not a whole batch at " + std::to_string(walk.position().value)};
    }
    return SwapRange{base, next};
}

Result<> Loader::finish_swap(const std::vector<std::string>& swap_files) {
    std::vector<SwapRange> ranges;
    for (const auto& name : swap_files) {
        const auto parsed = parse_file_name(name);
        if (parsed.kind != FileKind::log) continue;
        TM_TRY(const auto range, range_of_swap(parsed.offset));
        ranges.push_back(range);
    }
    TM_TRY(const auto found, names());
    TM_TRYV(remove_files(replaced_by_swap(found, ranges)));
    TM_TRYV(sync_names());
    Offset last{-1};
    for (const auto& name : swap_files) {  // by base offset: one segment is certain before the next gets its names
        const auto parsed = parse_file_name(name);
        if (last.value >= 0 && parsed.offset != last) TM_TRYV(sync_names());
        last = parsed.offset;
        TM_TRYV(files().rename(in_directory(name), in_directory(segment_file_name(parsed.offset, parsed.kind))));
    }
    TM_TRYV(sync_names());
    log_info("[{}] finished an interrupted swap of {} files", options_.partition, swap_files.size());
    return {};
}

// --- segments ----------------------------------------------------------------------------------------------------------

Result<> Loader::remember(Segment& segment) const {
    if (options_.memory == nullptr) return {};
    const auto found = options_.memory->find(segment.base_offset());
    if (found == options_.memory->end()) return {};
    const auto& memory = found->second;
    TM_TRY(const auto modified, segment.modified());
    if (memory.bytes != segment.bytes() || memory.modified != modified) return {};
    segment.remember(memory.next_offset, memory.largest);
    if (memory.first_append) segment.set_first_append_time(*memory.first_append);
    if (memory.earliest_delete_horizon) segment.set_earliest_delete_horizon(*memory.earliest_delete_horizon);
    return {};
}

/// Whether it spans more offsets than its indexes can hold. Reads headers only.
Result<bool> Loader::overflows(const Segment& segment) const {
    TM_TRY(const auto file, segment.file());
    HeaderWalk walk(*file, FilePosition{0}, segment.bytes());
    for (;;) {
        const auto batch = walk.next();
        if (!batch && batch.error().code != Errc::corrupt) return batch.error();
        if (!batch || !*batch) return false;  // what is damaged is found when it is read
        if ((*batch)->last_offset - segment.base_offset() > relative_offset_max) return true;
    }
}

Result<> Loader::load_segment(Offset base, const Segment::Found& found, bool unflushed, bool* was_split) {
    TM_TRY(const auto segment, Segment::open(directory_.open_files(), directory_.clock(), state_.path(), base, segment_options_, found));
    TM_TRYV(remember(*segment));
    // D13: an index is rebuilt when it is needed. What lies beyond the recovery point is recovered in order, with what stands
    // before it checked first: after a power loss that may be as bad.
    bool consistent = found.offset_index || (options_.clean && segment_options_.check_indexes) || (strict_ && unflushed);
    if (consistent && found.transaction_index && !(strict_ && unflushed)) {
        const auto checked = segment->check_transaction_index();
        if (!checked && checked.error().code != Errc::corrupt) return checked;
        if (!checked) log_warning("[{}] {}: {}", options_.partition, segment->path().of(FileKind::transaction_index), checked.error().message());
        consistent = checked.has_value();
    }
    if (!consistent) {
        log_info("[{}] recovering the segment at {}: its indexes are missing or damaged", options_.partition, base.value);
        auto recovered = recover(*segment, segments_);
        if (!recovered && recovered.error().code == Errc::offset_overflow) {
            *was_split = true;
            return split(*segment);
        }
        if (!recovered) return std::move(recovered).error();
    } else if (!found.offset_index) {
        // Rebuilt when it is needed; but whether that is possible must be known now (7.5).
        TM_TRY(*was_split, overflows(*segment));
        if (*was_split) return split(*segment);
    }
    segments_.emplace(base, segment);
    return {};
}

Result<> Loader::load_segments() {
    for (;;) {
        segments_.clear();
        TM_TRY(const auto found, names());
        std::map<Offset, Segment::Found> logs;
        std::vector<std::pair<ParsedFile, std::string>> others;
        for (const auto& name : found) {
            const auto parsed = parse_file_name(name);
            if (parsed.suffix != FileSuffix::none) continue;
            if (parsed.kind == FileKind::log) logs.try_emplace(parsed.offset);
            else if (parsed.kind != FileKind::other && parsed.kind != FileKind::snapshot) others.emplace_back(parsed, name);
        }
        for (const auto& [parsed, name] : others) {
            const auto log = logs.find(parsed.offset);
            if (log == logs.end()) {
                log_warning("[{}] removing {}, which has no log", options_.partition, name);
                TM_TRYV(remove_files({name}));
                continue;
            }
            log->second.offset_index |= parsed.kind == FileKind::offset_index;
            log->second.time_index |= parsed.kind == FileKind::time_index;
            log->second.transaction_index |= parsed.kind == FileKind::transaction_index;
        }
        bool was_split = false;
        auto first_unflushed = logs.upper_bound(options_.recovery_point);
        if (first_unflushed != logs.begin()) --first_unflushed;
        for (const auto& [base, files_found] : logs) {
            const bool unflushed = !options_.clean && base >= first_unflushed->first;
            TM_TRYV(load_segment(base, files_found, unflushed, &was_split));
            if (was_split) break;
        }
        if (was_split) continue;
        if (!options_.clean) {
            auto recovered = recover_unflushed();
            if (!recovered && recovered.error().code == Errc::offset_overflow) continue;  // split by then
            if (!recovered) return recovered;
        }
        return {};
    }
}

Result<> Loader::create_segment(Offset base) {
    TM_TRY(auto segment, Segment::create(directory_.open_files(), directory_.clock(), state_.path(), base, segment_options_));
    segments_.emplace(base, std::move(segment));
    return sync_names();
}

void Loader::delete_later(SegmentList gone, bool with_snapshots) {
    std::vector<io::Path> snapshot_files;
    for (const auto& segment : gone) {
        segments_.erase(segment->base_offset());
        if (auto renamed = segment->rename_files(FileSuffix::none, FileSuffix::deleted); !renamed) log_warning("[{}] {}", options_.partition, renamed.error().message());
        const auto snapshot = in_directory(segment_file_name(segment->base_offset(), FileKind::snapshot));
        const auto deleted = snapshot + std::string(suffix_text(FileSuffix::deleted));
        if (with_snapshots && files().rename(snapshot, deleted)) snapshot_files.push_back(deleted);
    }
    directory_.post_after(std::chrono::milliseconds{options_.config->file_delete_delay_ms}, [gone, snapshot_files, &fs = files()] {
        for (const auto& segment : gone) {
            segment->close_files();
            (void)segment->remove_files();
        }
        for (const auto& file : snapshot_files) (void)fs.remove(file);
    });
}

// --- recovery of a segment (7.3) ---------------------------------------------------------------------------------------

Result<std::set<Offset>> Loader::snapshots_on_disk() const {
    std::set<Offset> offsets;
    TM_TRY(const auto found, names());
    for (const auto& name : found) {
        const auto parsed = parse_file_name(name);
        if (parsed.kind == FileKind::snapshot && parsed.suffix == FileSuffix::none) offsets.insert(parsed.offset);
    }
    return offsets;
}

Result<std::int64_t> Loader::recover(Segment& segment, const SegmentMap& known) {
    const auto now = directory_.clock().now();
    ProducerState producers;
    ProducerSnapshots snapshots(files(), state_.path());
    TM_TRY(auto on_disk, snapshots_on_disk());
    snapshots.set_found(std::move(on_disk));
    TM_TRYV(rebuild_producers(producers, snapshots, known,
                              {.log_start = options_.log_start,
                               .end = segment.base_offset(),
                               .now = now,
                               .expiration_ms = directory_.options().producer_expiration_ms,
                               .partition_text = options_.partition.topic}));
    TM_TRYV(segment.reset_indexes());
    TM_TRY(const auto file, segment.file());
    const auto physical = segment.bytes();
    BatchWalk walk(*file, FilePosition{0}, physical, 1 << 20);
    std::int64_t valid = 0;
    Offset expected = segment.base_offset();
    for (;;) {
        const auto batch = walk.next();
        if (!batch && batch.error().code != Errc::corrupt) return batch.error();
        if (!batch || !*batch || !(*batch)->crc_matches()) break;
        const auto& b = **batch;
        // No CRC covers the offsets: a disk can have lost these bytes. What a legacy wrapper begins with it does not say.
        if (strict_ && (b.is_legacy() ? b.last_offset() : b.base_offset()) < expected) break;
        const auto span = b.last_offset() - segment.base_offset();
        if (span < 0) return Error{Errc::corrupt, segment.path().name(FileKind::log) + ": offset " + std::to_string(b.last_offset().value) + " below the base"};
        if (span > relative_offset_max) return Error{Errc::offset_overflow, segment.path().name(FileKind::log)};
        TM_TRYV(segment.index_batch(walk.position(), {static_cast<std::int64_t>(b.size()), b.last_offset(), b.max_timestamp()}));
        if (!b.is_legacy() && b.leader_epoch() >= 0) {
            const auto latest = epochs_.latest();
            if (!latest || b.leader_epoch() > latest->epoch) epochs_changed_ |= epochs_.assign(b.leader_epoch(), b.base_offset());
        }
        TM_TRYV(apply_batch(producers, b, &segment));
        producers.set_end_offset(b.last_offset() + 1);
        valid = walk.next_position().value;
        expected = b.last_offset() + 1;
    }
    ++report_.segments_recovered;
    report_.record_bytes_read += physical;
    if (valid < physical) {
        log_warning("[{}] {}: no valid batch at {} of {}, cut there", options_.partition, segment.path().name(FileKind::log), valid, physical);
        if (strict_) TM_TRYV(keep_damaged(segment, valid, expected));
    }
    TM_TRYV(segment.finish_recovery(valid));
    // The cut is certain before anything is written behind it, so no old bytes can come back among new ones.
    if (valid < physical) TM_TRYV(segment.sync_log());
    if (auto taken = snapshots.take(producers); !taken) log_warning("[{}] no producer snapshot: {}", options_.partition, taken.error().message());
    report_.truncated_bytes += physical - valid;
    return physical - valid;
}

Result<> Loader::keep_damaged(Segment& segment, std::int64_t valid, Offset expected) {
    TM_TRY(const auto file, segment.file());
    const auto looked_at = std::min(segment.bytes() - valid, tail_looked_at_max);
    std::vector<std::byte> tail(static_cast<std::size_t>(looked_at));
    TM_TRY(const auto got, file->read(FilePosition{valid}, tail));
    if (classify_damage(Bytes(tail).first(got), FilePosition{valid}, expected) != Damage::damaged) return {};
    const auto name = damaged_file_name(segment.base_offset(), directory_.clock().now());
    TM_TRY(const auto kept, files().open(in_directory(name), io::OpenMode::create_truncated));
    for (std::int64_t at = valid; at < segment.bytes();) {
        tail.resize(static_cast<std::size_t>(std::min(segment.bytes() - at, std::int64_t{1} << 20)));
        TM_TRY(const auto part, file->read(FilePosition{at}, tail));
        if (part == 0) break;
        TM_TRYV(kept->write(FilePosition{at - valid}, Bytes(tail).first(part)));
        at += static_cast<std::int64_t>(part);
    }
    TM_TRYV(kept->sync());
    TM_TRYV(sync_names());
    TM_TRYV(keep_later_segments(segment.base_offset()));
    log_error("[{}] {} is damaged at {}, and valid batches follow: kept as {}; the partition serves nothing until it is repaired",
              options_.partition, segment.path().name(FileKind::log), valid, name);
    report_.damaged_file = name;
    state_.damaged = true;
    return {};
}

/// What lies behind the damage in later segments is kept in the same way: before the cut, or the next start would take them
/// for the log's own.
Result<> Loader::keep_later_segments(Offset damaged) {
    const auto now = directory_.clock().now();
    for (auto later = segments_.upper_bound(damaged); later != segments_.end(); later = segments_.erase(later)) {
        const auto base = later->first;
        later->second->close_files();
        TM_TRYV(files().rename(in_directory(segment_file_name(base, FileKind::log)), in_directory(damaged_file_name(base, now))));
        for (const auto kind : {FileKind::offset_index, FileKind::time_index, FileKind::transaction_index, FileKind::snapshot}) {
            TM_TRYV(remove_files({segment_file_name(base, kind)}));
        }
    }
    return sync_names();
}

Result<> Loader::recover_unflushed() {
    auto segment = segments_.upper_bound(options_.recovery_point);
    if (segment != segments_.begin()) --segment;
    std::vector<std::shared_ptr<Segment>> unflushed;
    for (; segment != segments_.end(); ++segment) unflushed.push_back(segment->second);
    for (std::size_t i = 0; i < unflushed.size(); ++i) {
        auto& current = *unflushed[i];
        auto recovered = recover(current, segments_);
        bool cut = recovered.has_value() && *recovered > 0;
        if (!recovered) {
            const auto code = recovered.error().code;
            if (code == Errc::offset_overflow) TM_TRYV(split(current));
            // Kafka empties the segment for an I/O error, too: its replicas have the records. Here the directory goes offline.
            if (code != Errc::unexpected_offset && (code != Errc::io || strict_)) return std::move(recovered).error();
            log_warning("[{}] the segment at {} cannot be recovered and is emptied: {}", options_.partition, current.base_offset().value, recovered.error().message());
            TM_TRYV(current.reset_indexes());
            TM_TRYV(current.finish_recovery(0));
            cut = true;
        }
        if (!cut) continue;
        SegmentList later;
        std::copy_if(unflushed.begin() + static_cast<std::ptrdiff_t>(i) + 1, unflushed.end(), std::back_inserter(later),
                     [&](const auto& s) { return segments_.contains(s->base_offset()); });
        if (!later.empty()) log_warning("[{}] {} segments behind the cut are deleted", options_.partition, later.size());
        delete_later(std::move(later), true);
        break;
    }
    return {};
}

// --- overflow (7.5) ----------------------------------------------------------------------------------------------------

Result<> Loader::split(Segment& old) {
    log_info("[{}] splitting the segment at {}: it spans more than 2147483647 offsets", options_.partition, old.base_offset().value);
    TM_TRY(const auto modified, old.modified());
    TM_TRY(const auto file, old.file());
    SegmentList parts;
    BatchWalk walk(*file, FilePosition{0}, old.bytes(), split_chunk_bytes);
    record::RecordReader reader;
    std::vector<std::byte> chunk;
    std::int64_t copied = 0;
    const auto write_chunk = [&]() -> Result<> {
        if (chunk.empty()) return {};
        if (auto written = parts.back()->append(chunk); !written) {
            // Whoever splits tries again afterwards: what does not get smaller must not look as if it could.
            if (written.error().code != Errc::offset_overflow) return written;
            return Error{Errc::corrupt, old.path().name(FileKind::log) + ": one batch spans more offsets than a segment can hold"};
        }
        copied += static_cast<std::int64_t>(chunk.size());
        chunk.clear();
        return {};
    };
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) break;
        if (parts.empty() || batch->last_offset() - parts.back()->base_offset() > relative_offset_max) {
            TM_TRYV(write_chunk());
            TM_TRY(const auto first, record::first_offset(*batch, reader));
            auto options = segment_options_;
            options.preallocate_bytes = 0;
            TM_TRY(auto part, Segment::create(directory_.open_files(), directory_.clock(), state_.path(), first, options, FileSuffix::cleaned));
            parts.push_back(std::move(part));
        }
        append_bytes(chunk, batch->bytes());
        if (chunk.size() >= split_chunk_bytes) TM_TRYV(write_chunk());
    }
    if (parts.empty()) return Error{Errc::corrupt, old.path().name(FileKind::log) + ": nothing to split"};
    TM_TRYV(write_chunk());
    if (parts.size() == 1 && parts.front()->base_offset() == old.base_offset()) {
        return Error{Errc::corrupt, old.path().name(FileKind::log) + ": its offsets cannot be split"};
    }
    if (copied != old.bytes()) return Error{Errc::corrupt, old.path().name(FileKind::log) + ": " + std::to_string(old.bytes() - copied) + " bytes were not copied"};
    for (const auto& part : parts) TM_TRYV(part->finish_cleaned(modified));
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        TM_TRYV((*part)->rename_files(FileSuffix::cleaned, FileSuffix::swap));
        TM_TRYV(sync_names());
    }
    TM_TRYV(old.rename_files(FileSuffix::none, FileSuffix::deleted));
    TM_TRYV(sync_names());
    for (const auto& part : parts) {
        TM_TRYV(part->rename_files(FileSuffix::swap, FileSuffix::none));
        TM_TRYV(sync_names());
    }
    old.close_files();
    return old.remove_files();
}

// --- the end, the start, epochs ----------------------------------------------------------------------------------------

Result<> Loader::settle_end() {
    if (!segments_.empty()) {
        TM_TRY(end_, segments_.rbegin()->second->next_offset());
        if (end_ < options_.log_start) {
            log_warning("[{}] the log ends at {}, below its start {}: all segments are deleted", options_.partition, end_.value, options_.log_start.value);
            SegmentList all;
            for (const auto& [base, segment] : segments_) all.push_back(segment);
            delete_later(std::move(all), false);
            epochs_changed_ |= epochs_.clear();
            TM_TRY(const auto stale, snapshots_on_disk());
            for (const auto offset : stale) TM_TRYV(remove_files({segment_file_name(offset, FileKind::snapshot)}));
        }
    }
    if (segments_.empty()) {
        TM_TRYV(create_segment(options_.log_start));
        end_ = options_.log_start;
    }
    return segments_.rbegin()->second->become_active(segment_options_);
}

Result<> Loader::look_for_loss() {
    if (options_.clean) return {};
    const auto& clock = directory_.clock();
    TM_TRY(const auto written, segments_.rbegin()->second->modified());
    report_.may_have_lost_records = may_have_lost_records({.clean = options_.clean,
                                                           .truncated_bytes = report_.truncated_bytes,
                                                           .end = end_,
                                                           .recovery_point = options_.recovery_point,
                                                           .high_watermark = options_.reached,
                                                           .machine_restarted = written < clock.now() - clock.since_boot().count()});
    return {};
}

Result<> Loader::load_epochs() {
    auto read = read_leader_epochs(files(), in_directory(file_name::leader_epoch_checkpoint));
    if (read) {
        if (*read) epochs_ = LeaderEpochs(**read);
        else TM_TRYV(files().open(in_directory(file_name::leader_epoch_checkpoint), io::OpenMode::create));  // empty: no epochs
        return {};
    }
    if (read.error().code != Errc::corrupt) return std::move(read).error();
    log_error("[{}] {}: {}; epochs are taken from the batches that are recovered", options_.partition, file_name::leader_epoch_checkpoint, read.error().message());
    epochs_changed_ = true;
    return {};
}

Result<> Loader::load_producers() {
    MutexLock lock(state_.append_mutex);
    TM_TRY(auto on_disk, snapshots_on_disk());
    state_.snapshots.set_found(std::move(on_disk));
    std::set<Offset> bases;
    for (const auto& [base, segment] : segments_) bases.insert(base);
    TM_TRYV(state_.snapshots.remove_strays(bases));
    // What a snapshot at the end says can wait until somebody asks.
    if (options_.clean && !options_.load_producers_now && state_.snapshots.latest() == end_) return {};
    TM_TRY(report_.replayed_without_snapshot,
           rebuild_producers(state_.producers, state_.snapshots, segments_,
                             {.log_start = Offset{state_.log_start.load()},
                              .end = end_,
                              .clean = options_.clean,
                              .trust_missing_snapshots = directory_.options().differences.trust_missing_snapshots,
                              .now = directory_.clock().now(),
                              .expiration_ms = directory_.options().producer_expiration_ms,
                              .partition_text = options_.partition.topic}));
    if (report_.replayed_without_snapshot) {
        log_warning("[{}] a clean stop left no producer snapshot: the log was read for its producers", options_.partition);
    }
    // A client that lost its connection sends up to five batches again; the snapshot would know the last one only.
    if (!options_.clean && directory_.options().differences.recall_batches) {
        for (const auto bytes : recall_bytes) {
            if (!state_.producers.may_lack_batches()) break;
            if (auto recalled = recall_batches(state_.producers, segments_, bytes); !recalled) {
                log_warning("[{}] producers' last batches: {}", options_.partition, recalled.error().message());
                break;
            }
        }
    }
    state_.producers_ready = true;
    return {};
}

Result<> Loader::load() {
    TM_TRYV(load_epochs());
    TM_TRYV(remove_leftovers());
    TM_TRYV(load_segments());
    TM_TRYV(settle_end());
    TM_TRYV(look_for_loss());
    const auto log_start = std::max(options_.log_start, segments_.begin()->first);
    const auto recovery_point = std::max(options_.clean ? end_ : std::min(options_.recovery_point, end_), log_start);
    epochs_changed_ |= epochs_.truncate_from_end(end_);
    epochs_changed_ |= epochs_.truncate_from_start(options_.log_start);
    state_.log_start = log_start.value;
    state_.log_end = end_.value;
    state_.recovery_point = recovery_point.value;
    state_.durable_end = recovery_point.value;
    state_.high_watermark = std::clamp(options_.high_watermark.value_or(end_), log_start, std::max(end_, log_start)).value;
    TM_TRYV(load_producers());
    auto topic_id = read_partition_metadata(files(), in_directory(file_name::partition_metadata));
    if (!topic_id && topic_id.error().code != Errc::corrupt) return std::move(topic_id).error();
    if (!topic_id) log_error("[{}] {}", options_.partition, topic_id.error().message());
    {
        MutexLock lock(state_.append_mutex);
        if (topic_id) state_.topic_id = *topic_id;
        state_.segments = segments_;
        state_.epochs = epochs_;
        state_.producers_as_of = directory_.clock().now();
        if (epochs_changed_) ++state_.epochs_changed;
        if (!options_.clean) ++state_.names_made;  // of a killed process: the directory may not have been synced since
        state_.publish_segments();
        state_.publish_end();
        if (state_.producers_ready) {
            state_.producers.forget_completed_below(Offset{state_.high_watermark.load()});
            state_.update_first_unstable();
        }
    }
    return state_.save_epochs();
}

Result<std::shared_ptr<Log>> make_log(LogDirectory& directory, const OpenLogOptions& options, RecoveryReport& report) {
    auto path = std::make_shared<DirectoryPath>(options.directory);
    auto state = std::make_unique<Log::State>(options.partition, directory, path);
    state->config.put(options.config);
    Loader loader(directory, options, *state, report);
    if (auto loaded = loader.load(); !loaded) return in_context(std::move(loaded).error(), options.partition.text());
    auto& s = *state;
    auto log = std::make_shared<Log>(std::move(state));
    s.log = log;
    return log;
}

}  // namespace

Result<std::shared_ptr<Log>> open_log(LogDirectory& directory, const OpenLogOptions& options, RecoveryReport* report) {
    RecoveryReport ignored;
    return make_log(directory, options, report != nullptr ? *report : ignored);
}

Result<std::shared_ptr<Log>> create_log(LogDirectory& directory, const OpenLogOptions& options, std::optional<Uuid> topic_id) {
    auto& files = directory.files();
    TM_TRYV(files.create_directory(options.directory));
    if (topic_id) TM_TRYV(write_partition_metadata(files, io::join(options.directory, file_name::partition_metadata), *topic_id));
    auto fresh = options;
    fresh.clean = true;
    fresh.load_producers_now = true;
    TM_TRY(auto log, open_log(directory, fresh));
    TM_TRYV(sync_names_in(files, std::string(io::parent_of(options.directory))));
    return log;
}

}  // namespace tidemark::storage
