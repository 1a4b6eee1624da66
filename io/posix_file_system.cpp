#include "io/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tidemark::io {
namespace {

/// Owns a descriptor.
class Descriptor {
public:
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const { return fd_; }
private:
    int fd_;
};

/// Calls again while a signal broke it off.
template <class Call>
auto uninterrupted(Call call) {
    for (;;) {
        const auto result = call();
        if (result != -1 || errno != EINTR) return result;
    }
}

Error last_error(std::string what) { return system_error(errno, std::move(what)); }

/// Errc::io, even when the disk was full (networks, quotas and thin volumes say so this late): what was not written is
/// forgotten, the next sync would succeed, and so nobody may make room and try again.
Error sync_error(std::string what) {
    auto error = last_error(std::move(what));
    error.code = Errc::io;
    return error;
}

Result<Descriptor> open_descriptor(const Path& path, int flags) {
    const int fd = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
    if (fd < 0) return last_error("open " + path);
    return Descriptor(fd);
}

int flags_of(OpenMode mode) {
    switch (mode) {
        case OpenMode::read: return O_RDONLY;
        case OpenMode::read_write: return O_RDWR;
        case OpenMode::create: return O_RDWR | O_CREAT;
        case OpenMode::create_new: return O_RDWR | O_CREAT | O_EXCL;
        case OpenMode::create_truncated: return O_RDWR | O_CREAT | O_TRUNC;
    }
    return O_RDONLY;
}

/// Rounded down, also before 1970, since tv_nsec counts upwards from tv_sec.
Timestamp milliseconds_of(const timespec& t) { return Timestamp{std::int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000}; }

timespec timespec_of(Timestamp t) {
    auto seconds = t.value / 1000;
    auto rest = t.value % 1000;
    if (rest < 0) {
        --seconds;
        rest += 1000;
    }
    return {.tv_sec = seconds, .tv_nsec = rest * 1'000'000};
}

class PosixFile final : public File {
public:
    PosixFile(Descriptor descriptor, Path path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

    Result<std::size_t> read(FilePosition at, MutableBytes into) const override {
        std::size_t done = 0;
        while (done < into.size()) {
            const auto got = uninterrupted([&] { return ::pread(fd(), into.data() + done, into.size() - done, at.value + static_cast<off_t>(done)); });
            if (got < 0) return last_error("read " + path_ + where(at, done));
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return done;
    }

    Result<std::optional<std::size_t>> read_if_cached(FilePosition at, MutableBytes into) const override {
        std::size_t done = 0;
        while (done < into.size()) {
            const iovec rest{into.data() + done, into.size() - done};
            const auto got = uninterrupted([&] { return ::preadv2(fd(), &rest, 1, at.value + static_cast<off_t>(done), RWF_NOWAIT); });
            if (got < 0 && (errno == EAGAIN || errno == EOPNOTSUPP)) return std::optional<std::size_t>{};
            if (got < 0) return last_error("read " + path_ + where(at, done));
            if (got == 0) break;
            done += static_cast<std::size_t>(got);
        }
        return std::optional{done};
    }

    Result<> write(FilePosition at, Bytes from) override {
        std::size_t done = 0;
        while (done < from.size()) {
            const auto put = uninterrupted([&] { return ::pwrite(fd(), from.data() + done, from.size() - done, at.value + static_cast<off_t>(done)); });
            if (put < 0) return last_error("write " + path_ + where(at, done));
            if (put == 0) return system_error(EIO, "write " + path_ + where(at, done));
            done += static_cast<std::size_t>(put);
        }
        return {};
    }

    Result<> resize(std::int64_t bytes) override {
        if (uninterrupted([&] { return ::ftruncate(fd(), bytes); }) != 0) return last_error("resize " + path_ + " to " + std::to_string(bytes));
        return {};
    }

    Result<std::int64_t> size() const override {
        struct stat status {};
        if (::fstat(fd(), &status) != 0) return last_error("size of " + path_);
        return std::int64_t{status.st_size};
    }

    Result<> sync() override {
        if (::fdatasync(fd()) != 0) return sync_error("sync " + path_);
        return {};
    }

    void start_writeback() override { ::sync_file_range(fd(), 0, 0, SYNC_FILE_RANGE_WRITE); }
    void drop_cached(FilePosition at, std::int64_t bytes) const override { ::posix_fadvise(fd(), at.value, bytes, POSIX_FADV_DONTNEED); }
    void will_read_sequentially() const override { ::posix_fadvise(fd(), 0, 0, POSIX_FADV_SEQUENTIAL); }
    int descriptor() const override { return fd(); }

private:
    int fd() const { return descriptor_.get(); }
    static std::string where(FilePosition at, std::size_t done) { return " at " + std::to_string(at.value + static_cast<std::int64_t>(done)); }

    const Descriptor descriptor_;
    const Path path_;  // as it was opened, for errors; a rename does not change it
};

/// Closing the descriptor gives the lock back.
class PosixLock final : public Lock {
public:
    explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
private:
    const Descriptor descriptor_;
};

/// Is the file that `fd` has open still the one that `path` names?
Result<bool> names_same_file(int fd, const Path& path) {
    struct stat opened {}, named {};
    if (::fstat(fd, &opened) != 0) return last_error("lock " + path);
    if (::stat(path.c_str(), &named) != 0) {
        if (errno == ENOENT) return false;
        return last_error("lock " + path);
    }
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool is_directory(DIR* in, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN && entry.d_type != DT_LNK) return entry.d_type == DT_DIR;
    struct stat status {};
    return ::fstatat(::dirfd(in), entry.d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<std::unique_ptr<File>> PosixFileSystem::open(const Path& path, OpenMode mode) {
    TM_TRY(auto descriptor, open_descriptor(path, flags_of(mode)));
    // A directory can be opened for reading; what can be done with it is none of a File's business.
    struct stat status {};
    if (::fstat(descriptor.get(), &status) != 0) return last_error("open " + path);
    if (S_ISDIR(status.st_mode)) return system_error(EISDIR, "open " + path);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path));
}

Result<std::optional<FileStatus>> PosixFileSystem::status(const Path& path) const {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) return std::optional<FileStatus>{};
        return last_error("status of " + path);
    }
    return std::optional(FileStatus{.bytes = status.st_size, .modified = milliseconds_of(status.st_mtim), .is_directory = S_ISDIR(status.st_mode), .changed = milliseconds_of(status.st_ctim)});
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::list(const Path& directory) const {
    const auto close = [](DIR* d) { ::closedir(d); };
    const std::unique_ptr<DIR, decltype(close)> stream(::opendir(directory.c_str()), close);
    if (!stream) return last_error("list " + directory);
    std::vector<DirectoryEntry> entries;
    for (;;) {
        errno = 0;
        const dirent* entry = ::readdir(stream.get());
        if (entry == nullptr) break;
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") entries.push_back({std::string(name), is_directory(stream.get(), *entry)});
    }
    if (errno != 0) return last_error("list " + directory);
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
}

Result<> PosixFileSystem::create_directory(const Path& path) {
    if (::mkdir(path.c_str(), 0777) == 0) return {};
    const int error = errno;
    struct stat status {};
    if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
    return system_error(error, "create directory " + path);
}

Result<> PosixFileSystem::rename(const Path& from, const Path& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) return last_error("rename " + from + " to " + to);
    return {};
}

Result<> PosixFileSystem::remove(const Path& file) {
    if (::unlink(file.c_str()) != 0) return last_error("remove " + file);
    return {};
}

Result<> PosixFileSystem::remove_directory(const Path& path) {
    if (::rmdir(path.c_str()) != 0) return last_error("remove directory " + path);
    return {};
}

Result<> PosixFileSystem::sync_directory(const Path& path) {
    TM_TRY(const auto descriptor, open_descriptor(path, O_RDONLY | O_DIRECTORY));
    if (::fsync(descriptor.get()) != 0) return sync_error("sync directory " + path);
    return {};
}

Result<> PosixFileSystem::set_modified(const Path& path, Timestamp modified) {
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(modified)};
    if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0) return last_error("set time of " + path);
    return {};
}

Result<std::unique_ptr<Lock>> PosixFileSystem::lock(const Path& path) {
    // Whoever held the lock before may have removed the file on leaving, after we opened it: then our lock guards a file
    // that nobody else will find. Such a lock is given back and the file opened anew.
    for (int attempt = 0; attempt < 100; ++attempt) {
        TM_TRY(auto descriptor, open_descriptor(path, O_RDWR | O_CREAT));
        struct flock whole {};
        whole.l_type = F_WRLCK;
        whole.l_whence = SEEK_SET;
        if (uninterrupted([&] { return ::fcntl(descriptor.get(), F_OFD_SETLK, &whole); }) != 0) {
            if (errno != EAGAIN && errno != EACCES) return last_error("lock " + path);
            return Error{Errc::locked, path + ": another process has it"};
        }
        TM_TRY(const bool same, names_same_file(descriptor.get(), path));
        if (same) return std::unique_ptr<Lock>(std::make_unique<PosixLock>(std::move(descriptor)));
    }
    return Error{Errc::locked, path + ": others keep replacing it"};
}

Result<FileSystem::Space> PosixFileSystem::space(const Path& directory) const {
    struct statfs status {};
    if (uninterrupted([&] { return ::statfs(directory.c_str(), &status); }) != 0) return last_error("space of " + directory);
    const auto bytes = [&](fsblkcnt_t blocks) { return static_cast<std::int64_t>(blocks * static_cast<fsblkcnt_t>(status.f_frsize)); };
    auto available = status.f_bavail;
    if (status.f_type == EXT4_SUPER_MAGIC && ::geteuid() == 0) {
        // What is kept for root is there for this process; up to 4096 blocks, on a small disk 2 % of the device, nobody gets.
        const auto kept = std::min<fsblkcnt_t>(status.f_blocks / 40, 4096);
        available = std::max(available, status.f_bfree - std::min(status.f_bfree, kept));
    }
    return Space{.total = bytes(status.f_blocks), .available = bytes(available)};
}

}  // namespace tidemark::io
