#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cmd/tidemark/commands.h"
#include "io/posix_file_system.h"
#include "protocol/metadata_record.h"
#include "record/control.h"
#include "record/record.h"
#include "storage/batch_reader.h"
#include "storage/directory_names.h"
#include "storage/producer_snapshots.h"
#include "storage/producer_state.h"
#include "storage/transaction_index.h"

namespace tidemark::tool {
namespace {

using storage::FileKind;

namespace json = boost::json;

constexpr std::size_t shown_bytes_max = 200;

/// Bytes as text; what a terminal would not show as itself is escaped.
std::string shown(Bytes bytes) {
    std::string text;
    for (const auto byte : bytes.first(std::min(bytes.size(), shown_bytes_max))) {
        const auto c = static_cast<unsigned char>(byte);
        if (c == '\\') text += "\\\\";
        else if (c >= 0x20 && c < 0x7f) text += static_cast<char>(c);
        else text += fmt::format("\\x{:02x}", c);
    }
    return bytes.size() > shown_bytes_max ? text + fmt::format("… ({} bytes)", bytes.size()) : text;
}

bool is_plain_text(Bytes bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b >= std::byte{0x20} && b < std::byte{0x7f}; });
}

std::string hexadecimal(Bytes bytes) {
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return text;
}

const char* word(record::Codec codec) {
    switch (codec) {
        case record::Codec::none: return "none";
        case record::Codec::gzip: return "gzip";
        case record::Codec::snappy: return "snappy";
        case record::Codec::lz4: return "lz4";
        case record::Codec::zstd: return "zstd";
    }
    return "unknown";
}

const char* word(record::ControlType type) {
    switch (type) {
        case record::ControlType::abort: return "abort";
        case record::ControlType::commit: return "commit";
        case record::ControlType::leader_change: return "leader change";
        case record::ControlType::snapshot_header: return "snapshot header";
        case record::ControlType::snapshot_footer: return "snapshot footer";
        case record::ControlType::kraft_version: return "kraft version";
        case record::ControlType::kraft_voters: return "kraft voters";
        case record::ControlType::unknown: break;
    }
    return "unknown";
}

/// Each line is a list of names and values, the names those of Kafka's kafka-dump-log; with --json it is an object.
class Dumper {
public:
    explicit Dumper(const DumpOptions& options) : options_(options) {}

    void show(const io::Path& path) {
        const auto status = files_.status(path);
        if (!status) return wrong(path, status.error().message());
        if (!*status) return wrong(path, "there is no such file");
        if ((*status)->is_directory) return show_directory(path);
        path_ = path;
        if (!options_.json) print("Dumping " + path + " (" + std::to_string((*status)->bytes) + " bytes)");
        show_file(path, (*status)->bytes);
    }

    int exit_status() const { return wrong_ ? 1 : 0; }

private:
    static void print(const std::string& line) { std::fwrite((line + "\n").data(), 1, line.size() + 1, stdout); }

    static std::string text_of(const json::value& value) { return value.is_string() ? std::string{value.as_string()} : json::serialize(value); }

    void line(std::string_view kind, const json::object& fields) const {
        if (options_.json) {
            json::object all{{"file", path_}, {"kind", kind}};
            all.insert(fields.begin(), fields.end());
            return print(json::serialize(all));
        }
        std::string text = kind == "record" ? "|" : "";
        for (const auto& [name, value] : fields) text += (text.empty() ? "" : " ") + std::string{name} + ": " + text_of(value);
        print(text);
    }

    void show_directory(const io::Path& path) {
        const auto entries = files_.list(path);
        if (!entries) return wrong(path, entries.error().message());
        for (const auto& entry : *entries) show(io::join(path, entry.name));
    }

    void show_file(const io::Path& path, std::int64_t bytes) {
        const auto name = io::name_of(path);
        const bool metadata = io::name_of(io::parent_of(path)) == std::string(storage::cluster_metadata_topic) + "-0";
        const auto parsed = storage::parse_file_name(name);
        if (parsed.kind == FileKind::log || name.find(".checkpoint") != std::string_view::npos) return show_log(path, metadata);
        const auto content = io::read_whole(files_, path);
        if (!content) return wrong(path, content.error().message());
        switch (parsed.kind) {
            case FileKind::offset_index: return show_offset_index(path, parsed.offset, *content);
            case FileKind::time_index: return show_time_index(path, parsed.offset, *content);
            case FileKind::transaction_index: return show_transactions(path, *content);
            case FileKind::snapshot: return show_snapshot(path, *content);
            default: break;
        }
        if (bytes < 1 << 20) show_text(as_text(*content));  // checkpoints, meta.properties
    }

    void show_text(std::string_view text) const {
        if (!options_.json) return print(std::string(text));
        json::array lines;
        for (std::size_t at = 0; at < text.size();) {
            const auto end = std::min(text.find('\n', at), text.size());
            const auto one = text.substr(at, end - at);
            lines.emplace_back(is_plain_text(as_bytes(one)) ? std::string(one) : hexadecimal(as_bytes(one)));
            at = end + 1;
        }
        line("text", {{"lines", lines}});
    }

    void show_log(const io::Path& path, bool metadata) {
        const auto file = files_.open(path, io::OpenMode::read);
        if (!file) return wrong(path, file.error().message());
        const auto bytes = (*file)->size();
        if (!bytes) return wrong(path, bytes.error().message());
        storage::BatchWalk walk{**file, FilePosition{0}, *bytes};
        for (;;) {
            const auto batch = walk.next();
            if (!batch) return wrong(path, batch.error().message());
            if (!*batch) break;
            show_batch(path, walk.position(), **batch, metadata);
        }
        if (walk.next_position().value != *bytes) wrong(path, fmt::format("at {}: {} bytes are no whole batch", walk.next_position().value, *bytes - walk.next_position().value));
    }

    static const char* time_word(const record::BatchView& batch) {
        return batch.timestamp_type() == record::TimestampType::log_append_time ? "LogAppendTime" : "CreateTime";
    }

    void show_batch(const io::Path& path, FilePosition at, const record::BatchView& batch, bool metadata) {
        json::object fields{{"baseOffset", batch.base_offset().value}, {"lastOffset", batch.last_offset().value}};
        if (const auto count = batch.record_count()) fields["count"] = *count;
        if (!batch.is_legacy()) {
            fields["baseSequence"] = batch.base_sequence();
            fields["lastSequence"] = batch.has_producer_id() && batch.base_sequence() >= 0 ? batch.last_sequence() : -1;
            fields["producerId"] = batch.producer_id();
            fields["producerEpoch"] = batch.producer_epoch();
            fields["partitionLeaderEpoch"] = batch.leader_epoch();
            fields["isTransactional"] = batch.is_transactional();
            fields["isControl"] = batch.is_control();
            const auto horizon = batch.delete_horizon();
            fields["deleteHorizonMs"] = horizon ? json::value(horizon->value) : json::value(nullptr);
        }
        const bool valid = batch.crc_matches();
        fields["position"] = at.value;
        fields[time_word(batch)] = batch.max_timestamp().value;
        fields["size"] = batch.size();
        fields["magic"] = batch.magic();
        fields["compresscodec"] = word(batch.codec());
        fields["crc"] = batch.crc();
        fields["isvalid"] = valid;
        line("batch", fields);
        if (!valid) return wrong(path, fmt::format("at {}: the checksum does not match", at.value));
        if (options_.records || options_.values || metadata) show_records(path, at, batch, metadata);
    }

    void add_bytes(json::object& fields, const std::string& name, const std::optional<Bytes>& bytes) const {
        if (!bytes) return;
        if (!options_.json) fields[name] = shown(*bytes);
        else if (is_plain_text(*bytes)) fields[name] = as_text(*bytes);
        else fields[name + "Hex"] = hexadecimal(*bytes);
    }

    void show_records(const io::Path& path, FilePosition at, const record::BatchView& batch, bool metadata) {
        if (const auto opened = reader_.open(batch); !opened) return wrong(path, fmt::format("at {}: {}", at.value, opened.error().message()));
        for (;;) {
            const auto next = reader_.next();
            if (!next) return wrong(path, fmt::format("at {}: {}", at.value, next.error().message()));
            if (!*next) return;
            const auto& record = **next;
            json::object fields{{"offset", record.offset.value},
                                {time_word(batch), record.timestamp.value},
                                {"keySize", record.key ? static_cast<std::int64_t>(record.key->size()) : -1},
                                {"valueSize", record.value ? static_cast<std::int64_t>(record.value->size()) : -1}};
            if (!batch.is_legacy()) {
                fields["sequence"] = record.sequence;
                json::array headers;
                for (record::HeaderCursor cursor{record}; const auto header = cursor.next();) headers.emplace_back(shown(as_bytes(header->key)));
                fields["headerKeys"] = headers;
            }
            if (batch.is_control()) add_control(fields, record);
            else if (metadata && record.value) {
                const auto decoded = protocol::read_metadata_record(*record.value);
                fields["record"] = decoded ? std::string(protocol::name_of(*decoded)) : decoded.error().message();
            }
            if (options_.values) {
                add_bytes(fields, "key", record.key);
                add_bytes(fields, "payload", record.value);
            }
            line("record", fields);
        }
    }

    static void add_control(json::object& fields, const record::RecordView& record) {
        const auto type = record::control_type(record);
        if (!type) {
            fields["control"] = type.error().message();
        } else if (*type == record::ControlType::abort || *type == record::ControlType::commit) {
            fields["endTxnMarker"] = *type == record::ControlType::commit ? "COMMIT" : "ABORT";
            if (const auto marker = record::transaction_marker(record)) fields["coordinatorEpoch"] = marker->coordinator_epoch;
        } else {
            fields["control"] = word(*type);
        }
    }

    void show_offset_index(const io::Path& path, Offset base, const std::vector<std::byte>& content) {
        if (content.size() % 8 != 0) wrong(path, "its length is no multiple of 8");
        for (std::size_t at = 0; at + 8 <= content.size(); at += 8) {
            const auto relative = load_be<std::int32_t>(content.data() + at), position = load_be<std::int32_t>(content.data() + at + 4);
            if (at > 0 && relative == 0 && position == 0) return line("unused", {{"unusedEntries", (content.size() - at) / 8}});
            line("offsetIndex", {{"offset", base.value + relative}, {"position", position}});
        }
    }

    void show_time_index(const io::Path& path, Offset base, const std::vector<std::byte>& content) {
        if (content.size() % 12 != 0) wrong(path, "its length is no multiple of 12");
        for (std::size_t at = 0; at + 12 <= content.size(); at += 12) {
            const auto timestamp = load_be<std::int64_t>(content.data() + at);
            const auto relative = load_be<std::int32_t>(content.data() + at + 8);
            if (timestamp == 0 && relative == 0) return line("unused", {{"unusedEntries", (content.size() - at) / 12}});
            line("timeIndex", {{"timestamp", timestamp}, {"offset", base.value + relative}});
        }
    }

    void show_transactions(const io::Path& path, const std::vector<std::byte>& content) {
        const auto transactions = storage::decode_transaction_index(content);
        if (!transactions) return wrong(path, transactions.error().message());
        for (const auto& t : *transactions) {
            line("abortedTransaction", {{"version", 0}, {"producerId", t.producer_id}, {"firstOffset", t.first_offset.value}, {"lastOffset", t.last_offset.value}, {"lastStableOffset", t.last_stable_offset.value}});
        }
    }

    void show_snapshot(const io::Path& path, const std::vector<std::byte>& content) {
        const auto producers = storage::decode_snapshot(content);
        if (!producers) return wrong(path, producers.error().message());
        for (const auto& p : *producers) {
            json::object fields{{"producerId", p.id}, {"producerEpoch", p.epoch}, {"coordinatorEpoch", p.coordinator_epoch}};
            fields["currentTxnFirstOffset"] = p.transaction_first_offset ? json::value(p.transaction_first_offset->value) : json::value(nullptr);
            fields["lastTimestamp"] = p.last_timestamp.value;
            if (!p.batches.empty()) {
                const auto& last = p.batches.back();
                fields["firstSequence"] = last.first_sequence();
                fields["lastSequence"] = last.last_sequence;
                fields["lastOffset"] = last.last_offset.value;
                fields["offsetDelta"] = last.offset_delta;
                fields["timestamp"] = last.timestamp.value;
            }
            line("producer", fields);
        }
    }

    void wrong(const io::Path& path, const std::string& what) {
        wrong_ = true;
        std::fflush(stdout);
        std::fprintf(stderr, "%s: %s\n", path.c_str(), what.c_str());
    }

    const DumpOptions& options_;
    io::PosixFileSystem files_;
    record::RecordReader reader_;
    io::Path path_;                      // of the file that is shown
    bool wrong_ = false;
};

}  // namespace

int dump(const DumpOptions& options) {
    Dumper dumper{options};
    for (const auto& path : options.paths) dumper.show(path);
    return dumper.exit_status();
}

}  // namespace tidemark::tool
