#include "cleaner/audit.h"

#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/clock.h"
#include "cmd/tidemark/client.h"
#include "cmd/tidemark/commands.h"
#include "cmd/tidemark/topic_settings.h"
#include "cmd/tidemark/utc.h"
#include "io/posix_file_system.h"
#include "storage/audit_trail.h"
#include "storage/checkpoint.h"
#include "storage/directory_names.h"

namespace tidemark::tool {
namespace {

namespace json = boost::json;
using cleaner::AuditTrace;

/// 2023-11-14T22:13:20.000Z
std::string shown(Timestamp t) {
    if (t.value < 0) return "none";
    const auto text = utc_text(t.value, "%FT%T");
    return text ? *text + "Z" : fmt::format("{} ms", t.value);
}

std::string name_of_key(const std::vector<std::byte>& key) {
    std::string text;
    for (const auto byte : key) {
        const auto c = static_cast<unsigned char>(byte);
        text += c >= 0x20 && c < 0x7f && c != '\\' ? std::string(1, static_cast<char>(c)) : fmt::format("\\x{:02x}", c);
    }
    return text;
}

class Auditor {
public:
    Auditor(const AuditOptions& options, TopicSettings settings, std::vector<std::vector<std::byte>> keys)
        : options_(options), settings_(std::move(settings)), keys_(std::move(keys)), now_(clock_.now()) {
        grace_ms_ = options.grace_ms ? *options.grace_ms : 2 * metadata::broker_integer(settings_.layers(), "log.cleaner.backoff.ms") + 5000;
    }

    Result<> audit(const io::Path& log_dir) {
        TM_TRY(const auto checkpoints, storage::read_offset_checkpoint(files_, io::join(log_dir, storage::file_name::cleaner_checkpoint)));
        TM_TRY(const auto entries, files_.list(log_dir));
        for (const auto& entry : entries) {
            const auto parsed = storage::parse_directory_name(entry.name);
            if (!entry.is_directory || !parsed || !is_wanted(parsed->partition)) continue;
            const auto checkpoint = checkpoints.find(parsed->partition);
            auto facts = facts_of(parsed->partition);
            facts.first_dirty = checkpoint == checkpoints.end() ? Offset{0} : checkpoint->second;
            facts.directory_deleted = parsed->kind == storage::DirectoryKind::deleted;
            ++partitions_;
            auto traces = cleaner::audit_partition(files_, io::join(log_dir, entry.name), keys_, facts);
            if (!traces && traces.error().code == Errc::not_found) continue;   // deleted meanwhile
            if (!traces) return std::move(traces).error();
            show(*traces);
        }
        return audit_open_files(log_dir);
    }

    int finish() const {
        if (!options_.json) std::printf("%zu partitions: %zu values that stay, %zu on their way out, %zu held, %zu PAST THEIR DEADLINE\n", partitions_, staying_, leaving_, held_, late_);
        return late_ > 0 ? 1 : 0;
    }

private:
    bool is_wanted(const TopicPartition& p) const {
        if (p.topic == storage::cluster_metadata_topic) return false;
        // The name of a deleted topic's directory may be cut.
        return options_.topic.empty() || p.topic == options_.topic;
    }

    cleaner::AuditFacts facts_of(const TopicPartition& p) const { return {.config = settings_.of(p.topic), .now = now_, .grace_ms = grace_ms_}; }

    /// What some process keeps open after its name is gone; without the right to look at others, one's own only.
    Result<> audit_open_files(const io::Path& log_dir) {
        const auto prefix = std::filesystem::weakly_canonical(log_dir).string() + "/";
        constexpr std::string_view suffix = " (deleted)";
        std::error_code ignored;
        std::map<io::Path, bool> seen;
        for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
            for (const auto& descriptor : std::filesystem::directory_iterator(process.path() / "fd", ignored)) {
                const auto target = std::filesystem::read_symlink(descriptor.path(), ignored).string();
                if (!target.starts_with(prefix) || !target.ends_with(suffix) || target.find(".log") == std::string::npos || std::exchange(seen[target], true)) continue;
                const auto name = target.substr(0, target.size() - suffix.size());
                const auto parsed = storage::parse_directory_name(io::name_of(io::parent_of(name)));
                if (!parsed || !is_wanted(parsed->partition)) continue;
                const auto file = files_.open(descriptor.path().string(), io::OpenMode::read);
                const auto status = files_.status(descriptor.path().string());
                if (!file || !status || !*status) continue;   // closed meanwhile
                TM_TRY(const auto traces, cleaner::audit_unlinked(**file, name + " (process " + process.path().filename().string() + ")", keys_, (*status)->changed, facts_of(parsed->partition)));
                show(traces);
            }
        }
        return {};
    }

    void show(const std::vector<AuditTrace>& traces) {
        for (const auto& trace : traces) {
            if (!trace.is_tombstone) ++(trace.past_deadline ? late_ : !trace.held_by.empty() ? held_ : trace.stays ? staying_ : leaving_);
            if (options_.json) std::puts(json::serialize(json_of(trace)).c_str());
            else std::puts(text_of(trace).c_str());
        }
    }

    std::string text_of(const AuditTrace& t) const {
        auto text = fmt::format("{}{} of {} in {} at {}: offset {}, timestamp {}, {}{}\n    {}", t.past_deadline ? "PAST ITS DEADLINE " : "", t.is_tombstone ? "tombstone" : "value", name_of_key(keys_[t.key]),
                                t.file, t.position.value, t.offset.value, shown(t.timestamp), cleaner::to_string(t.place),
                                t.place == AuditTrace::Place::live ? (t.is_clean ? ", clean part" : ", dirty part") : "", t.rule);
        if (!t.held_by.empty()) text += ", held by " + t.held_by;
        if (t.due) text += ", by " + shown(*t.due);
        if (t.gone && t.gone != t.due) text += ", out of every file by " + shown(*t.gone);
        return text;
    }

    json::object json_of(const AuditTrace& t) const {
        const auto time = [](std::optional<Timestamp> at) { return at ? json::value(at->value) : json::value(nullptr); };
        return {{"key", name_of_key(keys_[t.key])}, {"file", t.file}, {"place", cleaner::to_string(t.place)}, {"position", t.position.value}, {"offset", t.offset.value},
                {"timestamp", t.timestamp.value}, {"tombstone", t.is_tombstone}, {"clean", t.is_clean}, {"stays", t.stays}, {"rule", t.rule}, {"due", time(t.due)}, {"gone", time(t.gone)},
                {"held_by", t.held_by.empty() ? json::value(nullptr) : json::value(t.held_by)}, {"past_deadline", t.past_deadline}};
    }

    const AuditOptions& options_;
    const TopicSettings settings_;
    const std::vector<std::vector<std::byte>> keys_;
    SystemClock clock_;
    io::PosixFileSystem files_;
    const Timestamp now_;
    std::int64_t grace_ms_ = 0;
    std::size_t partitions_ = 0, staying_ = 0, leaving_ = 0, held_ = 0, late_ = 0;
};

/// Calls `see` with each line that is not empty.
template <class See>
void for_each_line(std::string_view text, const See& see) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        if (const auto line = text.substr(0, end); !line.empty()) see(line);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    }
}

std::vector<std::byte> bytes_of(std::string_view text) { return to_vector(as_bytes(text)); }

Result<std::vector<std::vector<std::byte>>> keys_of(io::FileSystem& files, const AuditOptions& options) {
    std::vector<std::vector<std::byte>> keys;
    for (const auto& key : options.keys) keys.push_back(bytes_of(key));
    if (!options.key_file.empty()) {
        TM_TRY(const auto content, io::read_whole(files, options.key_file));
        for_each_line(as_text(content), [&keys](std::string_view line) { keys.push_back(bytes_of(line)); });
    }
    if (keys.empty()) return Error{Errc::invalid_argument, "say which keys: --key or --key-file"};
    return keys;
}

// --- the trail ---------------------------------------------------------------------------------------------------------

std::int64_t number(const json::object& line, std::string_view name) {
    const auto* value = line.if_contains(name);
    return value != nullptr && value->is_number() ? value->to_number<std::int64_t>() : 0;
}
std::string text(const json::object& line, std::string_view name) {
    const auto* value = line.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

void print_event(const json::object& line) {
    const auto where = fmt::format("{} {}-{} {} to {}", shown(Timestamp{number(line, "time")}), text(line, "topic"), number(line, "partition"), number(line, "from"), number(line, "to"));
    if (text(line, "event") == "deleted") {
        std::puts(fmt::format("{} deleted, {} bytes: {} ({})", where, number(line, "bytes"), text(line, "rule"), text(line, "reason")).c_str());
        return;
    }
    const auto* deadline = line.if_contains("deadline");
    const bool late = deadline != nullptr && deadline->is_number() && number(line, "time") > deadline->to_number<std::int64_t>();
    std::puts(fmt::format("{} cleaned, {} to {} bytes: {}; {} superseded, {} tombstones, {} expired, {} erased, {} markers{}{}", where, number(line, "bytes_before"), number(line, "bytes_after"),
                          text(line, "reason"), number(line, "superseded"), number(line, "tombstones"), number(line, "expired"), number(line, "erased"), number(line, "markers"),
                          deadline != nullptr && deadline->is_number() ? "; deadline " + shown(Timestamp{deadline->to_number<std::int64_t>()}) : "", late ? ", LATE" : "").c_str());
}

Result<bool> print_trail(io::FileSystem& files, const io::Path& given, const AuditOptions& options) {
    TM_TRY(const auto status, files.status(given));
    const auto path = status && status->is_directory ? io::join(given, storage::file_name::audit_trail) : given;
    bool found = false;
    for (const auto& name : storage::audit_trail_files(files, path)) {
        found = true;
        TM_TRY(const auto content, io::read_whole(files, name));
        for_each_line(as_text(content), [&options](std::string_view line) {
            boost::system::error_code error;
            const auto value = json::parse({line.data(), line.size()}, error);
            if (error || !value.is_object() || (!options.topic.empty() && text(value.as_object(), "topic") != options.topic)) return;
            if (options.json) std::puts(std::string(line).c_str());
            else print_event(value.as_object());
        });
    }
    return found;
}

}  // namespace

int audit(const AuditOptions& options) {
    io::PosixFileSystem files;
    if (options.trail) {
        bool found = false;
        for (const auto& path : options.paths) {
            const auto printed = print_trail(files, path, options);
            if (!printed) return failed(printed.error());
            found |= *printed;
        }
        if (!found) std::fputs("there is no audit trail (audit.trail.file says where it is)\n", stderr);
        return found ? 0 : 1;
    }
    auto keys = keys_of(files, options);
    if (!keys) return failed(keys.error());
    auto settings = TopicSettings::read(files, options.paths, options.config_file);
    if (!settings) return failed(settings.error());
    Auditor auditor(options, *std::move(settings), *std::move(keys));
    for (const auto& path : options.paths) {
        if (const auto done = auditor.audit(path); !done) return failed(done.error());
    }
    return auditor.finish();
}

}  // namespace tidemark::tool
