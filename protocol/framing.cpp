#include "protocol/framing.h"

#include <limits>

#include "base/assert.h"
#include "protocol/messages/response_header.h"

namespace tidemark::protocol {

Result<std::size_t> frame_size(std::span<const std::byte, frame_prefix_bytes> prefix, std::size_t frame_bytes_max) {
    const auto size = load_be<std::int32_t>(prefix.data());
    if (size < 0) return Error{Errc::corrupt, "frame of " + std::to_string(size) + " bytes"};
    if (static_cast<std::size_t>(size) > frame_bytes_max) return Error{Errc::too_large, "frame of " + std::to_string(size) + " bytes"};
    return static_cast<std::size_t>(size);
}

std::int16_t request_header_version(const Api& api, std::int16_t version) { return api.is_flexible(version) ? 2 : 1; }

std::int16_t response_header_version(const Api& api, std::int16_t version) {
    return api.key != ApiKey::api_versions && api.is_flexible(version) ? 1 : 0;
}

Result<RequestHeader> read_request_header(Reader& frame) {
    // The key and version, which decide on the header's own version, are its first fields.
    Reader ahead{frame.rest()};
    const auto key = ahead.int16();
    const auto version = ahead.int16();
    TM_TRYV(ahead.result());
    const auto* api = find_api(key);
    if (!api) return Error{Errc::unsupported, "no API has key " + std::to_string(key) + " (version " + std::to_string(version) + ")"};
    return parse<RequestHeader>(frame, request_header_version(*api, version));
}

Result<std::int32_t> read_response_header(Reader& frame, ApiKey key, std::int16_t version) {
    const auto* api = find_api(key);
    TM_ASSERT(api);
    TM_TRY(const auto header, parse<ResponseHeader>(frame, response_header_version(*api, version)));
    return header.correlation_id;
}

void write_frame_start(Writer& writer, const RequestHeader& header) {
    const auto* api = find_api(header.request_api_key);
    TM_ASSERT(api);
    writer.int32(0);  // finish_frame() puts the size here
    header.write(writer, request_header_version(*api, header.request_api_version));
}

void write_frame_start(Writer& writer, std::int32_t correlation_id, ApiKey key, std::int16_t version) {
    const auto* api = find_api(key);
    TM_ASSERT(api);
    writer.int32(0);
    ResponseHeader{.correlation_id = correlation_id}.write(writer, response_header_version(*api, version));
}

Result<Encoded> finish_frame(Writer&& writer) {
    TM_TRY(auto encoded, std::move(writer).finish());
    const auto size = encoded.size - frame_prefix_bytes;
    if (size > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
        return Error{Errc::too_large, "frame of " + std::to_string(size) + " bytes"};
    }
    store_be(encoded.bytes.data(), static_cast<std::int32_t>(size));
    return encoded;
}

}  // namespace tidemark::protocol
