// ConsumerGroupDescribe (69), versions 0 and 1: group-coordinator 6.9 (KIP-848).
#include "protocol/messages/consumer_group_describe_request.h"
#include "protocol/messages/consumer_group_describe_response.h"

#include "daemon/coordinators.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/handlers/replies.h"

namespace tidemark::daemon::handlers {

using namespace protocol;

void consumer_group_describe(Broker& broker, const std::shared_ptr<Call>& call) {
    auto request = call->parse<ConsumerGroupDescribeRequest>();
    if (!request) return;
    using Groups = std::vector<ConsumerGroupDescribeResponse::DescribedGroup>;
    const bool with_operations = request->include_authorized_operations;
    broker.coordinators().groups().describe_consumer_groups(std::move(request->group_ids), [call, with_operations](coordinator::Coded<Groups> answered) {
        asio::dispatch(call->executor(), [call, with_operations, answered = std::move(answered)]() mutable {
            ConsumerGroupDescribeResponse response;
            response.groups = *std::move(answered);
            for (auto& group : response.groups) {
                call->count(group.error_code);
                if (with_operations && group.error_code == ErrorCode::none) group.authorized_operations = group_operations;
            }
            call->finish(response);
        });
    });
}

}  // namespace tidemark::daemon::handlers
