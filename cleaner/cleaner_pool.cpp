// A thread's round:
// 1. Roll what lies idle too long (D1), once per backoff.
// 2. Decide for every compacted log, repair checkpoints, publish the gauges (D4), choose one (D2).
// 3. Clean it; its new first dirty offset is stored before the partition is let go.
// 4. Delete old segments of compacted logs (cleaner 9).
// 5. With nothing cleaned: look for delete horizons in segments that nobody has scanned yet (D5), then wait for the backoff.
#include "cleaner/cleaner_pool.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/thread.h"
#include "cleaner/log_state.h"
#include "io/priority.h"
#include "storage/log_directory.h"
#include "storage/segment.h"

namespace tidemark::cleaner {
namespace {

constexpr std::int64_t first_retry_ms = 60'000;
constexpr std::int64_t last_retry_ms = 3'600'000;
constexpr std::int64_t scan_bytes_per_round = 64 << 20;

std::int64_t retry_pause_ms(int failures) { return std::min(last_retry_ms, first_retry_ms << std::min(failures - 1, 10)); }

/// What ends when the log goes away or its directory fails: nobody's fault, nothing to note.
bool is_gone(const Error& error) { return error.code == Errc::storage_offline || error.code == Errc::not_found; }

std::int32_t percent(double ratio) { return static_cast<std::int32_t>(100 * ratio); }

OffsetMapOptions map_options(const CleanerOptions& options) {
    return {options.dedupe_buffer_bytes / std::max(1, options.threads), options.dedupe_buffer_load};
}

/// The segment that holds the log's start and so, perhaps, records below it; null when it is the active one.
std::shared_ptr<storage::Segment> closed_segment_of_start(const storage::Log& log) {
    const auto segments = log.segments();
    const auto start = log.log_start_offset();
    for (std::size_t i = 0; i + 1 < segments->size(); ++i) {
        if ((*segments)[i]->base_offset() < start && start < (*segments)[i + 1]->base_offset()) return (*segments)[i];
    }
    return nullptr;
}

/// Lets the partition go, also when an exception ends the work on it.
class Ending {
public:
    Ending(PartitionStates& states, const TopicPartition& partition) : states_(states), partition_(partition) {}
    ~Ending() { states_.done(partition_); }
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
private:
    PartitionStates& states_;
    const TopicPartition partition_;
};

void log_pass(const PassReport& report) {
    const auto& s = report.stats;
    const auto mib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    if (report.why == Why::erasure) {
        log_info("[{}] erased {} records below the log's start {} in {:.1f} s: {:.1f} MiB read and {:.1f} MiB written", report.partition, s.erased, report.first_dirty.value, s.seconds,
                 mib(s.bytes_read), mib(s.bytes_written));
        return;
    }
    log_info("[{}] cleaned {} to {} ({}{}) in {:.1f} s: {:.1f} MiB read for the map, {:.1f} MiB read and {:.1f} MiB written; {} of {} records stay, {} segments became {}; map {:.1f} % full",
             report.partition, report.first_dirty.value, s.end_offset.value, to_string(report.why), report.requested ? ", requested" : "", s.seconds, mib(s.map_bytes_read),
             mib(s.bytes_read), mib(s.bytes_written), s.messages_written, s.messages_read, s.segments_before, s.segments_after, 100 * s.buffer_utilization);
    if (s.invalid_messages_read > 0) log_warning("[{}] {} records without a key were dropped by cleaning", report.partition, s.invalid_messages_read);
}

}  // namespace

CleanerPool::CleanerPool(storage::LogManager& logs, const Clock& clock, CleanerOptions options, Retention retention, Observer observer, ClockTrust clock_trust)
    : logs_(logs), clock_(clock), retention_(std::move(retention)), observer_(std::move(observer)), clock_trust_(std::move(clock_trust)),
      options_(std::make_shared<const CleanerOptions>(options)), throttle_(clock, options.io_bytes_per_second_max) {
    MutexLock lock(mutex_);
    thread_notes_.resize(static_cast<std::size_t>(std::max(1, options.threads)));
}

CleanerPool::~CleanerPool() { stop(); }

// --- threads ---------------------------------------------------------------------------------------------------------

void CleanerPool::start() {
    started_ = true;
    start_threads();
}

void CleanerPool::stop() {
    stop_threads();
    started_ = false;
}

void CleanerPool::start_threads() {
    const auto threads = static_cast<std::size_t>(std::max(0, options()->threads));
    if (threads == 0) log_warning("log.cleaner.threads is 0: nothing is compacted, and compacted topics keep all their segments");
    for (std::size_t i = 0; i < threads; ++i) {
        threads_.emplace_back([this, i](const std::stop_token& stop) { thread_main(stop, i); });
    }
}

void CleanerPool::stop_threads() {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();   // joins
}

void CleanerPool::reconfigure(CleanerOptions options) {
    if (options == *options_.get()) return;
    stop_threads();
    options_.put(std::make_shared<const CleanerOptions>(options));
    throttle_.set_rate(options.io_bytes_per_second_max);
    own_workspace_.reset();
    {
        MutexLock lock(mutex_);
        thread_notes_.assign(static_cast<std::size_t>(std::max(1, options.threads)), {});
    }
    if (started_) start_threads();
}

Workspace CleanerPool::make_workspace() const { return {.map = OffsetMap(map_options(*options()), hash_key_)}; }

void CleanerPool::thread_main(const std::stop_token& stop, std::size_t index) {
    name_this_thread("cleaner-" + std::to_string(index));
    if (!io::set_idle_priority()) log_debug("cleaner thread {}: no idle priority for its disk requests", index);
    std::optional<Workspace> work;
    while (!stop.stop_requested()) {
        std::uint64_t seen;
        {
            const std::lock_guard lock(wake_mutex_);
            seen = wake_count_;
        }
        bool cleaned = false;
        try {
            if (!work) work.emplace(make_workspace());
            cleaned = round(*work, index, stop).cleaned.has_value();
        } catch (const std::exception& e) {
            // Memory, as a rule. Kafka's thread would be dead from here on.
            log_error("cleaner thread {}: {}; it begins anew after log.cleaner.backoff.ms", index, e.what());
            MutexLock lock(mutex_);
            thread_notes_.at(index).dead = true;
        }
        if (cleaned) continue;
        work.reset();   // an idle cleaner holds no memory
        std::unique_lock lock(wake_mutex_);
        wake_.wait_for(lock, stop, std::chrono::milliseconds{options()->backoff_ms}, [&] { return wake_count_ != seen; });
        lock.unlock();
        MutexLock notes_lock(mutex_);
        auto& notes = thread_notes_.at(index);
        if (std::exchange(notes.dead, false)) ++totals_.revived_threads;
    }
}

CleanerPool::Round CleanerPool::run_once() {
    if (!own_workspace_) own_workspace_ = std::make_unique<Workspace>(make_workspace());
    return round(*own_workspace_, 0, {});
}

CleanerPool::Round CleanerPool::round(Workspace& work, std::size_t thread, const std::stop_token& stop) {
    Round done;
    done.rolled = roll_idle();
    auto chosen = choose_erasure();
    if (!chosen) chosen = choose(thread);
    if (chosen) {
        if (clean(*chosen, work, thread, stop)) done.cleaned = chosen->log->partition();
    }
    if (stop.stop_requested()) return done;
    done.deletions = delete_old_segments();
    if (!done.cleaned) scan_horizons(stop);
    forget_gone_partitions();
    return done;
}

// --- 1. idle segments ------------------------------------------------------------------------------------------------

std::size_t CleanerPool::roll_idle() {
    const auto options = this->options();
    if (!options->differences.idle_roll) return 0;
    {
        MutexLock lock(mutex_);
        const auto now = clock_.since_boot();
        if (last_idle_check_ && now - *last_idle_check_ < std::chrono::milliseconds{options->backoff_ms}) return 0;
        last_idle_check_ = now;
    }
    const auto now = clock_.now();
    std::optional<std::unordered_map<TopicPartition, Offset>> stored;
    std::size_t rolled = 0;
    for (const auto& log : logs_.logs()) {
        const auto config = log->config();
        const auto list = log->segments();
        if (!list || list->empty() || list->back()->bytes() == 0) continue;
        Offset first_dirty = list->back()->base_offset();   // without compaction only the active segment is looked at
        std::optional<Timestamp> last_lag_roll;
        if (config->compacts && config->max_compaction_lag_ms != storage::unlimited) {
            if (!stored) stored = checkpoints();
            const auto found = stored->find(log->partition());
            first_dirty = found != stored->end() ? found->second : log->log_start_offset();
            MutexLock lock(mutex_);
            if (const auto notes = notes_.find(log->partition()); notes != notes_.end()) last_lag_roll = notes->second.last_lag_roll;
        }
        const auto segments = read_segment_states(*log, first_dirty);
        if (!segments) continue;
        const auto why = decide_idle_roll(*segments, first_dirty, *config, last_lag_roll, list->back()->roll_jitter_ms(), now, options->differences);
        if (why == IdleRoll::none) continue;
        if (auto done = log->roll(); !done) {
            if (!is_gone(done.error())) log_error("[{}] rolling an idle segment: {}", log->partition(), log->log_dir().handled(std::move(done).error(), "rolling").message());
            continue;
        }
        log_info("[{}] rolled without traffic at offset {}: {}", log->partition(), log->log_end_offset().value, to_string(why));
        ++rolled;
        MutexLock lock(mutex_);
        ++totals_.idle_rolls;
        if (why == IdleRoll::max_compaction_lag) notes_[log->partition()].last_lag_roll = now;
    }
    return rolled;
}

// --- 2. choosing -----------------------------------------------------------------------------------------------------

std::vector<CleanerPool::LogPointer> CleanerPool::compacted_logs() const {
    auto all = logs_.logs();
    std::erase_if(all, [](const LogPointer& log) { return !log->config()->compacts; });
    std::ranges::sort(all, {}, [](const LogPointer& log) -> const TopicPartition& { return log->partition(); });
    return all;
}

std::unordered_map<TopicPartition, Offset> CleanerPool::checkpoints() const {
    auto read = logs_.read_cleaner_checkpoints();
    if (read) return *std::move(read);
    log_error("reading the cleaner's checkpoints: {}", read.error().message());
    return {};
}

LogState CleanerPool::with_notes(LogState state, const Notes* notes) const {
    if (notes == nullptr) return state;
    state.codec = notes->codec;
    state.last_horizon_pass = notes->last_horizon_pass;
    return state;
}

CleaningDecision CleanerPool::decide_and_repair(storage::Log& log, const LogState& state, const storage::LogConfig& config, Timestamp now) {
    const auto options = this->options();
    auto decision = decide(state, config, now, options->backoff_ms, options->differences);
    decision.estimates.clear();
    if (!trusts_clock()) decision.horizon_due.reset();
    if (!decision.repaired_checkpoint) return decision;
    if (decision.repair_is_unexpected) {
        log_warning("[{}] the cleaner's checkpoint {} lies outside the log ({} to {}): cleaning begins at {}", log.partition(), state.checkpoint->value,
                    state.log_start_offset.value, state.log_end_offset.value, decision.first_dirty.value);
    }
    if (auto written = logs_.write_cleaner_checkpoint(log.partition(), decision.repaired_checkpoint); !written) {
        log_error("[{}] writing the cleaner's checkpoint: {}", log.partition(), written.error().message());
    }
    return decision;
}

bool CleanerPool::waits_for_retry(const Notes& notes, const std::shared_ptr<const storage::LogConfig>& config) const {
    if (!notes.uncleanable || notes.requested) return false;
    return !options()->differences.retry_uncleanable || (clock_.since_boot() < notes.retry_at && config == notes.failed_with);
}

/// What would have to be known of the log cannot be read.
void CleanerPool::note_undecided(storage::Log& log, Error error) {
    {
        MutexLock lock(mutex_);
        auto& notes = notes_[log.partition()];
        if (waits_for_retry(notes, log.config())) return;
        if (std::exchange(notes.requested, false)) {
            notes.requests_done = notes.requests;
            notes.request_result = error.message();
        }
    }
    note_failure(log, std::move(error), Why::dirty_ratio);
}

/// A request's first part. Of a log that is not compacted it is the only one.
std::optional<CleanerPool::Chosen> CleanerPool::choose_erasure() {
    MutexLock lock(mutex_);
    for (auto& [partition, notes] : notes_) {
        if (!notes.erasure_is_due) continue;
        const auto log = logs_.find(partition);
        if (!log || log->is_moving() || !states_.begin(partition)) continue;
        notes.erasure_is_due = false;
        if (const auto segment = closed_segment_of_start(*log)) {
            CleaningDecision decision;
            decision.first_dirty = log->log_start_offset();
            decision.clean_bytes = segment->bytes();
            return Chosen{log, decision, Why::erasure, true, notes.requests};
        }
        states_.done(partition);
        if (!log->config()->compacts) finish_request(notes, notes.requests, "nothing to clean");
    }
    return std::nullopt;
}

void CleanerPool::finish_request(Notes& notes, std::uint64_t number, std::string result) {
    notes.requested = notes.requests != number;   // what was asked since keeps its turn
    notes.requests_done = number;
    notes.request_result = std::move(result);
}

std::optional<CleanerPool::Chosen> CleanerPool::choose(std::size_t thread) {
    const auto options = this->options();
    MutexLock selection(selection_mutex_);
    const auto now = clock_.now();
    const auto stored = checkpoints();
    LagGauges lag;
    double dirtiest = 0;
    std::int64_t max_delay = 0;
    std::vector<Chosen> open;      // those that may be chosen
    std::vector<Candidate> candidates;
    std::vector<std::optional<record::Codec>> codecs;
    for (const auto& log : compacted_logs()) {
        const auto& partition = log->partition();
        const auto config = log->config();
        const auto checkpoint = stored.find(partition);
        auto state = read_log_state(*log, checkpoint == stored.end() ? std::nullopt : std::optional{checkpoint->second});
        if (!state) {
            if (!is_gone(state.error())) note_undecided(*log, std::move(state).error());
            continue;
        }
        MutexLock lock(mutex_);
        auto& notes = notes_[partition];
        notes.decision = decide_and_repair(*log, with_notes(*std::move(state), &notes), *config, now);
        notes.decided = true;
        lag.add(notes.decision);
        if (states_.state(partition) || log->is_moving()) continue;
        if (waits_for_retry(notes, config)) continue;
        max_delay = std::max(max_delay, notes.decision.delay_ms);
        if (notes.decision.total_bytes() > 0) dirtiest = std::max(dirtiest, notes.decision.ratio());
        open.push_back({log, notes.decision, Why::dirty_ratio, notes.requested && !notes.erasure_is_due, notes.requests});
        codecs.push_back(notes.codec);
    }
    MutexLock lock(mutex_);
    lag_ = lag;
    dirtiest_ratio_ = dirtiest;
    last_run_ = now;
    for (std::size_t i = 0; i < open.size(); ++i) candidates.push_back({&open[i].decision, codecs[i]});
    auto order = schedule(candidates, speed_, now, options->differences);
    // What was asked for goes first, eligible or not.
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (!open[i].requested) continue;
        if (open[i].decision.cleanable_bytes > 0) {
            order.insert(order.begin(), {i, Why::dirty_ratio});
            continue;
        }
        auto& notes = notes_[open[i].log->partition()];
        if (!notes.erased) log_info("[{}] nothing to clean", open[i].log->partition());
        finish_request(notes, open[i].request, notes.erased ? "cleaned" : "nothing to clean");
    }
    for (const auto& selected : order) {
        auto& chosen = open[selected.index];
        if (!states_.begin(chosen.log->partition())) continue;
        // The others that were asked for keep their turn, and so does what was asked since.
        auto& notes = notes_[chosen.log->partition()];
        if (chosen.requested) notes.requested = notes.requests != chosen.request;
        chosen.why = selected.why;
        thread_notes_.at(thread).max_delay_ms = max_delay;
        return std::move(chosen);
    }
    return std::nullopt;
}

// --- 3. cleaning -----------------------------------------------------------------------------------------------------

bool CleanerPool::clean(const Chosen& chosen, Workspace& work, std::size_t thread, const std::stop_token& stop) {
    const auto options = this->options();
    auto& log = *chosen.log;
    const auto& partition = log.partition();
    const Ending ending(states_, partition);
    const PassRequest request{.first_dirty = chosen.decision.first_dirty, .cleanable_end = chosen.decision.cleanable_end,
                              .horizons_only = chosen.why == Why::horizon, .horizons_expire = trusts_clock(),
                              .erase_below = chosen.why == Why::erasure ? std::optional{log.log_start_offset()} : std::nullopt};
    const PassOptions pass_options{.buffer_bytes = options->io_buffer_bytes / std::max(1, options->threads) / 2,
                                   .broker_message_bytes_max = options->message_bytes_max, .differences = options->differences,
                                   .progress = [&](std::int64_t bytes) { note_progress(partition, bytes); }};
    {
        MutexLock lock(mutex_);
        notes_[partition].progress = PassProgress{.bytes_total = chosen.decision.cleanable_bytes + chosen.decision.total_bytes()};
    }
    const auto keep_going = [&]() -> Result<> {
        if (stop.stop_requested()) return Error{Errc::aborted, "the cleaner stops"};
        if (states_.is_aborted(partition)) return Error{Errc::aborted, "asked to stop"};
        return {};
    };
    PassReport report{.partition = partition, .why = chosen.why, .requested = chosen.requested, .first_dirty = request.first_dirty, .deadline = chosen.decision.deadline,
                      .began = clock_.now(), .stats = {}};
    Result<PassStats> result = Error{Errc::aborted, ""};
    try {
        result = run_pass(log, request, pass_options, work, throttle_, clock_, keep_going);
    } catch (const std::exception& e) {
        result = Error{Errc::invalid_argument, e.what()};
    }
    // On an error the log begins where it began: what was swapped in does no harm.
    if (request.is_ordinary() && !states_.is_aborted(partition)) {
        if (auto written = logs_.write_cleaner_checkpoint(partition, result ? result->end_offset : request.first_dirty); !written) {
            log_error("[{}] writing the cleaner's checkpoint: {}", partition, written.error().message());
        }
    }
    {
        MutexLock lock(mutex_);
        auto& notes = notes_[partition];
        notes.progress.reset();
        if (chosen.why == Why::erasure) notes.erased = result.has_value();
        const bool goes_on = chosen.why == Why::erasure && result && log.config()->compacts;
        if (chosen.requested && !goes_on) finish_request(notes, chosen.request, result ? "cleaned" : result.error().message());
    }
    if (result) {
        report.stats = *result;
        note_success(chosen, report, thread);
    } else if (result.error().code == Errc::aborted) {
        log_info("[{}] cleaning stopped: {}", partition, result.error().context);
        MutexLock lock(mutex_);
        ++totals_.aborted_passes;
    } else {
        note_failure(log, std::move(result).error(), chosen.why);
    }
    return result.has_value();
}

void CleanerPool::note_success(const Chosen& chosen, const PassReport& report, std::size_t thread) {
    const auto& s = report.stats;
    log_pass(report);
    {
        MutexLock lock(mutex_);
        auto& notes = notes_[report.partition];
        notes.last_pass = report;
        notes.uncleanable.reset();
        notes.failures = 0;
        notes.failed_with.reset();
        if (s.bytes_read > 0) notes.codec = s.codec;
        if (chosen.why == Why::horizon) notes.last_horizon_pass = report.began;
        speed_.measured(s.codec, s.bytes_read + s.map_bytes_read, s.seconds);
        auto& own = thread_notes_.at(thread);
        own.bytes_read = s.bytes_read;
        own.bytes_written = s.bytes_written;
        own.utilization = s.buffer_utilization;
        own.seconds = s.seconds;
        ++(chosen.why == Why::horizon ? totals_.horizon_passes : totals_.passes);
        totals_.bytes_read += static_cast<std::uint64_t>(s.bytes_read + s.map_bytes_read);
        totals_.bytes_written += static_cast<std::uint64_t>(s.bytes_written);
        totals_.records_superseded += static_cast<std::uint64_t>(s.superseded);
        totals_.records_expired += static_cast<std::uint64_t>(s.expired);
        totals_.records_without_key += static_cast<std::uint64_t>(s.invalid_messages_read);
        totals_.tombstones_removed += static_cast<std::uint64_t>(s.tombstones_removed);
        totals_.markers_removed += static_cast<std::uint64_t>(s.markers_removed);
        totals_.seconds += s.seconds;
    }
    if (observer_) observer_(report);
}

void CleanerPool::note_progress(const TopicPartition& partition, std::int64_t bytes) {
    MutexLock lock(mutex_);
    if (auto& progress = notes_[partition].progress) progress->bytes_read += bytes;
}

void CleanerPool::note_failure(storage::Log& log, Error error, Why why) {
    const auto code = error.code;
    if (code == Errc::io) error = log.log_dir().handled(std::move(error), "cleaning " + log.partition().text());
    if (is_gone(error)) return;
    if (code == Errc::no_space) {
        log_warning("[{}] not cleaned, for lack of room: {}", log.partition(), error.context);
        MutexLock lock(mutex_);
        ++totals_.failed_passes;
        return;
    }
    if (why == Why::erasure) {   // who asked is told
        log_warning("[{}] what lies below the log's start was not erased: {}", log.partition(), error.message());
        MutexLock lock(mutex_);
        ++totals_.failed_passes;
        return;
    }
    MutexLock lock(mutex_);
    auto& notes = notes_[log.partition()];
    ++totals_.failed_passes;
    ++notes.failures;
    const auto pause = retry_pause_ms(notes.failures);
    const auto since = notes.uncleanable ? notes.uncleanable->since : clock_.now();
    notes.uncleanable = Uncleanable{error.message(), since, notes.failures, pause};
    notes.retry_at = clock_.since_boot() + std::chrono::milliseconds{pause};
    notes.failed_with = log.config();
    log_warning("[{}] cannot be cleaned: {}; tried again in {} s or when its settings change", log.partition(), error.message(), pause / 1000);
}

// --- 4. deletion -----------------------------------------------------------------------------------------------------

std::size_t CleanerPool::delete_old_segments() {
    if (!retention_) return 0;
    const bool passes_over_uncleanable = !options()->differences.retry_uncleanable;
    std::size_t deletions = 0;
    for (const auto& log : compacted_logs()) {
        if (passes_over_uncleanable) {
            MutexLock lock(mutex_);
            if (const auto notes = notes_.find(log->partition()); notes != notes_.end() && notes->second.uncleanable) continue;
        }
        if (!states_.begin(log->partition())) continue;
        const Ending ending(states_, log->partition());
        auto result = retention_(*log);
        if (result) deletions += *result ? 1 : 0;
        else if (!is_gone(result.error())) log_error("[{}] deleting old segments: {}", log->partition(), log->log_dir().handled(std::move(result).error(), "deleting old segments").message());
    }
    return deletions;
}

// --- 5. horizons nobody knows ----------------------------------------------------------------------------------------

void CleanerPool::scan_horizons(const std::stop_token& stop) {
    if (!options()->differences.horizon_passes) return;
    std::int64_t left = scan_bytes_per_round;
    for (const auto& log : compacted_logs()) {
        Offset first_dirty;
        {
            MutexLock lock(mutex_);
            const auto notes = notes_.find(log->partition());
            if (notes == notes_.end() || !notes->second.decided) continue;
            first_dirty = notes->second.decision.first_dirty;
        }
        const auto list = log->segments();
        if (!list) continue;
        for (std::size_t i = 0; i + 1 < list->size() && (*list)[i]->base_offset() < first_dirty; ++i) {
            auto& segment = *(*list)[i];
            if (segment.earliest_delete_horizon()) continue;
            if (left <= 0 || stop.stop_requested()) return;
            if (const auto scanned = scan_for_horizons(segment)) {
                left -= *scanned;
                throttle_.note(*scanned);
            } else {
                // What is wrong with it a pass will tell; this is not the place.
                segment.set_earliest_delete_horizon(std::nullopt);
            }
        }
    }
}

void CleanerPool::forget_gone_partitions() {
    MutexLock lock(mutex_);
    std::erase_if(notes_, [&](const auto& entry) {
        const auto log = logs_.find(entry.first);
        return !log || (!log->config()->compacts && entry.second.requests == 0);
    });
}

// --- for those who change logs ---------------------------------------------------------------------------------------

Result<> CleanerPool::abort(const TopicPartition& partition) {
    TM_TRYV(states_.abort_and_pause(partition));
    return states_.resume(partition);
}

Result<> CleanerPool::truncated(const TopicPartition& partition, Offset end) {
    const auto log = logs_.find(partition);
    if (!log || !log->config()->compacts) return {};
    const auto stored = checkpoints();
    const auto found = stored.find(partition);
    if (found == stored.end() || found->second <= end) return {};
    return logs_.write_cleaner_checkpoint(partition, end);
}

void CleanerPool::removed(const TopicPartition& partition) {
    MutexLock lock(mutex_);
    notes_.erase(partition);
}

std::uint64_t CleanerPool::request(const TopicPartition& partition) {
    std::uint64_t number;
    {
        MutexLock lock(mutex_);
        auto& notes = notes_[partition];
        notes.requested = notes.erasure_is_due = true;
        notes.erased = false;
        number = ++notes.requests;
    }
    const std::lock_guard lock(wake_mutex_);
    ++wake_count_;
    wake_.notify_all();
    return number;
}

// --- numbers ---------------------------------------------------------------------------------------------------------

PartitionStats CleanerPool::stats_of(const TopicPartition& partition, const Notes& notes, std::optional<WorkState> state) {
    return {partition, notes.decision, state, notes.uncleanable, notes.last_pass, notes.progress, notes.requests_done, notes.request_result};
}

PoolStats CleanerPool::stats() const {
    PoolStats out;
    std::unordered_map<io::Path, PoolStats::Directory> directories;
    for (const auto& directory : logs_.directories()) directories[directory.path].path = directory.path;
    MutexLock lock(mutex_);
    out = totals_;
    out.lag = lag_;
    out.io_bytes = throttle_.bytes_total();
    double utilization = 0, seconds = 0;
    std::int64_t read = 0, written = 0, delay = 0;
    for (const auto& thread : thread_notes_) {
        utilization = std::max(utilization, thread.utilization);
        seconds = std::max(seconds, thread.seconds);
        read += thread.bytes_read;
        written += thread.bytes_written;
        delay = std::max(delay, thread.max_delay_ms);
        out.dead_threads += thread.dead ? 1 : 0;
    }
    out.max_buffer_utilization_percent = percent(utilization);
    out.cleaner_recopy_percent = percent(static_cast<double>(written) / static_cast<double>(std::max<std::int64_t>(read, 1)));
    out.max_clean_time_secs = static_cast<std::int32_t>(seconds);
    out.max_compaction_delay_secs = static_cast<std::int32_t>(delay / 1000);
    out.max_dirty_percent = percent(dirtiest_ratio_);
    if (last_run_) out.time_since_last_run_ms = clock_.now() - *last_run_;
    for (const auto& [partition, notes] : notes_) {
        if (!notes.decided && !notes.uncleanable) continue;
        out.partitions.push_back(stats_of(partition, notes, states_.state(partition)));
        if (!notes.uncleanable) continue;
        if (const auto log = logs_.find(partition)) {
            auto& directory = directories[log->log_dir().path()];
            directory.path = log->log_dir().path();
            ++directory.uncleanable_partitions;
            directory.uncleanable_bytes += notes.decision.cleanable_bytes;
        }
    }
    for (auto& [path, directory] : directories) out.directories.push_back(std::move(directory));
    std::ranges::sort(out.directories, {}, &PoolStats::Directory::path);
    std::ranges::sort(out.partitions, {}, &PartitionStats::partition);
    return out;
}

std::optional<PartitionStats> CleanerPool::partition(const TopicPartition& partition) const {
    MutexLock lock(mutex_);
    const auto notes = notes_.find(partition);
    if (notes == notes_.end() || (!notes->second.decided && !notes->second.uncleanable && notes->second.requests == 0)) return std::nullopt;
    return stats_of(partition, notes->second, states_.state(partition));
}

std::vector<PlannedPass> CleanerPool::plan() const {
    const auto options = this->options();
    const auto now = clock_.now();
    const auto stored = checkpoints();
    std::vector<PlannedPass> planned;
    std::vector<std::optional<record::Codec>> codecs;
    for (const auto& log : compacted_logs()) {
        const auto& partition = log->partition();
        const auto checkpoint = stored.find(partition);
        auto state = read_log_state(*log, checkpoint == stored.end() ? std::nullopt : std::optional{checkpoint->second});
        if (!state) continue;
        MutexLock lock(mutex_);
        const auto found = notes_.find(partition);
        const auto* notes = found == notes_.end() ? nullptr : &found->second;
        const auto filled = with_notes(*std::move(state), notes);
        PlannedPass p{.partition = partition, .decision = decide(filled, *log->config(), now, options->backoff_ms, options->differences), .why = {}, .idle_roll = {},
                      .state = states_.state(partition), .uncleanable = {}};
        if (!trusts_clock()) p.decision.horizon_due.reset();
        const auto list = log->segments();
        p.idle_roll = decide_idle_roll(filled.segments, p.decision.first_dirty, *log->config(), notes ? notes->last_lag_roll : std::nullopt,
                                       list && !list->empty() ? list->back()->roll_jitter_ms() : 0, now, options->differences);
        if (notes != nullptr) p.uncleanable = notes->uncleanable;
        codecs.push_back(notes ? notes->codec : std::nullopt);
        planned.push_back(std::move(p));
    }
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < planned.size(); ++i) candidates.push_back({&planned[i].decision, codecs[i]});
    CleaningSpeed speed;
    {
        MutexLock lock(mutex_);
        speed = speed_;
    }
    std::vector<PlannedPass> ordered;
    std::vector<bool> taken(planned.size());
    for (const auto& selected : schedule(candidates, speed, now, options->differences)) {
        ordered.push_back(planned[selected.index]);
        ordered.back().why = selected.why;
        taken[selected.index] = true;
    }
    for (std::size_t i = 0; i < planned.size(); ++i) {
        if (!taken[i]) ordered.push_back(std::move(planned[i]));
    }
    return ordered;
}

}  // namespace tidemark::cleaner
