#include "storage/log_move.h"

#include <algorithm>

#include "base/log.h"
#include "storage/checkpoint.h"
#include "storage/recovery.h"
#include "storage/segments_file.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t piece_bytes = 1 << 20;
constexpr std::int64_t rest_bytes_max = 256 << 10;   // left for when appends have to wait
constexpr int rounds_max = 20;                       // whoever appends faster than is copied waits after these

}  // namespace

LogMove::LogMove(std::shared_ptr<Log> log, Target target, std::shared_ptr<MoveProgress> progress, std::function<bool()> is_cancelled)
    : log_(std::move(log)), target_(std::move(target)), progress_(std::move(progress)), is_cancelled_(std::move(is_cancelled)) {}

LogMove::~LogMove() {
    if (copy_ != nullptr) copy_->mark_closed();
    log_->state().moving.store(false, std::memory_order_release);
}

Error LogMove::in_target(Error error, std::string_view doing) const {
    return target_.directory.handled(in_context(std::move(error), target_.future), "[" + log_->partition().text() + "] " + std::string(doing));
}

// --- the copy ----------------------------------------------------------------------------------------------------------

Result<> LogMove::copy() {
    auto& s = log_->state();
    TM_TRYV(s.check_usable());
    {
        MutexLock structure(s.structure_mutex);
        s.moving.store(true, std::memory_order_release);
        MutexLock lock(s.append_mutex);
        truncations_ = s.truncations;
    }
    TM_TRYV(copy_segments());
    TM_TRYV(open_copy());
    for (int round = 0; round < rounds_max; ++round) {
        TM_TRYV(append_missing());
        TM_TRY(const auto rest, log_->available(std::max(copy_->log_end_offset(), log_->log_start_offset()), rest_bytes_max, Isolation::log_end));
        if (rest < rest_bytes_max) break;
    }
    return copy_->flush(true);
}

Result<> LogMove::copy_segments() {
    auto& files = target_.directory.files();
    const auto list = log_->segments();
    if (auto made = io::create_directories(files, target_.future); !made) return in_target(std::move(made).error(), "making a directory to move to");
    for (const auto& segment : *list) TM_TRYV(copy_segment(*segment));
    std::vector<EpochStart> epochs;
    {
        MutexLock lock(log_->state().append_mutex);
        epochs = log_->state().epochs.entries();
    }
    const auto written = [&]() -> Result<> {
        if (const auto id = log_->topic_id(); !id.is_zero()) TM_TRYV(write_partition_metadata(files, io::join(target_.future, file_name::partition_metadata), id));
        return write_leader_epochs(files, io::join(target_.future, file_name::leader_epoch_checkpoint), epochs);
    }();
    if (!written) return in_target(written.error(), "moving");
    return {};
}

Result<> LogMove::copy_segment(const Segment& segment) {
    auto& files = target_.directory.files();
    const auto bytes = segment.bytes();
    TM_TRY(const auto from, segment.file());
    TM_TRY(const auto modified, segment.modified());
    const auto path = io::join(target_.future, segment_file_name(segment.base_offset(), FileKind::log));
    auto to = files.open(path, io::OpenMode::create_truncated);
    if (!to) return in_target(std::move(to).error(), "moving");
    std::vector<std::byte> piece(static_cast<std::size_t>(std::min(bytes, piece_bytes)));
    for (std::int64_t at = 0; at < bytes;) {
        if (is_cancelled_()) return Error{Errc::aborted, "the move was called off"};
        TM_TRY(const auto got, from->read(FilePosition{at}, MutableBytes(piece).first(static_cast<std::size_t>(std::min(bytes - at, piece_bytes)))));
        if (got == 0) return Error{Errc::corrupt, segment.log_path() + " is shorter than it was"};
        if (auto written = (*to)->write(FilePosition{at}, Bytes(piece).first(got)); !written) return in_target(std::move(written).error(), "moving");
        at += static_cast<std::int64_t>(got);
        progress_->bytes += static_cast<std::int64_t>(got);
    }
    const auto finished = [&]() -> Result<> {
        TM_TRYV((*to)->sync());
        return files.set_modified(path, modified);
    }();
    if (!finished) return in_target(finished.error(), "moving");
    return {};
}

Result<> LogMove::open_copy() {
    auto& files = target_.directory.files();
    if (auto synced = sync_names_in(files, target_.future); !synced) return in_target(std::move(synced).error(), "moving");
    if (auto synced = sync_names_in(files, io::Path{io::parent_of(target_.future)}); !synced) return in_target(std::move(synced).error(), "moving");
    const auto memory = memory_of(*log_);
    RecoveryReport report;
    auto opened = open_log(target_.directory,
                           {.partition = log_->partition(),
                            .directory = target_.future,
                            .config = log_->config(),
                            .log_start = log_->log_start_offset(),
                            .load_producers_now = true,
                            .memory = &memory},
                           &report);
    if (!opened) return in_target(std::move(opened).error(), "opening its copy");
    copy_ = *std::move(opened);
    if (report.truncated_bytes > 0 || copy_->state().damaged) return Error{Errc::corrupt, log_->partition().text() + " cannot be moved: some of its batches are damaged"};
    return {};
}

/// Up to the log's end as it is when this begins.
Result<> LogMove::append_missing() {
    const auto end = log_->log_end_offset();
    const auto bytes_max = std::min(piece_bytes, log_->config()->segment_bytes);
    std::vector<std::byte> bytes;
    while (copy_->log_end_offset() < end) {
        if (is_cancelled_()) return Error{Errc::aborted, "the move was called off"};
        if (copy_->log_end_offset() < log_->log_start_offset()) TM_TRYV(copy_->truncate_fully_and_start_at(log_->log_start_offset()));
        TM_TRY(const auto slice, log_->read({.from = copy_->log_end_offset(), .bytes_max = bytes_max, .isolation = Isolation::log_end}));
        if (slice.bytes == 0) break;  // a gap up to the end
        bytes.resize(static_cast<std::size_t>(slice.bytes));
        TM_TRY(const auto got, slice.file->read(slice.position, bytes));
        TM_TRYV(roll_copy_to(slice.segment->base_offset()));
        TM_TRYV(copy_->append(MutableBytes(bytes).first(got), {.origin = Origin::replication}));
        progress_->bytes += static_cast<std::int64_t>(got);
        progress_->end_offset = copy_->log_end_offset().value;
    }
    progress_->end_offset = copy_->log_end_offset().value;
    return {};
}

/// Segments begin where those of the log do.
Result<> LogMove::roll_copy_to(Offset base) {
    auto& c = copy_->state();
    MutexLock lock(c.append_mutex);
    if (base <= c.active()->base_offset() || base < copy_->log_end_offset()) return {};
    return c.roll(base);
}

// --- the exchange ------------------------------------------------------------------------------------------------------

Result<> LogMove::finish() {
    auto& s = log_->state();
    MutexLock structure(s.structure_mutex);
    MutexLock flushing(s.flush_mutex);
    MutexLock naming(s.names_mutex);
    MutexLock saving(s.epochs_mutex);
    MutexLock appending(s.append_mutex);
    TM_TRYV(s.check_usable());
    if (s.truncations != truncations_) return Error{Errc::aborted, "the log was truncated while it was copied"};
    TM_TRYV(s.load_producers());
    TM_TRYV(append_missing());
    TM_TRYV(complete_copy(s));
    TM_TRYV(exchange_names(s));
    exchange_segments(s);
    return {};
}

/// What the records alone do not tell: producers whose records are gone, the log start, times.
Result<> LogMove::complete_copy(Log::State& s) {
    auto& c = copy_->state();
    {
        MutexLock lock(c.append_mutex);
        c.raise_log_start(log_->log_start_offset());
        c.producers = s.producers;
        c.snapshots.set_last(std::max(c.producers.end_offset() - 1, Offset{0}));
        if (auto taken = c.snapshots.take(c.producers); !taken) return in_target(std::move(taken).error(), "moving");
        for (const auto& [base, segment] : c.segments) {
            const auto original = s.segments.find(base);
            if (original == s.segments.end()) continue;
            if (const auto time = original->second->first_append_time()) segment->set_first_append_time(*time);
        }
    }
    TM_TRYV(copy_->flush(true));
    if (auto said = io::replace_content(c.files(), io::join(target_.future, file_name::move_complete), {}); !said) return in_target(std::move(said).error(), "moving");
    return {};
}

Result<> LogMove::exchange_names(Log::State& s) {
    auto& files = s.files();
    const auto from = s.path()->get();
    const auto sync_parent = [&](const io::Path& of) { return sync_names_in(files, io::Path{io::parent_of(of)}); };
    TM_TRYV(files.rename(from, target_.deleted));
    // From here on the copy is the log. While the old name may come back, the copy says that it is the one.
    auto gone = sync_parent(from);
    if (!gone) s.directory().fail(gone.error(), "moving " + s.partition.text());
    if (auto renamed = copy_->move_directory(target_.live); !renamed) {
        if (gone && files.rename(target_.deleted, from) && sync_parent(from)) return in_target(std::move(renamed).error(), "moving");
        s.path()->set(target_.deleted);
        s.directory().fail(renamed.error(), "moving " + s.partition.text());
        return in_target(std::move(renamed).error(), "moving");
    }
    s.path()->set(target_.deleted);
    if (auto synced = sync_parent(target_.live); !synced) target_.directory.fail(synced.error(), "moving " + s.partition.text());
    else if (gone) (void)files.remove(io::join(target_.live, file_name::move_complete));
    return {};
}

void LogMove::exchange_segments(Log::State& s) {
    auto& c = copy_->state();
    MutexLock lock(c.append_mutex);
    const auto since = s.directory().clock().since_boot();
    for (const auto& [base, segment] : s.segments) segment->mark_deleted(since);
    s.segments = std::exchange(c.segments, {});
    s.snapshots = c.snapshots;
    ++s.epochs_changed;
    s.recovery_point = std::max(s.recovery_point.load(), copy_->recovery_point().value);
    s.durable_end = std::max(s.durable_end.load(), s.log_end.load());
    s.log_directory.store(&target_.directory, std::memory_order_release);
    {
        MutexLock place(s.path_mutex);
        s.own_path = c.path();
    }
    {
        MutexLock positions(s.position_mutex);
        s.stable = {};
    }
    s.publish_segments();
    s.publish_end();
    c.publish_segments();  // none
}

}  // namespace tidemark::storage
