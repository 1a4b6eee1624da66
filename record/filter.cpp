#include "record/filter.h"

#include <limits>
#include <string>

#include "base/assert.h"

namespace tidemark::record {
namespace {

/// Leaves room for what a codec may add to data that it cannot compress.
constexpr std::size_t rebuilt_bytes_max = std::numeric_limits<std::int32_t>::max() - 32 * 1024 * 1024;

Error unbuildable(const BatchView& batch, std::string_view what) {
    return {Errc::invalid_record, "batch at offset " + std::to_string(batch.base_offset().value) + ": " + std::string{what}};
}

}  // namespace

Result<FilterOutcome> BatchFilter::filter(const BatchView& batch, const FilterOptions& options, RecordJudge& judge,
                                          std::vector<std::byte>& to) {
    FilterOutcome outcome;
    if (options.retention == Retention::remove) return outcome;
    TM_TRY(const Walk walk, this->judge(batch, judge));
    outcome.records_read = walk.read;
    outcome.records_kept = walk.kept;
    const auto before = to.size();

    if (walk.kept == 0) {
        if (options.retention != Retention::keep_when_empty) return outcome;
        if (batch.is_legacy()) return unbuildable(batch, "the old formats have no empty batches");
        write_empty_batch(batch, to);
        outcome.output = FilterOutcome::Output::empty;
        outcome.bytes_kept = to.size() - before;
        return outcome;
    }

    std::optional<Timestamp> horizon = batch.delete_horizon();
    const bool needs_horizon = !horizon && (walk.tombstone_kept || options.marker_of_empty_transaction);
    if (walk.kept == walk.read && !batch.is_legacy() && !needs_horizon) {
        outcome.output = FilterOutcome::Output::unchanged;
        outcome.bytes_kept = batch.size();
        return outcome;
    }
    if (needs_horizon) horizon = options.now + options.delete_retention_ms;
    if (auto rebuilt = rebuild(batch, walk, horizon, to); !rebuilt) {
        to.resize(before);
        return std::move(rebuilt).error();
    }
    outcome.output = FilterOutcome::Output::rebuilt;
    outcome.bytes_kept = to.size() - before;
    return outcome;
}

Result<BatchFilter::Walk> BatchFilter::judge(const BatchView& batch, RecordJudge& judge) {
    Walk walk;
    kept_.clear();
    TM_TRYV(reader_.open(batch));
    for (;;) {
        TM_TRY(const auto record, reader_.next());
        if (!record) return walk;
        ++walk.read;
        const bool keep = judge.keeps(batch, *record);
        kept_.push_back(keep);
        if (!keep) continue;
        if (walk.kept++ == 0) walk.first_kept = record->offset;
        walk.last_kept = record->offset;
        walk.tombstone_kept |= !record->value.has_value();
    }
}

Result<> BatchFilter::rebuild(const BatchView& batch, const Walk& walk, std::optional<Timestamp> horizon, std::vector<std::byte>& to) {
    TM_TRYV(check_buildable(batch));
    const bool append_time = batch.timestamp_type() == TimestampType::log_append_time;
    // A v2 batch keeps the range it claimed, which is what keeps its producer's last sequence. A legacy one shrinks to
    // what is left, and its records' missing timestamps become CreateTime -1.
    const Offset base = batch.is_legacy() ? walk.first_kept : batch.base_offset();
    const Offset last = batch.is_legacy() ? walk.last_kept : batch.last_offset();
    const auto range = static_cast<std::uint64_t>(last.value) - static_cast<std::uint64_t>(base.value);
    if (walk.first_kept < base || walk.last_kept > last || last < base || range > std::numeric_limits<std::int32_t>::max()) {
        return unbuildable(batch, "records outside its range of offsets");
    }
    builder_.start({.codec = batch.codec(),
                    .timestamp_type = append_time ? TimestampType::log_append_time : TimestampType::create_time,
                    .log_append_time = append_time ? std::optional{batch.max_timestamp()} : std::nullopt,
                    .base_offset = base,
                    .leader_epoch = batch.leader_epoch(),
                    .producer_id = batch.producer_id(),
                    .producer_epoch = batch.producer_epoch(),
                    .base_sequence = batch.base_sequence(),
                    .transactional = batch.is_transactional(),
                    .control = batch.is_control(),
                    .delete_horizon = horizon,
                    .last_offset = last});
    TM_TRYV(reader_.rewind());
    std::optional<Offset> previous;
    for (const bool keep : kept_) {
        TM_TRY(const auto record, reader_.next());
        TM_ASSERT(record.has_value());  // the same bytes as on the first walk
        if (!keep) continue;
        if (previous && record->offset <= *previous) return unbuildable(batch, "its offsets do not rise");
        if (record->offset < base || record->offset > last) return unbuildable(batch, "records outside its range of offsets");
        if (record->timestamp < no_timestamp) return unbuildable(batch, "a record with a negative timestamp");
        if (builder_.uncompressed_bytes() + record->content_bytes() > rebuilt_bytes_max) return Error{Errc::too_large, "batch at offset " + std::to_string(batch.base_offset().value) + " is too large to be built again"};
        builder_.append(record->offset, record->timestamp, record->key, record->value, record->headers, record->header_count);
        previous = record->offset;
    }
    builder_.finish(to);
    return {};
}

}  // namespace tidemark::record
