#include "storage/repair.h"

#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "cmd/tidemark/commands.h"
#include "io/posix_file_system.h"
#include "storage/checkpoint.h"
#include "storage/directory_names.h"

namespace tidemark::tool {
namespace {

std::string text_of(const storage::KeptTail& tail) {
    if (tail.batches == 0) return fmt::format("{} bytes, no valid batch among them", tail.bytes);
    return fmt::format("{} bytes, {} of them valid: {} batches with {} records, offsets {} to {}", tail.bytes, tail.valid_bytes, tail.batches, tail.records,
                       tail.first.value, tail.last.value);
}

/// One log directory. Its clean marker is away while anything is changed, so that an interrupted repair is an unclean stop.
class Repairer {
public:
    Repairer(const RepairToolOptions& options, const io::Path& path) : options_(options), directory_(files_, clock_, path, storage::StorageOptions{}) {}

    Result<> run() {
        TM_TRY(const auto properties, files_.status(at(storage::file_name::meta_properties)));
        if (!properties) return Error{Errc::not_found, "no log directory: it has no meta.properties"};
        if (acts()) TM_TRYV(directory_.lock());
        TM_TRY(const auto entries, files_.list(directory_.path()));
        for (const auto& entry : entries) {
            const auto parsed = storage::parse_directory_name(entry.name);
            if (!entry.is_directory || !parsed || parsed->kind != storage::DirectoryKind::live) continue;
            TM_TRYV(look_at(parsed->partition, io::join(directory_.path(), entry.name)));
        }
        if (marker_) TM_TRYV(io::replace_content(files_, at(storage::file_name::clean_shutdown), *marker_));
        return {};
    }
    std::size_t undecided() const { return undecided_; }

private:
    bool acts() const { return options_.restore || options_.drop; }
    io::Path at(std::string_view name) const { return io::join(directory_.path(), name); }

    Result<> look_at(const TopicPartition& partition, const io::Path& path) {
        TM_TRY(const auto tails, storage::kept_tails(files_, path));
        for (const auto& tail : tails) std::printf("%s: %s\n", tail.file.c_str(), text_of(tail).c_str());
        if (tails.empty()) return {};
        if (!acts()) {
            ++undecided_;
            return {};
        }
        TM_TRYV(take_marker());
        TM_TRY(const auto recovery_points, storage::read_offset_checkpoint(files_, at(storage::file_name::recovery_point_checkpoint)));
        TM_TRY(const auto log_starts, storage::read_offset_checkpoint(files_, at(storage::file_name::log_start_checkpoint)));
        const auto checkpointed = [&](const storage::OffsetCheckpoint& all) {
            const auto found = all.find(partition);
            return found == all.end() ? Offset{0} : found->second;
        };
        TM_TRY(const auto result, storage::repair_log(directory_,
                                                      {.partition = partition,
                                                       .directory = path,
                                                       .config = std::make_shared<const storage::LogConfig>(),
                                                       .recovery_point = checkpointed(recovery_points),
                                                       .log_start = checkpointed(log_starts),
                                                       .clean = marker_.has_value()},
                                                      options_.restore ? storage::Repair::restore : storage::Repair::drop));
        std::printf("%s: %lld batches with %lld records were put back, the log ends at %lld\n", partition.text().c_str(), static_cast<long long>(result.batches),
                    static_cast<long long>(result.records), static_cast<long long>(result.end.value));
        if (result.batches_below_end > 0) std::printf("%s: %lld valid batches were dropped, the log has gone on since\n", partition.text().c_str(), static_cast<long long>(result.batches_below_end));
        return {};
    }

    Result<> take_marker() {
        if (marker_) return {};
        const auto path = at(storage::file_name::clean_shutdown);
        auto content = io::read_whole(files_, path, 1 << 16);
        if (!content) return content.error().code == Errc::not_found ? Result<>{} : Result<>{std::move(content).error()};
        TM_TRYV(files_.remove(path));
        TM_TRYV(files_.sync_directory(directory_.path()));
        marker_ = *std::move(content);
        return {};
    }

    const RepairToolOptions& options_;
    SystemClock clock_;
    io::PosixFileSystem files_;
    storage::LogDirectory directory_;
    std::optional<std::vector<std::byte>> marker_;
    std::size_t undecided_ = 0;
};

}  // namespace

int repair(const RepairToolOptions& options) {
    set_log_level(LogLevel::warning);
    bool failed = false;
    std::size_t undecided = 0;
    for (const auto& path : options.paths) {
        Repairer repairer{options, path};
        if (const auto done = repairer.run(); !done) {
            const auto& error = done.error();
            std::fprintf(stderr, "%s: %s\n", path.c_str(), error.code == Errc::locked ? "a daemon uses it: ask that with --daemon, or stop it" : error.message().c_str());
            failed = true;
        }
        undecided += repairer.undecided();
    }
    if (undecided > 0) std::printf("%zu partitions serve nothing until it is decided: --restore puts back what is valid, --drop lets the logs end where they were cut\n", undecided);
    return failed || undecided > 0 ? 1 : 0;
}

}  // namespace tidemark::tool
