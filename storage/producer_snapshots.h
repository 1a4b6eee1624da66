/// `N.snapshot`: the producers' state as of offset N (log-directory 2.5).
///
///      0        2        6       10
///      | vers.1 | crc32c | count | entries of 46 bytes: producer id 8, epoch 2, last sequence 4, last offset 8, offset delta 4,
///                                  timestamp 8, coordinator epoch 4, first offset of the open transaction 8
///
/// The CRC covers what follows it. A snapshot is written straight to its name: a torn one shows, and the one before it serves.
#pragma once

#include <map>
#include <set>

#include "storage/open_files.h"
#include "storage/producer_state.h"

namespace tidemark::storage {

std::vector<std::byte> encode_snapshot(const ProducerState&);
/// Errc::corrupt: version, CRC, length.
Result<std::vector<ProducerEntry>> decode_snapshot(Bytes content);

/// Brings them to the disk; those that are gone are passed over. Errc::io: nobody may try again.
Result<> sync_snapshots(io::FileSystem&, const std::vector<io::Path>&);

/// The snapshots of one partition's directory.
/// Threads: none; the Log's append lock, or the loader's only thread.
class ProducerSnapshots {
public:
    ProducerSnapshots(io::FileSystem& files, std::shared_ptr<const DirectoryPath> directory) : files_(&files), directory_(std::move(directory)) {}

    /// Takes over what a listing showed.
    void set_found(std::set<Offset> offsets) { offsets_ = std::move(offsets); }
    const std::set<Offset>& offsets() const { return offsets_; }
    std::optional<Offset> latest() const;

    /// Writes one at the state's end offset when that is above the last one written or loaded; nothing happens otherwise.
    Result<> take(const ProducerState&);
    /// Loads the newest readable one into the (cleared) state, dropping expired producers; unreadable ones are removed.
    /// Nothing readable: the state is empty as of `log_start`.
    Result<> load_latest(ProducerState&, Offset log_start, Timestamp now, std::int64_t expiration_ms);
    /// Drops those outside (log_start, log_end] and, when the state does not stand at log_end, loads the newest that is left.
    Result<> truncate_and_reload(ProducerState&, Offset log_start, Offset log_end, Timestamp now, std::int64_t expiration_ms);
    /// Removes those not at a segment's base, but for the largest of them when no segment begins behind it.
    Result<> remove_strays(const std::set<Offset>& segment_bases);
    void log_start_raised(ProducerState&, Offset log_start);
    Result<> remove(Offset);
    Result<> remove_all();
    /// Becomes `.deleted`, to be unlinked later; returns whether there was one.
    Result<bool> mark_deleted(Offset);
    /// Those written since the last call, for sync_snapshots(): outside the append lock.
    std::vector<io::Path> take_unsynced();

    /// As of a load that found nothing, or a state that starts over.
    void set_last(Offset offset) { last_ = offset; }

private:
    io::Path path_of(Offset offset) const;

    io::FileSystem* files_;
    std::shared_ptr<const DirectoryPath> directory_;
    std::set<Offset> offsets_;
    std::set<Offset> unsynced_;
    Offset last_{};            // the last one written or loaded
};

}  // namespace tidemark::storage
