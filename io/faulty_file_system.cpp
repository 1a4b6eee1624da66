#include "io/faulty_file_system.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/mutex.h"

namespace tidemark::io {

const char* to_string(Operation operation) noexcept {
    switch (operation) {
        case Operation::read: return "read";
        case Operation::write: return "write";
        case Operation::resize: return "resize";
        case Operation::sync: return "sync";
        case Operation::create: return "create";
        case Operation::rename: return "rename";
        case Operation::remove: return "remove";
        case Operation::sync_directory: return "sync_directory";
        case Operation::set_modified: return "set_modified";
    }
    return "unknown";
}

std::string Call::text() const {
    std::string text = std::string(to_string(operation)) + " " + path;
    switch (operation) {
        case Operation::read:
        case Operation::write: return text + " at " + std::to_string(at.value) + " +" + std::to_string(bytes);
        case Operation::resize: return text + " to " + std::to_string(bytes);
        case Operation::rename: return text + " to " + to;
        default: return text;
    }
}

namespace {

/// What is to become of a call.
enum class Verdict : std::uint8_t { pass, fail, lose_power };

/// What a call works on, for as long as it holds the lock.
struct Disk {
    FileSystem& below;
    DiskModel* model;  // nullptr when the disk stands on another file system
    Timestamp now;
};

/// How a call is done, below and in the model.
struct Effect {
    std::function<Result<>(const Disk&)> whole;
    std::function<void(const Disk&)> half = {};         ///< a write's first half, for Fault::short_write
    std::function<void(const Disk&)> sync_failed = {};  ///< only a sync has this
};

/// A copy of everything that `from` holds below `path`.
void copy_into(DiskModel& model, const FileSystem& names, FileSystem& files, const Path& path) {
    const auto entries = names.list(path);
    TM_ASSERT(entries.has_value());
    for (const auto& entry : *entries) {
        const auto child = join(path, entry.name);
        const auto status = names.status(child);
        TM_ASSERT(status.has_value() && status->has_value());
        const auto node = model.create(child, entry.is_directory, (*status)->modified);
        if (entry.is_directory) {
            copy_into(model, names, files, child);
            continue;
        }
        const auto content = read_whole(files, child);
        TM_ASSERT(content.has_value());
        model.write(*node, 0, *content, (*status)->modified);
    }
}

}  // namespace

class FaultyFileSystem::State {
public:
    State(FaultOptions options, std::unique_ptr<MemoryFileSystem> own, FileSystem* below)
        : own_(std::move(own)), below_(own_ != nullptr ? own_.get() : below), options_(std::move(options)) {
        if (own_ == nullptr) return;
        model_.emplace(now());
        copy_into(*model_, *below_, *below_, "/");
        model_->sync_all();
    }

    FileSystem& below() const { return *below_; }

    /// Errc::io once the power is lost.
    Result<> powered() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return power_lost_ ? off() : Result<>{};
    }

    /// Lets a call that changes something happen, or fail; see the header.
    Result<> run(Call call, const Effect& effect) EXCLUDES(mutex_) {
        TM_TRY(const auto admitted, admit(call));
        if (admitted.before) admitted.before(call);
        const auto result = perform(call, admitted, effect);
        if (admitted.after) admitted.after(call, result);
        return result;
    }

    /// The same for a read, which is neither seen nor counted unless somebody asked for it.
    Result<> run_read(const Path& path, FilePosition at, std::size_t bytes, const std::function<Result<>()>& read) EXCLUDES(mutex_) {
        Call call{.operation = Operation::read, .path = path, .at = at, .bytes = static_cast<std::int64_t>(bytes)};
        const bool watched = [&] {
            MutexLock lock(mutex_);
            return options_.counted && options_.counted(call);
        }();
        if (watched) return run(std::move(call), Effect{.whole = [&](const Disk&) { return read(); }});
        TM_TRYV(powered());
        return read();
    }

    /// For what changes nothing that the disk could forget.
    Result<> run_unseen(const std::function<Result<>(const Disk&)>& whole) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        if (power_lost_) return off();
        return whole(disk());
    }

    bool nothing_cached() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return options_.nothing_cached;
    }
    bool tripped() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return tripped_;
    }
    int calls() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return counted_;
    }
    void inject(FaultOptions options) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        TM_ASSERT(!power_lost_);
        options_ = std::move(options);
        counted_ = 0;
    }
    MemoryFileSystem after_restart(const AfterRestart& how) const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        TM_ASSERT(model_.has_value());
        return model_->restart(how, options_.clock);
    }

private:
    struct Admitted {
        Verdict verdict;
        Fault fault;
        std::function<void(const Call&)> before;
        std::function<void(const Call&, const Result<>&)> after;
    };

    Timestamp now() const REQUIRES(mutex_) { return options_.clock != nullptr ? options_.clock->now() : SystemClock{}.now(); }
    Disk disk() REQUIRES(mutex_) { return {.below = *below_, .model = model_ ? &*model_ : nullptr, .now = now()}; }
    static Error off() { return system_error(EIO, "the power is lost"); }

    /// Numbers the call and decides about it.
    Result<Admitted> admit(Call& call) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        if (power_lost_) return off();
        Admitted admitted{.verdict = Verdict::pass, .fault = options_.fault, .before = options_.before, .after = options_.after};
        if (options_.counted && !options_.counted(call)) return admitted;
        call.number = counted_++;
        if (call.number == options_.lose_power_at) {
            admitted.verdict = Verdict::lose_power;
        } else if (options_.fail_at && call.number >= *options_.fail_at && call.number - *options_.fail_at < options_.fail_calls) {
            admitted.verdict = Verdict::fail;
        }
        return admitted;
    }

    Result<> perform(const Call& call, const Admitted& admitted, const Effect& effect) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        if (power_lost_) return off();
        if (admitted.verdict == Verdict::pass) return effect.whole(disk());
        tripped_ = true;
        if (admitted.verdict == Verdict::lose_power) {
            // The change may have reached the disk: it is done, and stays unsynced. A sync has covered nothing yet.
            if (!effect.sync_failed) static_cast<void>(effect.whole(disk()));
            power_lost_ = true;
            return off();
        }
        if (effect.sync_failed) effect.sync_failed(disk());
        if (effect.half && admitted.fault == Fault::short_write) effect.half(disk());
        auto error = system_error(admitted.fault == Fault::io_error ? EIO : ENOSPC, call.text());
        if (effect.sync_failed) error.code = Errc::io;   // as the real one does
        return error;
    }

    mutable Mutex mutex_;
    const std::unique_ptr<MemoryFileSystem> own_;
    FileSystem* const below_;
    FaultOptions options_ GUARDED_BY(mutex_);
    std::optional<DiskModel> model_ GUARDED_BY(mutex_);
    int counted_ GUARDED_BY(mutex_) = 0;
    bool power_lost_ GUARDED_BY(mutex_) = false;
    bool tripped_ GUARDED_BY(mutex_) = false;
};

class FaultyFileSystem::FaultyFile final : public File {
public:
    FaultyFile(std::shared_ptr<State> state, std::unique_ptr<File> below, DiskModel::Node node, Path path)
        : state_(std::move(state)), below_(std::move(below)), node_(std::move(node)), path_(std::move(path)) {}

    Result<std::size_t> read(FilePosition at, MutableBytes into) const override {
        std::size_t got = 0;
        TM_TRYV(state_->run_read(path_, at, into.size(), [&]() -> Result<> {
            TM_TRY(got, below_->read(at, into));
            return {};
        }));
        return got;
    }

    Result<std::optional<std::size_t>> read_if_cached(FilePosition at, MutableBytes into) const override {
        std::optional<std::size_t> got;
        const bool cold = state_->nothing_cached();
        TM_TRYV(state_->run_read(path_, at, into.size(), [&]() -> Result<> {
            if (cold) return {};
            TM_TRY(got, below_->read_if_cached(at, into));
            return {};
        }));
        return got;
    }

    Result<> write(FilePosition at, Bytes from) override {
        const auto put_half = [&](const Disk& disk) { static_cast<void>(put(disk, at, from.first(from.size() / 2))); };
        return state_->run({.operation = Operation::write, .path = path_, .at = at, .bytes = static_cast<std::int64_t>(from.size()), .data = from},
                           {.whole = [&](const Disk& disk) { return put(disk, at, from); }, .half = put_half});
    }

    Result<> resize(std::int64_t bytes) override {
        return state_->run({.operation = Operation::resize, .path = path_, .bytes = bytes}, {.whole = [&](const Disk& disk) -> Result<> {
            TM_TRYV(below_->resize(bytes));
            if (disk.model != nullptr) disk.model->resize(*node_, static_cast<std::size_t>(bytes), disk.now);
            return {};
        }});
    }

    Result<> sync() override {
        const auto failed = [&](const Disk& disk) {
            if (disk.model != nullptr) node_->sync_failed = true;
        };
        const auto whole = [&](const Disk& disk) {
            auto synced = below_->sync();
            if (!synced) failed(disk);
            if (disk.model != nullptr) disk.model->sync(*node_);
            return synced;
        };
        return state_->run({.operation = Operation::sync, .path = path_}, {.whole = whole, .sync_failed = failed});
    }

    Result<std::int64_t> size() const override {
        TM_TRYV(state_->powered());
        return below_->size();
    }

    void start_writeback() override { below_->start_writeback(); }
    void drop_cached(FilePosition at, std::int64_t bytes) const override { below_->drop_cached(at, bytes); }
    void will_read_sequentially() const override { below_->will_read_sequentially(); }
    int descriptor() const override { return below_->descriptor(); }

private:
    /// Writes, and lets the model know how far it came.
    Result<> put(const Disk& disk, FilePosition at, Bytes from) {
        auto written = below_->write(at, from);
        auto reached = from.size();
        if (!written) {
            const auto size = below_->size();
            reached = size ? static_cast<std::size_t>(std::clamp<std::int64_t>(*size - at.value, 0, static_cast<std::int64_t>(from.size()))) : 0;
        }
        if (disk.model != nullptr) disk.model->write(*node_, static_cast<std::size_t>(at.value), from.first(reached), disk.now);
        return written;
    }

    const std::shared_ptr<State> state_;
    const std::unique_ptr<File> below_;
    const DiskModel::Node node_;  // nullptr without a model
    const Path path_;
};

FaultyFileSystem::FaultyFileSystem(FaultOptions options) {
    auto disk = std::make_unique<MemoryFileSystem>(MemoryOptions{.clock = options.clock});
    state_ = std::make_shared<State>(std::move(options), std::move(disk), nullptr);
}
FaultyFileSystem::FaultyFileSystem(FaultOptions options, MemoryFileSystem start)
    : state_(std::make_shared<State>(std::move(options), std::make_unique<MemoryFileSystem>(std::move(start)), nullptr)) {}
FaultyFileSystem::FaultyFileSystem(FaultOptions options, FileSystem& below) : state_(std::make_shared<State>(std::move(options), nullptr, &below)) {}
FaultyFileSystem::~FaultyFileSystem() = default;

bool FaultyFileSystem::tripped() const { return state_->tripped(); }
int FaultyFileSystem::calls() const { return state_->calls(); }
void FaultyFileSystem::inject(FaultOptions options) { state_->inject(std::move(options)); }
MemoryFileSystem FaultyFileSystem::after_restart(const AfterRestart& how) const { return state_->after_restart(how); }

Result<std::unique_ptr<File>> FaultyFileSystem::open(const Path& path, OpenMode mode) {
    TM_TRYV(state_->powered());
    TM_TRY(const auto status, state_->below().status(path));
    const bool creates = !status && mode != OpenMode::read && mode != OpenMode::read_write;
    const bool empties = status && mode == OpenMode::create_truncated;

    std::unique_ptr<File> file;
    DiskModel::Node node;
    const auto open_below = [&](const Disk& disk) -> Result<> {
        TM_TRY(file, disk.below.open(path, mode));
        if (disk.model == nullptr) return {};
        node = disk.model->create(path, false, disk.now);  // finds it when it is there
        if (empties) disk.model->resize(*node, 0, disk.now);
        return {};
    };
    if (creates || empties) {
        TM_TRYV(state_->run({.operation = creates ? Operation::create : Operation::resize, .path = path}, {.whole = open_below}));
    } else {
        TM_TRYV(state_->run_unseen(open_below));
    }
    return std::unique_ptr<File>(std::make_unique<FaultyFile>(state_, std::move(file), std::move(node), path));
}

Result<std::optional<FileStatus>> FaultyFileSystem::status(const Path& path) const {
    TM_TRYV(state_->powered());
    return state_->below().status(path);
}

Result<std::vector<DirectoryEntry>> FaultyFileSystem::list(const Path& directory) const {
    TM_TRYV(state_->powered());
    return state_->below().list(directory);
}

Result<> FaultyFileSystem::create_directory(const Path& path) {
    TM_TRYV(state_->powered());
    TM_TRY(const auto status, state_->below().status(path));
    if (status) return state_->below().create_directory(path);  // changes nothing
    return state_->run({.operation = Operation::create, .path = path}, {.whole = [&](const Disk& disk) -> Result<> {
        TM_TRYV(disk.below.create_directory(path));
        if (disk.model != nullptr) disk.model->create(path, true, disk.now);
        return {};
    }});
}

Result<> FaultyFileSystem::rename(const Path& from, const Path& to) {
    return state_->run({.operation = Operation::rename, .path = from, .to = to}, {.whole = [&](const Disk& disk) -> Result<> {
        TM_TRYV(disk.below.rename(from, to));
        if (disk.model != nullptr) disk.model->rename(from, to);
        return {};
    }});
}

Result<> FaultyFileSystem::remove(const Path& file) {
    return state_->run({.operation = Operation::remove, .path = file}, {.whole = [&](const Disk& disk) -> Result<> {
        TM_TRYV(disk.below.remove(file));
        if (disk.model != nullptr) disk.model->remove(file);
        return {};
    }});
}

Result<> FaultyFileSystem::remove_directory(const Path& path) {
    return state_->run({.operation = Operation::remove, .path = path}, {.whole = [&](const Disk& disk) -> Result<> {
        TM_TRYV(disk.below.remove_directory(path));
        if (disk.model != nullptr) disk.model->remove(path);
        return {};
    }});
}

Result<> FaultyFileSystem::sync_directory(const Path& path) {
    const auto failed = [&](const Disk& disk) {
        const auto node = disk.model != nullptr ? disk.model->find(path) : nullptr;
        if (node != nullptr) node->sync_failed = true;
    };
    const auto whole = [&](const Disk& disk) -> Result<> {
        auto synced = disk.below.sync_directory(path);
        if (!synced) failed(disk);
        if (synced && disk.model != nullptr) disk.model->sync_directory(disk.model->find(path));
        return synced;
    };
    return state_->run({.operation = Operation::sync_directory, .path = path}, {.whole = whole, .sync_failed = failed});
}

Result<> FaultyFileSystem::set_modified(const Path& path, Timestamp modified) {
    return state_->run({.operation = Operation::set_modified, .path = path}, {.whole = [&](const Disk& disk) -> Result<> {
        TM_TRYV(disk.below.set_modified(path, modified));
        if (disk.model != nullptr) disk.model->set_modified(*disk.model->find(path), modified);
        return {};
    }});
}

Result<std::unique_ptr<Lock>> FaultyFileSystem::lock(const Path& file) {
    TM_TRYV(state_->powered());
    TM_TRY(const auto status, state_->below().status(file));
    std::unique_ptr<Lock> lock;
    const auto take = [&](const Disk& disk) -> Result<> {
        TM_TRY(lock, disk.below.lock(file));
        if (disk.model != nullptr) disk.model->create(file, false, disk.now);
        return {};
    };
    TM_TRYV(status ? state_->run_unseen(take) : state_->run({.operation = Operation::create, .path = file}, {.whole = take}));
    return lock;
}

Result<FileSystem::Space> FaultyFileSystem::space(const Path& directory) const {
    TM_TRYV(state_->powered());
    return state_->below().space(directory);
}

}  // namespace tidemark::io
