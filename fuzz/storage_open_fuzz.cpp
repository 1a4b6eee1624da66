// A partition's directory with any bytes in its files is opened, after a clean stop or a crash. It opens or says why not;
// what has opened can be read, looked up, appended to and closed, and after a crash verifies.
//
//     input:  flags, index bytes / 16, time index bytes / 12, then the .index, the .timeindex, the .log
#include <spdlog/spdlog.h>

#include <cstdio>

#include "base/assert.h"
#include "base/bytes.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "storage/recovery.h"
#include "storage/verify.h"

using namespace tidemark;
using namespace tidemark::storage;

namespace {

void put(io::FileSystem& files, const io::Path& path, Bytes content) {
    auto file = files.open(path, io::OpenMode::create_truncated);
    TM_ASSERT(file && (*file)->write(FilePosition{0}, content));
}

void use(Log& log) {
    for (auto from = log.log_start_offset(); from < log.log_end_offset();) {
        const auto slice = log.read({.from = from, .isolation = Isolation::read_committed});
        if (!slice || slice->bytes == 0) break;
        const auto batch = slice->segment->batch_at(slice->position);
        if (!batch || !*batch || (*batch)->last_offset < from) break;
        from = (*batch)->last_offset + 1;
    }
    (void)log.offset_for_time(Timestamp{1000}, Isolation::log_end);
    (void)log.offset_of_max_timestamp(Isolation::log_end);
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, Timestamp{1000}, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> batch;
    builder.finish(batch);
    (void)log.append(batch, {});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool quiet = [] {
        spdlog::set_level(spdlog::level::off);
        return true;
    }();
    (void)quiet;
    if (size < 3) return 0;
    const Bytes bytes{reinterpret_cast<const std::byte*>(data), size};
    const auto flags = std::to_integer<unsigned>(bytes[0]);
    auto rest = bytes.subspan(3);
    const auto take = [&](std::size_t n) {
        const auto part = rest.first(std::min(n, rest.size()));
        rest = rest.subspan(part.size());
        return part;
    };
    const auto offsets = take(std::to_integer<std::size_t>(bytes[1]) * 8), times = take(std::to_integer<std::size_t>(bytes[2]) * 12);

    ManualClock clock;
    io::MemoryFileSystem files{io::MemoryOptions{.clock = &clock}};
    TM_ASSERT(io::create_directories(files, "/t-0"));
    if ((flags & 1) != 0) put(files, "/t-0/00000000000000000000.index", offsets);
    if ((flags & 2) != 0) put(files, "/t-0/00000000000000000000.timeindex", times);
    put(files, "/t-0/00000000000000000000.log", rest);
    StorageOptions options;
    options.reserve_bytes = 0;
    if ((flags & 4) != 0) options.differences = Differences::none();
    const bool clean = (flags & 8) != 0;
    LogDirectory directory(files, clock, "/", options);
    auto config = std::make_shared<LogConfig>();
    config->segment_index_bytes = 4096;
    config->index_interval_bytes = 100;
    auto log = open_log(directory, {.partition = {"t", 0}, .directory = "/t-0", .config = config, .clean = clean});
    if (!log) return 0;
    use(**log);
    const bool closed = (*log)->close().has_value();
    if (!clean && closed && (flags & 4) == 0) {
        const auto findings = verify_partition(files, "/t-0", {.records = false});
        TM_ASSERT(findings);
        for (const auto& finding : *findings) {
            const bool is_expected = finding.kind == Finding::Kind::leftover || finding.what.find("damaged tail") != std::string::npos;
            if (!is_expected) std::fputs((finding.text() + "\n").c_str(), stderr);
            TM_ASSERT(is_expected);
        }
    }
    return 0;
}
