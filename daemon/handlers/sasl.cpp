// SaslHandshake (17) and SaslAuthenticate (36) on a listener that needs no authentication: wire-behaviour 3, D25.
#include "protocol/messages/sasl_authenticate_request.h"
#include "protocol/messages/sasl_authenticate_response.h"
#include "protocol/messages/sasl_handshake_request.h"
#include "protocol/messages/sasl_handshake_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::SaslHandshakeResponse sasl_handshake(Broker&, Call& call, protocol::SaslHandshakeRequest&) {
    call.count(ErrorCode::illegal_sasl_state);
    return {.error_code = ErrorCode::illegal_sasl_state};
}

protocol::SaslAuthenticateResponse sasl_authenticate(Broker&, Call& call, protocol::SaslAuthenticateRequest&) {
    call.count(ErrorCode::illegal_sasl_state);
    return {.error_code = ErrorCode::illegal_sasl_state, .error_message = "SaslAuthenticate request received after successful authentication"};
}

}  // namespace tidemark::daemon::handlers
