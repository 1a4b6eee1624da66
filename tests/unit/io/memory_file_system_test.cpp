// What only the files in memory have: a clock, a capacity, a life that files may outlast.

#include "io/memory_file_system.h"

#include <gtest/gtest.h>

#include "tests/unit/io/support.h"

namespace tidemark::io {
namespace {

TEST(MemoryFileSystem, ReadsPathsFromTheRoot) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.create_directory("logs"));
    ASSERT_TRUE(put(files, "./logs//a", "A"));
    EXPECT_EQ(content(files, "/logs/a"), "A");
    EXPECT_EQ(names(files, "."), "logs/");
    EXPECT_EQ(names(files, ""), "logs/");
    EXPECT_TRUE(files.status("/").value()->is_directory);
    EXPECT_FALSE(files.remove_directory("/"));
    EXPECT_FALSE(files.rename("/", "/x"));
}

TEST(MemoryFileSystem, TakesTimesFromItsClock) {
    ManualClock clock(Timestamp{1000});
    MemoryFileSystem files({.clock = &clock});
    ASSERT_TRUE(files.create_directory("d"));
    clock.advance(std::chrono::milliseconds{5});
    ASSERT_TRUE(put(files, "d/a", "A"));
    EXPECT_EQ(files.status("d/a").value()->modified, Timestamp{1005});
    EXPECT_EQ(files.status("d").value()->modified, Timestamp{1005}) << "a new name changes the directory";
    clock.advance(std::chrono::milliseconds{5});
    ASSERT_TRUE(files.rename("d/a", "d/b"));
    EXPECT_EQ(files.status("d/b").value()->modified, Timestamp{1005}) << "a rename does not change the file";
    ASSERT_TRUE(put(files, "d/b", "B"));
    EXPECT_EQ(files.status("d/b").value()->modified, Timestamp{1010});
}

TEST(MemoryFileSystem, RunsFullAndHeals) {
    MemoryFileSystem files({.capacity_bytes = 100});
    ASSERT_TRUE(put(files, "a", std::string(60, 'a')));
    EXPECT_EQ(files.space("/").value().total, 100);
    EXPECT_EQ(files.space("/").value().available, 40);

    const auto written = put(files, "b", std::string(50, 'b'));
    EXPECT_EQ(outcome(written), "no_space");
    EXPECT_EQ(content(files, "b"), std::string(40, 'b')) << "a short write puts what fits";
    EXPECT_EQ(outcome(put(files, "c", "c")), "no_space");
    EXPECT_TRUE(put(files, "a", "A")) << "in place there is always room";
    EXPECT_EQ(outcome(files.open("b", OpenMode::read_write).value()->resize(41)), "no_space");
    EXPECT_EQ(files.status("b").value()->bytes, 40) << "a resize that fails changes nothing";

    ASSERT_TRUE(files.open("b", OpenMode::read_write).value()->resize(10));
    EXPECT_EQ(files.space("/").value().available, 30);
    {
        const auto open = files.open("a", OpenMode::read).value();
        ASSERT_TRUE(files.remove("a"));
        EXPECT_EQ(files.space("/").value().available, 30) << "an open file keeps its room";
    }
    EXPECT_EQ(files.space("/").value().available, 90);
    files.set_capacity(5);
    EXPECT_EQ(files.space("/").value().available, 0);
    EXPECT_EQ(content(files, "b"), std::string(10, 'b')) << "what is there stays";
    files.set_capacity(1000);
    EXPECT_TRUE(put(files, "c", std::string(500, 'c')));
}

TEST(MemoryFileSystem, CanBeMovedWhileFilesAreOpen) {
    MemoryFileSystem first;
    const auto file = first.open("a", OpenMode::create_new).value();
    MemoryFileSystem second = std::move(first);
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("text")));
    EXPECT_EQ(content(second, "a"), "text");
    second = MemoryFileSystem{};
    std::vector<std::byte> into(4);
    EXPECT_EQ(file->read(FilePosition{0}, into).value(), 4u) << "a file outlives its disk";
    EXPECT_EQ(file->descriptor(), -1);
}

}  // namespace
}  // namespace tidemark::io
