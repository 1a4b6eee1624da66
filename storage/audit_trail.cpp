#include "storage/audit_trail.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"

namespace tidemark::storage {
namespace {

/// One JSON object, member by member.
class Line {
public:
    Line(Timestamp now, std::string_view event, const TopicPartition& partition) {
        add("time", now.value);
        add("event", event);
        add("topic", partition.topic);
        add("partition", std::int64_t{partition.partition});
    }
    void add(std::string_view name, std::int64_t value) { text_ += fmt::format("{}\"{}\":{}", separator(), name, value); }
    void add(std::string_view name, double value) { text_ += fmt::format("{}\"{}\":{:.3f}", separator(), name, value); }
    void add(std::string_view name, std::string_view value) {
        text_ += fmt::format("{}\"{}\":\"", separator(), name);
        for (const char c : value) {
            if (c == '"' || c == '\\') text_ += '\\', text_ += c;
            else if (static_cast<unsigned char>(c) < 0x20) text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
            else text_ += c;
        }
        text_ += '"';
    }
    void add(std::string_view name, std::optional<std::int64_t> value) {
        if (value) add(name, *value);
        else text_ += fmt::format("{}\"{}\":null", separator(), name);
    }
    void add(std::string_view name, std::optional<Timestamp> value) { add(name, value ? std::optional{value->value} : std::nullopt); }
    std::string finish() { return text_ + "}\n"; }

private:
    const char* separator() const { return text_.empty() ? "{" : ","; }
    std::string text_;
};

io::Path rotated(const io::Path& path, int number) { return path + "." + std::to_string(number); }

}  // namespace

AuditTrail::AuditTrail(io::FileSystem& files, const Clock& clock, AuditTrailOptions options) : files_(files), clock_(clock), options_(std::move(options)) {}
AuditTrail::~AuditTrail() = default;

void AuditTrail::add(const CleaningEntry& e) {
    Line line(clock_.now(), "cleaned", e.partition);
    line.add("from", e.from.value);
    line.add("to", e.to.value);
    line.add("reason", e.reason);
    line.add("deadline", e.deadline);
    line.add("began", e.began.value);
    line.add("seconds", e.seconds);
    line.add("bytes_before", e.bytes_before);
    line.add("bytes_after", e.bytes_after);
    line.add("segments_before", e.segments_before);
    line.add("segments_after", e.segments_after);
    line.add("superseded", e.superseded);
    line.add("tombstones", e.tombstones);
    line.add("expired", e.expired);
    line.add("erased", e.erased);
    line.add("keyless", e.keyless);
    line.add("markers", e.markers);
    line.add("aborted_batches", e.aborted_batches);
    write(line.finish());
}

void AuditTrail::add(const DeletionEntry& e) {
    Line line(clock_.now(), "deleted", e.partition);
    line.add("from", e.from.value);
    line.add("to", e.to.value);
    line.add("bytes", e.bytes);
    line.add("records", e.records);
    line.add("rule", e.rule);
    line.add("reason", e.reason);
    line.add("limit", e.limit);
    line.add("largest_timestamp", e.largest_timestamp);
    line.add("gone_at", e.gone_at);
    write(line.finish());
}

void AuditTrail::write(const std::string& line) {
    MutexLock lock(mutex_);
    auto written = append(as_bytes(line));
    if (!written && !failed_) log_error("the audit trail cannot be written: {}", written.error().message());
    failed_ = !written;
    if (!written) file_.reset();   // opened again for the next line
}

Result<> AuditTrail::append(Bytes line) {
    if (!file_) TM_TRYV(open());
    if (bytes_ > 0 && bytes_ + static_cast<std::int64_t>(line.size()) > options_.bytes_max) {
        TM_TRYV(rotate());
        TM_TRYV(open());
    }
    if (auto written = file_->write(FilePosition{bytes_}, line); !written) {
        // No half line, so that what follows can be read.
        (void)file_->resize(bytes_);
        return written;
    }
    bytes_ += static_cast<std::int64_t>(line.size());
    return {};
}

Result<> AuditTrail::open() {
    TM_TRY(file_, files_.open(options_.path, io::OpenMode::create));
    TM_TRY(bytes_, file_->size());
    return {};
}

Result<> AuditTrail::rotate() {
    file_.reset();
    bytes_ = 0;
    for (int number = options_.files_max - 1; number > 0; --number) {
        const auto from = number == 1 ? options_.path : rotated(options_.path, number - 1);
        if (auto renamed = files_.rename(from, rotated(options_.path, number)); !renamed && renamed.error().code != Errc::not_found) return renamed;
    }
    if (options_.files_max <= 1) return files_.remove(options_.path);
    return {};
}

std::vector<io::Path> audit_trail_files(io::FileSystem& files, const io::Path& path) {
    std::vector<io::Path> names;
    const auto is_there = [&](const io::Path& name) {
        const auto status = files.status(name);
        return status && *status;
    };
    int oldest = 0;
    while (is_there(rotated(path, oldest + 1))) ++oldest;
    for (; oldest > 0; --oldest) names.push_back(rotated(path, oldest));
    if (is_there(path)) names.push_back(path);
    return names;
}

}  // namespace tidemark::storage
