// ListGroups (16) versions 0 to 5, DescribeGroups (15) 0 to 6, DeleteGroups (42) 0 to 3: group-coordinator 5.4, 7.
#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"
#include "protocol/messages/delete_groups_request.h"
#include "protocol/messages/delete_groups_response.h"
#include "protocol/messages/describe_groups_request.h"
#include "protocol/messages/describe_groups_response.h"
#include "protocol/messages/list_groups_request.h"
#include "protocol/messages/list_groups_response.h"

namespace tidemark::daemon::handlers {

using namespace protocol;

void list_groups(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<ListGroupsRequest>();
    if (!request) return;
    broker.coordinators().groups().list(*std::move(request), reply_to<ListGroupsResponse>(call, [](ErrorCode code) { return ListGroupsResponse{.error_code = code}; }));
}

void describe_groups(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<DescribeGroupsRequest>();
    if (!request) return;
    using Groups = std::vector<DescribeGroupsResponse::DescribedGroup>;
    const bool with_operations = request->include_authorized_operations;
    broker.coordinators().groups().describe(std::move(request->groups), call->version(), [call, with_operations](coordinator::Coded<Groups> answered) {
        asio::dispatch(call->executor(), [call, with_operations, answered = std::move(answered)]() mutable {
            for (auto& group : *answered) {
                call->count(group.error_code);
                if (with_operations && group.error_code == ErrorCode::none) group.authorized_operations = group_operations;
            }
            call->finish(DescribeGroupsResponse{.groups = *std::move(answered)});
        });
    });
}

void delete_groups(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<DeleteGroupsRequest>();
    if (!request) return;
    using Results = std::vector<DeleteGroupsResponse::DeletableGroupResult>;
    broker.coordinators().groups().delete_groups(std::move(request->groups_names), [call](coordinator::Coded<Results> answered) {
        asio::dispatch(call->executor(), [call, answered = std::move(answered)]() mutable {
            for (const auto& result : *answered) call->count(result.error_code);
            call->finish(DeleteGroupsResponse{.results = *std::move(answered)});
        });
    });
}

}  // namespace tidemark::daemon::handlers
