// Group APIs over a socket: what the coordinator's own tests cannot show.
#include <gmock/gmock.h>

#include "protocol/messages/find_coordinator_request.h"
#include "protocol/messages/find_coordinator_response.h"
#include "protocol/messages/heartbeat_request.h"
#include "protocol/messages/heartbeat_response.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/join_group_response.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/leave_group_response.h"
#include "protocol/messages/list_groups_request.h"
#include "protocol/messages/list_groups_response.h"
#include "protocol/messages/offset_commit_request.h"
#include "protocol/messages/offset_commit_response.h"
#include "protocol/messages/offset_fetch_request.h"
#include "protocol/messages/offset_fetch_response.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace protocol;
using test::TestBroker;
using test::TestClient;

/// Asks until the coordinator is there and has loaded.
FindCoordinatorResponse::Coordinator find_coordinator(TestClient& client, const std::string& group) {
    for (;;) {
        const auto found = client.ask<FindCoordinatorResponse>(FindCoordinatorRequest{.coordinator_keys = {group}}).coordinators.at(0);
        if (found.error_code == ErrorCode::none) {
            while (client.ask<OffsetFetchResponse>(OffsetFetchRequest{.groups = {{.group_id = group}}}).groups.at(0).error_code == ErrorCode::coordinator_load_in_progress) {}
            return found;
        }
        EXPECT_EQ(found.error_code, ErrorCode::coordinator_not_available);
        EXPECT_EQ(found.node_id, -1);
        EXPECT_EQ(found.port, -1);
    }
}

JoinGroupRequest join_request(const std::string& group, std::int32_t rebalance_ms = 60'000) {
    JoinGroupRequest request{.group_id = group, .session_timeout_ms = 10'000, .rebalance_timeout_ms = rebalance_ms, .protocol_type = "consumer"};
    request.protocols.push_back({.name = "range"});
    return request;
}

TEST(Groups, TheTopicIsMadeWhenSomebodyLooksForItsCoordinator) {
    TestBroker broker{{.file = {{"offsets.topic.num.partitions", "3"}}}};
    auto client = broker.client();
    EXPECT_EQ(client.ask<HeartbeatResponse>(HeartbeatRequest{.group_id = "g", .member_id = "m"}).error_code, ErrorCode::not_coordinator);
    EXPECT_EQ(client.ask<JoinGroupResponse>(join_request("g"), 3).error_code, ErrorCode::not_coordinator);
    EXPECT_EQ(client.ask<ListGroupsResponse>(ListGroupsRequest{}).error_code, ErrorCode::none);
    const auto found = find_coordinator(client, "g");
    EXPECT_EQ(found.node_id, 1);
    EXPECT_EQ(found.host, "127.0.0.1");
    EXPECT_EQ(found.port, broker.port());
    EXPECT_EQ(client.ask<FindCoordinatorResponse>(FindCoordinatorRequest{.key = ""}, 3).error_code, ErrorCode::none);
    EXPECT_EQ(client.ask<FindCoordinatorResponse>(FindCoordinatorRequest{.key_type = 7, .coordinator_keys = {"g"}}).coordinators.at(0).error_code, ErrorCode::invalid_request);
    const auto& config = *broker.log("__consumer_offsets", 2).config();
    EXPECT_TRUE(config.compacts);
    EXPECT_EQ(config.segment_bytes, 104'857'600);
}

TEST(Groups, CommitsSurviveInEveryVersion) {
    TestBroker broker{{.file = {{"offsets.topic.num.partitions", "3"}}}};
    const auto id = broker.create_topic("data");
    auto client = broker.client();
    find_coordinator(client, "g");
    for (std::int16_t version = OffsetCommitRequest::versions.min; version <= OffsetCommitRequest::versions.max; ++version) {
        OffsetCommitRequest commit{.group_id = "g"};
        auto& topic = commit.topics.emplace_back();
        if (version < 10) topic.name = "data";
        else topic.topic_id = id;
        topic.partitions.push_back({.partition_index = 0, .committed_offset = version, .committed_metadata = "m"});
        const auto committed = client.ask<OffsetCommitResponse>(commit, version);
        ASSERT_EQ(committed.topics.at(0).partitions.at(0).error_code, ErrorCode::none) << "version " << version;
        for (std::int16_t fetch = OffsetFetchRequest::versions.min; fetch <= OffsetFetchRequest::versions.max; ++fetch) {
            OffsetFetchRequest request;
            if (fetch < 8) {
                request.group_id = "g";
                request.topics->push_back({.name = "data", .partition_indexes = {0}});
            } else {
                auto& group = request.groups.emplace_back();
                group.group_id = "g";
                auto& asked = group.topics->emplace_back();
                if (fetch < 10) asked.name = "data";
                else asked.topic_id = id;
                asked.partition_indexes = {0};
            }
            const auto fetched = client.ask<OffsetFetchResponse>(request, fetch);
            const auto offset = fetch < 8 ? fetched.topics.at(0).partitions.at(0).committed_offset : fetched.groups.at(0).topics.at(0).partitions.at(0).committed_offset;
            EXPECT_EQ(offset, version) << "fetched with version " << fetch;
        }
    }
}

TEST(Groups, AClientThatGoesWhileItWaitsIsLetGo) {
    TestBroker broker{{.file = {{"offsets.topic.num.partitions", "3"}, {"group.initial.rebalance.delay.ms", "60000"}}}};
    auto other = broker.client();
    find_coordinator(other, "g");
    {
        auto waiting = broker.client();
        waiting.send(join_request("g"), 3);
        // It is in the group once that is preparing to rebalance.
        while (other.ask<ListGroupsResponse>(ListGroupsRequest{.states_filter = {"PreparingRebalance"}}).groups.empty()) {}
        waiting.finish_sending();
        EXPECT_EQ(waiting.receive<JoinGroupResponse>(1, 3)->error_code, ErrorCode::coordinator_not_available);
        EXPECT_TRUE(waiting.is_closed_by_peer());
    }
    EXPECT_EQ(other.ask<ListGroupsResponse>(ListGroupsRequest{}).groups.at(0).group_state, "PreparingRebalance");
}

TEST(Groups, AStopDoesNotWaitForARebalance) {
    auto client = std::optional<TestClient>{};
    const auto began = std::chrono::steady_clock::now();
    {
        TestBroker broker{{.file = {{"offsets.topic.num.partitions", "3"}, {"group.initial.rebalance.delay.ms", "600000"}}}};
        auto other = broker.client();
        find_coordinator(other, "g");
        client.emplace(broker.client());
        client->send(join_request("g"), 3);
        while (other.ask<ListGroupsResponse>(ListGroupsRequest{.states_filter = {"PreparingRebalance"}}).groups.empty()) {}
    }
    EXPECT_EQ(client->receive<JoinGroupResponse>(1, 3)->error_code, ErrorCode::coordinator_not_available);
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::minutes{5});
}

TEST(Groups, OldVersionsHaveTheirErrorAtTheTop) {
    TestBroker broker{{.file = {{"offsets.topic.num.partitions", "3"}}}};
    auto client = broker.client();
    find_coordinator(client, "g");
    EXPECT_EQ(client.ask<LeaveGroupResponse>(LeaveGroupRequest{.group_id = "g", .member_id = "m"}, 2).error_code, ErrorCode::unknown_member_id);
    const auto refused = client.ask<JoinGroupResponse>([] {
        auto request = join_request("g");
        request.member_id = "m";
        return request;
    }(), 6);
    EXPECT_EQ(refused.error_code, ErrorCode::unknown_member_id);
    EXPECT_EQ(refused.protocol_name, "");
    EXPECT_EQ(refused.member_id, "m");
}

}  // namespace
}  // namespace tidemark::daemon
