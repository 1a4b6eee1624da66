#include "storage/verify.h"

#include <cstdio>

#include "cmd/tidemark/commands.h"
#include "io/posix_file_system.h"
#include "storage/directory_names.h"

namespace tidemark::tool {
namespace {

class Verifier {
public:
    explicit Verifier(const VerifyToolOptions& options) : options_(options) {}

    void verify(const io::Path& path) {
        const auto properties = files_.status(io::join(path, storage::file_name::meta_properties));
        if (properties && *properties) return verify_log_directory(path);
        verify_partition(path);
    }

    int finish() const {
        std::printf("%zu partitions, %lld bytes: %zu faults, %zu leftovers\n", partitions_, static_cast<long long>(bytes_), faults_, leftovers_);
        return faults_ > 0 || failed_ ? 1 : 0;
    }

private:
    void verify_log_directory(const io::Path& path) {
        take(path, storage::verify_log_directory(files_, path));
        const auto entries = files_.list(path);
        if (!entries) return failed(path, entries.error());
        for (const auto& entry : *entries) {
            const auto parsed = storage::parse_directory_name(entry.name);
            if (!entry.is_directory || !parsed || parsed->kind != storage::DirectoryKind::live) continue;
            // The metadata log has snapshots and rules of its own; its start checks every batch.
            if (parsed->partition.topic == storage::cluster_metadata_topic) continue;
            verify_partition(io::join(path, entry.name));
        }
    }

    void verify_partition(const io::Path& path) {
        ++partitions_;
        take(path, storage::verify_partition(files_, path, {.in_use = options_.in_use, .records = options_.records, .progress = [this](std::int64_t bytes) { bytes_ += bytes; }}));
    }

    void take(const io::Path& path, const Result<std::vector<storage::Finding>>& findings) {
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
    std::size_t partitions_ = 0, faults_ = 0, leftovers_ = 0;
    std::int64_t bytes_ = 0;
    bool failed_ = false;
};

}  // namespace

int verify(const VerifyToolOptions& options) {
    Verifier verifier{options};
    for (const auto& path : options.paths) verifier.verify(path);
    return verifier.finish();
}

}  // namespace tidemark::tool
