// Opening, in this order (metadata-log 6):
//   1. leftovers of writes that did not end go away: *.part, *.deleted, *.tmp
//   2. the newest readable snapshot gives the state at its offset; 0-0 is no state but the list of bootstrap records
//   3. a log that ends before the newest snapshot is discarded
//   4. every batch of every segment is checked; the records from the snapshot's offset on are applied
//   5. damage: cut off when nothing valid follows it, otherwise the start is refused
#include "metadata/metadata_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/log.h"
#include "metadata/quorum_state.h"
#include "metadata/replay.h"
#include "protocol/messages/kraft_version_record.h"
#include "protocol/messages/leader_change_message.h"
#include "protocol/messages/snapshot_footer_record.h"
#include "protocol/messages/snapshot_header_record.h"
#include "protocol/messages/voters_record.h"
#include "storage/batch_reader.h"

namespace tidemark::metadata {
namespace {

constexpr std::string_view log_directory_name = "__cluster_metadata-0";
constexpr std::string_view quorum_state_name = "quorum-state";
constexpr std::string_view epoch_checkpoint_name = "leader-epoch-checkpoint";
constexpr std::string_view partition_metadata_name = "partition.metadata";
constexpr std::string_view bootstrap_checkpoint_name = "bootstrap.checkpoint";   // in the log directory, by Kafka before 4.4
constexpr std::string_view checkpoint_suffix = ".checkpoint", log_suffix = ".log";
constexpr std::size_t offset_digits = 20, epoch_digits = 10;
// Snapshots are cut into batches of about this size.
constexpr std::size_t snapshot_batch_bytes = 1 << 20;
constexpr std::int64_t bad_tail_searched_bytes_max = 256 << 20;

std::string segment_name(Offset base, std::string_view suffix = log_suffix) { return fmt::format("{:020}{}", base.value, suffix); }
std::string snapshot_name(Offset offset, LeaderEpoch epoch) { return fmt::format("{:020}-{:010}{}", offset.value, epoch, checkpoint_suffix); }

template <class Int>
std::optional<Int> decimal(std::string_view text) {
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::optional<Offset> parse_segment_name(std::string_view name) {
    if (name.size() != offset_digits + log_suffix.size() || !name.ends_with(log_suffix)) return std::nullopt;
    const auto offset = decimal<std::int64_t>(name.substr(0, offset_digits));
    if (!offset) return std::nullopt;
    return Offset{*offset};
}

std::optional<std::pair<Offset, LeaderEpoch>> parse_snapshot_name(std::string_view name) {
    if (name.size() != offset_digits + 1 + epoch_digits + checkpoint_suffix.size() || !name.ends_with(checkpoint_suffix) || name[offset_digits] != '-') return std::nullopt;
    const auto offset = decimal<std::int64_t>(name.substr(0, offset_digits));
    const auto epoch = decimal<std::int32_t>(name.substr(offset_digits + 1, epoch_digits));
    if (!offset || !epoch) return std::nullopt;
    return std::pair{Offset{*offset}, *epoch};
}

/// Where in `bytes` a batch with a matching CRC and an offset that may follow begins, nothing when there is none.
std::optional<std::size_t> find_valid_batch(Bytes bytes, Offset from) {
    for (std::size_t at = 0; at + record::v2_header_bytes <= bytes.size(); ++at) {
        if (bytes[at + 16] != std::byte{2}) continue;
        const auto offset = load_be<std::int64_t>(bytes.data() + at);
        const auto size = load_be<std::int32_t>(bytes.data() + at + 8);
        if (offset < from.value || size < 0 || size > metadata_batch_bytes_max || at + record::log_overhead + static_cast<std::size_t>(size) > bytes.size()) continue;
        const auto batch = record::BatchView::parse(bytes.subspan(at, record::log_overhead + static_cast<std::size_t>(size)));
        if (batch.has_value() && batch->crc_matches()) return at;
    }
    return std::nullopt;
}

template <class Message>
std::vector<std::byte> control_value(const Message& message) {
    auto bytes = protocol::encode(message, 0);
    TM_ASSERT(bytes.has_value());
    return *std::move(bytes);
}

template <class Message>
Result<Message> parse_control(const std::vector<std::byte>& value) {
    protocol::Reader reader{Bytes(value)};
    return protocol::parse<Message>(reader, 0);
}

ControlEntry snapshot_header(Timestamp last_contained) {
    return {record::ControlType::snapshot_header, control_value(protocol::SnapshotHeaderRecord{.last_contained_log_timestamp = last_contained.value})};
}

/// The file of a snapshot: header, data batches, footer; offsets from 0.
Result<std::vector<std::byte>> snapshot_bytes(std::vector<ControlEntry> header, const std::vector<protocol::VersionedMetadataRecord>& records, LeaderEpoch epoch, Timestamp now) {
    std::vector<std::byte> bytes;
    BatchPlace place{.base_offset = Offset{0}, .epoch = epoch, .timestamp = now};
    write_control_batch(place, header, bytes);
    place.base_offset += static_cast<std::int64_t>(header.size());
    for (std::size_t first = 0; first < records.size();) {
        std::size_t size = 0, last = first;
        while (last < records.size() && size < snapshot_batch_bytes) {
            TM_TRY(const auto value, protocol::metadata_record_value(records[last].record, records[last].version));
            size += value.size();
            ++last;
        }
        TM_TRYV(write_metadata_batch(place, std::span(records).subspan(first, last - first), bytes));
        place.base_offset += static_cast<std::int64_t>(last - first);
        first = last;
    }
    const ControlEntry footer{record::ControlType::snapshot_footer, control_value(protocol::SnapshotFooterRecord{})};
    write_control_batch(place, std::span(&footer, 1), bytes);
    return bytes;
}

/// `.part` written and synced, then renamed: a snapshot is there as a whole or not at all.
Result<> write_snapshot_file(io::FileSystem& files, const io::Path& directory, Offset offset, LeaderEpoch epoch, Bytes content) {
    const auto part = io::join(directory, fmt::format("{:020}-{:010}-{}.checkpoint.part", offset.value, epoch, Uuid::random().hex()));
    {
        TM_TRY(auto file, files.open(part, io::OpenMode::create_new));
        TM_TRYV(file->write(FilePosition{0}, content));
        TM_TRYV(file->sync());
    }
    TM_TRYV(files.rename(part, io::join(directory, snapshot_name(offset, epoch))));
    return files.sync_directory(directory);
}

Result<> create_log_directory(io::FileSystem& files, const io::Path& directory) {
    TM_TRYV(io::create_directories(files, directory));
    const auto metadata = io::join(directory, partition_metadata_name);
    TM_TRY(const auto status, files.status(metadata));
    if (status) return {};
    return io::replace_content(files, metadata, as_bytes(fmt::format("version: 0\ntopic_id: {}", Uuid::of(1).text())));
}

std::vector<protocol::VersionedMetadataRecord> with_versions(const std::vector<protocol::MetadataRecord>& records, std::int16_t metadata_version) {
    std::vector<protocol::VersionedMetadataRecord> versioned;
    versioned.reserve(records.size());
    for (const auto& record : records) versioned.push_back({record, record_version(record, metadata_version)});
    return versioned;
}

std::int16_t metadata_version_of(const BootstrapRecords& records) {
    for (const auto& record : records) {
        if (const auto* feature = std::get_if<protocol::FeatureLevelRecord>(&record); feature != nullptr && feature->name == "metadata.version") return feature->feature_level;
    }
    return 0;
}

}  // namespace

BootstrapRecords default_bootstrap() {
    using Feature = protocol::FeatureLevelRecord;
    return {Feature{.name = "metadata.version", .feature_level = metadata_version_max},
            Feature{.name = "eligible.leader.replicas.version", .feature_level = 1},
            Feature{.name = "group.version", .feature_level = 1},
            Feature{.name = "transaction.version", .feature_level = 2}};
}

/// What opening collects.
struct MetadataLog::Replay {
    ImageBuilder builder{};
    BootstrapRecords bootstrap = {};
    Offset applied_from{};                // records below are in the snapshot
    bool any_batch = false;               // the log has a batch
    std::vector<SnapshotFile> damaged = {};   // newer than the one that was read
    Offset next{};                        // the next batch's offset is not below this
    record::RecordReader reader{};
};

MetadataLog::MetadataLog(io::FileSystem& files, const Clock& clock, MetadataLogOptions options)
    : files_(files), clock_(clock), options_(std::move(options)), log_directory_(io::join(options_.directory, log_directory_name)) {}

Result<> MetadataLog::format(io::FileSystem& files, const Clock& clock, const io::Path& directory, const BootstrapRecords& records) {
    const auto log_directory = io::join(directory, log_directory_name);
    TM_TRYV(create_log_directory(files, log_directory));
    TM_TRY(const auto names, files.list(log_directory));
    const bool begun = std::ranges::any_of(names, [](const auto& entry) { return parse_segment_name(entry.name) || parse_snapshot_name(entry.name); });
    if (begun) return {};
    const Timestamp now = clock.now();
    TM_TRY(const auto content, snapshot_bytes({snapshot_header(now)}, with_versions(records, metadata_version_of(records)), 0, now));
    return write_snapshot_file(files, log_directory, Offset{0}, 0, content);
}

// --- opening -------------------------------------------------------------------------------------------------------

Result<MetadataLog::Opened> MetadataLog::open(io::FileSystem& files, const Clock& clock, MetadataLogOptions options) {
    std::unique_ptr<MetadataLog> log(new MetadataLog(files, clock, std::move(options)));
    TM_TRYV(create_log_directory(files, log->log_directory_));
    TM_TRYV(log->list_files());
    Replay replay;
    TM_TRYV(log->load_snapshots(replay));
    TM_TRYV(log->load_segments(replay));
    TM_TRYV(log->set_damaged_aside(replay));
    TM_TRYV(log->check_voters());

    const auto quorum_state = io::read_whole(files, log->path(quorum_state_name), 1 << 20);
    if (quorum_state.has_value()) {
        TM_TRY(const auto state, parse_quorum_state(as_text(*quorum_state)));
        if (state.leader_epoch < log->epoch_) log_warning("[{}] quorum-state is at epoch {}, the log at {}", log_directory_name, state.leader_epoch, log->epoch_);
        log->epoch_ = std::max(log->epoch_, state.leader_epoch);
    } else if (quorum_state.error().code != Errc::not_found) {
        return quorum_state.error();
    }
    log->last_snapshot_at_ = clock.now();

    Opened opened;
    opened.in_transaction = replay.builder.in_transaction();
    if (replay.builder.image().metadata_version() == 0) {
        if (!replay.builder.image().same_content(Image{})) {
            return Error{Errc::unsupported, fmt::format("{}: records but no metadata.version", log->log_directory_)};
        }
        TM_TRYV(log->read_bootstrap(replay));
        opened.bootstrap = std::move(replay.bootstrap);
    }
    opened.image = std::move(replay.builder).build();
    opened.log = std::move(log);
    return opened;
}

Result<> MetadataLog::list_files() {
    TM_TRY(const auto names, files_.list(log_directory_));
    for (const auto& entry : names) {
        if (entry.is_directory) continue;
        if (entry.name.ends_with(".part") || entry.name.ends_with(".deleted") || entry.name.ends_with(".tmp")) {
            TM_TRYV(files_.remove(path(entry.name)));
            continue;
        }
        const auto base = parse_segment_name(entry.name);
        const auto snapshot = parse_snapshot_name(entry.name);
        if (!base && !snapshot) continue;
        TM_TRY(const auto status, files_.status(path(entry.name)));
        if (!status) continue;
        if (base) segments_.push_back({.base_offset = *base, .bytes = status->bytes});
        else snapshots_.push_back({.offset = snapshot->first, .epoch = snapshot->second, .bytes = status->bytes});
    }
    std::ranges::sort(segments_, {}, &SegmentFile::base_offset);
    std::ranges::sort(snapshots_, [](const SnapshotFile& a, const SnapshotFile& b) { return std::pair(a.offset, a.epoch) < std::pair(b.offset, b.epoch); });
    if (!segments_.empty()) start_offset_ = segments_.front().base_offset;
    while (!snapshots_.empty() && snapshots_.front().offset < start_offset_) {
        TM_TRYV(files_.remove(path(snapshot_name(snapshots_.front().offset, snapshots_.front().epoch))));
        snapshots_.erase(snapshots_.begin());
    }
    if (start_offset_ > Offset{0} && snapshots_.empty()) {
        return Error{Errc::corrupt, fmt::format("{}: the log begins at offset {} and there is no snapshot of what was before", log_directory_, start_offset_.value)};
    }
    return {};
}

Result<> MetadataLog::load_snapshots(Replay& replay) {
    // The newest that can be read; what lies between it and a damaged newer one is still in the log, or the log tells.
    for (auto snapshot = snapshots_.rbegin(); snapshot != snapshots_.rend(); ++snapshot) {
        auto read = read_snapshot(*snapshot, replay);
        if (read.has_value()) {
            replay.applied_from = snapshot->offset;
            if (snapshot->offset > Offset{0}) replay.builder.pass(snapshot->offset - 1);
            epoch_ = last_written_epoch_ = snapshot->epoch;
            return {};
        }
        const bool covered = snapshot->offset > Offset{0} && !segments_.empty() && (snapshot + 1 != snapshots_.rend() || start_offset_ == Offset{0});
        if (!covered || read.error().code != Errc::corrupt) return read;
        log_error("[{}] {}; going on with what is older", log_directory_name, read.error().message());
        auto damaged = std::move(replay.damaged);
        damaged.push_back(*snapshot);
        replay = Replay{};
        replay.damaged = std::move(damaged);
        raft_ = {};
    }
    return {};
}

Result<> MetadataLog::set_damaged_aside(const Replay& replay) {
    // Under another name, so that nothing is deleted in the belief that such a snapshot holds it.
    for (const SnapshotFile& damaged : replay.damaged) {
        const auto name = snapshot_name(damaged.offset, damaged.epoch);
        TM_TRYV(files_.rename(path(name), path(name + ".damaged")));
        std::erase(snapshots_, damaged);
    }
    if (replay.damaged.empty()) return {};
    return files_.sync_directory(log_directory_);
}

Result<> MetadataLog::read_snapshot(const SnapshotFile& snapshot, Replay& replay) {
    const auto name = snapshot_name(snapshot.offset, snapshot.epoch);
    TM_TRY(const auto bytes, io::read_whole(files_, path(name)));
    record::BatchCursor cursor{Bytes(bytes)};
    const bool is_bootstrap = snapshot.offset == Offset{0};
    bool header = false, footer = false;
    for (;;) {
        auto next = cursor.next();
        if (!next.has_value()) return in_context(std::move(next).error(), name);
        if (!*next) break;
        auto decoded = read_metadata_batch(**next, replay.reader);
        if (!decoded.has_value()) return in_context(std::move(decoded).error(), name);
        if (footer) return Error{Errc::corrupt, fmt::format("{}: something follows the footer", name)};
        if (const auto* controls = std::get_if<std::vector<ControlEntry>>(&decoded->entries)) {
            for (const ControlEntry& entry : *controls) {
                header |= entry.type == record::ControlType::snapshot_header;
                footer |= entry.type == record::ControlType::snapshot_footer;
                if (entry.type == record::ControlType::kraft_version) raft_.kraft_version = entry.value;
                if (entry.type == record::ControlType::kraft_voters) raft_.voters = entry.value;
            }
            continue;
        }
        for (auto& record : std::get<std::vector<protocol::VersionedMetadataRecord>>(decoded->entries)) {
            if (!header) return Error{Errc::corrupt, fmt::format("{}: no header", name)};
            if (is_bootstrap) {
                replay.bootstrap.push_back(std::move(record.record));
                continue;
            }
            TM_TRYV(replay.builder.apply(record.record, snapshot.offset - 1));
        }
    }
    if (!header || !footer || !cursor.rest().empty()) return Error{Errc::corrupt, fmt::format("{}: it is not complete", name)};
    raft_.in_log = !is_bootstrap && raft_.voters.has_value();
    return {};
}

Result<> MetadataLog::read_bootstrap(Replay& replay) {
    if (!replay.bootstrap.empty()) return {};
    const auto name = io::join(options_.directory, bootstrap_checkpoint_name);
    const auto bytes = io::read_whole(files_, name);
    if (!bytes.has_value()) {
        if (bytes.error().code != Errc::not_found) return bytes.error();
        replay.bootstrap = {protocol::FeatureLevelRecord{.name = "metadata.version", .feature_level = metadata_version_max}};
        return {};
    }
    record::BatchCursor cursor{Bytes(*bytes)};
    for (;;) {
        TM_TRY(const auto batch, cursor.next());
        if (!batch) break;
        auto decoded = read_metadata_batch(*batch, replay.reader);
        if (!decoded.has_value()) return in_context(std::move(decoded).error(), name);
        if (auto* records = std::get_if<std::vector<protocol::VersionedMetadataRecord>>(&decoded->entries)) {
            for (auto& record : *records) replay.bootstrap.push_back(std::move(record.record));
        }
    }
    return {};
}

Result<> MetadataLog::load_segments(Replay& replay) {
    // Each segment is read before it is known whether the log counts: a log behind the snapshot may be damaged as it likes.
    end_offset_ = segments_.empty() ? replay.applied_from : segments_.front().base_offset;
    replay.next = end_offset_;
    const SnapshotFile newest = snapshots_.empty() ? SnapshotFile{} : snapshots_.back();
    if (segments_.empty()) {
        start_offset_ = end_offset_ = newest.offset;
        return {};
    }
    for (std::size_t i = 0; i < segments_.size(); ++i) {
        const bool last = std::all_of(segments_.begin() + static_cast<std::ptrdiff_t>(i) + 1, segments_.end(), [](const SegmentFile& later) { return later.bytes == 0; });
        replay.next = std::max(replay.next, segments_[i].base_offset);
        TM_TRYV(load_segment(segments_[i], last, replay));
    }
    end_offset_ = replay.next;
    if (!replay.any_batch) {
        if (!replay.damaged.empty()) return Error{Errc::corrupt, fmt::format("{}: a snapshot that cannot be read beside an empty log", log_directory_)};
        if (end_offset_ != newest.offset || start_offset_ != newest.offset) {
            return Error{Errc::corrupt, fmt::format("{}: an empty log at offset {} beside a snapshot at {}", log_directory_, end_offset_.value, newest.offset.value)};
        }
        return {};
    }
    const bool behind = newest.epoch > last_written_epoch_ || (newest.epoch == last_written_epoch_ && newest.offset > end_offset_);
    if (behind) {
        if (!replay.damaged.empty()) {
            return Error{Errc::corrupt, fmt::format("{}: the newest snapshot cannot be read, and the log ends before it, at offset {}", log_directory_, end_offset_.value)};
        }
        log_warning("[{}] the log ends at offset {} in epoch {}, before the snapshot {}; the snapshot counts", log_directory_name, end_offset_.value, last_written_epoch_,
                    snapshot_name(newest.offset, newest.epoch));
        replay = Replay{};
        raft_ = {};
        TM_TRYV(load_snapshots(replay));
        return discard_log(newest.offset);
    }
    return {};
}

Result<> MetadataLog::load_segment(SegmentFile& segment, bool last, Replay& replay) {
    const auto name = segment_name(segment.base_offset);
    TM_TRY(const auto file, files_.open(path(name), io::OpenMode::read));
    storage::BatchWalk walk(*file, FilePosition{0}, segment.bytes);
    for (;;) {
        const FilePosition at = walk.next_position();
        auto next = walk.next();
        if (!next.has_value() && next.error().code != Errc::corrupt) return in_context(std::move(next).error(), name);
        if (next.has_value() && !*next) {
            if (at.value == segment.bytes) return {};
            return cut_tail(segment, last, at, "an incomplete batch");
        }
        if (!next.has_value()) return cut_tail(segment, last, at, next.error().context);
        const record::BatchView& batch = **next;
        if (!batch.crc_matches()) return cut_tail(segment, last, at, "a CRC mismatch");
        if (batch.base_offset() < replay.next) {
            return Error{Errc::corrupt, fmt::format("{} at {}: offset {} after {}", name, at.value, batch.base_offset().value, replay.next.value - 1)};
        }
        if (batch.leader_epoch() < (replay.any_batch ? last_written_epoch_ : 0)) {
            return Error{Errc::corrupt, fmt::format("{} at {}: epoch {} after {}", name, at.value, batch.leader_epoch(), last_written_epoch_)};
        }
        if (!segment.first_timestamp) segment.first_timestamp = batch.base_timestamp();
        if (epoch_starts_.empty() || batch.leader_epoch() > epoch_starts_.back().first) epoch_starts_.emplace_back(batch.leader_epoch(), batch.base_offset());
        replay.any_batch = true;
        replay.next = batch.next_offset();
        last_written_epoch_ = batch.leader_epoch();
        epoch_ = std::max(epoch_, last_written_epoch_);
        last_timestamp_ = batch.base_timestamp();
        if (batch.last_offset() < replay.applied_from) continue;

        bytes_since_snapshot_ += static_cast<std::int64_t>(batch.size());
        auto decoded = read_metadata_batch(batch, replay.reader);
        if (!decoded.has_value()) return in_context(std::move(decoded).error(), fmt::format("{} at {}", name, at.value));
        if (const auto* controls = std::get_if<std::vector<ControlEntry>>(&decoded->entries)) {
            for (const ControlEntry& entry : *controls) {
                if (entry.type == record::ControlType::kraft_version) raft_.kraft_version = entry.value;
                if (entry.type == record::ControlType::kraft_voters) {
                    raft_.voters = entry.value;
                    raft_.in_log = true;
                }
            }
            replay.builder.pass(decoded->last_offset);
            continue;
        }
        Offset offset = decoded->base_offset;
        for (const auto& record : std::get<std::vector<protocol::VersionedMetadataRecord>>(decoded->entries)) {
            if (auto applied = replay.builder.apply(record.record, offset); !applied.has_value()) {
                return in_context(std::move(applied).error(), fmt::format("the metadata log at offset {}", offset.value));
            }
            ++offset;
        }
    }
}

Result<> MetadataLog::cut_tail(SegmentFile& segment, bool last, FilePosition from, std::string_view why) {
    const auto name = path(segment_name(segment.base_offset));
    const auto refuse = [&](std::string_view what) {
        return Error{Errc::corrupt, fmt::format("{} at {}: {}, and {}. Cutting there would lose topics and settings; restore the file, or see the manual on repairing a metadata log.",
                                                name, from.value, why, what)};
    };
    if (!last) return refuse("later segments follow");
    const std::int64_t tail = segment.bytes - from.value;
    if (tail > bad_tail_searched_bytes_max) return refuse(fmt::format("{} bytes follow", tail));
    TM_TRY(auto file, files_.open(name, io::OpenMode::read_write));
    std::vector<std::byte> rest(static_cast<std::size_t>(tail));
    TM_TRY(const auto read, file->read(from, rest));
    if (read != rest.size()) return Error{Errc::corrupt, fmt::format("{}: shorter than its size", name)};
    // From the byte behind: the damaged batch itself does not count.
    if (const auto valid = find_valid_batch(Bytes(rest).subspan(std::min<std::size_t>(1, rest.size())), segment.base_offset)) {
        return refuse(fmt::format("a valid batch follows at {}", from.value + 1 + static_cast<std::int64_t>(*valid)));
    }
    log_warning("[{}] {}: cut off at {}, {} bytes: {}", log_directory_name, name, from.value, tail, why);
    TM_TRYV(file->resize(from.value));
    TM_TRYV(file->sync());
    segment.bytes = from.value;
    return {};
}

Result<> MetadataLog::discard_log(Offset start) {
    // Newest first, so that a power loss in between leaves a log that is still behind the snapshot.
    while (!segments_.empty()) {
        TM_TRYV(files_.remove(path(segment_name(segments_.back().base_offset))));
        TM_TRYV(files_.sync_directory(log_directory_));
        segments_.pop_back();
    }
    start_offset_ = end_offset_ = start;
    last_written_epoch_ = snapshots_.back().epoch;
    epoch_ = std::max(epoch_, last_written_epoch_);
    epoch_starts_.clear();
    bytes_since_snapshot_ = 0;
    return {};
}

Result<> MetadataLog::check_voters() const {
    if (!raft_.voters) return {};
    TM_TRY(const auto voters, parse_control<protocol::VotersRecord>(*raft_.voters));
    for (const auto& voter : voters.voters) {
        if (voter.voter_id != options_.node_id) {
            return Error{Errc::unsupported, fmt::format("{}: node {} votes in this cluster too; Tidemark opens directories of a single node only", log_directory_, voter.voter_id)};
        }
        if (!options_.directory_id.is_zero() && voter.voter_directory_id != options_.directory_id) {
            return Error{Errc::unsupported, fmt::format("{}: the voter's directory id is {}, that of meta.properties {}", log_directory_, voter.voter_directory_id.text(),
                                                        options_.directory_id.text())};
        }
    }
    return {};
}

// --- writing -------------------------------------------------------------------------------------------------------

Result<> MetadataLog::usable() const {
    if (!offline_) return {};
    return Error{Errc::storage_offline, fmt::format("the metadata log failed earlier: {}", offline_->message())};
}

Error MetadataLog::fail(Error error, std::string_view what) {
    offline_ = in_context(error, what);
    log_error("[{}] {}: {}; metadata cannot be changed any more", log_directory_name, what, error.message());
    return error;
}

Result<> MetadataLog::roll() {
    const auto name = path(segment_name(end_offset_));
    TM_TRY(active_, files_.open(name, io::OpenMode::create_truncated));
    // A segment whose name is not durable would take acknowledged records with it.
    if (auto synced = files_.sync_directory(log_directory_); !synced.has_value()) return fail(std::move(synced).error(), "sync of the directory");
    if (segments_.empty() || segments_.back().base_offset != end_offset_) segments_.push_back({.base_offset = end_offset_});
    if (segments_.size() == 1) start_offset_ = end_offset_;
    return {};
}

Result<> MetadataLog::with_room(const std::function<Result<>()>& write) const {
    auto done = write();
    if (done || done.error().code != Errc::no_space || !options_.make_room) return done;
    options_.make_room();
    return write();
}

Result<> MetadataLog::replace_content(std::string_view name, std::string_view text) const {
    return with_room([&] { return io::replace_content(files_, path(name), as_bytes(text)); });
}

Result<> MetadataLog::write_batch(const std::vector<std::byte>& bytes, Timestamp timestamp, Offset next) {
    return with_room([&] { return try_to_write(bytes, timestamp, next); });
}

Result<> MetadataLog::try_to_write(const std::vector<std::byte>& bytes, Timestamp timestamp, Offset next) {
    TM_TRYV(usable());
    const auto size = static_cast<std::int64_t>(bytes.size());
    const auto is_full = [&](const SegmentFile& segment) {
        return segment.bytes > 0 && (segment.bytes + size > options_.segment_bytes || timestamp - segment.first_timestamp.value_or(timestamp) > options_.segment_ms);
    };
    if (segments_.empty() || is_full(segments_.back())) {
        TM_TRYV(roll());
    } else if (!active_) {
        // Left by an earlier run: its indexes would be wrong from now on, and whoever wants them makes them anew.
        const Offset base = segments_.back().base_offset;
        for (const std::string_view suffix : {".index", ".timeindex"}) {
            if (auto removed = files_.remove(path(segment_name(base, suffix))); !removed.has_value() && removed.error().code != Errc::not_found) return removed;
        }
        TM_TRY(active_, files_.open(path(segment_name(base)), io::OpenMode::read_write));
    }
    SegmentFile& segment = segments_.back();
    if (auto written = active_->write(FilePosition{segment.bytes}, bytes); !written.has_value()) {
        if (auto restored = active_->resize(segment.bytes); !restored.has_value()) return fail(std::move(restored).error(), "taking back a write");
        return written;
    }
    if (auto synced = active_->sync(); !synced.has_value()) return fail(std::move(synced).error(), "sync");
    if (!segment.first_timestamp) segment.first_timestamp = timestamp;
    segment.bytes += size;
    bytes_since_snapshot_ += size;
    last_timestamp_ = timestamp;
    last_written_epoch_ = epoch_;
    end_offset_ = next;
    return {};
}

Result<> MetadataLog::begin_epoch() {
    TM_TRYV(usable());
    ++epoch_;
    const bool dynamic_voters = raft_.kraft_version.has_value();
    const QuorumState state{.data_version = dynamic_voters ? 1 : 0, .leader_id = options_.node_id, .leader_epoch = epoch_, .voted_id = -1};
    TM_TRYV(replace_content(quorum_state_name, quorum_state_text(state)));

    protocol::LeaderChangeMessage change{.leader_id = options_.node_id};
    change.voters.push_back({.voter_id = options_.node_id});
    change.granting_voters = change.voters;
    std::vector<ControlEntry> entries{{record::ControlType::leader_change, control_value(change)}};
    if (raft_.voters && !raft_.in_log) {
        if (raft_.kraft_version) entries.push_back({record::ControlType::kraft_version, *raft_.kraft_version});
        entries.push_back({record::ControlType::kraft_voters, *raft_.voters});
    }
    const BatchPlace place{.base_offset = end_offset_, .epoch = epoch_, .timestamp = clock_.now()};
    std::vector<std::byte> bytes;
    write_control_batch(place, entries, bytes);
    TM_TRYV(write_batch(bytes, place.timestamp, end_offset_ + static_cast<std::int64_t>(entries.size())));
    raft_.in_log = raft_.voters.has_value();

    epoch_starts_.emplace_back(epoch_, place.base_offset);
    std::string checkpoint = fmt::format("0\n{}\n", epoch_starts_.size());
    for (const auto& [epoch, start] : epoch_starts_) checkpoint += fmt::format("{} {}\n", epoch, std::max(start, start_offset_).value);
    return replace_content(epoch_checkpoint_name, checkpoint);
}

Result<> MetadataLog::append(std::span<const protocol::MetadataRecord> records, std::int16_t metadata_version) {
    TM_ASSERT(!epoch_starts_.empty() && epoch_starts_.back().first == epoch_);   // begin_epoch() came before
    TM_TRYV(usable());
    const BatchPlace place{.base_offset = end_offset_, .epoch = epoch_, .timestamp = clock_.now()};
    std::vector<std::byte> bytes;
    TM_TRYV(write_metadata_batch(place, records, metadata_version, bytes));
    return write_batch(bytes, place.timestamp, end_offset_ + static_cast<std::int64_t>(records.size()));
}

bool MetadataLog::snapshot_is_due() const {
    if (bytes_since_snapshot_ == 0 || offline_) return false;
    if (bytes_since_snapshot_ >= options_.snapshot_bytes) return true;
    return options_.snapshot_ms > 0 && clock_.now() - last_snapshot_at_ >= options_.snapshot_ms;
}

Result<> MetadataLog::write_snapshot(const Image& image) {
    TM_TRYV(usable());
    TM_ASSERT(image.offset + 1 == end_offset_);
    const Timestamp now = clock_.now();
    const SnapshotFile snapshot{.offset = end_offset_, .epoch = last_written_epoch_};
    const bool exists = std::ranges::any_of(snapshots_, [&](const SnapshotFile& other) { return other.offset == snapshot.offset && other.epoch == snapshot.epoch; });
    if (!exists) {
        std::vector<ControlEntry> header{snapshot_header(last_timestamp_)};
        if (raft_.kraft_version) header.push_back({record::ControlType::kraft_version, *raft_.kraft_version});
        if (raft_.voters) header.push_back({record::ControlType::kraft_voters, *raft_.voters});
        TM_TRY(const auto content, snapshot_bytes(std::move(header), with_versions(snapshot_records(image), image.metadata_version()), snapshot.epoch, now));
        TM_TRYV(write_snapshot_file(files_, log_directory_, snapshot.offset, snapshot.epoch, content));
        snapshots_.push_back({.offset = snapshot.offset, .epoch = snapshot.epoch, .bytes = static_cast<std::int64_t>(content.size())});
        log_info("[{}] snapshot at offset {}, {} bytes", log_directory_name, snapshot.offset.value, content.size());
    }
    bytes_since_snapshot_ = 0;
    last_snapshot_at_ = now;
    return {};
}

std::int64_t MetadataLog::bytes() const {
    std::int64_t total = 0;
    for (const auto& segment : segments_) total += segment.bytes;
    for (const auto& snapshot : snapshots_) total += snapshot.bytes;
    return total;
}

Result<> MetadataLog::clean_up() {
    TM_TRYV(usable());
    const auto header_time = [&](const SnapshotFile& snapshot) -> Result<Timestamp> {
        const auto name = snapshot_name(snapshot.offset, snapshot.epoch);
        TM_TRY(const auto content, io::read_whole(files_, path(name)));
        record::BatchCursor cursor{Bytes(content)};
        TM_TRY(const auto batch, cursor.next());
        if (!batch) return Error{Errc::corrupt, fmt::format("{}: empty", name)};
        record::RecordReader reader;
        TM_TRY(const auto decoded, read_metadata_batch(*batch, reader));
        const auto* controls = std::get_if<std::vector<ControlEntry>>(&decoded.entries);
        if (controls == nullptr || controls->front().type != record::ControlType::snapshot_header) return Error{Errc::corrupt, fmt::format("{}: no header", name)};
        TM_TRY(const auto header, parse_control<protocol::SnapshotHeaderRecord>(controls->front().value));
        return Timestamp{header.last_contained_log_timestamp};
    };
    while (snapshots_.size() > 1) {
        const bool too_large = options_.retention_bytes >= 0 && bytes() > options_.retention_bytes;
        if (!too_large) {
            if (options_.retention_ms < 0) return {};
            TM_TRY(const auto time, header_time(snapshots_.front()));
            if (clock_.now() - time <= options_.retention_ms) return {};
        }
        const Offset start = snapshots_[1].offset;
        // Oldest first and each removal durable before the next: a power loss never leaves a hole.
        while (segments_.size() > 1 && segments_[1].base_offset <= start) {
            const Offset base = segments_.front().base_offset;
            TM_TRYV(files_.remove(path(segment_name(base))));
            for (const std::string_view suffix : {".index", ".timeindex", ".snapshot"}) {
                if (auto removed = files_.remove(path(segment_name(base, suffix))); !removed.has_value() && removed.error().code != Errc::not_found) return removed;
            }
            TM_TRYV(files_.sync_directory(log_directory_));
            segments_.erase(segments_.begin());
            start_offset_ = segments_.front().base_offset;
        }
        const SnapshotFile oldest = snapshots_.front();
        TM_TRYV(files_.remove(path(snapshot_name(oldest.offset, oldest.epoch))));
        TM_TRYV(files_.sync_directory(log_directory_));
        snapshots_.erase(snapshots_.begin());
        while (epoch_starts_.size() > 1 && epoch_starts_[1].second <= start_offset_) epoch_starts_.erase(epoch_starts_.begin());
    }
    return {};
}

}  // namespace tidemark::metadata
