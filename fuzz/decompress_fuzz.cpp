/// The codecs' reading halves.
///
/// Input: a byte that picks codec and format, the rest a stream. Invariants: no crash; at most a bounded multiple of the
/// input in memory; read in small pieces it gives what it gives at once (libzstd 1.5.4 overlooks a wrong content size when it
/// decodes a frame in pieces, Kafka's like ours); what came out comes out again when compressed.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "record/compression.h"

namespace {

using namespace tidemark;
using namespace tidemark::record;

constexpr std::size_t bytes_max = 1 << 18;

void require(bool condition) {
    if (!condition) std::abort();
}

Result<std::vector<std::byte>> in_pieces(Codec codec, Bytes from, CodecContext context, std::size_t step) {
    const auto decompressor = make_decompressor(codec);
    TM_TRYV(decompressor->open(from, context));
    std::vector<std::byte> all, piece(step);
    for (;;) {
        TM_TRY(const auto got, decompressor->read(piece));
        if (got == 0) return all;
        require(got <= step);
        append_bytes(all, Bytes{piece}.first(got));
        if (all.size() > bytes_max) return Error{Errc::too_large};
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const auto codec = static_cast<Codec>(1 + data[0] % 4);
    const CodecContext context{.magic = static_cast<std::int8_t>(data[0] / 4 % 3)};
    const Bytes stream = std::as_bytes(std::span{data + 1, size - 1});
    const auto whole = decompress(codec, stream, bytes_max, context);
    const auto step = 1 + data[0] / 12 * 50U;
    const auto pieces = in_pieces(codec, stream, context, step);
    require(whole.has_value() == pieces.has_value() || (codec == Codec::zstd && pieces));
    if (!whole) return 0;
    require(*whole == *pieces);
    std::vector<std::byte> packed;
    compress(codec, *whole, packed, {}, context);
    const auto again = decompress(codec, packed, bytes_max, context);
    require(again && *again == *whole);
    const auto again_in_pieces = in_pieces(codec, packed, context, step);
    require(again_in_pieces && *again_in_pieces == *whole);
    return 0;
}
