/// The operations of the classic protocol, and its timers (group-coordinator 4).
///
/// A join phase gathers JoinGroups, which stay parked, until everybody is there or its time is over; then the generation
/// rises and the joins are answered. The leader's SyncGroup brings the assignments, is written, and answers all syncs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "coordinator/deadlines.h"
#include "coordinator/group/classic_group.h"
#include "coordinator/group/group_table.h"
#include "coordinator/group/options.h"
#include "protocol/messages/heartbeat_request.h"
#include "protocol/messages/heartbeat_response.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/leave_group_response.h"
#include "protocol/messages/sync_group_request.h"

namespace tidemark::coordinator {

/// Precondition of all operations: the group is a ClassicGroup or there is none (GroupMachine sees to that).
/// Threads: its state machine's.
class ClassicGroups {
public:
    ClassicGroups(GroupTable& groups, const GroupOptionsPtr& options) : groups_(groups), options_(options) {}

    /// Versions differ in: member ids are required (≥ 4), a replaced static leader may skip the assignment (≥ 9).
    /// `replaced`: tombstones of an empty group of another kind whose place the new one takes.
    void join(Context&, const Client&, protocol::JoinGroupRequest&, std::int16_t version, std::vector<Record> replaced, Reply<protocol::JoinGroupResponse>);
    void sync(Context&, protocol::SyncGroupRequest&, std::int16_t version, Reply<protocol::SyncGroupResponse>);
    void heartbeat(Context&, const protocol::HeartbeatRequest&, Reply<protocol::HeartbeatResponse>);
    /// Answers by members in any version; below 3 the handler moves the one answer to the top.
    void leave(Context&, const protocol::LeaveGroupRequest&, Reply<protocol::LeaveGroupResponse>);

    /// A member has shown that it lives, by a commit.
    void touch(Context&, ClassicGroup&, const std::string& member_id);
    /// The group is another's from now on, or gone: no timers, and whoever is parked is answered with `reason`.
    void let_go(Context&, ClassicGroup&, ErrorCode reason);
    /// The group came here with members (loaded, or from another protocol): their sessions begin. Too many: it rebalances.
    void adopt(Context&, ClassicGroup&);
    /// A rebalance, unless one is going on.
    void rebalance(Context&, ClassicGroup&);

    Result<> replay(const std::string& group_id, const protocol::GroupMetadataValue*);
    void loaded(Context&);
    /// Parked answers get `reason`.
    void unloaded(ErrorCode reason);
    std::optional<Moment> next_deadline() const { return timers_.next(); }
    void tick(Context&);

private:
    struct Timer {
        enum class What : std::uint8_t { session, pending_join, join_phase, sync_phase } what = What::session;
        std::string group_id;
        std::string member_id;                          // of session and pending_join
        friend bool operator==(const Timer&, const Timer&) = default;
    };
    struct TimerHash {
        std::size_t operator()(const Timer&) const noexcept;
    };
    struct Joining;                                     // a JoinGroup on its way

    void join_unknown(Context&, ClassicGroup&, Joining&);
    void join_known(Context&, ClassicGroup&, Joining&);
    void join_as_replacement(Context&, ClassicGroup&, Joining&, const std::string& old_id);
    void add_member(Context&, ClassicGroup&, Joining&, std::string member_id);
    void park_join(Context&, ClassicGroup&, ClassicMember&, Joining&);
    bool has_room(const ClassicGroup&, const std::string& member_id) const;

    void prepare_rebalance(Context&, ClassicGroup&);
    void maybe_complete_join(Context&, ClassicGroup&);
    void complete_join(Context&, ClassicGroup&);
    void delay_over(Context&, ClassicGroup&);
    void sync_phase_over(Context&, ClassicGroup&);
    void answer_syncs(Context&, ClassicGroup&, ErrorCode);
    void synced(ClassicGroup&, const std::string& member_id);

    ErrorCode leave_one(Context&, ClassicGroup&, const protocol::LeaveGroupRequest::MemberIdentity&);
    void remove_member(Context&, ClassicGroup&, const std::string& member_id);
    void after_removal(Context&, ClassicGroup&);
    void start_session(Context&, const ClassicGroup&, const ClassicMember&);
    void cancel_session(const ClassicGroup&, const std::string& member_id);

    GroupTable& groups_;
    const GroupOptionsPtr& options_;                    // GroupMachine's, which replaces it
    Deadlines<Timer, TimerHash> timers_;
};

}  // namespace tidemark::coordinator
