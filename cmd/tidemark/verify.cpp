#include "storage/verify.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <semaphore>
#include <thread>

#include <fmt/format.h>

#include "cmd/tidemark/commands.h"
#include "io/posix_file_system.h"
#include "storage/directory_names.h"

namespace tidemark::tool {
namespace {

using Findings = Result<std::vector<storage::Finding>>;

/// A bar on a terminal's last line; nothing when standard error is something else.
class Bar {
public:
    explicit Bar(std::int64_t total) : total_(std::max<std::int64_t>(total, 1)), shown_(::isatty(STDERR_FILENO) == 1) {}

    void show(std::int64_t done) const {
        if (!shown_) return;
        const auto percent = std::min<std::int64_t>(100 * done / total_, 100);
        const auto filled = static_cast<std::size_t>(percent * width / 100);
        std::fputs(fmt::format("\r[{:<{}}] {:3} % of {} MiB", std::string(filled, '#'), width, percent, total_ >> 20).c_str(), stderr);
    }
    void clear() const {
        if (shown_) std::fputs("\r\x1b[K", stderr);
    }

private:
    static constexpr int width = 40;
    const std::int64_t total_;
    const bool shown_;
};

/// Looks first at which partitions there are, then at them all at the same time; what it found is told in their order.
class Verifier {
public:
    explicit Verifier(const VerifyToolOptions& options) : options_(options) {}

    void find(const io::Path& path) {
        const auto properties = files_.status(io::join(path, storage::file_name::meta_properties));
        if (properties && *properties) find_in_log_directory(path);
        else if (has_segments(path)) add_partition(path);
        else failed(path, {Errc::not_found, "neither a log directory (meta.properties) nor a partition's (a .log file)"});
    }

    int verify() {
        std::vector<Findings> findings(partitions_.size(), std::vector<storage::Finding>{});
        {
            std::atomic<std::size_t> next{0};
            std::counting_semaphore<> finished{0};
            const auto work = [&] {
                for (auto i = next++; i < partitions_.size(); i = next++) {
                    findings[i] = storage::verify_partition(files_, partitions_[i], {.in_use = options_.in_use, .records = options_.records, .progress = [this](std::int64_t bytes) { bytes_ += bytes; }});
                    finished.release();
                }
            };
            const auto threads = std::min<std::size_t>(std::max(std::thread::hardware_concurrency(), 1U), partitions_.size());
            std::vector<std::jthread> pool;
            for (std::size_t i = 0; i < threads; ++i) pool.emplace_back(work);
            const Bar bar{total_bytes_};
            for (std::size_t done = 0; done < partitions_.size();) {
                if (finished.try_acquire_for(std::chrono::milliseconds{100})) ++done;
                bar.show(bytes_);
            }
            bar.clear();
        }
        for (std::size_t i = 0; i < partitions_.size(); ++i) take(partitions_[i], findings[i]);
        std::printf("%zu partitions, %lld bytes: %zu faults, %zu leftovers\n", partitions_.size(), static_cast<long long>(bytes_.load()), faults_, leftovers_);
        return faults_ > 0 || failed_ ? 1 : 0;
    }

private:
    void find_in_log_directory(const io::Path& path) {
        take(path, storage::verify_log_directory(files_, path));
        const auto entries = files_.list(path);
        if (!entries) return failed(path, entries.error());
        for (const auto& entry : *entries) {
            const auto parsed = storage::parse_directory_name(entry.name);
            if (!entry.is_directory || !parsed || parsed->kind != storage::DirectoryKind::live) continue;
            // The metadata log has snapshots and rules of its own; its start checks every batch.
            if (parsed->partition.topic == storage::cluster_metadata_topic) continue;
            add_partition(io::join(path, entry.name));
        }
    }

    bool has_segments(const io::Path& path) const {
        const auto entries = files_.list(path);
        return entries && std::ranges::any_of(*entries, [](const auto& entry) { return storage::parse_file_name(entry.name).kind == storage::FileKind::log; });
    }

    void add_partition(const io::Path& path) {
        partitions_.push_back(path);
        const auto entries = files_.list(path);
        if (!entries) return;  // verifying it will say so
        for (const auto& entry : *entries) {
            const auto status = files_.status(io::join(path, entry.name));
            if (status && *status && storage::parse_file_name(entry.name).kind == storage::FileKind::log) total_bytes_ += (*status)->bytes;
        }
    }

    void take(const io::Path& path, const Findings& findings) {
        if (!findings) return failed(path, findings.error());
        for (const auto& finding : *findings) {
            const bool fault = finding.kind == storage::Finding::Kind::fault;
            (fault ? faults_ : leftovers_) += 1;
            std::printf("%s: %s\n", fault ? "fault" : "leftover", finding.text().c_str());
        }
    }

    void failed(const io::Path& path, const Error& error) {
        failed_ = true;
        std::fprintf(stderr, "%s: %s\n", path.c_str(), error.message().c_str());
    }

    const VerifyToolOptions& options_;
    io::PosixFileSystem files_;
    std::vector<io::Path> partitions_;
    std::int64_t total_bytes_ = 0;               // of their logs
    std::atomic<std::int64_t> bytes_{0};         // of everything that was read
    std::size_t faults_ = 0, leftovers_ = 0;
    bool failed_ = false;
};

}  // namespace

int verify(const VerifyToolOptions& options) {
    Verifier verifier{options};
    for (const auto& path : options.paths) verifier.find(path);
    return verifier.verify();
}

}  // namespace tidemark::tool
