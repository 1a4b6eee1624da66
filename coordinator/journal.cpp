#include "coordinator/journal.h"

#include "storage/log.h"

namespace tidemark::coordinator {

namespace {

class LogJournal final : public Journal {
public:
    LogJournal(std::shared_ptr<storage::Log> log, bool wait_for_disk) : log_(std::move(log)), wait_for_disk_(wait_for_disk) {}

    Offset start_offset() const override { return log_->log_start_offset(); }
    Offset end_offset() const override { return log_->log_end_offset(); }

    Result<std::vector<std::byte>> read(Offset from, std::int64_t bytes_max) override {
        TM_TRY(const auto slice, log_->read({.from = from, .bytes_max = bytes_max, .first_batch_whole = true, .isolation = storage::Isolation::log_end}));
        std::vector<std::byte> bytes(static_cast<std::size_t>(slice.bytes));
        if (bytes.empty()) return bytes;
        TM_TRY(const auto read, slice.file->read(slice.position, bytes));
        bytes.resize(read);
        return bytes;
    }

    Result<Offset> append(MutableBytes batch, const JournalAppend& options) override {
        TM_TRY(const auto appended, log_->append(batch, {.origin = storage::Origin::coordinator,
                                                         .leader_epoch = log_->latest_epoch(),
                                                         .transaction_verified = !options.verification,
                                                         .verification = options.verification.value_or(storage::VerificationId{}),
                                                         .transaction_version = options.transaction_version}));
        return appended.first_offset;
    }

    void when_durable(Offset end, std::function<void(Result<>)> done) override {
        if (!wait_for_disk_) return done({});
        log_->when_durable(end, std::move(done));
    }

private:
    const std::shared_ptr<storage::Log> log_;
    const bool wait_for_disk_;
};

}  // namespace

std::shared_ptr<Journal> journal_of(std::shared_ptr<storage::Log> log, bool wait_for_disk) { return std::make_shared<LogJournal>(std::move(log), wait_for_disk); }

}  // namespace tidemark::coordinator
