/// The system's files: what the daemon and the operator's tool run on.
///
/// File::sync() is fdatasync, read_if_cached() is preadv2 with RWF_NOWAIT (where a file system does not know that flag
/// nothing counts as cached), start_writeback() is sync_file_range, the other hints are posix_fadvise. An interrupted call
/// (EINTR) is repeated, except a sync: nobody can tell what a broken-off one has dropped.
///
/// New files have mode 0644 and directories 0755, less the umask. list() and status() follow symbolic links, as Kafka
/// does with a partition's directory that was moved to another disk.
///
/// lock() takes an open file description lock (F_OFD_SETLK): it belongs to the descriptor, not to the process, so closing
/// another descriptor of the same file does not drop it, a second lock() in this process is refused too, and Kafka's own
/// POSIX record lock on the same file conflicts with it.
#pragma once

#include "io/file_system.h"

namespace tidemark::io {

class PosixFileSystem final : public FileSystem {
public:
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
};

}  // namespace tidemark::io
