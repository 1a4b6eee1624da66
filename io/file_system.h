/// The only place that asks the system about files. Everything above works on these interfaces, so a test can let the
/// disk fail or lose power at any call (memory_file_system.h, faulty_file_system.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace tidemark::io {

/// Paths are text, '/' between the parts; join() puts them together.
using Path = std::string;
Path join(std::string_view directory, std::string_view name);
/// The last part: "b" of "/a/b", of "/a/b/" and of "b"; empty for "/".
std::string_view name_of(std::string_view path);
/// What sync_directory() takes after a name changed: "/a" of "/a/b", "/" of "/a", "." of "a".
std::string_view parent_of(std::string_view path);
/// All parts in order, without empty ones and ".": {"a", "b"} of "/a/./b/".
std::vector<std::string> parts_of(std::string_view path);

/// The Error for what the system said (an errno): not_found (ENOENT, ENOTDIR), already_exists, no_space (ENOSPC, EDQUOT),
/// io for all else. `what` says which call on which file.
Error system_error(int error_number, std::string what);

/// An open regular file. All positions are absolute, nothing has a cursor.
///
/// Threads: const members from any thread at the same time; of the others one at a time (the Log's append lock), at the
/// same time as const ones. A reader never sees a torn write of what the writer has published as complete.
class File {
public:
    virtual ~File() = default;

    /// Fills `into` from `at` on; fewer bytes only at the end of the file. Short reads of the system are repeated.
    virtual Result<std::size_t> read(FilePosition at, MutableBytes into) const = 0;
    /// As read(), but only what the page cache holds now (RWF_NOWAIT); nothing when the disk would be needed.
    virtual Result<std::optional<std::size_t>> read_if_cached(FilePosition at, MutableBytes into) const = 0;
    /// Writes all of `from`. On an error any part of it may have been written: the caller truncates back.
    virtual Result<> write(FilePosition at, Bytes from) = 0;
    /// Cuts or extends with zeros.
    virtual Result<> resize(std::int64_t bytes) = 0;
    virtual Result<std::int64_t> size() const = 0;
    /// Data and what is needed to read it back is on disk when this returns (fdatasync). Never repeat a failed one:
    /// the pages it lost are marked clean. The caller takes the log directory offline (D12).
    virtual Result<> sync() = 0;
    /// Asks for writeback to begin, waits for nothing; a hint.
    virtual void start_writeback() {}
    /// The range will not be read again soon: its clean pages may leave the cache; a hint (the cleaner's).
    virtual void drop_cached(FilePosition, std::int64_t /*bytes*/) const {}
    /// The file will be read from front to end; a hint.
    virtual void will_read_sequentially() const {}
    /// The system's descriptor for sendfile, or -1 where there is none (memory).
    virtual int descriptor() const { return -1; }
};

struct FileStatus {
    std::int64_t bytes = 0;
    Timestamp modified{};       ///< milliseconds, rounded down
    bool is_directory = false;
    Timestamp changed{};        ///< of its content, names or attributes (ctime); in memory that of its content
};

struct DirectoryEntry {
    std::string name;
    bool is_directory = false;
};

enum class OpenMode : std::uint8_t {
    read,              ///< must exist
    read_write,        ///< must exist
    create,            ///< read and write, created when missing
    create_new,        ///< read and write, must not exist: Errc::already_exists
    create_truncated,  ///< read and write, emptied when it exists
};

/// An exclusive advisory lock on a file (F_OFD_SETLK), held until destroyed.
class Lock {
public:
    virtual ~Lock() = default;
};

/// Threads: all members from any thread. Names given to create, rename or remove are durable only after
/// sync_directory() of the directory that holds them.
class FileSystem {
public:
    virtual ~FileSystem() = default;

    /// Errc::not_found when it is missing and the mode does not create.
    virtual Result<std::unique_ptr<File>> open(const Path&, OpenMode) = 0;
    virtual Result<std::optional<FileStatus>> status(const Path&) const = 0;
    /// Sorted by name, without "." and "..".
    virtual Result<std::vector<DirectoryEntry>> list(const Path& directory) const = 0;
    /// One level; no error when it is there. Errc::already_exists when a file has the name.
    virtual Result<> create_directory(const Path&) = 0;
    /// Files and directories. Replaces `to` atomically when it is a file, or an empty directory that a directory replaces.
    /// Errc::not_found when `from` is missing.
    virtual Result<> rename(const Path& from, const Path& to) = 0;
    /// Errc::not_found when it is missing; Errc::io with std::errc::is_a_directory when it is a directory.
    virtual Result<> remove(const Path& file) = 0;
    /// The directory must be empty, else Errc::io with std::errc::directory_not_empty.
    virtual Result<> remove_directory(const Path&) = 0;
    /// The names that the directory holds now are on disk when this returns. As with File::sync(): never repeat a failed one.
    virtual Result<> sync_directory(const Path&) = 0;
    /// Files and directories.
    virtual Result<> set_modified(const Path&, Timestamp) = 0;
    /// Takes the exclusive lock on `file`, creating it. Errc::locked when another process (or Lock) holds it. After the
    /// lock is taken, fstat is compared with stat: a lock on a file that somebody replaced is none.
    virtual Result<std::unique_ptr<Lock>> lock(const Path& file) = 0;
    struct Space {
        std::int64_t total = 0;
        std::int64_t available = 0;
    };
    virtual Result<Space> space(const Path& directory) const = 0;
};

/// Every directory of `path` that is missing, and their names synced.
Result<> create_directories(FileSystem&, const Path& path);
/// The whole content; Errc::too_large above `bytes_max`.
Result<std::vector<std::byte>> read_whole(FileSystem&, const Path&, std::int64_t bytes_max = 1 << 30);
/// `<path>.tmp` written and synced, renamed over `path`, the directory synced: after a crash the old or the new content.
Result<> replace_content(FileSystem&, const Path&, Bytes content);
/// A directory with all that is in it, or a file. What is missing already is no error; a symbolic link goes, what it points
/// to stays. Syncs nothing.
Result<> remove_all(FileSystem&, const Path& directory);

}  // namespace tidemark::io
