// A pass:
// 1. Walk the dirty part once: per key the offset of its last record goes into the map, until the map is full. Data of
//    aborted transactions does not count. Where the walk ends is the next first dirty offset.
// 2. Group the segments below that offset so that each group fits one segment.
// 3. Per group: stream its batches through the filter into a `.cleaned` segment (or several, D16); sync it; swap it in.
// A horizon pass (D5) does only 3, for the segments of the clean part that hold an expired horizon, each on its own.
#include "cleaner/cleaning.h"

#include <algorithm>
#include <array>
#include <thread>

#include "cleaner/chunk_reader.h"
#include "cleaner/grouping.h"
#include "cleaner/output.h"
#include "cleaner/transactions.h"
#include "storage/log_directory.h"

namespace tidemark::cleaner {
namespace {

using record::BatchView;
using storage::Segment;
using storage::SegmentList;
using SegmentPointer = std::shared_ptr<Segment>;

/// Those with first ≤ base < end, and the one that holds `first`.
SegmentList segments_between(const SegmentList& all, Offset first, Offset end) {
    SegmentList some;
    for (std::size_t i = 0; i < all.size() && all[i]->base_offset() < end; ++i) {
        const bool holds_or_follows = i + 1 == all.size() || all[i + 1]->base_offset() > first;
        if (holds_or_follows) some.push_back(all[i]);
    }
    return some;
}

/// Type of a control batch's record; nothing when an earlier pass emptied it.
Result<std::optional<record::ControlType>> control_type_of(const BatchView& batch, record::RecordReader& reader) {
    TM_TRYV(reader.open(batch));
    TM_TRY(const auto record, reader.next());
    if (!record) return std::optional<record::ControlType>{};
    TM_TRY(const auto type, record::control_type(*record));
    return std::optional{type};
}

/// What the filter asks per record, and what it learns by that of the batch at hand.
class Judge final : public record::RecordJudge {
public:
    Judge(const OffsetMap& map, const LiveRecords& live, const PassRules& rules, PassStats& stats) : map_(map), live_(live), rules_(rules), stats_(stats) {}

    /// `known`: what the first walk found out about the batch, if it did.
    void start(const BatchVerdict& verdict, bool legacy_tombstones_stay, const LiveRecords::Batch* known) {
        verdict_ = verdict;
        legacy_tombstones_stay_ = legacy_tombstones_stay;
        known_ = known;
        tombstone_kept_ = false;
    }
    bool tombstone_kept() const { return tombstone_kept_; }

    bool keeps(const BatchView& batch, const record::RecordView& record) override {
        const RecordFacts facts{record.offset, record.timestamp, record.key.has_value(), !record.value.has_value()};
        const bool asks_map = facts.has_key && !verdict_.drop_records && !batch.is_control() && !rules_.horizons_only_below && !rules_.erase_below && record.offset <= map_.latest_offset();
        const auto latest = asks_map ? latest_of(record) : std::nullopt;
        const auto verdict = judge_record(facts, batch, verdict_, latest, map_.latest_offset(), legacy_tombstones_stay_, rules_);
        if (verdict == RecordVerdict::keep) {
            tombstone_kept_ |= facts.is_tombstone;
            return true;
        }
        count_dropped(facts, verdict, latest);
        return false;
    }

private:
    std::optional<Offset> latest_of(const record::RecordView& record) const {
        if (known_) return live_.is_superseded(*known_, record.offset) ? record.offset + 1 : record.offset;
        return map_.get(map_.hash(*record.key));
    }

    void count_dropped(const RecordFacts& facts, RecordVerdict verdict, std::optional<Offset> latest) {
        if (rules_.erase_below) ++stats_.erased;
        if (rules_.erase_below || verdict_.drop_records) return;
        if (verdict == RecordVerdict::drop_keyless) ++stats_.invalid_messages_read;
        else if (latest && facts.offset < *latest) ++stats_.superseded;
        else if (facts.is_tombstone) ++stats_.tombstones_removed;
        else ++stats_.expired;
    }

    const OffsetMap& map_;
    const LiveRecords& live_;
    const PassRules& rules_;
    PassStats& stats_;
    const LiveRecords::Batch* known_ = nullptr;
    BatchVerdict verdict_;
    bool legacy_tombstones_stay_ = false;
    bool tombstone_kept_ = false;
};

class Pass {
public:
    Pass(storage::Log& log, const PassRequest& request, const PassOptions& options, Workspace& work, Throttle& throttle, const Clock& clock,
         const KeepGoing& keep_going)
        : log_(log), request_(request), options_(options), work_(work), throttle_(throttle), clock_(clock), keep_going_(keep_going), config_(log.config()) {}

    Result<PassStats> run() {
        const auto began = clock_.since_boot();
        TM_TRYV(log_.load_producers());   // their last batches stay
        rules_.now = clock_.now();
        rules_.delete_retention_ms = config_->delete_retention_ms;
        rules_.horizons_expire = request_.horizons_expire;
        work_.live.clear(request_.first_dirty);
        if (request_.horizons_only) {
            rules_.horizons_only_below = request_.first_dirty;
            stats_.end_offset = request_.first_dirty;
            TM_TRYV(rewrite_expired());
        } else if (request_.erase_below) {
            rules_.erase_below = request_.erase_below;
            stats_.end_offset = *request_.erase_below;
            TM_TRYV(rewrite_first());
        } else {
            if (options_.differences.record_expiry && request_.horizons_expire) rules_.expired_before = expired_before(*config_, rules_.now);
            TM_TRYV(build_map());
            TM_TRYV(rewrite_all());
        }
        stats_.codec = static_cast<record::Codec>(std::ranges::max_element(codec_bytes_) - codec_bytes_.begin());
        stats_.seconds = std::chrono::duration<double>(clock_.since_boot() - began).count();
        return stats_;
    }

private:
    // --- 1. the map --------------------------------------------------------------------------------------------------

    Result<> build_map() {
        const auto dirty = segments_between(*log_.segments(), request_.first_dirty, request_.cleanable_end);
        // A key for each offset at most: a short range needs no large table.
        work_.map.prepare(request_.first_dirty, request_.cleanable_end);
        TransactionTracker transactions;
        transactions.add(log_.aborted_between(request_.first_dirty, request_.cleanable_end));
        for (std::size_t i = 0; i < dirty.size() && !stats_.map_was_full; ++i) {
            const auto end = i + 1 < dirty.size() ? dirty[i + 1]->base_offset() : request_.cleanable_end;
            TM_TRYV(within(*dirty[i], map_segment(*dirty[i], end, transactions)));
            // Over the gap, so that a segment of holes is not mapped again for ever.
            if (!stats_.map_was_full) work_.map.set_latest_offset(end - 1);
        }
        stats_.end_offset = std::max(work_.map.latest_offset() + 1, request_.first_dirty);
        stats_.buffer_utilization = work_.map.utilization();
        return {};
    }

    Result<> map_segment(const Segment& segment, Offset end, TransactionTracker& transactions) {
        TM_TRY(const auto file, segment.file());
        TM_TRY(const auto from, segment.index_lookup(std::max(request_.first_dirty, segment.base_offset())));
        file->will_read_sequentially();
        ChunkReader reader(*file, from.position, segment.bytes(), work_.read_buffer, limits());
        while (!reader.at_end()) {
            TM_TRY(const auto chunk, read(reader));
            record::BatchCursor batches(chunk);
            std::size_t used = 0;
            for (;;) {
                TM_TRY(const auto batch, batches.next());
                if (!batch) break;
                TM_TRYV(check_range(*batch, segment, end));
                TM_TRYV(map_batch(*batch, transactions));
                if (stats_.map_was_full) return {};
                used += batch->size();
            }
            stats_.map_bytes_read += static_cast<std::int64_t>(used);
            TM_TRYV(reader.advance(used));
        }
        return {};
    }

    Result<> map_batch(const BatchView& batch, TransactionTracker& transactions) {
        if (batch.is_control()) {
            TM_TRY(const auto type, control_type_of(batch, work_.reader));
            transactions.see_control(batch, type);
            ++stats_.map_messages_read;
        } else if (transactions.is_aborted(batch)) {
            stats_.map_messages_read += batch.record_count().value_or(0);
        } else {
            TM_TRYV(check_crc(batch));
            TM_TRYV(map_records(batch));
            if (stats_.map_was_full) return {};
        }
        if (batch.last_offset() >= request_.first_dirty) work_.map.set_latest_offset(batch.last_offset());
        return {};
    }

    /// The table is far larger than the processor's caches: its lines are asked for some keys ahead.
    struct Ahead {
        KeyHash hash;
        Offset offset{};
        bool counts = false;
    };

    Result<> map_records(const BatchView& batch) {
        std::array<Ahead, 32> ahead;
        std::size_t held = 0;
        const auto number = work_.live.begin(batch);
        TM_TRYV(work_.reader.open(batch));
        for (;;) {
            TM_TRY(const auto record, work_.reader.next());
            if (!record) break;
            // Where the next pass begins must not lie beyond what this one has seen.
            if (record->offset >= request_.cleanable_end) return outside(batch, record->offset);
            work_.live.add(record->offset, record->key.has_value(), !record->value);
            auto& next = ahead[held++];
            next.counts = record->key && record->offset >= request_.first_dirty;
            if (next.counts) {
                next = {work_.map.hash(*record->key), record->offset, true};
                work_.map.prefetch(next.hash);
            }
            if (held < ahead.size()) continue;
            if (!put_all(ahead, number)) return {};
            held = 0;
        }
        put_all(std::span(ahead).first(held), number);
        return {};
    }

    bool put_all(std::span<const Ahead> keys, std::uint32_t number) {
        for (const auto& key : keys) {
            if (key.counts) work_.map.prefetch_slot(key.hash);
        }
        for (const auto& key : keys) {
            if (key.counts) {
                // Full stops at the next key, even at one that the map holds.
                if (work_.map.full()) {
                    stats_.map_was_full = true;
                    work_.live.abandon();
                    return false;
                }
                const auto before = work_.map.put(key.hash, key.offset, number);
                if (before) work_.live.supersede(before->note, before->offset);
            }
            ++stats_.map_messages_read;
        }
        return true;
    }

    // --- 2. groups ---------------------------------------------------------------------------------------------------

    Result<> rewrite_all() {
        const auto sources = segments_between(*log_.segments(), Offset{0}, std::min(stats_.end_offset, request_.cleanable_end));
        std::optional<Timestamp> last_clean;
        std::vector<SegmentSize> sizes;
        for (const auto& segment : sources) {
            TM_TRY(const auto offset_index, segment->offset_index_bytes());
            TM_TRY(const auto time_index, segment->time_index_bytes());
            sizes.push_back({segment->base_offset(), segment->bytes(), offset_index, time_index});
            if (segment->base_offset() >= request_.first_dirty) continue;
            TM_TRY(last_clean, segment->modified());
        }
        legacy_horizon_ = legacy_horizon(last_clean, config_->delete_retention_ms);
        for (const auto& g : group(sizes, {config_->segment_bytes, config_->segment_index_bytes, request_.cleanable_end})) {
            const auto first = sources.begin() + static_cast<std::ptrdiff_t>(g.first);
            const auto after = g.first + g.count;
            TM_TRYV(rewrite_group({first, first + static_cast<std::ptrdiff_t>(g.count)}, after < sources.size() ? sources[after]->base_offset() : request_.cleanable_end));
        }
        return {};
    }

    Result<> rewrite_expired() {
        const auto all = *log_.segments();
        for (std::size_t i = 0; i + 1 < all.size() && all[i]->base_offset() < request_.first_dirty; ++i) {
            const auto horizon = all[i]->earliest_delete_horizon();
            if (horizon && rules_.has_passed(*horizon)) TM_TRYV(rewrite_group({all[i]}, all[i + 1]->base_offset()));
        }
        return {};
    }

    Result<> rewrite_first() {
        const auto all = *log_.segments();
        for (std::size_t i = 0; i + 1 < all.size(); ++i) {
            if (all[i]->base_offset() < *request_.erase_below && *request_.erase_below < all[i + 1]->base_offset()) return rewrite_group({all[i]}, all[i + 1]->base_offset());
        }
        return {};
    }

    // --- 3. one group ------------------------------------------------------------------------------------------------

    /// `end`: base of the segment behind them.
    Result<> rewrite_group(const SegmentList& sources, Offset end) {
        TM_TRYV(check_room(sources));
        rules_.high_watermark = log_.high_watermark();
        last_records_ = log_.last_producer_records();
        throttled_output_ = 0;
        Output output(log_, work_.write_buffer,
                      {.buffer_bytes = options_.buffer_bytes, .index_bytes_max = config_->segment_index_bytes, .index_interval_bytes = config_->index_interval_bytes,
                       .overflow_continues = options_.differences.output_overflow_continues});
        auto cleaned = fill(sources, end, output);
        if (!cleaned) {
            // Kafka leaves the files of a pass that failed, as opposed to one that was stopped, until the next start.
            const bool stopped = cleaned.error().code == Errc::aborted || cleaned.error().code == Errc::offset_overflow;
            if (stopped || options_.differences.remove_failed_output) output.discard();
            if (cleaned.error().code == Errc::offset_overflow && overflowing_) {
                TM_TRYV(split_segment(log_, overflowing_));
                return Error{Errc::aborted, "segment " + std::to_string(overflowing_->base_offset().value) + " was split, its offsets did not fit"};
            }
            return std::move(cleaned).error();
        }
        throttle_.note(output.bytes() - throttled_output_);   // the rest, written at the end
        stats_.bytes_written += output.bytes();
        stats_.segments_before += static_cast<std::int64_t>(sources.size());
        stats_.segments_after += static_cast<std::int64_t>(cleaned->size());
        const auto outputs = *cleaned;
        TM_TRYV(log_.replace_segments(*std::move(cleaned), sources));
        // Nobody reads the old files any more, and whoever wants the new ones is not in a hurry.
        for (const auto& list : {sources, outputs}) {
            for (const auto& segment : list) {
                if (const auto file = segment->file()) (*file)->drop_cached(FilePosition{0}, segment->bytes());
            }
        }
        return {};
    }

    /// D12: rather not begun than stopped by a full disk in the middle.
    Result<> check_room(const SegmentList& sources) const {
        std::int64_t bytes = 0;
        for (const auto& segment : sources) bytes += segment->bytes();
        TM_TRY(const auto space, log_.log_dir().files().space(log_.directory()));
        if (space.available >= bytes) return {};
        return Error{Errc::no_space, std::to_string(bytes) + " bytes are needed to rewrite, " + std::to_string(space.available) + " are free"};
    }

    Result<SegmentList> fill(const SegmentList& sources, Offset group_end, Output& output) {
        TM_TRYV(output.open(sources.front()->base_offset()));
        Timestamp modified{};
        std::optional<Timestamp> first_append;
        for (std::size_t i = 0; i < sources.size(); ++i) {
            const auto& source = *sources[i];
            TM_TRY(modified, source.modified());
            const auto appended = source.first_append_time().value_or(modified);
            if (!first_append || appended < *first_append) first_append = appended;
            overflowing_ = sources[i];
            const auto end = i + 1 < sources.size() ? sources[i + 1]->base_offset() : group_end;
            if (!request_.is_ordinary()) {
                TM_TRY(const auto aborted, source.aborted_transactions());
                for (const auto& entry : aborted) output.add_aborted(entry);
            } else {
                // Of the last source only what it really reaches: the next group asks for what lies behind.
                TM_TRY(const auto reached, i + 1 < sources.size() ? Result<Offset>{end} : source.next_offset());
                if (reached > source.base_offset()) transactions_.add(log_.aborted_between(source.base_offset(), reached));
            }
            TM_TRYV(within(source, copy(source, end, modified > legacy_horizon_, output)));
        }
        return output.finish(modified, *first_append);
    }

    Result<> copy(const Segment& source, Offset end, bool legacy_tombstones_stay, Output& output) {
        TM_TRY(const auto file, source.file());
        file->will_read_sequentially();
        ChunkReader reader(*file, FilePosition{0}, source.bytes(), work_.read_buffer, limits());
        while (!reader.at_end()) {
            TM_TRY(const auto chunk, read(reader));
            record::BatchCursor batches(chunk);
            std::size_t used = 0;
            for (;;) {
                TM_TRY(const auto batch, batches.next());
                if (!batch) break;
                TM_TRYV(check_range(*batch, source, end));
                TM_TRYV(copy_batch(*batch, legacy_tombstones_stay, output));
                used += batch->size();
            }
            const auto written_before = throttled_output_;
            TM_TRYV(output.settle());
            throttled_output_ = output.bytes();
            if (throttled_output_ > written_before) TM_TRYV(wait(throttled_output_ - written_before));
            TM_TRYV(reader.advance(used));
        }
        return {};
    }

    Result<> copy_batch(const BatchView& batch, bool legacy_tombstones_stay, Output& output) {
        stats_.bytes_read += static_cast<std::int64_t>(batch.size());
        codec_bytes_.at(std::min<std::size_t>(batch.codec_bits(), codec_bytes_.size() - 1)) += static_cast<std::int64_t>(batch.size());
        TM_TRY(const bool discardable, see(batch, output));
        const auto last = last_records_.find(batch.producer_id());
        const auto verdict = judge_batch(batch, discardable, last == last_records_.end() ? nullptr : &last->second, rules_);
        if (verdict.copy) {
            TM_TRYV(check_crc(batch));
            stats_.messages_written += batch.record_count().value_or(0);
            return output.add_unchanged(batch, batch.delete_horizon());
        }
        if (discardable && !batch.is_control()) ++stats_.aborted_batches;
        const auto* const known = verdict.drop_records || batch.is_control() ? nullptr : work_.live.find(batch);
        if (known) {
            TM_TRY(const bool done, copy_whole(batch, *known, verdict, output));
            if (done) return {};
        }
        if (verdict.retention != record::Retention::remove) TM_TRYV(check_crc(batch));
        judge_.start(verdict, legacy_tombstones_stay, known);
        built_.clear();
        TM_TRY(const auto outcome, work_.filter.filter(batch,
                                                       {.retention = verdict.retention, .marker_of_empty_transaction = verdict.marker_of_empty_transaction,
                                                        .now = rules_.now, .delete_retention_ms = rules_.delete_retention_ms},
                                                       judge_, built_));
        stats_.messages_read += outcome.records_read;
        stats_.messages_written += outcome.records_kept;
        const bool has_removable = judge_.tombstone_kept() || (batch.is_control() && outcome.records_kept > 0);
        switch (outcome.output) {
            case record::FilterOutcome::Output::nothing:
                if (batch.is_control()) ++stats_.markers_removed;
                return {};
            case record::FilterOutcome::Output::unchanged: return output.add_unchanged(batch, has_removable ? batch.delete_horizon() : std::nullopt);
            case record::FilterOutcome::Output::rebuilt:
            case record::FilterOutcome::Output::empty: break;
        }
        TM_TRY(const auto built, BatchView::parse(built_));
        return output.add_built(built, has_removable ? built.delete_horizon() : std::nullopt);
    }

    /// A batch of which all records stay, or none, is not read again; true when it was one.
    Result<bool> copy_whole(const BatchView& batch, const LiveRecords::Batch& known, const BatchVerdict& verdict, Output& output) {
        const auto keyed = known.records - known.keyless;
        const bool none_stays = known.superseded == keyed;
        const auto horizon = batch.delete_horizon();
        const bool tombstones_stay = known.tombstones == 0 || (horizon && !rules_.has_passed(horizon));
        const bool all_stay = known.superseded == 0 && known.keyless == 0 && tombstones_stay && !rules_.expired_before;
        if (!none_stays && !all_stay) return false;
        stats_.messages_read += known.records;
        if (none_stays) {
            stats_.superseded += keyed;
            stats_.invalid_messages_read += known.keyless;
            if (verdict.retention == record::Retention::keep_when_empty) TM_TRYV(add_empty(batch, output));
            return true;
        }
        TM_TRYV(check_crc(batch));
        stats_.messages_written += known.records;
        TM_TRYV(output.add_unchanged(batch, known.tombstones > 0 ? horizon : std::nullopt));
        return true;
    }

    Result<> add_empty(const BatchView& batch, Output& output) {
        TM_TRYV(check_crc(batch));
        built_.clear();
        record::write_empty_batch(batch, built_);
        TM_TRY(const auto built, BatchView::parse(built_));
        return output.add_built(built, std::nullopt);
    }

    /// Shows the batch to the transaction tracker; true: it is to be discarded.
    Result<bool> see(const BatchView& batch, Output& output) {
        if (!request_.is_ordinary()) return false;
        if (!batch.is_control()) return transactions_.is_aborted(batch);
        TM_TRY(const auto type, control_type_of(batch, work_.reader));
        const auto marker = transactions_.see_control(batch, type);
        if (marker.aborted) output.add_aborted(*marker.aborted);
        return marker.discardable;
    }

    // --- what both walks need ----------------------------------------------------------------------------------------

    BufferLimits limits() const { return {options_.buffer_bytes, config_->max_message_bytes, options_.broker_message_bytes_max}; }

    Result<Bytes> read(ChunkReader& reader) {
        TM_TRYV(keep_going_());
        TM_TRY(const auto chunk, reader.read());
        if (options_.progress) options_.progress(static_cast<std::int64_t>(chunk.size()));
        TM_TRYV(wait(static_cast<std::int64_t>(chunk.size())));
        return chunk;
    }

    /// Counts bytes on the throttle and waits as long as it says, in pieces, to notice when the pass is to stop.
    Result<> wait(std::int64_t bytes) {
        const auto resume = throttle_.note(bytes);
        for (auto now = clock_.since_boot(); now < resume; now = clock_.since_boot()) {
            std::this_thread::sleep_for(std::min(resume - now, std::chrono::milliseconds{100}));
            TM_TRYV(keep_going_());
        }
        return {};
    }

    static Result<> check_crc(const BatchView& batch) {
        if (batch.crc_matches()) return {};
        return Error{Errc::corrupt, "batch at offset " + std::to_string(batch.base_offset().value) + ": CRC mismatch"};
    }

    static Error outside(const BatchView& batch, Offset offset) {
        return {Errc::corrupt, "batch of offsets " + std::to_string(batch.base_offset().value) + " to " + std::to_string(batch.last_offset().value) + " holds a record at " + std::to_string(offset.value)};
    }

    /// Offsets are not under the CRC, and what is decided by them cannot be undone.
    static Result<> check_range(const BatchView& batch, const Segment& segment, Offset end) {
        if (batch.base_offset() >= segment.base_offset() && batch.last_offset() >= batch.base_offset() && batch.last_offset() < end) return {};
        return Error{Errc::corrupt, "batch of offsets " + std::to_string(batch.base_offset().value) + " to " + std::to_string(batch.last_offset().value) + ", which the segment does not hold"};
    }

    static Result<> within(const Segment& segment, Result<> result) {
        if (result) return result;
        return in_context(std::move(result).error(), std::string{io::name_of(segment.log_path())});
    }

    storage::Log& log_;
    const PassRequest request_;
    const PassOptions options_;
    Workspace& work_;
    Throttle& throttle_;
    const Clock& clock_;
    const KeepGoing& keep_going_;
    const std::shared_ptr<const storage::LogConfig> config_;

    PassRules rules_;
    PassStats stats_;
    Judge judge_{work_.map, work_.live, rules_, stats_};
    TransactionTracker transactions_;                    // of the rewriting walk, over all groups
    std::unordered_map<ProducerId, storage::LastProducerRecord> last_records_;
    Timestamp legacy_horizon_{};
    std::vector<std::byte> built_;
    std::array<std::int64_t, 5> codec_bytes_{};
    std::int64_t throttled_output_ = 0;                  // of the group at hand
    SegmentPointer overflowing_;                         // the source at hand
};

}  // namespace

Result<PassStats> run_pass(storage::Log& log, const PassRequest& request, const PassOptions& options, Workspace& work, Throttle& throttle, const Clock& clock,
                           const KeepGoing& keep_going) {
    return Pass(log, request, options, work, throttle, clock, keep_going).run();
}

Result<> split_segment(storage::Log& log, const SegmentPointer& segment) {
    TM_TRY(const auto file, segment->file());
    TM_TRY(const auto modified, segment->modified());
    const auto config = log.config();
    std::vector<std::byte> read_buffer, write_buffer;
    Output output(log, write_buffer, {.index_bytes_max = config->segment_index_bytes, .index_interval_bytes = config->index_interval_bytes});
    const auto copy_all = [&]() -> Result<SegmentList> {
        bool is_open = false;
        ChunkReader reader(*file, FilePosition{0}, segment->bytes(), read_buffer, {.bytes = 1 << 20, .topic_message_bytes_max = config->max_message_bytes});
        while (!reader.at_end()) {
            TM_TRY(const auto chunk, reader.read());
            record::BatchCursor batches(chunk);
            std::size_t used = 0;
            for (;;) {
                TM_TRY(const auto batch, batches.next());
                if (!batch) break;
                // The first one begins where its batches do: the old base may be what is too far away.
                if (!std::exchange(is_open, true)) TM_TRYV(output.open(batch->is_legacy() ? segment->base_offset() : batch->base_offset()));
                TM_TRYV(output.add_unchanged(*batch, batch->delete_horizon()));
                used += batch->size();
            }
            TM_TRYV(output.settle());
            TM_TRYV(reader.advance(used));
        }
        if (!is_open) return Error{Errc::invalid_argument, "an empty segment cannot be split"};
        return output.finish(modified, segment->first_append_time().value_or(modified));
    };
    auto parts = copy_all();
    if (!parts) {
        output.discard();
        return std::move(parts).error();
    }
    return log.replace_segments(*std::move(parts), {segment});
}

}  // namespace tidemark::cleaner
