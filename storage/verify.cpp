#include "storage/verify.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "record/control.h"
#include "record/record.h"
#include "storage/batch_reader.h"
#include "storage/checkpoint.h"
#include "storage/offset_index.h"
#include "storage/producer_snapshots.h"
#include "storage/segment.h"
#include "storage/segments_file.h"

namespace tidemark::storage {
namespace {

constexpr std::int64_t small_file_bytes_max = 1 << 30;

/// What the walk over one `.log` learns, for judging the files beside it.
struct LogFacts {
    struct Batch {
        Offset last_offset{};
        Timestamp largest_so_far = no_timestamp;
    };
    std::map<std::int64_t, Batch> batches;                   // by position
    std::map<Offset, Timestamp> largest_at;                  // by last offset
    std::map<Offset, ProducerId> aborts;                     // ABORT markers
    TimeIndex::Entry largest;
};

class PartitionCheck {
public:
    PartitionCheck(io::FileSystem& files, const io::Path& directory, const VerifyOptions& options)
        : files_(files), directory_(directory), options_(options) {}

    Result<std::vector<Finding>> run();

private:
    io::Path at(std::string_view name) const { return io::join(directory_, name); }
    void fault(const io::Path& file, std::string what, std::optional<FilePosition> position = {}) {
        findings_.push_back({.file = file, .position = position, .what = std::move(what)});
    }
    Result<> sort_names();
    Result<LogFacts> check_log(Offset base, bool last);
    void check_batch(const io::Path& file, FilePosition position, const record::BatchView&, Offset expected, Offset base, LogFacts&);
    Result<> check_offset_index(Offset base, const LogFacts&, bool last);
    Result<> check_time_index(Offset base, const LogFacts&, bool last);
    Result<> check_transaction_index(Offset base, const LogFacts&);
    Result<> check_small_files();
    Result<std::optional<std::vector<std::byte>>> content(const io::Path&) const;

    io::FileSystem& files_;
    const io::Path directory_;
    const VerifyOptions& options_;
    std::vector<Finding> findings_;
    std::set<Offset> logs_, snapshots_;
    std::set<std::string> names_;
    record::RecordReader reader_;
};

Result<std::optional<std::vector<std::byte>>> PartitionCheck::content(const io::Path& path) const {
    auto read = io::read_whole(files_, path, small_file_bytes_max);
    if (read) return std::optional(*std::move(read));
    if (read.error().code == Errc::not_found) return std::optional<std::vector<std::byte>>{};
    return std::move(read).error();
}

Result<> PartitionCheck::sort_names() {
    TM_TRY(const auto entries, files_.list(directory_));
    for (const auto& entry : entries) {
        if (entry.is_directory) continue;
        names_.insert(entry.name);
        const auto parsed = parse_file_name(entry.name);
        if (parsed.suffix != FileSuffix::none || entry.name.ends_with(".tmp")) {
            findings_.push_back({.kind = Finding::Kind::leftover, .file = at(entry.name), .what = "left behind"});
        } else if (parsed.kind == FileKind::log) {
            logs_.insert(parsed.offset);
        } else if (parsed.kind == FileKind::snapshot) {
            snapshots_.insert(parsed.offset);
        } else if (parse_damaged_file_name(entry.name)) {
            fault(at(entry.name), "a damaged tail that waits for `tidemark repair`");
        }
    }
    for (const auto& name : names_) {
        const auto parsed = parse_file_name(name);
        const bool is_index = parsed.kind == FileKind::offset_index || parsed.kind == FileKind::time_index || parsed.kind == FileKind::transaction_index;
        if (is_index && parsed.suffix == FileSuffix::none && !logs_.contains(parsed.offset)) fault(at(name), "an index without its log");
    }
    return {};
}

void PartitionCheck::check_batch(const io::Path& file, FilePosition position, const record::BatchView& batch, Offset expected, Offset base, LogFacts& facts) {
    if (!batch.crc_matches()) fault(file, "wrong CRC", position);
    if (batch.last_offset() < expected || (!batch.is_legacy() && batch.base_offset() < expected)) {
        fault(file, "offsets " + std::to_string(batch.base_offset().value) + " to " + std::to_string(batch.last_offset().value) + " where " +
                        std::to_string(expected.value) + " follows", position);
    }
    if (batch.last_offset() - base > relative_offset_max) fault(file, "offset " + std::to_string(batch.last_offset().value) + " is too far from the base", position);
    if (!options_.records) return;
    auto opened = reader_.open(batch);
    if (!opened) return fault(file, opened.error().message(), position);
    Timestamp largest = no_timestamp;
    Offset before = expected - 1;
    for (;;) {
        const auto record = reader_.next();
        if (!record) return fault(file, record.error().message(), position);
        if (!*record) break;
        if ((*record)->offset <= before || (*record)->offset > batch.last_offset()) {
            fault(file, "record offset " + std::to_string((*record)->offset.value) + " outside its batch or out of order", position);
        }
        before = (*record)->offset;
        largest = std::max(largest, (*record)->timestamp);
        if (!batch.is_control()) continue;
        const auto type = record::control_type(**record);
        if (type && *type == record::ControlType::abort) facts.aborts[(*record)->offset] = batch.producer_id();
    }
    if (largest > batch.max_timestamp()) fault(file, "a record is younger than the batch's largest timestamp", position);
}

Result<LogFacts> PartitionCheck::check_log(Offset base, bool last) {
    LogFacts facts{.batches = {}, .largest_at = {}, .aborts = {}, .largest = {no_timestamp, base}};
    const auto path = at(segment_file_name(base, FileKind::log));
    TM_TRY(const auto file, files_.open(path, io::OpenMode::read));
    file->will_read_sequentially();
    TM_TRY(const auto bytes, file->size());
    if (bytes > segment_bytes_limit) fault(path, std::to_string(bytes) + " bytes, the limit is 2147483647");
    BatchWalk walk(*file, FilePosition{0}, bytes, 1 << 20);
    Offset expected = base;
    const auto next_log = logs_.upper_bound(base);
    for (;;) {
        auto batch = walk.next();
        if (!batch && batch.error().code != Errc::corrupt) return std::move(batch).error();
        if (!batch) {
            if (!(last && options_.in_use)) fault(path, batch.error().context, walk.next_position());
            break;
        }
        if (!*batch) {
            if (walk.next_position().value != bytes && !(last && options_.in_use)) {
                fault(path, std::to_string(bytes - walk.next_position().value) + " bytes at the end are no whole batch", walk.next_position());
            }
            break;
        }
        check_batch(path, walk.position(), **batch, expected, base, facts);
        expected = (*batch)->next_offset();
        if ((*batch)->max_timestamp() > facts.largest.timestamp) facts.largest = {(*batch)->max_timestamp(), (*batch)->last_offset()};
        facts.batches[walk.position().value] = {(*batch)->last_offset(), facts.largest.timestamp};
        facts.largest_at[(*batch)->last_offset()] = facts.largest.timestamp;
    }
    if (next_log != logs_.end() && expected > *next_log) {
        fault(path, "reaches up to " + std::to_string(expected.value) + ", into the next segment");
    }
    if (options_.progress) options_.progress(bytes);
    return facts;
}

Result<> PartitionCheck::check_offset_index(Offset base, const LogFacts& facts, bool last) {
    const auto path = at(segment_file_name(base, FileKind::offset_index));
    TM_TRY(const auto bytes, content(path));
    if (!bytes) {
        if (!(last && options_.in_use)) fault(path, "missing");
        return {};
    }
    if (bytes->size() % OffsetIndex::entry_bytes != 0) fault(path, "length " + std::to_string(bytes->size()) + " is no multiple of 8");
    OffsetIndex::Entry before{base - 1, FilePosition{-1}};
    for (std::size_t i = 0; i + OffsetIndex::entry_bytes <= bytes->size(); i += OffsetIndex::entry_bytes) {
        const OffsetIndex::Entry entry{base + load_be<std::int32_t>(bytes->data() + i), FilePosition{load_be<std::int32_t>(bytes->data() + i + 4)}};
        const FilePosition where{static_cast<std::int64_t>(i)};
        if (last && options_.in_use && entry.position.value == 0) break;  // the unused rest
        const auto batch = facts.batches.find(entry.position.value);
        if (entry.offset <= before.offset || entry.position <= before.position) fault(path, "the entries do not rise", where);
        else if (batch == facts.batches.end()) fault(path, "position " + std::to_string(entry.position.value) + " begins no batch", where);
        else if (batch->second.last_offset != entry.offset) fault(path, "offset " + std::to_string(entry.offset.value) + " is not its batch's last", where);
        before = entry;
    }
    return {};
}

Result<> PartitionCheck::check_time_index(Offset base, const LogFacts& facts, bool last) {
    const auto path = at(segment_file_name(base, FileKind::time_index));
    TM_TRY(const auto bytes, content(path));
    if (!bytes) {
        if (!(last && options_.in_use)) fault(path, "missing");
        return {};
    }
    if (bytes->size() % TimeIndex::entry_bytes != 0) fault(path, "length " + std::to_string(bytes->size()) + " is no multiple of 12");
    TimeIndex::Entry before{no_timestamp, base};
    for (std::size_t i = 0; i + TimeIndex::entry_bytes <= bytes->size(); i += TimeIndex::entry_bytes) {
        const TimeIndex::Entry entry{Timestamp{load_be<std::int64_t>(bytes->data() + i)}, base + load_be<std::int32_t>(bytes->data() + i + 8)};
        const FilePosition where{static_cast<std::int64_t>(i)};
        if (last && options_.in_use && entry.timestamp.value == 0 && entry.offset == base) break;
        const auto batch = facts.largest_at.find(entry.offset);
        if (entry.timestamp <= before.timestamp || entry.offset < before.offset) fault(path, "the entries do not rise", where);
        else if (batch == facts.largest_at.end()) fault(path, "offset " + std::to_string(entry.offset.value) + " is no batch's last", where);
        else if (batch->second != entry.timestamp) fault(path, "timestamp " + std::to_string(entry.timestamp.value) + " is not the largest up to there", where);
        before = entry;
    }
    if (!(last && options_.in_use) && before.timestamp != facts.largest.timestamp && facts.largest.timestamp.value >= 0) {
        fault(path, "the last entry is " + std::to_string(before.timestamp.value) + ", the largest timestamp " + std::to_string(facts.largest.timestamp.value));
    }
    return {};
}

Result<> PartitionCheck::check_transaction_index(Offset base, const LogFacts& facts) {
    const auto path = at(segment_file_name(base, FileKind::transaction_index));
    TM_TRY(const auto bytes, content(path));
    if (!bytes) return {};
    const auto entries = decode_transaction_index(*bytes);
    if (!entries) {
        fault(path, entries.error().context);
        return {};
    }
    if (bytes->size() % aborted_transaction_bytes != 0) fault(path, "length " + std::to_string(bytes->size()) + " is no multiple of 34");
    Offset before{-1};
    for (std::size_t i = 0; i < entries->size(); ++i) {
        const auto& entry = (*entries)[i];
        const FilePosition where{static_cast<std::int64_t>(i * aborted_transaction_bytes)};
        if (entry.last_offset <= before || entry.first_offset > entry.last_offset) fault(path, "the entries do not rise", where);
        const auto marker = facts.aborts.find(entry.last_offset);
        if (options_.records && (marker == facts.aborts.end() || marker->second != entry.producer_id)) {
            fault(path, "offset " + std::to_string(entry.last_offset.value) + " is no ABORT marker of producer " + std::to_string(entry.producer_id), where);
        }
        before = entry.last_offset;
    }
    return {};
}

Result<> PartitionCheck::check_small_files() {
    for (const auto offset : snapshots_) {
        const auto path = at(segment_file_name(offset, FileKind::snapshot));
        TM_TRY(const auto bytes, content(path));
        if (!bytes) continue;
        if (const auto entries = decode_snapshot(*bytes); !entries) fault(path, entries.error().context);
    }
    if (const auto epochs = read_leader_epochs(files_, at(file_name::leader_epoch_checkpoint)); !epochs) {
        fault(at(file_name::leader_epoch_checkpoint), epochs.error().message());
    } else if (*epochs) {
        EpochStart before{no_leader_epoch, Offset{-1}};
        for (const auto& entry : **epochs) {
            if (entry.epoch <= before.epoch || entry.start < before.start) fault(at(file_name::leader_epoch_checkpoint), "the epochs do not rise");
            before = entry;
        }
    }
    if (const auto id = read_partition_metadata(files_, at(file_name::partition_metadata)); !id) fault(at(file_name::partition_metadata), id.error().message());
    return {};
}

Result<std::vector<Finding>> PartitionCheck::run() {
    TM_TRYV(sort_names());
    for (const auto base : logs_) {
        const bool last = base == *logs_.rbegin();
        TM_TRY(const auto facts, check_log(base, last));
        TM_TRYV(check_offset_index(base, facts, last));
        TM_TRYV(check_time_index(base, facts, last));
        TM_TRYV(check_transaction_index(base, facts));
    }
    TM_TRYV(check_small_files());
    return std::move(findings_);
}

}  // namespace

std::string Finding::text() const {
    return file + (position ? " at " + std::to_string(position->value) : std::string()) + ": " + what;
}

Result<std::vector<Finding>> verify_partition(io::FileSystem& files, const io::Path& directory, const VerifyOptions& options) {
    return PartitionCheck(files, directory, options).run();
}

Result<std::vector<Finding>> verify_log_directory(io::FileSystem& files, const io::Path& directory) {
    std::vector<Finding> findings;
    const auto at = [&](std::string_view name) { return io::join(directory, name); };
    for (const auto name : {file_name::recovery_point_checkpoint, file_name::log_start_checkpoint, file_name::high_watermark_checkpoint, file_name::cleaner_checkpoint}) {
        const auto read = read_offset_checkpoint(files, at(name));
        if (!read && read.error().code != Errc::corrupt) return read.error();
        if (!read) findings.push_back({.file = at(name), .what = read.error().context});
    }
    const auto properties = read_meta_properties(files, at(file_name::meta_properties));
    if (!properties) findings.push_back({.file = at(file_name::meta_properties), .what = properties.error().message()});
    else if (!*properties) findings.push_back({.file = at(file_name::meta_properties), .what = "missing"});
    TM_TRY(const auto entries, files.list(directory));
    for (const auto& entry : entries) {
        if (!entry.is_directory || entry.name.starts_with('.') || entry.name == "lost+found" || entry.name == file_name::remote_index_cache) continue;
        if (!parse_directory_name(entry.name)) findings.push_back({.file = at(entry.name), .what = "not a partition's directory"});
    }
    return findings;
}

}  // namespace tidemark::storage
