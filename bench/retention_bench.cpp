// One look of retention at logs of which nothing is due, in processor time: what a daemon with many idle partitions pays every
// log.retention.check.interval.ms. The target: 50 ms for 10,000 partitions.
//
// What the processor allows: per log a few uncontended locks (20 ns each), a few copies of shared pointers, two or three
// lookups in hash tables that do not fit the caches (100 ns each), per segment one lock: 1 to 2 µs. No call to the system.
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include "cleaner/partition_states.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "retention/scheduler.h"
#include "storage/log_directory.h"

namespace {

using namespace tidemark;

/// Logs in memory of three segments with a record each.
class Logs {
public:
    explicit Logs(std::int64_t count) {
        storage::StorageOptions options;
        options.log_dirs = {"/logs"};
        options.reserve_bytes = 0;
        manager_ = storage::LogManager::open(files_, clock_, options, {.cluster_id = "c", .node_id = 1}).value();
        (void)manager_->load([](const storage::FoundLog&) { return nullptr; });
        auto config = std::make_shared<storage::LogConfig>();
        config->retention_bytes = 1 << 30;
        config->retention_min_timestamp = Timestamp{1};
        config->index_interval_bytes = 4096;
        config->segment_index_bytes = 4096;   // in memory a file is as large as it says: 10 MiB for each index otherwise
        for (std::int64_t i = 0; i < count; ++i) fill(*manager_->create({fmt::format("a-topic-of-usual-length-{}", i / 10), static_cast<std::int32_t>(i % 10)}, Uuid::random(), config).value());
    }
    ~Logs() { (void)manager_->close(1); }
    storage::LogManager& manager() { return *manager_; }
    const Clock& clock() const { return clock_; }

private:
    void fill(storage::Log& log) {
        for (int segment = 0; segment < 3; ++segment) {
            if (segment > 0) (void)log.roll();
            record::BatchBuilder builder;
            builder.start({});
            builder.append(Offset{0}, clock_.now(), as_bytes("key"), as_bytes("value"));
            std::vector<std::byte> bytes;
            builder.finish(bytes);
            (void)log.append(bytes, {});
        }
        (void)log.flush();   // files with unsynced bytes stay open
    }

    ManualClock clock_;
    io::MemoryFileSystem files_{{.clock = &clock_}};
    std::unique_ptr<storage::LogManager> manager_;
};

void nothing_due(benchmark::State& state) {
    Logs logs(state.range(0));
    cleaner::PartitionStates states;
    retention::Scheduler scheduler(logs.manager(), logs.clock(), {}, {.pause_if_idle = [&](const TopicPartition& p) { return states.pause_if_idle(p); },
                                                                     .resume = [&](const TopicPartition& p) { (void)states.resume(p); }});
    scheduler.run();   // the first look reads what later ones remember
    for (auto _ : state) scheduler.run();
    state.counters["logs/s"] = benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)), benchmark::Counter::kIsRate);
}
BENCHMARK(nothing_due)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
