/// `__cluster_metadata-0`: segments of metadata batches, snapshots, quorum-state; written by this process alone
/// (metadata-log 1, 2, 5, 6). Bytes, names and rules are Kafka's, so that either can open what the other wrote. Of the
/// segments only the `.log` files are written: the rest is rebuilt by whoever wants it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "io/file_system.h"
#include "metadata/image.h"
#include "metadata/metadata_batch.h"

namespace tidemark::metadata {

struct MetadataLogOptions {
    io::Path directory;                                    ///< the log directory that holds __cluster_metadata-0
    std::int32_t node_id = 1;
    Uuid directory_id = {};                                ///< of `directory`, for dynamic voters
    std::int64_t segment_bytes = std::int64_t{1} << 30;    ///< metadata.log.segment.bytes
    std::int64_t segment_ms = 604'800'000;                 ///< metadata.log.segment.ms
    std::int64_t snapshot_bytes = 20'971'520;              ///< metadata.log.max.record.bytes.between.snapshots
    std::int64_t snapshot_ms = 3'600'000;                  ///< metadata.log.max.snapshot.interval.ms, 0 is never by time
    std::int64_t retention_bytes = 104'857'600;            ///< metadata.max.retention.bytes, negative is unlimited
    std::int64_t retention_ms = 604'800'000;               ///< metadata.max.retention.ms, negative is unlimited
    std::function<void()> make_room = {};                  ///< D12: called when the disk is full, before one more try
};

/// What format() writes and a log without any metadata.version begins with.
using BootstrapRecords = std::vector<protocol::MetadataRecord>;
/// The features of metadata-log 4 at the newest level, without share and streams groups (D27).
BootstrapRecords default_bootstrap();

/// Life:    format() once, then open(), begin_epoch(), append() and write_snapshot() … There is nothing to close.
/// Threads: one at a time (the controller's mutex).
/// Errors:  after a failed sync the log is offline: what it holds on disk is not known, every later call fails with
///          Errc::storage_offline. A write that failed is taken back, and the log goes on.
class MetadataLog {
public:
    struct Opened {
        std::unique_ptr<MetadataLog> log;
        std::shared_ptr<const Image> image;               ///< what the newest snapshot and the log after it say
        bool in_transaction = false;                      ///< the log ends inside one: AbortTransaction must be the first record
        BootstrapRecords bootstrap;                       ///< to be appended first; empty when the log has a metadata.version
    };

    /// Writes the bootstrap snapshot `0-0` durably, when there is neither one nor a log.
    static Result<> format(io::FileSystem&, const Clock&, const io::Path& directory, const BootstrapRecords&);

    /// Reads everything. An incomplete last batch, which no answer can have depended on, is cut off; damage that is followed
    /// by valid batches is Errc::corrupt, since cutting there would take topics away: the text names file and position.
    /// unsupported: other voters, or records that this program does not know. corrupt: a snapshot or log that contradicts itself.
    static Result<Opened> open(io::FileSystem&, const Clock&, MetadataLogOptions);

    /// Takes the lead in a new epoch: quorum-state, then a LeaderChange record, durable when this returns.
    Result<> begin_epoch();
    LeaderEpoch epoch() const { return epoch_; }

    Offset start_offset() const { return start_offset_; }
    Offset end_offset() const { return end_offset_; }

    /// One batch, on disk when this returns; the first record's offset is what end_offset() was.
    /// too_large: nothing was written. Precondition: begin_epoch() has been called.
    Result<> append(std::span<const protocol::MetadataRecord>, std::int16_t metadata_version);

    /// Enough was appended, or enough time has passed since the last snapshot.
    bool snapshot_is_due() const;
    /// A snapshot of `image`, which is what the log says at its end. No effect when there is one at this offset.
    Result<> write_snapshot(const Image&);
    /// Deletes segments and snapshots that a newer snapshot makes superfluous, when size or age ask for it.
    Result<> clean_up();

    /// Size of the segments and snapshots, for metrics.
    std::int64_t bytes() const;

private:
    struct SegmentFile {
        Offset base_offset{};
        std::int64_t bytes = 0;
        std::optional<Timestamp> first_timestamp = {};
    };
    struct SnapshotFile {
        Offset offset{};                                  // the first one not contained
        LeaderEpoch epoch = 0;
        std::int64_t bytes = 0;
        friend bool operator==(const SnapshotFile&, const SnapshotFile&) = default;
    };
    /// What the raft layer's own records say (kraft.version 1: dynamic voters).
    struct RaftState {
        std::optional<std::vector<std::byte>> kraft_version = {}, voters = {};   // the records' values
        bool in_log = false;                              // not only in the bootstrap snapshot
    };
    struct Replay;                                        // of open()

    MetadataLog(io::FileSystem& files, const Clock& clock, MetadataLogOptions options);

    Result<> list_files();
    Result<> load_snapshots(Replay&);
    Result<> read_snapshot(const SnapshotFile&, Replay&);
    Result<> set_damaged_aside(const Replay&);
    Result<> read_bootstrap(Replay&);
    Result<> load_segments(Replay&);
    Result<> load_segment(SegmentFile&, bool last, Replay&);
    Result<> cut_tail(SegmentFile&, bool last, FilePosition from, std::string_view why);
    Result<> check_voters() const;
    Result<> discard_log(Offset start);

    Result<> with_room(const std::function<Result<>()>& write) const;
    Result<> replace_content(std::string_view name, std::string_view text) const;
    Result<> write_batch(const std::vector<std::byte>& bytes, Timestamp first_timestamp, Offset next);
    Result<> try_to_write(const std::vector<std::byte>& bytes, Timestamp first_timestamp, Offset next);
    Result<> roll();
    Result<> usable() const;
    Error fail(Error error, std::string_view what);

    io::Path path(std::string_view name) const { return io::join(log_directory_, name); }

    io::FileSystem& files_;
    const Clock& clock_;
    const MetadataLogOptions options_;
    const io::Path log_directory_;

    std::vector<SegmentFile> segments_;                   // oldest first; the last one is appended to
    std::vector<SnapshotFile> snapshots_;                 // oldest first
    std::unique_ptr<io::File> active_;
    Offset start_offset_{};
    Offset end_offset_{};
    LeaderEpoch epoch_ = 0;                               // of the last batch or snapshot; then our own
    LeaderEpoch last_written_epoch_ = 0;                  // of the last batch
    Timestamp last_timestamp_{};                          // of the last batch
    RaftState raft_;
    std::vector<std::pair<LeaderEpoch, Offset>> epoch_starts_;
    std::int64_t bytes_since_snapshot_ = 0;
    Timestamp last_snapshot_at_{};
    std::optional<Error> offline_;
};

}  // namespace tidemark::metadata
