// 1. Every file of the directory that may hold records is walked; records of the keys asked for are noted, in the log's own
//    segments together with what became of their transaction.
// 2. The latest committed record of each key is what stays.
// 3. All others are judged by the place they are in.
#include "cleaner/audit.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "record/control.h"
#include "storage/batch_reader.h"
#include "storage/directory_names.h"

namespace tidemark::cleaner {
namespace {

using Place = AuditTrace::Place;
using record::BatchView;

enum class Fate : std::uint8_t { visible, open, aborted };

/// What is noted of a record while the files are walked.
struct Found {
    AuditTrace trace;
    Fate fate = Fate::visible;
    std::optional<Timestamp> horizon;
    std::size_t segment = 0;                           // of the log's own
};

struct LiveSegment {
    Offset base{};
    Timestamp modified{};
    Timestamp largest = no_timestamp;
};

Timestamp after(Timestamp t, std::int64_t milliseconds) {
    std::int64_t sum;
    return Timestamp{__builtin_add_overflow(t.value, milliseconds, &sum) ? std::numeric_limits<std::int64_t>::max() : sum};
}

std::optional<Place> place_of(const std::string& name) {
    if (storage::parse_damaged_file_name(name)) return Place::damaged;
    const auto file = storage::parse_file_name(name);
    if (file.kind != storage::FileKind::log) return std::nullopt;
    switch (file.suffix) {
        case storage::FileSuffix::none: return Place::live;
        case storage::FileSuffix::deleted: return Place::deleted;
        case storage::FileSuffix::cleaned:
        case storage::FileSuffix::swap: return Place::leftover;
    }
    return std::nullopt;
}

class Audit {
public:
    Audit(std::span<const std::vector<std::byte>> keys, const AuditFacts& facts) : facts_(facts) {
        for (std::size_t i = 0; i < keys.size(); ++i) keys_.emplace(as_text(keys[i]), i);
    }

    Result<> walk_directory(io::FileSystem& files, const io::Path& directory) {
        TM_TRY(const auto entries, files.list(directory));   // by name: segments in the order of their offsets
        for (const auto& entry : entries) {
            const auto place = place_of(entry.name);
            if (entry.is_directory || !place) continue;
            const auto path = io::join(directory, entry.name);
            auto file = files.open(path, io::OpenMode::read);
            if (!file && file.error().code == Errc::not_found) continue;   // a daemon is at work
            if (!file) return std::move(file).error();
            TM_TRY(const auto status, files.status(path));
            const auto changed = status ? status->changed : facts_.now;
            if (*place == Place::live) segments_.push_back({storage::parse_file_name(entry.name).offset, status ? status->modified : facts_.now});
            TM_TRYV(walk(**file, path, facts_.directory_deleted ? Place::deleted : *place, changed));
        }
        return {};
    }

    Result<> walk(const io::File& file, const io::Path& path, Place place, Timestamp changed) {
        TM_TRY(const auto bytes, file.size());
        storage::BatchWalk batches(file, FilePosition{0}, bytes);
        for (;;) {
            const auto batch = batches.next();
            if (!batch || !*batch) return {};   // a torn or damaged end holds nothing that can be told apart
            if (!(*batch)->crc_matches()) continue;
            TM_TRYV(take(**batch, path, place, changed, batches.position()));
        }
    }

    std::vector<AuditTrace> judged() && {
        for (const auto& f : found_) {
            if (f.trace.place == Place::live && f.fate == Fate::visible) visible_[f.trace.key].push_back(&f);
        }
        for (auto& [key, records] : visible_) std::ranges::stable_sort(records, {}, offset_of);
        held_from_ = held_from();
        std::vector<AuditTrace> traces;
        for (auto& f : found_) {
            judge(f);
            traces.push_back(std::move(f.trace));
        }
        return traces;
    }

private:
    Result<> take(const BatchView& batch, const io::Path& path, Place place, Timestamp changed, FilePosition at) {
        const bool live = place == Place::live;
        if (live) segments_.back().largest = std::max(segments_.back().largest, batch.max_timestamp());
        if (batch.is_control()) return live ? end_transaction(batch) : Result<>{};
        if (live && batch.is_transactional()) open_.try_emplace(batch.producer_id(), Open{batch.base_offset(), {}});
        if (auto opened = reader_.open(batch); !opened) return {};
        for (;;) {
            const auto record = reader_.next();
            if (!record || !*record) return {};
            if (!(*record)->key) continue;
            const auto key = keys_.find(as_text(*(*record)->key));
            if (key == keys_.end()) continue;
            Found f;
            f.trace = {.file = path, .place = place, .position = at, .offset = (*record)->offset, .timestamp = (*record)->timestamp, .key = key->second,
                       .is_tombstone = !(*record)->value, .is_clean = (*record)->offset < facts_.first_dirty};
            f.horizon = batch.delete_horizon();
            if (live) f.segment = segments_.size() - 1;
            else f.trace.due = changed;   // judge() makes a deadline of it
            if (live && batch.is_transactional()) {
                f.fate = Fate::open;
                open_[batch.producer_id()].found.push_back(found_.size());
            }
            found_.push_back(std::move(f));
        }
    }

    Result<> end_transaction(const BatchView& marker) {
        const auto open = open_.extract(marker.producer_id());
        if (open.empty()) return {};
        TM_TRYV(reader_.open(marker));
        TM_TRY(const auto record, reader_.next());
        const auto type = record ? record::control_type(*record) : Result<record::ControlType>{record::ControlType::abort};
        const auto fate = type && *type == record::ControlType::commit ? Fate::visible : Fate::aborted;
        for (const auto i : open.mapped().found) found_[i].fate = fate;
        return {};
    }

    static Offset offset_of(const Found* found) { return found->trace.offset; }

    /// The first visible record of the key behind `f`: what made it superfluous.
    const Found* superseding(const Found& f) const {
        const auto list = visible_.find(f.trace.key);
        if (list == visible_.end()) return nullptr;
        const auto other = std::ranges::upper_bound(list->second, f.trace.offset, {}, offset_of);
        return other == list->second.end() ? nullptr : *other;
    }

    /// When a record of the log came: its timestamp, as far as the times of its file and of the one before allow it.
    Timestamp appended(const Found& f) const {
        const auto latest = segments_[f.segment].modified;
        if (f.trace.timestamp <= Timestamp{0}) return latest;
        const auto earliest = f.segment > 0 ? std::min(segments_[f.segment - 1].modified, latest) : Timestamp{0};
        return std::clamp(f.trace.timestamp, earliest, latest);
    }

    /// Base of the segment from which on nothing may be cleaned because of an open transaction.
    std::optional<Offset> held_from() const {
        std::optional<Offset> first;
        for (const auto& [producer, open] : open_) first = first ? std::min(*first, open.first) : open.first;
        if (!first) return std::nullopt;
        const auto above = std::ranges::upper_bound(segments_, *first, {}, &LiveSegment::base);
        return above == segments_.begin() ? *first : (above - 1)->base;
    }

    void judge(Found& f) const {
        auto& t = f.trace;
        const auto delay = facts_.config.file_delete_delay_ms;
        switch (t.place) {
            case Place::live: judge_live(f); break;
            case Place::deleted:
                t.rule = "unlinked file.delete.delay.ms after it was renamed";
                t.due = after(*t.due, delay);
                t.gone = t.due;
                break;
            case Place::unlinked:
                t.rule = "a reader that holds it is cut off after file.delete.delay.ms";
                t.due = after(*t.due, delay);
                t.gone = t.due;
                break;
            case Place::leftover:
                t.rule = "removed when the daemon starts, or when the same segment is cleaned again";
                t.due.reset();
                break;
            case Place::damaged:
                t.rule = "kept until `tidemark repair`";
                t.due.reset();
                break;
        }
        if (!t.held_by.empty() || t.stays || !t.due) return;
        t.past_deadline = !t.is_tombstone && facts_.now > after(*t.due, facts_.grace_ms);
    }

    void judge_live(Found& f) const {
        auto& t = f.trace;
        const auto& config = facts_.config;
        if (f.fate == Fate::open) {
            t.stays = true;
            t.rule = "stays, its transaction is open";
            return;
        }
        if (!config.compacts) return judge_by_retention(f);
        const auto* const by = superseding(f);
        if (f.fate == Fate::visible && by == nullptr) return judge_latest(f);
        t.rule = f.fate == Fate::aborted ? "compaction: its transaction was aborted" : "compaction: superseded at offset " + std::to_string(by->trace.offset.value);
        const auto reason_offset = by != nullptr ? std::max(by->trace.offset, t.offset) : t.offset;
        if (held_from_ && reason_offset >= *held_from_) {
            t.held_by = "an open transaction";
            return;
        }
        if (config.max_compaction_lag_ms == storage::unlimited) {
            t.rule += ", when the dirty ratio asks for it";
            return;
        }
        t.due = after(appended(by != nullptr ? *by : f), config.max_compaction_lag_ms);
        t.gone = after(*t.due, config.file_delete_delay_ms);
    }

    void judge_latest(Found& f) const {
        auto& t = f.trace;
        if (t.is_tombstone) {
            t.rule = f.horizon ? "compaction: its delete horizon" : "compaction: delete.retention.ms after the first pass";
            t.due = f.horizon;
            if (t.due) t.gone = after(*t.due, facts_.config.file_delete_delay_ms);
            return;
        }
        if (facts_.config.deletes && facts_.config.retention_ms) return judge_by_retention(f);
        t.stays = true;
        t.rule = "stays, it is the latest of its key";
    }

    void judge_by_retention(Found& f) const {
        auto& t = f.trace;
        if (!facts_.config.deletes || !facts_.config.retention_ms) {
            t.stays = true;
            t.rule = "stays, no rule removes it";
            return;
        }
        const auto& segment = segments_[f.segment];
        t.rule = "retention.ms, with its segment";
        t.due = after(segment.largest >= Timestamp{0} ? segment.largest : segment.modified, *facts_.config.retention_ms);
        t.gone = after(*t.due, facts_.config.file_delete_delay_ms);
    }

    struct Open {
        Offset first{};
        std::vector<std::size_t> found;
    };

    const AuditFacts& facts_;
    std::unordered_map<std::string_view, std::size_t> keys_;
    record::RecordReader reader_;
    std::vector<Found> found_;
    std::vector<LiveSegment> segments_;
    std::unordered_map<ProducerId, Open> open_;
    std::map<std::size_t, std::vector<const Found*>> visible_;   // by key, by offset
    std::optional<Offset> held_from_;
};

}  // namespace

const char* to_string(AuditTrace::Place place) noexcept {
    switch (place) {
        case Place::live: return "live";
        case Place::deleted: return "deleted, not unlinked";
        case Place::leftover: return "left over";
        case Place::damaged: return "damaged, cut off";
        case Place::unlinked: return "unlinked, still open";
    }
    return "";
}

Result<std::vector<AuditTrace>> audit_partition(io::FileSystem& files, const io::Path& directory, std::span<const std::vector<std::byte>> keys, const AuditFacts& facts) {
    Audit audit(keys, facts);
    TM_TRYV(audit.walk_directory(files, directory));
    return std::move(audit).judged();
}

Result<std::vector<AuditTrace>> audit_unlinked(const io::File& file, const io::Path& name, std::span<const std::vector<std::byte>> keys, Timestamp unlinked_at, const AuditFacts& facts) {
    Audit audit(keys, facts);
    TM_TRYV(audit.walk(file, name, Place::unlinked, unlinked_at));
    return std::move(audit).judged();
}

}  // namespace tidemark::cleaner
