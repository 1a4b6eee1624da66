// A JoinGroup (4.2):  1. the group, made if need be   2. room   3. protocols   4. by member id: a new member, a known one, or a
//                     static one that takes its old place.
// A join phase (4.3): prepare_rebalance() ─► all there, or a timer ─► complete_join() ─► a leader's sync, or a timer.
#include "coordinator/group/classic_groups.h"

#include <algorithm>

#include "base/log.h"
#include "coordinator/errors.h"
#include "protocol/messages/group_metadata_key.h"

namespace tidemark::coordinator {

using protocol::JoinGroupResponse;
using protocol::LeaveGroupResponse;
using protocol::SyncGroupResponse;

namespace {

/// Until its first join phase is over a member need not be heard of for so long.
constexpr Moment new_member_session{300'000};

JoinGroupResponse refused_join(ErrorCode code, std::string member_id) { return {.error_code = code, .protocol_name = std::nullopt, .member_id = std::move(member_id)}; }
SyncGroupResponse refused_sync(ErrorCode code) { return {.error_code = code}; }

template <class Response>
void answer_and_forget(Context& context, Reply<Response>& parked, Response response) {
    if (parked) context.answer(std::exchange(parked, {}), std::move(response));
}

std::vector<JoinGroupResponse::JoinGroupResponseMember> members_of(const ClassicGroup& group) {
    std::vector<JoinGroupResponse::JoinGroupResponseMember> list;
    list.reserve(group.members.size());
    for (const auto& [id, member] : group.members) {
        const auto* metadata = group.protocol ? member.metadata_of(*group.protocol) : nullptr;
        list.push_back({.member_id = id, .group_instance_id = member.instance_id, .metadata = metadata != nullptr ? *metadata : std::vector<std::byte>{}});
    }
    return list;
}

JoinGroupResponse joined(const ClassicGroup& group, const std::string& member_id, bool with_members) {
    return {.generation_id = group.generation,
            .protocol_type = group.type_name,
            .protocol_name = group.protocol,
            .leader = group.leader.value_or(""),
            .member_id = member_id,
            .members = with_members ? members_of(group) : std::vector<JoinGroupResponse::JoinGroupResponseMember>{}};
}

SyncGroupResponse synced_answer(const ClassicGroup& group, const ClassicMember& member) {
    return {.protocol_type = group.type_name, .protocol_name = group.protocol, .assignment = member.assignment};
}

/// "client-1-" and a random UUID in its usual form.
std::string new_member_id(const std::string& prefix) {
    const auto hex = Uuid::random().hex();
    return prefix + "-" + hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" + hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace

std::size_t ClassicGroups::TimerHash::operator()(const Timer& timer) const noexcept {
    return (std::hash<std::string>{}(timer.group_id) * 31 + std::hash<std::string>{}(timer.member_id)) * 31 + static_cast<std::size_t>(timer.what);
}

// --- JoinGroup -----------------------------------------------------------------------------------------------------------

struct ClassicGroups::Joining {
    const Client& client;
    const protocol::JoinGroupRequest& request;
    std::int16_t version;
    std::vector<ClassicProtocol> protocols;
    Reply<JoinGroupResponse> reply;

    bool requires_known_member_id() const { return version >= 4 && !request.group_instance_id; }
    /// Version 0 knows one timeout only.
    std::int32_t rebalance_timeout_ms() const { return version == 0 ? request.session_timeout_ms : request.rebalance_timeout_ms; }
    void refuse(Context& context, ErrorCode code, std::string member_id) { context.answer(std::move(reply), refused_join(code, std::move(member_id))); }
};

void ClassicGroups::join(Context& context, const Client& client, protocol::JoinGroupRequest& request, std::int16_t version, std::vector<Record> replaced, Reply<JoinGroupResponse> reply) {
    Joining joining{client, request, version, {}, std::move(reply)};
    for (auto& protocol : request.protocols) joining.protocols.push_back({std::move(protocol.name), std::move(protocol.metadata)});

    const auto timeout = request.session_timeout_ms;
    if (request.group_id.empty()) return joining.refuse(context, ErrorCode::invalid_group_id, request.member_id);
    if (timeout < options_->session_timeout_min_ms || timeout > options_->session_timeout_max_ms) return joining.refuse(context, ErrorCode::invalid_session_timeout, request.member_id);

    auto* group = groups_.find_as<ClassicGroup>(request.group_id);
    if (group == nullptr) {
        if (!request.member_id.empty()) return joining.refuse(context, ErrorCode::unknown_member_id, request.member_id);
        // The record makes the group: replaying it puts it into the table.
        replaced.push_back(ClassicGroup{request.group_id, context.now()}.metadata_record());
        if (const auto written = context.write(replaced); !written) return joining.refuse(context, coordinator_error(written.error().code), request.member_id);
        group = groups_.find_as<ClassicGroup>(request.group_id);
        TM_ASSERT(group != nullptr);
    }
    if (!has_room(*group, request.member_id)) {
        if (group->find(request.member_id) != nullptr) remove_member(context, *group, request.member_id);
        group->pending_joins.erase(request.member_id);
        return joining.refuse(context, ErrorCode::group_max_size_reached, "");
    }
    if (!group->accepts(request.protocol_type, joining.protocols)) return joining.refuse(context, ErrorCode::inconsistent_group_protocol, request.member_id);
    if (request.member_id.empty()) return join_unknown(context, *group, joining);
    join_known(context, *group, joining);
}

bool ClassicGroups::has_room(const ClassicGroup& group, const std::string& member_id) const {
    const auto size_max = static_cast<std::size_t>(options_->size_max);
    const auto* member = group.find(member_id);
    switch (group.state) {
        case ClassicState::empty: return true;
        case ClassicState::preparing_rebalance: return (member != nullptr && member->parked_join) || group.waiting_joins() < size_max;
        case ClassicState::completing_rebalance:
        case ClassicState::stable: return member != nullptr || group.members.size() < size_max;
    }
    return true;
}

void ClassicGroups::join_unknown(Context& context, ClassicGroup& group, Joining& joining) {
    const auto& instance = joining.request.group_instance_id;
    if (instance) {
        if (const auto known = group.static_members.find(*instance); known != group.static_members.end()) return join_as_replacement(context, group, joining, known->second);
        return add_member(context, group, joining, new_member_id(*instance));
    }
    auto member_id = new_member_id(joining.client.id);
    if (!joining.requires_known_member_id()) return add_member(context, group, joining, std::move(member_id));
    group.pending_joins.insert(member_id);
    timers_.set({.what = Timer::What::pending_join, .group_id = group.id(), .member_id = member_id}, context.moment() + Moment{joining.request.session_timeout_ms});
    joining.refuse(context, ErrorCode::member_id_required, std::move(member_id));
}

void ClassicGroups::join_known(Context& context, ClassicGroup& group, Joining& joining) {
    const auto& request = joining.request;
    if (group.pending_joins.contains(request.member_id)) {
        // Ids are given out to members without instance only.
        if (request.group_instance_id) return joining.refuse(context, ErrorCode::unknown_server_error, request.member_id);
        return add_member(context, group, joining, request.member_id);
    }
    if (const auto error = group.check_member(request.member_id, request.group_instance_id); error != ErrorCode::none) return joining.refuse(context, error, request.member_id);

    auto& member = *group.find(request.member_id);
    const bool unchanged = member.protocols == joining.protocols;
    switch (group.state) {
        case ClassicState::empty: return joining.refuse(context, ErrorCode::unknown_member_id, request.member_id);
        case ClassicState::preparing_rebalance: return park_join(context, group, member, joining);
        case ClassicState::completing_rebalance:
            // It may not have got the answer of its last join.
            if (unchanged) return context.answer(std::move(joining.reply), joined(group, member.id, group.is_leader(member.id)));
            return park_join(context, group, member, joining);
        case ClassicState::stable:
            if (unchanged && !group.is_leader(member.id)) return context.answer(std::move(joining.reply), joined(group, member.id, false));
            return park_join(context, group, member, joining);
    }
}

void ClassicGroups::add_member(Context& context, ClassicGroup& group, Joining& joining, std::string member_id) {
    const auto& request = joining.request;
    timers_.cancel({.what = Timer::What::pending_join, .group_id = group.id(), .member_id = member_id});
    if (group.members.empty()) group.type_name = request.protocol_type;
    auto& member = group.add({.id = std::move(member_id), .instance_id = request.group_instance_id, .client = joining.client});
    // The delay of a first rebalance goes on while members keep coming.
    if (group.state == ClassicState::preparing_rebalance && group.generation == 0) group.member_came = true;
    park_join(context, group, member, joining);
}

/// Takes over what the request says of the member, lets it wait, and sees to it that there is a join phase.
void ClassicGroups::park_join(Context& context, ClassicGroup& group, ClassicMember& member, Joining& joining) {
    answer_and_forget(context, member.parked_join, refused_join(ErrorCode::rebalance_in_progress, member.id));   // asked again meanwhile
    member.protocols = std::move(joining.protocols);
    member.session_timeout_ms = joining.request.session_timeout_ms;
    member.rebalance_timeout_ms = joining.rebalance_timeout_ms();
    member.parked_join = std::move(joining.reply);
    if (member.is_new) timers_.set({.what = Timer::What::session, .group_id = group.id(), .member_id = member.id}, context.moment() + new_member_session);
    if (group.state == ClassicState::preparing_rebalance) return maybe_complete_join(context, group);
    prepare_rebalance(context, group);
}

/// A static member came back under a new id (KIP-345). Where nothing else changes the others do not notice.
void ClassicGroups::join_as_replacement(Context& context, ClassicGroup& group, Joining& joining, const std::string& old_id) {
    const auto new_id = new_member_id(*joining.request.group_instance_id);
    const auto before = *group.find(old_id);
    const auto leader_before = group.leader;

    auto& member = group.rename_static(before.id, new_id);
    member.parked_join = {};
    member.parked_sync = {};
    const auto fence_old = [&] {
        cancel_session(group, before.id);
        if (before.parked_join) context.answer(before.parked_join, refused_join(ErrorCode::fenced_instance_id, before.id));
        if (before.parked_sync) context.answer(before.parked_sync, refused_sync(ErrorCode::fenced_instance_id));
    };
    if (group.state == ClassicState::stable) {
        member.protocols = joining.protocols;
        member.session_timeout_ms = joining.request.session_timeout_ms;
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms();
        if (group.selected_protocol() == group.protocol) {
            const auto record = group.metadata_record();
            if (const auto written = context.write({&record, 1}, {.replay = false}); !written) {
                group.rename_static(new_id, before.id) = before;
                return joining.refuse(context, coordinator_error(written.error().code), joining.request.member_id);
            }
            fence_old();
            start_session(context, group, member);
            const bool leads = group.is_leader(new_id);
            auto response = joined(group, new_id, leads && joining.version >= 9);
            if (joining.version >= 9) response.skip_assignment = leads;
            else response.leader = leader_before.value_or("");   // the client must not think that it has to assign
            return context.answer(std::move(joining.reply), std::move(response));
        }
    }
    fence_old();
    start_session(context, group, member);
    park_join(context, group, member, joining);
}

// --- the join phase ------------------------------------------------------------------------------------------------------

void ClassicGroups::rebalance(Context& context, ClassicGroup& group) {
    if (group.state != ClassicState::preparing_rebalance) prepare_rebalance(context, group);
}

void ClassicGroups::prepare_rebalance(Context& context, ClassicGroup& group) {
    if (group.state == ClassicState::completing_rebalance) {
        for (auto& [id, member] : group.members) member.assignment.clear();
        answer_syncs(context, group, ErrorCode::rebalance_in_progress);
    }
    timers_.cancel({.what = Timer::What::sync_phase, .group_id = group.id(), .member_id = {}});
    group.pending_syncs.clear();
    group.is_first_rebalance = group.state == ClassicState::empty;
    group.become(ClassicState::preparing_rebalance, context.now());
    const Timer phase{.what = Timer::What::join_phase, .group_id = group.id(), .member_id = {}};
    if (group.is_first_rebalance) {
        group.member_came = false;
        group.delay_ms = options_->initial_rebalance_delay_ms;
        group.delay_left_ms = std::max(group.rebalance_timeout_ms() - group.delay_ms, 0);
        if (group.delay_ms <= 0) return complete_join(context, group);
        timers_.set(phase, context.moment() + Moment{group.delay_ms});
    } else if (group.all_have_joined()) {
        complete_join(context, group);
    } else {
        timers_.set(phase, context.moment() + Moment{group.rebalance_timeout_ms()});
    }
}

void ClassicGroups::maybe_complete_join(Context& context, ClassicGroup& group) {
    if (group.state == ClassicState::preparing_rebalance && !group.is_first_rebalance && group.all_have_joined()) complete_join(context, group);
}

/// The delay of a first rebalance is prolonged while members come, up to the rebalance timeout.
void ClassicGroups::delay_over(Context& context, ClassicGroup& group) {
    if (!group.member_came || group.delay_left_ms == 0) return complete_join(context, group);
    group.member_came = false;
    const auto next = std::min(options_->initial_rebalance_delay_ms, group.delay_left_ms);
    group.delay_left_ms = std::max(group.delay_left_ms - group.delay_ms, 0);
    group.delay_ms = next;
    timers_.set({.what = Timer::What::join_phase, .group_id = group.id(), .member_id = {}}, context.moment() + Moment{next});
}

void ClassicGroups::complete_join(Context& context, ClassicGroup& group) {
    const Timer phase{.what = Timer::What::join_phase, .group_id = group.id(), .member_id = {}};
    timers_.cancel(phase);
    std::vector<std::string> absent;
    for (const auto& [id, member] : group.members) {
        if (!member.parked_join && !member.instance_id) absent.push_back(id);
    }
    for (const auto& id : absent) remove_member(context, group, id);
    if (!group.elect_joined_leader() && !group.members.empty()) {
        // Only static members, and none of them came: they get another rebalance timeout.
        timers_.set(phase, context.moment() + Moment{group.rebalance_timeout_ms()});
        return;
    }

    ++group.generation;
    group.is_first_rebalance = false;
    group.pending_syncs.clear();
    if (group.members.empty()) {
        group.protocol.reset();
        group.become(ClassicState::empty, context.now());
        const auto record = group.metadata_record();
        // The log keeps an older state then, which is as empty once its members' sessions are over.
        if (const auto written = context.write({&record, 1}, {.replay = false}); !written) log_warning("group {}: that it is empty could not be written: {}", group.id(), written.error().message());
        return;
    }
    group.protocol = group.selected_protocol();
    group.become(ClassicState::completing_rebalance, context.now());
    for (auto& [id, member] : group.members) {
        answer_and_forget(context, member.parked_join, joined(group, id, group.is_leader(id)));
        member.is_new = false;
        group.pending_syncs.insert(id);
        start_session(context, group, member);
    }
    timers_.set({.what = Timer::What::sync_phase, .group_id = group.id(), .member_id = {}}, context.moment() + Moment{group.rebalance_timeout_ms()});
}

// --- SyncGroup -----------------------------------------------------------------------------------------------------------

void ClassicGroups::sync(Context& context, protocol::SyncGroupRequest& request, std::int16_t version, Reply<SyncGroupResponse> reply) {
    const auto refuse = [&](ErrorCode code) { context.answer(std::move(reply), refused_sync(code)); };
    if (request.group_id.empty()) return refuse(ErrorCode::invalid_group_id);
    if (version >= 5 && (!request.protocol_type || !request.protocol_name)) return refuse(ErrorCode::inconsistent_group_protocol);
    auto* group = groups_.find_as<ClassicGroup>(request.group_id);
    if (group == nullptr || group->is_empty()) return refuse(ErrorCode::unknown_member_id);
    if (const auto error = group->check_member(request.member_id, request.group_instance_id); error != ErrorCode::none) return refuse(error);
    if (request.generation_id != group->generation) return refuse(ErrorCode::illegal_generation);
    if (request.protocol_type && request.protocol_type != group->type_name) return refuse(ErrorCode::inconsistent_group_protocol);
    if (request.protocol_name && request.protocol_name != group->protocol) return refuse(ErrorCode::inconsistent_group_protocol);

    auto& member = *group->find(request.member_id);
    switch (group->state) {
        case ClassicState::empty: return refuse(ErrorCode::unknown_member_id);
        case ClassicState::preparing_rebalance: return refuse(ErrorCode::rebalance_in_progress);
        case ClassicState::stable:
            synced(*group, member.id);
            return context.answer(std::move(reply), synced_answer(*group, member));
        case ClassicState::completing_rebalance: break;
    }
    answer_and_forget(context, member.parked_sync, refused_sync(ErrorCode::rebalance_in_progress));   // asked again meanwhile
    member.parked_sync = std::move(reply);
    synced(*group, member.id);
    if (!group->is_leader(member.id)) return;

    for (auto& [id, each] : group->members) each.assignment.clear();
    for (auto& given : request.assignments) {
        if (auto* each = group->find(given.member_id)) each->assignment = std::move(given.assignment);
    }
    const auto record = group->metadata_record();
    if (const auto written = context.write({&record, 1}, {.replay = false}); !written) {
        for (auto& [id, each] : group->members) each.assignment.clear();
        answer_syncs(context, *group, coordinator_error(written.error().code));
        return rebalance(context, *group);
    }
    group->become(ClassicState::stable, context.now());
    answer_syncs(context, *group, ErrorCode::none);
}

/// Answers whoever is parked in a sync; their sessions begin anew.
void ClassicGroups::answer_syncs(Context& context, ClassicGroup& group, ErrorCode code) {
    for (auto& [id, member] : group.members) {
        if (!member.parked_sync) continue;
        answer_and_forget(context, member.parked_sync, code == ErrorCode::none ? synced_answer(group, member) : refused_sync(code));
        start_session(context, group, member);
    }
}

void ClassicGroups::synced(ClassicGroup& group, const std::string& member_id) {
    group.pending_syncs.erase(member_id);
    if (group.pending_syncs.empty()) timers_.cancel({.what = Timer::What::sync_phase, .group_id = group.id(), .member_id = {}});
}

void ClassicGroups::sync_phase_over(Context& context, ClassicGroup& group) {
    if (group.state != ClassicState::completing_rebalance && group.state != ClassicState::stable) return;
    const auto late = group.pending_syncs;
    if (late.empty()) return;
    for (const auto& id : late) remove_member(context, group, id);
    log_info("group {}: {} members did not sync in generation {}", group.id(), late.size(), group.generation);
    prepare_rebalance(context, group);
}

// --- Heartbeat, LeaveGroup -----------------------------------------------------------------------------------------------

void ClassicGroups::heartbeat(Context& context, const protocol::HeartbeatRequest& request, Reply<protocol::HeartbeatResponse> reply) {
    const auto say = [&](ErrorCode code) { context.answer(std::move(reply), protocol::HeartbeatResponse{.error_code = code}); };
    if (request.group_id.empty()) return say(ErrorCode::invalid_group_id);
    auto* group = groups_.find_as<ClassicGroup>(request.group_id);
    if (group == nullptr) return say(ErrorCode::unknown_member_id);
    if (const auto error = group->check_member(request.member_id, request.group_instance_id); error != ErrorCode::none) return say(error);
    if (request.generation_id != group->generation) return say(ErrorCode::illegal_generation);
    if (group->is_empty()) return say(ErrorCode::unknown_member_id);
    touch(context, *group, request.member_id);
    say(group->state == ClassicState::preparing_rebalance ? ErrorCode::rebalance_in_progress : ErrorCode::none);
}

void ClassicGroups::leave(Context& context, const protocol::LeaveGroupRequest& request, Reply<LeaveGroupResponse> reply) {
    LeaveGroupResponse response;
    auto* group = groups_.find_as<ClassicGroup>(request.group_id);
    const auto members_before = group != nullptr ? group->members.size() : 0;
    const auto one = [&](const protocol::LeaveGroupRequest::MemberIdentity& member) {
        const auto code = group == nullptr ? ErrorCode::unknown_member_id : leave_one(context, *group, member);
        response.members.push_back({.member_id = member.member_id, .group_instance_id = member.group_instance_id, .error_code = code});
    };
    if (request.group_id.empty()) response.error_code = ErrorCode::invalid_group_id;
    else if (request.members.empty() && !request.member_id.empty()) one({.member_id = request.member_id});
    else for (const auto& member : request.members) one(member);
    if (group != nullptr && group->members.size() != members_before) after_removal(context, *group);
    else if (group != nullptr) maybe_complete_join(context, *group);   // it may have waited for a pending id that left
    context.answer(std::move(reply), std::move(response));
}

ErrorCode ClassicGroups::leave_one(Context& context, ClassicGroup& group, const protocol::LeaveGroupRequest::MemberIdentity& member) {
    auto id = member.member_id;
    if (id.empty() && member.group_instance_id) {
        const auto known = group.static_members.find(*member.group_instance_id);
        if (known == group.static_members.end()) return ErrorCode::unknown_member_id;
        id = known->second;
    } else if (group.pending_joins.erase(id) != 0) {
        timers_.cancel({.what = Timer::What::pending_join, .group_id = group.id(), .member_id = id});
        return ErrorCode::none;
    }
    if (const auto error = group.check_member(id, member.group_instance_id); error != ErrorCode::none) return error;
    remove_member(context, group, id);
    return ErrorCode::none;
}

void ClassicGroups::remove_member(Context& context, ClassicGroup& group, const std::string& member_id) {
    auto& member = *group.find(member_id);
    answer_and_forget(context, member.parked_join, refused_join(ErrorCode::unknown_member_id, member_id));
    answer_and_forget(context, member.parked_sync, refused_sync(ErrorCode::unknown_member_id));
    cancel_session(group, member_id);
    group.remove(member_id);
}

/// The others must share what the removed ones had; or the join phase has waited for them only.
void ClassicGroups::after_removal(Context& context, ClassicGroup& group) {
    switch (group.state) {
        case ClassicState::empty: return;
        case ClassicState::preparing_rebalance: return maybe_complete_join(context, group);
        case ClassicState::completing_rebalance:
        case ClassicState::stable: return prepare_rebalance(context, group);
    }
}

// --- sessions, life ------------------------------------------------------------------------------------------------------

void ClassicGroups::touch(Context& context, ClassicGroup& group, const std::string& member_id) {
    if (const auto* member = group.find(member_id)) start_session(context, group, *member);
}

void ClassicGroups::start_session(Context& context, const ClassicGroup& group, const ClassicMember& member) {
    timers_.set({.what = Timer::What::session, .group_id = group.id(), .member_id = member.id}, context.moment() + Moment{member.session_timeout_ms});
}

void ClassicGroups::cancel_session(const ClassicGroup& group, const std::string& member_id) {
    timers_.cancel({.what = Timer::What::session, .group_id = group.id(), .member_id = member_id});
}

void ClassicGroups::let_go(Context& context, ClassicGroup& group, ErrorCode reason) {
    for (auto& [id, member] : group.members) {
        answer_and_forget(context, member.parked_join, refused_join(reason, id));
        answer_and_forget(context, member.parked_sync, refused_sync(reason));
        cancel_session(group, id);
    }
    for (const auto& id : group.pending_joins) timers_.cancel({.what = Timer::What::pending_join, .group_id = group.id(), .member_id = id});
    timers_.cancel({.what = Timer::What::join_phase, .group_id = group.id(), .member_id = {}});
    timers_.cancel({.what = Timer::What::sync_phase, .group_id = group.id(), .member_id = {}});
}

void ClassicGroups::adopt(Context& context, ClassicGroup& group) {
    for (const auto& [id, member] : group.members) start_session(context, group, member);
    if (group.members.size() <= static_cast<std::size_t>(options_->size_max)) return;
    log_info("group {}: its {} members are more than group.max.size allows", group.id(), group.members.size());
    prepare_rebalance(context, group);
}

Result<> ClassicGroups::replay(const std::string& group_id, const protocol::GroupMetadataValue* value) {
    if (value != nullptr) groups_.put(ClassicGroup::from_record(group_id, *value));
    else if (groups_.find_as<ClassicGroup>(group_id) != nullptr) groups_.erase(group_id);
    return {};
}

void ClassicGroups::loaded(Context& context) {
    for (const auto& [id, group] : groups_) {
        if (auto* classic = dynamic_cast<ClassicGroup*>(group.get())) adopt(context, *classic);
    }
}

void ClassicGroups::unloaded(ErrorCode reason) {
    for (const auto& [group_id, group] : groups_) {
        auto* classic = dynamic_cast<ClassicGroup*>(group.get());
        if (classic == nullptr) continue;
        for (auto& [id, member] : classic->members) {
            if (member.parked_join) std::exchange(member.parked_join, {})(Failure{reason});
            if (member.parked_sync) std::exchange(member.parked_sync, {})(Failure{reason});
        }
    }
}

void ClassicGroups::tick(Context& context) {
    while (const auto timer = timers_.pop_due(context.moment())) {
        auto* group = groups_.find_as<ClassicGroup>(timer->group_id);
        if (group == nullptr) continue;
        switch (timer->what) {
            case Timer::What::session: {
                const auto* member = group->find(timer->member_id);
                // Who waits for an answer cannot send heartbeats; its session begins with the answer.
                if (member == nullptr || (!member->is_new && (member->parked_join || member->parked_sync))) break;
                log_info("group {}: member {} was silent for too long", group->id(), timer->member_id);
                remove_member(context, *group, timer->member_id);
                after_removal(context, *group);
                break;
            }
            case Timer::What::pending_join:
                if (group->pending_joins.erase(timer->member_id) != 0) maybe_complete_join(context, *group);
                break;
            case Timer::What::join_phase:
                if (group->state != ClassicState::preparing_rebalance) break;
                if (group->is_first_rebalance) delay_over(context, *group);
                else complete_join(context, *group);
                break;
            case Timer::What::sync_phase: sync_phase_over(context, *group); break;
        }
    }
}

}  // namespace tidemark::coordinator
