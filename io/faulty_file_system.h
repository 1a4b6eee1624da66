/// A disk that fails, runs full or loses power at the n-th call, so that a test can try every n there is:
///
///     for (int step = 0;; ++step) {
///         io::FaultyFileSystem disk{{.lose_power_at = step}};
///         const auto promised = work_until_it_fails(disk);
///         if (!disk.tripped()) break;  // the work ended first: every step has been tried
///         auto after = disk.after_restart({.seed = 7});
///         … what was promised must be in `after`
///     }
///
/// Calls are counted from 0, and only those that change something: File's write, resize and sync; create (of a file or
/// directory that is missing, by lock() too), emptying a file on open (a resize), rename, remove, sync_directory,
/// set_modified. FaultOptions::counted narrows that down or adds reads.
///
/// **Power loss.** The call that loses it answers Errc::io, as does every later one. Its own effect, and that of every call
/// before it that no sync covers, may be on the disk or not; a sync that loses power covers nothing. After a restart
///
/// - the bytes of a file: each piece of 512 bytes (at a multiple of 512) that was written or cut off since the last sync of
///   the file is as it was at that sync, or as it is now, each piece for itself. Where it had no bytes then, it reads as zeros;
/// - the size of a file is anything between the smallest and the largest that it has had since the last sync;
/// - the names: each create, rename and remove that no sync of its directory covers has happened or not, each for itself,
///   except that changes of one name happen in their order (a later one only together with the earlier ones), and that the
///   removal of a directory takes along the changes inside of it. A rename happens as a whole: the old name or the new one.
///   When it goes to another directory, the sync of that one covers it, a sync of the old one does not;
/// - the modification time of a file is the present one, or that of the last sync that changed the size on disk (fdatasync
///   writes the inode for nothing else). A directory's is that of the restart;
/// - the content of a file is apart from its name: a file whose name is lost is lost however often it was synced, and a name
///   that is certain may stand for a file whose bytes are lost;
/// - locks are gone.
///
/// What File::sync() covers is what has been written, cut and extended when it begins; sync_directory() covers one
/// directory, not what lies in its sub directories. Nothing else is forgotten: what is synced is kept.
///
/// **Failure.** A call that fails has done nothing, except that Fault::short_write puts the first half of a write. After a
/// failed sync no later sync of that file or directory makes anything certain (the system has marked the lost pages clean):
/// who repeats it instead of giving up loses data here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/disk_model.h"
#include "io/memory_file_system.h"

namespace tidemark::io {

enum class Operation : std::uint8_t { read, write, resize, sync, create, rename, remove, sync_directory, set_modified };
const char* to_string(Operation) noexcept;

/// One call, for hooks and for FaultOptions::counted.
struct Call {
    int number = -1;           ///< its place among the counted ones, from 0; -1: not counted
    Operation operation = Operation::write;
    Path path = {};            ///< for a File's calls the one it was opened with
    Path to = {};              ///< rename's
    FilePosition at{};         ///< read's and write's
    std::int64_t bytes = 0;    ///< of a read or write; resize's new size
    Bytes data = {};           ///< what is written, while the hook runs

    /// "write logs/0.log at 512 +100", "rename a.tmp to a", "sync a": for traces and for messages of tests.
    std::string text() const;
};

enum class Fault : std::uint8_t {
    io_error,     ///< EIO
    no_space,     ///< ENOSPC
    short_write,  ///< a write puts its first half, then ENOSPC; other calls as no_space
};

struct FaultOptions {
    std::optional<int> lose_power_at = {};
    std::optional<int> fail_at = {};  ///< the first call that fails
    int fail_calls = 1;               ///< how many counted calls fail from there on
    Fault fault = Fault::io_error;
    /// Which calls are counted; those that change something when it is empty.
    std::function<bool(const Call&)> counted = {};
    /// Run around each call that changes something or is counted, on the calling thread, without a lock: `before` may wait, to hold a
    /// sync for as long as a test likes. A write whose `after` came before the `before` of a sync is covered by it.
    std::function<void(const Call&)> before = {};
    std::function<void(const Call&, const Result<>&)> after = {};
    /// read_if_cached() finds nothing: every read goes the way of the cold ones.
    bool nothing_cached = false;
    /// Gives the times of change; the system's clock when there is none. Must outlive the disk and what it becomes.
    const Clock* clock = nullptr;
};

/// Threads: as FileSystem's; the calls that change something exclude each other.
/// Life:    its files and locks may outlive it.
class FaultyFileSystem final : public FileSystem {
public:
    /// An empty disk in memory.
    explicit FaultyFileSystem(FaultOptions = {});
    /// A disk in memory that holds what `start` does, for certain: after_restart() of another one, so that power can be lost
    /// again during recovery.
    FaultyFileSystem(FaultOptions, MemoryFileSystem start);
    /// Lets calls to `below` fail, which must outlive this. What a power loss leaves there is up to `below`.
    FaultyFileSystem(FaultOptions, FileSystem& below);
    ~FaultyFileSystem() override;

    /// Power was lost, or a call was made to fail.
    bool tripped() const;
    /// Calls counted so far.
    int calls() const;
    /// From now on: other faults, counted anew from 0. With nothing set the disk works again (a full one has room). Not after
    /// a power loss.
    void inject(FaultOptions);
    /// What the disk may hold when power was lost; while it is not, as if it were now. Not for the disk that stands on another.
    MemoryFileSystem after_restart(const AfterRestart& = {}) const;

    Result<std::unique_ptr<File>> open(const Path&, OpenMode) override;
    Result<std::optional<FileStatus>> status(const Path&) const override;
    Result<std::vector<DirectoryEntry>> list(const Path& directory) const override;
    Result<> create_directory(const Path&) override;
    Result<> rename(const Path& from, const Path& to) override;
    Result<> remove(const Path& file) override;
    Result<> remove_directory(const Path&) override;
    Result<> sync_directory(const Path&) override;
    Result<> set_modified(const Path&, Timestamp) override;
    Result<std::unique_ptr<Lock>> lock(const Path& file) override;
    Result<Space> space(const Path& directory) const override;

private:
    class State;
    class FaultyFile;
    std::shared_ptr<State> state_;
};

}  // namespace tidemark::io
