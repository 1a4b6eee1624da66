/// What cleaner and retention report, as the audit trail keeps it.
#pragma once

#include "cleaner/cleaner_pool.h"
#include "retention/scheduler.h"
#include "storage/audit_trail.h"

namespace tidemark {

storage::CleaningEntry audit_entry(const cleaner::PassReport&);
/// `now`: when it was renamed; its files go `file_delete_delay_ms` later.
storage::DeletionEntry audit_entry(const retention::SegmentReport&, Timestamp now, std::int64_t file_delete_delay_ms);

}  // namespace tidemark
