/// Runs the state machines of one internal topic: one per partition, each one operation at a time (group-coordinator 2).
///
///   Runtime<GroupMachine> runtime{options, parts, [&](std::int32_t) { return std::make_unique<GroupMachine>(…); }};
///   runtime.image_changed(…);                                     // opens what has become this node's, on the executor
///   runtime.request<JoinGroupResponse>(group_id, reply, [=](GroupMachine& machine, Context& context, auto reply) { … });
///   runtime.submit(partition, [=](GroupMachine& machine, Context& context) { machine.list(context, …, reply); },
///                  [=](ErrorCode why) { reply(Failure{why}); });           // loading, failed to load, stopped
///   runtime.tick();                                               // often: timers, and answers that waited too long
///
/// Operations of a partition begin in the order of submit() and request(); those of different partitions run beside each
/// other. A request is about one group or transaction, takes microseconds and never waits for the disk, so it runs on the
/// caller's thread when nothing is before it; what is submitted may look at everything there is, and runs on the executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/topic_partition.h"
#include "base/uuid.h"
#include "coordinator/journal.h"
#include "coordinator/state_machine.h"
#include "record/batch.h"

namespace tidemark::coordinator {

/// Runs a job soon, on another thread or on this one; every job, in any order.
using Executor = std::function<void(std::function<void()>)>;

struct RuntimeOptions {
    std::string topic;
    std::int32_t node_id = 1;
    std::int64_t load_buffer_bytes = 5'242'880;            ///< offsets.load.buffer.size, transaction.state.log.load.buffer.size
    std::int64_t commit_timeout_ms = 5000;                 ///< offsets.commit.timeout.ms: how long an answer waits for its sync
    record::Codec codec = record::Codec::none;
    /// Kafka's two coordinators leave different values in the headers of batches without a producer: 0 and -1.
    Sequence base_sequence = 0;
};

/// What a runtime works on; all of it outlives the runtime.
struct RuntimeParts {
    const Clock& clock;
    /// Of a partition that the image says is here; null: it has no log (its directory failed).
    std::function<std::shared_ptr<Journal>(const TopicPartition&)> open_journal;
    Executor executor;
};

class PartitionRuntime;

/// Where an operation runs whose turn it is.
enum class RunsOn : std::uint8_t { caller, executor };

/// Runtime<Machine> without its type.
class RuntimeCore {
public:
    using MakeMachine = std::function<std::unique_ptr<StateMachine>(std::int32_t partition)>;
    using Run = std::function<void(StateMachine&, Context&)>;
    using Refuse = std::function<void(ErrorCode)>;

    RuntimeCore(RuntimeOptions, RuntimeParts, MakeMachine);
    ~RuntimeCore();
    RuntimeCore(const RuntimeCore&) = delete;
    RuntimeCore& operator=(const RuntimeCore&) = delete;

    /// Partitions of the topic in the newest image that it knows; nothing while there is no topic.
    std::optional<std::int32_t> partition_count() const EXCLUDES(mutex_);
    /// Where a group or transactional id lives; nothing while there is no topic.
    std::optional<std::int32_t> partition_of(std::string_view id) const EXCLUDES(mutex_);
    /// Those that are here, loading or failed ones included.
    std::vector<std::int32_t> partitions() const EXCLUDES(mutex_);

    /// Topics or settings have changed: opens and closes partitions, and tells the state machines. Also once at the start, before
    /// anything else. By one thread at a time.
    void image_changed(const metadata::ImagePtr& after) EXCLUDES(mutex_);

    /// Asks the partitions whose timers are due; cheap when none are.
    void tick() EXCLUDES(mutex_);
    /// Refuses from now on, with coordinator_not_available; parked and waiting answers get the same. Returns when no operation
    /// runs any more; needs the executor to go on until then.
    void stop() EXCLUDES(mutex_);

protected:
    /// `refuse` with coordinator_load_in_progress, not_coordinator or coordinator_not_available instead of `run`.
    void submit(std::int32_t partition, Run run, Refuse refuse, RunsOn);

private:
    struct Here {
        Uuid topic_id;
        std::shared_ptr<PartitionRuntime> runtime;
    };
    std::vector<std::shared_ptr<PartitionRuntime>> all() const EXCLUDES(mutex_);

    const RuntimeOptions options_;
    const RuntimeParts parts_;
    const MakeMachine make_machine_;
    mutable Mutex mutex_;
    std::map<std::int32_t, Here> partitions_ GUARDED_BY(mutex_);
    std::optional<std::int32_t> partition_count_ GUARDED_BY(mutex_);
    bool stopped_ GUARDED_BY(mutex_) = false;
};

/// Threads: all members from any thread, but for image_changed().
template <class Machine>
class Runtime : public RuntimeCore {
public:
    using RuntimeCore::RuntimeCore;

    void submit(std::int32_t partition, std::function<void(Machine&, Context&)> run, Refuse refuse, RunsOn runs_on = RunsOn::executor) {
        RuntimeCore::submit(partition, [run = std::move(run)](StateMachine& machine, Context& context) { run(static_cast<Machine&>(machine), context); }, std::move(refuse), runs_on);
    }
    /// For operations whose answer is a Response: refused ones are answered with the reason. No topic: not_coordinator.
    template <class Response>
    void request(std::string_view id, Reply<Response> reply, std::function<void(Machine&, Context&, Reply<Response>)> run) {
        const auto partition = partition_of(id);
        if (!partition) return reply(Failure{ErrorCode::not_coordinator});
        submit(*partition, [reply, run = std::move(run)](Machine& machine, Context& context) { run(machine, context, reply); }, [reply](ErrorCode why) { reply(Failure{why}); }, RunsOn::caller);
    }
};

}  // namespace tidemark::coordinator
