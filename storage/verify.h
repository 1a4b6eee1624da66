/// Whether a directory is what it claims to be: `tidemark verify`, and the end of every TestLog. Reads only, and everything.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/file_system.h"

namespace tidemark::storage {

struct Finding {
    enum class Kind : std::uint8_t {
        fault,      ///< something is wrong
        leftover,   ///< of something interrupted; the next start deals with it
    };
    Kind kind = Kind::fault;
    io::Path file;
    std::optional<FilePosition> position = {};
    std::string what;

    /// "…/00000000000000000000.log at 4711: wrong CRC".
    std::string text() const;
};

struct VerifyOptions {
    /// The log is open elsewhere or was not stopped cleanly: index files may end in zeros, the last batch may be cut.
    bool in_use = false;
    /// Records too, not only batches.
    bool records = true;
    /// Told after each file, with its bytes.
    std::function<void(std::int64_t bytes)> progress = {};
};

/// One partition's directory: names, batches, records, both indexes, aborted transactions, snapshots, epochs, metadata.
/// Errors are the system's; what is wrong with the data is in the findings, in the order of files and positions.
Result<std::vector<Finding>> verify_partition(io::FileSystem&, const io::Path& directory, const VerifyOptions& = {});

/// A log directory's own files: checkpoints, meta.properties, names of partitions. Not the partitions themselves.
Result<std::vector<Finding>> verify_log_directory(io::FileSystem&, const io::Path& directory);

}  // namespace tidemark::storage
