/// Everything of the groups in one partition of __consumer_offsets: who is a member where, and how far each has come.
#pragma once

#include <string>
#include <vector>

#include "coordinator/group/classic_groups.h"
#include "coordinator/group/consumer/consumer_groups.h"
#include "coordinator/group/group_table.h"
#include "coordinator/group/offset_operations.h"
#include "coordinator/group/offsets.h"
#include "coordinator/state_machine.h"
#include "protocol/messages/consumer_group_describe_response.h"
#include "protocol/messages/delete_groups_response.h"
#include "protocol/messages/describe_groups_response.h"
#include "protocol/messages/list_groups_request.h"
#include "protocol/messages/list_groups_response.h"

namespace tidemark::coordinator {

/// A group for the metrics.
struct GroupStats {
    std::string id;
    GroupType type = GroupType::classic;
    std::string state;
    std::size_t members = 0;
    struct Committed {
        std::string topic;
        std::int32_t partition = 0;
        std::int64_t offset = -1;
    };
    std::vector<Committed> offsets;
};

class GroupMachine final : public StateMachine {
public:
    explicit GroupMachine(GroupOptionsPtr);

    void set_options(GroupOptionsPtr options) { options_ = std::move(options); }

    // --- operations: one per API, errors are in the responses ------------------------------------------------------

    void join(Context&, const Client&, protocol::JoinGroupRequest&, std::int16_t version, Reply<protocol::JoinGroupResponse>);
    void sync(Context&, protocol::SyncGroupRequest&, std::int16_t version, Reply<protocol::SyncGroupResponse>);
    void heartbeat(Context&, const protocol::HeartbeatRequest&, Reply<protocol::HeartbeatResponse>);
    void leave(Context&, const protocol::LeaveGroupRequest&, Reply<protocol::LeaveGroupResponse>);
    void heartbeat(Context&, const Client&, const protocol::ConsumerGroupHeartbeatRequest&, std::int16_t version, Reply<protocol::ConsumerGroupHeartbeatResponse>);
    void describe_consumer_group(Context&, const std::string& group_id, Reply<protocol::ConsumerGroupDescribeResponse::DescribedGroup>) const;
    OffsetOperations& offsets() { return offset_operations_; }

    void list(Context&, const protocol::ListGroupsRequest&, Reply<std::vector<protocol::ListGroupsResponse::ListedGroup>>) const;
    void describe(Context&, const std::string& group_id, std::int16_t version, Reply<protocol::DescribeGroupsResponse::DescribedGroup>) const;
    void remove(Context&, const std::vector<std::string>& group_ids, Reply<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>>);
    std::vector<GroupStats> stats() const;

    /// For tests, which look at what replaying made.
    const GroupTable& groups() const { return groups_; }

    // --- StateMachine ----------------------------------------------------------------------------------------------

    Result<> replay(const ReplayedRecord&) override;
    Result<> replay(const ReplayedMarker&) override;
    void loaded(Context&) override;
    void unloaded(ErrorCode reason) override;
    void image_changed(Context&, const metadata::ImagePtr& before) override;
    std::optional<Moment> next_deadline() const override;
    void tick(Context&) override;

private:
    /// With members, since an empty group is whatever its next member wants it to be.
    bool is_consumer_group(const std::string& group_id) const;
    Result<> replay_offset(const protocol::OffsetCommitKey&, const protocol::OffsetCommitValue*, const ReplayedRecord&);

    GroupOptionsPtr options_;                    // its parts keep a reference to this pointer
    GroupTable groups_;
    Offsets offsets_;
    ClassicGroups classic_;
    ConsumerGroups consumer_;
    OffsetOperations offset_operations_;
    std::optional<Moment> next_expiry_;          // nothing before it is loaded
};

}  // namespace tidemark::coordinator
