// What takes segments out of a log or puts others in: retention, the log start, the cleaner's swap, truncation, close.
// Segments leave the map and the readers' list first, under the append lock; their files follow without it, held together
// by structure_mutex. Crash safety is that of the file names: log-directory 5, 6 and D17.
#include <algorithm>

#include "base/log.h"
#include "storage/delete_records.h"
#include "storage/log.h"
#include "storage/log_state.h"
#include "storage/recovery.h"

namespace tidemark::storage {

// --- deletion ----------------------------------------------------------------------------------------------------------

void Log::State::raise_log_start(Offset to) {
    if (to.value <= log_start.load()) return;
    log_start.store(to.value, std::memory_order_release);
    if (high_watermark.load() < to.value) high_watermark.store(to.value, std::memory_order_release);
    if (recovery_point.load() < to.value) recovery_point.store(to.value, std::memory_order_release);
    if (epochs.truncate_from_start(to)) ++epochs_changed;
    if (!producers_ready) return;
    snapshots.log_start_raised(producers, to);
    update_first_unstable();
}

std::vector<io::Path> Log::State::take_out(const SegmentList& gone) {
    std::vector<io::Path> deleted;
    const auto since = directory().clock().since_boot();
    for (const auto& segment : gone) {
        segments.erase(segment->base_offset());
        segment->mark_deleted(since);
        const auto marked = snapshots.mark_deleted(segment->base_offset());
        if (marked && *marked) deleted.push_back(io::join(path()->get(), segment_file_name(segment->base_offset(), FileKind::snapshot, FileSuffix::deleted)));
    }
    MutexLock lock(position_mutex);
    stable = {};
    return deleted;
}

Result<> Log::State::rename_files(Segment& segment, FileSuffix from, FileSuffix to) {
    return directory().with_reserve([&] { return segment.rename_files(from, to); });
}

Result<> Log::State::delete_files(SegmentList gone, std::vector<io::Path> snapshot_files) {
    if (gone.empty()) return {};
    for (const auto& segment : gone) {
        if (auto renamed = rename_files(*segment, FileSuffix::none, FileSuffix::deleted); !renamed && renamed.error().code != Errc::not_found) return renamed;
        // The earlier name goes for certain first: neither a value may come back whose tombstone has gone, nor a hole be left.
        TM_TRYV(sync_names_in(files(), path()->get()));
    }
    unlink_later(std::move(gone), std::move(snapshot_files));
    return {};
}

void Log::State::unlink_later(SegmentList gone, std::vector<io::Path> snapshot_files) {
    auto& where = directory();   // they stay there when the log moves
    where.post_after(std::chrono::milliseconds{config.get()->file_delete_delay_ms},
                         [gone = std::move(gone), snapshot_files = std::move(snapshot_files), &where, partition = partition] {
                             const auto done = [&](Result<> removed) {
                                 if (removed || removed.error().code == Errc::not_found) return;
                                 log_warning("[{}] {}", partition, where.handled(std::move(removed).error(), "unlinking deleted files").message());
                             };
                             for (const auto& segment : gone) {
                                 segment->close_files();
                                 done(segment->remove_files());
                             }
                             for (const auto& file : snapshot_files) done(where.files().remove(file));
                         });
}

Result<> Log::delete_oldest_segments(std::size_t count, std::string_view reason) {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    MutexLock structure(s.structure_mutex);
    SegmentList gone;
    std::vector<io::Path> snapshot_files;
    Offset start{};
    std::int64_t bytes = 0;
    {
        MutexLock lock(s.append_mutex);
        count = std::min(count, s.segments.size());
        if (count == s.segments.size()) {
            if (s.active()->bytes() == 0) --count;  // an empty active segment stays
            else TM_TRYV(s.roll(log_end_offset()));
        }
        auto next = s.segments.begin();
        for (; gone.size() < count; ++next) {
            gone.push_back(next->second);
            bytes += next->second->bytes();
        }
        if (gone.empty()) return {};
        start = next->first;
        if (start > high_watermark()) {
            return Error{Errc::invalid_argument, "[" + s.partition.text() + "] the segments before " + std::to_string(start.value) +
                                                     " reach above the high watermark " + std::to_string(high_watermark().value)};
        }
        s.raise_log_start(start);  // before the files: nobody may read what is about to go
        snapshot_files = s.take_out(gone);
        s.publish_segments();
    }
    log_info("[{}] deleted {} segments with {} bytes, {}; the log starts at {}", s.partition, gone.size(), bytes, reason, log_start_offset().value);
    s.tell_start_moved();
    const auto deleted = [&]() -> Result<> {
        TM_TRYV(s.sync_names());  // what follows is there for certain before they go, or the log would lose its end
        return s.delete_files(std::move(gone), std::move(snapshot_files));
    }();
    if (!deleted) return s.failed(deleted.error(), "deleting segments");
    return {};
}

namespace {

Result<> move_log_start(Log::State& s, std::optional<Offset> before) {
    TM_TRYV(s.check_usable());
    Offset start{};
    {
        MutexLock lock(s.append_mutex);
        TM_TRYV(s.load_producers());
        const Offset high_watermark{s.high_watermark.load()};
        const auto to = before.value_or(high_watermark);
        if (to.value < 0 || to > high_watermark) {
            return Error{Errc::offset_out_of_range, "[" + s.partition.text() + "] records before " + std::to_string(to.value) + " cannot be deleted, the high watermark is " + std::to_string(high_watermark.value)};
        }
        if (to.value <= s.log_start.load()) return {};
        s.raise_log_start(to);
        start = to;
    }
    log_info("[{}] the log starts at {}: records deleted by request", s.partition, start.value);
    s.tell_start_moved();
    return {};
}

}  // namespace

std::vector<Result<Offset>> delete_records(const std::vector<RecordDeletion>& deletions) {
    struct Checkpoint {
        LogDirectory* directory;
        Result<> written;
    };
    std::vector<Checkpoint> checkpoints;
    std::vector<std::size_t> checkpoint_of;       // each deletion's place in them
    std::vector<Result<Offset>> results;
    for (const auto& [log, before] : deletions) {
        auto moved = move_log_start(log->state(), before);
        results.push_back(moved ? Result<Offset>(log->log_start_offset()) : Result<Offset>(std::move(moved).error()));
        // Also where it had moved before: the request that moved it may have failed below, or not be done yet.
        auto* const directory = &log->log_dir();
        const auto found = std::ranges::find(checkpoints, directory, &Checkpoint::directory);
        checkpoint_of.push_back(static_cast<std::size_t>(found - checkpoints.begin()));
        if (found == checkpoints.end()) checkpoints.push_back({directory, {}});
    }
    // They were asked to be forgotten: a crash must not bring them back.
    for (auto& [directory, written] : checkpoints) {
        written = directory->write_now(LogDirectory::Checkpoint::log_starts);
        if (!written) written = directory->handled(std::move(written).error(), "deleting records");
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto& [directory, written] = checkpoints[checkpoint_of[i]];
        if (!results[i]) continue;
        if (!written) {
            results[i] = written.error();
        } else if (auto& now = deletions[i].log->log_dir(); &now != directory) {  // it moved meanwhile
            if (auto again = now.write_now(LogDirectory::Checkpoint::log_starts); !again) results[i] = now.handled(std::move(again).error(), "deleting records");
        }
    }
    return results;
}

Result<Offset> Log::delete_records_before(std::optional<Offset> offset) { return delete_records({{shared_from_this(), offset}}).front(); }

// --- the cleaner's swap ------------------------------------------------------------------------------------------------

Result<std::shared_ptr<Segment>> Log::create_cleaned_segment(Offset base) const {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    auto options = s.segment_options();
    options.preallocate_bytes = 0;  // it is as long as what stays
    auto created = Segment::create(s.directory().open_files(), s.directory().clock(), s.path(), base, options, FileSuffix::cleaned);
    if (!created) return s.failed(std::move(created).error(), "making a cleaned segment");
    return created;
}

void Log::discard_cleaned_segment(const std::shared_ptr<Segment>& segment) const {
    segment->close_files();
    if (auto removed = segment->remove_files(); !removed) log_warning("[{}] {}", state_->partition, removed.error().message());
}

Result<> Log::replace_segments(SegmentList cleaned, const SegmentList& replaced) {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    MutexLock structure(s.structure_mutex);
    if (s.moving || cleaned.front()->path().directory() != s.path()->get()) {
        return Error{Errc::aborted, "[" + s.partition.text() + "] the log moves to another directory while it was cleaned"};
    }
    const auto sync_names = [&] { return sync_names_in(s.files(), s.path()->get()); };
    std::sort(cleaned.begin(), cleaned.end(), [](const auto& a, const auto& b) { return a->base_offset() < b->base_offset(); });
    TM_TRY(const auto end, cleaned.back()->next_offset());
    if (end > log_end_offset()) return Error{Errc::aborted, "[" + s.partition.text() + "] the log was truncated while it was cleaned"};

    // 1. `.cleaned` → `.swap`, the last first. While a `.cleaned` is left, recovery undoes; afterwards it finishes the swap.
    //    Each is certain before the next: a disk may forget names in any order.
    const auto swapped = [&]() -> Result<> {
        for (auto segment = cleaned.rbegin(); segment != cleaned.rend(); ++segment) {
            TM_TRYV(s.rename_files(**segment, FileSuffix::cleaned, FileSuffix::swap));
            TM_TRYV(sync_names());
        }
        return {};
    }();
    if (!swapped) {
        for (auto segment = cleaned.rbegin(); segment != cleaned.rend(); ++segment) discard_cleaned_segment(*segment);
        return s.failed(swapped.error(), "swapping in cleaned segments");
    }

    // 2. Readers see the new ones.
    SegmentList gone;
    std::vector<io::Path> snapshot_files;
    {
        MutexLock lock(s.append_mutex);
        for (const auto& old : replaced) {
            const auto found = s.segments.find(old->base_offset());
            if (found != s.segments.end() && found->second == old) gone.push_back(old);
        }
        // The snapshot at a base that goes on stays.
        SegmentList bases_gone;
        for (const auto& old : gone) {
            const bool goes_on = std::any_of(cleaned.begin(), cleaned.end(), [&](const auto& c) { return c->base_offset() == old->base_offset(); });
            if (!goes_on) bases_gone.push_back(old);
        }
        snapshot_files = s.take_out(bases_gone);
        const auto since = s.directory().clock().since_boot();
        for (const auto& old : gone) old->mark_deleted(since);
        for (const auto& segment : cleaned) s.segments[segment->base_offset()] = segment;
        s.publish_segments();
    }

    // 3. The old ones leave, oldest first. 4. `.swap` → final names.
    const auto finished = [&]() -> Result<> {
        TM_TRYV(s.delete_files(gone, std::move(snapshot_files)));
        for (const auto& segment : cleaned) {
            TM_TRYV(s.rename_files(*segment, FileSuffix::swap, FileSuffix::none));
            TM_TRYV(sync_names());
        }
        return {};
    }();
    if (!finished) return s.failed(finished.error(), "swapping in cleaned segments");
    return {};
}

// --- truncation --------------------------------------------------------------------------------------------------------

Result<> Log::State::rebuild_producers(Offset start, Offset upto, Timestamp now) {
    TM_TRYV(storage::rebuild_producers(producers, snapshots, segments,
                                       {.log_start = start,
                                        .end = upto,
                                        .now = now,
                                        .expiration_ms = directory().options().producer_expiration_ms,
                                        .partition_text = partition.topic}));
    return {};
}

Result<> Log::State::start_over_at(Offset offset) {
    TM_TRY(auto segment, Segment::create(directory().open_files(), directory().clock(), path(), offset, segment_options()));
    ++names_made;
    ++truncations;
    segments.clear();
    segments.emplace(offset, std::move(segment));
    if (epochs.clear()) ++epochs_changed;
    producers = {};
    TM_TRYV(snapshots.remove_all());
    snapshots.set_last(Offset{0});
    producers.set_end_offset(offset);
    producers_ready = true;
    log_start.store(offset.value, std::memory_order_release);
    log_end.store(offset.value, std::memory_order_release);
    high_watermark.store(offset.value, std::memory_order_release);
    recovery_point.store(std::min(recovery_point.load(), offset.value));
    durable_end.store(std::min(durable_end.load(), offset.value));
    first_unstable.store(-1, std::memory_order_release);
    publish_segments();
    publish_end();
    return {};
}

Result<> Log::truncate_fully_and_start_at(Offset offset) {
    if (offset.value < 0) return Error{Errc::invalid_argument, "truncation to " + std::to_string(offset.value)};
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    {
        MutexLock structure(s.structure_mutex);
        SegmentList gone;
        {
            MutexLock lock(s.append_mutex);
            for (const auto& [base, segment] : s.segments) gone.push_back(segment);
            s.recovery_point.store(std::min(s.recovery_point.load(), offset.value));
        }
        TM_TRYV(s.directory().write_now(LogDirectory::Checkpoint::recovery_points));
        MutexLock lock(s.append_mutex);
        gone.clear();
        for (const auto& [base, segment] : s.segments) gone.push_back(segment);
        auto snapshot_files = s.take_out(gone);
        for (const auto& segment : gone) {  // before the new one may need the same name
            if (auto renamed = s.rename_files(*segment, FileSuffix::none, FileSuffix::deleted); !renamed) return s.failed(std::move(renamed).error(), "truncating");
        }
        if (auto started = s.start_over_at(offset); !started) return s.failed(std::move(started).error(), "truncating");
        if (auto synced = sync_names_in(s.files(), s.path()->get()); !synced) return s.failed(std::move(synced).error(), "truncating");
        s.unlink_later(std::move(gone), std::move(snapshot_files));
    }
    log_info("[{}] truncated fully, the log starts over at {}", s.partition, offset.value);
    s.tell_start_moved();
    return {};
}

Result<> Log::truncate_to(Offset offset) {
    if (offset.value < 0) return Error{Errc::invalid_argument, "truncation to " + std::to_string(offset.value)};
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    Offset first_base{};
    {
        MutexLock lock(s.append_mutex);
        if (offset >= log_end_offset()) {
            if (s.epochs.truncate_from_end(log_end_offset())) ++s.epochs_changed;
            return {};
        }
        first_base = s.segments.begin()->first;
        if (first_base <= offset) s.recovery_point.store(std::min(s.recovery_point.load(), offset.value));
    }
    if (first_base > offset) return truncate_fully_and_start_at(offset);
    TM_TRYV(s.directory().write_now(LogDirectory::Checkpoint::recovery_points));  // lowered first: what is written over is not trusted after a crash

    MutexLock structure(s.structure_mutex);
    SegmentList gone;
    std::vector<io::Path> snapshot_files;
    {
        MutexLock lock(s.append_mutex);
        for (auto segment = s.segments.upper_bound(offset); segment != s.segments.end(); ++segment) gone.push_back(segment->second);
        snapshot_files = s.take_out(gone);
        const auto last = s.active();
        TM_TRYV(last->become_active(s.segment_options()));
        ++s.truncations;
        const auto cut = last->truncate_to(offset);
        if (!cut) return s.failed(cut.error(), "truncating");
        // The cut is certain before anything is written behind it, so no old bytes can come back among new ones.
        if (auto synced = last->sync_log(); !synced) return s.failed(std::move(synced).error(), "truncating");
        s.log_end.store(offset.value, std::memory_order_release);
        s.durable_end.store(std::min(s.durable_end.load(), offset.value));
        s.recovery_point.store(std::min(s.recovery_point.load(), offset.value));
        if (s.epochs.truncate_from_end(offset)) ++s.epochs_changed;
        s.log_start.store(std::min(s.log_start.load(), offset.value), std::memory_order_release);
        s.high_watermark.store(std::min(s.high_watermark.load(), offset.value), std::memory_order_release);
        s.publish_segments();
        s.publish_end();
        if (auto rebuilt = s.rebuild_producers(log_start_offset(), offset, s.directory().clock().now()); !rebuilt) return s.failed(std::move(rebuilt).error(), "truncating");
        s.producers_ready = true;
        s.update_first_unstable();
    }
    log_info("[{}] truncated to {}", s.partition, offset.value);
    std::ranges::reverse(gone);  // from the end: a crash in between leaves no hole
    if (auto deleted = s.delete_files(std::move(gone), std::move(snapshot_files)); !deleted) return s.failed(std::move(deleted).error(), "truncating");
    if (auto saved = s.save_epochs(); !saved) return s.failed(std::move(saved).error(), "truncating");
    s.tell_end_moved();
    return {};
}

// --- background, close -------------------------------------------------------------------------------------------------

void Log::run_background_work() {
    auto& s = *state_;
    const auto list = s.published.get();
    for (const auto& segment : *list) {
        if (!segment->wants_time_index() || !s.check_usable()) continue;
        MutexLock structure(s.structure_mutex);
        if (segment->deleted_since()) continue;
        if (auto rebuilt = segment->rebuild_time_index(); !rebuilt) (void)s.failed(std::move(rebuilt).error(), "rebuilding a time index");
        else log_info("[{}] rebuilt the time index of the segment at {}", s.partition, segment->base_offset().value);
    }
}

Result<> Log::move_directory(const io::Path& to) {
    auto& s = *state_;
    MutexLock structure(s.structure_mutex);
    MutexLock lock(s.append_mutex);
    TM_TRYV(s.files().rename(s.path()->get(), to));
    s.path()->set(to);
    return {};
}

void Log::mark_closed() {
    auto& s = *state_;
    s.closed.store(true, std::memory_order_release);
    const auto since = s.directory().clock().since_boot();
    const auto list = segments();
    for (const auto& segment : *list) segment->mark_deleted(since);
}

Result<> Log::close() {
    auto& s = *state_;
    TM_TRYV(s.directory().check());
    if (s.closed) return Error{Errc::not_found, s.partition.text() + " is closed"};
    MutexLock structure(s.structure_mutex);
    {
        MutexLock lock(s.append_mutex);
        if (auto sealed = s.active()->become_inactive(); !sealed) return s.failed(std::move(sealed).error(), "closing");
        if (s.producers_ready) {
            if (auto taken = s.snapshots.take(s.producers); !taken) return s.failed(std::move(taken).error(), "closing");
        }
    }
    TM_TRYV(s.flush_to(log_end_offset(), true));
    s.closed.store(true, std::memory_order_release);
    const auto list = segments();
    for (const auto& segment : *list) segment->close_files();
    return {};
}

}  // namespace tidemark::storage
