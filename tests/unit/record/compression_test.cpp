#include "record/compression.h"

#include <xxhash.h>

#include <random>

#include "tests/unit/record/tools.h"

namespace tidemark::record {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr std::size_t no_limit = std::size_t{1} << 30;

Buffer text(std::size_t size, unsigned seed = 1) {
    std::mt19937 random{seed};
    Buffer bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>('a' + (random() % 7) * (i % 3 == 0));
    return bytes;
}

Buffer noise(std::size_t size, unsigned seed = 1) {
    std::mt19937 random{seed};
    Buffer bytes(size);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
    return bytes;
}

/// Decompresses in pieces of `step` bytes.
Result<Buffer> in_pieces(Codec codec, Bytes from, std::size_t step, CodecContext context = {}) {
    const auto decompressor = make_decompressor(codec);
    TM_TRYV(decompressor->open(from, context));
    Buffer all, piece(step);
    for (;;) {
        TM_TRY(const auto got, decompressor->read(piece));
        if (got == 0) return all;
        EXPECT_LE(got, step);
        append_bytes(all, Bytes{piece}.first(got));
    }
}

TEST(Compression, EveryCodecAndLevelComesBackInAnyPieces) {
    Compressor compressor;
    for (const Codec codec : real_codecs) {
        const LevelRange range = level_range(codec);
        for (const auto level : {std::optional<int>{}, std::optional{range.min}, std::optional{range.standard}, std::optional{range.max}}) {
            if (level == 0 && codec != Codec::snappy) continue;
            for (const std::size_t size : {0, 1, 100, 32768, 32769, 65536, 65537, 300'000}) {
                if (level.value_or(0) > 9 && size > 65537) continue;  // slow, and nothing new
                for (const Buffer& data : {text(size), noise(size)}) {
                    SCOPED_TRACE(std::to_string(static_cast<int>(codec)) + " level " + std::to_string(level.value_or(-99)) + " size " + std::to_string(size));
                    Buffer packed{std::byte{7}};
                    compressor.compress(codec, data, packed, level);
                    EXPECT_EQ(packed.front(), std::byte{7}) << "appends";
                    const Bytes stream = Bytes{packed}.subspan(1);
                    EXPECT_TRUE(equal(decompress(codec, stream, no_limit).value(), data));
                    for (const std::size_t step : {1, 1000, 70000}) {
                        if (step == 1 && size > 100) continue;
                        EXPECT_TRUE(equal(in_pieces(codec, stream, step).value(), data)) << "in steps of " << step;
                    }
                }
            }
        }
    }
}

TEST(Compression, ALimitStopsIt) {
    const Buffer zeros(5'000'000);
    for (const Codec codec : real_codecs) {
        Buffer packed;
        compress(codec, zeros, packed);
        EXPECT_LT(packed.size(), zeros.size() / 15);
        EXPECT_EQ(decompress(codec, packed, 4'999'999).error().code, Errc::too_large);
        EXPECT_EQ(decompress(codec, packed, 5'000'000).value(), zeros);
    }
}

TEST(Compression, StreamsThatAreCutOrEmptyAreCorrupt) {
    const Buffer data = text(300);
    for (const Codec codec : real_codecs) {
        Buffer packed;
        compress(codec, data, packed);
        for (std::size_t size = codec == Codec::snappy ? 1 : 0; size < packed.size(); ++size) {
            if (codec == Codec::snappy && size >= 16 && size < 20) continue;  // header, and no whole length: an empty stream
            const auto result = decompress(codec, Bytes{packed}.first(size), no_limit);
            ASSERT_FALSE(result) << static_cast<int>(codec) << " cut after " << size;
            EXPECT_EQ(result.error().code, Errc::corrupt);
        }
    }
}

TEST(Compression, ADecompressorStartsOverAfterAnError) {
    const Buffer data = text(100000);
    for (const Codec codec : real_codecs) {
        Buffer packed;
        compress(codec, data, packed);
        const auto decompressor = make_decompressor(codec);
        Buffer piece(data.size() * 2);
        // Left in the middle, then given rubbish, then used again.
        ASSERT_TRUE(decompressor->open(packed, {}));
        ASSERT_TRUE(decompressor->read(MutableBytes{piece}.first(10)));
        const Buffer rubbish = noise(500);
        EXPECT_FALSE(decompressor->open(rubbish, {}) && decompressor->read(piece));
        ASSERT_TRUE(decompressor->open(packed, {}));
        std::size_t size = 0;
        while (const auto got = decompressor->read(MutableBytes{piece}.subspan(size)).value()) size += got;
        piece.resize(size);
        EXPECT_EQ(piece, data);
    }
}

// --- gzip ------------------------------------------------------------------------------------------------------------

TEST(Gzip, HeaderIsThatOfCurrentJvms) {
    Buffer packed;
    compress(Codec::gzip, text(10), packed);
    EXPECT_EQ(to_hex(Bytes{packed}.first(10)), "1f8b08000000000000ff");
}

TEST(Gzip, SeveralMembersAreOneStreamAndRubbishBehindIsIgnored) {
    Buffer packed;
    compress(Codec::gzip, text(100, 1), packed);
    compress(Codec::gzip, text(50, 2), packed);
    Buffer expected = text(100, 1);
    append_bytes(expected, text(50, 2));
    EXPECT_EQ(decompress(Codec::gzip, packed, no_limit).value(), expected);
    append_bytes(packed, from_hex("000102030405060708090a0b0c0d0e0f"));
    EXPECT_EQ(decompress(Codec::gzip, packed, no_limit).value(), expected);
}

TEST(Gzip, TrailerIsChecked) {
    Buffer packed;
    compress(Codec::gzip, text(100), packed);
    for (std::size_t back = 1; back <= 8; ++back) {
        Buffer bad = packed;
        bad[bad.size() - back] ^= std::byte{0x10};
        EXPECT_EQ(decompress(Codec::gzip, bad, no_limit).error().code, Errc::corrupt);
    }
}

// --- snappy ----------------------------------------------------------------------------------------------------------

TEST(Snappy, BlocksAre32KiB) {
    Buffer packed;
    compress(Codec::snappy, noise(40000), packed);
    EXPECT_EQ(to_hex(Bytes{packed}.first(16)), "82534e4150505900" "00000001" "00000001");
    const auto first = load_be<std::int32_t>(packed.data() + 16);
    EXPECT_EQ(to_hex(Bytes{packed}.subspan(20, 3)), "808002") << "32768 in the block's own length";
    const auto second = load_be<std::int32_t>(packed.data() + 20 + first);
    EXPECT_EQ(packed.size(), static_cast<std::size_t>(20 + first + 4 + second));
}

TEST(Snappy, RawBlocksAndConcatenatedStreamsAreRead) {
    const Buffer raw = from_hex("0b" "28" "68656c6c6f20776f726c64");  // one literal of 11 bytes
    EXPECT_EQ(as_text(decompress(Codec::snappy, raw, no_limit).value()), "hello world");
    EXPECT_EQ(in_pieces(Codec::snappy, raw, 3).value().size(), 11U);

    Buffer packed, expected;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        compress(Codec::snappy, text(40000, seed), packed);
        append_bytes(expected, text(40000, seed));
    }
    EXPECT_EQ(decompress(Codec::snappy, packed, no_limit).value(), expected);
}

TEST(Snappy, BlocksLargerThanOursAreRead) {
    // A stream of one block that snappy-java would cut into eight.
    const Buffer data = text(250000);
    Buffer small;
    compress(Codec::snappy, data, small);
    const Buffer header(small.begin(), small.begin() + 16);
    // 250000 bytes as one literal: length preamble, tag 0xf8 (3 bytes of length), the bytes.
    Buffer block = from_hex("90a10f" "f8" "8fd003");
    append_bytes(block, data);
    Buffer packed = header;
    append_be(packed, static_cast<std::int32_t>(block.size()));
    append_bytes(packed, block);
    EXPECT_EQ(decompress(Codec::snappy, packed, no_limit).value(), data);
}

TEST(Snappy, RefusesBadStreams) {
    Buffer packed;
    compress(Codec::snappy, text(100), packed);
    const auto context = [](const Buffer& bytes) {
        const auto result = decompress(Codec::snappy, bytes, no_limit);
        EXPECT_FALSE(result);
        return result ? std::string{} : result.error().context;
    };
    Buffer bad = packed;
    store_be(bad.data() + 8, std::int32_t{0});
    EXPECT_THAT(context(bad), HasSubstr("version"));
    for (const std::int32_t length : {-1, 0, 1 << 30}) {
        bad = packed;
        store_be(bad.data() + 16, length);
        EXPECT_THAT(context(bad), HasSubstr("beyond the data"));
    }
    EXPECT_THAT(context(from_hex("ffffffff0f00")), HasSubstr("impossible length")) << "four gigabytes from six bytes";
    EXPECT_THAT(context(from_hex("0a00")), HasSubstr("bad block"));
}

// --- lz4 -------------------------------------------------------------------------------------------------------------

Buffer lz4_frame(std::uint8_t flags, std::uint8_t descriptor, const Buffer& blocks, std::optional<std::int64_t> content_size = {}) {
    Buffer bytes = from_hex("04224d18");
    bytes.push_back(std::byte{flags});
    bytes.push_back(std::byte{descriptor});
    if (content_size) append_be(bytes, byte_swapped(*content_size));
    bytes.push_back(static_cast<std::byte>(XXH32(bytes.data() + 4, bytes.size() - 4, 0) >> 8));
    append_bytes(bytes, blocks);
    return bytes;
}

std::string lz4_error(const Buffer& bytes, CodecContext context = {}) {
    const auto result = decompress(Codec::lz4, bytes, no_limit, context);
    EXPECT_FALSE(result);
    if (result) return {};
    EXPECT_EQ(result.error().code, Errc::corrupt);
    return result.error().context;
}

const Buffer stored_hello = from_hex("05000080" "68656c6c6f");
const Buffer end_mark = from_hex("00000000");

Buffer hello(std::uint8_t flags = 0x60, std::uint8_t descriptor = 0x40) {
    Buffer blocks = stored_hello;
    append_bytes(blocks, end_mark);
    return lz4_frame(flags, descriptor, blocks);
}

TEST(Lz4, HeaderChecksumOfFormat0IsTheOldOne) {
    Buffer v2, v1, v0;
    compress(Codec::lz4, text(100), v2, {}, {.magic = 2});
    compress(Codec::lz4, text(100), v1, {}, {.magic = 1});
    compress(Codec::lz4, text(100), v0, {}, {.magic = 0});
    EXPECT_EQ(to_hex(Bytes{v2}.first(7)), "04224d18604082");
    EXPECT_EQ(v1, v2);
    EXPECT_EQ(to_hex(Bytes{v0}.first(7)), "04224d1860401a");
    EXPECT_EQ(decompress(Codec::lz4, v0, no_limit, {.magic = 0}).value(), text(100));
    EXPECT_EQ(decompress(Codec::lz4, v2, no_limit, {.magic = 0}).value(), text(100)) << "not verified in format 0";
    EXPECT_THAT(lz4_error(v0, {.magic = 1}), HasSubstr("header checksum"));
    EXPECT_THAT(lz4_error(v0, {.magic = 2}), HasSubstr("header checksum"));
}

TEST(Lz4, AcceptsWhatOtherWritersDo) {
    for (const std::uint8_t descriptor : std::array<std::uint8_t, 4>{0x40, 0x50, 0x60, 0x70}) {
        EXPECT_EQ(as_text(decompress(Codec::lz4, hello(0x60, descriptor), no_limit).value()), "hello");
    }
    Buffer blocks = stored_hello;
    append_bytes(blocks, end_mark);
    EXPECT_EQ(decompress(Codec::lz4, lz4_frame(0x68, 0x40, blocks, 5), no_limit).value().size(), 5U) << "content size";

    Buffer with_checksum = stored_hello;
    append_be(with_checksum, byte_swapped(static_cast<std::uint32_t>(XXH32("hello", 5, 0))));
    append_bytes(with_checksum, end_mark);
    EXPECT_EQ(decompress(Codec::lz4, lz4_frame(0x70, 0x40, with_checksum), no_limit).value().size(), 5U) << "block checksum";
    with_checksum[10] ^= std::byte{1};
    EXPECT_THAT(lz4_error(lz4_frame(0x70, 0x40, with_checksum)), HasSubstr("block checksum"));

    Buffer with_content = blocks;
    append_be(with_content, std::int32_t{123456});  // not verified, but it must be there
    EXPECT_EQ(decompress(Codec::lz4, lz4_frame(0x64, 0x40, with_content), no_limit).value().size(), 5U);
    EXPECT_THAT(lz4_error(lz4_frame(0x64, 0x40, blocks)), HasSubstr("checksum is cut"));

    Buffer trailing = hello();
    append_bytes(trailing, from_hex("abcdef"));
    EXPECT_EQ(decompress(Codec::lz4, trailing, no_limit).value().size(), 5U) << "the end mark ends it";
}

TEST(Lz4, RefusesWhatKafkaRefuses) {
    EXPECT_THAT(lz4_error(from_hex("04224d186040")), HasSubstr("header is cut"));
    EXPECT_THAT(lz4_error(from_hex("04224d18684082")), HasSubstr("header is cut")) << "announces a content size";
    Buffer other_magic = hello();
    other_magic[0] = std::byte{5};
    EXPECT_THAT(lz4_error(other_magic), HasSubstr("no frame"));
    Buffer bad_checksum = hello();
    bad_checksum[6] ^= std::byte{1};
    EXPECT_THAT(lz4_error(bad_checksum), HasSubstr("header checksum"));
    EXPECT_EQ(decompress(Codec::lz4, bad_checksum, no_limit, {.magic = 0}).value().size(), 5U);
    EXPECT_THAT(lz4_error(hello(0x40)), HasSubstr("depend"));
    EXPECT_THAT(lz4_error(hello(0x20)), HasSubstr("version"));
    EXPECT_THAT(lz4_error(hello(0xA0)), HasSubstr("version"));
    EXPECT_THAT(lz4_error(hello(0x61)), HasSubstr("reserved"));
    EXPECT_THAT(lz4_error(hello(0x62)), HasSubstr("reserved"));
    EXPECT_THAT(lz4_error(hello(0x60, 0x41)), HasSubstr("reserved"));
    EXPECT_THAT(lz4_error(hello(0x60, 0xC0)), HasSubstr("reserved"));
    EXPECT_THAT(lz4_error(hello(0x60, 0x30)), HasSubstr("block size"));

    Buffer too_long = from_hex("01000180");  // 65537 bytes stored, in a frame of 64 KiB blocks
    too_long.resize(too_long.size() + 65537);
    append_bytes(too_long, end_mark);
    EXPECT_THAT(lz4_error(lz4_frame(0x60, 0x40, too_long)), HasSubstr("exceeds the frame's largest"));
    EXPECT_EQ(decompress(Codec::lz4, lz4_frame(0x60, 0x50, too_long), no_limit).value().size(), 65537U);

    EXPECT_THAT(lz4_error(lz4_frame(0x60, 0x40, stored_hello)), HasSubstr("is cut")) << "no end mark";
    EXPECT_THAT(lz4_error(lz4_frame(0x60, 0x40, from_hex("0600008068656c6c6f"))), HasSubstr("block is cut"));
    EXPECT_THAT(lz4_error(lz4_frame(0x60, 0x40, from_hex("05000000" "ffffffffff" "00000000"))), HasSubstr("bad block"));
}

// --- zstd ------------------------------------------------------------------------------------------------------------

TEST(Zstd, StreamsHaveKafkasShape) {
    Buffer packed;
    compress(Codec::zstd, text(10), packed);
    EXPECT_EQ(to_hex(Bytes{packed}.first(6)), "28b52ffd0058") << "no content size, no checksum, level 3's window";
    EXPECT_EQ(to_hex(Bytes{packed}.last(3)), "010000") << "a last empty block";
}

TEST(Zstd, SeveralFramesAreOneStream) {
    Buffer packed;
    compress(Codec::zstd, text(1000, 1), packed);
    compress(Codec::zstd, text(500, 2), packed);
    Buffer expected = text(1000, 1);
    append_bytes(expected, text(500, 2));
    EXPECT_EQ(decompress(Codec::zstd, packed, no_limit).value(), expected);
    packed.push_back(std::byte{1});
    EXPECT_EQ(decompress(Codec::zstd, packed, no_limit).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace tidemark::record
