#include "cleaner/chunk_reader.h"

#include <gtest/gtest.h>

#include "io/memory_file_system.h"
#include "record/builder.h"

namespace tidemark::cleaner {
namespace {

std::vector<std::byte> batch(std::int64_t offset, std::size_t value_bytes) {
    record::BatchBuilder builder;
    builder.start({.base_offset = Offset{offset}});
    builder.append(Offset{offset}, Timestamp{1000}, as_bytes("k"), as_bytes(std::string(value_bytes, 'v')));
    std::vector<std::byte> out;
    builder.finish(out);
    return out;
}

class ChunkReaderTest : public ::testing::Test {
protected:
    void add(const std::vector<std::byte>& bytes) { append_bytes(content_, bytes); }

    /// Base offsets of all batches, or the error.
    Result<std::vector<std::int64_t>> read_all(const BufferLimits& limits) {
        io::MemoryFileSystem files;
        const auto file = files.open("f", io::OpenMode::create).value();
        EXPECT_TRUE(file->write(FilePosition{0}, content_).has_value());
        ChunkReader reader(*file, FilePosition{0}, static_cast<std::int64_t>(content_.size()), buffer_, limits);
        std::vector<std::int64_t> seen;
        largest_ = 0;
        while (!reader.at_end()) {
            TM_TRY(const auto chunk, reader.read());
            largest_ = std::max(largest_, buffer_.size());
            record::BatchCursor cursor(chunk);
            std::size_t used = 0;
            for (;;) {
                TM_TRY(const auto b, cursor.next());
                if (!b) break;
                seen.push_back(b->base_offset().value);
                used += b->size();
            }
            TM_TRYV(reader.advance(used));
        }
        return seen;
    }

    std::vector<std::byte> content_;
    std::vector<std::byte> buffer_;
    std::size_t largest_ = 0;
};

TEST_F(ChunkReaderTest, ReadsWholeBatchesWhateverTheBuffer) {
    for (int i = 0; i < 20; ++i) add(batch(i, static_cast<std::size_t>(i * 13)));
    std::vector<std::int64_t> all(20);
    for (int i = 0; i < 20; ++i) all[static_cast<std::size_t>(i)] = i;
    for (const std::int64_t bytes : {0, 17, 61, 100, 500, 5000, 100'000}) {
        EXPECT_EQ(read_all({bytes, 100'000, 100'000}).value(), all) << bytes;
    }
}

TEST_F(ChunkReaderTest, GrowsForABatchLargerThanTodaysLimitAndShrinksAgain) {
    add(batch(0, 900 * 1024));
    add(batch(1, 10));
    EXPECT_EQ(read_all({4096, 1000, 1000}).value(), (std::vector<std::int64_t>{0, 1}));
    EXPECT_GE(largest_, 900u * 1024);
    EXPECT_LE(largest_, 2u * 900 * 1024);
    content_ = batch(7, 10);
    EXPECT_EQ(read_all({4096, 1000, 1000}).value(), (std::vector<std::int64_t>{7}));
    EXPECT_EQ(buffer_.size(), 4096u);
}

TEST_F(ChunkReaderTest, ASizeThatTheFileDoesNotHoldIsCorruptAndNotAllocatedFor) {
    add(batch(0, 100));
    store_be<std::int32_t>(content_.data() + 8, 1'000'000'000);
    EXPECT_EQ(read_all({64, 1000, 1000}).error().code, Errc::corrupt);
    EXPECT_LE(largest_, 1000u);
    content_ = batch(0, 100);
    content_.resize(content_.size() - 1);     // torn
    EXPECT_EQ(read_all({64, 1000, 1000}).error().code, Errc::corrupt);
    content_ = batch(0, 100);
    content_.resize(content_.size() + 5);     // a few zeros behind it
    EXPECT_EQ(read_all({64, 1000, 1000}).error().code, Errc::corrupt);
    content_ = batch(0, 100);
    content_[16] = std::byte{9};              // no such magic
    EXPECT_EQ(read_all({64, 1000, 1000}).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace tidemark::cleaner
