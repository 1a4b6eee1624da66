/// What members of consumer groups ask for, and what happens to them in time (KIP-848; group-coordinator 6).
///
/// Each operation checks, decides on a draft of the group, writes the draft's records, keeps the draft, sets timers and
/// returns the answer, which the caller sends when the records are durable. On a refusal the group is as it was.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/deadlines.h"
#include "coordinator/group/consumer/consumer_group.h"
#include "coordinator/group/consumer/refusal.h"
#include "coordinator/group/group_table.h"
#include "coordinator/group/options.h"

namespace tidemark::protocol {
struct ConsumerGroupHeartbeatRequest;
struct ConsumerGroupHeartbeatResponse;
struct HeartbeatRequest;
struct HeartbeatResponse;
struct JoinGroupRequest;
struct JoinGroupResponse;
struct LeaveGroupRequest;
struct LeaveGroupResponse;
struct SyncGroupRequest;
struct SyncGroupResponse;
namespace consumer_group_describe_response {
struct DescribedGroup;
}
}  // namespace tidemark::protocol

namespace tidemark::coordinator {

class ClassicGroups;
class GroupDraft;

/// Threads: its state machine's.
class ConsumerGroups {
public:
    /// All outlive it; the options are GroupMachine's, which replaces them.
    ConsumerGroups(GroupTable& groups, ClassicGroups& classic, const GroupOptionsPtr& options) : groups_(groups), classic_(classic), options_(options) {}

    /// Joining, staying and leaving. Makes a group where there is none, and a consumer group of a classic one.
    void heartbeat(Context&, const Client&, const protocol::ConsumerGroupHeartbeatRequest&, std::int16_t version, Reply<protocol::ConsumerGroupHeartbeatResponse>);
    /// With an error when there is no consumer group of that name.
    protocol::consumer_group_describe_response::DescribedGroup describe(const Context&, const std::string& group_id) const;

    // Members that still speak the classic protocol (group-coordinator 6.7). Precondition: there is a consumer group of that
    // name, for a join one with members. It may have become a classic one afterwards.
    void join(Context&, const Client&, const protocol::JoinGroupRequest&, std::int16_t version, Reply<protocol::JoinGroupResponse>);
    void sync(Context&, const protocol::SyncGroupRequest&, Reply<protocol::SyncGroupResponse>);
    void heartbeat(Context&, const protocol::HeartbeatRequest&, Reply<protocol::HeartbeatResponse>);
    /// Request and answer in the form of version 3.
    void leave(Context&, const protocol::LeaveGroupRequest&, Reply<protocol::LeaveGroupResponse>);

    /// Of a type that is_consumer_group_record() knows. Errors: group_records.h.
    Result<> replay(std::int16_t type, const ReplayedRecord&);
    /// Starts the timers of all groups.
    void loaded(Context&);
    /// The group is gone: no timers.
    void let_go(const ConsumerGroup&);
    std::optional<Moment> next_deadline() const { return deadlines_.next(); }
    void tick(Context&);

private:
    enum class Timer : std::uint8_t {
        session,     ///< silent for too long
        rebalance,   ///< does not give up what it has to
        join,        ///< a classic member that was told to rejoin
        sync,        ///< a classic member that joined
        regex,       ///< of the group, member "": match its expressions
    };
    struct TimerKey {
        std::string group, member;
        Timer timer = Timer::session;
        friend bool operator==(const TimerKey&, const TimerKey&) = default;
    };
    struct TimerHash {
        std::size_t operator()(const TimerKey& key) const {
            return (std::hash<std::string>{}(key.group) * 31 + std::hash<std::string>{}(key.member)) * 31 + static_cast<std::size_t>(key.timer);
        }
    };
    struct Update {
        bool subscription_changed = false;
        bool resolve_regexes = false;
    };
    /// Of what a member holds.
    struct Change {
        bool any = false;
        bool assigned = false;   ///< other partitions, not only another epoch or state
    };

    ConsumerGroup& group_of(const std::string& id) const;
    Refusable<protocol::ConsumerGroupHeartbeatResponse> start(Context&, const Client&, const protocol::ConsumerGroupHeartbeatRequest&, std::int16_t version);
    /// `first`: records that come before in the same batch, when the group has just been made. Refused: the group is as it was.
    Refusable<protocol::ConsumerGroupHeartbeatResponse> stay(Context&, ConsumerGroup&, std::vector<Record> first, const Client&, const protocol::ConsumerGroupHeartbeatRequest&);
    Refusable<protocol::ConsumerGroupHeartbeatResponse> leave(Context&, ConsumerGroup&, const protocol::ConsumerGroupHeartbeatRequest&);
    Refusable<protocol::JoinGroupResponse> classic_join(Context&, ConsumerGroup&, const Client&, const protocol::JoinGroupRequest&, std::int16_t version);
    Refusable<protocol::SyncGroupResponse> classic_sync(Context&, ConsumerGroup&, const protocol::SyncGroupRequest&);
    ErrorCode classic_heartbeat(Context&, ConsumerGroup&, const protocol::HeartbeatRequest&);
    Refusable<protocol::LeaveGroupResponse> classic_leave(Context&, ConsumerGroup&, const protocol::LeaveGroupRequest&);

    /// Takes the members out, or the whole group back to the classic protocol when only classic members stay.
    Refusable<> remove(Context&, ConsumerGroup&, const std::vector<std::string>& member_ids);
    Refusable<> resolve_regexes(Context&, ConsumerGroup&);
    static Refusable<> write(Context&, GroupDraft&);
    Refusable<> downgrade(Context&, ConsumerGroup&, GroupDraft&, const std::vector<std::string>& leaving, bool rebalance);

    /// New facts of a member, and what they mean to the group's epoch.
    Refusable<Update> update_member(Context&, GroupDraft&, const std::string& id, MemberFacts, bool assignor_counts);
    /// When they have been written.
    void after_update(Context&, ConsumerGroup&, const Update&);
    void assign_if_due(Context&, GroupDraft&) const;
    Refusable<Change> reconcile_member(Context&, GroupDraft&, const std::string& id, bool subscription_changed, const std::optional<Partitions>& owned) const;
    void set_member_timers(Context&, const ConsumerGroup&, const ConsumerMember&, const Change&);

    static TimerKey key(const ConsumerGroup& group, const std::string& member, Timer timer) { return {group.id(), member, timer}; }
    static const char* reason(Timer);
    void start_timers(Context&, ConsumerGroup&);
    void restart_session(Context&, const ConsumerGroup&, const ConsumerMember&);
    void cancel_timers(const std::string& group, const std::string& member);

    GroupTable& groups_;
    ClassicGroups& classic_;
    const GroupOptionsPtr& options_;
    Deadlines<TimerKey, TimerHash> deadlines_;
};

}  // namespace tidemark::coordinator
