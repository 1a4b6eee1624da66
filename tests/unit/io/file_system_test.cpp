// What every FileSystem does, tried on each of them.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "io/faulty_file_system.h"
#include "io/memory_file_system.h"
#include "io/posix_file_system.h"
#include "tests/unit/io/support.h"

namespace tidemark::io {
namespace {

TEST(Path, IsPutTogetherAndTakenApart) {
    EXPECT_EQ(join("/data", "orders-0"), "/data/orders-0");
    EXPECT_EQ(join("/", "data"), "/data");
    EXPECT_EQ(join("data/", "a"), "data/a");
    EXPECT_EQ(join("", "a"), "a");
    const struct {
        std::string_view path, parent, name;
    } table[] = {
        {"/a/b", "/a", "b"}, {"/a/b/", "/a", "b"}, {"/a//b", "/a", "b"}, {"/a", "/", "a"}, {"a/b", "a", "b"}, {"a", ".", "a"}, {"/", "/", ""},
    };
    for (const auto& [path, parent, name] : table) {
        EXPECT_EQ(parent_of(path), parent) << path;
        EXPECT_EQ(name_of(path), name) << path;
    }
    EXPECT_EQ(parts_of("/a/./b//c/"), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_TRUE(parts_of("/").empty());
}

TEST(SystemError, HasTheCodeThatCallersReactTo) {
    EXPECT_EQ(system_error(ENOENT, "open a").code, Errc::not_found);
    EXPECT_EQ(system_error(ENOTDIR, "open a").code, Errc::not_found);
    EXPECT_EQ(system_error(EEXIST, "open a").code, Errc::already_exists);
    EXPECT_EQ(system_error(ENOSPC, "write a").code, Errc::no_space);
    EXPECT_EQ(system_error(EDQUOT, "write a").code, Errc::no_space);
    EXPECT_EQ(system_error(EACCES, "open a").code, Errc::io);
    const auto error = system_error(EIO, "read a at 7");
    EXPECT_EQ(error.code, Errc::io);
    EXPECT_EQ(error.os, std::errc::io_error);
    EXPECT_EQ(error.message(), "io: read a at 7: " + error.os.message());
}

struct OnPosix {
    TemporaryDirectory directory;
    PosixFileSystem files;
    Path root() const { return directory.path(); }
};
struct InMemory {
    MemoryFileSystem files;
    Path root() const { return "/"; }
};
struct OnFaultlessDisk {
    FaultyFileSystem files;
    Path root() const { return "/"; }
};
struct OnFaultlessPosix {
    TemporaryDirectory directory;
    PosixFileSystem below;
    FaultyFileSystem files{{}, below};
    Path root() const { return directory.path(); }
};

template <class Where>
class FileSystemTest : public testing::Test {
protected:
    Path at(std::string_view name) const { return join(where.root(), name); }
    std::unique_ptr<File> must_open(const Path& path, OpenMode mode) {
        auto file = files.open(path, mode);
        EXPECT_TRUE(file.has_value()) << file.error().message();
        return file ? *std::move(file) : nullptr;
    }
    std::string names_in(const Path& directory) const { return names(files, directory); }

    Where where;
    FileSystem& files = where.files;
};

using Everywhere = testing::Types<OnPosix, InMemory, OnFaultlessDisk, OnFaultlessPosix>;
TYPED_TEST_SUITE(FileSystemTest, Everywhere);

TYPED_TEST(FileSystemTest, ReadsBackWhatWasWrittenAnywhere) {
    const auto file = this->must_open(this->at("a"), OpenMode::create_new);
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("hello world")));
    ASSERT_TRUE(file->write(FilePosition{6}, as_bytes("there")));
    ASSERT_TRUE(file->write(FilePosition{14}, as_bytes("!")));  // leaves a gap of zeros
    EXPECT_EQ(file->size().value(), 15);
    EXPECT_EQ(content(this->files, this->at("a")), std::string("hello there\0\0\0!", 15));

    std::vector<std::byte> into(5);
    EXPECT_EQ(file->read(FilePosition{6}, into).value(), 5u);
    EXPECT_EQ(as_text(into), "there");
    EXPECT_EQ(file->read(FilePosition{13}, into).value(), 2u) << "fewer only at the end";
    EXPECT_EQ(file->read(FilePosition{15}, into).value(), 0u);
    EXPECT_EQ(file->read(FilePosition{1000}, into).value(), 0u);
    EXPECT_EQ(file->read(FilePosition{0}, {}).value(), 0u);
    EXPECT_TRUE(file->write(FilePosition{100}, {}));
    EXPECT_EQ(file->size().value(), 15) << "no bytes change nothing";
}

TYPED_TEST(FileSystemTest, MovesMegabytesInOneCall) {
    const auto file = this->must_open(this->at("a"), OpenMode::create_new);
    std::vector<std::byte> data(5 << 20);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 4096);
    ASSERT_TRUE(file->write(FilePosition{1}, data));
    std::vector<std::byte> back(data.size() + 10);
    ASSERT_EQ(file->read(FilePosition{1}, back).value(), data.size());
    back.resize(data.size());
    EXPECT_TRUE(back == data);
    std::fill(back.begin(), back.end(), std::byte{0});
    const auto cached = file->read_if_cached(FilePosition{1}, back);
    ASSERT_TRUE(cached.has_value());
    if (cached->has_value()) {  // tmpfs and others may not say
        EXPECT_EQ(**cached, data.size());
        EXPECT_TRUE(back == data);
    }
}

TYPED_TEST(FileSystemTest, ResizesAndExtendsWithZeros) {
    const auto file = this->must_open(this->at("a"), OpenMode::create_new);
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("0123456789")));
    ASSERT_TRUE(file->resize(4));
    ASSERT_TRUE(file->resize(6));
    EXPECT_EQ(content(this->files, this->at("a")), std::string("0123\0\0", 6));
    EXPECT_FALSE(file->resize(-1));
    EXPECT_EQ(file->size().value(), 6);
    EXPECT_TRUE(file->sync());
    // Hints have no effect that one could see.
    file->start_writeback();
    file->drop_cached(FilePosition{0}, 6);
    file->will_read_sequentially();
    EXPECT_EQ(content(this->files, this->at("a")), std::string("0123\0\0", 6));
}

TYPED_TEST(FileSystemTest, OpensAsTheModeSays) {
    const auto a = this->at("a");
    const struct {
        OpenMode mode;
        std::string missing, present, content_after;
    } table[] = {
        {OpenMode::read, "not_found", "ok", "old"},
        {OpenMode::read_write, "not_found", "ok", "old"},
        {OpenMode::create, "ok", "ok", "old"},
        {OpenMode::create_new, "ok", "already_exists", "old"},
        {OpenMode::create_truncated, "ok", "ok", ""},
    };
    for (const auto& [mode, missing, present, content_after] : table) {
        SCOPED_TRACE(static_cast<int>(mode));
        EXPECT_EQ(outcome(this->files.open(a, mode)), missing);
        EXPECT_EQ(this->names_in(this->where.root()), missing == "ok" ? "a" : "");
        ASSERT_TRUE(put(this->files, a, "old"));
        EXPECT_EQ(outcome(this->files.open(a, mode)), present);
        EXPECT_EQ(content(this->files, a), content_after);
        ASSERT_TRUE(this->files.remove(a));
    }
    EXPECT_EQ(outcome(this->files.open(this->at("missing/a"), OpenMode::create)), "not_found");
    ASSERT_TRUE(this->files.create_directory(this->at("d")));
    EXPECT_EQ(outcome(this->files.open(this->at("d"), OpenMode::read)), "io") << "a directory is no file";
    EXPECT_EQ(outcome(this->files.open(this->at("d"), OpenMode::create_truncated)), "io");
}

TYPED_TEST(FileSystemTest, RefusesToWriteWhatIsOpenForReading) {
    ASSERT_TRUE(put(this->files, this->at("a"), "old"));
    const auto file = this->must_open(this->at("a"), OpenMode::read);
    EXPECT_EQ(outcome(file->write(FilePosition{0}, as_bytes("new"))), "io");
    EXPECT_EQ(outcome(file->resize(0)), "io");
    EXPECT_EQ(content(this->files, this->at("a")), "old");
}

TYPED_TEST(FileSystemTest, SaysWhatIsThere) {
    ASSERT_TRUE(put(this->files, this->at("b"), "12345"));
    ASSERT_TRUE(put(this->files, this->at("a"), ""));
    ASSERT_TRUE(this->files.create_directory(this->at("d")));
    ASSERT_TRUE(put(this->files, this->at("d/x"), "1"));
    EXPECT_EQ(this->names_in(this->where.root()), "a b d/");
    EXPECT_EQ(this->names_in(this->at("d")), "x");
    EXPECT_EQ(outcome(this->files.list(this->at("missing"))), "not_found");
    EXPECT_EQ(outcome(this->files.list(this->at("b"))), "not_found") << "a file has no entries";

    const auto file = this->files.status(this->at("b")).value();
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(file->bytes, 5);
    EXPECT_FALSE(file->is_directory);
    EXPECT_TRUE(this->files.status(this->at("d")).value()->is_directory);
    EXPECT_FALSE(this->files.status(this->at("missing")).value().has_value());
    EXPECT_FALSE(this->files.status(this->at("missing/x")).value().has_value());
    EXPECT_FALSE(this->files.status(this->at("b/x")).value().has_value());

    const auto space = this->files.space(this->where.root()).value();
    EXPECT_GT(space.total, 0);
    EXPECT_GE(space.total, space.available);
    EXPECT_GT(space.available, 0);
    EXPECT_EQ(outcome(this->files.space(this->at("missing"))), "not_found");
}

TYPED_TEST(FileSystemTest, CreatesAndRemovesDirectories) {
    ASSERT_TRUE(this->files.create_directory(this->at("d")));
    EXPECT_TRUE(this->files.create_directory(this->at("d"))) << "no error when it is there";
    EXPECT_EQ(outcome(this->files.create_directory(this->at("x/y"))), "not_found") << "one level";
    ASSERT_TRUE(put(this->files, this->at("f"), ""));
    EXPECT_EQ(outcome(this->files.create_directory(this->at("f"))), "already_exists");
    ASSERT_TRUE(put(this->files, this->at("d/f"), ""));

    const auto full = this->files.remove_directory(this->at("d"));
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().os, std::errc::directory_not_empty);
    const auto as_file = this->files.remove(this->at("d"));
    ASSERT_FALSE(as_file);
    EXPECT_EQ(as_file.error().os, std::errc::is_a_directory);
    EXPECT_FALSE(this->files.remove_directory(this->at("f"))) << "a file is no directory";

    ASSERT_TRUE(this->files.remove(this->at("d/f")));
    EXPECT_TRUE(this->files.remove_directory(this->at("d")));
    EXPECT_EQ(this->names_in(this->where.root()), "f");
    EXPECT_EQ(outcome(this->files.remove_directory(this->at("d"))), "not_found");
    EXPECT_EQ(outcome(this->files.remove(this->at("d"))), "not_found");
    EXPECT_TRUE(this->files.sync_directory(this->where.root()));
    EXPECT_EQ(outcome(this->files.sync_directory(this->at("d"))), "not_found");
    EXPECT_EQ(outcome(this->files.sync_directory(this->at("f"))), "not_found");
}

TYPED_TEST(FileSystemTest, RenamesFilesAndDirectories) {
    ASSERT_TRUE(put(this->files, this->at("a"), "A"));
    ASSERT_TRUE(put(this->files, this->at("b"), "B"));
    ASSERT_TRUE(this->files.rename(this->at("a"), this->at("b")));
    EXPECT_EQ(this->names_in(this->where.root()), "b");
    EXPECT_EQ(content(this->files, this->at("b")), "A") << "replaces";
    EXPECT_TRUE(this->files.rename(this->at("b"), this->at("b")));
    EXPECT_EQ(content(this->files, this->at("b")), "A") << "onto itself changes nothing";
    EXPECT_EQ(outcome(this->files.rename(this->at("a"), this->at("c"))), "not_found");
    EXPECT_EQ(outcome(this->files.rename(this->at("b"), this->at("missing/c"))), "not_found");

    ASSERT_TRUE(this->files.create_directory(this->at("d")));
    ASSERT_TRUE(put(this->files, this->at("d/x"), "X"));
    EXPECT_FALSE(this->files.rename(this->at("d"), this->at("d/e"))) << "not into itself";
    EXPECT_FALSE(this->files.rename(this->at("b"), this->at("d"))) << "a file replaces no directory";
    EXPECT_FALSE(this->files.rename(this->at("d"), this->at("b"))) << "a directory replaces no file";
    ASSERT_TRUE(this->files.create_directory(this->at("e")));
    ASSERT_TRUE(this->files.rename(this->at("d"), this->at("e"))) << "an empty directory is replaced";
    EXPECT_EQ(content(this->files, this->at("e/x")), "X");
    ASSERT_TRUE(this->files.create_directory(this->at("g")));
    const auto onto_full = this->files.rename(this->at("g"), this->at("e"));
    ASSERT_FALSE(onto_full);
    EXPECT_EQ(onto_full.error().code == Errc::already_exists || onto_full.error().os == std::errc::directory_not_empty, true);
    ASSERT_TRUE(this->files.rename(this->at("e/x"), this->at("g/y"))) << "to another directory";
    EXPECT_EQ(this->names_in(this->at("e")), "");
    EXPECT_EQ(content(this->files, this->at("g/y")), "X");
}

TYPED_TEST(FileSystemTest, AFileIsNotItsName) {
    const auto file = this->must_open(this->at("a"), OpenMode::create_new);
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("one")));
    ASSERT_TRUE(this->files.rename(this->at("a"), this->at("b")));
    ASSERT_TRUE(file->write(FilePosition{3}, as_bytes(" two")));
    EXPECT_EQ(content(this->files, this->at("b")), "one two");
    ASSERT_TRUE(this->files.remove(this->at("b")));
    ASSERT_TRUE(put(this->files, this->at("b"), "another"));
    ASSERT_TRUE(file->write(FilePosition{0}, as_bytes("ONE")));
    std::vector<std::byte> into(7);
    EXPECT_EQ(file->read(FilePosition{0}, into).value(), 7u);
    EXPECT_EQ(as_text(into), "ONE two") << "removed, yet open";
    EXPECT_TRUE(file->sync());
    EXPECT_EQ(content(this->files, this->at("b")), "another");
}

TYPED_TEST(FileSystemTest, KeepsTheTimesThatAreSet) {
    ASSERT_TRUE(put(this->files, this->at("a"), "A"));
    EXPECT_GT(this->files.status(this->at("a")).value()->modified, Timestamp{1'600'000'000'000});
    for (const auto time : {Timestamp{1'700'000'000'123}, Timestamp{0}, Timestamp{-1}, Timestamp{-1001}}) {
        ASSERT_TRUE(this->files.set_modified(this->at("a"), time));
        EXPECT_EQ(this->files.status(this->at("a")).value()->modified, time);
    }
    ASSERT_TRUE(put(this->files, this->at("a"), "B"));
    EXPECT_GT(this->files.status(this->at("a")).value()->modified, Timestamp{1'600'000'000'000}) << "a write sets it to now";
    ASSERT_TRUE(this->files.create_directory(this->at("d")));
    ASSERT_TRUE(this->files.set_modified(this->at("d"), Timestamp{5000}));
    EXPECT_EQ(this->files.status(this->at("d")).value()->modified, Timestamp{5000});
    EXPECT_EQ(outcome(this->files.set_modified(this->at("missing"), Timestamp{0})), "not_found");
}

TYPED_TEST(FileSystemTest, LocksOnceAtATime) {
    auto first = this->files.lock(this->at(".lock"));
    ASSERT_TRUE(first.has_value()) << first.error().message();
    EXPECT_EQ(this->names_in(this->where.root()), ".lock") << "created";
    EXPECT_EQ(outcome(this->files.lock(this->at(".lock"))), "locked");
    EXPECT_EQ(content(this->files, this->at(".lock")), "") << "reading, and closing what was read, does not give it back";
    EXPECT_EQ(outcome(this->files.lock(this->at(".lock"))), "locked");
    EXPECT_EQ(outcome(this->files.lock(this->at("other"))), "ok");

    // Whoever removes the file makes room for a new one, which is another lock.
    ASSERT_TRUE(this->files.remove(this->at(".lock")));
    auto second = this->files.lock(this->at(".lock"));
    ASSERT_TRUE(second.has_value());
    first->reset();
    EXPECT_EQ(outcome(this->files.lock(this->at(".lock"))), "locked") << "the second one still holds it";
    second->reset();
    EXPECT_EQ(outcome(this->files.lock(this->at(".lock"))), "ok");
}

TYPED_TEST(FileSystemTest, CreatesDirectoriesOfAPath) {
    ASSERT_TRUE(create_directories(this->files, this->at("a/b/c")));
    EXPECT_TRUE(create_directories(this->files, this->at("a/b/c/")));
    EXPECT_TRUE(this->files.status(this->at("a/b/c")).value()->is_directory);
    ASSERT_TRUE(put(this->files, this->at("a/f"), ""));
    EXPECT_EQ(outcome(create_directories(this->files, this->at("a/f"))), "already_exists");
    EXPECT_FALSE(create_directories(this->files, this->at("a/f/g")));
}

TYPED_TEST(FileSystemTest, ReadsWholeFilesUpToALimit) {
    ASSERT_TRUE(put(this->files, this->at("a"), "12345"));
    EXPECT_EQ(as_text(read_whole(this->files, this->at("a")).value()), "12345");
    EXPECT_TRUE(read_whole(this->files, this->at("a"), 5).has_value());
    EXPECT_EQ(outcome(read_whole(this->files, this->at("a"), 4)), "too_large");
    EXPECT_EQ(outcome(read_whole(this->files, this->at("b"))), "not_found");
    ASSERT_TRUE(put(this->files, this->at("empty"), ""));
    EXPECT_TRUE(read_whole(this->files, this->at("empty"), 0).value().empty());
}

TYPED_TEST(FileSystemTest, ReplacesContentAsAWhole) {
    ASSERT_TRUE(replace_content(this->files, this->at("checkpoint"), as_bytes("a long first content")));
    EXPECT_EQ(content(this->files, this->at("checkpoint")), "a long first content");
    ASSERT_TRUE(put(this->files, this->at("checkpoint.tmp"), "what a crash may have left, longer than what comes"));
    ASSERT_TRUE(replace_content(this->files, this->at("checkpoint"), as_bytes("second")));
    EXPECT_EQ(content(this->files, this->at("checkpoint")), "second");
    EXPECT_EQ(this->names_in(this->where.root()), "checkpoint");
}

TYPED_TEST(FileSystemTest, RemovesTreesAndWhatIsMissing) {
    ASSERT_TRUE(create_directories(this->files, this->at("t/a/b")));
    ASSERT_TRUE(put(this->files, this->at("t/1"), "1"));
    ASSERT_TRUE(put(this->files, this->at("t/a/b/2"), "2"));
    ASSERT_TRUE(put(this->files, this->at("stays"), ""));
    EXPECT_TRUE(remove_all(this->files, this->at("t")));
    EXPECT_TRUE(remove_all(this->files, this->at("t")));
    EXPECT_EQ(this->names_in(this->where.root()), "stays");
}

// A log's reader beside its writer: what the writer has published is whole.
TYPED_TEST(FileSystemTest, ReadersSeeWhatTheWriterHasPublished) {
    constexpr std::int64_t block = 700, blocks = 400;
    const auto file = this->must_open(this->at("a"), OpenMode::create_new);
    std::atomic<std::int64_t> published{0};
    std::atomic<int> wrong{0};
    const auto read_all = [&] {
        std::vector<std::byte> into(block);
        for (std::int64_t seen = 0; seen < blocks;) {
            for (const auto end = published.load(); seen < end; ++seen) {
                const auto got = file->read(FilePosition{seen * block}, into);
                const auto value = static_cast<std::byte>(seen);
                if (!got || *got != block || into.front() != value || into.back() != value) ++wrong;
            }
        }
    };
    {
        std::jthread one(read_all), other(read_all);
        for (std::int64_t n = 0; n < blocks; ++n) {
            const std::vector<std::byte> data(block, static_cast<std::byte>(n));
            EXPECT_TRUE(file->write(FilePosition{n * block}, data));
            published = n + 1;
        }
    }
    EXPECT_EQ(wrong, 0);
}

TYPED_TEST(FileSystemTest, ManyThreadsMakeAndMoveNames) {
    std::atomic<int> failed{0};
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                for (int n = 0; n < 50; ++n) {
                    const auto from = this->at("t" + std::to_string(t) + ".tmp");
                    if (!put(this->files, from, "x") || !this->files.rename(from, this->at("shared")) || !this->files.list(this->where.root())) ++failed;
                }
            });
        }
    }
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(this->names_in(this->where.root()), "shared");
}

}  // namespace
}  // namespace tidemark::io
