#include "storage/producer_snapshots.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/log.h"

namespace tidemark::storage {
namespace {

constexpr std::size_t header_bytes = 10;
constexpr std::size_t entry_bytes = 46;
constexpr std::int64_t snapshot_bytes_max = 1 << 30;

std::int64_t value_or_none(const std::optional<Offset>& offset) { return offset ? offset->value : -1; }

}  // namespace

std::vector<std::byte> encode_snapshot(const ProducerState& state) {
    std::vector<const ProducerEntry*> entries;
    for (const auto& [id, entry] : state.entries()) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
    std::vector<std::byte> bytes;
    bytes.reserve(header_bytes + entries.size() * entry_bytes);
    append_be(bytes, std::int16_t{1});
    append_be(bytes, std::uint32_t{0});
    append_be(bytes, static_cast<std::int32_t>(entries.size()));
    for (const auto* entry : entries) {
        const auto last = entry->batches.empty() ? ProducerBatch{} : entry->batches.back();
        append_be(bytes, entry->id);
        append_be(bytes, entry->epoch);
        append_be(bytes, last.last_sequence);
        append_be(bytes, last.last_offset.value);
        append_be(bytes, last.offset_delta);
        append_be(bytes, entry->last_timestamp.value);
        append_be(bytes, entry->coordinator_epoch);
        append_be(bytes, value_or_none(entry->transaction_first_offset));
    }
    store_be(bytes.data() + 2, crc32c(Bytes(bytes).subspan(6)));
    return bytes;
}

Result<std::vector<ProducerEntry>> decode_snapshot(Bytes content) {
    if (content.size() < header_bytes) return Error{Errc::corrupt, "producer snapshot of " + std::to_string(content.size()) + " bytes"};
    const auto version = load_be<std::int16_t>(content.data());
    if (version != 1) return Error{Errc::corrupt, "producer snapshot of version " + std::to_string(version)};
    if (load_be<std::uint32_t>(content.data() + 2) != crc32c(content.subspan(6))) return Error{Errc::corrupt, "wrong CRC in producer snapshot"};
    const auto count = load_be<std::int32_t>(content.data() + 6);
    if (count < 0 || content.size() - header_bytes != static_cast<std::size_t>(count) * entry_bytes) {
        return Error{Errc::corrupt, "producer snapshot with " + std::to_string(count) + " entries in " + std::to_string(content.size()) + " bytes"};
    }
    std::vector<ProducerEntry> entries;
    entries.reserve(static_cast<std::size_t>(count));
    for (const auto* from = content.data() + header_bytes; from != content.data() + content.size(); from += entry_bytes) {
        ProducerEntry entry{.id = load_be<std::int64_t>(from), .epoch = load_be<std::int16_t>(from + 8)};
        const ProducerBatch last{.last_sequence = load_be<std::int32_t>(from + 10),
                                 .last_offset = Offset{load_be<std::int64_t>(from + 14)},
                                 .offset_delta = load_be<std::int32_t>(from + 22),
                                 .timestamp = Timestamp{load_be<std::int64_t>(from + 26)}};
        if (last.last_offset.value >= 0) entry.batches.push_back(last);
        entry.last_timestamp = last.timestamp;
        entry.coordinator_epoch = load_be<std::int32_t>(from + 34);
        const auto first = load_be<std::int64_t>(from + 38);
        if (first >= 0) entry.transaction_first_offset = Offset{first};
        entries.push_back(std::move(entry));
    }
    return entries;
}

io::Path ProducerSnapshots::path_of(Offset offset) const { return io::join(directory_->get(), segment_file_name(offset, FileKind::snapshot)); }

std::optional<Offset> ProducerSnapshots::latest() const { return offsets_.empty() ? std::nullopt : std::optional(*offsets_.rbegin()); }

Result<> ProducerSnapshots::take(const ProducerState& state) {
    const auto at = state.end_offset();
    if (at <= last_) return {};
    const auto path = path_of(at);
    const auto content = encode_snapshot(state);
    TM_TRY(const auto file, files_->open(path, io::OpenMode::create_truncated));
    if (auto written = file->write(FilePosition{0}, content); !written) {
        (void)files_->remove(path);  // a torn one would only cost the next load a warning
        return in_context(std::move(written).error(), path);
    }
    offsets_.insert(at);
    unsynced_.insert(at);
    last_ = at;
    return {};
}

Result<> ProducerSnapshots::load_latest(ProducerState& state, Offset log_start, Timestamp now, std::int64_t expiration_ms) {
    while (const auto at = latest()) {
        auto content = io::read_whole(*files_, path_of(*at), snapshot_bytes_max);
        auto entries = content ? decode_snapshot(*content) : Result<std::vector<ProducerEntry>>(std::move(content).error());
        if (entries) {
            for (auto& entry : *entries) {
                if (!ProducerState::is_expired(entry, now, expiration_ms)) state.load(std::move(entry));
            }
            last_ = *at;
            state.set_end_offset(*at);
            return {};
        }
        if (entries.error().code != Errc::corrupt && entries.error().code != Errc::not_found) return in_context(entries.error(), path_of(*at));
        log_warning("{}: {}; the one before it serves", path_of(*at), entries.error().message());
        TM_TRYV(remove(*at));
    }
    last_ = log_start;
    state.set_end_offset(log_start);
    return {};
}

Result<> ProducerSnapshots::truncate_and_reload(ProducerState& state, Offset log_start, Offset log_end, Timestamp now,
                                                std::int64_t expiration_ms) {
    for (const auto offset : std::set<Offset>(offsets_)) {
        if (offset > log_end || offset <= log_start) TM_TRYV(remove(offset));
    }
    if (state.end_offset() == log_end) {
        log_start_raised(state, log_start);
        return {};
    }
    state.clear();
    return load_latest(state, log_start, now, expiration_ms);
}

Result<> ProducerSnapshots::remove_strays(const std::set<Offset>& segment_bases) {
    std::optional<Offset> largest_stray;
    for (const auto offset : std::set<Offset>(offsets_)) {
        if (segment_bases.contains(offset)) continue;
        if (largest_stray) TM_TRYV(remove(*largest_stray));
        largest_stray = offset;
    }
    if (largest_stray && !segment_bases.empty() && *largest_stray < *segment_bases.rbegin()) TM_TRYV(remove(*largest_stray));
    return {};
}

void ProducerSnapshots::log_start_raised(ProducerState& state, Offset log_start) {
    state.forget_completed_below(log_start);
    if (state.end_offset() < log_start) state.set_end_offset(log_start);
    last_ = latest().value_or(log_start);
}

Result<> ProducerSnapshots::remove(Offset offset) {
    offsets_.erase(offset);
    unsynced_.erase(offset);
    auto removed = files_->remove(path_of(offset));
    if (!removed && removed.error().code != Errc::not_found) return removed;
    return {};
}

Result<> ProducerSnapshots::remove_all() {
    for (const auto offset : std::set<Offset>(offsets_)) TM_TRYV(remove(offset));
    return {};
}

Result<bool> ProducerSnapshots::mark_deleted(Offset offset) {
    if (offsets_.erase(offset) == 0) return false;
    unsynced_.erase(offset);
    auto renamed = files_->rename(path_of(offset), path_of(offset) + std::string(suffix_text(FileSuffix::deleted)));
    if (renamed) return true;
    if (renamed.error().code == Errc::not_found) return false;
    return std::move(renamed).error();
}

std::vector<io::Path> ProducerSnapshots::take_unsynced() {
    std::vector<io::Path> paths;
    for (const auto offset : unsynced_) paths.push_back(path_of(offset));
    unsynced_.clear();
    return paths;
}

Result<> sync_snapshots(io::FileSystem& files, const std::vector<io::Path>& paths) {
    for (const auto& path : paths) {
        auto file = files.open(path, io::OpenMode::read_write);
        if (!file && file.error().code == Errc::not_found) continue;
        if (!file) return std::move(file).error();
        if (auto synced = (*file)->sync(); !synced) {
            auto error = std::move(synced).error();
            error.code = Errc::io;
            return error;
        }
    }
    return {};
}

}  // namespace tidemark::storage
