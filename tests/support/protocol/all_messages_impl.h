/// For the generated table behind all_messages.h.
#pragma once

#include "protocol/reader.h"
#include "protocol/writer.h"
#include "tests/support/protocol/all_messages.h"

namespace tidemark::protocol {

template <class Message>
Result<RoundTrip> round_trip(MutableBytes bytes, std::int16_t version) {
    auto reader = Reader::of_frame(bytes);
    TM_TRY(const auto message, parse<Message>(reader, version));
    RoundTrip result{.consumed = reader.position(), .written = encode(message, version), .same_when_read_again = false};
    if (result.written) {
        auto again_reader = Reader::of_frame(*result.written);
        const auto again = parse<Message>(again_reader, version);
        result.same_when_read_again = again && *again == message && again_reader.remaining() == 0;
    }
    return result;
}

template <class Message>
Result<> read_only(MutableBytes bytes, std::int16_t version) {
    auto reader = Reader::of_frame(bytes);
    const auto message = parse<Message>(reader, version);
    if (!message) return message.error();
    return {};
}

template <class Message>
Result<std::vector<std::byte>> write_default(std::int16_t version) {
    return encode(Message{}, version);
}

template <class Message>
constexpr AnyMessage any_message() {
    return {Message::message_name, Message::versions,    Message::flexible_from,
            &round_trip<Message>,  &read_only<Message>, &write_default<Message>};
}

extern const AnyMessage all_messages_table[];
extern const std::size_t all_messages_table_size;

}  // namespace tidemark::protocol
