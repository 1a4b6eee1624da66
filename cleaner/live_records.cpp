#include "cleaner/live_records.h"

#include <algorithm>
#include <utility>

#include "cleaner/offset_map.h"

namespace tidemark::cleaner {
namespace {

std::int64_t span_of(const record::BatchView& batch) { return std::int64_t{batch.last_offset_delta()} + 1; }
std::size_t words_for(std::int64_t span) { return static_cast<std::size_t>((span + 63) / 64); }

}  // namespace

void LiveRecords::clear(Offset first_dirty) {
    batches_.clear();
    bits_.clear();
    first_dirty_ = first_dirty;
    last_ = batch_end_ = Offset{-1};
    next_ = 0;
    open_ = gave_up_ = false;
}

bool LiveRecords::is_worth_it(const record::BatchView& batch) const {
    const auto count = batch.record_count();
    if (gave_up_ || batch.is_legacy() || !count || *count < records_min || batch.base_offset() < first_dirty_) return false;
    // An earlier pass may have left few records in a wide range: bits for nothing.
    const auto span = span_of(batch);
    if (span < 1 || span > 16 * std::int64_t{*count}) return false;
    const auto bytes = (batches_.size() + 1) * sizeof(Batch) + (bits_.size() + words_for(span)) * sizeof(std::uint64_t);
    return static_cast<std::int64_t>(bytes) <= bytes_max_ && batches_.size() < OffsetMap::note_max;
}

std::uint32_t LiveRecords::begin(const record::BatchView& batch) {
    // A legacy batch says where it ends only.
    if (batch.last_offset() <= batch_end_ || (!batch.is_legacy() && batch.base_offset() <= batch_end_)) give_up();
    batch_end_ = batch.last_offset();
    if (!batch.is_legacy()) last_ = std::max(last_, batch.base_offset() - 1);
    open_ = is_worth_it(batch);
    if (!open_) return 0;
    batches_.push_back({.base_offset = batch.base_offset(), .last_offset_delta = batch.last_offset_delta(), .first_word = static_cast<std::uint32_t>(bits_.size())});
    bits_.resize(bits_.size() + words_for(span_of(batch)));
    return static_cast<std::uint32_t>(batches_.size());
}

void LiveRecords::supersede(std::uint32_t number, Offset offset) {
    if (number == 0 || gave_up_) return;
    auto& batch = batches_.at(number - 1);
    const auto bit = static_cast<std::uint64_t>(offset - batch.base_offset);
    bits_.at(batch.first_word + bit / 64) |= std::uint64_t{1} << (bit % 64);
    ++batch.superseded;
}

void LiveRecords::abandon() {
    // No later record comes, so nobody will name it any more.
    if (std::exchange(open_, false)) batches_.pop_back();
}

void LiveRecords::give_up() {
    batches_.clear();
    bits_.clear();
    open_ = false;
    gave_up_ = true;
}

const LiveRecords::Batch* LiveRecords::find(const record::BatchView& batch) {
    while (next_ < batches_.size() && batches_[next_].base_offset < batch.base_offset()) ++next_;
    if (next_ == batches_.size()) return nullptr;
    const auto& found = batches_[next_];
    return found.base_offset == batch.base_offset() && found.last_offset_delta == batch.last_offset_delta() ? &found : nullptr;
}

}  // namespace tidemark::cleaner
