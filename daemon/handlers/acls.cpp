// DescribeAcls (29), CreateAcls (30), DeleteAcls (31), versions 1 to 3: wire-behaviour 4, D25. There is no authorizer, and
// Kafka without one says so.
#include "protocol/messages/create_acls_request.h"
#include "protocol/messages/create_acls_response.h"
#include "protocol/messages/delete_acls_request.h"
#include "protocol/messages/delete_acls_response.h"
#include "protocol/messages/describe_acls_request.h"
#include "protocol/messages/describe_acls_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

constexpr const char* no_authorizer = "No Authorizer is configured on the broker";

}  // namespace

protocol::DescribeAclsResponse describe_acls(Broker&, Call& call, protocol::DescribeAclsRequest&) {
    call.count(ErrorCode::security_disabled);
    return {.error_code = ErrorCode::security_disabled, .error_message = no_authorizer};
}

protocol::CreateAclsResponse create_acls(Broker&, Call& call, protocol::CreateAclsRequest& request) {
    protocol::CreateAclsResponse response;
    for (std::size_t i = 0; i < request.creations.size(); ++i) {
        response.results.push_back({.error_code = ErrorCode::security_disabled, .error_message = no_authorizer});
        call.count(ErrorCode::security_disabled);
    }
    return response;
}

protocol::DeleteAclsResponse delete_acls(Broker&, Call& call, protocol::DeleteAclsRequest& request) {
    protocol::DeleteAclsResponse response;
    for (std::size_t i = 0; i < request.filters.size(); ++i) {
        response.filter_results.push_back({.error_code = ErrorCode::security_disabled, .error_message = no_authorizer});
        call.count(ErrorCode::security_disabled);
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
