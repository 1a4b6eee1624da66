#include "storage/segment.h"

#include <algorithm>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/log.h"

namespace tidemark::storage {
namespace {

constexpr std::array files_of_a_segment = {FileKind::log, FileKind::offset_index, FileKind::time_index, FileKind::transaction_index};

/// Where appends and rebuilds put index entries (append-and-read 6): `entry(batch, largest so far)` is called for each batch
/// that more than an interval of bytes came before.
class IndexPoints {
public:
    explicit IndexPoints(std::int64_t interval, Offset base) : interval_(interval), largest_{no_timestamp, base} {}

    template <class OnPoint>
    Result<> add(const BatchPosition& batch, OnPoint entry) {
        if (batch.max_timestamp > largest_.timestamp) largest_ = {batch.max_timestamp, batch.last_offset};
        if (since_entry_ > interval_) {
            TM_TRYV(entry(batch, largest_));
            since_entry_ = 0;
        }
        since_entry_ += batch.bytes;
        return {};
    }
    TimeIndex::Entry largest() const { return largest_; }

private:
    const std::int64_t interval_;
    std::int64_t since_entry_ = 0;
    TimeIndex::Entry largest_;
};

bool is_missing(const Error& error) { return error.code == Errc::not_found; }

}  // namespace

Segment::Segment(OpenFiles& files, const Clock& clock, std::shared_ptr<const DirectoryPath> directory, Offset base,
                 const SegmentOptions& options, FileSuffix suffix)
    : files_(files), keeps_files_(files.weak_from_this().lock()), clock_(clock), path_(std::move(directory), base, suffix), options_(options), log_(files, path_, FileKind::log),
      offset_index_(files, path_), time_index_(files, path_), transaction_index_(files, path_), created_at_(clock.now().value) {}

Segment::~Segment() = default;

Result<std::shared_ptr<Segment>> Segment::create(OpenFiles& files, const Clock& clock, std::shared_ptr<const DirectoryPath> directory,
                                                 Offset base, const SegmentOptions& options, FileSuffix suffix) {
    std::shared_ptr<Segment> segment(new Segment(files, clock, std::move(directory), base, options, suffix));
    for (const auto kind : files_of_a_segment) {
        auto removed = files.file_system().remove(segment->path_.of(kind));
        if (!removed && !is_missing(removed.error())) return removed.error();
    }
    TM_TRY(const auto log, segment->log_.create_truncated());
    segment->log_.written();
    if (options.preallocate_bytes > 0) TM_TRYV(log->resize(options.preallocate_bytes));
    segment->offset_index_.file().start_empty(options.index_bytes_max);
    segment->time_index_.file().start_empty(options.index_bytes_max);
    segment->writable_ = true;
    MutexLock lock(segment->lazy_mutex_);
    segment->offset_index_ready_ = segment->time_index_ready_ = true;
    segment->next_offset_ = base;
    segment->largest_ = TimeIndex::Entry{no_timestamp, base};
    return segment;
}

Result<std::shared_ptr<Segment>> Segment::open(OpenFiles& files, const Clock& clock, std::shared_ptr<const DirectoryPath> directory,
                                               Offset base, const SegmentOptions& options, const Found& found, FileSuffix suffix) {
    std::shared_ptr<Segment> segment(new Segment(files, clock, std::move(directory), base, options, suffix));
    TM_TRY(const auto status, files.file_system().status(segment->log_path()));
    if (!status) return Error{Errc::not_found, segment->log_path()};
    if (status->bytes > segment_bytes_limit) {
        return Error{Errc::corrupt, segment->log_path() + ": " + std::to_string(status->bytes) + " bytes, the limit is 2147483647"};
    }
    segment->bytes_.store(status->bytes, std::memory_order_release);
    segment->transaction_index_.set_exists(found.transaction_index);
    if (!found.time_index) {
        if (options.rebuild_missing_time_index) {
            segment->time_index_missing_.store(status->bytes > 0, std::memory_order_release);
        }
        if (!options.rebuild_missing_time_index || status->bytes == 0) {  // Kafka's: an empty one, file time stands in
            segment->time_index_.file().start_empty(0);
            TM_TRYV(segment->time_index_.file().trim());
            MutexLock lock(segment->lazy_mutex_);
            segment->time_index_ready_ = true;
        }
    }
    return segment;
}

Error Segment::in_log(Error error) const { return in_context(std::move(error), path_.name(FileKind::log)); }

// --- indexes, opened when first needed ---------------------------------------------------------------------------------

/// After load() and check(). False: it is in doubt (D13), and the records know better.
Result<bool> Segment::is_to_be_used(const Result<>& loaded, FileKind index) const {
    if (loaded) return true;
    const auto& error = loaded.error();
    if (error.code != Errc::corrupt && !is_missing(error)) return in_context(error, path_.name(index));
    log_warning("{}: {}; rebuilt from the records", path_.of(index), error.message());
    return false;
}

Result<> Segment::ensure_offset_index() const {
    {
        MutexLock lock(lazy_mutex_);
        if (offset_index_ready_) return {};
        auto loaded = offset_index_.file().load(options_.check_indexes);
        if (loaded && options_.check_indexes) loaded = offset_index_.check(bytes());
        TM_TRY(offset_index_ready_, is_to_be_used(loaded, FileKind::offset_index));
        if (offset_index_ready_) return {};
    }
    return rebuild_offset_index();
}

/// Every segment that took its last append has an entry, unless no batch has a timestamp. Kafka puts an empty index where
/// one was missing (D9).
Result<> Segment::check_without_timestamps() const {
    TM_TRY(const auto log, log_.get());
    HeaderWalk walk(*log, FilePosition{0}, bytes());
    for (;;) {
        const auto batch = walk.next();
        if (!batch || !*batch) return {};  // what is damaged is found when it is read
        if ((*batch)->max_timestamp > no_timestamp) return Error{Errc::corrupt, "empty, though the records have timestamps"};
    }
}

Result<> Segment::ensure_time_index() const {
    {
        MutexLock lock(lazy_mutex_);
        if (time_index_ready_ || time_index_missing_.load(std::memory_order_acquire)) return {};
        auto loaded = time_index_.file().load(options_.check_indexes);
        if (loaded && options_.check_indexes) loaded = time_index_.check();
        if (loaded && options_.check_indexes && time_index_.file().entries() == 0) loaded = check_without_timestamps();
        TM_TRY(time_index_ready_, is_to_be_used(loaded, FileKind::time_index));
        if (time_index_ready_) return {};
    }
    return rebuild_time_index();
}

Result<> Segment::rebuild_offset_index() const {
    std::vector<std::byte> content;
    IndexPoints points(options_.index_interval_bytes, base_offset());
    TM_TRY(const auto log, log_.get());
    const auto room = options_.index_bytes_max / static_cast<std::int64_t>(OffsetIndex::entry_bytes);
    HeaderWalk walk(*log, FilePosition{0}, bytes());
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) break;
        TM_TRYV(points.add(*batch, [&](const BatchPosition& at, const TimeIndex::Entry&) -> Result<> {
            if (static_cast<std::int64_t>(content.size() / OffsetIndex::entry_bytes) >= room) return {};
            append_be(content, static_cast<std::int32_t>(at.last_offset - base_offset()));
            append_be(content, static_cast<std::int32_t>(at.position.value));
            return {};
        }));
    }
    MutexLock lock(lazy_mutex_);
    offset_index_.file().close();
    TM_TRYV(io::replace_content(files_.file_system(), path_.of(FileKind::offset_index), content));
    TM_TRYV(offset_index_.file().load(true));
    files_.count_rebuilt_index();
    offset_index_ready_ = true;
    return {};
}

Result<> Segment::rebuild_time_index() const {
    std::vector<std::byte> content;
    Timestamp last = no_timestamp;
    const auto put = [&](const TimeIndex::Entry& entry) {
        if (entry.timestamp <= last) return;
        append_be(content, entry.timestamp.value);
        append_be(content, static_cast<std::int32_t>(entry.offset - base_offset()));
        last = entry.timestamp;
    };
    IndexPoints points(options_.index_interval_bytes, base_offset());
    const auto room = options_.index_bytes_max / static_cast<std::int64_t>(TimeIndex::entry_bytes) - 1;
    TM_TRY(const auto log, log_.get());
    HeaderWalk walk(*log, FilePosition{0}, bytes());
    Offset next = base_offset();
    for (;;) {
        TM_TRY(const auto batch, walk.next());
        if (!batch) break;
        next = batch->last_offset + 1;
        TM_TRYV(points.add(*batch, [&](const BatchPosition&, const TimeIndex::Entry& largest) -> Result<> {
            if (static_cast<std::int64_t>(content.size() / TimeIndex::entry_bytes) < room) put(largest);
            return {};
        }));
    }
    put(points.largest());
    MutexLock lock(lazy_mutex_);
    time_index_.file().close();
    TM_TRYV(io::replace_content(files_.file_system(), path_.of(FileKind::time_index), content));
    TM_TRYV(time_index_.file().load(true));
    files_.count_rebuilt_index();
    largest_ = points.largest();
    next_offset_ = next;
    time_index_ready_ = true;
    time_index_missing_.store(false, std::memory_order_release);
    wants_time_index_.store(false, std::memory_order_release);
    return {};
}

// --- what is in it -----------------------------------------------------------------------------------------------------

Result<Offset> Segment::next_offset() const {
    {
        MutexLock lock(lazy_mutex_);
        if (next_offset_) return *next_offset_;
    }
    TM_TRYV(ensure_offset_index());
    TM_TRY(const auto last, offset_index_.last());
    TM_TRY(const auto log, log_.get());
    HeaderWalk walk(*log, last ? last->position : FilePosition{0}, bytes());
    Offset next = base_offset();
    for (;;) {
        auto batch = walk.next();
        if (!batch) return in_log(std::move(batch).error());
        if (!*batch) break;
        next = (*batch)->last_offset + 1;
    }
    MutexLock lock(lazy_mutex_);
    if (!next_offset_) next_offset_ = next;
    return *next_offset_;
}

Result<Timestamp> Segment::modified() const {
    TM_TRY(const auto status, files_.file_system().status(log_path()));
    if (!status) return Error{Errc::not_found, log_path()};
    return status->modified;
}

Result<std::optional<TimeIndex::Entry>> Segment::largest_locked() const {
    if (largest_) return largest_;
    if (!time_index_ready_) return std::optional<TimeIndex::Entry>{};
    TM_TRY(const auto last, time_index_.last());
    largest_ = last;
    return largest_;
}

Result<TimeIndex::Entry> Segment::largest_entry() const {
    {
        MutexLock lock(lazy_mutex_);
        if (largest_) return *largest_;
    }
    TM_TRYV(ensure_time_index());
    MutexLock lock(lazy_mutex_);
    TM_TRY(const auto largest, largest_locked());
    return largest.value_or(TimeIndex::Entry{no_timestamp, base_offset()});
}

Result<std::optional<Timestamp>> Segment::largest_record_timestamp() const {
    TM_TRY(const auto entry, largest_entry());
    return entry.timestamp.value >= 0 ? std::optional(entry.timestamp) : std::nullopt;
}

Result<LargestTimestamp> Segment::largest_timestamp() const {
    TM_TRY(const auto of_records, largest_record_timestamp());
    if (of_records) return LargestTimestamp{*of_records, LargestTimestamp::Source::records};
    TM_TRY(const auto file_time, modified());
    if (!time_index_is_missing()) return LargestTimestamp{file_time, LargestTimestamp::Source::file_time};
    wants_time_index_.store(true, std::memory_order_release);
    return LargestTimestamp{file_time, LargestTimestamp::Source::not_yet_known};
}

Result<std::optional<Timestamp>> Segment::first_batch_timestamp() const {
    {
        MutexLock lock(lazy_mutex_);
        if (first_batch_timestamp_) return *first_batch_timestamp_ >= 0 ? std::optional(Timestamp{*first_batch_timestamp_}) : std::nullopt;
    }
    TM_TRY(const auto first, batch_at(FilePosition{0}));
    if (!first) return std::optional<Timestamp>{};
    MutexLock lock(lazy_mutex_);
    first_batch_timestamp_ = first->max_timestamp.value;
    return first->max_timestamp.value >= 0 ? std::optional(first->max_timestamp) : std::nullopt;
}

Segment::KnownTimestamps Segment::known_timestamps() const {
    KnownTimestamps known;
    MutexLock lock(lazy_mutex_);
    if (first_batch_timestamp_ && *first_batch_timestamp_ >= 0) known.first_batch = Timestamp{*first_batch_timestamp_};
    if (largest_ && largest_->timestamp.value >= 0) known.largest = largest_->timestamp;
    return known;
}

std::optional<Timestamp> Segment::first_append_time() const {
    const auto time = first_append_time_.load(std::memory_order_relaxed);
    return time >= 0 ? std::optional(Timestamp{time}) : std::nullopt;
}

void Segment::set_first_append_time(Timestamp time) { first_append_time_.store(time.value, std::memory_order_relaxed); }

void Segment::remember(Offset next_offset, TimeIndex::Entry largest) {
    MutexLock lock(lazy_mutex_);
    next_offset_ = next_offset;
    if (!time_index_is_missing()) largest_ = largest;
}

std::optional<Segment::Known> Segment::known() const {
    MutexLock lock(lazy_mutex_);
    if (!next_offset_ || !largest_) return std::nullopt;
    return Known{*next_offset_, *largest_};
}

std::optional<std::optional<Timestamp>> Segment::earliest_delete_horizon() const {
    if (!horizon_known_.load(std::memory_order_acquire)) return std::nullopt;
    const auto horizon = horizon_.load(std::memory_order_relaxed);
    return horizon >= 0 ? std::optional(Timestamp{horizon}) : std::optional<Timestamp>{};
}

void Segment::set_earliest_delete_horizon(std::optional<Timestamp> horizon) {
    horizon_.store(horizon ? horizon->value : -1, std::memory_order_relaxed);
    horizon_known_.store(true, std::memory_order_release);
}

Result<std::int64_t> Segment::offset_index_bytes() const {
    TM_TRYV(ensure_offset_index());
    return offset_index_.file().bytes();
}

Result<std::int64_t> Segment::time_index_bytes() const {
    TM_TRYV(ensure_time_index());
    return time_index_.file().bytes();
}

// --- reading -----------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<const io::File>> Segment::file() const {
    TM_TRY(auto file, log_.get());
    return std::shared_ptr<const io::File>(std::move(file));
}

Result<std::optional<BatchPosition>> Segment::find_from(FilePosition from, Offset target, std::int64_t end) const {
    TM_TRY(const auto log, log_.get());
    HeaderWalk walk(*log, from, end);
    for (;;) {
        auto batch = walk.next();
        if (!batch) return in_log(std::move(batch).error());
        if (!*batch || (*batch)->last_offset >= target) return *batch;
    }
}

Result<std::optional<BatchPosition>> Segment::find(Offset target) const {
    const auto end = bytes();
    TM_TRY(const auto entry, index_lookup(target));
    if (entry.position.value > 0 && options_.check_indexes) {
        // Only its ends were looked at when the index was opened (D13): what the entry says must be what is there.
        const auto batch = batch_at(entry.position);
        if (!batch && batch.error().code != Errc::corrupt) return batch.error();
        if (!batch || !*batch || (*batch)->last_offset != entry.offset) {
            log_warning("{}: entry ({}, {}) does not fit the log; rebuilt from the records", path_.of(FileKind::offset_index), entry.offset.value,
                        entry.position.value);
            if (!writable_) TM_TRYV(rebuild_offset_index());
            return find_from(FilePosition{0}, target, end);
        }
        if ((*batch)->last_offset >= target) return *batch;
        return find_from((*batch)->end(), target, end);
    }
    return find_from(entry.position, target, end);
}

Result<std::optional<BatchPosition>> Segment::batch_at(FilePosition position) const {
    TM_TRY(const auto log, log_.get());
    HeaderWalk walk(*log, position, bytes());
    auto batch = walk.next();
    if (!batch) return in_log(std::move(batch).error());
    return batch;
}

Result<OffsetIndex::Entry> Segment::index_lookup(Offset target) const {
    TM_TRYV(ensure_offset_index());
    return offset_index_.lookup(target);
}

Result<std::optional<OffsetIndex::Entry>> Segment::index_first_at_or_after(FilePosition position) const {
    TM_TRYV(ensure_offset_index());
    return offset_index_.first_at_or_after(position);
}

Result<TimeIndex::Entry> Segment::time_lookup(Timestamp target) const {
    TM_TRYV(ensure_time_index());
    if (time_index_is_missing()) return TimeIndex::Entry{no_timestamp, base_offset()};
    return time_index_.lookup(target);
}

// --- writing -----------------------------------------------------------------------------------------------------------

Result<> Segment::ensure_writable() {
    if (writable_) return {};
    TM_TRYV(ensure_offset_index());
    if (time_index_is_missing()) TM_TRYV(rebuild_time_index());
    TM_TRYV(ensure_time_index());
    TM_TRYV(largest_entry());
    TM_TRYV(offset_index_.file().make_writable(options_.index_bytes_max));
    TM_TRYV(time_index_.file().make_writable(options_.index_bytes_max));
    writable_ = true;
    return {};
}

Result<> Segment::note_batch(FilePosition position, const AppendedBatch& batch, bool index_must_fit) {
    if (!largest_) largest_ = TimeIndex::Entry{no_timestamp, base_offset()};
    if (batch.max_timestamp > largest_->timestamp) largest_ = TimeIndex::Entry{batch.max_timestamp, batch.last_offset};
    if (bytes_since_index_entry_ > options_.index_interval_bytes) {
        if (index_must_fit || !offset_index_.is_full()) TM_TRYV(offset_index_.append(batch.last_offset, position));
        if (index_must_fit || !time_index_.is_full()) TM_TRYV(time_index_.append(largest_->timestamp, largest_->offset));
        bytes_since_index_entry_ = 0;
    }
    bytes_since_index_entry_ += batch.bytes;
    next_offset_ = batch.last_offset + 1;
    return {};
}

Result<> Segment::append(Bytes batches, const std::vector<AppendedBatch>& each, bool index_must_fit) {
    if (each.empty()) return {};
    const auto span = each.back().last_offset - base_offset();
    if (span < 0 || span > relative_offset_max) {
        return Error{Errc::offset_overflow, path_.name(FileKind::log) + ": offset " + std::to_string(each.back().last_offset.value) + " does not fit"};
    }
    const auto before = bytes();
    if (before + static_cast<std::int64_t>(batches.size()) > segment_bytes_limit) {
        return Error{Errc::invalid_argument, path_.name(FileKind::log) + ": would exceed 2147483647 bytes"};
    }
    TM_TRYV(ensure_writable());
    TM_TRY(const auto log, log_.get());
    log_.written();
    if (auto written = log->write(FilePosition{before}, batches); !written) {
        if (!log->resize(before)) damaged_.store(true, std::memory_order_release);
        return in_log(std::move(written).error());
    }
    log_.written();
    if (before == 0) first_append_time_.store(clock_.now().value, std::memory_order_relaxed);
    auto position = FilePosition{before};
    {
        MutexLock lock(lazy_mutex_);
        for (const auto& batch : each) {
            TM_TRYV(note_batch(position, batch, index_must_fit));
            position = position + batch.bytes;
        }
    }
    TM_ASSERT(position.value == before + static_cast<std::int64_t>(batches.size()));
    bytes_.store(position.value, std::memory_order_release);
    // An index that cannot be written now is in memory still: later writes, or a rebuild, bring it to the disk (D12).
    if (offset_index_.file().has_many_pending()) (void)offset_index_.file().write_pending();
    if (time_index_.file().has_many_pending()) (void)time_index_.file().write_pending();
    return {};
}

Result<> Segment::append(Bytes batches, bool index_must_fit) {
    std::vector<AppendedBatch> each;
    record::BatchCursor cursor(batches);
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) break;
        each.push_back({static_cast<std::int64_t>(batch->size()), batch->last_offset(), batch->max_timestamp()});
    }
    return append(batches.first(batches.size() - cursor.rest().size()), each, index_must_fit);
}

Result<bool> Segment::should_roll_for(const RollQuestion& q) {
    const auto size = bytes();
    if (size > q.segment_bytes - q.append_bytes) return true;
    const auto span = q.append_last_offset - base_offset();
    if (span < 0 || span > relative_offset_max) return true;
    TM_TRYV(ensure_writable());  // until then the indexes have room for what they hold, no more
    if (offset_index_.is_full() || time_index_.is_full()) return true;
    if (size == 0) return false;
    TM_TRY(const auto first, first_batch_timestamp());
    // The message's own time decides as soon as the first batch has one, whatever the wall clock says.
    const auto waited = first ? q.append_max_timestamp - *first : q.now - created_at();
    return waited > q.segment_ms - options_.roll_jitter_ms;
}

Result<> Segment::become_active(const SegmentOptions& options) {
    options_ = options;
    trim_wanted_ = false;
    return {};
}

Result<> Segment::become_inactive() {
    MutexLock sealing(seal_mutex_);
    if (!writable_) return {};
    trim_wanted_ = true;
    TM_TRY(const auto largest, largest_entry());
    TM_TRYV(time_index_.append(largest.timestamp, largest.offset, true));
    if (options_.preallocate_bytes > 0) {
        TM_TRY(const auto log, log_.get());
        TM_TRY(const auto physical, log->size());
        if (physical != bytes()) {
            log_.written();
            TM_TRYV(log->resize(bytes()));
            log_.written();
        }
    }
    TM_TRYV(offset_index_.file().trim());
    TM_TRYV(time_index_.file().trim());
    writable_ = false;
    trim_wanted_ = false;
    return {};
}

Result<std::int64_t> Segment::truncate_to(Offset offset) {
    TM_TRYV(ensure_writable());
    TM_TRY(const auto first, find(offset));
    const auto before = bytes();
    const auto keep = first ? first->position.value : before;
    TM_TRYV(offset_index_.truncate_to(offset));
    TM_TRYV(time_index_.truncate_to(offset));
    TM_TRYV(transaction_index_.truncate_to(offset));
    if (keep != before) {
        TM_TRY(const auto log, log_.get());
        log_.written();
        bytes_.store(keep, std::memory_order_release);
        TM_TRYV(log->resize(keep));
        log_.written();
    }
    bytes_since_index_entry_ = 0;
    TM_TRY(const auto largest, largest_entry());
    TimeIndex::Entry recomputed = largest;
    Offset next = base_offset();
    if (keep > 0) {
        TM_TRY(const auto last_time, time_index_.last());
        TM_TRY(const auto entry, offset_index_.lookup(last_time.offset));
        TM_TRY(const auto log, log_.get());
        recomputed = last_time;
        HeaderWalk walk(*log, entry.position, keep);
        for (;;) {
            TM_TRY(const auto batch, walk.next());
            if (!batch) break;
            if (batch->max_timestamp > recomputed.timestamp) recomputed = {batch->max_timestamp, batch->last_offset};
            next = batch->last_offset + 1;
        }
    } else {
        created_at_.store(clock_.now().value, std::memory_order_relaxed);
        first_append_time_.store(-1, std::memory_order_relaxed);
        recomputed = {no_timestamp, base_offset()};
    }
    MutexLock lock(lazy_mutex_);
    if (keep == 0) first_batch_timestamp_.reset();
    largest_ = largest.timestamp.value >= 0 ? recomputed : TimeIndex::Entry{no_timestamp, base_offset()};
    next_offset_ = next;
    return before - keep;
}

Result<> Segment::reset_indexes() {
    offset_index_.file().close();
    time_index_.file().close();
    offset_index_.file().start_empty(options_.index_bytes_max);
    time_index_.file().start_empty(options_.index_bytes_max);
    TM_TRYV(transaction_index_.reset());
    bytes_since_index_entry_ = 0;
    writable_ = true;
    time_index_missing_.store(false, std::memory_order_release);
    MutexLock lock(lazy_mutex_);
    offset_index_ready_ = time_index_ready_ = true;
    largest_ = TimeIndex::Entry{no_timestamp, base_offset()};
    next_offset_ = base_offset();
    first_batch_timestamp_.reset();
    return {};
}

Result<> Segment::index_batch(FilePosition position, const AppendedBatch& batch) {
    MutexLock lock(lazy_mutex_);
    return note_batch(position, batch, false);
}

Result<> Segment::finish_recovery(std::int64_t keep) {
    TM_TRY(const auto log, log_.get());
    TM_TRY(const auto physical, log->size());
    if (keep < physical) {
        log_.written();
        TM_TRYV(log->resize(keep));
        log_.written();
    }
    bytes_.store(keep, std::memory_order_release);
    bytes_since_index_entry_ = 0;
    log_.written();  // what a crash left was perhaps never synced: the next flush does it
    TM_TRY(const auto largest, largest_entry());
    TM_TRYV(time_index_.append(largest.timestamp, largest.offset, true));
    TM_TRYV(offset_index_.file().trim());
    TM_TRYV(time_index_.file().trim());
    writable_ = false;
    return {};
}

Result<> Segment::finish_cleaned(Timestamp modified) {
    TM_TRYV(become_inactive());
    TM_TRYV(sync());
    for (const auto kind : {FileKind::log, FileKind::offset_index, FileKind::time_index}) {
        TM_TRYV(files_.file_system().set_modified(path_.of(kind), modified));
    }
    return {};
}

// --- disk --------------------------------------------------------------------------------------------------------------

Result<> Segment::sync_log() { return log_.sync(); }

Result<> Segment::sync() {
    if (trim_wanted_) TM_TRYV(become_inactive());
    TM_TRYV(offset_index_.file().write_pending());
    TM_TRYV(time_index_.file().write_pending());
    TM_TRYV(log_.sync());
    TM_TRYV(offset_index_.file().sync());
    TM_TRYV(time_index_.file().sync());
    return transaction_index_.sync();
}

void Segment::start_writeback() const {
    if (const auto log = log_.get()) (*log)->start_writeback();
}

Result<> Segment::rename_files(FileSuffix from, FileSuffix to) {
    const bool log_is_renamed = path_.suffix() == to;   // by an earlier try
    for (const auto kind : files_of_a_segment) {
        auto renamed = files_.file_system().rename(path_.of(kind, from), path_.of(kind, to));
        const bool may_be_missing = kind != FileKind::log || log_is_renamed;
        if (!renamed && !(may_be_missing && is_missing(renamed.error()))) return renamed;
        if (kind == FileKind::log) path_.set_suffix(to);
    }
    return {};
}

Result<> Segment::remove_files() {
    Result<> result;
    for (const auto kind : files_of_a_segment) {
        auto removed = files_.file_system().remove(path_.of(kind));
        if (!removed && !is_missing(removed.error()) && result) result = std::move(removed).error();
    }
    return result;
}

void Segment::close_files() {
    log_.close();
    offset_index_.file().close();
    time_index_.file().close();
    transaction_index_.close();
}

std::optional<std::chrono::milliseconds> Segment::deleted_since() const {
    const auto since = deleted_since_.load(std::memory_order_relaxed);
    return since >= 0 ? std::optional(std::chrono::milliseconds{since}) : std::nullopt;
}

void Segment::mark_deleted(std::chrono::milliseconds since_boot) { deleted_since_.store(since_boot.count(), std::memory_order_relaxed); }

}  // namespace tidemark::storage
