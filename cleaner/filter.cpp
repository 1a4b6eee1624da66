#include "cleaner/filter.h"

#include <algorithm>

namespace tidemark::cleaner {
namespace {

bool is_last_of_producer(const record::BatchView& batch, const storage::LastProducerRecord* last) {
    if (!batch.has_producer_id() || last == nullptr) return false;
    if (last->last_data_offset) return batch.last_offset() == *last->last_data_offset;
    return batch.is_control() && batch.producer_epoch() == last->epoch;
}

}  // namespace

std::optional<Timestamp> expired_before(const storage::LogConfig& config, Timestamp now) {
    if (!config.compacts || !config.deletes || config.max_compaction_lag_ms == storage::unlimited) return std::nullopt;
    if (!config.retention_ms || *config.retention_ms < 0) return std::nullopt;
    const auto age = std::max(*config.retention_ms, config.max_compaction_lag_ms);
    if (age > now.value) return std::nullopt;
    return now - age;
}

BatchVerdict judge_batch(const record::BatchView& batch, bool discardable, const storage::LastProducerRecord* last, const PassRules& rules) {
    BatchVerdict verdict;
    if (rules.horizons_only_below) {
        // Only an ordinary pass knows transactions; here a control batch that is not past its horizon stays whatever it is.
        const bool due = rules.has_passed(batch.delete_horizon()) && batch.base_offset() < *rules.horizons_only_below;
        verdict.copy = !due || batch.is_legacy();
        if (verdict.copy) return verdict;
        verdict.drop_records = batch.is_control();
        if (verdict.drop_records && batch.last_offset() >= *rules.horizons_only_below) return {.copy = true};
    } else if (rules.erase_below) {
        verdict.copy = batch.is_control() || batch.base_offset() >= *rules.erase_below;
        if (verdict.copy) return verdict;
    } else {
        verdict.drop_records = batch.is_control() ? discardable && rules.has_passed(batch.delete_horizon()) : discardable;
        verdict.marker_of_empty_transaction = discardable && batch.is_control();
    }
    if (is_last_of_producer(batch, last) || batch.next_offset() == rules.high_watermark) {
        verdict.retention = record::Retention::keep_when_empty;
    } else if (verdict.drop_records) {
        verdict.retention = record::Retention::remove;
    }
    return verdict;
}

RecordVerdict judge_record(const RecordFacts& record, const record::BatchView& batch, const BatchVerdict& verdict, std::optional<Offset> latest,
                           Offset map_latest_offset, bool legacy_tombstones_stay, const PassRules& rules) {
    if (verdict.drop_records) return RecordVerdict::drop;
    if (rules.erase_below) return record.offset < *rules.erase_below ? RecordVerdict::drop : RecordVerdict::keep;
    if (rules.horizons_only_below) {
        // Its batch's horizon has passed, or it would have been copied.
        return record.is_tombstone && record.offset < *rules.horizons_only_below ? RecordVerdict::drop : RecordVerdict::keep;
    }
    if (batch.is_control() || record.offset > map_latest_offset) return RecordVerdict::keep;
    if (!record.has_key) return RecordVerdict::drop_keyless;
    if (latest && record.offset < *latest) return RecordVerdict::drop;
    if (record.is_tombstone) {
        const bool stays = batch.is_legacy() ? legacy_tombstones_stay : !rules.has_passed(batch.delete_horizon());
        return stays ? RecordVerdict::keep : RecordVerdict::drop;
    }
    if (rules.expired_before && record.timestamp >= Timestamp{0} && record.timestamp < *rules.expired_before) return RecordVerdict::drop;
    return RecordVerdict::keep;
}

Timestamp legacy_horizon(std::optional<Timestamp> last_clean_modified, std::int64_t delete_retention_ms) {
    if (!last_clean_modified) return Timestamp{0};
    std::int64_t horizon;
    if (__builtin_sub_overflow(last_clean_modified->value, delete_retention_ms, &horizon)) return Timestamp{std::numeric_limits<std::int64_t>::min()};
    return Timestamp{horizon};
}

}  // namespace tidemark::cleaner
