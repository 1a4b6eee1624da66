#include "cleaner/output.h"

#include <algorithm>

#include "base/assert.h"

namespace tidemark::cleaner {
namespace {

/// Runs of at least this are written from where they stand; smaller ones are copied together with what is around them.
constexpr std::size_t direct_bytes_min = 64 * 1024;

void append_all(auto& to, auto& from) {
    to.insert(to.end(), from.begin(), from.end());
    from.clear();
}

}  // namespace

Result<> Output::open(Offset base) {
    TM_TRY(auto segment, log_.create_cleaned_segment(base));
    segments_.push_back(std::move(segment));
    horizons_.emplace_back();
    forecast_ = {};
    return {};
}

Output::Pending Output::pending(const record::BatchView& batch, std::optional<Timestamp> horizon) {
    return {{static_cast<std::int64_t>(batch.size()), batch.last_offset(), batch.max_timestamp()}, batch.base_offset(), horizon};
}

Result<> Output::add_unchanged(const record::BatchView& batch, std::optional<Timestamp> horizon) {
    const auto bytes = batch.bytes();
    if (!run_.empty() && run_.data() + run_.size() == bytes.data()) {
        run_ = {run_.data(), run_.size() + bytes.size()};
    } else {
        TM_TRYV(settle());
        run_ = bytes;
    }
    run_batches_.push_back(pending(batch, horizon));
    return {};
}

Result<> Output::add_built(const record::BatchView& batch, std::optional<Timestamp> horizon) {
    TM_TRYV(settle());
    append_bytes(buffer_, batch.bytes());
    buffered_.push_back(pending(batch, horizon));
    if (static_cast<std::int64_t>(buffer_.size()) >= options_.buffer_bytes) return flush_buffer();
    return {};
}

Result<> Output::settle() {
    if (run_.empty()) return {};
    const auto run = std::exchange(run_, {});
    if (run.size() >= direct_bytes_min) {
        TM_TRYV(flush_buffer());
        TM_TRYV(write(run, run_batches_));
        run_batches_.clear();
        return {};
    }
    append_bytes(buffer_, run);
    append_all(buffered_, run_batches_);
    if (static_cast<std::int64_t>(buffer_.size()) >= options_.buffer_bytes) return flush_buffer();
    return {};
}

Result<> Output::flush_buffer() {
    if (buffer_.empty()) return {};
    TM_TRYV(write(buffer_, buffered_));
    buffer_.clear();
    buffered_.clear();
    return {};
}

/// Counts the batch in, unless the segment at hand cannot take it.
bool Output::take_room(const Batch& batch) {
    auto next = forecast_;
    next.bytes += batch.bytes;
    next.largest = std::max(next.largest, batch.max_timestamp);
    bool fits = next.bytes <= storage::segment_bytes_limit && batch.last_offset - segments_.back()->base_offset() <= storage::relative_offset_max;
    if (next.since_entry > options_.index_interval_bytes) {
        // The time index keeps its last slot for the closing entry, and is asked for room even when nothing new is stored.
        fits = fits && next.offset_entries < options_.index_bytes_max / 8 && next.time_entries < options_.index_bytes_max / 12 - 1;
        ++next.offset_entries;
        if (next.largest > next.last_entry) {
            ++next.time_entries;
            next.last_entry = next.largest;
        }
        next.since_entry = 0;
    }
    next.since_entry += batch.bytes;
    if (!fits && forecast_.bytes > 0) return false;
    forecast_ = next;
    return true;
}

Result<> Output::write(Bytes bytes, std::span<const Pending> batches) {
    if (!options_.overflow_continues) return append(bytes, batches);
    std::size_t from = 0, from_byte = 0, byte = 0;
    for (std::size_t i = 0; i < batches.size(); ++i) {
        if (!take_room(batches[i].batch)) {
            TM_TRYV(append(bytes.subspan(from_byte, byte - from_byte), batches.subspan(from, i - from)));
            TM_TRY(const auto reached, segments_.back()->next_offset());
            TM_TRYV(write_aborted(reached - 1));
            // A legacy batch tells its last offset only, so the segment for it begins where the one before it ends.
            const bool legacy = load_be<std::int8_t>(bytes.data() + byte + 16) < 2;
            TM_TRYV(open(legacy ? reached : batches[i].first));
            from = i;
            from_byte = byte;
            TM_ASSERT(take_room(batches[i].batch));
        }
        byte += static_cast<std::size_t>(batches[i].batch.bytes);
    }
    return append(bytes.subspan(from_byte), batches.subspan(from));
}

Result<> Output::append(Bytes bytes, std::span<const Pending> batches) {
    if (batches.empty()) return {};
    scratch_.clear();
    auto& horizon = horizons_.back();
    for (const auto& batch : batches) {
        scratch_.push_back(batch.batch);
        if (batch.horizon && (!horizon || *batch.horizon < *horizon)) horizon = batch.horizon;
    }
    TM_TRYV(segments_.back()->append(bytes, scratch_, true));
    bytes_ += static_cast<std::int64_t>(bytes.size());
    return {};
}

/// The entries of markers up to that offset go into the segment at hand; nothing: all.
Result<> Output::write_aborted(std::optional<Offset> up_to) {
    auto entry = aborted_.begin();
    for (; entry != aborted_.end() && (!up_to || entry->last_offset <= *up_to); ++entry) TM_TRYV(segments_.back()->append_aborted(*entry));
    aborted_.erase(aborted_.begin(), entry);
    return {};
}

Result<storage::SegmentList> Output::finish(Timestamp modified, Timestamp first_append) {
    TM_TRYV(settle());
    TM_TRYV(flush_buffer());
    TM_TRYV(write_aborted(std::nullopt));
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        TM_TRYV(segments_[i]->finish_cleaned(modified));
        segments_[i]->set_first_append_time(first_append);
        segments_[i]->set_earliest_delete_horizon(horizons_[i]);
    }
    return std::move(segments_);
}

void Output::discard() {
    for (const auto& segment : segments_) log_.discard_cleaned_segment(segment);
    segments_.clear();
}

}  // namespace tidemark::cleaner
