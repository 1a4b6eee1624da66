/// What is inside a Log; shared by its .cpp files and by the loader that puts it together.
#pragma once

#include <map>
#include <set>

#include "storage/log.h"
#include "storage/log_directory.h"
#include "storage/producer_snapshots.h"
#include "storage/producer_state.h"

namespace tidemark::storage {

using SegmentMap = std::map<Offset, std::shared_ptr<Segment>>;

/// A place in the log: an offset, and how far the file of the segment that it lies in goes below it.
struct LogPosition {
    Offset offset{-1};
    Offset segment_base{-1};
    std::int64_t bytes = 0;
};

/// Locks, in this order: structure_mutex (segments are taken away or exchanged), flush_mutex, names_mutex, epochs_mutex (these
/// four are held across syncs), append_mutex (never across one, but for a truncation and the end of a move), position_mutex and
/// path_mutex (a few stores).
struct Log::State final : CommitTarget {
    State(TopicPartition p, LogDirectory& d, std::shared_ptr<DirectoryPath> at)
        : partition(std::move(p)), log_directory(&d), own_path(std::move(at)), snapshots(d.files(), own_path) {}

    const TopicPartition partition;
    std::atomic<LogDirectory*> log_directory;      // another one after a move
    mutable Mutex path_mutex;
    std::shared_ptr<DirectoryPath> own_path GUARDED_BY(path_mutex);
    Published<LogConfig> config;
    Published<SegmentList> published;              // what readers see
    std::weak_ptr<Log> log;                        // what work for later holds on to; set when the Log is made
    std::atomic<LogObserver*> observer{nullptr};

    std::atomic<std::int64_t> log_start{0};
    std::atomic<std::int64_t> high_watermark{0};
    std::atomic<std::int64_t> log_end{0};
    std::atomic<std::int64_t> recovery_point{0};
    std::atomic<std::int64_t> durable_end{0};      // all below is on disk, for acknowledgements (D10)
    std::atomic<std::int64_t> first_unstable{-1};  // -1: every transaction is decided
    std::atomic<bool> high_watermark_follows{true};
    std::atomic<bool> closed{false};
    std::atomic<bool> moving{false};               // set under structure_mutex; meanwhile nothing is exchanged
    std::atomic<bool> damaged{false};              // D21: it serves nothing until it is repaired
    std::atomic<std::uint64_t> appended_bytes{0}, appended_records{0}, appended_batches{0}, expired_records{0};

    Mutex structure_mutex ACQUIRED_BEFORE(append_mutex);
    Mutex flush_mutex ACQUIRED_BEFORE(append_mutex);
    Mutex names_mutex ACQUIRED_BEFORE(append_mutex);
    Mutex epochs_mutex ACQUIRED_BEFORE(append_mutex);
    mutable Mutex append_mutex;
    SegmentMap segments GUARDED_BY(append_mutex);
    ProducerState producers GUARDED_BY(append_mutex);
    ProducerSnapshots snapshots GUARDED_BY(append_mutex);
    /// After a clean stop the state is read from its snapshot when somebody needs it.
    std::atomic<bool> producers_ready{false};                   // set under append_mutex
    Timestamp producers_as_of GUARDED_BY(append_mutex);         // when expired ones were looked for last: not when it is read
    std::uint64_t names_made GUARDED_BY(append_mutex) = 0;      // segments created, of which the directory has been
    std::uint64_t names_synced GUARDED_BY(append_mutex) = 0;    // synced after so many
    std::uint64_t truncations GUARDED_BY(append_mutex) = 0;     // a sync that began before the last one covers nothing
    std::uint64_t epochs_changed GUARDED_BY(append_mutex) = 0;
    std::uint64_t epochs_saved GUARDED_BY(append_mutex) = 0;
    LeaderEpochs epochs GUARDED_BY(append_mutex);
    std::optional<Uuid> topic_id GUARDED_BY(append_mutex);

    mutable Mutex position_mutex;
    LogPosition end GUARDED_BY(position_mutex);
    mutable LogPosition stable GUARDED_BY(position_mutex);     // of the last stable offset or high watermark asked for last

    LogDirectory& directory() const { return *log_directory.load(std::memory_order_acquire); }
    std::shared_ptr<DirectoryPath> path() const EXCLUDES(path_mutex) {
        MutexLock lock(path_mutex);
        return own_path;
    }
    io::FileSystem& files() const { return directory().files(); }
    SegmentOptions segment_options() const;
    Result<> check_usable() const;
    /// The error as the caller sees it; Errc::io takes the directory offline.
    Error failed(Error error, std::string_view doing) const;

    const std::shared_ptr<Segment>& active() const REQUIRES(append_mutex) { return segments.rbegin()->second; }
    void publish_segments() REQUIRES(append_mutex);
    void publish_end() REQUIRES(append_mutex);
    /// Brings the high watermark to the end where it follows, and decides the first unstable offset anew.
    void after_end_moved() REQUIRES(append_mutex);
    void update_first_unstable() REQUIRES(append_mutex);
    Result<> load_producers() REQUIRES(append_mutex);
    Result<> roll(Offset base) REQUIRES(append_mutex);
    Result<> roll_if_full(Offset hint, std::int64_t bytes, Timestamp max_timestamp, Offset last) REQUIRES(append_mutex);
    void raise_log_start(Offset) REQUIRES(append_mutex);
    void take_snapshot_or_warn() REQUIRES(append_mutex);
    /// Producer state anew from snapshots and records up to `end` (log-directory 7.4, not clean).
    Result<> rebuild_producers(Offset log_start, Offset end, Timestamp now) REQUIRES(append_mutex);
    /// Out of the map; their snapshots become `.deleted` and are returned. delete_files() of both follows, without the lock.
    std::vector<io::Path> take_out(const SegmentList&) REQUIRES(append_mutex);
    Result<> rename_files(Segment&, FileSuffix from, FileSuffix to);
    /// Renames to `.deleted` in the order given, syncs the names after each, unlinks after file.delete.delay.ms.
    Result<> delete_files(SegmentList, std::vector<io::Path> snapshots) EXCLUDES(append_mutex);
    void unlink_later(SegmentList, std::vector<io::Path> snapshots);
    Result<> start_over_at(Offset) REQUIRES(append_mutex);
    Result<> flush_to(Offset end, bool with_active) EXCLUDES(flush_mutex, append_mutex);
    Result<> sync_names() EXCLUDES(names_mutex, append_mutex);
    Result<> save_epochs() EXCLUDES(epochs_mutex, append_mutex);
    Error unless_moved(Error, const io::Path& from) EXCLUDES(append_mutex);

    Offset bound_of(Isolation) const;
    LogPosition end_position() const EXCLUDES(position_mutex);
    /// How far readers that may see up to `bound` may read.
    Result<LogPosition> position_of(const SegmentList&, Offset bound, const LogPosition& end) const EXCLUDES(position_mutex);

    void start_writeback() override;
    Result<Offset> sync_appended() override;

    void tell_end_moved() const {
        if (auto* o = observer.load(std::memory_order_acquire)) o->end_offset_moved(partition);
    }
    void tell_start_moved() const {
        if (auto* o = observer.load(std::memory_order_acquire)) o->start_offset_moved(partition);
    }
};

/// Index of the segment that `offset` lies in, or would; nothing below the first.
std::optional<std::size_t> floor_segment(const SegmentList&, Offset offset);

}  // namespace tidemark::storage
