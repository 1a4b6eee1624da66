/// What goes wrong below a coordinator, as its clients are told (group-coordinator 2, transaction-coordinator 2). Pure.
#pragma once

#include "base/result.h"
#include "protocol/error_code.h"

namespace tidemark::coordinator {

/// Of an append that failed.
protocol::ErrorCode coordinator_error(Errc);
/// Of a Reply without a response: most are told as they are.
protocol::ErrorCode coordinator_error(protocol::ErrorCode);

}  // namespace tidemark::coordinator
