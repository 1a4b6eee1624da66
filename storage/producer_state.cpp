#include "storage/producer_state.h"

#include <algorithm>

#include "base/log.h"

namespace tidemark::storage {
namespace {

constexpr ProducerEpoch epoch_max = 32767;
constexpr Sequence sequence_max = 2147483647;

bool follows(Sequence last, Sequence next) { return (last == sequence_max && next == 0) || std::int64_t{next} == std::int64_t{last} + 1; }

std::string of_producer(ProducerId id, Offset offset) {
    return "producer " + std::to_string(id) + " at offset " + std::to_string(offset.value) + ": ";
}

}  // namespace

ProducerBatch batch_of(const record::BatchView& batch) {
    return {.last_sequence = batch.last_sequence(),
            .last_offset = batch.last_offset(),
            .offset_delta = static_cast<std::int32_t>(batch.last_offset() - batch.base_offset()),
            .timestamp = batch.max_timestamp()};
}

std::optional<ProducerBatch> ProducerEntry::duplicate_of(const record::BatchView& batch) const {
    if (batch.producer_epoch() != epoch) return std::nullopt;
    const auto found = std::find_if(batches.begin(), batches.end(), [&](const ProducerBatch& known) {
        return known.first_sequence() == batch.base_sequence() && known.last_sequence == batch.last_sequence();
    });
    return found == batches.end() ? std::nullopt : std::optional(*found);
}

void ProducerEntry::set_epoch(ProducerEpoch other) {
    if (epoch == other) return;
    batches.clear();
    epoch = other;
}

void ProducerEntry::add(const ProducerBatch& batch) {
    if (batches.size() == remembered_batches_max) batches.erase(batches.begin());
    batches.push_back(batch);
    last_timestamp = batch.timestamp;
}

// --- ProducerChanges ---------------------------------------------------------------------------------------------------

ProducerEntry& ProducerChanges::entry_of(ProducerId id) {
    const auto [place, added] = entries_.try_emplace(id);
    if (added) {
        if (const auto* known = state_.find(id)) place->second = *known;
        place->second.id = id;
    }
    return place->second;
}

Result<> ProducerChanges::add(const record::BatchView& batch) {
    if (!batch.is_control()) return add_data(batch);
    record::RecordReader reader;
    TM_TRYV(reader.open(batch));
    TM_TRY(const auto record, reader.next());
    if (!record) return {};  // emptied by the cleaner: it changes nothing
    TM_TRY(const auto type, record::control_type(*record));
    if (type != record::ControlType::abort && type != record::ControlType::commit) {
        return Error{Errc::invalid_record, of_producer(batch.producer_id(), batch.base_offset()) + "a control record that is no transaction marker"};
    }
    TM_TRY(const auto marker, record::transaction_marker(*record));
    return add_marker(batch, marker, record->timestamp);
}

Result<> ProducerChanges::check_epoch(const ProducerEntry& entry, const record::BatchView& batch, bool marker) const {
    const auto epoch = batch.producer_epoch();
    bool fenced = epoch < entry.epoch;
    if (marker && transaction_version_ >= 2) {
        // The coordinator bumps the epoch for every marker (KIP-890); the same epoch again is a repeated request.
        const bool repeated = epoch == entry.epoch && (!entry.transaction_first_offset || epoch == epoch_max);
        fenced = epoch <= entry.epoch && !repeated;
    }
    if (!fenced) return {};
    const auto text = of_producer(batch.producer_id(), batch.base_offset()) + "epoch " + std::to_string(epoch) + ", the last one seen is " +
                      std::to_string(entry.epoch);
    if (origin_ == record::Origin::replication) {
        log_warning("{}", text);
        return {};
    }
    return Error{Errc::invalid_producer_epoch, text};
}

Result<> ProducerChanges::check_sequence(const ProducerEntry& entry, const record::BatchView& batch) const {
    const auto first = batch.base_sequence();
    const auto out_of_order = [&](Sequence expected) {
        return Error{Errc::out_of_order_sequence, of_producer(batch.producer_id(), batch.base_offset()) + "sequence " + std::to_string(first) +
                                                      " where " + std::to_string(expected) + " follows (epoch " +
                                                      std::to_string(batch.producer_epoch()) + ")"};
    };
    const auto* known = state_.find(batch.producer_id());
    if (entry.epoch == -1) {
        // Nothing is known of it here: its coordinator's client can still be wrong about where it begins (KIP-890).
        const auto* verification = state_.find_verification(batch.producer_id());
        if (verification == nullptr) return {};
        if (verification->bumps_epochs && first != 0) return out_of_order(0);
        if (verification->epoch == batch.producer_epoch() && first > verification->lowest_sequence) return out_of_order(verification->lowest_sequence);
        return {};
    }
    if (batch.producer_epoch() != entry.epoch) {
        if (first != 0) return out_of_order(0);
        return {};
    }
    // A producer whose records have all been deleted may go on with any sequence.
    if (known == nullptr || known->epoch == -1) return {};
    const auto last = entry.last_sequence();
    if (!follows(last, first)) return out_of_order(record::increment_sequence(std::max(last, -1), 1));
    return {};
}

Result<> ProducerChanges::add_data(const record::BatchView& batch) {
    auto& entry = entry_of(batch.producer_id());
    TM_TRYV(check_epoch(entry, batch, false));
    if (origin_ == record::Origin::client) TM_TRYV(check_sequence(entry, batch));
    entry.set_epoch(batch.producer_epoch());
    entry.add(batch_of(batch));
    if (entry.transaction_first_offset && !batch.is_transactional()) {
        return Error{Errc::invalid_transaction_state,
                     of_producer(batch.producer_id(), batch.base_offset()) + "a plain batch inside the transaction that began at " +
                         std::to_string(entry.transaction_first_offset->value)};
    }
    if (batch.is_transactional()) decided_.emplace_back(batch.producer_id(), std::nullopt);
    if (!entry.transaction_first_offset && batch.is_transactional()) {
        entry.transaction_first_offset = batch.base_offset();
        started_.emplace(batch.base_offset(), batch.producer_id());
    }
    return {};
}

Result<> ProducerChanges::add_marker(const record::BatchView& batch, const record::TransactionMarker& marker, Timestamp timestamp) {
    auto& entry = entry_of(batch.producer_id());
    TM_TRYV(check_epoch(entry, batch, true));
    if (marker.coordinator_epoch < entry.coordinator_epoch) {
        const auto text = of_producer(batch.producer_id(), batch.base_offset()) + "coordinator epoch " + std::to_string(marker.coordinator_epoch) +
                          ", the last one seen is " + std::to_string(entry.coordinator_epoch);
        if (origin_ != record::Origin::replication) return Error{Errc::coordinator_fenced, text};
        log_info("{}", text);
    }
    if (entry.transaction_first_offset) {
        completed_.push_back({.producer_id = batch.producer_id(),
                              .first_offset = *entry.transaction_first_offset,
                              .marker_offset = batch.base_offset(),
                              .aborted = marker.type == record::ControlType::abort});
    }
    decided_.emplace_back(batch.producer_id(), batch.producer_epoch());
    entry.set_epoch(batch.producer_epoch());
    entry.coordinator_epoch = marker.coordinator_epoch;
    entry.last_timestamp = timestamp;
    entry.transaction_first_offset.reset();
    return {};
}

// --- ProducerState -----------------------------------------------------------------------------------------------------

const ProducerEntry* ProducerState::find(ProducerId id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
}

bool ProducerState::has_open_transaction(ProducerId id, ProducerEpoch epoch) const {
    const auto* entry = find(id);
    return entry != nullptr && entry->transaction_first_offset && entry->epoch == epoch;
}

void ProducerState::apply(ProducerChanges&& changes) {
    for (auto& [id, entry] : changes.entries_) entries_[id] = std::move(entry);
    for (const auto& [first, id] : changes.started_) open_.emplace(first, id);
    for (const auto& [id, marker_epoch] : changes.decided_) {
        const auto found = verifications_.find(id);
        if (found == verifications_.end()) continue;
        // A marker may find that the next transaction, at the epoch that it brings, is being asked about already.
        const bool is_of_the_next = marker_epoch && found->second.bumps_epochs && found->second.epoch >= *marker_epoch;
        if (!is_of_the_next) verifications_.erase(found);
    }
}

VerificationId ProducerState::begin_verification(ProducerId id, ProducerEpoch epoch, Sequence first, bool bumps_epochs, Timestamp now) {
    const auto [place, added] = verifications_.try_emplace(id);
    auto& verification = place->second;
    if (added) verification = {.id = VerificationId{++verifications_begun_}, .epoch = epoch, .lowest_sequence = first, .bumps_epochs = bumps_epochs, .began = now};
    if (epoch > verification.epoch) {
        verification.epoch = epoch;
        verification.lowest_sequence = first;
    } else if (epoch == verification.epoch) {
        verification.lowest_sequence = std::min(verification.lowest_sequence, first);
    }
    verification.bumps_epochs |= bumps_epochs;
    return verification.id;
}

const Verification* ProducerState::find_verification(ProducerId id) const {
    const auto found = verifications_.find(id);
    return found == verifications_.end() ? nullptr : &found->second;
}

Offset ProducerState::last_stable_offset_after(const CompletedTransaction& completed) const {
    for (const auto& [first, id] : open_) {
        if (id != completed.producer_id) return first;
    }
    return completed.marker_offset + 1;
}

void ProducerState::complete(const CompletedTransaction& completed) {
    open_.erase(completed.first_offset);
    unreplicated_.insert_or_assign(completed.first_offset, completed);
}

void ProducerState::forget_completed_below(Offset high_watermark) {
    std::erase_if(unreplicated_, [&](const auto& entry) { return entry.second.marker_offset < high_watermark; });
}

std::optional<Offset> ProducerState::first_unstable_offset() const {
    std::optional<Offset> first;
    if (!open_.empty()) first = open_.begin()->first;
    if (!unreplicated_.empty() && (!first || unreplicated_.begin()->first < *first)) first = unreplicated_.begin()->first;
    return first;
}

std::optional<Timestamp> ProducerState::oldest_open_transaction() const {
    std::optional<Timestamp> oldest;
    for (const auto& [first, id] : open_) {
        const auto* entry = find(id);
        if (entry != nullptr && (!oldest || entry->last_timestamp < *oldest)) oldest = entry->last_timestamp;
    }
    return oldest;
}

bool ProducerState::is_expired(const ProducerEntry& entry, Timestamp now, std::int64_t expiration_ms) {
    return !entry.transaction_first_offset && now - entry.last_timestamp >= expiration_ms;
}

void ProducerState::expire(Timestamp now, std::int64_t expiration_ms) {
    std::erase_if(entries_, [&](const auto& entry) { return is_expired(entry.second, now, expiration_ms); });
    std::erase_if(verifications_, [&](const auto& entry) { return now - entry.second.began >= expiration_ms; });
}

void ProducerState::clear() {
    entries_.clear();
    verifications_.clear();
    open_.clear();
    unreplicated_.clear();
}

void ProducerState::recall(ProducerId id, ProducerEpoch epoch, const std::vector<ProducerBatch>& earlier) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || earlier.empty()) return;
    auto& entry = found->second;
    if (entry.epoch != epoch || entry.batches.empty() || entry.batches.back() != earlier.back()) return;
    std::size_t first = earlier.size() - 1;
    const std::size_t lowest = earlier.size() - std::min(earlier.size(), remembered_batches_max);
    while (first > lowest && follows(earlier[first - 1].last_sequence, earlier[first].first_sequence())) --first;
    if (earlier.size() - first > entry.batches.size()) entry.batches.assign(earlier.begin() + static_cast<std::ptrdiff_t>(first), earlier.end());
}

bool ProducerState::may_lack_batches() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const auto& one) {
        const auto& batches = one.second.batches;
        return !batches.empty() && batches.size() < remembered_batches_max && batches.front().first_sequence() != 0;
    });
}

void ProducerState::load(ProducerEntry entry) {
    if (entry.transaction_first_offset) open_.emplace(*entry.transaction_first_offset, entry.id);
    const auto id = entry.id;
    entries_.insert_or_assign(id, std::move(entry));
}

}  // namespace tidemark::storage
