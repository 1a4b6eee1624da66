#include "storage/log_manager.h"

#include <algorithm>
#include <deque>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "base/thread.h"
#include "storage/checkpoint.h"
#include "storage/log_move.h"
#include "storage/repair.h"
#include "storage/segments_file.h"

namespace tidemark::storage {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr auto tick_pause_max = 5000ms;
constexpr auto background_work_interval = 5000ms;
constexpr auto memory_interval = std::chrono::minutes{5};
constexpr std::int64_t small_file_bytes_max = 1 << 30;
constexpr std::size_t preferred_max = 100'000;   // anybody may name partitions that there will never be
constexpr auto progress_interval = std::chrono::seconds{5};
constexpr std::size_t creating_threads_max = 16;  // they wait for syncs, which the file system does together

Error refused(std::string what) { return {Errc::invalid_argument, std::move(what)}; }

/// One log directory and what the manager keeps beside it.
struct Directory {
    Directory(io::FileSystem& files, const Clock& clock, const io::Path& path, const StorageOptions& options)
        : dir(files, clock, path, options) {}

    LogDirectory dir;
    bool clean = false;
    bool loaded = false;                          // every log of it was looked at: a clean marker may be written
    OffsetCheckpoint recovery_points, log_starts, high_watermarks; // as found
    SegmentsFile memory;
    Mutex files_mutex;                            // one writer of checkpoint files at a time
    std::map<std::string, std::string> written GUARDED_BY(files_mutex);   // what each checkpoint holds
    std::atomic<std::size_t> loading{0};

    io::Path at(std::string_view name) const { return io::join(dir.path(), name); }
};

/// Whether a name in a log directory is somebody else's business.
bool is_ignored(std::string_view name) {
    return name.starts_with('.') || name == "lost+found" || name == file_name::remote_index_cache ||
           name.starts_with(std::string(cluster_metadata_topic) + "-");
}

/// A task that runs when its interval is over.
struct Periodic {
    milliseconds interval{};
    milliseconds next{};

    bool is_due(milliseconds now) {
        if (now < next) return false;
        next = now + interval;
        return true;
    }
};

/// Calls work(0) … work(n − 1) on up to `threads` threads, of which this is one; all have returned when it does.
void in_parallel(std::size_t n, std::size_t threads, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    const auto take_all = [&] {
        for (auto i = next++; i < n; i = next++) work(i);
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min(n, threads); ++i) helpers.emplace_back(take_all);
    take_all();
}

milliseconds as_interval(std::int64_t ms) { return milliseconds{std::min(ms, std::int64_t{1} << 53)}; }

}  // namespace

struct LogManager::State {
    State(io::FileSystem& f, const Clock& c, StorageOptions o) : files(f), clock(c), options(std::move(o)) {}

    io::FileSystem& files;
    const Clock& clock;
    const StorageOptions options;
    Identity identity;
    std::vector<std::unique_ptr<Directory>> directories;
    std::optional<std::int64_t> previous_broker_epoch;
    std::atomic<LogObserver*> observer{nullptr};

    Mutex create_mutex ACQUIRED_BEFORE(mutex);               // held while files are made
    mutable Mutex mutex;
    std::unordered_map<TopicPartition, std::shared_ptr<Log>> logs GUARDED_BY(mutex);
    std::set<TopicPartition> failed GUARDED_BY(mutex);      // there, but cannot be opened
    /// About to be moved: the checkpoints of where it will be know it already.
    struct Arrival {
        TopicPartition partition;
        Directory* to = nullptr;
    };
    std::optional<Arrival> arriving GUARDED_BY(mutex);
    /// Where a partition was asked for before it is there.
    std::unordered_map<TopicPartition, Directory*> preferred GUARDED_BY(mutex);

    Mutex tick_mutex;
    Periodic recovery_points GUARDED_BY(tick_mutex), log_starts GUARDED_BY(tick_mutex), high_watermarks GUARDED_BY(tick_mutex);
    Periodic flusher GUARDED_BY(tick_mutex), producer_expiry GUARDED_BY(tick_mutex), background GUARDED_BY(tick_mutex), memory GUARDED_BY(tick_mutex);
    std::unordered_map<TopicPartition, milliseconds> flushed GUARDED_BY(tick_mutex);
    /// The front one is under way.
    struct Move {
        TopicPartition partition;
        Directory* to = nullptr;
        io::Path future;
        std::shared_ptr<MoveProgress> progress = std::make_shared<MoveProgress>();
        std::shared_ptr<std::atomic<bool>> called_off = std::make_shared<std::atomic<bool>>(false);
    };
    mutable Mutex moves_mutex;
    Condition moves_wanted;
    std::deque<Move> moves GUARDED_BY(moves_mutex);
    std::atomic<bool> threads_run{false};   // else tick() does their work
    std::jthread mover;

    std::jthread ticker;
    Mutex ticker_mutex;
    Condition ticker_stops;

    Directory* directory_of(const Log& log) const {
        for (const auto& d : directories) {
            if (&d->dir == &log.log_dir()) return d.get();
        }
        return nullptr;
    }
    std::vector<std::shared_ptr<Log>> logs_in(const Directory& d) const {
        std::vector<std::shared_ptr<Log>> found;
        MutexLock lock(mutex);
        for (const auto& [partition, log] : logs) {
            if (&log->log_dir() == &d.dir) found.push_back(log);
        }
        return found;
    }

    milliseconds until_next_task();
    void stop_threads() {
        mover.request_stop();
        ticker.request_stop();
        {   // each has seen the request, or waits and is woken
            MutexLock lock(moves_mutex);
            moves_wanted.notify_all();
        }
        {
            MutexLock lock(ticker_mutex);
            ticker_stops.notify_all();
        }
        if (mover.joinable()) mover.join();
        if (ticker.joinable()) ticker.join();
    }

    bool is_in(const Log& log, const Directory& d) const REQUIRES(mutex) {
        return &log.log_dir() == &d.dir || (arriving && arriving->partition == log.partition() && arriving->to == &d);
    }
    std::vector<std::shared_ptr<Log>> checkpointed_in(const Directory& d) const {
        std::vector<std::shared_ptr<Log>> found;
        MutexLock lock(mutex);
        for (const auto& [partition, log] : logs) {
            if (is_in(*log, d)) found.push_back(log);
        }
        return found;
    }

    // open()
    Result<> open_directory(Directory&);
    Result<> settle_identity(const Identity& expected);
    void schedule();
    // load()
    struct Job {
        Directory* directory = nullptr;
        FoundLog found;
        std::shared_ptr<const LogConfig> config;
    };
    /// A `-future` directory that was found.
    struct Future {
        Directory* directory = nullptr;
        TopicPartition partition;
        io::Path path;
    };
    Result<> find_logs(Directory&, const LogConfigLookup&, std::vector<Job>&, std::vector<Future>&, LoadReport&);
    Result<> make_stray(Directory&, const TopicPartition&);
    bool is_complete_move(const io::Path& directory) const;
    Result<Directory*> settle_twins(const TopicPartition&, Directory& one, Directory& other);
    void settle_futures(const std::vector<Future>&, const LogConfigLookup&, std::vector<Job>&, LoadReport&);
    // moves
    void ask_for_move(const TopicPartition&, Directory& to, io::Path future);
    void run_moves(const std::function<bool()>& is_stopped);
    Result<> run_move(const Move&, const std::function<bool()>& is_stopped);
    Result<> finish_move(LogMove&, const std::shared_ptr<Log>&, Directory& from, Directory& to);
    void remove_later(Directory&, const io::Path&);
    // create()
    static Result<std::shared_ptr<Log>> existing(const std::shared_ptr<Log>&, const Uuid& topic_id);
    Directory* place_for(const NewLog&, std::map<const Directory*, std::size_t>& counts) const REQUIRES(mutex);
    Result<std::shared_ptr<Log>> make(const NewLog&, Directory&);
    // checkpoints
    Result<> write_checkpoint(Directory&, std::string_view name, std::string text);
    Result<> write_offsets(Directory&, std::string_view name, std::optional<Offset> (*of)(const Log&));
    Result<> write_recovery_points(Directory&);
    Result<> write_log_starts(Directory&);
    Result<> write_high_watermarks(Directory&);
    Result<> write_memory(Directory&);
    Result<> write_now(Directory&, LogDirectory::Checkpoint);
    Result<> write_all_of(Directory&, const TopicPartition&, std::optional<Offset> first_dirty);
    Result<> change_cleaner_checkpoint(Directory&, const TopicPartition&, std::optional<Offset>);
    void adopt(const std::shared_ptr<Log>& log) { log->set_observer(observer.load()); }
};

LogManager::LogManager(std::unique_ptr<State> state) : state_(std::move(state)) {}

LogManager::~LogManager() {
    state_->stop_threads();
    for (const auto& d : state_->directories) {
        d->dir.stop();
        d->dir.set_offline_hook({});
        d->dir.set_checkpoint_hook({});
    }
}

// --- open --------------------------------------------------------------------------------------------------------------

Result<> LogManager::State::open_directory(Directory& d) {
    TM_TRYV(io::create_directories(files, d.dir.path()));
    if (auto locked = d.dir.lock(); !locked) {
        if (locked.error().code != Errc::locked) return locked;
        return Error{Errc::locked, "another process uses the log directory " + d.dir.path() + ": stop it, or give this one a directory of its own"};
    }
    const auto marker = d.at(file_name::clean_shutdown);
    if (const auto content = io::read_whole(files, marker, small_file_bytes_max)) {
        d.clean = true;
        previous_broker_epoch = parse_clean_shutdown(as_text(*content));
        // Gone before anything changes: a crash from here on is an unclean stop.
        TM_TRYV(files.remove(marker));
        TM_TRYV(sync_names_in(files, d.dir.path()));
    } else if (content.error().code != Errc::not_found) {
        return content.error();
    }
    const auto read = [&](std::string_view name, std::string_view otherwise) -> Result<OffsetCheckpoint> {
        auto checkpoint = read_offset_checkpoint(files, d.at(name));
        if (checkpoint || checkpoint.error().code != Errc::corrupt) return checkpoint;
        log_error("{}; {}", checkpoint.error().message(), otherwise);
        return OffsetCheckpoint{};
    };
    TM_TRY(d.recovery_points, read(file_name::recovery_point_checkpoint, "logs are checked from their start"));
    TM_TRY(d.log_starts, read(file_name::log_start_checkpoint, "logs start where their first segment does"));
    TM_TRY(d.high_watermarks, read(file_name::high_watermark_checkpoint, "whether logs were longer is not known"));
    if (const auto text = io::read_whole(files, d.at(file_name::segments), small_file_bytes_max)) {
        if (auto parsed = parse_segments_file(as_text(*text))) d.memory = *std::move(parsed);
        else log_warning("{} cannot be read and is made anew", d.at(file_name::segments));
    }
    d.dir.keep_reserve();
    return {};
}

Result<> LogManager::State::settle_identity(const Identity& expected) {
    std::vector<std::optional<MetaProperties>> found;
    std::string cluster_id = expected.cluster_id;
    std::set<Uuid> ids;
    for (const auto& d : directories) {
        if (d->dir.is_offline()) {
            found.emplace_back();
            continue;
        }
        TM_TRY(const auto properties, read_meta_properties(files, d->at(file_name::meta_properties)));
        found.push_back(properties);
        if (!properties) continue;
        const auto where = d->at(file_name::meta_properties);
        if (properties->version != 1) return refused(where + " is of version 0, of a broker that kept its metadata in ZooKeeper: upgrade it with Apache Kafka first");
        if (cluster_id.empty()) cluster_id = *properties->cluster_id;
        if (*properties->cluster_id != cluster_id) {
            return refused(where + " belongs to cluster " + *properties->cluster_id + ", not " + cluster_id + ": remove the directory from log.dirs, or set the cluster id that it has");
        }
        if (*properties->node_id != expected.node_id) {
            return refused(where + " belongs to node " + std::to_string(*properties->node_id) + ": set node.id to that, or remove the directory from log.dirs");
        }
        if (properties->directory_id && !ids.insert(*properties->directory_id).second) {
            return refused(where + " has the directory.id of another log directory: one is a copy of the other; remove one of them from log.dirs");
        }
    }
    if (cluster_id.empty()) cluster_id = Uuid::random().text();
    identity = {cluster_id, expected.node_id};
    for (std::size_t i = 0; i < directories.size(); ++i) {
        auto& d = *directories[i];
        if (d.dir.is_offline()) continue;
        auto properties = found[i].value_or(MetaProperties{});
        const bool complete = found[i] && properties.directory_id;
        if (!properties.directory_id) properties.directory_id = Uuid::random();
        if (!complete) {
            properties.cluster_id = cluster_id;
            properties.node_id = expected.node_id;
            TM_TRYV(write_meta_properties(files, d.at(file_name::meta_properties), properties));
            if (!found[i]) log_info("formatted the log directory {}: cluster {}, directory {}", d.dir.path(), cluster_id, properties.directory_id->text());
        }
        d.dir.set_id(*properties.directory_id);
    }
    return {};
}

Result<std::unique_ptr<LogManager>> LogManager::open(io::FileSystem& files, const Clock& clock, StorageOptions options, Identity expected) {
    if (options.log_dirs.empty()) return refused("log.dirs names no directory");
    std::set<io::Path> unique(options.log_dirs.begin(), options.log_dirs.end());
    if (unique.size() != options.log_dirs.size()) return refused("log.dirs names a directory twice");
    auto state = std::make_unique<State>(files, clock, std::move(options));
    auto* s = state.get();
    std::set<std::optional<std::int64_t>> epochs;
    for (const auto& path : s->options.log_dirs) {
        s->directories.push_back(std::make_unique<Directory>(files, clock, path, s->options));
        auto& d = *s->directories.back();
        s->previous_broker_epoch.reset();
        if (auto opened = s->open_directory(d); !opened) {
            if (opened.error().code != Errc::io && opened.error().code != Errc::no_space) return std::move(opened).error();
            d.dir.fail(opened.error(), "opening it");
        }
        epochs.insert(s->previous_broker_epoch);
    }
    s->previous_broker_epoch = epochs.size() == 1 ? *epochs.begin() : std::nullopt;
    if (std::all_of(s->directories.begin(), s->directories.end(), [](const auto& d) { return d->dir.is_offline(); })) {
        return Error{Errc::storage_offline, "no log directory can be used"};
    }
    TM_TRYV(s->settle_identity(expected));
    for (const auto& d : s->directories) {
        d->dir.set_checkpoint_hook([s, dir = d.get()](LogDirectory::Checkpoint which) {
            return s->write_now(*dir, which);
        });
        d->dir.set_offline_hook([s, dir = d.get()] {
            auto* observer = s->observer.load();
            if (observer == nullptr) return;
            for (const auto& log : s->logs_in(*dir)) observer->log_gone(log->partition());
        });
    }
    s->schedule();
    return std::unique_ptr<LogManager>(new LogManager(std::move(state)));
}

void LogManager::State::schedule() {
    MutexLock lock(tick_mutex);
    const auto now = clock.since_boot();
    const auto first = now + as_interval(options.initial_task_delay_ms);
    recovery_points = {as_interval(options.recovery_point_interval_ms), first};
    log_starts = {as_interval(options.log_start_interval_ms), first};
    high_watermarks = {as_interval(options.high_watermark_interval_ms), now};
    flusher = {as_interval(options.flush_scheduler_interval_ms), now + as_interval(options.flush_scheduler_interval_ms)};
    producer_expiry = {as_interval(options.producer_expiration_check_ms), now + as_interval(options.producer_expiration_check_ms)};
    background = {background_work_interval, now};
    memory = {memory_interval, now + memory_interval};
}

// --- load --------------------------------------------------------------------------------------------------------------

void LogManager::State::remove_later(Directory& d, const io::Path& path) {
    d.dir.post_after(as_interval(options.partition_delete_delay_ms), [this, path] {
        if (auto removed = io::remove_all(files, path); !removed) log_warning("{} cannot be removed: {}", path, removed.error().message());
        else log_info("removed {}", path);
    });
}

Result<> LogManager::State::make_stray(Directory& d, const TopicPartition& partition) {
    const auto from = d.at(live_directory_name(partition));
    const auto to = d.at(stray_directory_name(partition, Uuid::random()));
    log_warning("[{}] is not a partition of this broker: {} becomes {}", partition, from, to);
    TM_TRYV(files.rename(from, to));
    return sync_names_in(files, d.dir.path());
}

bool LogManager::State::is_complete_move(const io::Path& directory) const {
    const auto there = files.status(io::join(directory, file_name::move_complete));
    return there && *there;
}

/// A partition in two directories: a move was cut off between its two renames, and the copy says that it is complete. Returns
/// where it stays.
Result<Directory*> LogManager::State::settle_twins(const TopicPartition& partition, Directory& one, Directory& other) {
    const auto name = live_directory_name(partition);
    const bool one_is_copy = is_complete_move(one.at(name));
    if (one_is_copy == is_complete_move(other.at(name))) {
        return Error{Errc::already_exists, partition.text() + " is in " + one.dir.path() + " and in " + other.dir.path() + ": remove one of both"};
    }
    auto& left = one_is_copy ? other : one;
    const auto to = left.at(deleted_directory_name(partition, Uuid::random()));
    log_warning("[{}] was moved from {}: what is left there becomes {}", partition, left.dir.path(), to);
    TM_TRYV(files.rename(left.at(name), to));
    TM_TRYV(sync_names_in(files, left.dir.path()));
    remove_later(left, to);
    return one_is_copy ? &one : &other;
}

/// A copy of a log that is where it was is made anew. Where there is none, a complete copy is the log.
void LogManager::State::settle_futures(const std::vector<Future>& futures, const LogConfigLookup& lookup, std::vector<Job>& jobs, LoadReport& report) {
    const bool all_here = std::ranges::none_of(directories, [](const auto& d) { return d->dir.is_offline(); });
    const auto settle = [&](const Future& future) -> Result<> {
        auto& d = *future.directory;
        const auto live = std::ranges::find_if(jobs, [&](const Job& job) { return job.found.partition == future.partition; });
        if (live != jobs.end()) {
            TM_TRYV(io::remove_all(files, future.path));
            if (live->directory != &d) ask_for_move(future.partition, d, d.at(future_directory_name(future.partition, Uuid::random())));
            return {};
        }
        Job job{.directory = &d, .found = {.partition = future.partition, .topic_id = {}}, .config = nullptr};
        if (all_here && is_complete_move(future.path)) {
            TM_TRY(job.found.topic_id, read_partition_metadata(files, io::join(future.path, file_name::partition_metadata)));
            job.config = lookup(job.found);
        }
        if (job.config == nullptr) {
            ++report.strays;
            log_warning("{} is left alone: it is not known what it is a copy of", future.path);
            return {};
        }
        TM_TRYV(files.rename(future.path, d.at(live_directory_name(future.partition))));
        TM_TRYV(sync_names_in(files, d.dir.path()));
        jobs.push_back(std::move(job));
        return {};
    };
    for (const auto& future : futures) {
        if (auto settled = settle(future); !settled) future.directory->dir.fail(settled.error(), "looking at " + future.path);
    }
}

Result<> LogManager::State::find_logs(Directory& d, const LogConfigLookup& lookup, std::vector<Job>& jobs, std::vector<Future>& futures, LoadReport& report) {
    TM_TRY(const auto entries, files.list(d.dir.path()));
    for (const auto& entry : entries) {
        if (!entry.is_directory || is_ignored(entry.name)) continue;
        const auto parsed = parse_directory_name(entry.name);
        if (!parsed) {
            log_warning("{} is not a partition's directory and is left alone", d.at(entry.name));
            continue;
        }
        switch (parsed->kind) {
            case DirectoryKind::deleted: remove_later(d, d.at(entry.name)); continue;
            case DirectoryKind::stray: ++report.strays; continue;
            case DirectoryKind::future: futures.push_back({&d, parsed->partition, d.at(entry.name)}); continue;
            case DirectoryKind::live: break;
        }
        Job job{.directory = &d, .found = {.partition = parsed->partition, .topic_id = {}}, .config = nullptr};
        if (auto id = read_partition_metadata(files, io::join(d.at(entry.name), file_name::partition_metadata))) job.found.topic_id = *id;
        else log_error("{}", id.error().message());
        job.config = lookup(job.found);
        if (job.config == nullptr) {
            ++report.strays;
            TM_TRYV(make_stray(d, parsed->partition));
            continue;
        }
        const auto twin = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.directory != &d && j.found.partition == parsed->partition; });
        if (twin != jobs.end()) {
            TM_TRY(const auto* stays, settle_twins(parsed->partition, *twin->directory, d));
            if (stays == &d) *twin = std::move(job);
            continue;
        }
        jobs.push_back(std::move(job));
    }
    return {};
}

Result<LoadReport> LogManager::load(const LogConfigLookup& lookup) {
    auto& s = *state_;
    LoadReport report;
    std::vector<State::Job> jobs;
    std::vector<State::Future> futures;
    for (const auto& d : s.directories) {
        if (d->dir.is_offline()) continue;
        if (auto found = s.find_logs(*d, lookup, jobs, futures, report); !found) {
            if (found.error().code != Errc::io) return std::move(found).error();
            d->dir.fail(found.error(), "looking for logs");
        }
    }
    s.settle_futures(futures, lookup, jobs, report);
    for (const auto& job : jobs) ++job.directory->loading;

    Mutex report_mutex;
    std::atomic<std::int64_t> next_progress{(std::chrono::steady_clock::now() + progress_interval).time_since_epoch().count()};
    const auto load_one = [&](const State::Job& job) {
        auto& d = *job.directory;
        const auto& partition = job.found.partition;
        const auto checkpointed = [&](const OffsetCheckpoint& checkpoint) {
            const auto found = checkpoint.find(partition);
            return found == checkpoint.end() ? Offset{0} : found->second;
        };
        const auto reached = d.high_watermarks.find(partition);
        const auto memory = d.memory.find(partition);
        RecoveryReport recovery;
        auto log = open_log(d.dir,
                            {.partition = partition,
                             .directory = d.at(live_directory_name(partition)),
                             .config = job.config,
                             .recovery_point = checkpointed(d.recovery_points),
                             .log_start = checkpointed(d.log_starts),
                             .reached = reached == d.high_watermarks.end() ? std::nullopt : std::optional{reached->second},
                             .clean = d.clean,
                             .memory = memory == d.memory.end() ? nullptr : &memory->second},
                            &recovery);
        --d.loading;
        {
            MutexLock lock(report_mutex);
            report.segments_recovered += recovery.segments_recovered;
            report.truncated_bytes += recovery.truncated_bytes;
            report.record_bytes_read += recovery.record_bytes_read;
            ++(log ? report.logs : report.failed);
            if (log && recovery.may_have_lost_records) report.lost_records.push_back(partition);
            MutexLock guard(s.mutex);
            if (log) s.logs.emplace(partition, *log);
            else s.failed.insert(partition);
        }
        if (log) return s.adopt(*log);
        if (log.error().code == Errc::io) d.dir.fail(log.error(), "loading " + partition.text());
        else log_error("[{}] cannot be opened and is not served: {}", partition, log.error().message());
    };
    const auto threads_per_dir = static_cast<std::size_t>(std::max(s.options.recovery_threads_per_dir, 1));
    in_parallel(jobs.size(), threads_per_dir * s.directories.size(), [&](std::size_t i) {
        if (!jobs[i].directory->dir.is_offline()) load_one(jobs[i]);
        auto due = next_progress.load();
        const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        if (now >= due && next_progress.compare_exchange_strong(due, now + std::chrono::steady_clock::duration(progress_interval).count())) {
            log_info("loading logs: {} of {}", i + 1, jobs.size());
        }
    });
    for (const auto& d : s.directories) {
        if (d->dir.is_offline()) continue;
        d->loaded = true;
        d->memory.clear();
    }
    std::sort(report.lost_records.begin(), report.lost_records.end());
    const bool unclean = std::any_of(jobs.begin(), jobs.end(), [](const State::Job& job) { return !job.directory->clean; });
    log_info("loaded {} logs{}: {} segments recovered, {} bytes cut, {} logs failed, {} may have lost records", report.logs,
             unclean ? " after an unclean stop" : "", report.segments_recovered, report.truncated_bytes, report.failed, report.lost_records.size());
    return report;
}

// --- periodic work -----------------------------------------------------------------------------------------------------

void LogManager::start() {
    auto& s = *state_;
    for (const auto& d : s.directories) d->dir.start();
    s.threads_run.store(true);
    s.ticker = std::jthread([this, &s](std::stop_token stop) {
        name_this_thread("log-ticker");
        while (!stop.stop_requested()) {
            tick();
            const auto pause = s.until_next_task();
            MutexLock lock(s.ticker_mutex);
            if (!stop.stop_requested()) s.ticker_stops.wait_for(s.ticker_mutex, pause);
        }
    });
    s.mover = std::jthread([&s](std::stop_token stop) {
        name_this_thread("log-mover");
        while (!stop.stop_requested()) {
            s.run_moves([&stop] { return stop.stop_requested(); });
            MutexLock lock(s.moves_mutex);
            while (s.moves.empty() && !stop.stop_requested()) s.moves_wanted.wait(s.moves_mutex);
        }
    });
}

milliseconds LogManager::State::until_next_task() {
    MutexLock ticking(tick_mutex);
    auto next = std::min({recovery_points.next, log_starts.next, high_watermarks.next, producer_expiry.next, background.next, memory.next});
    if (options.flush_scheduler_interval_ms != StorageOptions::unlimited_ms) next = std::min(next, flusher.next);
    return std::clamp<milliseconds>(next - clock.since_boot(), 1ms, tick_pause_max);
}

void LogManager::tick() {
    auto& s = *state_;
    MutexLock ticking(s.tick_mutex);
    const auto now = s.clock.since_boot();
    const auto in_each = [&](Periodic& task, std::string_view doing, Result<> (State::*write)(Directory&)) {
        if (!task.is_due(now)) return;
        for (const auto& d : s.directories) {
            if (d->dir.is_offline()) continue;
            if (auto written = (s.*write)(*d); !written) (void)d->dir.handled(std::move(written).error(), doing);
        }
    };
    for (const auto& d : s.directories) {
        if (!s.threads_run.load()) d->dir.run_background();
    }
    if (!s.threads_run.load()) s.run_moves([] { return false; });
    if (s.recovery_points.next <= now) {
        for (const auto& d : s.directories) d->dir.keep_reserve();
    }
    in_each(s.recovery_points, "writing recovery points", &State::write_recovery_points);
    in_each(s.log_starts, "writing log starts", &State::write_log_starts);
    in_each(s.high_watermarks, "writing high watermarks", &State::write_high_watermarks);
    in_each(s.memory, "writing what is known of segments", &State::write_memory);
    if (s.producer_expiry.is_due(now)) {
        for (const auto& log : logs()) log->expire_producers(s.clock.now());
    }
    if (s.background.is_due(now)) {
        for (const auto& log : logs()) log->run_background_work();
    }
    if (s.flusher.is_due(now) && s.options.flush_scheduler_interval_ms != StorageOptions::unlimited_ms) {
        for (const auto& log : logs()) {
            auto& last = s.flushed.try_emplace(log->partition(), now).first->second;
            if (now - last < as_interval(log->config()->flush_ms)) continue;
            last = now;
            if (auto flushed = log->flush(); !flushed) log_warning("[{}] {}", log->partition(), flushed.error().message());
        }
    }
}

// --- checkpoints -------------------------------------------------------------------------------------------------------

Result<> LogManager::State::write_checkpoint(Directory& d, std::string_view name, std::string text) {
    MutexLock lock(d.files_mutex);
    auto& last = d.written[std::string(name)];
    if (last == text) return {};
    auto written = d.dir.with_reserve([&] { return io::replace_content(files, d.at(name), as_bytes(text)); });
    if (!written) return in_context(std::move(written).error(), d.at(name));
    last = std::move(text);
    return {};
}

Result<> LogManager::State::write_offsets(Directory& d, std::string_view name, std::optional<Offset> (*of)(const Log&)) {
    OffsetCheckpoint offsets;
    for (const auto& log : checkpointed_in(d)) {
        if (const auto offset = of(*log)) offsets[log->partition()] = *offset;
    }
    return write_checkpoint(d, name, format_offset_checkpoint(offsets));
}

Result<> LogManager::State::write_recovery_points(Directory& d) {
    return write_offsets(d, file_name::recovery_point_checkpoint, [](const Log& log) { return std::optional{log.recovery_point()}; });
}

Result<> LogManager::State::write_log_starts(Directory& d) {
    return write_offsets(d, file_name::log_start_checkpoint, [](const Log& log) {
        const auto start = log.log_start_offset();
        return start > log.segments()->front()->base_offset() ? std::optional{start} : std::nullopt;
    });
}

Result<> LogManager::State::write_high_watermarks(Directory& d) {
    return write_offsets(d, file_name::high_watermark_checkpoint, [](const Log& log) { return std::optional{log.high_watermark()}; });
}

Result<> LogManager::State::write_memory(Directory& d) {
    SegmentsFile memory;
    for (const auto& log : logs_in(d)) memory[log->partition()] = memory_of(*log);
    return write_checkpoint(d, file_name::segments, format_segments_file(memory));
}

Result<> LogManager::State::write_now(Directory& d, LogDirectory::Checkpoint which) {
    if (which == LogDirectory::Checkpoint::recovery_points) return write_recovery_points(d);
    TM_TRYV(write_log_starts(d));
    Directory* arrives_in = nullptr;
    {
        MutexLock lock(mutex);
        if (arriving) arrives_in = arriving->to;
    }
    return arrives_in != nullptr ? write_log_starts(*arrives_in) : Result<>{};
}

/// What a directory's checkpoints say of one log, and of all others with it.
Result<> LogManager::State::write_all_of(Directory& d, const TopicPartition& partition, std::optional<Offset> first_dirty) {
    const auto written = [&]() -> Result<> {
        TM_TRYV(d.dir.check());
        TM_TRYV(change_cleaner_checkpoint(d, partition, first_dirty));
        TM_TRYV(write_recovery_points(d));
        TM_TRYV(write_log_starts(d));
        return write_high_watermarks(d);
    }();
    return written ? written : d.dir.handled(written.error(), "writing checkpoints");
}

Result<> LogManager::write_checkpoints() {
    auto& s = *state_;
    for (const auto& d : s.directories) {
        if (d->dir.is_offline()) continue;
        TM_TRYV(s.write_recovery_points(*d));
        TM_TRYV(s.write_log_starts(*d));
        TM_TRYV(s.write_high_watermarks(*d));
    }
    return {};
}

// --- close -------------------------------------------------------------------------------------------------------------

Result<> LogManager::close(std::int64_t broker_epoch) {
    auto& s = *state_;
    s.stop_threads();
    Result<> result;
    for (const auto& d : s.directories) {
        d->dir.stop();
        if (d->dir.is_offline()) continue;
        d->dir.run_background();
        const auto logs = s.logs_in(*d);
        std::atomic<bool> all_closed{true};
        in_parallel(logs.size(), static_cast<std::size_t>(std::max(s.options.recovery_threads_per_dir, 1)), [&](std::size_t i) {
            if (auto closed = logs[i]->close(); !closed) {
                log_error("[{}] not closed cleanly: {}", logs[i]->partition(), closed.error().message());
                all_closed = false;
            }
        });
        const auto written = [&]() -> Result<> {
            TM_TRYV(s.write_recovery_points(*d));
            TM_TRYV(s.write_log_starts(*d));
            TM_TRYV(s.write_high_watermarks(*d));
            TM_TRYV(s.write_memory(*d));
            if (!all_closed || !d->loaded) return Error{Errc::aborted, d->dir.path() + " was not closed cleanly"};
            TM_TRYV(io::replace_content(s.files, d->at(file_name::clean_shutdown), as_bytes(format_clean_shutdown(broker_epoch))));
            return {};
        }();
        if (!written && result) result = written.error();
    }
    return result;
}

// --- logs --------------------------------------------------------------------------------------------------------------

const LogManager::Identity& LogManager::identity() const { return state_->identity; }
io::Path LogManager::metadata_directory() const { return state_->directories.front()->dir.path(); }
LogDirectory& LogManager::metadata_log_directory() const { return state_->directories.front()->dir; }
std::optional<std::int64_t> LogManager::previous_broker_epoch() const { return state_->previous_broker_epoch; }

bool LogManager::was_clean() const {
    return std::all_of(state_->directories.begin(), state_->directories.end(), [](const auto& d) { return d->clean; });
}

std::vector<LogDirStats> LogManager::directories() const {
    std::vector<LogDirStats> all;
    for (const auto& d : state_->directories) {
        const auto sync = d->dir.stats();
        LogDirStats stats{.path = d->dir.path(),
                          .directory_id = d->dir.id(),
                          .offline = d->dir.is_offline(),
                          .syncs = sync.syncs,
                          .sync_failures = sync.sync_failures,
                          .sync_seconds = sync.sync_seconds,
                          .indexes_rebuilt = d->dir.open_files().indexes_rebuilt(),
                          .logs = state_->logs_in(*d).size(),
                          .loading = d->loading.load()};
        if (const auto space = state_->files.space(d->dir.path())) {
            stats.total_bytes = space->total;
            stats.usable_bytes = space->available;
        }
        all.push_back(std::move(stats));
    }
    return all;
}

void LogManager::set_observer(LogObserver* observer) {
    state_->observer.store(observer);
    for (const auto& log : logs()) log->set_observer(observer);
}

std::shared_ptr<Log> LogManager::find(const TopicPartition& partition) const {
    MutexLock lock(state_->mutex);
    const auto found = state_->logs.find(partition);
    return found == state_->logs.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Log>> LogManager::logs() const {
    std::vector<std::shared_ptr<Log>> all;
    MutexLock lock(state_->mutex);
    all.reserve(state_->logs.size());
    for (const auto& [partition, log] : state_->logs) all.push_back(log);
    return all;
}

Result<std::shared_ptr<Log>> LogManager::create(const TopicPartition& partition, Uuid topic_id, std::shared_ptr<const LogConfig> config, std::optional<Uuid> directory_id) {
    return create({{.partition = partition, .topic_id = topic_id, .config = std::move(config), .directory_id = directory_id}}).front();
}

std::vector<Result<std::shared_ptr<Log>>> LogManager::create(const std::vector<NewLog>& wanted) {
    auto& s = *state_;
    MutexLock creating(s.create_mutex);
    std::vector<std::optional<Result<std::shared_ptr<Log>>>> made(wanted.size());
    std::vector<std::pair<std::size_t, Directory*>> missing;   // of which log, and where it goes
    {
        MutexLock lock(s.mutex);
        std::map<const Directory*, std::size_t> counts;
        if (s.directories.size() > 1) {   // one needs no comparison
            for (const auto& [partition, log] : s.logs) ++counts[s.directory_of(*log)];
        }
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if (const auto found = s.logs.find(wanted[i].partition); found != s.logs.end()) {
                made[i] = State::existing(found->second, wanted[i].topic_id);
            } else if (s.failed.contains(wanted[i].partition)) {
                made[i] = Error{Errc::storage_offline, wanted[i].partition.text() + " is there, but cannot be opened"};
            } else if (auto* target = s.place_for(wanted[i], counts)) {
                ++counts[target];
                missing.emplace_back(i, target);
            } else {
                made[i] = Error{Errc::storage_offline, "no log directory for " + wanted[i].partition.text()};
            }
        }
    }
    in_parallel(missing.size(), creating_threads_max, [&](std::size_t n) {
        const auto [i, target] = missing[n];
        made[i] = s.make(wanted[i], *target);
    });
    std::vector<Result<std::shared_ptr<Log>>> results;
    for (auto& each : made) results.push_back(*std::move(each));
    return results;
}

Result<std::shared_ptr<Log>> LogManager::State::existing(const std::shared_ptr<Log>& log, const Uuid& topic_id) {
    const auto id = log->topic_id();
    if (!id.is_zero() && id != topic_id) return Error{Errc::already_exists, log->partition().text() + " is there with the topic id " + id.text()};
    return log;
}

/// The directory that a move was asked for to, or this one, or the one with the fewest logs; null when none of them works.
Directory* LogManager::State::place_for(const NewLog& wanted, std::map<const Directory*, std::size_t>& counts) const {
    const auto asked = preferred.find(wanted.partition);
    Directory* best = nullptr;
    for (const auto& d : directories) {
        const bool is_possible = asked != preferred.end() ? d.get() == asked->second : !wanted.directory_id || d->dir.id() == *wanted.directory_id;
        if (!d->dir.is_offline() && is_possible && (best == nullptr || counts[d.get()] < counts[best])) best = d.get();
    }
    return best;
}

Result<std::shared_ptr<Log>> LogManager::State::make(const NewLog& wanted, Directory& target) {
    const auto path = target.at(live_directory_name(wanted.partition));
    TM_TRY(const auto there, files.status(path));
    if (there) return Error{Errc::already_exists, path + " is there, but was not loaded"};
    auto log = target.dir.with_reserve([&] {
        auto created = create_log(target.dir, {.partition = wanted.partition, .directory = path, .config = wanted.config}, wanted.topic_id);
        if (!created) (void)io::remove_all(files, path);
        return created;
    });
    if (!log) return target.dir.handled(std::move(log).error(), "creating " + wanted.partition.text());
    adopt(*log);
    MutexLock lock(mutex);
    logs.emplace(wanted.partition, *log);
    preferred.erase(wanted.partition);
    return *log;
}

std::vector<Result<>> LogManager::remove(const std::vector<TopicPartition>& partitions) {
    auto& s = *state_;
    struct Removal {
        std::size_t place = 0;
        std::shared_ptr<Log> log;
        io::Path to;
    };
    std::map<Directory*, std::vector<Removal>> removals;
    std::vector<Result<>> results(partitions.size(), Result<>{});
    MutexLock removing(s.create_mutex);
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        const auto& partition = partitions[i];
        const auto log = find(partition);
        if (log == nullptr) {
            results[i] = Error{Errc::not_found, partition.text()};
            continue;
        }
        auto& d = *s.directory_of(*log);
        const auto to = d.at(deleted_directory_name(partition, Uuid::random()));
        results[i] = d.dir.check();
        if (results[i]) results[i] = d.dir.with_reserve([&] { return log->move_directory(to); });
        if (results[i]) removals[&d].push_back({i, log, to});
        else results[i] = d.dir.handled(results[i].error(), "deleting " + partition.text());
    }
    for (const auto& [d, gone] : removals) {
        if (auto synced = sync_names_in(s.files, d->dir.path()); !synced) {
            const auto error = d->dir.handled(std::move(synced).error(), "deleting partitions");
            for (const auto& removal : gone) results[removal.place] = error;
            continue;
        }
        for (const auto& [place, log, to] : gone) {
            {
                MutexLock lock(s.mutex);
                s.logs.erase(log->partition());
            }
            log->mark_closed();
            if (auto* observer = s.observer.load()) observer->log_gone(log->partition());
            s.remove_later(*d, to);
            log_info("[{}] deleted: {} goes in {} ms", log->partition(), to, s.options.partition_delete_delay_ms);
        }
        (void)s.write_all_of(*d, gone.front().log->partition(), std::nullopt);
    }
    return results;
}

Result<> LogManager::remove(const TopicPartition& partition) { return remove(std::vector{partition}).front(); }

// --- moves -------------------------------------------------------------------------------------------------------------

void LogManager::State::ask_for_move(const TopicPartition& partition, Directory& to, io::Path future) {
    MutexLock lock(moves_mutex);
    moves.push_back({.partition = partition, .to = &to, .future = std::move(future)});
    moves_wanted.notify_all();
}

Result<> LogManager::move(const TopicPartition& partition, const io::Path& log_dir) {
    auto& s = *state_;
    const auto to = std::ranges::find_if(s.directories, [&](const auto& d) { return d->dir.path() == log_dir; });
    if (to == s.directories.end()) return refused(log_dir + " is not one of log.dirs");
    TM_TRYV((*to)->dir.check());
    const auto log = find(partition);
    if (log == nullptr) {
        MutexLock lock(s.mutex);
        if (s.preferred.size() < preferred_max || s.preferred.contains(partition)) s.preferred[partition] = to->get();
        return Error{Errc::not_found, partition.text()};
    }
    {
        MutexLock lock(s.moves_mutex);
        for (const auto& move : s.moves) {
            if (move.partition != partition || *move.called_off) continue;
            if (move.to == to->get()) return {};
            *move.called_off = true;
        }
    }
    if (s.directory_of(*log) == to->get()) return {};
    s.ask_for_move(partition, **to, (*to)->at(future_directory_name(partition, Uuid::random())));
    return {};
}

std::vector<MoveStats> LogManager::moves() const {
    std::vector<MoveStats> all;
    MutexLock lock(state_->moves_mutex);
    for (const auto& move : state_->moves) {
        const auto log = find(move.partition);
        if (log == nullptr || *move.called_off) continue;
        all.push_back({.partition = move.partition,
                       .to = move.to->dir.path(),
                       .bytes = move.progress->bytes.load(),
                       .offset_lag = std::max<std::int64_t>(log->high_watermark().value - move.progress->end_offset.load(), 0)});
    }
    return all;
}

void LogManager::State::run_moves(const std::function<bool()>& is_stopped) {
    for (;;) {
        std::optional<Move> next;
        {
            MutexLock lock(moves_mutex);
            if (moves.empty() || is_stopped()) return;
            next = moves.front();
        }
        const auto moved = run_move(*next, is_stopped);
        if (is_stopped()) return;  // the next start goes on
        if (!moved) {
            log_error("[{}] was not moved to {}: {}", next->partition, next->to->dir.path(), moved.error().message());
            (void)io::remove_all(files, next->future);
        }
        MutexLock lock(moves_mutex);
        moves.pop_front();
    }
}

Result<> LogManager::State::run_move(const Move& move, const std::function<bool()>& is_stopped) {
    std::shared_ptr<Log> log;
    {
        MutexLock lock(mutex);
        if (const auto found = logs.find(move.partition); found != logs.end()) log = found->second;
    }
    if (log == nullptr) return Error{Errc::not_found, "it is gone"};
    auto& from = *directory_of(*log);
    auto& to = *move.to;
    if (&from == &to || *move.called_off) return {};
    TM_TRY(const auto space, files.space(to.dir.path()));
    if (const auto bytes = log->stats().bytes; space.available < bytes + options.reserve_bytes) {
        return Error{Errc::no_space, std::to_string(bytes) + " bytes do not fit, " + std::to_string(space.available) + " are free"};
    }
    log_info("[{}] moves from {} to {}", move.partition, from.dir.path(), to.dir.path());
    LogMove work(log,
                 {.directory = to.dir,
                  .future = move.future,
                  .live = to.at(live_directory_name(move.partition)),
                  .deleted = from.at(deleted_directory_name(move.partition, Uuid::random()))},
                 move.progress, [&] { return is_stopped() || *move.called_off; });
    auto moved = work.copy();
    if (moved) moved = finish_move(work, log, from, to);
    // What the other directory failed in it has been told: this is of the one that the log is in.
    if (!moved && moved.error().code == Errc::io) return from.dir.handled(std::move(moved).error(), "moving " + move.partition.text());
    return moved;
}

Result<> LogManager::State::finish_move(LogMove& work, const std::shared_ptr<Log>& log, Directory& from, Directory& to) {
    MutexLock creating(create_mutex);  // it is not removed or repaired meanwhile
    const auto& partition = log->partition();
    {
        MutexLock lock(mutex);
        const auto found = logs.find(partition);
        if (found == logs.end() || found->second != log) return Error{Errc::not_found, "it is gone"};
    }
    const auto cleaned = read_offset_checkpoint(files, from.at(file_name::cleaner_checkpoint));
    const auto first_dirty = [&]() -> std::optional<Offset> {
        if (!cleaned) return std::nullopt;  // it is cleaned from its start
        const auto found = cleaned->find(partition);
        return found == cleaned->end() ? std::nullopt : std::optional{found->second};
    }();
    const auto set_arriving = [&](std::optional<Arrival> arrival) {
        MutexLock lock(mutex);
        arriving = std::move(arrival);
    };
    // Whatever moment the power fails at, the checkpoints of the directory that it is found in know it.
    set_arriving(Arrival{partition, &to});
    auto finished = write_all_of(to, partition, first_dirty);
    if (finished) finished = work.finish();
    set_arriving(std::nullopt);
    if (!finished) return finished;
    log_info("[{}] moved from {} to {}", partition, from.dir.path(), to.dir.path());
    remove_later(from, work.left_behind());
    (void)write_all_of(from, partition, std::nullopt);
    return {};
}

Result<RepairResult> LogManager::repair(const TopicPartition& partition, Repair how) {
    auto& s = *state_;
    MutexLock repairing(s.create_mutex);
    const auto log = find(partition);
    if (log == nullptr) return Error{Errc::not_found, partition.text()};
    if (!log->state().damaged) return refused(partition.text() + " is not damaged");
    auto& d = *s.directory_of(*log);
    TM_TRYV(log->close());
    {
        MutexLock lock(s.mutex);
        s.logs.erase(partition);
    }
    OpenLogOptions options{.partition = partition,
                           .directory = log->directory(),
                           .config = log->config(),
                           .recovery_point = log->recovery_point(),
                           .log_start = log->log_start_offset(),
                           .clean = true};
    auto repaired = repair_log(d.dir, options, how);
    options.clean = repaired.has_value();  // otherwise it may have been left in the middle
    auto again = open_log(d.dir, options);
    if (again) s.adopt(*again);
    {
        MutexLock lock(s.mutex);
        if (again) s.logs.emplace(partition, *again);
        else s.failed.insert(partition);
    }
    if (!repaired) return d.dir.handled(std::move(repaired).error(), "repairing " + partition.text());
    if (!again) return d.dir.handled(std::move(again).error(), "opening " + partition.text());
    return repaired;
}

// --- the cleaner's checkpoint ------------------------------------------------------------------------------------------

Result<std::unordered_map<TopicPartition, Offset>> LogManager::read_cleaner_checkpoints() const {
    auto& s = *state_;
    std::unordered_map<TopicPartition, Offset> all;
    for (const auto& d : s.directories) {
        if (d->dir.is_offline()) continue;
        MutexLock lock(d->files_mutex);
        const auto read = read_offset_checkpoint(s.files, d->at(file_name::cleaner_checkpoint));
        if (!read) {
            if (read.error().code != Errc::corrupt) return read.error();
            static LogLimit limit{60'000};
            if (limit.admit() >= 0) log_error("{}; its logs are cleaned from their start", read.error().message());
            continue;
        }
        for (const auto& [partition, offset] : *read) {
            const auto log = find(partition);
            if (log != nullptr && &log->log_dir() == &d->dir) all[partition] = offset;  // only the owner's counts
        }
    }
    return all;
}

Result<> LogManager::State::change_cleaner_checkpoint(Directory& d, const TopicPartition& partition, std::optional<Offset> first_dirty) {
    MutexLock lock(d.files_mutex);
    auto read = read_offset_checkpoint(files, d.at(file_name::cleaner_checkpoint));
    if (!read && read.error().code != Errc::corrupt) return std::move(read).error();
    const auto before = read ? *read : OffsetCheckpoint{};
    auto after = before;
    {
        MutexLock guard(mutex);
        for (auto entry = after.begin(); entry != after.end();) {
            const auto log = logs.find(entry->first);
            const bool is_here = log != logs.end() && is_in(*log->second, d);
            entry = is_here ? std::next(entry) : after.erase(entry);
        }
    }
    if (first_dirty) after[partition] = *first_dirty;
    else after.erase(partition);
    if (read && after == before) return {};
    return d.dir.with_reserve([&] { return write_offset_checkpoint(files, d.at(file_name::cleaner_checkpoint), after); });
}

Result<> LogManager::write_cleaner_checkpoint(const TopicPartition& partition, std::optional<Offset> first_dirty) {
    auto& s = *state_;
    const auto log = find(partition);
    if (log == nullptr) return Error{Errc::not_found, partition.text()};
    auto& d = *s.directory_of(*log);
    if (auto written = s.change_cleaner_checkpoint(d, partition, first_dirty); !written) {
        return d.dir.handled(std::move(written).error(), "writing the cleaner's checkpoint");
    }
    return {};
}

}  // namespace tidemark::storage
