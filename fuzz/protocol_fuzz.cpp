/// Every message of the protocol, request headers and metadata records.
///
/// Input: two bytes that pick the message (ff ff: a metadata record, ff fe: a request header), one that picks the version, the
/// rest its bytes. Invariants: no crash; what can be read can be written, unless its unknown tags are out of order; what was
/// written reads back as the same, and writes the same bytes again.
#include <cstdlib>
#include <string>

#include "protocol/framing.h"
#include "protocol/metadata_record.h"
#include "tests/support/protocol/all_messages.h"

namespace {

using namespace tidemark;

void require(bool condition) {
    if (!condition) std::abort();
}

void metadata_record(Bytes bytes) {
    const auto first = protocol::read_versioned_metadata_record(bytes);
    if (!first) return require(first.error().code == Errc::corrupt || first.error().code == Errc::unsupported);
    const auto written = protocol::metadata_record_value(first->record, first->version);
    if (!written) return require(written.error().code == Errc::invalid_argument);
    const auto second = protocol::read_versioned_metadata_record(*written);
    require(second && second->version == first->version);
    const auto again = protocol::metadata_record_value(second->record, second->version);   // in bytes even a NaN equals itself
    require(again && *again == *written);
}

void request_header(Bytes bytes) {
    protocol::Reader reader{bytes};
    const auto header = protocol::read_request_header(reader);
    if (!header) return require(header.error().code == Errc::corrupt || header.error().code == Errc::unsupported);
    require(protocol::find_api(header->request_api_key) != nullptr && reader.position() <= bytes.size());
}

void message(const protocol::AnyMessage& any, std::int16_t version, std::vector<std::byte> bytes) {
    const auto first = any.round_trip(bytes, version);
    if (!first) return require(first.error().code == Errc::corrupt);
    require(first->consumed <= bytes.size());
    if (!first->written) return require(first->written.error().code == Errc::invalid_argument);
    // A NaN is the one value that equals itself in its bytes only.
    const std::string_view name = any.name;
    const bool has_floats = name.ends_with("ClientQuotasRequest") || name.ends_with("ClientQuotasResponse") || name == "ClientQuotaRecord";
    require(first->same_when_read_again || has_floats);
    auto again = *first->written;
    const auto second = any.round_trip(again, version);
    require(second && second->written && *second->written == *first->written && second->consumed == again.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 3) return 0;
    const Bytes bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto all = protocol::all_messages();
    const std::size_t pick = std::size_t{data[0]} << 8 | data[1];
    if (pick == 0xffff) {
        metadata_record(bytes.subspan(3));
    } else if (pick == 0xfffe) {
        request_header(bytes.subspan(3));
    } else {
        const auto& any = all[pick % all.size()];
        const int versions = any.versions.max - any.versions.min + 1;
        message(any, static_cast<std::int16_t>(any.versions.min + data[2] % versions), to_vector(bytes.subspan(3)));
    }
    return 0;
}
