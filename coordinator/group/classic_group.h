/// A group of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (group-coordinator 4).
///
///   Empty ──► PreparingRebalance ──► CompletingRebalance ──► Stable
///     ▲            │    ▲                    │                 │
///     └────────────┘    └────────────────────┴─────────────────┘
///
/// Unlike everything else its state is not what its records say: it lives in memory, and a GroupMetadata record is its
/// snapshot, written at few points (2.5). A group without protocol type never had members: a simple group, which exists
/// for its offsets only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/group/group.h"
#include "protocol/messages/group_metadata_value.h"
#include "protocol/messages/join_group_response.h"
#include "protocol/messages/sync_group_response.h"

namespace tidemark::coordinator {

enum class ClassicState : std::uint8_t { empty, preparing_rebalance, completing_rebalance, stable };
std::string_view to_string(ClassicState);

struct ClassicMember {
    std::string id;
    std::optional<std::string> instance_id = {};
    Client client = {};
    std::int32_t rebalance_timeout_ms = 0, session_timeout_ms = 0;
    std::vector<ClassicProtocol> protocols = {};             ///< in its order of preference
    std::vector<std::byte> assignment = {};
    bool is_new = true;                                 ///< its first join phase is not over
    std::uint64_t order = 0;                            ///< older members have smaller ones

    Reply<protocol::JoinGroupResponse> parked_join = {};     ///< set while it waits
    Reply<protocol::SyncGroupResponse> parked_sync = {};

    const std::vector<std::byte>* metadata_of(std::string_view protocol) const;
    bool supports(std::string_view protocol) const { return metadata_of(protocol) != nullptr; }
};

/// State and the questions to it; the operations are ClassicGroups'.
class ClassicGroup final : public Group {
public:
    /// An empty one of generation 0.
    ClassicGroup(std::string id, Timestamp now) : Group(std::move(id)), state_timestamp(now) {}

    GroupType type() const override { return GroupType::classic; }
    std::string_view state_name() const override { return to_string(state); }
    std::string protocol_type() const override { return type_name.value_or(""); }
    bool is_empty() const override { return state == ClassicState::empty; }
    std::size_t member_count() const override { return members.size(); }
    bool is_simple() const { return is_empty() && !type_name; }
    ErrorCode check_commit(const CommitCheck&) const override;
    ErrorCode check_fetch(const MemberClaim&) const override { return ErrorCode::none; }
    ErrorCode check_offset_delete() const override;
    bool is_subscribed(std::string_view topic) const override;
    OffsetExpiry offset_expiry() const override;
    void add_tombstones(std::vector<Record>& to) const override;

    // --- members -------------------------------------------------------------------------------------------------------

    ClassicMember* find(const std::string& member_id);
    const ClassicMember* find(const std::string& member_id) const { return const_cast<ClassicGroup*>(this)->find(member_id); }
    bool is_leader(const std::string& member_id) const { return leader == member_id; }
    /// UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID or none (4.2.6).
    ErrorCode check_member(const std::string& member_id, const std::optional<std::string>& instance_id) const;
    ClassicMember& add(ClassicMember);
    /// Also from pending sets and static members; another leader is chosen. Answers nobody.
    void remove(const std::string& member_id);
    /// The member of that instance gets a new id, and with it what the old one was.
    ClassicMember& rename_static(const std::string& old_id, const std::string& new_id);

    std::size_t waiting_joins() const;
    bool all_have_joined() const { return waiting_joins() == members.size() && pending_joins.empty(); }
    /// Of its members the largest.
    std::int32_t rebalance_timeout_ms() const;
    /// The leader is among those who joined, or somebody who did takes its place. False: nobody did.
    bool elect_joined_leader();

    // --- protocols -----------------------------------------------------------------------------------------------------

    /// It can take in a member with these, or keep one that now has these (4.2.4).
    bool accepts(const std::string& type, const std::vector<ClassicProtocol>&) const;
    /// Most votes among those that all support; on equal votes the leader's first (4.4). Precondition: members.
    std::string selected_protocol() const;
    /// As consumer clients wrote them; nothing when type or bytes are not theirs.
    std::optional<std::set<std::string, std::less<>>> subscribed_topics() const;

    // --- states --------------------------------------------------------------------------------------------------------

    void become(ClassicState next, Timestamp now);
    /// The snapshot of now.
    Record metadata_record() const;
    /// From a snapshot; nobody is parked.
    static std::unique_ptr<ClassicGroup> from_record(std::string id, const protocol::GroupMetadataValue&);

    ClassicState state = ClassicState::empty;
    std::optional<Timestamp> state_timestamp;           ///< nothing: loaded from a record that does not say
    std::int32_t generation = 0;
    std::optional<std::string> type_name, protocol, leader;
    std::map<std::string, ClassicMember> members;
    std::unordered_map<std::string, std::string> static_members;   ///< instance id → member id
    std::set<std::string> pending_joins;                ///< ids that were given out and not used yet
    std::set<std::string> pending_syncs;
    bool is_first_rebalance = false;                    ///< PreparingRebalance was entered from Empty
    bool member_came = false;                           ///< since the delay of the first rebalance began
    std::int32_t delay_ms = 0, delay_left_ms = 0;       ///< of the first rebalance: the current one, what may follow

private:
    std::uint64_t next_order_ = 0;
};

}  // namespace tidemark::coordinator
