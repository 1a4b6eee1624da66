/// A log in memory, written and read in one line of text, so that a test reads as before, act, after:
///
///     StorageLog log{{.delete_retention = 60s}};
///     log.append("a=1 [b=1 c=1] | a=~ | c=2");
///     EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=1] | 3:a=~ | 4:c=2");
///
/// Written:  `key=value`, `~` a tombstone (null value), `-=v` a null key, one batch per record or `[…]` for several in one,
///           `|` rolls. `key=value@30` gives the record the timestamp start + 30 ms; without it, the clock's.
/// Read:     `offset:key=value` in the same form; a batch of one record over one offset stands alone, others in brackets; an
///           empty batch is `[3..4]`; markers `7:commit/42`, `7:abort/42`; `@h60s` a batch with a delete horizon of
///           start + 60 s (`@h90ms` when it is no whole second).
/// At its end every StorageLog is closed and verified.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>

#include "io/memory_file_system.h"
#include "record/builder.h"
#include "storage/log.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"

namespace tidemark::test {

struct StorageLogOptions {
    std::chrono::milliseconds delete_retention = std::chrono::hours{24};
    record::Codec codec = record::Codec::none;              ///< of what append() sends
    storage::LogConfig config = {};                         ///< delete_retention above wins
    storage::StorageOptions storage = {};
    io::FileSystem* files = nullptr;                        ///< the test's own; otherwise one in memory
    bool verify_at_end = true;
};

/// Threads: none.
class StorageLog {
public:
    explicit StorageLog(StorageLogOptions = {});
    ~StorageLog();
    StorageLog(const StorageLog&) = delete;
    StorageLog& operator=(const StorageLog&) = delete;

    ManualClock clock;
    const Timestamp start;

    storage::Log& operator*() { return *log_; }
    storage::Log* operator->() { return log_.get(); }
    const std::shared_ptr<storage::Log>& shared() const { return log_; }
    storage::LogDirectory& directory() { return *directory_; }
    io::FileSystem& files() { return *files_; }
    io::Path path() const;

    /// Appends as a client; every record must be accepted.
    void append(std::string_view text);
    /// The same inside an open transaction of that producer, whose sequences go on by themselves.
    void append_in_transaction(ProducerId, std::string_view text, ProducerEpoch = 0);
    /// Idempotent without a transaction.
    void append_as(ProducerId, std::string_view text, ProducerEpoch = 0);
    void commit(ProducerId, ProducerEpoch = 0);
    void abort(ProducerId, ProducerEpoch = 0);
    /// One batch as a follower: at its own offsets.
    Result<storage::AppendInfo> append_batch(std::vector<std::byte> batch);
    Result<storage::AppendInfo> append_as_client(std::vector<std::byte> batch);

    /// All segments, `|` between them.
    std::string text() const;
    /// What a reader gets from `from` on, without the rolls.
    std::string read(Offset from, storage::Isolation = storage::Isolation::read_uncommitted) const;
    std::vector<std::string> file_names() const;

    /// Stops cleanly and opens again.
    void reopen();
    /// Opens what is on the disk, after the test has closed the log and changed something there.
    void open_again(bool clean);
    /// Drops the log as it is, and opens what is on the disk as after a kill.
    void crash_and_reopen(Offset recovery_point = {});
    storage::RecoveryReport last_recovery;

    void set_config(const storage::LogConfig&);
    storage::LogConfig config() const { return *log_->config(); }

private:
    struct Item {
        bool roll = false;
        std::vector<std::byte> batch;
        std::int32_t records = 0;
    };
    std::vector<Item> parse(std::string_view text, record::BatchOptions) const;
    void append_all(std::string_view text, record::BatchOptions, Sequence* sequence);
    void mark(ProducerId, ProducerEpoch, record::ControlType);
    void open(bool clean, Offset recovery_point);

    StorageLogOptions options_;
    std::unique_ptr<io::FileSystem> own_files_;
    io::FileSystem* files_;
    std::unique_ptr<storage::LogDirectory> directory_;
    std::shared_ptr<storage::Log> log_;
    std::map<std::pair<ProducerId, ProducerEpoch>, Sequence> sequences_;
};

/// The batches in `bytes` as StorageLog::text() shows them, `start` being the zero of horizons.
std::string text_of(Bytes batches, Timestamp start);

}  // namespace tidemark::test
