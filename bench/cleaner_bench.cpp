// One pass of the cleaner over a log on disk: input bytes per second of processor time (both walks count their bytes once:
// what is in the log).
//
//     cleaner_bench make DIRECTORY --codec lz4 --keys 300000 --order rounds --mib 1024
//     cleaner_bench clean DIRECTORY                  one line of JSON
//
// DIRECTORY is a log directory with one partition, bench-0, as a clean stop leaves it: Apache Kafka's cleaner can be given a
// copy, and bench/compare/cleaner does that.
//
// What the processor allows, one core: memory moves at some GB/s, crc32c at 10 GB/s and more; a walk reads each batch,
// decompresses it (lz4 2 to 4 GB/s of records, zstd 1 to 1.5, gzip 0.3), hashes keys (20 ns each) and asks the map (a cache
// miss or two, 100 to 200 ns, once the map outgrows the caches).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <ctime>
#include <map>

#include "cleaner/cleaning.h"
#include "io/posix_file_system.h"
#include "record/builder.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"
#include "storage/segment.h"

namespace {

using namespace tidemark;

/// How keys come again.
enum class Order {
    random,     ///< batches mix living and dead records
    rounds,     ///< one round of all keys after the other: batches are wholly dead or wholly alive
};

struct Options {
    std::string directory;
    record::Codec codec = record::Codec::none;
    Order order = Order::random;
    std::int64_t keys = 300'000;
    std::int64_t mib = 1024;
    int value_bytes = 200;
    int batch_bytes = 64 * 1024;         ///< before compression
};

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The partition bench-0 in a log directory.
class BenchLog {
public:
    explicit BenchLog(const std::string& path) {
        storage::StorageOptions options;
        options.log_dirs = {path};
        directory_ = std::make_unique<storage::LogDirectory>(files_, clock_, path, options);
        storage::LogConfig config;
        config.compacts = true;
        config.deletes = false;
        config.segment_bytes = 128 << 20;
        open_ = {.partition = {"bench", 0}, .directory = path + "/bench-0", .config = std::make_shared<const storage::LogConfig>(config), .clean = true};
    }
    Result<> create() {
        TM_TRYV(io::create_directories(files_, open_.directory));
        TM_TRY(log_, storage::create_log(*directory_, open_, std::nullopt));
        return {};
    }
    Result<> open() {
        TM_TRY(log_, storage::open_log(*directory_, open_));
        return {};
    }
    storage::Log& log() { return *log_; }
    const Clock& clock() const { return clock_; }

private:
    SystemClock clock_;
    io::PosixFileSystem files_;
    std::unique_ptr<storage::LogDirectory> directory_;
    storage::OpenLogOptions open_;
    std::shared_ptr<storage::Log> log_;
};

Result<> make(const Options& options) {
    BenchLog bench(options.directory);
    TM_TRYV(bench.create());
    std::uint64_t x = 88172645463325252;
    const auto next = [&] { return x ^= x << 13, x ^= x >> 7, x ^= x << 17; };
    record::BatchBuilder builder;
    std::vector<std::byte> batch;
    std::string value(static_cast<std::size_t>(options.value_bytes), 'v');
    const auto records_per_batch = std::max(1, options.batch_bytes / (options.value_bytes + 24));
    for (std::int64_t written = 0, record = 0; written < options.mib << 20;) {
        builder.start({.codec = options.codec});
        for (int i = 0; i < records_per_batch; ++i, ++record) {
            for (std::size_t k = 0; k + 8 <= value.size(); k += 16) {
                const auto word = next();
                std::memcpy(value.data() + k, &word, 8);   // eight bytes of sixteen do not compress
            }
            char key[32];
            const auto number = options.order == Order::rounds ? record % options.keys : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(options.keys));
            const auto length = std::snprintf(key, sizeof key, "key-%012lld", static_cast<long long>(number));
            builder.append(Offset{i}, bench.clock().now(), as_bytes(std::string_view{key, static_cast<std::size_t>(length)}), as_bytes(value));
        }
        batch.clear();
        builder.finish(batch);
        written += static_cast<std::int64_t>(batch.size());
        TM_TRYV(bench.log().append(batch, {}));
    }
    TM_TRYV(bench.log().roll());
    TM_TRYV(bench.log().flush());
    return bench.log().close();
}

Result<> clean(const std::string& directory) {
    BenchLog bench(directory);
    TM_TRYV(bench.open());
    cleaner::Workspace work{.map = cleaner::OffsetMap({}, cleaner::HashKey::random())};
    cleaner::Throttle throttle(bench.clock());
    const auto began = processor_seconds();
    TM_TRY(const auto stats, cleaner::run_pass(bench.log(), {.first_dirty = Offset{0}, .cleanable_end = bench.log().segments()->back()->base_offset()}, {}, work, throttle,
                                               bench.clock(), [] { return Result<>{}; }));
    const auto seconds = processor_seconds() - began;
    std::printf("{\"cpu_seconds\": %.3f, \"bytes_read\": %lld, \"bytes_written\": %lld, \"messages_read\": %lld, \"messages_written\": %lld, \"end_offset\": %lld}\n", seconds,
                static_cast<long long>(stats.bytes_read), static_cast<long long>(stats.bytes_written), static_cast<long long>(stats.messages_read),
                static_cast<long long>(stats.messages_written), static_cast<long long>(stats.end_offset.value));
    return bench.log().close();
}

const std::map<std::string, record::Codec> codecs{
    {"none", record::Codec::none}, {"gzip", record::Codec::gzip}, {"snappy", record::Codec::snappy}, {"lz4", record::Codec::lz4}, {"zstd", record::Codec::zstd}};
const std::map<std::string, Order> orders{{"random", Order::random}, {"rounds", Order::rounds}};

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"one pass of the cleaner over a log on disk"};
    Options options;
    auto* make_command = app.add_subcommand("make", "a log to clean");
    make_command->add_option("directory", options.directory)->required();
    make_command->add_option("--codec", options.codec)->transform(CLI::CheckedTransformer(codecs));
    make_command->add_option("--order", options.order, "random: batches mix living and dead records; rounds: they are one or the other")->transform(CLI::CheckedTransformer(orders));
    make_command->add_option("--keys", options.keys)->check(CLI::PositiveNumber);
    make_command->add_option("--mib", options.mib, "of the log")->check(CLI::PositiveNumber);
    make_command->add_option("--value-bytes", options.value_bytes)->check(CLI::PositiveNumber);
    auto* clean_command = app.add_subcommand("clean", "one pass over it");
    clean_command->add_option("directory", options.directory)->required();
    app.require_subcommand(1);
    CLI11_PARSE(app, argc, argv);
    const auto done = *make_command ? make(options) : clean(options.directory);
    if (done) return 0;
    std::fprintf(stderr, "cleaner_bench: %s\n", done.error().message().c_str());
    return 1;
}
