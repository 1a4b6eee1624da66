#include "storage/log_directory.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/log.h"
#include "base/thread.h"
#include "storage/directory_names.h"

namespace tidemark::storage {
namespace {

using namespace std::chrono_literals;

constexpr auto background_pause = 1000ms;  // how late delayed work may be after the machine slept
constexpr std::size_t zeros_bytes = 64 * 1024;

}  // namespace

/// A few threads that sync different files at the same time: the device does them together.
class LogDirectory::SyncPool {
public:
    explicit SyncPool(int helpers) {
        for (int i = 0; i < helpers; ++i) {
            threads_.emplace_back([this](std::stop_token stop) { help(stop); });
        }
    }
    ~SyncPool() {
        for (auto& thread : threads_) thread.request_stop();
        {
            MutexLock lock(mutex_);
            stopping_ = true;
        }
        work_wanted_.notify_all();
    }

    /// Calls work(0) … work(n − 1), several at a time; returns when all have returned.
    void run(std::size_t n, const std::function<void(std::size_t)>& work) {
        {
            MutexLock lock(mutex_);
            work_ = &work;
            next_ = 0;
            count_ = n;
            unfinished_ = n;
        }
        work_wanted_.notify_all();
        while (take_one()) {}
        MutexLock lock(mutex_);
        while (unfinished_ > 0) all_done_.wait(mutex_);
        work_ = nullptr;
    }

private:
    bool take_one() {
        const std::function<void(std::size_t)>* work = nullptr;
        std::size_t mine = 0;
        {
            MutexLock lock(mutex_);
            if (work_ == nullptr || next_ == count_) return false;
            work = work_;
            mine = next_++;
        }
        (*work)(mine);
        MutexLock lock(mutex_);
        if (--unfinished_ == 0) all_done_.notify_all();
        return true;
    }
    void help(const std::stop_token& stop) {
        name_this_thread("sync-helper");
        while (!stop.stop_requested()) {
            if (take_one()) continue;
            MutexLock lock(mutex_);
            while (!stopping_ && (work_ == nullptr || next_ == count_)) work_wanted_.wait(mutex_);
        }
    }

    Mutex mutex_;
    Condition work_wanted_;
    Condition all_done_;
    const std::function<void(std::size_t)>* work_ GUARDED_BY(mutex_) = nullptr;
    std::size_t next_ GUARDED_BY(mutex_) = 0;
    std::size_t count_ GUARDED_BY(mutex_) = 0;
    std::size_t unfinished_ GUARDED_BY(mutex_) = 0;
    bool stopping_ GUARDED_BY(mutex_) = false;
    std::vector<std::jthread> threads_;
};

LogDirectory::LogDirectory(io::FileSystem& files, const Clock& clock, io::Path path, const StorageOptions& options)
    : files_(files), clock_(clock), path_(std::move(path)), options_(options), open_files_(std::make_shared<OpenFiles>(files)) {}

LogDirectory::~LogDirectory() { stop(); }

Uuid LogDirectory::id() const {
    MutexLock lock(mutex_);
    return id_;
}

void LogDirectory::set_id(Uuid id) {
    MutexLock lock(mutex_);
    id_ = id;
}

Result<> LogDirectory::lock() {
    auto taken = files_.lock(io::join(path_, file_name::lock));
    if (!taken) return std::move(taken).error();
    MutexLock guard(mutex_);
    lock_ = *std::move(taken);
    return {};
}

void LogDirectory::start(int sync_threads) {
    {
        MutexLock lock(mutex_);
        if (threads_run_) return;
        threads_run_ = true;
    }
    commit_thread_ = std::jthread([this, sync_threads](std::stop_token stop) {
        name_this_thread("sync");
        SyncPool pool(std::max(sync_threads - 1, 0));
        while (!stop.stop_requested()) {
            std::vector<Waiting> waiting;
            {
                MutexLock lock(mutex_);
                while (waiting_.empty() && !stop.stop_requested()) commits_wanted_.wait(mutex_);
                waiting.swap(waiting_);
            }
            commit_all(std::move(waiting), &pool);
        }
    });
    background_thread_ = std::jthread([this](std::stop_token stop) {
        name_this_thread("log-background");
        while (!stop.stop_requested()) {
            run_background();
            MutexLock lock(mutex_);
            if (!posted_.empty() || stop.stop_requested()) continue;
            if (delayed_.empty()) {
                background_wanted_.wait(mutex_);
                continue;
            }
            const auto due = std::ranges::min_element(delayed_, {}, &Delayed::due)->due;
            background_wanted_.wait_for(mutex_, std::clamp<std::chrono::milliseconds>(due - clock_.since_boot(), 1ms, background_pause));
        }
    });
}

void LogDirectory::stop() {
    commit_thread_.request_stop();
    background_thread_.request_stop();
    {
        MutexLock lock(mutex_);
        threads_run_ = false;
    }
    commits_wanted_.notify_all();
    background_wanted_.notify_all();
    if (commit_thread_.joinable()) commit_thread_.join();
    if (background_thread_.joinable()) background_thread_.join();
    std::vector<Waiting> waiting;
    {
        MutexLock lock(mutex_);
        waiting.swap(waiting_);
    }
    commit_all(std::move(waiting), nullptr);
}

// --- failure -----------------------------------------------------------------------------------------------------------

Error LogDirectory::offline_error() const {
    MutexLock lock(mutex_);
    return {Errc::storage_offline, path_ + " is offline: " + why_offline_};
}

Result<> LogDirectory::check() const {
    if (!is_offline()) return {};
    return offline_error();
}

void LogDirectory::fail(const Error& why, std::string_view doing) {
    {
        MutexLock lock(mutex_);
        if (is_offline()) return;
        why_offline_ = std::string(doing) + ": " + why.message();
        offline_.store(true, std::memory_order_release);
        if (offline_hook_) posted_.push_back(offline_hook_);
        background_wanted_.notify_one();
    }
    log_error("log directory {} goes offline, {}: {}", path_, doing, why.message());
}

void LogDirectory::set_offline_hook(std::function<void()> hook) {
    MutexLock lock(mutex_);
    offline_hook_ = std::move(hook);
}

Result<> LogDirectory::write_now(Checkpoint which) {
    std::function<Result<>(Checkpoint)> hook;
    {
        MutexLock lock(mutex_);
        hook = checkpoint_hook_;
    }
    if (!hook) return {};
    return hook(which);
}

void LogDirectory::set_checkpoint_hook(std::function<Result<>(Checkpoint)> hook) {
    MutexLock lock(mutex_);
    checkpoint_hook_ = std::move(hook);
}

Error LogDirectory::handled(Error error, std::string_view doing) {
    if (error.code == Errc::io) {
        fail(error, doing);
        return offline_error();
    }
    if (error.code == Errc::no_space) {
        static LogLimit limit{10'000};
        if (const auto held = limit.admit(); held >= 0) log_error("log directory {} is full, {}: {} ({} more not shown)", path_, doing, error.message(), held);
        give_up_reserve();
    }
    return error;
}

// --- group commit ------------------------------------------------------------------------------------------------------

void LogDirectory::commit(std::shared_ptr<CommitTarget> target, std::function<void(Result<>)> done) {
    {
        MutexLock lock(mutex_);
        if (threads_run_) {
            waiting_.push_back({std::move(target), std::move(done)});
            if (waiting_.size() == 1) commits_wanted_.notify_one();
            return;
        }
    }
    std::vector<Waiting> waiting;
    waiting.push_back({std::move(target), std::move(done)});
    commit_all(std::move(waiting), nullptr);
}

void LogDirectory::commit_all(std::vector<Waiting> waiting, SyncPool* pool) {
    if (waiting.empty()) return;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<CommitTarget*> targets;
    std::unordered_map<CommitTarget*, std::size_t> place;
    for (const auto& w : waiting) {
        if (place.emplace(w.target.get(), targets.size()).second) targets.push_back(w.target.get());
    }
    std::vector<Result<>> results(targets.size(), Result<>{});
    const auto sync_one = [&](std::size_t i) {
        if (auto online = check(); !online) {
            results[i] = std::move(online).error();
        } else if (auto synced = targets[i]->sync_appended(); !synced) {
            results[i] = handled(std::move(synced).error(), "syncing");
        }
    };
    if (targets.size() > 1) {
        for (auto* target : targets) target->start_writeback();
    }
    if (pool != nullptr && targets.size() > 1) pool->run(targets.size(), sync_one);
    else for (std::size_t i = 0; i < targets.size(); ++i) sync_one(i);
    {
        MutexLock lock(mutex_);
        ++stats_.cycles;
        stats_.syncs += targets.size();
        stats_.sync_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        stats_.sync_failures += static_cast<std::uint64_t>(std::count_if(results.begin(), results.end(), [](const auto& r) { return !r; }));
    }
    for (auto& w : waiting) w.done(results[place.at(w.target.get())]);
}

// --- background --------------------------------------------------------------------------------------------------------

void LogDirectory::post(std::function<void()> work) {
    MutexLock lock(mutex_);
    posted_.push_back(std::move(work));
    background_wanted_.notify_one();
}

void LogDirectory::post_after(std::chrono::milliseconds delay, std::function<void()> work) {
    MutexLock lock(mutex_);
    delayed_.push_back({clock_.since_boot() + delay, std::move(work)});
    background_wanted_.notify_one();
}

void LogDirectory::run_background() {
    std::deque<std::function<void()>> work;
    {
        MutexLock lock(mutex_);
        work.swap(posted_);
        const auto now = clock_.since_boot();
        const auto due = std::stable_partition(delayed_.begin(), delayed_.end(), [&](const Delayed& d) { return d.due > now; });
        for (auto d = due; d != delayed_.end(); ++d) work.push_back(std::move(d->work));
        delayed_.erase(due, delayed_.end());
    }
    for (const auto& w : work) w();
}

// --- space -------------------------------------------------------------------------------------------------------------

void LogDirectory::keep_reserve() {
    MutexLock lock(reserve_mutex_);
    if (reserve_kept_ || options_.reserve_bytes <= 0 || is_offline()) return;
    reserve_kept_ = make_reserve();
    reserve_is_missing_.store(!reserve_kept_, std::memory_order_release);
}

bool LogDirectory::make_reserve() {
    const auto path = io::join(path_, file_name::reserve);
    const auto there = files_.status(path);
    if (there && *there && (*there)->bytes >= options_.reserve_bytes) return true;
    const auto space = files_.space(path_);
    if (!space || space->available < 4 * options_.reserve_bytes) return false;
    auto file = files_.open(path, io::OpenMode::create_truncated);
    if (!file) return false;
    const std::vector<std::byte> zeros(zeros_bytes);
    for (std::int64_t at = 0; at < options_.reserve_bytes; at += static_cast<std::int64_t>(zeros_bytes)) {
        if ((*file)->write(FilePosition{at}, zeros)) continue;
        (void)files_.remove(path);
        return false;
    }
    return true;
}

void LogDirectory::give_up_reserve() {
    MutexLock lock(reserve_mutex_);
    if (!reserve_kept_) return;
    reserve_kept_ = false;
    reserve_is_missing_.store(true, std::memory_order_release);   // before its room is there to be taken
    if (files_.remove(io::join(path_, file_name::reserve))) log_warning("log directory {}: gave up the reserve of {} bytes", path_, options_.reserve_bytes);
}

Result<> LogDirectory::check_room(Records whose, std::size_t bytes) const {
    if (!reserve_is_missing_.load(std::memory_order_acquire)) return {};
    TM_TRY(const auto space, files_.space(path_));
    const auto left_alone = whose == Records::of_producers ? options_.reserve_bytes : options_.reserve_bytes / 2;
    if (space.available - static_cast<std::int64_t>(bytes) >= left_alone) return {};
    return Error{Errc::no_space, std::to_string(space.available) + " bytes are free, of which " + std::to_string(left_alone) + " are kept for checkpoints, metadata and deletion"};
}

LogDirectoryStats LogDirectory::stats() const {
    MutexLock lock(mutex_);
    return stats_;
}

}  // namespace tidemark::storage
