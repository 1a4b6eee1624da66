// 1. The kept files are read, their valid batches found (valid_batch_at()).
// 2. restore: they are appended as a follower appends, in the order of their offsets.
// 3. The log is closed in order, so everything is on disk. 4. The kept files go, and the names are synced.
#include "storage/repair.h"

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "storage/directory_names.h"

namespace tidemark::storage {
namespace {

constexpr int unlimited_tries = std::numeric_limits<int>::max();

/// Calls `take` with each valid batch of a kept file.
Result<> for_each_batch(io::FileSystem& files, const KeptTail& tail, const std::function<Result<>(const record::BatchView&)>& take) {
    TM_TRY(const auto content, io::read_whole(files, tail.file, segment_bytes_limit));
    int tries = unlimited_tries;
    for (std::size_t at = 0; at < content.size();) {
        const auto batch = valid_batch_at(content, at, tail.base, tries);
        if (batch) TM_TRYV(take(*batch));
        at += batch ? batch->size() : 1;
    }
    return {};
}

Result<> put_back(Log& log, io::FileSystem& files, const KeptTail& tail, RepairResult& result) {
    std::vector<std::byte> bytes;
    return for_each_batch(files, tail, [&](const record::BatchView& batch) -> Result<> {
        if (batch.base_offset() < log.log_end_offset()) {
            ++result.batches_below_end;
            return {};
        }
        bytes.assign(batch.bytes().begin(), batch.bytes().end());
        TM_TRY(const auto appended, log.append(bytes, {.origin = Origin::replication, .leader_epoch = std::numeric_limits<LeaderEpoch>::max()}));
        ++result.batches;
        result.records += appended.records;
        return {};
    });
}

/// Name, base and size of the kept files, by base offset.
Result<std::vector<KeptTail>> list_kept(io::FileSystem& files, const io::Path& partition_directory) {
    TM_TRY(const auto entries, files.list(partition_directory));
    std::vector<KeptTail> tails;
    for (const auto& entry : entries) {
        const auto base = parse_damaged_file_name(entry.name);
        if (!base || entry.is_directory) continue;
        KeptTail tail{.file = io::join(partition_directory, entry.name), .base = *base};
        TM_TRY(const auto status, files.status(tail.file));
        if (status) tail.bytes = status->bytes;
        tails.push_back(std::move(tail));
    }
    std::sort(tails.begin(), tails.end(), [](const auto& a, const auto& b) { return a.base < b.base; });
    return tails;
}

}  // namespace

Result<std::vector<KeptTail>> kept_tails(io::FileSystem& files, const io::Path& partition_directory) {
    TM_TRY(auto tails, list_kept(files, partition_directory));
    for (auto& tail : tails) {
        TM_TRYV(for_each_batch(files, tail, [&](const record::BatchView& batch) -> Result<> {
            if (tail.batches++ == 0) tail.first = batch.base_offset();
            tail.last = batch.last_offset();
            tail.valid_bytes += static_cast<std::int64_t>(batch.size());
            tail.records += batch.record_count().value_or(0);
            return {};
        }));
    }
    return tails;
}

Result<RepairResult> repair_log(LogDirectory& directory, const OpenLogOptions& options, Repair how) {
    auto& files = directory.files();
    TM_TRY(const auto tails, list_kept(files, options.directory));
    RepairResult result;
    auto open = options;
    open.serve_damaged = true;
    {
        TM_TRY(const auto log, open_log(directory, open));
        if (how == Repair::restore) {
            for (const auto& tail : tails) TM_TRYV(put_back(*log, files, tail, result));
        }
        result.end = log->log_end_offset();
        TM_TRYV(log->close());
    }
    for (const auto& tail : tails) TM_TRYV(files.remove(tail.file));
    TM_TRYV(sync_names_in(files, options.directory));
    log_info("[{}] repaired: {} batches were put back, the log ends at {}", options.partition, result.batches, result.end.value);
    return result;
}

}  // namespace tidemark::storage
