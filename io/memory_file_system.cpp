#include "io/memory_file_system.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/mutex.h"

namespace tidemark::io {
namespace {

/// Bytes that the files together hold; a file gives its own back when its last owner goes.
class Room {
public:
    Room(std::int64_t capacity, const Clock* clock) : capacity_(capacity), clock_(clock) {}

    /// Takes up to `bytes`; returns how many there were.
    std::int64_t take(std::int64_t bytes) {
        auto used = used_.load();
        for (;;) {
            const auto granted = std::clamp<std::int64_t>(capacity_.load() - used, 0, bytes);
            if (used_.compare_exchange_weak(used, used + granted)) return granted;
        }
    }
    void give_back(std::int64_t bytes) { used_ -= bytes; }
    void set_capacity(std::int64_t bytes) { capacity_ = bytes; }
    FileSystem::Space space() const {
        const auto capacity = capacity_.load();
        return {.total = capacity, .available = std::max<std::int64_t>(0, capacity - used_.load())};
    }
    Timestamp now() const { return clock_ != nullptr ? clock_->now() : SystemClock{}.now(); }

private:
    std::atomic<std::int64_t> used_{0};
    std::atomic<std::int64_t> capacity_;
    const Clock* const clock_;
};

/// A file or a directory, whatever its names are.
struct Node {
    Node(std::shared_ptr<Room> r, bool directory) : room(std::move(r)), is_directory(directory), modified(room->now()) {}
    ~Node() { room->give_back(static_cast<std::int64_t>(bytes.size())); }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    const std::shared_ptr<Room> room;
    const bool is_directory;
    std::map<std::string, std::shared_ptr<Node>, std::less<>> entries;  // a directory's; under the tree's mutex
    mutable Mutex mutex;
    std::vector<std::byte> bytes GUARDED_BY(mutex);
    Timestamp modified GUARDED_BY(mutex);
    bool locked GUARDED_BY(mutex) = false;
};

void touch(Node& node) {
    MutexLock lock(node.mutex);
    node.modified = node.room->now();
}

class MemoryFile final : public File {
public:
    MemoryFile(std::shared_ptr<Node> node, Path path, bool writable) : node_(std::move(node)), path_(std::move(path)), writable_(writable) {}

    Result<std::size_t> read(FilePosition at, MutableBytes into) const override {
        if (at.value < 0) return system_error(EINVAL, "read " + path_);
        MutexLock lock(node_->mutex);
        const auto from = std::min(node_->bytes.size(), static_cast<std::size_t>(at.value));
        const auto count = std::min(node_->bytes.size() - from, into.size());
        if (count > 0) std::memcpy(into.data(), node_->bytes.data() + from, count);
        return count;
    }

    Result<std::optional<std::size_t>> read_if_cached(FilePosition at, MutableBytes into) const override {
        TM_TRY(const auto count, read(at, into));
        return std::optional{count};
    }

    Result<> write(FilePosition at, Bytes from) override {
        if (!writable_) return system_error(EBADF, "write " + path_);
        if (at.value < 0) return system_error(EINVAL, "write " + path_);
        if (from.empty()) return {};
        MutexLock lock(node_->mutex);
        const auto end = at.value + static_cast<std::int64_t>(from.size());
        const auto reached = grow_to(end);
        const auto count = std::clamp<std::int64_t>(reached - at.value, 0, static_cast<std::int64_t>(from.size()));
        if (count > 0) std::memcpy(node_->bytes.data() + at.value, from.data(), static_cast<std::size_t>(count));
        node_->modified = node_->room->now();
        if (reached < end) return system_error(ENOSPC, "write " + path_ + " at " + std::to_string(at.value + count));
        return {};
    }

    Result<> resize(std::int64_t bytes) override {
        if (!writable_ || bytes < 0) return system_error(EINVAL, "resize " + path_);
        MutexLock lock(node_->mutex);
        const auto before = static_cast<std::int64_t>(node_->bytes.size());
        if (grow_to(bytes) < bytes) {
            shrink_to(before);
            return system_error(ENOSPC, "resize " + path_ + " to " + std::to_string(bytes));
        }
        shrink_to(bytes);
        node_->modified = node_->room->now();
        return {};
    }

    Result<std::int64_t> size() const override {
        MutexLock lock(node_->mutex);
        return static_cast<std::int64_t>(node_->bytes.size());
    }

    Result<> sync() override { return {}; }

private:
    /// Extends with zeros up to `end` or as far as there is room; returns the size that counts against `end`.
    std::int64_t grow_to(std::int64_t end) REQUIRES(node_->mutex) {
        const auto size = static_cast<std::int64_t>(node_->bytes.size());
        if (end <= size) return size;
        const auto reached = size + node_->room->take(end - size);
        node_->bytes.resize(static_cast<std::size_t>(reached));
        return reached;
    }

    void shrink_to(std::int64_t end) REQUIRES(node_->mutex) {
        const auto size = static_cast<std::int64_t>(node_->bytes.size());
        if (end >= size) return;
        node_->bytes.resize(static_cast<std::size_t>(end));
        node_->room->give_back(size - end);
    }

    const std::shared_ptr<Node> node_;
    const Path path_;
    const bool writable_;
};

class MemoryLock final : public Lock {
public:
    explicit MemoryLock(std::shared_ptr<Node> node) : node_(std::move(node)) {}
    ~MemoryLock() override {
        MutexLock lock(node_->mutex);
        node_->locked = false;
    }
private:
    const std::shared_ptr<Node> node_;
};

/// A name and the directory that holds it, or would.
struct Place {
    std::shared_ptr<Node> directory;
    std::string name;

    /// What the name stands for now, or nullptr.
    std::shared_ptr<Node> node() const {
        const auto found = directory->entries.find(name);
        return found == directory->entries.end() ? nullptr : found->second;
    }
};

bool holds(const Node& directory, const Node* node) {
    if (&directory == node) return true;
    return std::any_of(directory.entries.begin(), directory.entries.end(), [&](const auto& e) { return holds(*e.second, node); });
}

}  // namespace

struct MemoryFileSystem::Tree {
    explicit Tree(const MemoryOptions& options)
        : room(std::make_shared<Room>(options.capacity_bytes, options.clock)), root(std::make_shared<Node>(room, true)) {}

    /// The file or directory of that path, or nullptr.
    std::shared_ptr<Node> find(const Path& path) const REQUIRES(mutex) {
        auto node = root;
        for (const auto& part : parts_of(path)) {
            const auto found = node->entries.find(part);
            if (found == node->entries.end()) return nullptr;
            node = found->second;
        }
        return node;
    }

    /// Errc::not_found unless the directory is there. The root has no place.
    Result<Place> place(const Path& path, std::string_view verb) const REQUIRES(mutex) {
        auto parts = parts_of(path);
        const auto what = [&] { return std::string(verb) + " " + path; };
        if (parts.empty()) return system_error(EBUSY, what());
        Place place{root, std::move(parts.back())};
        parts.pop_back();
        for (const auto& part : parts) {
            const auto found = place.directory->entries.find(part);
            if (found == place.directory->entries.end()) return system_error(ENOENT, what());
            place.directory = found->second;
        }
        if (!place.directory->is_directory) return system_error(ENOTDIR, what());
        return place;
    }

    std::shared_ptr<Node> add(const Place& place, bool directory) REQUIRES(mutex) {
        auto node = std::make_shared<Node>(room, directory);
        place.directory->entries.emplace(place.name, node);
        touch(*place.directory);
        return node;
    }

    void erase(const Place& place) REQUIRES(mutex) {
        place.directory->entries.erase(place.name);
        touch(*place.directory);
    }

    mutable Mutex mutex;  // before any node's
    const std::shared_ptr<Room> room;
    const std::shared_ptr<Node> root;
};

MemoryFileSystem::MemoryFileSystem(const MemoryOptions& options) : tree_(std::make_shared<Tree>(options)) {}
MemoryFileSystem::MemoryFileSystem(MemoryFileSystem&&) noexcept = default;
MemoryFileSystem& MemoryFileSystem::operator=(MemoryFileSystem&&) noexcept = default;
MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::unique_ptr<File>> MemoryFileSystem::open(const Path& path, OpenMode mode) {
    MutexLock lock(tree_->mutex);
    const bool may_create = mode != OpenMode::read && mode != OpenMode::read_write;
    TM_TRY(const auto place, tree_->place(path, "open"));
    auto node = place.node();
    if (node == nullptr && !may_create) return system_error(ENOENT, "open " + path);
    if (node != nullptr && mode == OpenMode::create_new) return system_error(EEXIST, "open " + path);
    if (node != nullptr && node->is_directory) return system_error(EISDIR, "open " + path);
    if (node == nullptr) node = tree_->add(place, false);
    auto file = std::make_unique<MemoryFile>(node, path, mode != OpenMode::read);
    if (mode == OpenMode::create_truncated) TM_TRYV(file->resize(0));
    return std::unique_ptr<File>(std::move(file));
}

Result<std::optional<FileStatus>> MemoryFileSystem::status(const Path& path) const {
    MutexLock lock(tree_->mutex);
    const auto node = tree_->find(path);
    if (node == nullptr) return std::optional<FileStatus>{};
    MutexLock node_lock(node->mutex);
    return std::optional(FileStatus{.bytes = static_cast<std::int64_t>(node->bytes.size()), .modified = node->modified, .is_directory = node->is_directory, .changed = node->modified});
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const Path& directory) const {
    MutexLock lock(tree_->mutex);
    const auto node = tree_->find(directory);
    if (node == nullptr) return system_error(ENOENT, "list " + directory);
    if (!node->is_directory) return system_error(ENOTDIR, "list " + directory);
    std::vector<DirectoryEntry> entries;
    for (const auto& [name, child] : node->entries) entries.push_back({name, child->is_directory});
    return entries;
}

Result<> MemoryFileSystem::create_directory(const Path& path) {
    MutexLock lock(tree_->mutex);
    if (const auto there = tree_->find(path); there != nullptr) {
        return there->is_directory ? Result<>{} : system_error(EEXIST, "create directory " + path);
    }
    TM_TRY(const auto place, tree_->place(path, "create directory"));
    tree_->add(place, true);
    return {};
}

Result<> MemoryFileSystem::rename(const Path& from, const Path& to) {
    const auto refuse = [&](int error) { return system_error(error, "rename " + from + " to " + to); };
    MutexLock lock(tree_->mutex);
    TM_TRY(const auto source, tree_->place(from, "rename"));
    TM_TRY(const auto target, tree_->place(to, "rename to"));
    const auto node = source.node();
    if (node == nullptr) return refuse(ENOENT);
    const auto replaced = target.node();
    if (replaced == node) return {};
    if (node->is_directory && holds(*node, target.directory.get())) return refuse(EINVAL);
    if (replaced != nullptr) {
        if (replaced->is_directory && !node->is_directory) return refuse(EISDIR);
        if (!replaced->is_directory && node->is_directory) return refuse(ENOTDIR);
        if (!replaced->entries.empty()) return refuse(ENOTEMPTY);
    }
    tree_->erase(source);
    target.directory->entries[target.name] = node;
    touch(*target.directory);
    return {};
}

Result<> MemoryFileSystem::remove(const Path& file) {
    MutexLock lock(tree_->mutex);
    TM_TRY(const auto place, tree_->place(file, "remove"));
    const auto node = place.node();
    if (node == nullptr) return system_error(ENOENT, "remove " + file);
    if (node->is_directory) return system_error(EISDIR, "remove " + file);
    tree_->erase(place);
    return {};
}

Result<> MemoryFileSystem::remove_directory(const Path& path) {
    MutexLock lock(tree_->mutex);
    TM_TRY(const auto place, tree_->place(path, "remove directory"));
    const auto node = place.node();
    if (node == nullptr) return system_error(ENOENT, "remove directory " + path);
    if (!node->is_directory) return system_error(ENOTDIR, "remove directory " + path);
    if (!node->entries.empty()) return system_error(ENOTEMPTY, "remove directory " + path);
    tree_->erase(place);
    return {};
}

Result<> MemoryFileSystem::sync_directory(const Path& path) {
    MutexLock lock(tree_->mutex);
    const auto node = tree_->find(path);
    if (node == nullptr) return system_error(ENOENT, "sync directory " + path);
    if (!node->is_directory) return system_error(ENOTDIR, "sync directory " + path);
    return {};
}

Result<> MemoryFileSystem::set_modified(const Path& path, Timestamp modified) {
    MutexLock lock(tree_->mutex);
    const auto node = tree_->find(path);
    if (node == nullptr) return system_error(ENOENT, "set time of " + path);
    MutexLock node_lock(node->mutex);
    node->modified = modified;
    return {};
}

Result<std::unique_ptr<Lock>> MemoryFileSystem::lock(const Path& file) {
    MutexLock lock(tree_->mutex);
    TM_TRY(const auto place, tree_->place(file, "lock"));
    auto node = place.node();
    if (node == nullptr) node = tree_->add(place, false);
    if (node->is_directory) return system_error(EISDIR, "lock " + file);
    MutexLock node_lock(node->mutex);
    if (node->locked) return Error{Errc::locked, file + ": another one has it"};
    node->locked = true;
    return std::unique_ptr<Lock>(std::make_unique<MemoryLock>(node));
}

Result<FileSystem::Space> MemoryFileSystem::space(const Path& directory) const {
    MutexLock lock(tree_->mutex);
    if (tree_->find(directory) == nullptr) return system_error(ENOENT, "space of " + directory);
    return tree_->room->space();
}

void MemoryFileSystem::set_capacity(std::int64_t bytes) { tree_->room->set_capacity(bytes); }

}  // namespace tidemark::io
