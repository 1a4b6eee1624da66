/// The codecs, framed as Kafka frames them (record-format, section 5): what we write has Kafka's bytes where Debian's
/// libraries make the same blocks, what we read is every shape that clients send.
#pragma once

#include <memory>
#include <vector>

#include "record/batch.h"

namespace tidemark::record {

/// Which side of a known quirk applies: magic 0 lz4 frames carry a header checksum over the wrong bytes.
struct CodecContext {
    std::int8_t magic = 2;
};

/// Appends the compressed form of `from` to `to`. `level`: nothing for the codec's default.
void compress(Codec, Bytes from, std::vector<std::byte>& to, std::optional<int> level = {}, CodecContext = {});

/// Decompresses piece by piece, so that nothing is allocated for what a frame only claims.
class Decompressor {
public:
    virtual ~Decompressor() = default;
    /// Starts over on `from`, which must stay while reading.
    virtual Result<> open(Bytes from, CodecContext) = 0;
    /// Fills at most `into`; 0 at the end of the stream. Errc::corrupt for a bad or cut stream.
    virtual Result<std::size_t> read(MutableBytes into) = 0;
};
/// Precondition: codec is not none.
std::unique_ptr<Decompressor> make_decompressor(Codec);

/// All of it, at most `bytes_max` (Errc::too_large above).
Result<std::vector<std::byte>> decompress(Codec, Bytes from, std::size_t bytes_max, CodecContext = {});

}  // namespace tidemark::record
