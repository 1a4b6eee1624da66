#include "coordinator/group/offsets.h"

namespace tidemark::coordinator {

void Offsets::replay(const protocol::OffsetCommitKey& key, const protocol::OffsetCommitValue* value, Offset at, ProducerId producer_id) {
    const Place place{key.group, key.topic, key.partition};
    if (value == nullptr) {
        if (const auto group = committed_.find(place.group_id); group != committed_.end()) {
            if (const auto topic = group->second.find(place.topic); topic != group->second.end()) {
                topic->second.erase(place.partition);
                if (topic->second.empty()) group->second.erase(topic);
            }
            if (group->second.empty()) committed_.erase(group);
        }
        const auto pending = pending_by_group_.find(place.group_id);
        if (pending == pending_by_group_.end()) return;
        const auto producers = pending->second.find({place.topic, place.partition});
        if (producers == pending->second.end()) return;
        for (const auto producer : std::set{producers->second}) forget_pending(place, producer);
        return;
    }
    StoredOffset stored{.offset = value->offset,
                        .leader_epoch = value->leader_epoch,
                        .metadata = value->metadata,
                        .committed = Timestamp{value->commit_timestamp},
                        .expires = value->expire_timestamp == -1 ? std::nullopt : std::optional{Timestamp{value->expire_timestamp}},
                        .topic_id = value->topic_id,
                        .record_offset = at};
    if (producer_id == no_producer_id) return commit(place, std::move(stored));
    pending_[producer_id].insert_or_assign(place, std::move(stored));
    pending_by_group_[place.group_id][{place.topic, place.partition}].insert(producer_id);
}

void Offsets::commit(const Place& place, StoredOffset stored) {
    committed_[place.group_id][place.topic].insert_or_assign(place.partition, std::move(stored));
}

void Offsets::forget_pending(const Place& place, ProducerId producer_id) {
    if (const auto found = pending_.find(producer_id); found != pending_.end()) {
        found->second.erase(place);
        if (found->second.empty()) pending_.erase(found);
    }
    const auto group = pending_by_group_.find(place.group_id);
    if (group == pending_by_group_.end()) return;
    if (const auto producers = group->second.find({place.topic, place.partition}); producers != group->second.end()) {
        producers->second.erase(producer_id);
        if (producers->second.empty()) group->second.erase(producers);
    }
    if (group->second.empty()) pending_by_group_.erase(group);
}

void Offsets::end_transaction(ProducerId producer_id, bool committed) {
    const auto found = pending_.find(producer_id);
    if (found == pending_.end()) return;
    const auto places = std::move(found->second);
    pending_.erase(found);
    for (const auto& [place, stored] : places) {
        forget_pending(place, producer_id);
        if (!committed) continue;
        const auto* known = find(place.group_id, place.topic, place.partition);
        if (known == nullptr || known->record_offset < stored.record_offset) commit(place, stored);
    }
}

const Offsets::Topics* Offsets::of_group(const std::string& group_id) const {
    const auto found = committed_.find(group_id);
    return found == committed_.end() ? nullptr : &found->second;
}

const StoredOffset* Offsets::find(const std::string& group_id, std::string_view topic, std::int32_t partition) const {
    const auto* topics = of_group(group_id);
    if (topics == nullptr) return nullptr;
    const auto partitions = topics->find(topic);
    if (partitions == topics->end()) return nullptr;
    const auto found = partitions->second.find(partition);
    return found == partitions->second.end() ? nullptr : &found->second;
}

bool Offsets::is_unstable(const std::string& group_id, const std::string& topic, std::int32_t partition) const {
    const auto found = pending_by_group_.find(group_id);
    return found != pending_by_group_.end() && found->second.contains({topic, partition});
}

std::vector<std::string> Offsets::groups() const {
    std::set<std::string> ids;
    for (const auto& [id, topics] : committed_) ids.insert(id);
    for (const auto& [id, partitions] : pending_by_group_) ids.insert(id);
    return {ids.begin(), ids.end()};
}

void Offsets::add_tombstones(const std::string& group_id, std::vector<Record>& to) const {
    std::set<std::pair<std::string, std::int32_t>> places;
    if (const auto* topics = of_group(group_id)) {
        for (const auto& [topic, partitions] : *topics) {
            for (const auto& [partition, stored] : partitions) places.emplace(topic, partition);
        }
    }
    if (const auto pending = pending_by_group_.find(group_id); pending != pending_by_group_.end()) {
        for (const auto& [place, producers] : pending->second) places.insert(place);
    }
    for (const auto& [topic, partition] : places) to.push_back(tombstone_of(protocol::OffsetCommitKey{.group = group_id, .topic = topic, .partition = partition}));
}

void Offsets::add_tombstones(const std::string& group_id, const std::string& topic, const Uuid& topic_id, std::vector<Record>& to) const {
    const auto belongs = [&](const StoredOffset& stored) { return stored.topic_id.is_zero() || stored.topic_id == topic_id; };
    std::set<std::int32_t> numbers;
    if (const auto* topics = of_group(group_id)) {
        if (const auto partitions = topics->find(topic); partitions != topics->end()) {
            for (const auto& [partition, stored] : partitions->second) {
                if (belongs(stored)) numbers.insert(partition);
            }
        }
    }
    if (has_pending(group_id)) {
        for (const auto& [producer, places] : pending_) {
            for (auto at = places.lower_bound({group_id, topic, std::numeric_limits<std::int32_t>::min()}); at != places.end() && at->first.group_id == group_id && at->first.topic == topic; ++at) {
                if (belongs(at->second)) numbers.insert(at->first.partition);
            }
        }
    }
    for (const auto partition : numbers) to.push_back(tombstone_of(protocol::OffsetCommitKey{.group = group_id, .topic = topic, .partition = partition}));
}

}  // namespace tidemark::coordinator
