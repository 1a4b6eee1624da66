// DescribeClientQuotas (48), versions 0 to 1, and DescribeUserScramCredentials (50), version 0: wire-behaviour 13, D25.
// Neither exists here, which is what is answered. Their altering counterparts are not served.
#include "protocol/messages/describe_client_quotas_request.h"
#include "protocol/messages/describe_client_quotas_response.h"
#include "protocol/messages/describe_user_scram_credentials_request.h"
#include "protocol/messages/describe_user_scram_credentials_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::DescribeClientQuotasResponse describe_client_quotas(Broker&, Call&, protocol::DescribeClientQuotasRequest&) { return {.error_message = std::nullopt}; }

protocol::DescribeUserScramCredentialsResponse describe_user_scram_credentials(Broker&, Call& call, protocol::DescribeUserScramCredentialsRequest& request) {
    protocol::DescribeUserScramCredentialsResponse response{.error_message = std::nullopt};
    if (!request.users) return response;
    for (const auto& user : *request.users) {
        response.results.push_back({.user = user.name, .error_code = ErrorCode::resource_not_found, .error_message = "Attempt to describe a user credential that does not exist: " + user.name});
        call.count(ErrorCode::resource_not_found);
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
