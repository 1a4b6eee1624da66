#include "daemon/fetch_sessions.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/assert.h"

namespace tidemark::daemon {

using protocol::ErrorCode;

std::int32_t FetchSession::epoch_after(std::int32_t epoch) { return epoch == std::numeric_limits<std::int32_t>::max() ? 1 : epoch + 1; }

void FetchSession::set(const FetchPartition& partition) {
    if (const auto at = by_key_.find(partition.key); at != by_key_.end()) {
        at->second->partition = partition;
        return;
    }
    entries_.push_back({.partition = partition});
    by_key_[partition.key] = std::prev(entries_.end());
}

void FetchSession::forget(const FetchKey& key) {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return;
    entries_.erase(at->second);
    by_key_.erase(at);
}

std::vector<FetchPartition> FetchSession::partitions() const {
    std::vector<FetchPartition> all;
    all.reserve(entries_.size());
    for (const auto& entry : entries_) all.push_back(entry.partition);
    return all;
}

bool FetchSession::tell(const FetchKey& key, const FetchNews& news) {
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return false;
    auto& entry = *at->second;
    const bool must = news.error != ErrorCode::none || news.has_records || news.diverging ||
                      news.high_watermark != entry.told_high_watermark || news.log_start_offset != entry.told_log_start_offset;
    // After an error the next answer names it again, whatever it says then.
    entry.told_high_watermark = news.error == ErrorCode::none ? news.high_watermark : Offset{-1};
    entry.told_log_start_offset = news.log_start_offset;
    return must;
}

void FetchSession::move_to_end(const FetchKey& key) {
    if (const auto at = by_key_.find(key); at != by_key_.end()) entries_.splice(entries_.end(), entries_, at->second);
}

namespace {

/// Of a partition that is named twice the last entry counts, in the place of the first.
void keep_one_of_each(std::vector<FetchPartition>& partitions) {
    if (partitions.size() < 2) return;
    std::unordered_map<FetchKey, std::size_t> places;
    std::size_t kept = 0;
    for (auto& partition : partitions) {
        const auto [at, is_new] = places.try_emplace(partition.key, kept);
        auto& place = partitions[at->second];
        if (is_new) ++kept;
        if (&place != &partition) place = std::move(partition);
    }
    partitions.resize(kept);
}

}  // namespace

FetchContext FetchSessions::begin(Request request, Timestamp now) {
    const bool whole = request.epoch == 0 || request.epoch == -1;
    if (whole) keep_one_of_each(request.partitions);
    MutexLock lock(mutex_);
    if (whole) {
        if (request.session_id != 0) remove(request.session_id);
        return {.kind = request.epoch == 0 ? FetchContext::Kind::create : FetchContext::Kind::sessionless,
                .by_id = request.by_id,
                .partitions = std::move(request.partitions)};
    }
    const auto refused = [](ErrorCode error) { return FetchContext{.kind = FetchContext::Kind::refused, .error = error}; };
    const auto at = slots_.find(request.session_id);
    if (at == slots_.end()) return refused(ErrorCode::fetch_session_id_not_found);
    auto& [id, slot] = *at;
    if (slot.session.next_epoch() != request.epoch) return refused(ErrorCode::invalid_fetch_session_epoch);
    if (slot.session.by_id() != request.by_id) return refused(ErrorCode::fetch_session_topic_id_error);

    const auto before = slot.session.size();
    for (const auto& partition : request.partitions) slot.session.set(partition);
    for (const auto& key : request.forgotten) slot.session.forget(key);
    partitions_ += slot.session.size() - before;
    if (slot.session.size() == 0) {
        remove(request.session_id);
        return {.kind = FetchContext::Kind::sessionless, .by_id = request.by_id};
    }
    slot.session.advance_epoch();
    slot.used = now;
    return {.kind = FetchContext::Kind::incremental, .session_id = id, .by_id = request.by_id, .partitions = slot.session.partitions()};
}

std::int32_t FetchSessions::create(const std::vector<std::pair<FetchPartition, FetchNews>>& told, bool by_id, bool follower, Timestamp now) {
    MutexLock lock(mutex_);
    if (!make_room_for(told.size(), follower, now)) return 0;
    std::int32_t id = 0;
    while (id == 0 || slots_.contains(id)) id = static_cast<std::int32_t>(random_() & 0x7fffffff);
    auto& slot = slots_.emplace(id, Slot{.session = FetchSession{id, by_id}, .created = now, .used = now, .follower = follower}).first->second;
    for (const auto& [partition, news] : told) {
        slot.session.set(partition);
        slot.session.tell(partition.key, news);
    }
    for (const auto& [partition, news] : told) {
        if (news.has_records) slot.session.move_to_end(partition.key);
    }
    partitions_ += slot.session.size();
    return id;
}

std::vector<bool> FetchSessions::tell(std::int32_t session_id, const std::vector<std::pair<FetchKey, FetchNews>>& read) {
    MutexLock lock(mutex_);
    const auto at = slots_.find(session_id);
    if (at == slots_.end()) return std::vector<bool>(read.size(), true);
    auto& session = at->second.session;
    std::vector<bool> named;
    named.reserve(read.size());
    for (const auto& [key, news] : read) named.push_back(session.tell(key, news));
    for (const auto& [key, news] : read) {
        if (news.has_records) session.move_to_end(key);
    }
    return named;
}

void FetchSessions::set_options(Options options) {
    MutexLock lock(mutex_);
    options_ = options;
}

FetchSessions::Stats FetchSessions::stats() const {
    MutexLock lock(mutex_);
    return {slots_.size(), partitions_, evicted_};
}

/// One unused for evict_ms goes first; else one that is older than that and, followers being worth more, worth less than
/// the new one: the smallest.
bool FetchSessions::make_room_for(std::size_t partitions, bool follower, Timestamp now) {
    if (options_.sessions_max <= 0) return false;
    if (std::cmp_less(slots_.size(), options_.sessions_max)) return true;
    const auto oldest = std::ranges::min_element(slots_, {}, [](const auto& entry) { return entry.second.used; });
    std::optional<std::int32_t> victim;
    if (now - oldest->second.used > options_.evict_ms) {
        victim = oldest->first;
    } else {
        const auto worth = [](const Slot& slot) { return std::tuple(slot.follower, slot.session.size()); };
        for (const auto& [id, slot] : slots_) {
            if (now - slot.created <= options_.evict_ms || worth(slot) >= std::tuple(follower, partitions)) continue;
            if (!victim || worth(slot) < worth(slots_.at(*victim))) victim = id;
        }
    }
    if (!victim) return false;
    remove(*victim);
    ++evicted_;
    return true;
}

void FetchSessions::remove(std::int32_t id) {
    const auto at = slots_.find(id);
    if (at == slots_.end()) return;
    partitions_ -= at->second.session.size();
    slots_.erase(at);
}

}  // namespace tidemark::daemon
