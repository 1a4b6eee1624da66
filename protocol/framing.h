/// Frames and headers: an int32 size, then a header, then a message.
///
/// Serving: read the size (frame_size()) and so many bytes into one buffer, then
///   auto reader = Reader::of_frame(frame);
///   TM_TRY(const auto header, read_request_header(reader));      // which handler, which version
///   TM_TRY(const auto request, parse<FetchRequest>(reader, header.request_api_version));
///   TM_TRY(auto answer, response_frame(header.correlation_id, response, header.request_api_version));
///
/// Asking: request_frame(), and read_response_header() before parse<FetchResponse>().
#pragma once

#include "protocol/api.h"
#include "protocol/messages/request_header.h"
#include "protocol/reader.h"
#include "protocol/writer.h"

namespace tidemark::protocol {

/// Bytes of the size before each frame.
inline constexpr std::size_t frame_prefix_bytes = 4;

/// The size of a frame from its first four bytes. Errors: corrupt if negative, too_large beyond `frame_bytes_max`
/// (socket.request.max.bytes); either ends the connection.
Result<std::size_t> frame_size(std::span<const std::byte, frame_prefix_bytes> prefix, std::size_t frame_bytes_max);

/// 1, or 2 (with a tagged section) for flexible versions.
std::int16_t request_header_version(const Api&, std::int16_t version);
/// 0, or 1 (with a tagged section) for flexible versions, except ApiVersions, whose response always has 0: its client
/// does not know yet what the broker understands (KIP-511).
std::int16_t response_header_version(const Api&, std::int16_t version);

/// The header of a request. Errors end the connection: corrupt, or unsupported for a key that no API has. Whether the
/// API is served here in that version is the caller's question: `find_api(key)->versions`, and an ApiVersions request in an
/// unknown version gets an answer in version 0.
Result<RequestHeader> read_request_header(Reader& frame);

/// The correlation id of a response to a request with that key and version.
Result<std::int32_t> read_response_header(Reader& frame, ApiKey, std::int16_t version);

// What the templates below stand on.
void write_frame_start(Writer&, const RequestHeader&);
void write_frame_start(Writer&, std::int32_t correlation_id, ApiKey, std::int16_t version);
Result<Encoded> finish_frame(Writer&&);

/// Size, header and message, ready to send.
template <class Response>
Result<Encoded> response_frame(std::int32_t correlation_id, const Response& response, std::int16_t version) {
    Writer writer{128};
    write_frame_start(writer, correlation_id, Response::api_key, version);
    response.write(writer, version);
    return finish_frame(std::move(writer));
}

/// The header's key becomes the request's.
template <class Request>
Result<Encoded> request_frame(RequestHeader header, const Request& request) {
    header.request_api_key = static_cast<std::int16_t>(Request::api_key);
    Writer writer{128};
    write_frame_start(writer, header);
    request.write(writer, header.request_api_version);
    return finish_frame(std::move(writer));
}

}  // namespace tidemark::protocol
