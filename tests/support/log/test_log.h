/// A log in memory that a test writes and reads in one line.
///
///     log.append("a=1 [b=1 c=~] | t1:[x=2 y=3] c1 d=4@5000");
///
///     a=1        one record in a batch of its own, at the clock's time        a=1@5000   at a timestamp of its own, -1: none
///     [a=1 b=2]  one batch of several records                                 a=~        a tombstone
///     _=1        a record without a key                                       |          the active segment is rolled
///     p1:…       a batch of idempotent producer 1                             t1:…       of a transaction of producer 1
///     c1 x1      the marker that commits, or aborts, producer 1's transaction
///     >42        what follows begins at offset 42 (as a follower would append it)
///
/// text() shows what is left, segment by segment: `1:b=1 2:a=~@h60s | 3:c=1`. @h is the delete horizon of the record's batch,
/// counted from the clock; `5:commit1` is a marker, `7:(p1)` an empty batch by its last offset. At its end every TestLog is
/// closed and verified.
#pragma once

#include <map>
#include <memory>

#include "base/clock.h"
#include "cleaner/cleaning.h"
#include "cleaner/log_state.h"
#include "io/memory_file_system.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"

namespace tidemark::test {

struct TestLogOptions {
    storage::LogConfig config = [] {
        storage::LogConfig c;
        c.compacts = true;
        c.deletes = false;
        c.min_cleanable_dirty_ratio = 0;
        return c;
    }();
    record::Codec codec = record::Codec::none;      ///< of the batches that append() makes
    std::int8_t magic = 2;                          ///< 0 and 1 are appended as a follower would
    cleaner::Differences differences = {};
    std::int64_t map_slots = 10'000;
    double map_load = 0.9;
    std::int64_t buffer_bytes = 262'144;
    io::FileSystem* files = nullptr;                ///< nothing: one of its own, in memory
    ManualClock* clock = nullptr;                   ///< likewise
    bool clean_stop = true;                         ///< of what is found on the disk
};

/// Life: opens `/logs/t-0`, creating it when it is missing. Errors of the disk end append() and clean(), which return them.
class TestLog {
public:
    explicit TestLog(TestLogOptions = {});
    ~TestLog();

    Result<> append(std::string_view notation);
    /// One pass as selection decides it, whatever the ratio; the first dirty offset is kept by this object.
    Result<cleaner::PassStats> clean();
    /// The same with a horizon pass (D5).
    Result<cleaner::PassStats> clean_horizons();
    std::string text() const;
    /// What a consumer in read_committed would have at the end: key → value of the latest visible record.
    std::map<std::string, std::string> committed() const;

    /// Closes and opens again: `clean` as after an orderly stop, otherwise as after a crash with everything written kept.
    void reopen(bool clean = true);
    /// Files of the partition's directory.
    std::vector<std::string> files() const;
    void set_config(const storage::LogConfig&);
    storage::LogConfig config() const { return *log->config(); }
    cleaner::CleaningDecision decide() const;
    /// Runs delayed deletes that are due.
    void run_background() { directory_->run_background(); }

private:
    std::unique_ptr<ManualClock> own_clock_;
    std::unique_ptr<io::MemoryFileSystem> own_files_;

public:
    ManualClock& clock;
    io::FileSystem& disk;
    std::shared_ptr<storage::Log> log;
    std::optional<Offset> checkpoint;               ///< the first dirty offset as the cleaner would store it
    cleaner::Workspace work;

private:
    struct Batch;
    Result<> append_batch(const Batch&);
    Result<> append_marker(ProducerId, bool commit);
    Result<> append_bytes(std::vector<std::byte>, storage::Origin);
    Result<> open(bool clean);
    Result<cleaner::PassStats> run(const cleaner::PassRequest&);

    TestLogOptions options_;
    std::unique_ptr<storage::LogDirectory> directory_;
    cleaner::Throttle throttle_;
    std::map<ProducerId, Sequence> next_sequence_;
    std::optional<Offset> next_offset_;             // set by ">"
};

}  // namespace tidemark::test
