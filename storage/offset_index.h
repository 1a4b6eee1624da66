/// `<base>.index`: the last offset of some batches → where these batches begin (log-directory 2.1).
///
///      0                 4                  8
///      | offset − base   | position in .log |   rising in both
#pragma once

#include <optional>

#include "storage/index_file.h"

namespace tidemark::storage {

/// Life and threads as IndexFile.
class OffsetIndex {
public:
    struct Entry {
        Offset offset{};
        FilePosition position{};
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    static constexpr std::size_t entry_bytes = 8;

    OffsetIndex(OpenFiles& files, const SegmentPath& path) : file_(files, path, FileKind::offset_index, entry_bytes), base_(path.base()) {}

    /// The entry with the largest offset ≤ `target`, or (base, 0).
    Result<Entry> lookup(Offset target) const;
    /// The first entry at or behind `position`.
    Result<std::optional<Entry>> first_at_or_after(FilePosition position) const;
    Result<Entry> entry(std::int64_t n) const;
    Result<std::optional<Entry>> last() const;

    bool is_full() const { return file_.entries() >= file_.capacity(); }
    /// Errc::invalid_argument when it is full, Errc::unexpected_offset when the offset does not rise.
    Result<> append(Offset, FilePosition);
    /// Drops the entries with an offset ≥ `offset`.
    Result<> truncate_to(Offset offset);
    /// What a reader of a file that somebody else may have damaged asks first (D13): length, first and last entry, zeros
    /// at the end, positions inside `log_bytes`. Errc::corrupt.
    Result<> check(std::int64_t log_bytes) const;

    IndexFile& file() { return file_; }
    const IndexFile& file() const { return file_; }

private:
    IndexFile file_;
    const Offset base_;
};

}  // namespace tidemark::storage
