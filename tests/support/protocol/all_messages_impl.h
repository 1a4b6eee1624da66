/// For the generated table behind all_messages.h. parse_into() instead of parse(), whose Result per message triples the
/// time to compile.
#pragma once

#include "protocol/reader.h"
#include "protocol/writer.h"
#include "tests/support/protocol/all_messages.h"

namespace tidemark::protocol {

template <class Message>
Result<RoundTrip> round_trip(MutableBytes bytes, std::int16_t version) {
    auto reader = Reader::of_frame(bytes);
    Message message;
    TM_TRYV(parse_into(message, reader, version));
    RoundTrip result{.consumed = reader.position(), .written = encode(message, version), .same_when_read_again = false};
    if (result.written) {
        auto again_reader = Reader::of_frame(*result.written);
        Message again;
        result.same_when_read_again = parse_into(again, again_reader, version) && again == message && again_reader.remaining() == 0;
    }
    return result;
}

template <class Message>
Result<> read_only(MutableBytes bytes, std::int16_t version) {
    auto reader = Reader::of_frame(bytes);
    Message message;
    return parse_into(message, reader, version);
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
