#include "coordinator/group/classic_group.h"

#include <algorithm>

#include "coordinator/group/embedded_protocol.h"
#include "protocol/messages/group_metadata_key.h"

namespace tidemark::coordinator {

namespace {

constexpr std::string_view consumer_type = "consumer";
constexpr std::int16_t written_version = 3;

}  // namespace

std::string_view to_string(ClassicState state) {
    switch (state) {
        case ClassicState::empty: return "Empty";
        case ClassicState::preparing_rebalance: return "PreparingRebalance";
        case ClassicState::completing_rebalance: return "CompletingRebalance";
        case ClassicState::stable: return "Stable";
    }
    return "Dead";
}

const std::vector<std::byte>* ClassicMember::metadata_of(std::string_view protocol) const {
    const auto found = std::ranges::find(protocols, protocol, &ClassicProtocol::name);
    return found == protocols.end() ? nullptr : &found->metadata;
}

// --- questions from outside ----------------------------------------------------------------------------------------------

ErrorCode ClassicGroup::check_commit(const CommitCheck& check) const {
    const auto& claim = check.claim;
    if (claim.epoch < 0 && state == ClassicState::empty) return ErrorCode::none;
    if (claim.epoch >= 0 || !claim.member_id.empty() || claim.instance_id) {
        if (const auto error = check_member(claim.member_id, claim.instance_id); error != ErrorCode::none) return error;
        if (claim.epoch != generation) return ErrorCode::illegal_generation;
    } else if (!check.transactional) {
        return ErrorCode::unknown_member_id;
    }
    if (!check.transactional && state == ClassicState::completing_rebalance) return ErrorCode::rebalance_in_progress;
    return ErrorCode::none;
}

ErrorCode ClassicGroup::check_offset_delete() const {
    return is_empty() || type_name == consumer_type ? ErrorCode::none : ErrorCode::non_empty_group;
}

bool ClassicGroup::is_subscribed(std::string_view topic) const {
    if (type_name != consumer_type) return false;
    const auto topics = subscribed_topics();
    return !topics || topics->contains(topic);
}

OffsetExpiry ClassicGroup::offset_expiry() const {
    using Base = OffsetExpiry::Base;
    if (!type_name) return {.base = Base::commit_time};
    if (state == ClassicState::empty) return state_timestamp ? OffsetExpiry{.base = Base::since, .since = *state_timestamp} : OffsetExpiry{.base = Base::commit_time};
    const bool known = state == ClassicState::stable && type_name == consumer_type && subscribed_topics();
    return {.base = known ? Base::commit_time : Base::never};
}

void ClassicGroup::add_tombstones(std::vector<Record>& to) const { to.push_back(tombstone_of(protocol::GroupMetadataKey{.group = id()})); }

// --- members -------------------------------------------------------------------------------------------------------------

ClassicMember* ClassicGroup::find(const std::string& member_id) {
    const auto found = members.find(member_id);
    return found == members.end() ? nullptr : &found->second;
}

ErrorCode ClassicGroup::check_member(const std::string& member_id, const std::optional<std::string>& instance_id) const {
    if (instance_id) {
        const auto known = static_members.find(*instance_id);
        if (known == static_members.end()) return ErrorCode::unknown_member_id;
        if (known->second != member_id) return ErrorCode::fenced_instance_id;
    }
    return members.contains(member_id) ? ErrorCode::none : ErrorCode::unknown_member_id;
}

ClassicMember& ClassicGroup::add(ClassicMember member) {
    pending_joins.erase(member.id);
    if (member.instance_id) static_members[*member.instance_id] = member.id;
    if (!leader) leader = member.id;
    member.order = next_order_++;
    const auto id = member.id;
    return members.insert_or_assign(id, std::move(member)).first->second;
}

void ClassicGroup::remove(const std::string& member_id) {
    if (const auto found = members.find(member_id); found != members.end()) {
        if (const auto& instance = found->second.instance_id) static_members.erase(*instance);
        members.erase(found);
    }
    pending_joins.erase(member_id);
    pending_syncs.erase(member_id);
    if (leader != member_id) return;
    leader.reset();
    if (const auto oldest = std::ranges::min_element(members, {}, [](const auto& entry) { return entry.second.order; }); oldest != members.end()) leader = oldest->first;
}

ClassicMember& ClassicGroup::rename_static(const std::string& old_id, const std::string& new_id) {
    auto node = members.extract(old_id);
    TM_ASSERT(!node.empty());
    node.key() = node.mapped().id = new_id;
    auto& member = members.insert(std::move(node)).position->second;
    static_members[member.instance_id.value()] = new_id;
    if (leader == old_id) leader = new_id;
    if (pending_syncs.erase(old_id) != 0) pending_syncs.insert(new_id);
    return member;
}

std::size_t ClassicGroup::waiting_joins() const {
    return static_cast<std::size_t>(std::ranges::count_if(members, [](const auto& entry) { return static_cast<bool>(entry.second.parked_join); }));
}

std::int32_t ClassicGroup::rebalance_timeout_ms() const {
    std::int32_t longest = 0;
    for (const auto& [member_id, member] : members) longest = std::max(longest, member.rebalance_timeout_ms);
    return longest;
}

bool ClassicGroup::elect_joined_leader() {
    const auto* current = leader ? find(*leader) : nullptr;
    if (current != nullptr && current->parked_join) return true;
    const ClassicMember* first = nullptr;
    for (const auto& [member_id, member] : members) {
        if (member.parked_join && (first == nullptr || member.order < first->order)) first = &member;
    }
    if (first == nullptr) return false;
    leader = first->id;
    return true;
}

// --- protocols -----------------------------------------------------------------------------------------------------------

bool ClassicGroup::accepts(const std::string& type, const std::vector<ClassicProtocol>& protocols) const {
    if (state == ClassicState::empty) return !type.empty() && !protocols.empty();
    if (type != type_name) return false;
    return std::ranges::any_of(protocols, [&](const auto& candidate) {
        return std::ranges::all_of(members, [&](const auto& entry) { return entry.second.supports(candidate.name); });
    });
}

std::string ClassicGroup::selected_protocol() const {
    TM_ASSERT(!members.empty());
    const auto shared = [&](const ClassicProtocol& candidate) {
        return std::ranges::all_of(members, [&](const auto& entry) { return entry.second.supports(candidate.name); });
    };
    std::map<std::string, std::size_t> votes;
    for (const auto& [member_id, member] : members) {
        const auto choice = std::ranges::find_if(member.protocols, shared);
        TM_ASSERT(choice != member.protocols.end());
        ++votes[choice->name];
    }
    const auto* judge = leader ? find(*leader) : nullptr;
    if (judge == nullptr) judge = &members.begin()->second;
    std::string best;
    std::size_t most = 0;
    for (const auto& candidate : judge->protocols) {
        const auto counted = votes.find(candidate.name);
        if (counted == votes.end() || counted->second <= most) continue;
        most = counted->second;
        best = candidate.name;
    }
    return best;
}

std::optional<std::set<std::string, std::less<>>> ClassicGroup::subscribed_topics() const {
    if (type_name != consumer_type) return std::nullopt;
    std::set<std::string, std::less<>> topics;
    if (members.empty()) return topics;
    if (!protocol) return std::nullopt;
    for (const auto& [member_id, member] : members) {
        const auto* metadata = member.metadata_of(*protocol);
        if (metadata == nullptr) return std::nullopt;
        const auto read = parse_subscription(*metadata);
        if (!read) return std::nullopt;
        topics.insert(read->topics.begin(), read->topics.end());
    }
    return topics;
}

// --- states --------------------------------------------------------------------------------------------------------------

void ClassicGroup::become(ClassicState next, Timestamp now) {
    state = next;
    state_timestamp = now;
}

Record ClassicGroup::metadata_record() const {
    protocol::GroupMetadataValue value{.protocol_type = protocol_type(),
                                       .generation = generation,
                                       .protocol = protocol,
                                       .leader = leader,
                                       .current_state_timestamp = state_timestamp.value_or(no_timestamp).value};
    value.members.reserve(members.size());
    for (const auto& [member_id, member] : members) {
        const auto* metadata = protocol ? member.metadata_of(*protocol) : nullptr;
        value.members.push_back({.member_id = member.id,
                                 .group_instance_id = member.instance_id,
                                 .client_id = member.client.id,
                                 .client_host = member.client.host,
                                 .rebalance_timeout = member.rebalance_timeout_ms,
                                 .session_timeout = member.session_timeout_ms,
                                 .subscription = metadata != nullptr ? *metadata : std::vector<std::byte>{},
                                 .assignment = member.assignment});
    }
    return record_of(protocol::GroupMetadataKey{.group = id()}, value, written_version);
}

std::unique_ptr<ClassicGroup> ClassicGroup::from_record(std::string id, const protocol::GroupMetadataValue& value) {
    auto group = std::make_unique<ClassicGroup>(std::move(id), Timestamp{value.current_state_timestamp});
    if (value.current_state_timestamp < 0) group->state_timestamp.reset();
    group->generation = value.generation;
    if (!value.protocol_type.empty()) group->type_name = value.protocol_type;
    for (const auto& member : value.members) {
        group->add({.id = member.member_id,
                    .instance_id = member.group_instance_id,
                    .client = {.id = member.client_id, .host = member.client_host},
                    .rebalance_timeout_ms = member.rebalance_timeout == -1 ? member.session_timeout : member.rebalance_timeout,
                    .session_timeout_ms = member.session_timeout,
                    .protocols = {{value.protocol.value_or(""), member.subscription}},
                    .assignment = member.assignment,
                    .is_new = false,
                    .order = 0});
    }
    group->protocol = value.protocol;
    group->leader = value.leader;
    group->state = value.members.empty() ? ClassicState::empty : ClassicState::stable;
    return group;
}

}  // namespace tidemark::coordinator
