// Append (append-and-read 2), rolling (5) and flushing (log-directory 4).
//
//   outside the lock   1. headers, sizes and CRCs; 2. records: keys, timestamps, codec (leaders only)
//   under the lock     3. offsets and leader epoch in place; 4. producers: duplicate, epoch, sequence, transaction;
//                      5. roll; 6. one write, the indexes; 7. the new end is published
//   outside again      8. flush.messages; 9. whoever waits for data is told
#include "storage/log.h"

#include <algorithm>
#include <random>

#include "base/assert.h"
#include "base/log.h"
#include "storage/checkpoint.h"
#include "storage/log_state.h"

namespace tidemark::storage {
namespace {

using AppendedBatches = std::vector<Segment::AppendedBatch>;

std::int64_t roll_jitter_of(const LogConfig& config) {
    const auto bound = std::min(config.segment_jitter_ms, config.segment_ms);
    if (bound <= 0) return 0;
    thread_local std::minstd_rand random{std::random_device{}()};
    return static_cast<std::int64_t>(random() & 0x7fffffff) % bound;
}

/// segment.ms, and for compacted topics not beyond max.compaction.lag.ms (KIP-354).
std::int64_t roll_after_ms(const LogConfig& config) {
    if (config.compacts && config.max_compaction_lag_ms > 0) return std::min(config.segment_ms, config.max_compaction_lag_ms);
    return config.segment_ms;
}

record::Validator& validator_of_this_thread(std::int32_t record_bytes_max) {
    struct Held {
        std::int32_t record_bytes_max;
        record::Validator validator;
    };
    thread_local std::optional<Held> held;
    if (!held || held->record_bytes_max != record_bytes_max) {
        held.reset();
        held.emplace(Held{record_bytes_max, record::Validator(record::ReadLimits{.record_bytes_max = record_bytes_max})});
    }
    return held->validator;
}

record::ValidationOptions validation_options(const LogConfig& config, record::Origin origin, Timestamp now, record::Codec codec) {
    const auto& policy = config.compression;
    const auto target = policy.codec.value_or(codec);
    std::optional<int> level;
    if (target == record::Codec::gzip) level = policy.gzip_level;
    if (target == record::Codec::lz4) level = policy.lz4_level;
    if (target == record::Codec::zstd) level = policy.zstd_level;
    return {.origin = origin,
            .codec = policy.codec,
            .level = level,
            .compacted = config.compacts,
            .timestamp_type = config.timestamp_type,
            .before_max_ms = config.timestamp_before_max_ms,
            .after_max_ms = config.timestamp_after_max_ms,
            .now = now};
}

bool assigns_offsets(record::Origin origin) { return origin == record::Origin::client || origin == record::Origin::coordinator; }

Error too_large(std::size_t bytes, std::int64_t limit) {
    return {Errc::too_large, "a batch of " + std::to_string(bytes) + " bytes, the largest allowed has " + std::to_string(limit)};
}

/// What a record set means to indexes and epochs, by its headers.
struct Headers {
    AppendedBatches batches;
    std::vector<EpochStart> epochs;
    bool has_legacy = false;
    bool has_producers = false;
    std::int64_t records = 0;
};

Result<Headers> headers_of(Bytes records) {
    Headers headers;
    record::BatchCursor cursor(records);
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) return headers;
        headers.batches.push_back({static_cast<std::int64_t>(batch->size()), batch->last_offset(), batch->max_timestamp()});
        headers.has_legacy |= batch->is_legacy();
        headers.has_producers |= batch->has_producer_id();
        headers.records += batch->record_count().value_or(1);
        if (!batch->is_legacy() && batch->leader_epoch() >= 0 && (headers.epochs.empty() || headers.epochs.back().epoch != batch->leader_epoch())) {
            headers.epochs.push_back({batch->leader_epoch(), batch->base_offset()});
        }
    }
}

/// Collects what the append changes in `changes`. Returns the batch that it repeats, if it does.
Result<std::optional<ProducerBatch>> judge_producers(const ProducerState& state, Bytes records, const AppendOptions& options, ProducerChanges& changes) {
    record::BatchCursor cursor(records);
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) return std::optional<ProducerBatch>{};
        if (!batch->has_producer_id()) continue;
        if (options.origin == record::Origin::client) {
            const auto* entry = state.find(batch->producer_id());
            const auto duplicate = entry != nullptr ? entry->duplicate_of(*batch) : std::nullopt;
            if (duplicate) return duplicate;
        }
        if (assigns_offsets(options.origin) && batch->is_transactional() && !batch->is_control() && !options.transaction_verified &&
            !state.has_open_transaction(batch->producer_id(), batch->producer_epoch())) {
            const auto* verification = state.find_verification(batch->producer_id());
            if (verification == nullptr || verification->id != options.verification) {
                return Error{Errc::invalid_transaction_state, "producer " + std::to_string(batch->producer_id()) +
                                                                  " has no open transaction here and nobody asked its coordinator, or not since the last one ended"};
            }
        }
        TM_TRYV(changes.add(*batch));
    }
}

}  // namespace

// --- Log: life, settings, offsets --------------------------------------------------------------------------------------

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}
Log::~Log() = default;

const TopicPartition& Log::partition() const { return state_->partition; }
std::shared_ptr<const LogConfig> Log::config() const { return state_->config.get(); }
void Log::set_config(std::shared_ptr<const LogConfig> config) { state_->config.put(std::move(config)); }
io::Path Log::directory() const { return state_->path()->get(); }
LogDirectory& Log::log_dir() const { return state_->directory(); }
bool Log::is_moving() const { return state_->moving.load(std::memory_order_acquire); }
std::shared_ptr<const SegmentList> Log::segments() const { return state_->published.get(); }

Uuid Log::topic_id() const {
    MutexLock lock(state_->append_mutex);
    return state_->topic_id.value_or(Uuid{});
}

Offset Log::log_start_offset() const { return Offset{state_->log_start.load(std::memory_order_acquire)}; }
Offset Log::high_watermark() const { return Offset{state_->high_watermark.load(std::memory_order_acquire)}; }
Offset Log::last_stable_offset() const { return state_->bound_of(Isolation::read_committed); }
Offset Log::log_end_offset() const { return Offset{state_->log_end.load(std::memory_order_acquire)}; }

Offset Log::recovery_point() const { return Offset{state_->recovery_point.load(std::memory_order_acquire)}; }

void Log::set_high_watermark(Offset to) {
    auto& s = *state_;
    {
        MutexLock lock(s.append_mutex);
        s.high_watermark_follows.store(false);
        const auto clamped = std::clamp(to.value, s.log_start.load(), s.log_end.load());
        s.high_watermark.store(clamped, std::memory_order_release);
        if (s.producers_ready) {
            s.producers.forget_completed_below(Offset{clamped});
            s.update_first_unstable();
        }
    }
    s.tell_end_moved();
}

void Log::set_observer(LogObserver* observer) { state_->observer.store(observer, std::memory_order_release); }

LogStats Log::stats() const {
    auto& s = *state_;
    LogStats stats{.log_start_offset = log_start_offset(),
                   .high_watermark = high_watermark(),
                   .log_end_offset = log_end_offset(),
                   .recovery_point = Offset{s.recovery_point.load()},
                   .appended_bytes = s.appended_bytes.load(std::memory_order_relaxed),
                   .appended_records = s.appended_records.load(std::memory_order_relaxed),
                   .appended_batches = s.appended_batches.load(std::memory_order_relaxed),
                   .expired_records = s.expired_records.load(std::memory_order_relaxed)};
    const auto first_unstable = s.first_unstable.load(std::memory_order_acquire);
    stats.last_stable_offset = first_unstable >= 0 ? std::min(Offset{first_unstable}, stats.high_watermark) : stats.high_watermark;
    const auto list = segments();
    stats.segments = list->size();
    for (const auto& segment : *list) {
        stats.bytes += segment->bytes();
        const auto known = segment->known_timestamps();
        if (segment == list->front()) stats.oldest_timestamp = known.first_batch;
        if (known.largest) stats.newest_timestamp = std::max(stats.newest_timestamp.value_or(no_timestamp), *known.largest);
    }
    MutexLock lock(s.append_mutex);
    stats.producers = static_cast<std::int64_t>(s.producers.entries().size());
    return stats;
}

std::vector<ProducerSummary> Log::producers() const {
    auto& s = *state_;
    std::vector<ProducerSummary> summaries;
    MutexLock lock(s.append_mutex);
    if (!s.load_producers()) return summaries;
    for (const auto& [id, entry] : s.producers.entries()) {
        summaries.push_back({.producer_id = id,
                             .epoch = entry.epoch,
                             .last_sequence = entry.last_sequence(),
                             .last_timestamp = entry.last_timestamp,
                             .coordinator_epoch = entry.coordinator_epoch,
                             .current_transaction_first_offset = entry.transaction_first_offset});
    }
    std::sort(summaries.begin(), summaries.end(), [](const auto& a, const auto& b) { return a.producer_id < b.producer_id; });
    return summaries;
}

Result<> Log::load_producers() const {
    auto& s = *state_;
    if (s.producers_ready.load(std::memory_order_acquire)) return {};
    MutexLock lock(s.append_mutex);
    if (auto loaded = s.load_producers(); !loaded) return s.failed(std::move(loaded).error(), "loading producers");
    return {};
}

std::unordered_map<ProducerId, LastProducerRecord> Log::last_producer_records() const {
    auto& s = *state_;
    std::unordered_map<ProducerId, LastProducerRecord> last;
    MutexLock lock(s.append_mutex);
    if (!s.load_producers()) return last;
    for (const auto& [id, entry] : s.producers.entries()) {
        auto& record = last[id];
        record.epoch = entry.epoch;
        if (!entry.batches.empty()) record.last_data_offset = entry.batches.back().last_offset;
    }
    return last;
}

void Log::expire_producers(Timestamp now) {
    auto& s = *state_;
    MutexLock lock(s.append_mutex);
    s.producers_as_of = now;
    if (s.producers_ready) s.producers.expire(now, s.directory().options().producer_expiration_ms);
}

Result<> Log::take_producer_snapshot() {
    auto& s = *state_;
    MutexLock lock(s.append_mutex);
    TM_TRYV(s.load_producers());
    return s.snapshots.take(s.producers);
}

// --- leader epochs -----------------------------------------------------------------------------------------------------

LeaderEpoch Log::latest_epoch() const {
    MutexLock lock(state_->append_mutex);
    const auto latest = state_->epochs.latest();
    return latest ? latest->epoch : no_leader_epoch;
}

EpochEnd Log::end_of_epoch(LeaderEpoch epoch) const {
    MutexLock lock(state_->append_mutex);
    return state_->epochs.end_of(epoch, log_end_offset());
}

Result<> Log::assign_epoch(LeaderEpoch epoch) {
    if (epoch < 0) return Error{Errc::invalid_argument, "leader epoch " + std::to_string(epoch)};
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    MutexLock lock(s.append_mutex);
    if (s.epochs.assign(epoch, log_end_offset())) ++s.epochs_changed;  // saved before anything of it is acknowledged
    return {};
}

Result<> Log::State::save_epochs() {
    MutexLock saving(epochs_mutex);
    std::vector<EpochStart> entries;
    std::uint64_t saved = 0;
    {
        MutexLock lock(append_mutex);
        if (epochs_changed == epochs_saved) return {};
        saved = epochs_changed;
        entries = epochs.entries();
    }
    TM_TRYV(write_leader_epochs(files(), io::join(path()->get(), file_name::leader_epoch_checkpoint), entries));
    MutexLock lock(append_mutex);
    epochs_saved = saved;
    return {};
}

Result<> Log::State::sync_names() {
    MutexLock syncing(names_mutex);
    std::uint64_t made = 0;
    {
        MutexLock lock(append_mutex);
        if (names_made == names_synced) return {};
        made = names_made;
    }
    TM_TRYV(sync_names_in(files(), path()->get()));
    MutexLock lock(append_mutex);
    names_synced = made;
    return {};
}

// --- State: small helpers ----------------------------------------------------------------------------------------------

SegmentOptions Log::State::segment_options() const {
    const auto c = config.get();
    const auto& differences = directory().options().differences;
    return {.index_bytes_max = c->segment_index_bytes,
            .index_interval_bytes = c->index_interval_bytes,
            .preallocate_bytes = c->preallocate ? c->segment_bytes : 0,
            .roll_jitter_ms = roll_jitter_of(*c),
            .check_indexes = differences.check_indexes_on_open,
            .rebuild_missing_time_index = differences.rebuild_missing_time_index};
}

Result<> Log::State::check_usable() const {
    TM_TRYV(directory().check());
    if (closed.load(std::memory_order_acquire)) return Error{Errc::not_found, partition.text() + " is closed"};
    if (damaged.load(std::memory_order_acquire)) {
        return Error{Errc::storage_offline, partition.text() + " is damaged and serves nothing until it is repaired (`tidemark repair`)"};
    }
    return {};
}

Error Log::State::failed(Error error, std::string_view doing) const {
    const auto what = "[" + partition.text() + "] " + std::string(doing);
    return directory().handled(in_context(std::move(error), partition.text()), what);
}

void Log::State::publish_segments() {
    auto list = std::make_shared<SegmentList>();
    list->reserve(segments.size());
    for (const auto& [base, segment] : segments) list->push_back(segment);
    published.put(std::move(list));
}

void Log::State::publish_end() {
    const auto& last = active();
    MutexLock lock(position_mutex);
    end = {Offset{log_end.load(std::memory_order_relaxed)}, last->base_offset(), last->bytes()};
}

LogPosition Log::State::end_position() const {
    MutexLock lock(position_mutex);
    return end;
}

Offset Log::State::bound_of(Isolation isolation) const {
    if (isolation == Isolation::log_end) return Offset{log_end.load(std::memory_order_acquire)};
    const Offset watermark{high_watermark.load(std::memory_order_acquire)};
    if (isolation == Isolation::read_uncommitted) return watermark;
    const auto unstable = first_unstable.load(std::memory_order_acquire);
    return unstable >= 0 ? std::min(Offset{unstable}, watermark) : watermark;
}

void Log::State::after_end_moved() {
    if (high_watermark_follows.load(std::memory_order_relaxed)) {
        high_watermark.store(log_end.load(std::memory_order_relaxed), std::memory_order_release);
    }
    if (!producers_ready) return;
    producers.forget_completed_below(Offset{high_watermark.load(std::memory_order_relaxed)});
    update_first_unstable();
}

void Log::State::update_first_unstable() {
    auto unstable = producers.first_unstable_offset();
    const Offset start{log_start.load(std::memory_order_relaxed)};
    if (unstable && *unstable < start) {
        // Its first records are gone: the first batch that ends at or behind the log start stands in for them (4.7).
        unstable = start;
        auto segment = segments.upper_bound(start);
        if (segment != segments.begin()) --segment;
        for (; segment != segments.end(); ++segment) {
            const auto found = segment->second->find(start);
            if (!found || !*found) continue;
            unstable = (*found)->base_offset;
            break;
        }
    }
    first_unstable.store(unstable ? unstable->value : -1, std::memory_order_release);
}

Result<> Log::State::load_producers() {
    if (producers_ready) return {};
    TM_TRYV(rebuild_producers(Offset{log_start.load()}, Offset{log_end.load()}, producers_as_of));
    producers_ready = true;
    producers.forget_completed_below(Offset{high_watermark.load()});
    update_first_unstable();
    return {};
}

void Log::State::take_snapshot_or_warn() {
    if (auto taken = snapshots.take(producers); !taken) {
        log_warning("[{}] no producer snapshot at {}: {}", partition, producers.end_offset().value, taken.error().message());
    }
}

// --- append ------------------------------------------------------------------------------------------------------------

Result<AppendInfo> Log::append(MutableBytes records, const AppendOptions& options) {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    const auto config = s.config.get();
    const bool assigns = assigns_offsets(options.origin);
    const bool limited = options.origin == record::Origin::client || options.origin == record::Origin::coordinator;
    const auto batch_bytes_max = static_cast<std::int32_t>(std::min<std::int64_t>(config->max_message_bytes, segment_bytes_limit));

    TM_TRY(const auto info, record::analyze(records, {.origin = options.origin,
                                                      .leader_epoch = options.leader_epoch,
                                                      .batch_bytes_max = limited ? std::optional(batch_bytes_max) : std::nullopt}));
    if (info.batches == 0) return AppendInfo{.log_start_offset = log_start_offset()};
    std::optional<record::ValidatedRecords> validated;
    if (assigns) {
        auto& validator = validator_of_this_thread(config->max_decompressed_message_bytes);
        TM_TRY(validated, validator.validate(records.first(info.valid_bytes), info,
                                             validation_options(*config, options.origin, s.directory().clock().now(), info.source_codec),
                                             options.rejected));
        if (validated->rebuilt() && limited && validated->bytes().size() > static_cast<std::size_t>(batch_bytes_max)) {
            return too_large(validated->bytes().size(), batch_bytes_max);
        }
    }

    AppendInfo appended{.log_append_time = validated ? validated->log_append_time() : std::nullopt,
                        .max_timestamp = validated ? validated->max_timestamp() : info.max_timestamp};
    std::int64_t unflushed = 0;
    {
        MutexLock lock(s.append_mutex);
        TM_TRYV(s.check_usable());
        TM_TRYV(s.load_producers());
        const auto end = log_end_offset();
        if (assigns) {
            record::assign_offsets(*validated, end, options.leader_epoch);
        } else {
            const auto first = info.first_offset.value_or(info.first_batch_last_offset);
            if (!info.offsets_rise || first < end) {
                return Error{Errc::unexpected_offset, "[" + s.partition.text() + "] offset " + std::to_string(first.value) +
                                                          (info.offsets_rise ? "" : " and those behind it, which do not rise,") +
                                                          " cannot follow the log end " + std::to_string(end.value)};
            }
        }
        const Bytes bytes = assigns ? Bytes(validated->bytes()) : Bytes(records.first(info.valid_bytes));
        if (static_cast<std::int64_t>(bytes.size()) > config->segment_bytes) {
            return Error{Errc::batch_set_too_large, std::to_string(bytes.size()) + " bytes do not fit into a segment of " + std::to_string(config->segment_bytes)};
        }
        TM_TRY(const auto headers, headers_of(bytes));
        const auto last = headers.batches.back().last_offset;
        const auto roll_hint = assigns ? end : info.first_offset.value_or(info.last_offset - relative_offset_max);
        const auto roll = [&]() REQUIRES(s.append_mutex) {
            return s.roll_if_full(roll_hint, static_cast<std::int64_t>(bytes.size()), appended.max_timestamp, last);
        };
        if (s.directory().options().differences.roll_for_rejected_appends) TM_TRYV(roll());  // D15: before the answer is known

        ProducerChanges changes(s.producers, options.origin, options.transaction_version);
        if (headers.has_producers) {
            TM_TRY(const auto duplicate, judge_producers(s.producers, bytes, options, changes));
            if (duplicate) {
                appended.first_offset = duplicate->first_offset();
                appended.last_offset = duplicate->last_offset;
                appended.log_append_time = duplicate->timestamp;
                appended.log_start_offset = log_start_offset();
                appended.duplicate = true;
                return appended;
            }
        }
        const auto whose = options.origin == record::Origin::coordinator ? LogDirectory::Records::of_coordinators : LogDirectory::Records::of_producers;
        if (auto room = s.directory().check_room(whose, bytes.size()); !room) return s.failed(std::move(room).error(), "appending");
        if (!s.directory().options().differences.roll_for_rejected_appends) TM_TRYV(roll());

        const auto& active = s.active();
        const auto write = [&] { return active->append(bytes, headers.batches); };
        if (auto written = whose == LogDirectory::Records::of_coordinators ? s.directory().with_reserve(write) : write(); !written) {
            if (active->is_damaged()) s.directory().fail(written.error(), "[" + s.partition.text() + "] cutting back a failed append");
            return s.failed(std::move(written).error(), "appending");
        }
        s.log_end.store((last + 1).value, std::memory_order_release);
        for (const auto& start : headers.epochs) s.epochs_changed += s.epochs.assign(start.epoch, start.start) ? 1 : 0;
        if (headers.has_legacy && s.epochs.clear()) ++s.epochs_changed;
        if (headers.has_producers) {
            const auto completed = changes.completed();
            s.producers.apply(std::move(changes));
            for (const auto& transaction : completed) {
                if (transaction.aborted) {
                    const AbortedTransaction aborted{.producer_id = transaction.producer_id,
                                                     .first_offset = transaction.first_offset,
                                                     .last_offset = transaction.marker_offset,
                                                     .last_stable_offset = s.producers.last_stable_offset_after(transaction)};
                    // It stays in memory, and is written again by the next flush (D12).
                    if (auto noted = active->append_aborted(aborted); !noted) (void)s.failed(std::move(noted).error(), "writing the transaction index");
                }
                s.producers.complete(transaction);
            }
        }
        s.producers.set_end_offset(last + 1);
        s.publish_end();
        s.after_end_moved();

        appended.first_offset = assigns ? end : info.first_offset.value_or(info.first_batch_last_offset);
        appended.last_offset = last;
        appended.log_start_offset = log_start_offset();
        appended.records = static_cast<std::int32_t>(headers.records);
        appended.bytes = static_cast<std::int64_t>(bytes.size());
        unflushed = (last + 1).value - s.recovery_point.load(std::memory_order_relaxed);
        s.appended_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
        s.appended_records.fetch_add(static_cast<std::uint64_t>(headers.records), std::memory_order_relaxed);
        s.appended_batches.fetch_add(headers.batches.size(), std::memory_order_relaxed);
        // Timestamps in seconds, or of long ago: retention takes them at its next look, which surprises who sent them.
        const bool dated = config->deletes && appended.max_timestamp.value >= 0;
        if (dated && s.directory().clock().now() - appended.max_timestamp > config->retention_ms) {
            s.expired_records.fetch_add(static_cast<std::uint64_t>(headers.records), std::memory_order_relaxed);
        }
    }
    if (unflushed >= config->flush_messages) TM_TRYV(flush());
    s.tell_end_moved();
    return appended;
}

Result<std::optional<VerificationId>> Log::begin_verification(const VerificationRequest& request) {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    MutexLock lock(s.append_mutex);
    TM_TRYV(s.load_producers());
    if (const auto* known = s.producers.find(request.producer_id); known != nullptr && known->epoch > request.epoch) {
        return Error{Errc::invalid_producer_epoch, "producer " + std::to_string(request.producer_id) + ": epoch " + std::to_string(request.epoch) +
                                                       ", the last one seen is " + std::to_string(known->epoch)};
    }
    if (s.producers.has_open_transaction(request.producer_id, request.epoch)) return std::optional<VerificationId>{};
    return std::optional{s.producers.begin_verification(request.producer_id, request.epoch, request.first_sequence, request.bumps_epochs, s.directory().clock().now())};
}

// --- rolling -----------------------------------------------------------------------------------------------------------

Result<> Log::State::roll_if_full(Offset hint, std::int64_t bytes, Timestamp max_timestamp, Offset last) {
    const auto c = config.get();
    const auto full = active()->should_roll_for({.segment_bytes = c->segment_bytes,
                                                 .segment_ms = roll_after_ms(*c),
                                                 .append_bytes = bytes,
                                                 .append_max_timestamp = max_timestamp,
                                                 .append_last_offset = last,
                                                 .now = directory().clock().now()});
    if (!full) return failed(full.error(), "rolling");
    if (!*full) return {};
    return roll(std::max(hint, Offset{log_end.load(std::memory_order_relaxed)}));
}

Result<> Log::State::roll(Offset base) {
    const auto old = active();
    if (base < old->base_offset() || (base == old->base_offset() && old->bytes() > 0)) {
        return Error{Errc::invalid_argument, "[" + partition.text() + "] cannot roll to " + std::to_string(base.value) + ", the active segment begins at " +
                                                 std::to_string(old->base_offset().value)};
    }
    if (base == old->base_offset()) return {};  // empty and at the right place: as good as new
    auto created = directory().with_reserve([&] { return Segment::create(directory().open_files(), directory().clock(), path(), base, segment_options()); });
    if (!created) return failed(std::move(created).error(), "rolling");
    ++names_made;
    // An index that cannot be cut now is cut by the next flush (D12).
    if (auto sealed = old->become_inactive(); !sealed) (void)failed(std::move(sealed).error(), "closing a segment");
    segments.emplace(base, *std::move(created));
    publish_segments();
    publish_end();
    if (producers_ready) {
        producers.set_end_offset(base);
        take_snapshot_or_warn();
    }
    log_debug("[{}] rolled at offset {}", partition, base.value);
    directory().post([weak = log, base] {
        const auto log = weak.lock();
        if (log == nullptr || log->state().closed) return;
        if (auto flushed = log->state().flush_to(base, false); !flushed) {
            log_warning("[{}] flush after a roll: {}", log->partition(), flushed.error().message());
        }
    });
    return {};
}

Result<> Log::roll() {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    MutexLock lock(s.append_mutex);
    if (s.active()->bytes() == 0) return {};
    return s.roll(log_end_offset());
}

// --- flushing ----------------------------------------------------------------------------------------------------------

Result<> Log::flush(bool with_active_segment) {
    auto& s = *state_;
    TM_TRYV(s.check_usable());
    return s.flush_to(log_end_offset(), with_active_segment);
}

/// Deleting a partition renames its directory under the feet of a sync that is under way, which then misses names in it.
/// That is no fault of the disk.
Error Log::State::unless_moved(Error error, const io::Path& from) {
    MutexLock lock(append_mutex);
    if (path()->get() == from) return error;
    return {Errc::not_found, partition.text() + " is being deleted"};
}

Result<> Log::State::flush_to(Offset upto, bool with_active) {
    MutexLock flushing(flush_mutex);
    TM_TRYV(directory().check());
    const auto from = path()->get();
    std::vector<std::shared_ptr<Segment>> dirty;
    std::vector<io::Path> new_snapshots;
    std::uint64_t truncated = 0;
    {
        MutexLock lock(append_mutex);
        truncated = truncations;
        upto = std::min(upto, Offset{log_end.load()});
        auto segment = segments.upper_bound(Offset{recovery_point.load()});
        if (segment != segments.begin()) --segment;
        for (; segment != segments.end() && (segment->first < upto || (with_active && segment->second == active())); ++segment) {
            dirty.push_back(segment->second);
        }
        new_snapshots = snapshots.take_unsynced();
        if (!new_snapshots.empty()) ++names_made;
    }
    const auto synced = directory().with_reserve([&]() -> Result<> {
        TM_TRYV(sync_snapshots(files(), new_snapshots));
        for (const auto& segment : dirty) TM_TRYV(segment->sync());
        TM_TRYV(sync_names());
        return save_epochs();
    });
    if (!synced) return failed(unless_moved(synced.error(), from), "flushing");
    MutexLock lock(append_mutex);
    if (truncated != truncations) return {};
    if (recovery_point.load() < upto.value) recovery_point.store(upto.value, std::memory_order_release);
    if (durable_end.load() < upto.value) durable_end.store(upto.value, std::memory_order_release);
    return {};
}

void Log::State::start_writeback() {
    const auto list = published.get();
    for (auto segment = list->rbegin(); segment != list->rend() && (*segment)->is_unsynced(); ++segment) (*segment)->start_writeback();
}

Result<Offset> Log::State::sync_appended() {
    std::vector<std::shared_ptr<Segment>> unsynced;
    Offset upto{};
    std::uint64_t truncated = 0;
    io::Path from;
    {
        MutexLock lock(append_mutex);
        from = path()->get();
        truncated = truncations;
        upto = Offset{log_end.load()};
        auto segment = segments.upper_bound(Offset{durable_end.load()});
        if (segment != segments.begin()) --segment;
        for (; segment != segments.end(); ++segment) unsynced.push_back(segment->second);
    }
    const auto synced = directory().with_reserve([&]() -> Result<> {
        for (const auto& segment : unsynced) TM_TRYV(segment->sync_log());
        TM_TRYV(sync_names());
        return save_epochs();
    });
    if (!synced) return unless_moved(synced.error(), from);
    MutexLock lock(append_mutex);
    if (truncated == truncations && durable_end.load() < upto.value) durable_end.store(upto.value, std::memory_order_release);
    return upto;
}

void Log::when_durable(Offset end, std::function<void(Result<>)> done) {
    auto& s = *state_;
    if (auto usable = s.directory().check(); !usable) return done(std::move(usable));
    if (Offset{s.durable_end.load(std::memory_order_acquire)} >= end) return done({});
    // The Log lives until its commit is done.
    s.directory().commit(std::shared_ptr<CommitTarget>(shared_from_this(), &s), std::move(done));
}

}  // namespace tidemark::storage
