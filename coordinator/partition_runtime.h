/// One partition's state machine, its log, and the queue of what is to be done to it. Behind Runtime.
///
///   loading ──► active ──► closed        loading: operations are refused with coordinator_load_in_progress
///      └──────► failed ──► closed        failed: unreadable, or its storage failed: not_coordinator until the next start
///
/// Operations wait in a queue, from which one thread at a time takes them: the one that brought an operation of one group
/// or transaction, as long as nothing longer is before it, else a job of the executor. Answers wait for durability in
/// another, in the order of what they wait for; its callbacks come from the storage's sync thread.
#pragma once

#include <atomic>
#include <deque>

#include "coordinator/runtime.h"
#include "record/builder.h"

namespace tidemark::coordinator {

/// Threads: all members from any thread.
class PartitionRuntime : public std::enable_shared_from_this<PartitionRuntime> {
public:
    using Run = RuntimeCore::Run;
    using Refuse = RuntimeCore::Refuse;

    PartitionRuntime(const RuntimeOptions&, const RuntimeParts&, std::int32_t partition);

    /// The first call. Reads the log on the executor.
    void load(std::unique_ptr<StateMachine>, metadata::ImagePtr, LeaderEpoch);
    void submit(Run, Refuse, RunsOn);
    void image_changed(metadata::ImagePtr, LeaderEpoch);
    /// Fails answers that have waited for too long, and has the machine's tick() called when that is due.
    void tick(Moment now);
    /// Ends it with `reason`; `closed` is called when nothing of it runs any more.
    void close(ErrorCode reason, std::function<void()> closed);

private:
    enum class Phase : std::uint8_t { loading, active, failed, closed };
    class Operation;
    friend class Operation;
    using Done = std::function<void(ErrorCode)>;
    struct Waiting {
        Offset end{};
        Moment deadline{};
        std::vector<Done> answers;
    };

    struct Queued {
        std::function<void()> job;
        RunsOn runs_on;
    };
    void enqueue(std::function<void()> job, RunsOn runs_on = RunsOn::executor) EXCLUDES(queue_mutex_);
    /// On a thread of the executor until nothing is left; on a caller's as long as that may go on, then it is passed on.
    void drain(RunsOn here) noexcept EXCLUDES(queue_mutex_);

    // On the queue.
    Result<> read_log();
    Result<> replay_batch(const record::BatchView&);
    void run(const Run&);
    void fail(const Error&);
    void end(Phase, ErrorCode reason);
    void settle(std::vector<Done> answers);

    // From any thread.
    void durable(Offset end, const Result<>& synced) EXCLUDES(waiting_mutex_);
    std::vector<Waiting> take_waiting(const std::function<bool(const Waiting&)>& which) EXCLUDES(waiting_mutex_);
    ErrorCode refusal() const;

    const RuntimeOptions& options_;
    const RuntimeParts& parts_;
    const TopicPartition name_;

    std::atomic<Phase> phase_{Phase::loading};
    std::atomic<std::int64_t> next_deadline_ms_;
    std::atomic<bool> tick_queued_{false};

    Mutex queue_mutex_;
    std::deque<Queued> queue_ GUARDED_BY(queue_mutex_);
    bool draining_ GUARDED_BY(queue_mutex_) = false;

    Mutex waiting_mutex_;
    std::deque<Waiting> waiting_ GUARDED_BY(waiting_mutex_);   // `end` and `deadline` never fall

    // On the queue only.
    std::unique_ptr<StateMachine> machine_;
    std::shared_ptr<Journal> journal_;
    metadata::ImagePtr image_;
    LeaderEpoch leader_epoch_ = 0;
    Offset end_{};                          // of what has been appended
    std::atomic<std::int64_t> durable_end_{-1};
    record::BatchBuilder builder_;
    record::RecordReader reader_;
};

}  // namespace tidemark::coordinator
