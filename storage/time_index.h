/// `<base>.timeindex`: the largest timestamp so far → the last offset of the batch that holds it (KIP-33, log-directory 2.2).
///
///      0            8                 12
///      | timestamp  | offset − base   |   timestamps rise strictly; every record at or before the offset is not younger
#pragma once

#include <optional>

#include "storage/index_file.h"

namespace tidemark::storage {

/// Life and threads as IndexFile. An empty one behaves as if its last entry were (-1, base).
class TimeIndex {
public:
    struct Entry {
        Timestamp timestamp = no_timestamp;
        Offset offset{};
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    static constexpr std::size_t entry_bytes = 12;

    TimeIndex(OpenFiles& files, const SegmentPath& path) : file_(files, path, FileKind::time_index, entry_bytes), base_(path.base()) {}

    /// The entry with the largest timestamp ≤ `target`, or (-1, base).
    Result<Entry> lookup(Timestamp target) const;
    Result<Entry> entry(std::int64_t n) const;
    Result<Entry> last() const;

    /// The final slot is kept for the entry that is forced in when the segment becomes inactive.
    bool is_full() const { return file_.entries() >= file_.capacity() - 1; }
    /// Does nothing when the timestamp equals the last entry's, or is -1 in an empty index. Errc::invalid_argument: full and
    /// not `forced`, whatever the timestamp. Errc::unexpected_offset: offset or timestamp below the last entry's.
    Result<> append(Timestamp, Offset, bool forced = false);
    /// Drops the entries with an offset ≥ `offset`.
    Result<> truncate_to(Offset offset);
    /// As OffsetIndex::check().
    Result<> check() const;

    IndexFile& file() { return file_; }
    const IndexFile& file() const { return file_; }

private:
    IndexFile file_;
    const Offset base_;
};

}  // namespace tidemark::storage
