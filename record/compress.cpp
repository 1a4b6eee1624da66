// The writing half of the codecs: Kafka's framing around the blocks that the libraries make (record-format 5).
#include <lz4.h>
#include <lz4hc.h>
#include <snappy.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "record/codec_frames.h"
#include "record/compression.h"

namespace tidemark::record {
namespace {

const char* chars(const std::byte* p) { return reinterpret_cast<const char*>(p); }
char* chars(std::byte* p) { return reinterpret_cast<char*>(p); }

void append_le32(std::vector<std::byte>& to, std::uint32_t v) { append_be(to, byte_swapped(v)); }
void store_le32(std::byte* to, std::uint32_t v) { store_be(to, byte_swapped(v)); }

/// Compressors write in steps of this and half of their input, which is enough for most: growing costs clearing.
constexpr std::size_t output_step_min = 1024;

class Gzip {
public:
    ~Gzip() { end(); }

    void compress(Bytes from, std::vector<std::byte>& to, int level) {
        if (level != level_) {
            end();
            // Raw deflate: the gzip header is ours, because zlib's own names another operating system than Kafka's.
            TM_ASSERT(deflateInit2(&stream_, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
            level_ = level;
        } else {
            TM_ASSERT(deflateReset(&stream_) == Z_OK);
        }
        append_bytes(to, std::as_bytes(std::span{gzip_header}));
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
        stream_.avail_in = 0;
        auto left = from.size();
        int state = Z_OK;
        auto end_of_output = to.size();
        while (state != Z_STREAM_END) {
            if (stream_.avail_in == 0) {
                stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(left, 1U << 30));
                left -= stream_.avail_in;
            }
            if (to.size() - end_of_output < output_step_min) to.resize(end_of_output + output_step_min + from.size() / 2);
            stream_.next_out = reinterpret_cast<Bytef*>(to.data() + end_of_output);
            stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(to.size() - end_of_output, 1U << 30));
            const auto room = stream_.avail_out;
            state = deflate(&stream_, left == 0 ? Z_FINISH : Z_NO_FLUSH);
            TM_ASSERT(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR);
            end_of_output += room - stream_.avail_out;
        }
        to.resize(end_of_output);
        append_le32(to, static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(from.data()), from.size())));
        append_le32(to, static_cast<std::uint32_t>(from.size()));
    }

private:
    void end() {
        if (level_) deflateEnd(&stream_);
        level_.reset();
    }

    z_stream stream_{};
    std::optional<int> level_;  // of the stream; nothing while there is none
};

void compress_snappy(Bytes from, std::vector<std::byte>& to) {
    append_bytes(to, std::as_bytes(std::span{snappy_magic}));
    append_be(to, snappy_version);
    append_be(to, snappy_version);
    while (!from.empty()) {
        const Bytes block = from.first(std::min(from.size(), snappy_block_bytes));
        from = from.subspan(block.size());
        const auto at = to.size();
        to.resize(at + 4 + snappy::MaxCompressedLength(block.size()));
        std::size_t size = 0;
        snappy::RawCompress(chars(block.data()), block.size(), chars(to.data() + at + 4), &size);
        store_be(to.data() + at, static_cast<std::int32_t>(size));
        to.resize(at + 4 + size);
    }
}

class Lz4 {
public:
    void compress(Bytes from, std::vector<std::byte>& to, int level, CodecContext context) {
        const auto frame_at = to.size();
        append_le32(to, lz4_magic);
        to.push_back(std::byte{lz4_flags});
        to.push_back(std::byte{lz4_block_descriptor});
        // Format 0 was released with a checksum that covers the magic number too.
        const auto hashed_at = context.magic == 0 ? frame_at : frame_at + 4;
        to.push_back(static_cast<std::byte>(XXH32(to.data() + hashed_at, to.size() - hashed_at, 0) >> 8));
        while (!from.empty()) {
            const Bytes block = from.first(std::min(from.size(), lz4_block_bytes));
            from = from.subspan(block.size());
            append_block(block, to, level);
        }
        append_le32(to, 0);
    }

private:
    void append_block(Bytes block, std::vector<std::byte>& to, int level) {
        const auto at = to.size();
        const auto size = static_cast<int>(block.size());
        const int bound = LZ4_compressBound(size);
        to.resize(at + 4 + static_cast<std::size_t>(bound));
        char* const out = chars(to.data() + at + 4);
        int written = 0;
        if (level == lz4_level_fast) {
            written = LZ4_compress_fast_extState(state(fast_, LZ4_sizeofState()), chars(block.data()), out, size, bound, 1);
        } else {
            written = LZ4_compress_HC_extStateHC(state(high_, LZ4_sizeofStateHC()), chars(block.data()), out, size, bound, level);
        }
        TM_ASSERT(written > 0);
        auto length = static_cast<std::uint32_t>(written);
        if (written >= size) {
            std::memcpy(out, block.data(), block.size());
            length = static_cast<std::uint32_t>(size);
            store_le32(to.data() + at, length | lz4_stored);
        } else {
            store_le32(to.data() + at, length);
        }
        to.resize(at + 4 + length);
    }
    static void* state(std::unique_ptr<std::byte[]>& memory, int bytes) {
        if (!memory) memory = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
        return memory.get();
    }

    std::unique_ptr<std::byte[]> fast_, high_;
};

class Zstd {
public:
    void compress(Bytes from, std::vector<std::byte>& to, int level) {
        if (!context_) context_.reset(ZSTD_createCCtx());
        TM_ASSERT(context_ != nullptr);
        ZSTD_CCtx_reset(context_.get(), ZSTD_reset_session_and_parameters);
        TM_ASSERT(!ZSTD_isError(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, level)));
        // A flush first, the end after it, as Kafka's streams do when they close: hence a last empty block, and no
        // content size in the frame.
        ZSTD_inBuffer in{from.data(), from.size(), 0};
        for (const auto step : {ZSTD_e_flush, ZSTD_e_end}) {
            for (std::size_t left = 1; left != 0;) {
                const auto at = to.size();
                to.resize(at + output_step_min + from.size() / 2);
                ZSTD_outBuffer out{to.data(), to.size(), at};
                left = ZSTD_compressStream2(context_.get(), &out, &in, step);
                TM_ASSERT(!ZSTD_isError(left));
                to.resize(out.pos);
            }
        }
    }

private:
    struct Free {
        void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
    };
    std::unique_ptr<ZSTD_CCtx, Free> context_;
};

}  // namespace

LevelRange level_range(Codec codec) {
    switch (codec) {
        case Codec::gzip: return {.min = -1, .max = 9, .standard = -1};  // 0 is none of them: config checks
        case Codec::lz4: return {.min = 1, .max = 17, .standard = lz4_level_fast};
        case Codec::zstd: return {.min = ZSTD_minCLevel(), .max = ZSTD_maxCLevel(), .standard = 3};
        case Codec::none:
        case Codec::snappy: break;
    }
    return {};
}

struct Compressor::State {
    Gzip gzip;
    Lz4 lz4;
    Zstd zstd;
};

Compressor::Compressor() : state_(std::make_unique<State>()) {}
Compressor::~Compressor() = default;
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;

void Compressor::compress(Codec codec, Bytes from, std::vector<std::byte>& to, std::optional<int> level, CodecContext context) {
    const LevelRange range = level_range(codec);
    const int chosen = level.value_or(range.standard);
    TM_ASSERT(codec == Codec::snappy || (chosen >= range.min && chosen <= range.max));
    switch (codec) {
        case Codec::gzip: return state_->gzip.compress(from, to, chosen);
        case Codec::snappy: return compress_snappy(from, to);
        case Codec::lz4: return state_->lz4.compress(from, to, chosen, context);
        case Codec::zstd: return state_->zstd.compress(from, to, chosen);
        case Codec::none: break;
    }
    TM_ASSERT(false && "compress() needs a codec");
}

void compress(Codec codec, Bytes from, std::vector<std::byte>& to, std::optional<int> level, CodecContext context) {
    Compressor{}.compress(codec, from, to, level, context);
}

}  // namespace tidemark::record
