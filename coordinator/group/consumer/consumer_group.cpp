#include "coordinator/group/consumer/consumer_group.h"

#include <algorithm>
#include <set>

namespace tidemark::coordinator {

namespace {

void add(std::map<std::string, std::int32_t, std::less<>>& counts, const std::string& key, int by) {
    const auto found = counts.try_emplace(key, 0).first;
    found->second += by;
    if (found->second == 0) counts.erase(found);
}

}  // namespace

std::string_view ConsumerGroup::state_name() const {
    switch (state()) {
        case State::empty: return "Empty";
        case State::assigning: return "Assigning";
        case State::reconciling: return "Reconciling";
        case State::stable: return "Stable";
    }
    return "";
}

ConsumerGroup::State ConsumerGroup::state() const {
    if (members_.empty()) return State::empty;
    if (epoch_ > assignment_epoch_) return State::assigning;
    const auto reconciled = std::ranges::all_of(members_, [&](const auto& entry) { return entry.second.is_at(assignment_epoch_); });
    return reconciled ? State::stable : State::reconciling;
}

const ConsumerMember* ConsumerGroup::find(const std::string& member_id) const {
    const auto found = members_.find(member_id);
    return found == members_.end() ? nullptr : &found->second;
}

const ConsumerMember* ConsumerGroup::find_static(const std::string& instance_id) const {
    const auto found = static_members_.find(instance_id);
    return found == static_members_.end() ? nullptr : find(found->second);
}

const Partitions* ConsumerGroup::target(const std::string& member_id) const {
    const auto found = targets_.find(member_id);
    return found == targets_.end() ? nullptr : &found->second;
}

std::int32_t ConsumerGroup::subscribers_by_regex(const std::string& pattern) const {
    const auto found = regex_subscribers_.find(pattern);
    return found == regex_subscribers_.end() ? 0 : found->second;
}

std::vector<std::string> ConsumerGroup::subscribed_topics() const {
    std::set<std::string> topics;
    for (const auto& [topic, subscribers] : topic_subscribers_) topics.insert(topic);
    for (const auto& [pattern, resolved] : regexes_) topics.insert(resolved.topics.begin(), resolved.topics.end());
    return {topics.begin(), topics.end()};
}

bool ConsumerGroup::is_subscribed(std::string_view topic) const {
    return topic_subscribers_.contains(topic) ||
           std::ranges::any_of(regexes_, [&](const auto& regex) { return std::ranges::binary_search(regex.second.topics, topic); });
}

std::vector<std::string> ConsumerGroup::subscribed_topics(const ConsumerMember& member) const {
    const auto regex = regexes_.find(member.facts.regex);
    if (member.facts.regex.empty() || regex == regexes_.end()) return member.facts.topics;
    std::vector<std::string> topics;
    std::ranges::set_union(member.facts.topics, regex->second.topics, std::back_inserter(topics));
    return topics;
}

bool ConsumerGroup::same_subscription() const {
    const auto by_all = [&](const auto& entry) { return entry.second == static_cast<std::int32_t>(members_.size()); };
    if (regex_subscribers_.empty()) return std::ranges::all_of(topic_subscribers_, by_all);
    return regex_subscribers_.size() == 1 && by_all(*regex_subscribers_.begin()) && topic_subscribers_.empty();
}

bool ConsumerGroup::is_held(const Uuid& topic, std::int32_t partition) const {
    const auto found = held_.find(topic);
    return found != held_.end() && found->second.contains(partition);
}

bool ConsumerGroup::waits_for_others(const ConsumerMember& member) const {
    const auto* wanted = target(member.id);
    if (wanted == nullptr || member.current.state != MemberState::unreleased_partitions) return false;
    return std::ranges::any_of(*wanted, [&](const auto& entry) {
        return std::ranges::any_of(entry.second, [&](auto partition) { return !holds(member.current.assigned, entry.first, partition) && is_held(entry.first, partition); });
    });
}

bool ConsumerGroup::classic_members_support(const std::vector<std::string>& protocols) const {
    if (classic_members_ == 0) return true;
    return std::ranges::any_of(protocols, [&](const std::string& protocol) {
        const auto found = classic_protocols_.find(protocol);
        return found != classic_protocols_.end() && found->second == classic_members_;
    });
}

std::optional<std::string> ConsumerGroup::preferred_assignor() const {
    const auto most = std::ranges::max_element(assignor_votes_, {}, &Counts::value_type::second);
    return most == assignor_votes_.end() ? std::nullopt : std::optional{most->first};
}

// --- offsets -----------------------------------------------------------------------------------------------------------

ErrorCode ConsumerGroup::check_commit(const CommitCheck& commit) const {
    const auto epoch = commit.claim.epoch;
    if (is_empty() && epoch < 0) return ErrorCode::none;
    const auto* member = find(commit.claim.member_id);
    if (member == nullptr) return ErrorCode::unknown_member_id;
    if (!member->is_classic() && !commit.transactional && commit.version < 9) return ErrorCode::unsupported_version;
    const auto stale = member->is_classic() ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
    const auto& current = member->current;
    if (epoch == current.epoch) return ErrorCode::none;
    if (epoch > current.epoch) return stale;
    // KIP-1251: what the member has held all the time since that epoch may still be committed.
    const auto held_since = [&](const HeldPartitions& held, const CommittedPartition& partition) {
        const auto topic = held.find(partition.topic_id);
        if (topic == held.end()) return false;
        const auto found = topic->second.find(partition.partition);
        return found != topic->second.end() && found->second <= epoch;
    };
    const auto allowed = std::ranges::all_of(commit.partitions, [&](const auto& partition) { return held_since(current.assigned, partition) || held_since(current.pending_revocation, partition); });
    return allowed ? ErrorCode::none : stale;
}

ErrorCode ConsumerGroup::check_fetch(const MemberClaim& claim) const {
    if (claim.member_id.empty() && claim.epoch < 0) return ErrorCode::none;
    const auto* member = find(claim.member_id);
    if (member == nullptr) return ErrorCode::unknown_member_id;
    if (claim.epoch == member->current.epoch) return ErrorCode::none;
    return member->is_classic() ? ErrorCode::illegal_generation : ErrorCode::stale_member_epoch;
}

// --- changes -----------------------------------------------------------------------------------------------------------

void ConsumerGroup::count(const ConsumerMember& member, int by) {
    const auto& facts = member.facts;
    for (const auto& topic : facts.topics) add(topic_subscribers_, topic, by);
    if (!facts.regex.empty()) add(regex_subscribers_, facts.regex, by);
    if (facts.assignor) add(assignor_votes_, *facts.assignor, by);
    if (facts.classic) {
        classic_members_ += by;
        for (const auto& protocol : facts.classic->protocols) add(classic_protocols_, protocol.name, by);
    }
    if (!facts.instance_id) return;
    if (by > 0) {
        static_members_[*facts.instance_id] = member.id;
    } else if (const auto found = static_members_.find(*facts.instance_id); found != static_members_.end() && found->second == member.id) {
        static_members_.erase(found);
    }
}

void ConsumerGroup::count_held(const HeldPartitions& held, int by) {
    for (const auto& [topic, partitions] : held) {
        auto& counts = held_[topic];
        for (const auto& [partition, epoch] : partitions) {
            const auto found = counts.try_emplace(partition, 0).first;
            found->second += by;
            if (found->second == 0) counts.erase(found);
        }
        if (counts.empty()) held_.erase(topic);
    }
}

void ConsumerGroup::put_member(const std::string& id, MemberFacts facts) {
    auto& member = members_[id];
    if (!member.id.empty()) count(member, -1);
    member.id = id;
    member.facts = std::move(facts);
    count(member, +1);
}

void ConsumerGroup::erase_member(const std::string& id) {
    const auto found = members_.find(id);
    if (found == members_.end()) return;
    erase_assignment(id);
    count(found->second, -1);
    members_.erase(found);
}

void ConsumerGroup::put_assignment(const std::string& id, MemberAssignment assignment) {
    auto& member = members_[id];
    member.id = id;
    count_held(member.current.assigned, -1);
    count_held(member.current.pending_revocation, -1);
    member.current = std::move(assignment);
    count_held(member.current.assigned, +1);
    count_held(member.current.pending_revocation, +1);
}

void ConsumerGroup::erase_assignment(const std::string& id) {
    if (members_.contains(id)) put_assignment(id, {});
}

void ConsumerGroup::put_target(const std::string& id, Partitions partitions) { targets_[id] = std::move(partitions); }

void ConsumerGroup::put_epoch(std::int32_t epoch, std::int64_t metadata_hash) {
    epoch_ = epoch;
    metadata_hash_ = metadata_hash;
}

void ConsumerGroup::put_assignment_epoch(std::int32_t epoch, Timestamp at) {
    assignment_epoch_ = epoch;
    assigned_at_ = at;
}

void ConsumerGroup::put_regex(const std::string& pattern, ResolvedRegex resolved) { regexes_[pattern] = std::move(resolved); }

bool operator==(const ConsumerGroup& a, const ConsumerGroup& b) {
    return a.id() == b.id() && a.epoch_ == b.epoch_ && a.metadata_hash_ == b.metadata_hash_ && a.assignment_epoch_ == b.assignment_epoch_ && a.assigned_at_ == b.assigned_at_ &&
           a.members_ == b.members_ && a.targets_ == b.targets_ && a.regexes_ == b.regexes_ && a.static_members_ == b.static_members_ && a.topic_subscribers_ == b.topic_subscribers_ &&
           a.regex_subscribers_ == b.regex_subscribers_ && a.assignor_votes_ == b.assignor_votes_ && a.classic_protocols_ == b.classic_protocols_ && a.classic_members_ == b.classic_members_ &&
           a.held_ == b.held_;
}

}  // namespace tidemark::coordinator
