// The reading half of the codecs. Every length is checked against the bytes that are there before memory is taken.
#include <lz4.h>
#include <snappy.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <string>

#include "base/assert.h"
#include "record/codec_frames.h"
#include "record/compression.h"

namespace tidemark::record {
namespace {

const char* chars(const std::byte* p) { return reinterpret_cast<const char*>(p); }
char* chars(std::byte* p) { return reinterpret_cast<char*>(p); }

std::uint32_t load_le32(const std::byte* from) { return byte_swapped(load_be<std::uint32_t>(from)); }

Error broken(const char* codec, std::string_view what) { return {Errc::corrupt, std::string{codec} + " stream: " + std::string{what}}; }

/// A block that was decompressed beside the caller's buffer and is handed out piece by piece.
class Scratch {
public:
    void clear() { begin_ = end_ = 0; }
    bool empty() const { return begin_ == end_; }
    /// Memory for `bytes`; what was there is gone.
    std::byte* reserve(std::size_t bytes) {
        if (bytes > capacity_ || (capacity_ > kept_max && bytes <= kept_max)) {
            capacity_ = std::max(bytes, std::size_t{64} * 1024);
            bytes_ = std::make_unique_for_overwrite<std::byte[]>(capacity_);
        }
        clear();
        return bytes_.get();
    }
    void filled(std::size_t bytes) { end_ = bytes; }
    std::size_t take(MutableBytes into) {
        const auto n = std::min(into.size(), end_ - begin_);
        if (n > 0) std::memcpy(into.data(), bytes_.get() + begin_, n);
        begin_ += n;
        return n;
    }

private:
    static constexpr std::size_t kept_max = 1024 * 1024;
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

class GzipDecompressor final : public Decompressor {
public:
    ~GzipDecompressor() override {
        if (initialized_) inflateEnd(&stream_);
    }

    Result<> open(Bytes from, CodecContext) override {
        if (initialized_) {
            TM_ASSERT(inflateReset(&stream_) == Z_OK);
        } else {
            TM_ASSERT(inflateInit2(&stream_, MAX_WBITS + 16) == Z_OK);  // + 16: gzip, and nothing else
            initialized_ = true;
        }
        from_ = from;
        stream_.avail_in = 0;
        at_member_end_ = false;
        return {};
    }

    Result<std::size_t> read(MutableBytes into) override {
        stream_.next_out = reinterpret_cast<Bytef*>(into.data());
        stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30));
        const auto room = stream_.avail_out;
        while (stream_.avail_out == room) {
            feed();
            if (at_member_end_) {
                if (!starts_member()) return std::size_t{0};
                TM_ASSERT(inflateReset(&stream_) == Z_OK);
                at_member_end_ = false;
            }
            const int state = inflate(&stream_, Z_NO_FLUSH);
            if (state == Z_STREAM_END) {
                at_member_end_ = true;
            } else if (state == Z_BUF_ERROR || (state == Z_OK && stream_.avail_in == 0 && from_.empty() && stream_.avail_out == room)) {
                return broken("gzip", "it is cut");
            } else if (state != Z_OK) {
                return broken("gzip", stream_.msg != nullptr ? stream_.msg : "bad data");
            }
        }
        return static_cast<std::size_t>(room - stream_.avail_out);
    }

private:
    void feed() {
        if (stream_.avail_in > 0) return;
        const auto n = std::min<std::size_t>(from_.size(), 1U << 30);
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from_.data()));
        stream_.avail_in = static_cast<uInt>(n);
        from_ = from_.subspan(n);
    }
    /// What follows a member is another one, or does not matter: Java ignores it too.
    bool starts_member() const {
        return stream_.avail_in >= gzip_header.size() && std::equal(gzip_header.begin(), gzip_header.begin() + 3, stream_.next_in);
    }

    z_stream stream_{};
    bool initialized_ = false;
    bool at_member_end_ = false;
    Bytes from_;  // what the stream has not been given
};

class SnappyDecompressor final : public Decompressor {
public:
    Result<> open(Bytes from, CodecContext) override {
        from_ = from;
        scratch_.clear();
        raw_ = !starts_with_header();
        if (!raw_) TM_TRYV(skip_header());
        return {};
    }

    Result<std::size_t> read(MutableBytes into) override {
        while (scratch_.empty()) {
            Bytes block;
            if (raw_) {
                block = std::exchange(from_, Bytes{});
            } else {
                TM_TRY(block, next_block());
            }
            if (block.empty()) return std::size_t{0};
            TM_TRY(const auto direct, expand(block, into));
            if (direct > 0) return direct;
        }
        return scratch_.take(into);
    }

private:
    // The densest element copies 64 bytes for three.
    static constexpr std::size_t expansion_max = 22;

    bool starts_with_header() const {
        return from_.size() >= snappy_header_bytes && equal(from_.first(snappy_magic.size()), std::as_bytes(std::span{snappy_magic}));
    }
    Result<> skip_header() {
        if (load_be<std::int32_t>(from_.data() + snappy_magic.size()) < snappy_version) return broken("snappy", "unknown version");
        from_ = from_.subspan(snappy_header_bytes);
        return {};
    }
    /// The next compressed block, empty at the end. Concatenated streams bring their headers with them.
    Result<Bytes> next_block() {
        while (starts_with_header()) TM_TRYV(skip_header());
        if (from_.size() < 4) return Bytes{};  // snappy-java takes a cut length for the end
        const auto size = load_be<std::int32_t>(from_.data());
        from_ = from_.subspan(4);
        if (size <= 0 || static_cast<std::size_t>(size) > from_.size()) return broken("snappy", "a block goes beyond the data");
        const Bytes block = from_.first(static_cast<std::size_t>(size));
        from_ = from_.subspan(block.size());
        return block;
    }
    /// Straight into `into` when it has room (its size then), else into the scratch (0).
    Result<std::size_t> expand(Bytes block, MutableBytes into) {
        std::size_t size = 0;
        if (!snappy::GetUncompressedLength(chars(block.data()), block.size(), &size) || size > block.size() * expansion_max) {
            return broken("snappy", "a block claims an impossible length");
        }
        const bool direct = size <= into.size();
        std::byte* const to = direct ? into.data() : scratch_.reserve(size);
        if (!snappy::RawUncompress(chars(block.data()), block.size(), chars(to))) return broken("snappy", "bad block");
        if (direct) return size;
        scratch_.filled(size);
        return std::size_t{0};
    }

    Bytes from_;
    bool raw_ = false;
    Scratch scratch_;
};

class Lz4Decompressor final : public Decompressor {
public:
    Result<> open(Bytes from, CodecContext context) override {
        from_ = from;
        scratch_.clear();
        ended_ = false;
        if (from_.size() < 7) return broken("lz4", "its header is cut");
        if (load_le32(from_.data()) != lz4_magic) return broken("lz4", "it is no frame");
        const auto flags = static_cast<std::uint8_t>(from_[4]);
        const auto block_descriptor = static_cast<std::uint8_t>(from_[5]);
        if ((flags & 0x03) != 0 || (block_descriptor & 0x8F) != 0) return broken("lz4", "reserved bits are set");
        if (flags >> 6 != 1) return broken("lz4", "unknown version");
        if ((flags & 0x20) == 0) return broken("lz4", "its blocks depend on each other");
        const unsigned size_code = block_descriptor >> 4;
        if (size_code < 4) return broken("lz4", "unknown block size");
        block_bytes_max_ = std::size_t{1} << (8 + 2 * size_code);  // 4: 64 KiB … 7: 4 MiB
        block_checksums_ = (flags & 0x10) != 0;
        content_checksum_ = (flags & 0x04) != 0;
        const std::size_t descriptor_end = (flags & 0x08) != 0 ? 14 : 6;  // a content size is skipped
        if (from_.size() < descriptor_end + 1) return broken("lz4", "its header is cut");
        if (context.magic > 0) {  // format 0 wrote another hash, which nobody checks
            const auto hash = static_cast<std::uint8_t>(XXH32(from_.data() + 4, descriptor_end - 4, 0) >> 8);
            if (static_cast<std::uint8_t>(from_[descriptor_end]) != hash) return broken("lz4", "wrong header checksum");
        }
        from_ = from_.subspan(descriptor_end + 1);
        return {};
    }

    Result<std::size_t> read(MutableBytes into) override {
        while (scratch_.empty()) {
            if (ended_) return std::size_t{0};
            TM_TRY(const auto direct, read_block(into));
            if (direct > 0) return direct;
        }
        return scratch_.take(into);
    }

private:
    Result<std::size_t> read_block(MutableBytes into) {
        if (from_.size() < 4) return broken("lz4", "it is cut");
        const auto length = load_le32(from_.data());
        from_ = from_.subspan(4);
        const std::size_t size = length & ~lz4_stored;
        if (size == 0) {
            if (content_checksum_ && from_.size() < 4) return broken("lz4", "its checksum is cut");
            ended_ = true;
            return std::size_t{0};
        }
        if (size > block_bytes_max_) return broken("lz4", "a block exceeds the frame's largest");
        if (size + (block_checksums_ ? 4 : 0) > from_.size()) return broken("lz4", "a block is cut");
        const Bytes block = from_.first(size);
        from_ = from_.subspan(size);
        if (block_checksums_) {
            if (XXH32(block.data(), block.size(), 0) != load_le32(from_.data())) return broken("lz4", "wrong block checksum");
            from_ = from_.subspan(4);
        }
        return expand(block, (length & lz4_stored) != 0, into);
    }
    /// As for snappy. A byte of input makes at most 255 of output, so a small block gets a small scratch.
    Result<std::size_t> expand(Bytes block, bool stored, MutableBytes into) {
        const auto size_max = stored ? block.size() : std::min(block_bytes_max_, block.size() * 255);
        const bool direct = size_max <= into.size();
        std::byte* const to = direct ? into.data() : scratch_.reserve(size_max);
        std::size_t size = block.size();
        if (stored) {
            std::memcpy(to, block.data(), size);
        } else {
            const int got = LZ4_decompress_safe(chars(block.data()), chars(to), static_cast<int>(block.size()), static_cast<int>(size_max));
            if (got < 0) return broken("lz4", "bad block");
            size = static_cast<std::size_t>(got);
        }
        if (direct) return size;
        scratch_.filled(size);
        return std::size_t{0};
    }

    Bytes from_;
    std::size_t block_bytes_max_ = 0;
    bool block_checksums_ = false;
    bool content_checksum_ = false;
    bool ended_ = false;
    Scratch scratch_;
};

class ZstdDecompressor final : public Decompressor {
public:
    ZstdDecompressor() : context_(ZSTD_createDCtx()) { TM_ASSERT(context_ != nullptr); }

    Result<> open(Bytes from, CodecContext) override {
        ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only);
        in_ = {from.data(), from.size(), 0};
        between_frames_ = false;
        return {};
    }

    Result<std::size_t> read(MutableBytes into) override {
        ZSTD_outBuffer out{into.data(), into.size(), 0};
        while (out.pos == 0) {
            if (between_frames_ && in_.pos == in_.size) return std::size_t{0};
            const auto before = in_.pos;
            const auto left = ZSTD_decompressStream(context_.get(), &out, &in_);
            if (ZSTD_isError(left)) return broken("zstd", ZSTD_getErrorName(left));
            between_frames_ = left == 0;
            if (out.pos == 0 && !between_frames_ && in_.pos == before) return broken("zstd", "it is cut");
        }
        return out.pos;
    }

private:
    struct Free {
        void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
    };
    std::unique_ptr<ZSTD_DCtx, Free> context_;
    ZSTD_inBuffer in_{};
    bool between_frames_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> make_decompressor(Codec codec) {
    switch (codec) {
        case Codec::gzip: return std::make_unique<GzipDecompressor>();
        case Codec::snappy: return std::make_unique<SnappyDecompressor>();
        case Codec::lz4: return std::make_unique<Lz4Decompressor>();
        case Codec::zstd: return std::make_unique<ZstdDecompressor>();
        case Codec::none: break;
    }
    TM_ASSERT(false && "make_decompressor() needs a codec");
    return nullptr;
}

Result<std::vector<std::byte>> decompress(Codec codec, Bytes from, std::size_t bytes_max, CodecContext context) {
    constexpr std::size_t step_min = 16 * 1024;
    const auto decompressor = make_decompressor(codec);
    TM_TRYV(decompressor->open(from, context));
    std::vector<std::byte> to;
    for (std::size_t size = 0;;) {
        if (to.size() - size < step_min) to.resize(std::max(2 * to.size(), 4 * step_min));
        TM_TRY(const auto got, decompressor->read(MutableBytes{to}.subspan(size)));
        size += got;
        if (size > bytes_max) return Error{Errc::too_large, "decompressed data exceed " + std::to_string(bytes_max) + " bytes"};
        if (got == 0) {
            to.resize(size);
            return to;
        }
    }
}

}  // namespace tidemark::record
