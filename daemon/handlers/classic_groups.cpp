// JoinGroup (11) versions 0 to 9, SyncGroup (14) 0 to 5, Heartbeat (12) 0 to 4, LeaveGroup (13) 0 to 5: group-coordinator 4.
// The first two wait for others; a client that goes away meanwhile is let go, its member stays until its session is over.
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"
#include "protocol/messages/heartbeat_request.h"
#include "protocol/messages/heartbeat_response.h"
#include "protocol/messages/join_group_request.h"
#include "protocol/messages/join_group_response.h"
#include "protocol/messages/leave_group_request.h"
#include "protocol/messages/leave_group_response.h"
#include "protocol/messages/sync_group_request.h"
#include "protocol/messages/sync_group_response.h"

namespace tidemark::daemon::handlers {

using namespace protocol;

namespace {

/// Before version 7 a protocol name cannot be null.
JoinGroupResponse with_name(JoinGroupResponse response, std::int16_t version) {
    if (version < 7 && !response.protocol_name) response.protocol_name = "";
    return response;
}

}  // namespace

void join_group(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<JoinGroupRequest>();
    if (!request) return;
    call->release_frame();
    const auto version = call->version();
    const auto refusal = [version, member_id = request->member_id](ErrorCode code) {
        return with_name({.error_code = code, .protocol_name = std::nullopt, .member_id = member_id}, version);
    };
    call->set_hurry([call, refusal] { call->finish(refusal(ErrorCode::coordinator_not_available)); });
    const coordinator::Client client{.id = call->client_id(), .host = "/" + call->peer().host};
    broker.coordinators().groups().join(client, *std::move(request), version, [call, refusal, version](coordinator::Coded<JoinGroupResponse> answered) {
        asio::dispatch(call->executor(), [call, refusal, version, answered = std::move(answered)]() mutable {
            auto response = answered ? with_name(*std::move(answered), version) : refusal(coordinator::coordinator_error(answered.error().code));
            call->count(response.error_code);
            call->finish(response);
        });
    });
}

void sync_group(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<SyncGroupRequest>();
    if (!request) return;
    call->release_frame();
    const auto refusal = [](ErrorCode code) { return SyncGroupResponse{.error_code = code}; };
    call->set_hurry([call, refusal] { call->finish(refusal(ErrorCode::coordinator_not_available)); });
    broker.coordinators().groups().sync(*std::move(request), call->version(), reply_to<SyncGroupResponse>(call, refusal));
}

void heartbeat(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<HeartbeatRequest>();
    if (!request) return;
    broker.coordinators().groups().heartbeat(*std::move(request), reply_to<HeartbeatResponse>(call, [](ErrorCode code) { return HeartbeatResponse{.error_code = code}; }));
}

void leave_group(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<LeaveGroupRequest>();
    if (!request) return;
    const bool one_at_top = call->version() < 3;
    broker.coordinators().groups().leave(*std::move(request), [call, one_at_top](coordinator::Coded<LeaveGroupResponse> answered) {
        asio::dispatch(call->executor(), [call, one_at_top, answered = std::move(answered)]() mutable {
            auto response = answered ? *std::move(answered) : LeaveGroupResponse{.error_code = coordinator::coordinator_error(answered.error().code)};
            if (one_at_top && !response.members.empty()) response.error_code = std::exchange(response.members, {}).front().error_code;
            call->count(response.error_code);
            call->finish(response);
        });
    });
}

}  // namespace tidemark::daemon::handlers
