// Which of the pending changes of names are on disk:
//
// 1. A directory sync decides the changes that made or removed a name in that directory; for a rename the new name counts.
// 2. Going backwards, a decided change decides the earlier ones that it rests on: those of the same name, and, when it
//    removed a directory, those inside of it.
// 3. The decided ones at the front of the list are done on the certain names and forgotten.
// 4. At a restart the list is gone through forwards: a change that is not decided is kept when the seed says so and when
//    everything that it rests on has been kept.

#include "io/disk_model.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "base/assert.h"

namespace tidemark::io {
namespace {

using Node = DiskModel::Node;
constexpr std::size_t piece_bytes = DiskModel::piece_bytes;

/// The names and directories that changes rest on.
struct Touched {
    std::set<std::pair<const DiskNode*, std::string>> names;
    std::set<const DiskNode*> directories;

    void add(const Node& directory, const std::string& name) {
        if (directory == nullptr) return;
        names.emplace(directory.get(), name);
        directories.insert(directory.get());
    }
    bool has(const Node& directory, const std::string& name) const {
        return directory != nullptr && names.contains({directory.get(), name});
    }
    bool has(const Node& directory) const { return directory != nullptr && directories.contains(directory.get()); }
};

/// Remembers what the disk holds of the piece before it changes.
void save(DiskNode& file, std::size_t piece) {
    const auto from = std::min(piece * piece_bytes, file.bytes.size());
    const auto to = std::min(from + piece_bytes, file.bytes.size());
    const auto at = [&](std::size_t n) { return file.bytes.begin() + static_cast<std::ptrdiff_t>(n); };
    if (!file.saved.contains(piece)) file.saved.emplace(piece, std::vector<std::byte>(at(from), at(to)));
}

void resized(DiskNode& file, std::size_t bytes) {
    file.bytes.resize(bytes);
    file.size_min = std::min(file.size_min, bytes);
    file.size_max = std::max(file.size_max, bytes);
}

/// A coin whose weight the seed chooses too, so that some disks lose nearly everything and some nearly nothing.
class Coin {
public:
    explicit Coin(const AfterRestart& how) : how_(how), random_(how.seed), weight_(random_() % 7 + 1) {}
    bool kept() {
        if (how_.unsynced != Unsynced::torn) return how_.unsynced == Unsynced::kept;
        return random_() % 8 < weight_;
    }
    /// Between both, and each end often.
    std::size_t between(std::size_t low, std::size_t high) {
        switch (random_() % 4) {
            case 0: return low;
            case 1: return high;
            default: return low + random_() % (high - low + 1);
        }
    }
    Unsynced unsynced() const { return how_.unsynced; }
private:
    const AfterRestart how_;
    std::mt19937_64 random_;
    const std::uint64_t weight_;
};

std::size_t size_on_disk(const DiskNode& file, Coin& coin) {
    switch (coin.unsynced()) {
        case Unsynced::lost: return file.synced_size;
        case Unsynced::kept: return file.bytes.size();
        case Unsynced::torn: return coin.between(file.size_min, file.size_max);
    }
    return file.bytes.size();
}

std::vector<std::byte> content_on_disk(const DiskNode& file, Coin& coin) {
    auto content = file.bytes;
    content.resize(std::max(file.size_max, content.size()));
    for (const auto& [piece, old] : file.saved) {
        const auto from = piece * piece_bytes;
        // Of what was cut off there is no newer content than the old one.
        if (coin.kept() && from < file.bytes.size()) continue;
        const auto to = std::min(from + piece_bytes, content.size());
        for (auto at = from; at < to; ++at) content[at] = at - from < old.size() ? old[at - from] : std::byte{0};
    }
    content.resize(size_on_disk(file, coin));
    return content;
}

template <class T>
T must(Result<T> result) {
    TM_ASSERT(result.has_value());
    return *std::move(result);
}
void must(Result<> result) { TM_ASSERT(result.has_value()); }

}  // namespace

DiskModel::DiskModel(Timestamp now) : root_(std::make_shared<DiskNode>(true)) { root_->modified = now; }

Node DiskModel::find(const Path& path) const {
    Node node = root_;
    for (const auto& part : parts_of(path)) {
        const auto found = node->names.find(part);
        if (found == node->names.end()) return nullptr;
        node = found->second;
    }
    return node;
}

DiskModel::Place DiskModel::place(const Path& path) const {
    const auto parts = parts_of(path);
    TM_ASSERT(!parts.empty());
    Node directory = root_;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto found = directory->names.find(parts[i]);
        TM_ASSERT(found != directory->names.end());
        directory = found->second;
    }
    return {directory, parts.back()};
}

Node DiskModel::create(const Path& path, bool directory, Timestamp now) {
    if (auto there = find(path)) return there;
    const auto at = place(path);
    auto node = std::make_shared<DiskNode>(directory);
    node->modified = node->certain_modified = now;
    at.directory->names.emplace(at.name, node);
    pending_.push_back({.from = nullptr, .to = at.directory, .from_name = {}, .to_name = at.name, .node = node, .emptied = nullptr});
    return node;
}

void DiskModel::rename(const Path& from, const Path& to) {
    const auto source = place(from);
    const auto target = place(to);
    const auto node = find(from);
    const auto replaced = find(to);
    TM_ASSERT(node != nullptr);
    if (node == replaced) return;
    source.directory->names.erase(source.name);
    target.directory->names[target.name] = node;
    pending_.push_back({.from = source.directory, .to = target.directory, .from_name = source.name, .to_name = target.name, .node = node,
                        .emptied = replaced != nullptr && replaced->is_directory ? replaced : nullptr});
}

void DiskModel::remove(const Path& path) {
    const auto at = place(path);
    const auto node = find(path);
    TM_ASSERT(node != nullptr && node->names.empty());
    at.directory->names.erase(at.name);
    pending_.push_back({.from = at.directory, .to = nullptr, .from_name = at.name, .to_name = {}, .node = node,
                        .emptied = node->is_directory ? node : nullptr});
}

void DiskModel::write(DiskNode& file, std::size_t at, Bytes from, Timestamp now) {
    if (from.empty()) return;
    const auto end = at + from.size();
    for (auto piece = at / piece_bytes; piece * piece_bytes < end; ++piece) save(file, piece);
    if (end > file.bytes.size()) resized(file, end);
    std::copy(from.begin(), from.end(), file.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    file.modified = now;
}

void DiskModel::resize(DiskNode& file, std::size_t bytes, Timestamp now) {
    // What lies beyond the synced size and is not among the saved pieces is zeros: nothing to remember.
    for (auto piece = bytes / piece_bytes; piece * piece_bytes < std::min(file.bytes.size(), file.synced_size); ++piece) save(file, piece);
    resized(file, bytes);
    file.modified = now;
}

void DiskModel::set_modified(DiskNode& node, Timestamp modified) { node.modified = modified; }

void DiskModel::sync(DiskNode& file) {
    if (file.sync_failed) return;
    file.saved.clear();
    if (file.synced_size != file.bytes.size()) file.certain_modified = file.modified;  // fdatasync writes the inode for the size only
    file.synced_size = file.size_min = file.size_max = file.bytes.size();
}

void DiskModel::sync_directory(const Node& directory) {
    if (directory->sync_failed) return;
    for (auto& change : pending_) {
        if ((change.to != nullptr ? change.to : change.from) == directory) change.decided = true;
    }
    settle();
}

void DiskModel::settle() {
    Touched decided;
    std::set<const DiskNode*> emptied;
    for (auto change = pending_.rbegin(); change != pending_.rend(); ++change) {
        change->decided = change->decided || decided.has(change->from, change->from_name) || decided.has(change->to, change->to_name) ||
                          emptied.contains(change->from.get()) || emptied.contains(change->to.get());
        if (!change->decided) continue;
        decided.add(change->from, change->from_name);
        decided.add(change->to, change->to_name);
        if (change->emptied != nullptr) emptied.insert(change->emptied.get());
    }
    for (; !pending_.empty() && pending_.front().decided; pending_.pop_front()) {
        const auto& change = pending_.front();
        if (change.from != nullptr) change.from->certain.erase(change.from_name);
        if (change.to != nullptr) change.to->certain[change.to_name] = change.node;
    }
}

void DiskModel::sync_all() {
    for (auto& change : pending_) change.decided = true;
    settle();
    std::vector<Node> open{root_};
    while (!open.empty()) {
        const auto node = std::move(open.back());
        open.pop_back();
        if (!node->is_directory) sync(*node);
        node->certain_modified = node->modified;
        for (const auto& [name, child] : node->names) open.push_back(child);
    }
}

std::vector<const DiskModel::Change*> DiskModel::kept_changes(const AfterRestart& how) const {
    Coin coin(how);
    Touched dropped;
    std::vector<const Change*> kept;
    for (const auto& change : pending_) {
        const bool rests_on_dropped =
            dropped.has(change.from, change.from_name) || dropped.has(change.to, change.to_name) || dropped.has(change.emptied);
        const bool chosen = coin.kept();
        if (change.decided || (chosen && !rests_on_dropped)) {
            kept.push_back(&change);
        } else {
            dropped.add(change.from, change.from_name);
            dropped.add(change.to, change.to_name);
        }
    }
    return kept;
}

MemoryFileSystem DiskModel::restart(const AfterRestart& how, const Clock* clock) const {
    // The certain names of each directory that differs from them.
    std::map<const DiskNode*, decltype(DiskNode::certain)> changed;
    const auto names_of = [&](const Node& directory) -> auto& { return changed.try_emplace(directory.get(), directory->certain).first->second; };
    for (const auto* change : kept_changes(how)) {
        if (change->from != nullptr) names_of(change->from).erase(change->from_name);
        if (change->to != nullptr) names_of(change->to)[change->to_name] = change->node;
    }

    Coin coin(how);
    MemoryFileSystem disk({.clock = clock});
    const auto put_file = [&](const Path& path, const DiskNode& node) {
        const auto file = must(disk.open(path, OpenMode::create_new));
        must(file->write(FilePosition{0}, content_on_disk(node, coin)));
        must(disk.set_modified(path, coin.kept() ? node.modified : node.certain_modified));
    };
    const auto put_directory = [&](const auto& self, const Path& path, const Node& directory) -> void {
        for (const auto& [name, node] : names_of(directory)) {
            const auto child = join(path, name);
            if (!node->is_directory) {
                put_file(child, *node);
                continue;
            }
            must(disk.create_directory(child));
            self(self, child, node);
        }
    };
    put_directory(put_directory, "/", root_);
    return disk;
}

}  // namespace tidemark::io
