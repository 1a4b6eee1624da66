#include "coordinator/partition_runtime.h"

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "record/control.h"

namespace tidemark::coordinator {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// So many operations, its own and others', a caller's thread takes in one go: it has clients of its own.
constexpr int jobs_at_caller_max = 16;

}  // namespace

// --- one operation -----------------------------------------------------------------------------------------------------

class PartitionRuntime::Operation final : public Context {
public:
    explicit Operation(PartitionRuntime& partition)
        : partition_(partition), now_(partition.parts_.clock.now()), moment_(partition.parts_.clock.since_boot()) {}

    Timestamp now() const override { return now_; }
    Moment moment() const override { return moment_; }
    const metadata::ImagePtr& image() const override { return partition_.image_; }
    LeaderEpoch leader_epoch() const override { return partition_.leader_epoch_; }

    Result<> write(std::span<const Record> records, const WriteOptions& options) override {
        if (records.empty()) return {};
        auto& p = partition_;
        const bool transactional = options.producer_id != no_producer_id;
        p.builder_.start({.codec = p.options_.codec,
                          .producer_id = options.producer_id,
                          .producer_epoch = options.producer_epoch,
                          .base_sequence = p.options_.base_sequence,
                          .transactional = transactional});
        for (std::size_t i = 0; i < records.size(); ++i) {
            const auto& record = records[i];
            p.builder_.append(Offset{static_cast<std::int64_t>(i)}, now_, Bytes{record.key}, record.value ? std::optional{Bytes{*record.value}} : std::nullopt);
        }
        std::vector<std::byte> batch;
        p.builder_.finish(batch);
        TM_TRY(const auto first, p.journal_->append(batch, {.verification = options.verification}));
        p.end_ = first + static_cast<std::int64_t>(records.size());
        if (!options.replay) return {};
        for (std::size_t i = 0; i < records.size(); ++i) {
            const auto& record = records[i];
            const auto replayed = p.machine_->replay(ReplayedRecord{.key = record.key,
                                                                    .value = record.value ? std::optional{Bytes{*record.value}} : std::nullopt,
                                                                    .offset = first + static_cast<std::int64_t>(i),
                                                                    .timestamp = now_,
                                                                    .producer_id = options.producer_id,
                                                                    .producer_epoch = options.producer_epoch});
            if (!replayed) log_error("[{}] a record that was just written cannot be replayed: {}", p.name_, replayed.error().message());
            TM_ASSERT(replayed.has_value());
        }
        return {};
    }

    Result<> write(const Marker& marker) override {
        auto& p = partition_;
        std::vector<std::byte> batch;
        record::write_marker({.timestamp = now_,
                              .producer_id = marker.producer_id,
                              .producer_epoch = marker.producer_epoch,
                              .marker = {.type = marker.commit ? record::ControlType::commit : record::ControlType::abort, .coordinator_epoch = marker.coordinator_epoch}},
                             batch);
        TM_TRY(const auto at, p.journal_->append(batch, {.transaction_version = marker.transaction_version}));
        p.end_ = at + 1;
        const auto replayed = p.machine_->replay(ReplayedMarker{.producer_id = marker.producer_id,
                                                                .producer_epoch = marker.producer_epoch,
                                                                .coordinator_epoch = marker.coordinator_epoch,
                                                                .committed = marker.commit});
        TM_ASSERT(replayed.has_value());
        return {};
    }

    void when_durable(std::function<void(ErrorCode)> done) override { answers_.push_back(std::move(done)); }
    std::vector<Done> take_answers() { return std::move(answers_); }

private:
    PartitionRuntime& partition_;
    const Timestamp now_;
    const Moment moment_;
    std::vector<Done> answers_;
};

// --- the queue ---------------------------------------------------------------------------------------------------------

PartitionRuntime::PartitionRuntime(const RuntimeOptions& options, const RuntimeParts& parts, std::int32_t partition)
    : options_(options), parts_(parts), name_{options.topic, partition}, next_deadline_ms_(never) {}

void PartitionRuntime::enqueue(std::function<void()> job, RunsOn runs_on) {
    {
        MutexLock lock(queue_mutex_);
        queue_.push_back({std::move(job), runs_on});
        if (draining_) return;
        draining_ = true;
    }
    if (runs_on == RunsOn::caller) return drain(RunsOn::caller);
    parts_.executor([self = shared_from_this()] { self->drain(RunsOn::executor); });
}

void PartitionRuntime::drain(RunsOn here) noexcept {
    for (int done = 0;; ++done) {
        std::function<void()> job;
        {
            MutexLock lock(queue_mutex_);
            if (queue_.empty()) {
                draining_ = false;
                return;
            }
            if (here == RunsOn::caller && (queue_.front().runs_on != RunsOn::caller || done == jobs_at_caller_max)) break;
            job = std::move(queue_.front().job);
            queue_.pop_front();
        }
        job();
    }
    parts_.executor([self = shared_from_this()] { self->drain(RunsOn::executor); });
}

ErrorCode PartitionRuntime::refusal() const {
    switch (phase_.load()) {
        case Phase::loading: return ErrorCode::coordinator_load_in_progress;
        case Phase::active: return ErrorCode::none;
        case Phase::failed: return ErrorCode::not_coordinator;
        case Phase::closed: break;
    }
    return ErrorCode::coordinator_not_available;
}

void PartitionRuntime::submit(Run run, Refuse refuse, RunsOn runs_on) {
    if (const auto why = refusal(); why != ErrorCode::none) return refuse(why);
    enqueue([this, run = std::move(run), refuse = std::move(refuse)] {
        // What happened while it waited its turn.
        if (const auto why = refusal(); why != ErrorCode::none) return refuse(why);
        this->run(run);
    }, runs_on);
}

void PartitionRuntime::run(const Run& run) {
    Operation operation{*this};
    run(*machine_, operation);
    const auto next = machine_->next_deadline();
    next_deadline_ms_.store(next ? next->count() : never);
    settle(operation.take_answers());
}

void PartitionRuntime::image_changed(metadata::ImagePtr image, LeaderEpoch leader_epoch) {
    enqueue([this, image = std::move(image), leader_epoch]() mutable {
        leader_epoch_ = leader_epoch;
        std::swap(image_, image);
        if (phase_.load() == Phase::active) run([&](StateMachine& machine, Context& context) { machine.image_changed(context, image); });
    });
}

void PartitionRuntime::tick(Moment now) {
    for (auto& late : take_waiting([&](const Waiting& waiting) { return waiting.deadline <= now; })) {
        for (auto& done : late.answers) done(ErrorCode::request_timed_out);
    }
    if (next_deadline_ms_.load() > now.count() || tick_queued_.exchange(true)) return;
    enqueue([this] {
        tick_queued_.store(false);
        if (phase_.load() == Phase::active) run([](StateMachine& machine, Context& context) { machine.tick(context); });
    });
}

void PartitionRuntime::close(ErrorCode reason, std::function<void()> closed) {
    enqueue([this, reason, closed = std::move(closed)] {
        end(Phase::closed, reason);
        closed();
    });
}

/// Nothing runs on the machine after this; a second end changes the phase only.
void PartitionRuntime::end(Phase phase, ErrorCode reason) {
    phase_.store(phase);
    next_deadline_ms_.store(never);
    if (machine_) machine_->unloaded(reason);
    machine_.reset();
    journal_.reset();
    for (auto& waiting : take_waiting([](const Waiting&) { return true; })) {
        for (auto& done : waiting.answers) done(reason);
    }
}

void PartitionRuntime::fail(const Error& error) {
    if (phase_.load() == Phase::closed) return;
    log_error("[{}] is not served until the next start: {}", name_, error.message());
    end(Phase::failed, ErrorCode::not_coordinator);
}

// --- durability --------------------------------------------------------------------------------------------------------

void PartitionRuntime::settle(std::vector<Done> answers) {
    if (answers.empty()) return;
    const auto end = end_;
    {
        MutexLock lock(waiting_mutex_);
        if (!waiting_.empty() || durable_end_.load() < end.value) {
            waiting_.push_back({.end = end, .deadline = parts_.clock.since_boot() + Moment{options_.commit_timeout_ms}, .answers = std::move(answers)});
            answers.clear();
        }
    }
    if (!answers.empty()) {
        for (auto& done : answers) done(ErrorCode::none);
        return;
    }
    journal_->when_durable(end, [self = shared_from_this(), end](const Result<>& synced) { self->durable(end, synced); });
}

void PartitionRuntime::durable(Offset end, const Result<>& synced) {
    if (!synced) {
        // Storage takes nothing back by itself, but what it failed to write is not there after a restart.
        for (auto& waiting : take_waiting([](const Waiting&) { return true; })) {
            for (auto& done : waiting.answers) done(ErrorCode::kafka_storage_error);
        }
        if (phase_.load() != Phase::closed) enqueue([this, error = synced.error()] { fail(error); });
        return;
    }
    for (auto seen = durable_end_.load(); seen < end.value && !durable_end_.compare_exchange_weak(seen, end.value);) {}
    for (auto& waiting : take_waiting([&](const Waiting& w) { return w.end <= end; })) {
        for (auto& done : waiting.answers) done(ErrorCode::none);
    }
}

std::vector<PartitionRuntime::Waiting> PartitionRuntime::take_waiting(const std::function<bool(const Waiting&)>& which) {
    std::vector<Waiting> taken;
    MutexLock lock(waiting_mutex_);
    while (!waiting_.empty() && which(waiting_.front())) {
        taken.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
    }
    return taken;
}

// --- loading -----------------------------------------------------------------------------------------------------------

void PartitionRuntime::load(std::unique_ptr<StateMachine> made, metadata::ImagePtr image, LeaderEpoch leader_epoch) {
    machine_ = std::move(made);
    image_ = std::move(image);
    leader_epoch_ = leader_epoch;
    enqueue([this] {
        const auto began = parts_.clock.since_boot();
        journal_ = parts_.open_journal(name_);
        const auto read = journal_ ? read_log() : Result<>{Error{Errc::storage_offline, "there is no log"}};
        if (!read) return fail(read.error());
        end_ = journal_->end_offset();
        phase_.store(Phase::active);
        run([](StateMachine& machine, Context& context) { machine.loaded(context); });
        if (end_ != journal_->start_offset()) log_info("[{}] loaded up to offset {} in {} ms", name_, end_.value, (parts_.clock.since_boot() - began).count());
    });
}

Result<> PartitionRuntime::read_log() {
    for (auto at = journal_->start_offset(); at < journal_->end_offset();) {
        TM_TRY(const auto bytes, journal_->read(at, options_.load_buffer_bytes));
        record::BatchCursor cursor{bytes};
        const auto before = at;
        for (;;) {
            TM_TRY(const auto batch, cursor.next());
            if (!batch) break;
            TM_TRYV(replay_batch(*batch));
            at = std::max(at, batch->next_offset());
        }
        // The last offsets of a log may have been compacted away, but the batch that stood there is kept, if empty.
        if (at == before) return Error{Errc::corrupt, "no batch at offset " + std::to_string(at.value)};
    }
    return {};
}

Result<> PartitionRuntime::replay_batch(const record::BatchView& batch) {
    if (!batch.crc_matches()) return Error{Errc::corrupt, "wrong CRC in the batch at offset " + std::to_string(batch.base_offset().value)};
    TM_TRYV(reader_.open(batch));
    for (;;) {
        TM_TRY(const auto record, reader_.next());
        if (!record) return {};
        if (batch.is_control()) {
            TM_TRY(const auto type, record::control_type(*record));
            if (type != record::ControlType::commit && type != record::ControlType::abort) continue;
            TM_TRY(const auto marker, record::transaction_marker(*record));
            TM_TRYV(machine_->replay(ReplayedMarker{.producer_id = batch.producer_id(),
                                                    .producer_epoch = batch.producer_epoch(),
                                                    .coordinator_epoch = marker.coordinator_epoch,
                                                    .committed = type == record::ControlType::commit}));
            continue;
        }
        if (!record->key) return Error{Errc::corrupt, "a record without a key at offset " + std::to_string(record->offset.value)};
        const auto replayed = machine_->replay(ReplayedRecord{.key = *record->key,
                                                              .value = record->value,
                                                              .offset = record->offset,
                                                              .timestamp = record->timestamp,
                                                              .producer_id = batch.producer_id(),
                                                              .producer_epoch = batch.producer_epoch()});
        if (!replayed) return in_context(replayed.error(), "offset " + std::to_string(record->offset.value));
    }
}

}  // namespace tidemark::coordinator
