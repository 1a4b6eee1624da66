/// Moving a log to another log directory while it is read and written (KIP-113, log-directory 1).
///
///  1. `<topic>-<partition>.<32 hex>-future` in the other directory: the segments' `.log` files are copied as they are
///  2. it is opened as after a crash: every batch is checked, indexes and producers come from the records
///  3. what was appended meanwhile is appended there, until little is missing
///  4. under the log's locks: the rest, everything synced, a file that says that the copy is complete
///  5. the log's own directory becomes `-delete`, the other one gets the live name; each is durable before the next
///  6. the Log goes on with the copy's files: whoever holds it, or a slice of it, notices nothing
///
/// A crash before the first rename of 5 leaves the log where it was: the start begins the move anew. After it the log is found
/// nowhere else, and the start takes the copy, which says that it is complete.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "storage/log_state.h"

namespace tidemark::storage {

struct MoveProgress {
    std::atomic<std::int64_t> bytes{0};          ///< copied so far
    std::atomic<std::int64_t> end_offset{0};     ///< of the copy
};

/// Life:    constructed; copy(), then finish(), each once. Destroyed without finish() it leaves the copy's directory to the caller.
/// Threads: none; the log is used by others all the while, but is not closed, removed or repaired during finish().
/// Errors:  Errc::aborted: cancelled, or the log was truncated; the log goes on where it is.
class LogMove {
public:
    struct Target {
        LogDirectory& directory;
        io::Path future, live;                   ///< of the copy, before and after
        io::Path deleted;                        ///< what the log's directory of now becomes
    };
    LogMove(std::shared_ptr<Log>, Target, std::shared_ptr<MoveProgress>, std::function<bool()> is_cancelled);
    ~LogMove();

    /// Steps 1 to 3.
    Result<> copy();
    /// Steps 4 to 6; appends wait for it.
    Result<> finish();

    /// The directory that is the log's no longer.
    const io::Path& left_behind() const { return target_.deleted; }

private:
    Result<> copy_segments();
    Result<> copy_segment(const Segment&);
    Result<> open_copy();
    Result<> append_missing();
    Result<> roll_copy_to(Offset base);
    Result<> complete_copy(Log::State& s) REQUIRES(s.append_mutex);
    Result<> exchange_names(Log::State& s);
    void exchange_segments(Log::State& s) REQUIRES(s.append_mutex);
    Error in_target(Error error, std::string_view doing) const;

    const std::shared_ptr<Log> log_;
    const Target target_;
    const std::shared_ptr<MoveProgress> progress_;
    const std::function<bool()> is_cancelled_;
    std::shared_ptr<Log> copy_;
    std::uint64_t truncations_ = 0;              // of the log, when the copy began
};

}  // namespace tidemark::storage
