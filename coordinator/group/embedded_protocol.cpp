#include "coordinator/group/embedded_protocol.h"

#include <algorithm>

#include "base/assert.h"
#include "metadata/image.h"
#include "protocol/reader.h"
#include "protocol/writer.h"

namespace tidemark::coordinator {

namespace {

/// The version to read or write with. Errors: corrupt.
template <class Message>
Result<std::int16_t> read_version(protocol::Reader& reader) {
    const auto version = reader.int16();
    TM_TRYV(reader.result());
    if (version < 0) return Error{Errc::corrupt, std::string{Message::message_name} + ": negative version"};
    return std::min(version, Message::versions.max);
}

template <class Message>
Result<Message> parse_versioned(Bytes bytes) {
    protocol::Reader reader{bytes};
    TM_TRY(const auto version, read_version<Message>(reader));
    Message message;
    message.read(reader, version);
    TM_TRYV(reader.result());
    return message;   // what follows belongs to a later version
}

}  // namespace

Result<protocol::ConsumerProtocolSubscription> parse_subscription(Bytes bytes) { return parse_versioned<protocol::ConsumerProtocolSubscription>(bytes); }

Result<protocol::ConsumerProtocolAssignment> parse_assignment(Bytes bytes) { return parse_versioned<protocol::ConsumerProtocolAssignment>(bytes); }

std::vector<std::byte> assignment_bytes(const Partitions& partitions, const metadata::Image& image, Bytes subscription) {
    protocol::ConsumerProtocolAssignment assignment;
    for (const auto& [id, numbers] : partitions) {
        if (const auto* topic = image.find(id)) assignment.assigned_partitions.push_back({.topic = topic->name, .partitions = numbers});
    }
    protocol::Reader reader{subscription};
    const auto read = read_version<protocol::ConsumerProtocolSubscription>(reader);
    const auto version = read ? *read : std::int16_t{0};
    protocol::Writer writer;
    writer.int16(version);
    assignment.write(writer, version);
    auto bytes = std::move(writer).finish_bytes();
    TM_ASSERT(bytes.has_value());
    return *std::move(bytes);
}

}  // namespace tidemark::coordinator
