/// One partition's log: a list of segments, the last of them active, and the offsets that bound it.
///
///     log start offset ≤ last stable offset ≤ high watermark ≤ log end offset
///
/// Alone on one machine the high watermark is the log end offset after each append.
/// Source: append-and-read, log-directory. Files: docs/storage-format.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/published.h"
#include "base/topic_partition.h"
#include "base/uuid.h"
#include "io/file_system.h"
#include "record/validation.h"
#include "storage/leader_epochs.h"
#include "storage/log_config.h"
#include "storage/options.h"
#include "storage/segment.h"

namespace tidemark::storage {

class LogDirectory;
/// Oldest first; never empty while the log is open.
using SegmentList = std::vector<std::shared_ptr<Segment>>;

using record::Origin;        // client, coordinator, replication, raft_leader
using record::RecordError;   // index in the batch, message

/// Names a question to a transaction coordinator (KIP-890); 0 is none.
enum class VerificationId : std::uint64_t;

enum class Isolation : std::uint8_t { read_uncommitted, read_committed, log_end };

struct AppendOptions {
    Origin origin = Origin::client;
    LeaderEpoch leader_epoch = 0;
    /// False: a transactional append that finds no open transaction needs `verification` (KIP-890), else it is
    /// Errc::invalid_transaction_state.
    bool transaction_verified = true;
    /// What begin_verification() gave, by whoever asked the coordinator since then.
    VerificationId verification{};
    /// transaction.version of whoever wrote a marker: from 2 on its epoch is above the producer's (KIP-890).
    std::int16_t transaction_version = 0;
    /// Filled when records were refused one by one (INVALID_RECORD, INVALID_TIMESTAMP): what the answer lists.
    std::vector<RecordError>* rejected = nullptr;
};

struct AppendInfo {
    Offset first_offset{};                          ///< of the original append when duplicate
    Offset last_offset{};
    std::optional<Timestamp> log_append_time = {};  ///< LogAppendTime topics; of a duplicate: its batch's timestamp
    Timestamp max_timestamp = no_timestamp;
    Offset log_start_offset{};
    bool duplicate = false;
    std::int32_t records = 0;
    std::int64_t bytes = 0;
};

struct ReadOptions {
    Offset from{};
    std::int64_t bytes_max = 1 << 20;
    bool first_batch_whole = true;                  ///< the first batch in any case, however large
    Isolation isolation = Isolation::read_uncommitted;
};

/// A piece of one segment's file, from a batch boundary on, possibly cut inside its last batch. Empty: bytes is 0 and
/// file may be null. Holding it keeps the file open, also when the segment is deleted meanwhile.
struct LogSlice {
    std::shared_ptr<const io::File> file;
    FilePosition position{};
    std::int64_t bytes = 0;
    std::shared_ptr<const Segment> segment;         ///< D26 asks it whether it was deleted, and when
    Offset high_watermark{}, last_stable_offset{}, log_start_offset{}, log_end_offset{};
    std::vector<AbortedTransaction> aborted;        ///< read_committed only
};

struct FoundOffset {
    Timestamp timestamp = no_timestamp;
    Offset offset{};
    LeaderEpoch leader_epoch = no_leader_epoch;
};

/// One producer as DescribeProducers shows it.
struct ProducerSummary {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch epoch = -1;
    Sequence last_sequence = -1;
    Timestamp last_timestamp = no_timestamp;
    std::int32_t coordinator_epoch = -1;
    std::optional<Offset> current_transaction_first_offset;
};

/// The last thing an active producer wrote: what the cleaner must keep, empty if need be (cleaner 7.1).
struct LastProducerRecord {
    std::optional<Offset> last_data_offset;
    ProducerEpoch epoch = -1;
};

/// Before a transactional append: the coordinator is asked about `producer`, and a marker that comes meanwhile voids it.
struct VerificationRequest {
    ProducerId producer_id = no_producer_id;
    ProducerEpoch epoch = -1;
    Sequence first_sequence = -1;
    bool bumps_epochs = false;                      ///< transaction.version 2: the first batch here begins at sequence 0
};

/// Numbers for metrics and tools, taken at one moment.
struct LogStats {
    Offset log_start_offset{}, high_watermark{}, last_stable_offset{}, log_end_offset{}, recovery_point{};
    std::int64_t bytes = 0;
    std::size_t segments = 0;
    std::int64_t producers = 0;
    std::uint64_t appended_bytes = 0, appended_records = 0, appended_batches = 0;   ///< since opened
    std::uint64_t expired_records = 0;              ///< of the appended: already older than retention.ms when they came
    /// Of the first segment's first batch, and the largest of all segments, as far as they are known without reading.
    std::optional<Timestamp> oldest_timestamp = {}, newest_timestamp = {};
};

/// Told after the fact, outside the append lock, on the thread that did it. Must not block.
class LogObserver {
public:
    virtual ~LogObserver() = default;
    virtual void end_offset_moved(const TopicPartition&) = 0;       ///< appended, or a marker moved the last stable offset
    virtual void start_offset_moved(const TopicPartition&) = 0;
    virtual void log_gone(const TopicPartition&) = 0;               ///< deleted or its directory failed
};

/// Life:    made by open_log() (storage/recovery.h), for a partition by LogManager, which also closes or removes it; readers
///          that still hold slices keep their files.
/// Threads: all public members from any thread. append(), roll, truncate, replace and delete take the append lock; reads
///          take the published segment list. Nothing holds the lock across a sync.
/// Errors:  Errc::storage_offline after its directory failed; Errc::not_found after it was closed or removed.
class Log final : public std::enable_shared_from_this<Log> {
public:
    struct State;                                 // storage/log_state.h
    explicit Log(std::unique_ptr<State>);
    ~Log();

    const TopicPartition& partition() const;
    Uuid topic_id() const;
    std::shared_ptr<const LogConfig> config() const;
    void set_config(std::shared_ptr<const LogConfig>);
    void set_observer(LogObserver*);
    io::Path directory() const;                   ///< of this partition
    LogDirectory& log_dir() const;
    /// Being copied to another log directory (log_move.h): replace_segments() is Errc::aborted.
    bool is_moving() const;

    Offset log_start_offset() const;
    Offset high_watermark() const;
    /// The high watermark until the producers are loaded: read() and load_producers() see to that.
    Offset last_stable_offset() const;
    Offset log_end_offset() const;
    Offset recovery_point() const;                ///< the first offset that is not known to be flushed
    LeaderEpoch latest_epoch() const;             ///< of the leader epoch history; -1 when it is empty

    /// Validates and appends one partition's record set, which is changed in place (offsets, leader epoch, timestamps).
    /// Nothing is written on an error. The bytes are in the page cache when this returns; when_durable() waits for more.
    Result<AppendInfo> append(MutableBytes records, const AppendOptions&);

    /// KIP-890: nothing when the producer has a transaction open here, so that nobody needs to be asked; else an id for
    /// AppendOptions::verification, good until a batch or marker of the producer comes. Errc::invalid_producer_epoch: a higher
    /// epoch is known.
    Result<std::optional<VerificationId>> begin_verification(const VerificationRequest&);

    /// Calls `done` once everything below `end` is on disk: log file, new segments and directory entries (D10), from the
    /// directory's sync thread, or at once on this thread when it is already. One sync serves all who wait (group commit).
    void when_durable(Offset end, std::function<void(Result<>)> done);

    /// Errc::offset_out_of_range below the log start or above the end; at or above the isolation's bound: empty.
    Result<LogSlice> read(const ReadOptions&) const;
    /// Bytes from `from` up to the isolation's bound, at most `bytes_max`: what a waiting fetch counts. Cheap.
    Result<std::int64_t> available(Offset from, std::int64_t bytes_max, Isolation) const;

    /// First visible record whose timestamp ≥ t (ListOffsets ≥ 0; D24).
    Result<std::optional<FoundOffset>> offset_for_time(Timestamp, Isolation) const;
    /// ListOffsets -3.
    Result<std::optional<FoundOffset>> offset_of_max_timestamp(Isolation) const;
    /// -1 and -2 with their leader epochs.
    FoundOffset latest_offset(Isolation) const;
    FoundOffset earliest_offset() const;
    /// OffsetForLeaderEpoch: the largest known epoch ≤ `epoch` and where it ends.
    EpochEnd end_of_epoch(LeaderEpoch epoch) const;
    /// Becoming leader: later appends carry `epoch` (metadata-log 7.1).
    Result<> assign_epoch(LeaderEpoch epoch);

    /// DeleteRecords: raises the log start, durably. Nothing: up to the high watermark. Returns the log start after it.
    Result<Offset> delete_records_before(std::optional<Offset>);

    std::vector<ProducerSummary> producers() const;

    // --- for cleaner and retention ---------------------------------------------------------------------------------

    std::shared_ptr<const SegmentList> segments() const;
    /// Loads the producers' state when opening left that for later.
    Result<> load_producers() const;
    std::unordered_map<ProducerId, LastProducerRecord> last_producer_records() const;
    std::vector<AbortedTransaction> aborted_between(Offset from, Offset to) const;
    /// Rolls a non-empty active segment now (D1, retention of the active segment).
    Result<> roll();
    /// Deletes the `count` oldest segments; when those are all, the active one is rolled first. The log start moves
    /// before the files do. Files become `.deleted` and go after file.delete.delay.ms; a sync of the directory follows (D17).
    Result<> delete_oldest_segments(std::size_t count, std::string_view reason);
    /// An empty `.cleaned` segment at `base`, for the cleaner to fill: append(), append_aborted(), finish_cleaned(). Stale
    /// files of that name are removed first. Takes no lock.
    Result<std::shared_ptr<Segment>> create_cleaned_segment(Offset base) const;
    /// Removes the files of one that will not be used.
    void discard_cleaned_segment(const std::shared_ptr<Segment>&) const;
    /// Swaps `cleaned` (files `.cleaned`, finish_cleaned() done) in for `replaced`, step by step as log-directory 6, D17.
    /// Old segments that are gone meanwhile are passed over. `cleaned` is never empty.
    Result<> replace_segments(SegmentList cleaned, const SegmentList& replaced);

    Result<> truncate_to(Offset);
    Result<> truncate_fully_and_start_at(Offset);
    /// Syncs everything below the end (or the active segment's base), moves the recovery point.
    Result<> flush(bool with_active_segment = true);

    LogStats stats() const;

    // --- a follower's and a test's -----------------------------------------------------------------------------------

    /// Clamped to [log start, log end]. From the first call on the high watermark no longer follows the end by itself.
    void set_high_watermark(Offset);
    /// Drops producers without open transaction that wrote nothing for producer.id.expiration.ms.
    void expire_producers(Timestamp now);
    /// Writes a producer snapshot at the end, if it would be newer than the last one.
    Result<> take_producer_snapshot();
    /// Rebuilds what was found missing (time indexes, D9) as far as somebody asked for it; the directory's background work.
    void run_background_work();
    /// Trims, flushes, takes a snapshot, closes: as a clean stop leaves it.
    Result<> close();
    /// Renames its directory, for deletion; the caller syncs the parent.
    Result<> move_directory(const io::Path& to);
    /// From here on everything is Errc::not_found.
    void mark_closed();

    State& state() { return *state_; }            ///< storage/ only
    const State& state() const { return *state_; }

private:
    const std::unique_ptr<State> state_;
};

}  // namespace tidemark::storage
