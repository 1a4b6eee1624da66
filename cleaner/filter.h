/// Which batches and records a pass keeps: pure functions, one question each.
///
/// Source: cleaner 7.1, 7.3 and 7.5; KIP-534 (delete horizons), KAFKA-20452 (the batch that ends at the high watermark);
/// D5 and D7 of docs/differences.md.
#pragma once

#include "cleaner/offset_map.h"
#include "record/filter.h"
#include "storage/log.h"

namespace tidemark::cleaner {

/// What holds for all batches of one pass.
struct PassRules {
    Timestamp now{};                             ///< of the pass, fixed at its start
    Offset high_watermark{};
    std::int64_t delete_retention_ms = 0;
    /// False while the clock is not to be believed (D23): no horizon counts as passed.
    bool horizons_expire = true;
    /// D7: a record with an older timestamp goes, whether or not its key came again.
    std::optional<Timestamp> expired_before = {};
    /// D5: a horizon pass. Nothing goes but tombstones and control batches past their own horizon below this offset.
    std::optional<Offset> horizons_only_below = {};
    /// An erasing pass: nothing goes but records below this offset.
    std::optional<Offset> erase_below = {};

    bool has_passed(std::optional<Timestamp> horizon) const { return horizons_expire && horizon && *horizon <= now; }
};

/// D7, KIP-354: for `compact,delete` with a finite max.compaction.lag.ms, what is older than it and older than retention.ms.
std::optional<Timestamp> expired_before(const storage::LogConfig&, Timestamp now);

struct BatchVerdict {
    record::Retention retention = record::Retention::remove_when_empty;
    bool drop_records = false;                   ///< an aborted transaction's, or a marker past its horizon
    bool marker_of_empty_transaction = false;    ///< starts its horizon
    bool copy = false;                           ///< as it is, without a look inside (horizon pass)
};

/// `discardable`: the transaction tracker's verdict. `last`: what the batch's producer wrote last, when it is active.
BatchVerdict judge_batch(const record::BatchView&, bool discardable, const storage::LastProducerRecord* last, const PassRules&);

enum class RecordVerdict : std::uint8_t { keep, drop, drop_keyless };

/// What a record's fate depends on besides the map.
struct RecordFacts {
    Offset offset{};
    Timestamp timestamp = no_timestamp;
    bool has_key = false;
    bool is_tombstone = false;
};
/// `latest` is what the map holds for the record's key. `legacy_tombstones_stay`: of the source segment (cleaner 7.5).
RecordVerdict judge_record(const RecordFacts&, const record::BatchView&, const BatchVerdict&, std::optional<Offset> latest, Offset map_latest_offset,
                           bool legacy_tombstones_stay, const PassRules&);

/// Segments modified up to here lose their magic 0 and 1 tombstones: the file time of the last segment that begins below the
/// first dirty offset, less delete.retention.ms; 0 without one.
Timestamp legacy_horizon(std::optional<Timestamp> last_clean_modified, std::int64_t delete_retention_ms);

}  // namespace tidemark::cleaner
