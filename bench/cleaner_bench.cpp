// One pass of the cleaner over a log on disk: input bytes per second of processor time (both walks count their bytes once:
// what is in the log), per codec and share of survivors.
//
// What the processor allows, one core: memory moves at some GB/s, crc32c at 10 GB/s and more; a walk reads each batch,
// decompresses it (lz4 2 to 4 GB/s of records, zstd 1 to 1.5, gzip 0.3), hashes keys (20 ns each) and asks the map (a cache
// miss or two, 100 to 200 ns, once the map outgrows the caches).
//
//     CLEANER_BENCH_MIB=512 build/release/bin/cleaner_bench --benchmark_filter=none
#include <benchmark/benchmark.h>

#include <ctime>
#include <filesystem>

#include "cleaner/cleaning.h"
#include "io/posix_file_system.h"
#include "record/builder.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"
#include "storage/segment.h"

namespace {

using namespace tidemark;

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::int64_t log_bytes() {
    const char* text = std::getenv("CLEANER_BENCH_MIB");
    return (text == nullptr ? 256 : std::atoll(text)) << 20;
}

/// How keys come again.
enum class Keys : std::int64_t {
    random,     ///< all batches mix living and dead records: compressed ones are rebuilt
    in_rounds,  ///< one round of all keys after the other: batches are wholly dead or wholly alive
};

/// A log of `bytes` with 1 KiB records in batches of 64 KiB, of a size that half compresses.
class BenchLog {
public:
    BenchLog(record::Codec codec, std::int64_t keys, Keys order) : path_((std::filesystem::temp_directory_path() / "tidemark-cleaner-bench").string()) {
        std::filesystem::remove_all(path_);
        storage::StorageOptions options;
        options.log_dirs = {path_};
        (void)io::create_directories(files_, path_);
        directory_ = std::make_unique<storage::LogDirectory>(files_, clock_, path_, options);
        storage::LogConfig config;
        config.compacts = true;
        config.deletes = false;
        config.segment_bytes = 128 << 20;
        log_ = storage::create_log(*directory_, {.partition = {"t", 0}, .directory = path_ + "/t-0", .config = std::make_shared<const storage::LogConfig>(config)}, std::nullopt).value();
        fill(codec, keys, order);
        (void)log_->roll();
        (void)log_->flush();
    }
    ~BenchLog() {
        (void)log_->close();
        log_.reset();
        directory_.reset();
        std::filesystem::remove_all(path_);
    }

    storage::Log& log() { return *log_; }
    const Clock& clock() const { return clock_; }

private:
    void fill(record::Codec codec, std::int64_t keys, Keys order) {
        std::uint64_t x = 88172645463325252;
        const auto next = [&] { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; };
        record::BatchBuilder builder;
        std::vector<std::byte> batch;
        std::string value(1000, 'v');
        std::int64_t written = 0;
        for (std::int64_t record = 0; written < log_bytes();) {
            builder.start({.codec = codec});
            for (int i = 0; i < 64; ++i, ++record) {
                for (std::size_t k = 0; k < value.size(); k += 16) {
                    const auto word = next();
                    std::memcpy(value.data() + k, &word, 8);   // eight bytes of sixteen do not compress
                }
                char key[32];
                const auto number = order == Keys::in_rounds ? record % keys : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(keys));
                const auto length = std::snprintf(key, sizeof key, "key-%012lld", static_cast<long long>(number));
                builder.append(Offset{i}, clock_.now(), as_bytes(std::string_view{key, static_cast<std::size_t>(length)}), as_bytes(value));
            }
            batch.clear();
            builder.finish(batch);
            written += static_cast<std::int64_t>(batch.size());
            if (!log_->append(batch, {})) std::abort();
        }
    }

    const std::string path_;
    SystemClock clock_;
    io::PosixFileSystem files_;
    std::unique_ptr<storage::LogDirectory> directory_;
    std::shared_ptr<storage::Log> log_;
};

void clean(benchmark::State& state, record::Codec codec, Keys order) {
    double seconds = 0;
    std::int64_t bytes = 0, records = 0;
    double survivors = 0;
    for (auto _ : state) {
        state.PauseTiming();
        BenchLog bench(codec, state.range(0), order);
        cleaner::Workspace work{.map = cleaner::OffsetMap({}, cleaner::HashKey::random())};
        cleaner::Throttle throttle(bench.clock());
        state.ResumeTiming();
        const auto began = processor_seconds();
        const auto stats = cleaner::run_pass(bench.log(), {.first_dirty = Offset{0}, .cleanable_end = bench.log().segments()->back()->base_offset()}, {}, work, throttle,
                                             bench.clock(), [] { return Result<>{}; });
        seconds += processor_seconds() - began;
        state.PauseTiming();
        if (!stats) {
            state.SkipWithError(stats.error().message().c_str());
            return;
        }
        bytes += stats->bytes_read;
        records += stats->messages_read;
        survivors = static_cast<double>(stats->messages_written) / static_cast<double>(stats->map_messages_read);
        state.ResumeTiming();
    }
    state.counters["MB_per_cpu_s"] = static_cast<double>(bytes) / 1e6 / seconds;
    state.counters["records_per_cpu_s"] = static_cast<double>(records) / seconds;
    state.counters["survivors"] = survivors;
}

#define CLEANER_BENCH(codec)                                                                                                                                  \
    BENCHMARK_CAPTURE(clean, codec##_rebuilt, record::Codec::codec, Keys::random)->Arg(60'000)->Unit(benchmark::kMillisecond)->Iterations(1)->MeasureProcessCPUTime(); \
    BENCHMARK_CAPTURE(clean, codec##_whole, record::Codec::codec, Keys::in_rounds)->Arg(60'000)->Unit(benchmark::kMillisecond)->Iterations(1)->MeasureProcessCPUTime()

CLEANER_BENCH(none);
CLEANER_BENCH(lz4);
CLEANER_BENCH(zstd);
CLEANER_BENCH(snappy);
CLEANER_BENCH(gzip);

}  // namespace
