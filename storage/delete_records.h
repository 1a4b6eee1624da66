/// DeleteRecords of many logs at once.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tidemark::storage {

class Log;

struct RecordDeletion {
    std::shared_ptr<Log> log;
    std::optional<Offset> before;                 ///< nothing: the high watermark
};

/// Raises the log starts, durably, with one write of each directory's checkpoint. Returns the log start of each after it, in
/// order; one that fails leaves the others. Log::delete_records_before() is this for one log.
std::vector<Result<Offset>> delete_records(const std::vector<RecordDeletion>&);

}  // namespace tidemark::storage
