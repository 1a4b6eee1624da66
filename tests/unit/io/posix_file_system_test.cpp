// What only the system's files have: descriptors, the page cache, symbolic links, locks between processes.

#include "io/posix_file_system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/unit/io/support.h"

namespace tidemark::io {
namespace {

class PosixFileSystemTest : public testing::Test {
protected:
    Path at(std::string_view name) const { return join(directory.path(), name); }
    TemporaryDirectory directory;
    PosixFileSystem files;
};

/// What `work` returns (0 to 255) in a child process that shares no descriptor table and no lock owner with this one.
template <class Work>
int in_another_process(Work work) {
    const auto child = ::fork();
    if (child == 0) ::_exit(work());
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(PosixFileSystemTest, GivesTheDescriptorForSendfile) {
    ASSERT_TRUE(put(files, at("a"), "text"));
    const auto file = files.open(at("a"), OpenMode::read).value();
    char text[4];
    ASSERT_GE(file->descriptor(), 0);
    EXPECT_EQ(::pread(file->descriptor(), text, sizeof text, 0), 4);
    EXPECT_EQ(std::string_view(text, 4), "text");
    EXPECT_NE(::fcntl(file->descriptor(), F_GETFD) & FD_CLOEXEC, 0) << "a child must not inherit it";
}

TEST_F(PosixFileSystemTest, ClosesWhatItOpened) {
    ASSERT_TRUE(put(files, at("a"), ""));
    int descriptor = -1;
    {
        const auto file = files.open(at("a"), OpenMode::read).value();
        descriptor = file->descriptor();
    }
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
    EXPECT_FALSE(files.open(directory.path(), OpenMode::read)) << "a directory";
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

TEST_F(PosixFileSystemTest, FilesArePlainAndDirectoriesTraversable) {
    const auto mask = ::umask(022);
    ASSERT_TRUE(put(files, at("a"), ""));
    ASSERT_TRUE(files.create_directory(at("d")));
    ::umask(mask);
    struct stat status {};
    ASSERT_EQ(::stat(at("a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0644u);
    ASSERT_EQ(::stat(at("d").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0755u);
}

TEST_F(PosixFileSystemTest, AFullDeviceIsNoSpace) {
    const auto full = files.open("/dev/full", OpenMode::read_write);
    ASSERT_TRUE(full.has_value());
    const auto written = (*full)->write(FilePosition{0}, as_bytes("x"));
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, Errc::no_space);
    EXPECT_EQ(written.error().os, std::errc::no_space_on_device);
    EXPECT_NE(written.error().context.find("/dev/full at 0"), std::string::npos) << written.error().context;
}

/// Where RWF_NOWAIT and POSIX_FADV_DONTNEED are known to do what they say; on others (tmpfs, overlays) nothing is promised.
bool has_page_cache(const Path& directory) {
    struct statfs status {};
    EXPECT_EQ(::statfs(directory.c_str(), &status), 0);
    return status.f_type == EXT4_SUPER_MAGIC || status.f_type == XFS_SUPER_MAGIC;
}

// After its clean pages were dropped a file is cold, and read_if_cached() says so instead of waiting for the disk; a read
// warms it.
TEST_F(PosixFileSystemTest, ReadsOnlyWhatIsCached) {
    if (!has_page_cache(directory.path())) GTEST_SKIP() << "needs ext4 or XFS below " << directory.path() << " (TMPDIR)";
    const auto file = files.open(at("a"), OpenMode::create_new).value();
    const std::vector<std::byte> data(1 << 20, std::byte{7});
    ASSERT_TRUE(file->write(FilePosition{0}, data));
    ASSERT_TRUE(file->sync());
    std::vector<std::byte> into(1 << 20);
    EXPECT_EQ(file->read_if_cached(FilePosition{0}, into).value(), data.size());
    EXPECT_TRUE(into == data);
    EXPECT_EQ(file->read_if_cached(FilePosition{1 << 20}, into).value(), 0u) << "the end is known without the disk";

    file->drop_cached(FilePosition{0}, 1 << 20);
    EXPECT_EQ(file->read_if_cached(FilePosition{0}, into).value(), std::nullopt);
    EXPECT_EQ(file->read(FilePosition{0}, into).value(), data.size());
    EXPECT_TRUE(into == data);
    EXPECT_EQ(file->read_if_cached(FilePosition{0}, into).value(), data.size());
}

TEST_F(PosixFileSystemTest, RoundsTimesDown) {
    ASSERT_TRUE(put(files, at("a"), ""));
    for (const auto& [seconds, nanoseconds, expected] : {std::tuple{10L, 1'999'999L, 10'001L}, {-2L, 999'999'999L, -1'001L}}) {
        const timespec times[2] = {{seconds, nanoseconds}, {seconds, nanoseconds}};
        ASSERT_EQ(::utimensat(AT_FDCWD, at("a").c_str(), times, 0), 0);
        EXPECT_EQ(files.status(at("a")).value()->modified, Timestamp{expected});
    }
}

TEST_F(PosixFileSystemTest, FollowsLinksButRemovesThem) {
    ASSERT_TRUE(create_directories(files, at("elsewhere/orders-0")));
    ASSERT_TRUE(put(files, at("elsewhere/orders-0/0.log"), "records"));
    ASSERT_TRUE(files.create_directory(at("data")));
    ASSERT_EQ(::symlink("../elsewhere/orders-0", at("data/orders-0").c_str()), 0);
    ASSERT_EQ(::symlink("nowhere", at("data/dangling").c_str()), 0);
    EXPECT_EQ(names(files, at("data")), "dangling orders-0/") << "a partition moved to another disk is a directory";
    EXPECT_TRUE(files.status(at("data/orders-0")).value()->is_directory);
    EXPECT_FALSE(files.status(at("data/dangling")).value().has_value());
    ASSERT_TRUE(remove_all(files, at("data")));
    EXPECT_FALSE(files.status(at("data")).value().has_value());
    EXPECT_EQ(content(files, at("elsewhere/orders-0/0.log")), "records") << "what a link points to stays";
}

TEST_F(PosixFileSystemTest, LockKeepsOtherProcessesOut) {
    const auto try_lock = [&] { return files.lock(at(".lock")).has_value() ? 0 : 1; };
    {
        const auto lock = files.lock(at(".lock"));
        ASSERT_TRUE(lock.has_value());
        EXPECT_EQ(in_another_process(try_lock), 1);
    }
    EXPECT_EQ(in_another_process(try_lock), 0) << "given back, and the child's end gives back its own";
    EXPECT_EQ(outcome(files.lock(at(".lock"))), "ok");
}

// Kafka's java.nio FileLock is a POSIX record lock; neither may start beside the other.
TEST_F(PosixFileSystemTest, LockAndKafkasLockExcludeEachOther) {
    const auto posix_lock = [&] {
        const int fd = ::open(at(".lock").c_str(), O_RDWR | O_CREAT, 0644);
        struct flock whole {};
        whole.l_type = F_WRLCK;
        return std::pair(fd, ::fcntl(fd, F_SETLK, &whole) == 0);
    };
    {
        const auto lock = files.lock(at(".lock"));
        ASSERT_TRUE(lock.has_value());
        EXPECT_EQ(in_another_process([&] { return posix_lock().second ? 0 : 1; }), 1);
    }
    const auto [fd, taken] = posix_lock();
    EXPECT_TRUE(taken);
    EXPECT_EQ(outcome(files.lock(at(".lock"))), "locked");
    ::close(fd);
    EXPECT_EQ(outcome(files.lock(at(".lock"))), "ok");
}

// The race that the comparison of fstat and stat is for: the holder removes the file and goes while others have it open.
// At no time may two believe that they have the lock.
TEST_F(PosixFileSystemTest, LockOnAReplacedFileIsNone) {
    std::atomic<int> holders{0}, taken{0}, beside{0};
    const auto work = [&] {
        while (taken < 200) {
            auto lock = files.lock(at(".lock"));
            if (!lock) continue;  // at once: to open the file while its holder goes is the point
            if (++holders != 1) ++beside;
            ++taken;
            std::this_thread::yield();
            --holders;
            // As at the end of a clean stop: the file goes first, and with it the right to it; then the lock.
            if (!files.remove(at(".lock"))) ++beside;
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int n = 0; n < 4; ++n) threads.emplace_back(work);
    }
    EXPECT_EQ(beside, 0);
}

}  // namespace
}  // namespace tidemark::io
