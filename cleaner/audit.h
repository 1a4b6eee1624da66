/// Where values of a key still are in a partition's directory, which rule removes each of them, and by when.
///
/// Reads files only: beside a running daemon, or at rest. What a consumer sees decides what is to go: the latest committed
/// record of a key stays, every other value of it is owed to the rules below.
///
///     superseded       compaction: max.compaction.lag.ms after the record that superseded it was appended (KIP-354), then
///                      file.delete.delay.ms for the old file
///     .deleted         unlinked file.delete.delay.ms after it was renamed
///     .cleaned .swap   left by a pass that a stop cut off: the next start
///     .damaged         cut off at recovery (D21): `tidemark repair`
///
/// Two backoffs and the pass itself come on top; `AuditFacts::grace_ms` is for them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "storage/log_config.h"

namespace tidemark::cleaner {

struct AuditFacts {
    storage::LogConfig config = {};
    Offset first_dirty{};                              ///< the cleaner's checkpoint
    Timestamp now{};
    std::int64_t grace_ms = 0;                         ///< beyond a deadline before it counts as missed
    bool directory_deleted = false;                    ///< of a `-delete` directory: all of it goes
};

/// One value, or tombstone, of one of the keys that were asked for.
struct AuditTrace {
    enum class Place : std::uint8_t {
        live,        ///< a segment of the log
        deleted,     ///< renamed, not unlinked yet
        leftover,    ///< .cleaned or .swap
        damaged,     ///< .damaged-<ms>
        unlinked,    ///< gone from the directory, but open somewhere
    };
    io::Path file = {};
    Place place = Place::live;
    FilePosition position{};                           ///< of its batch
    Offset offset{};
    Timestamp timestamp = no_timestamp;
    std::size_t key = 0;                               ///< among those asked for
    bool is_tombstone = false;
    bool is_clean = false;                             ///< below the first dirty offset

    std::string rule = {};                                 ///< what removes it; or that it stays
    bool stays = false;                                ///< the latest value of its key, or what says that there is none
    std::optional<Timestamp> due = {};                      ///< by when the rule has to have removed it from its file
    std::optional<Timestamp> gone = {};                     ///< by when no file holds it
    std::string held_by = {};                              ///< why the rule must not act yet: an open transaction
    bool past_deadline = false;
};
const char* to_string(AuditTrace::Place) noexcept;

/// One partition. Errors: what cannot be read; a torn end of a file is none.
Result<std::vector<AuditTrace>> audit_partition(io::FileSystem&, const io::Path& directory, std::span<const std::vector<std::byte>> keys, const AuditFacts&);

/// A file without a name that `file` still gives access to; `unlinked_at` is when it lost it.
Result<std::vector<AuditTrace>> audit_unlinked(const io::File&, const io::Path& name, std::span<const std::vector<std::byte>> keys, Timestamp unlinked_at, const AuditFacts&);

}  // namespace tidemark::cleaner
