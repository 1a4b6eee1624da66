#include "coordinator/runtime.h"

#include "coordinator/internal_topics.h"
#include "coordinator/partition_runtime.h"
#include "metadata/image.h"

namespace tidemark::coordinator {

RuntimeCore::RuntimeCore(RuntimeOptions options, RuntimeParts parts, MakeMachine make_machine)
    : options_(std::move(options)), parts_(std::move(parts)), make_machine_(std::move(make_machine)) {}

RuntimeCore::~RuntimeCore() { stop(); }

std::optional<std::int32_t> RuntimeCore::partition_count() const {
    MutexLock lock(mutex_);
    return partition_count_;
}

std::optional<std::int32_t> RuntimeCore::partition_of(std::string_view id) const {
    const auto count = partition_count();
    return count ? std::optional{coordinator::partition_of(id, *count)} : std::nullopt;
}

std::vector<std::int32_t> RuntimeCore::partitions() const {
    MutexLock lock(mutex_);
    std::vector<std::int32_t> numbers;
    for (const auto& [number, here] : partitions_) numbers.push_back(number);
    return numbers;
}

std::vector<std::shared_ptr<PartitionRuntime>> RuntimeCore::all() const {
    MutexLock lock(mutex_);
    std::vector<std::shared_ptr<PartitionRuntime>> found;
    for (const auto& [number, here] : partitions_) found.push_back(here.runtime);
    return found;
}

void RuntimeCore::image_changed(const metadata::ImagePtr& after) {
    const auto* topic = after->find(options_.topic);
    /// Null: not this node's.
    const auto find_here = [&](std::int32_t number) -> const metadata::Partition* {
        const auto found = topic->partitions.find(number);
        return found != topic->partitions.end() && found->second.leader == options_.node_id ? &found->second : nullptr;
    };
    MutexLock lock(mutex_);
    if (stopped_) return;
    for (auto at = partitions_.begin(); at != partitions_.end();) {
        const auto* partition = topic != nullptr && topic->id == at->second.topic_id ? find_here(at->first) : nullptr;
        if (partition != nullptr) {
            at->second.runtime->image_changed(after, partition->leader_epoch);
            ++at;
        } else {
            at->second.runtime->close(ErrorCode::not_coordinator, [] {});
            at = partitions_.erase(at);
        }
    }
    if (topic == nullptr) {
        partition_count_.reset();
        return;
    }
    // Ids stay where they are: the count must not change while the topic lives (group-coordinator 1).
    if (!partition_count_ || partitions_.empty()) partition_count_ = static_cast<std::int32_t>(topic->partitions.size());
    for (const auto& [number, partition] : topic->partitions) {
        if (number >= *partition_count_ || partition.leader != options_.node_id || partitions_.contains(number)) continue;
        auto runtime = std::make_shared<PartitionRuntime>(options_, parts_, number);
        partitions_.emplace(number, Here{topic->id, runtime});
        runtime->load(make_machine_(number), after, partition.leader_epoch);
    }
}

void RuntimeCore::submit(std::int32_t partition, Run run, Refuse refuse, RunsOn runs_on) {
    std::shared_ptr<PartitionRuntime> runtime;
    bool stopped = false;
    {
        MutexLock lock(mutex_);
        stopped = stopped_;
        if (const auto found = partitions_.find(partition); found != partitions_.end()) runtime = found->second.runtime;
    }
    if (stopped) return refuse(ErrorCode::coordinator_not_available);
    if (!runtime) return refuse(ErrorCode::not_coordinator);
    runtime->submit(std::move(run), std::move(refuse), runs_on);
}

void RuntimeCore::tick() {
    const auto now = parts_.clock.since_boot();
    for (const auto& runtime : all()) runtime->tick(now);
}

void RuntimeCore::stop() {
    {
        MutexLock lock(mutex_);
        if (stopped_) return;
        stopped_ = true;
    }
    struct Closing {
        Mutex mutex;
        Condition done;
        std::size_t left GUARDED_BY(mutex) = 0;
    };
    const auto closing = std::make_shared<Closing>();
    const auto runtimes = all();
    {
        MutexLock lock(closing->mutex);
        closing->left = runtimes.size();
    }
    for (const auto& runtime : runtimes) {
        runtime->close(ErrorCode::coordinator_not_available, [closing] {
            MutexLock lock(closing->mutex);
            if (--closing->left == 0) closing->done.notify_all();
        });
    }
    MutexLock lock(closing->mutex);
    while (closing->left != 0) closing->done.wait(closing->mutex);
}

}  // namespace tidemark::coordinator
