/// What a disk may hold after a power loss: the memory behind FaultyFileSystem, which says in its header what that is.
///
/// It keeps the present state of all files, and beside it what is certain: the names that directory syncs have covered,
/// the old content of each piece of a file that was changed since the file's last sync. restart() chooses between both.
///
///     file:       bytes now    |0......|1......|2..xxxx|3xxxxxx|4xxx      x: written since the last sync
///                 saved pieces                 |2..old.|3      |4         what the disk is sure to hold instead
///                 size         from the smallest to the largest it has had since the last sync
///     directory:  names for certain, and one list of pending changes (create, rename, remove) in the order they were made
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/memory_file_system.h"

namespace tidemark::io {

/// What becomes of the unsynced.
enum class Unsynced : std::uint8_t {
    lost,  ///< all of it is lost: the least that a disk may hold
    kept,  ///< all of it is kept: as after a killed process
    torn,  ///< part of it, chosen by the seed
};

struct AfterRestart {
    Unsynced unsynced = Unsynced::torn;
    std::uint64_t seed = 0;  ///< the same seed after the same calls gives the same disk
};

/// A file or directory of the model, whatever its names are.
struct DiskNode {
    explicit DiskNode(bool directory) : is_directory(directory) {}

    const bool is_directory;
    bool sync_failed = false;  ///< from then on no sync makes anything certain

    std::map<std::string, std::shared_ptr<DiskNode>, std::less<>> names;    ///< a directory's, as they are now
    std::map<std::string, std::shared_ptr<DiskNode>, std::less<>> certain;  ///< and as they are at least on disk

    std::vector<std::byte> bytes;                            ///< a file's, as they are now
    std::map<std::size_t, std::vector<std::byte>> saved;     ///< by number of the piece; short or empty at the old end
    std::size_t synced_size = 0;
    std::size_t size_min = 0;
    std::size_t size_max = 0;
    Timestamp modified{};
    Timestamp certain_modified{};
};

/// Preconditions: each change has succeeded on the file system that the model goes along with.
/// Threads: none; the caller holds a lock.
class DiskModel {
public:
    using Node = std::shared_ptr<DiskNode>;
    /// What is lost or kept in one.
    static constexpr std::size_t piece_bytes = 512;

    explicit DiskModel(Timestamp now);

    /// The file or directory of that path, or nullptr.
    Node find(const Path&) const;
    /// No change when it exists.
    Node create(const Path&, bool directory, Timestamp now);
    void rename(const Path& from, const Path& to);
    void remove(const Path&);
    void write(DiskNode&, std::size_t at, Bytes, Timestamp now);
    void resize(DiskNode&, std::size_t bytes, Timestamp now);
    void set_modified(DiskNode&, Timestamp);
    void sync(DiskNode& file);
    void sync_directory(const Node& directory);
    /// Everything there is becomes certain: what a disk holds that was mounted like this.
    void sync_all();

    MemoryFileSystem restart(const AfterRestart&, const Clock*) const;

private:
    /// A change of names that may or may not be on disk yet.
    struct Change {
        Node from, to;                     // directories; one is missing in a create and in a remove
        std::string from_name, to_name;
        Node node;                         // what was created, renamed or removed
        Node emptied;                      // a directory that the change removed or replaced
        bool decided = false;              // on disk for certain, though an earlier one may be pending
    };
    struct Place {
        Node directory;
        std::string name;
    };

    Place place(const Path&) const;
    void settle();
    std::vector<const Change*> kept_changes(const AfterRestart&) const;

    Node root_;
    std::deque<Change> pending_;
};

}  // namespace tidemark::io
