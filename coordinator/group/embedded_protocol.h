/// The consumer's own protocol inside the classic group protocol: what members subscribe to and what their leader assigned,
/// as bytes that the group protocol itself does not look into. A version, int16, comes first.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "coordinator/group/consumer/partitions.h"
#include "protocol/messages/consumer_protocol_assignment.h"
#include "protocol/messages/consumer_protocol_subscription.h"

namespace tidemark::metadata {
class Image;
}

namespace tidemark::coordinator {

/// Versions that are not known yet are read as the newest known one, which they begin with. Errors: corrupt.
Result<protocol::ConsumerProtocolSubscription> parse_subscription(Bytes);
Result<protocol::ConsumerProtocolAssignment> parse_assignment(Bytes);
/// In the version of the member's subscription. Topics that do not exist are left out.
std::vector<std::byte> assignment_bytes(const Partitions&, const metadata::Image&, Bytes subscription);

}  // namespace tidemark::coordinator
