/// The codecs, framed as Kafka frames them (record-format, section 5): what we write has Kafka's bytes where Debian's
/// libraries make the same blocks, what we read is every shape that clients send.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "record/batch.h"

namespace tidemark::record {

/// Which side of a known quirk applies: magic 0 lz4 frames carry a header checksum over the wrong bytes.
struct CodecContext {
    std::int8_t magic = 2;
};

/// Levels that a codec knows (topic configs compression.*.level), what nothing stands for among them. Snappy has none.
struct LevelRange {
    int min = 0, max = 0, standard = 0;
};
LevelRange level_range(Codec);

/// Compresses whole blocks; keeps the codecs' working memory, so that many batches cost one allocation.
/// Threads: one at a time.
class Compressor {
public:
    Compressor();
    ~Compressor();
    Compressor(Compressor&&) noexcept;
    Compressor& operator=(Compressor&&) noexcept;

    /// Appends the compressed form of `from` to `to`. `level`: nothing for the codec's default.
    /// Preconditions: the codec is not none, the level in its range.
    void compress(Codec, Bytes from, std::vector<std::byte>& to, std::optional<int> level = {}, CodecContext = {});

private:
    struct State;
    std::unique_ptr<State> state_;
};
/// The same, once.
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
