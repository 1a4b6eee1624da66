// 1. analyze() walks the headers.
// 2. validate() picks the path: in place when format and codec stay, else rebuilt as one v2 batch.
// 3. A pass reads every record, judges it and, when rebuilding, appends it to the builder with offsets from 0. A pass
//    that meant to stay in place and found gaps between inner offsets starts over, rebuilding.
// 4. assign_offsets() moves the result to its place in the log.
#include "record/validation.h"

#include <algorithm>
#include <string>

#include "base/assert.h"

namespace tidemark::record {
namespace {

Error refused(std::string what) { return {Errc::invalid_record, std::move(what)}; }

/// Java's arithmetic: near the ends of the range it wraps.
template <class Strong>
std::int64_t wrapping_difference(Strong a, Strong b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a.value) - static_cast<std::uint64_t>(b.value));
}

Result<> check_header(const BatchView& batch, const AnalysisOptions& options) {
    if (options.origin == Origin::client && !batch.is_legacy() && batch.base_offset() != Offset{0}) {
        return refused("the base offset of a produced batch is " + std::to_string(batch.base_offset().value) + ", not 0");
    }
    if (options.origin == Origin::raft_leader && batch.leader_epoch() != options.leader_epoch) {
        return refused("a batch of epoch " + std::to_string(batch.leader_epoch()) + " from the leader of epoch " + std::to_string(options.leader_epoch));
    }
    return {};
}

Result<> check_whole(const BatchView& batch, const AnalysisOptions& options) {
    if (options.batch_bytes_max && batch.size() > static_cast<std::size_t>(std::max(*options.batch_bytes_max, 0))) {
        return Error{Errc::too_large, "a batch of " + std::to_string(batch.size()) + " bytes, the largest allowed has " +
                                          std::to_string(*options.batch_bytes_max)};
    }
    if (!batch.crc_matches()) {
        return Error{Errc::corrupt, "wrong CRC in the batch at offset " + std::to_string(batch.base_offset().value)};
    }
    return {};
}

/// What a client's v2 header must say (append-and-read 3.1).
Result<> check_client_batch(const BatchView& batch) {
    if (batch.is_legacy()) return {};
    const auto range = static_cast<std::int64_t>(batch.last_offset_delta()) + 1;
    const std::int32_t count = *batch.record_count();
    if (range <= 0 || count <= 0 || range != count) {
        return refused("a batch with " + std::to_string(count) + " records over " + std::to_string(range) + " offsets");
    }
    if (batch.is_control()) return refused("clients cannot write control batches");
    if (batch.has_producer_id() && batch.base_sequence() < 0) {
        return refused("sequence " + std::to_string(batch.base_sequence()) + " of producer " + std::to_string(batch.producer_id()));
    }
    return {};
}

}  // namespace

Result<RecordSetInfo> analyze(Bytes records, const AnalysisOptions& options) {
    RecordSetInfo info;
    BatchCursor cursor{records};
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) break;
        TM_TRYV(check_header(*batch, options));
        const LeaderEpoch epoch = batch->leader_epoch();
        if (options.origin == Origin::replication && epoch != no_leader_epoch && epoch > options.leader_epoch) break;
        TM_TRYV(check_whole(*batch, options));
        const Offset last = batch->last_offset();
        if (info.batches == 0) {
            if (!batch->is_legacy()) info.first_offset = batch->base_offset();
            info.first_batch_last_offset = last;
        } else if (last <= info.last_offset) {
            info.offsets_rise = false;
        }
        info.last_offset = last;
        info.last_leader_epoch = epoch;
        if (batch->max_timestamp() > info.max_timestamp) {
            info.max_timestamp = batch->max_timestamp();
            info.offset_of_max_timestamp = last;
        }
        if (batch->is_compressed()) {
            if (batch->codec_bits() > static_cast<std::uint8_t>(Codec::zstd)) {
                return Error{Errc::unsupported_compression, "unknown compression type " + std::to_string(batch->codec_bits())};
            }
            info.source_codec = batch->codec();
        }
        ++info.batches;
        info.valid_bytes += batch->size();
    }
    return info;
}

/// One walk over all records of a set.
class Validator::Pass {
public:
    Pass(RecordReader& reader, BatchBuilder& builder, const ValidationOptions& options, bool rebuild)
        : reader_(reader), builder_(builder), options_(options), rebuild_(rebuild) {}

    Result<> batch(const BatchView& batch, std::vector<RecordError>* rejected);

    std::int32_t count() const { return count_; }
    Timestamp max_timestamp() const { return max_timestamp_; }
    /// Every inner offset was the one before it and one.
    bool sequential() const { return sequential_; }

private:
    struct Rejected {
        std::int64_t count = 0;
        bool timestamps = false;
        std::string first;
    };

    /// Why a record is refused, or nothing.
    std::optional<std::string> judge(const BatchView& batch, const RecordView& record, bool* timestamp_at_fault) const;
    Result<> rebuild(const RecordView& record);

    RecordReader& reader_;
    BatchBuilder& builder_;
    const ValidationOptions& options_;
    const bool rebuild_;
    std::int32_t count_ = 0;
    Timestamp max_timestamp_ = no_timestamp;
    bool sequential_ = true;
};

std::optional<std::string> Validator::Pass::judge(const BatchView& batch, const RecordView& record, bool* timestamp_at_fault) const {
    if (record.magic != batch.magic()) {
        return "a record of magic " + std::to_string(record.magic) + " in a batch of magic " + std::to_string(batch.magic());
    }
    if (options_.compacted && !record.key) return "a compacted topic does not accept records without a key";
    if (options_.timestamp_type == TimestampType::create_time && record.timestamp != no_timestamp) {
        const bool too_old = wrapping_difference(options_.now, record.timestamp) > options_.before_max_ms;
        const bool too_new = wrapping_difference(record.timestamp, options_.now) > options_.after_max_ms;
        if (!too_old && !too_new) return std::nullopt;
        *timestamp_at_fault = true;
        return "timestamp " + std::to_string(record.timestamp.value) + " is out of range: it may be " +
               std::to_string(options_.before_max_ms) + " ms before and " + std::to_string(options_.after_max_ms) + " ms after " +
               std::to_string(options_.now.value);
    }
    if (batch.timestamp_type() == TimestampType::log_append_time) {
        *timestamp_at_fault = true;
        return "a producer must not set the timestamp type LogAppendTime";
    }
    return std::nullopt;
}

Result<> Validator::Pass::rebuild(const RecordView& record) {
    if (record.timestamp < no_timestamp) {
        return Error{Errc::invalid_timestamp, "negative timestamp " + std::to_string(record.timestamp.value)};
    }
    if (builder_.uncompressed_bytes() + record.content_bytes() > options_.rebuild_bytes_max) {
        return Error{Errc::too_large, "a batch to be compressed anew exceeds " + std::to_string(options_.rebuild_bytes_max) + " bytes"};
    }
    builder_.append(Offset{count_}, record.timestamp, record.key, record.value, record.headers, record.header_count);
    return {};
}

Result<> Validator::Pass::batch(const BatchView& batch, std::vector<RecordError>* rejected) {
    if (options_.origin == Origin::client) TM_TRYV(check_client_batch(batch));
    Rejected refusals;
    std::int32_t index = 0;
    TM_TRYV(reader_.open(batch));
    for (;; ++index, ++count_) {
        TM_TRY(const auto record, reader_.next());
        if (!record) break;
        if (count_ == std::numeric_limits<std::int32_t>::max()) return refused("more records than offsets");
        bool timestamp_at_fault = false;
        if (auto why = judge(batch, *record, &timestamp_at_fault)) {
            refusals.timestamps |= timestamp_at_fault;
            if (refusals.count++ == 0) refusals.first = "record " + std::to_string(index) + ": " + *why;
            if (rejected != nullptr && rejected->size() < rejected_max) rejected->push_back({.index = index, .message = std::move(*why)});
            continue;
        }
        max_timestamp_ = std::max(max_timestamp_, record->timestamp);
        sequential_ = sequential_ && wrapping_difference(record->offset, batch.base_offset()) == index;
        if (rebuild_ && refusals.count == 0) TM_TRYV(rebuild(*record));
    }
    if (refusals.count == 0) return {};
    return Error{refusals.timestamps ? Errc::invalid_timestamp : Errc::invalid_record,
                 std::to_string(refusals.count) + " records refused, the first is " + refusals.first};
}

Result<ValidatedRecords> Validator::validate(MutableBytes records, const RecordSetInfo& info, const ValidationOptions& options,
                                             std::vector<RecordError>* rejected) {
    TM_ASSERT(options.origin != Origin::replication && options.timestamp_type != TimestampType::none);
    TM_ASSERT(info.valid_bytes <= records.size());
    records = records.first(info.valid_bytes);
    if (records.empty()) return refused("no batch");
    TM_TRY(const BatchView first, BatchView::parse(records));
    if (info.batches > 1 && (!first.is_legacy() || info.source_codec != Codec::none)) {
        return refused(std::to_string(info.batches) + " batches for one partition, where one is allowed");
    }

    const Codec target = options.codec.value_or(info.source_codec);
    const bool same_codec = info.source_codec == target || (info.source_codec == Codec::none && first.is_control());
    bool rebuild = first.is_legacy() || !same_codec;
    const bool append_time = options.timestamp_type == TimestampType::log_append_time;
    for (;; rebuild = true) {
        if (rebuild) {
            TM_TRYV(check_buildable(first));
            builder_.start({.codec = target,
                            .level = options.level,
                            .timestamp_type = options.timestamp_type,
                            .log_append_time = append_time ? std::optional{options.now} : std::nullopt,
                            .producer_id = first.producer_id(),
                            .producer_epoch = first.producer_epoch(),
                            .base_sequence = first.base_sequence(),
                            .transactional = first.is_transactional(),
                            .control = first.is_control()});
        }
        Pass pass{reader_, builder_, options, rebuild};
        for (BatchCursor cursor{records};;) {
            TM_TRY(const auto batch, cursor.next());
            if (!batch) break;
            if (batch->magic() != first.magic()) return refused("batches of several formats in one set");
            TM_TRYV(pass.batch(*batch, rejected));
        }
        if (!rebuild && info.source_codec != Codec::none && !pass.sequential()) continue;

        ValidatedRecords validated;
        validated.record_count_ = pass.count();
        validated.max_timestamp_ = append_time ? options.now : pass.max_timestamp();
        if (append_time) validated.log_append_time_ = options.now;
        if (rebuild) {
            builder_.finish(validated.rebuilt_.emplace());
        } else {
            in_place::set_max_timestamp(records, options.timestamp_type, validated.max_timestamp_);
            validated.in_place_ = records;
        }
        return validated;
    }
}

void assign_offsets(ValidatedRecords& records, Offset first, LeaderEpoch epoch) {
    records.first_offset_ = first;
    const MutableBytes batch = records.bytes();
    if (batch.empty()) return;  // a rebuilt set without records
    const auto view = BatchView::parse(batch);
    TM_ASSERT(view.has_value());
    in_place::set_base_offset(batch, records.last_offset() - view->last_offset_delta());
    in_place::set_leader_epoch(batch, epoch);
}

}  // namespace tidemark::record
