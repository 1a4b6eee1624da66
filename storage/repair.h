/// What becomes of a log whose damage was found at a start (D21): recovery cut it there, kept what lay behind the damage in
/// `B.log.damaged-<ms>`, and the log serves nothing until somebody has decided.
#pragma once

#include <vector>

#include "storage/recovery.h"

namespace tidemark::storage {

/// A kept file, and what of it could be put back.
struct KeptTail {
    io::Path file;
    Offset base{};                        ///< of the segment it was cut from
    std::int64_t bytes = 0;
    std::int64_t valid_bytes = 0;         ///< of whole batches with a right CRC
    std::int64_t batches = 0;
    std::int64_t records = 0;             ///< as their headers say
    Offset first{}, last{};               ///< offsets of these; nothing when batches is 0
};

/// The kept files of a partition's directory, by base offset. Reads all of each: up to 2 GiB into memory, one at a time.
Result<std::vector<KeptTail>> kept_tails(io::FileSystem&, const io::Path& partition_directory);

enum class Repair : std::uint8_t {
    restore,   ///< valid batches go back behind the log's end, at their own offsets; the damaged ones are a gap
    drop,      ///< what was kept is removed: the log ends where it was cut
};

struct RepairResult {
    std::int64_t batches = 0, records = 0;   ///< put back
    std::int64_t batches_below_end = 0;      ///< valid, but the log has gone on since: not put back
    Offset end{};                            ///< of the log now
};

/// Decides the matter for a log that nobody has open: opens it as `options` say, puts back what is to be put back, closes it
/// in order, and only then removes the kept files. When it is interrupted, it can be done again: what is there already lies
/// below the log's end.
Result<RepairResult> repair_log(LogDirectory&, const OpenLogOptions&, Repair);

}  // namespace tidemark::storage
