/// Files that live in memory, for unit tests: fast, alone, gone afterwards. Refuses what the system would refuse, with the
/// same error codes.
///
/// A fresh one holds an empty root. Paths are read from the root, with or without a leading '/': "a", "/a" and "./a" are
/// the same. There is no ".." and no symbolic link. A removed file lives on for those who have it open. Everything counts as
/// cached, syncs return at once; power loss is the FaultyFileSystem's.
#pragma once

#include <limits>

#include "base/clock.h"
#include "io/file_system.h"

namespace tidemark::io {

struct MemoryOptions {
    /// Gives the times of change; the system's clock when there is none. Must outlive the files.
    const Clock* clock = nullptr;
    /// What all files together may hold: a write beyond it puts what still fits and answers Errc::no_space.
    std::int64_t capacity_bytes = std::numeric_limits<std::int64_t>::max();
};

/// Threads: as FileSystem's; a read and a write of one file exclude each other.
/// Life:    can be moved; its files and locks may outlive it.
class MemoryFileSystem final : public FileSystem {
public:
    explicit MemoryFileSystem(const MemoryOptions& = {});
    MemoryFileSystem(MemoryFileSystem&&) noexcept;
    MemoryFileSystem& operator=(MemoryFileSystem&&) noexcept;
    ~MemoryFileSystem() override;

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

    /// The disk grows or shrinks; what is on it stays.
    void set_capacity(std::int64_t bytes);

private:
    struct Tree;
    std::shared_ptr<Tree> tree_;
};

}  // namespace tidemark::io
