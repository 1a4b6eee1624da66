/// The group coordinator of this node: one GroupMachine per partition of __consumer_offsets, and requests brought to the
/// right one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/published.h"
#include "coordinator/group/group_machine.h"
#include "coordinator/runtime.h"
#include "protocol/messages/consumer_group_describe_response.h"
#include "protocol/messages/delete_groups_response.h"
#include "protocol/messages/describe_groups_response.h"
#include "protocol/messages/list_groups_response.h"

namespace tidemark::coordinator {

/// Every request is answered once, from any thread, with a response or with why there is none (not_coordinator,
/// coordinator_load_in_progress, coordinator_not_available, request_timed_out, kafka_storage_error): see coordinator_error().
/// Requests of one group begin in the order in which they were given. Threads: all members from any thread, but for
/// image_changed(), which is called by one at a time.
class GroupCoordinator {
public:
    GroupCoordinator(RuntimeOptions, RuntimeParts, GroupOptions);

    /// Opens the partitions once there are any; the options may be others than before.
    void image_changed(const metadata::ImagePtr& after, const GroupOptions&);
    void tick() { runtime_.tick(); }
    /// See RuntimeCore::stop().
    void stop() { runtime_.stop(); }

    void join(Client, protocol::JoinGroupRequest, std::int16_t version, Reply<protocol::JoinGroupResponse>);
    void sync(protocol::SyncGroupRequest, std::int16_t version, Reply<protocol::SyncGroupResponse>);
    void heartbeat(protocol::HeartbeatRequest, Reply<protocol::HeartbeatResponse>);
    void leave(protocol::LeaveGroupRequest, Reply<protocol::LeaveGroupResponse>);
    void heartbeat(Client, protocol::ConsumerGroupHeartbeatRequest, std::int16_t version, Reply<protocol::ConsumerGroupHeartbeatResponse>);

    void commit(protocol::OffsetCommitRequest, std::int16_t version, Reply<protocol::OffsetCommitResponse>);
    /// The transaction coordinator has agreed already; `verification` as JournalAppend says.
    void commit(protocol::TxnOffsetCommitRequest, std::int16_t version, std::optional<storage::VerificationId> verification, Reply<protocol::TxnOffsetCommitResponse>);
    /// One answer per group, in order; a group whose coordinator could not answer carries its error.
    void fetch(std::vector<protocol::OffsetFetchRequest::OffsetFetchRequestGroup>, std::int16_t version, bool require_stable,
               Reply<std::vector<protocol::OffsetFetchResponse::OffsetFetchResponseGroup>>);
    void delete_offsets(protocol::OffsetDeleteRequest, Reply<protocol::OffsetDeleteResponse>);

    /// Of all partitions; those that failed to load are left out, one that is loading fails the whole.
    void list(protocol::ListGroupsRequest, Reply<protocol::ListGroupsResponse>);
    void describe(std::vector<std::string> group_ids, std::int16_t version, Reply<std::vector<protocol::DescribeGroupsResponse::DescribedGroup>>);
    void describe_consumer_groups(std::vector<std::string> group_ids, Reply<std::vector<protocol::ConsumerGroupDescribeResponse::DescribedGroup>>);
    void delete_groups(std::vector<std::string> group_ids, Reply<std::vector<protocol::DeleteGroupsResponse::DeletableGroupResult>>);

    /// Ends a transaction in one partition of the topic; the error is the one of the append.
    struct MarkerWritten {
        ErrorCode error = ErrorCode::none;
    };
    void write_marker(std::int32_t partition, Marker, Reply<MarkerWritten>);

    /// For the metrics; partitions that cannot answer are left out.
    void stats(Reply<std::vector<GroupStats>>);

private:
    Runtime<GroupMachine> runtime_;
    Published<GroupOptions> options_;
};

}  // namespace tidemark::coordinator
