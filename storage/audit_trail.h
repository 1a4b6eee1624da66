/// What left the logs, and why, for those who have to prove it: one JSON object per line for each cleaning pass and for each
/// segment that was deleted. docs/operating.md names the members; `tidemark audit --trail` reads them.
///
///     {"time":1700000000000,"event":"cleaned","topic":"orders","partition":3,"from":0,"to":4200,…}
///     {"time":1700000000000,"event":"deleted","topic":"orders","partition":3,"from":0,"to":4200,"rule":"retention.ms",…}
///
/// The file grows to bytes_max, is then renamed to `<path>.1`, what had that name to `<path>.2`, and so on; the oldest goes.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/topic_partition.h"
#include "base/types.h"
#include "io/file_system.h"

namespace tidemark::storage {

struct AuditTrailOptions {
    io::Path path = {};
    std::int64_t bytes_max = 64 << 20;                ///< of one file
    int files_max = 10;                               ///< the one being written included
};

/// A cleaning pass that ended well. Numbers are those of the pass.
struct CleaningEntry {
    TopicPartition partition = {};
    std::string reason = {};                             ///< why it was chosen: overdue, dirty ratio, …
    Timestamp began{};
    double seconds = 0;
    Offset from{}, to{};                              ///< the dirty part that is clean now
    std::optional<Timestamp> deadline = {};                ///< max.compaction.lag.ms after the oldest record of it
    std::int64_t bytes_before = 0, bytes_after = 0;   ///< of the segments that were rewritten
    std::int64_t segments_before = 0, segments_after = 0;
    std::int64_t superseded = 0;                      ///< records removed because their key came again
    std::int64_t tombstones = 0;                      ///< removed past their delete horizon
    std::int64_t expired = 0, erased = 0, keyless = 0, markers = 0, aborted_batches = 0;
};

/// A segment that retention deleted.
struct DeletionEntry {
    TopicPartition partition = {};
    Offset from{}, to{};                              ///< base offset; offset behind its last
    std::int64_t bytes = 0;
    std::optional<std::int64_t> records = {};
    std::string rule = {};                               ///< the setting: retention.ms, retention.bytes, …
    std::string reason = {};                             ///< in words, with the limit
    std::optional<std::int64_t> limit = {};                ///< of the rule, in its unit
    std::optional<Timestamp> largest_timestamp = {};       ///< of its records
    std::optional<Timestamp> gone_at = {};                 ///< when file.delete.delay.ms will be over
};

/// Threads: add() from any thread. A line is in the page cache when it returns, and is not synced: what counts is that the
///          data is gone. A trail that cannot be written is logged once, and stops nothing.
class AuditTrail {
public:
    AuditTrail(io::FileSystem&, const Clock&, AuditTrailOptions);
    ~AuditTrail();

    void add(const CleaningEntry&) EXCLUDES(mutex_);
    void add(const DeletionEntry&) EXCLUDES(mutex_);

private:
    void write(const std::string& line) EXCLUDES(mutex_);
    Result<> append(Bytes line) REQUIRES(mutex_);
    Result<> open() REQUIRES(mutex_);
    Result<> rotate() REQUIRES(mutex_);

    io::FileSystem& files_;
    const Clock& clock_;
    const AuditTrailOptions options_;
    Mutex mutex_;
    std::unique_ptr<io::File> file_ GUARDED_BY(mutex_);
    std::int64_t bytes_ GUARDED_BY(mutex_) = 0;
    bool failed_ GUARDED_BY(mutex_) = false;
};

/// The names of the file and of those it was rotated to, oldest first.
std::vector<io::Path> audit_trail_files(io::FileSystem&, const io::Path& path);

}  // namespace tidemark::storage
