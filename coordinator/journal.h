/// One partition of an internal topic as its coordinator sees it: a log that only this coordinator writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tidemark::storage {
class Log;
enum class VerificationId : std::uint64_t;
}  // namespace tidemark::storage

namespace tidemark::coordinator {

struct JournalAppend {
    std::int16_t transaction_version = 0;                    ///< of a marker's transaction
    /// Inside a transaction: what Log::begin_verification() gave before its coordinator was asked, so that the append is refused
    /// (Errc::invalid_transaction_state) when it has ended since. Nothing: nobody was asked.
    std::optional<storage::VerificationId> verification = {};
};

/// Threads: append() and read() one at a time; when_durable() from any thread.
class Journal {
public:
    virtual ~Journal() = default;

    virtual Offset start_offset() const = 0;
    virtual Offset end_offset() const = 0;
    /// Whole batches from the one that holds `from` on: at least one, more up to `bytes_max`. Open transactions' included.
    virtual Result<std::vector<std::byte>> read(Offset from, std::int64_t bytes_max) = 0;
    /// Appends one batch, whose offsets are assigned here. Returns its base offset. On an error nothing was written.
    virtual Result<Offset> append(MutableBytes batch, const JournalAppend&) = 0;
    /// Calls `done` when everything below `end` is as durable as the settings ask for; maybe at once.
    virtual void when_durable(Offset end, std::function<void(Result<>)> done) = 0;
};

/// Over a log of the storage. `wait_for_disk`: durability is not page-cache (D10).
std::shared_ptr<Journal> journal_of(std::shared_ptr<storage::Log>, bool wait_for_disk);

}  // namespace tidemark::coordinator
