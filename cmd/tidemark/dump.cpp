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

constexpr std::size_t shown_bytes_max = 200;

void print(const std::string& line) { std::fwrite((line + "\n").data(), 1, line.size() + 1, stdout); }

/// Bytes as text; what a terminal would not show as itself is escaped.
std::string shown(const std::optional<Bytes>& bytes) {
    if (!bytes) return "null";
    std::string text = "\"";
    for (const auto byte : bytes->subspan(0, std::min(bytes->size(), shown_bytes_max))) {
        const auto c = static_cast<unsigned char>(byte);
        if (c == '"' || c == '\\') text += fmt::format("\\{}", static_cast<char>(c));
        else if (c >= 0x20 && c < 0x7f) text += static_cast<char>(c);
        else text += fmt::format("\\x{:02x}", c);
    }
    return text + (bytes->size() > shown_bytes_max ? fmt::format("\"… ({} bytes)", bytes->size()) : "\"");
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

class Dumper {
public:
    explicit Dumper(const DumpOptions& options) : options_(options) {}

    void show(const io::Path& path) {
        const auto status = files_.status(path);
        if (!status) return wrong(path, status.error().message());
        if (!*status) return wrong(path, "there is no such file");
        if ((*status)->is_directory) return show_directory(path);
        print(path + (" (" + std::to_string((*status)->bytes) + " bytes)"));
        show_file(path, (*status)->bytes);
    }

    int exit_status() const { return wrong_ ? 1 : 0; }

private:
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
        if (bytes < 1 << 20) print(std::string(as_text(*content)));  // checkpoints, meta.properties: text
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

    void show_batch(const io::Path& path, FilePosition at, const record::BatchView& batch, bool metadata) {
        std::string line = fmt::format("  batch {}..{} at {} bytes {} magic {} codec {}", batch.base_offset().value, batch.last_offset().value, at.value, batch.size(), batch.magic(), word(batch.codec()));
        if (const auto count = batch.record_count()) line += fmt::format(" records {}", *count);
        line += fmt::format(" max timestamp {}", batch.max_timestamp().value);
        if (batch.timestamp_type() == record::TimestampType::log_append_time) line += " (log append time)";
        if (!batch.is_legacy()) line += fmt::format(" leader epoch {}", batch.leader_epoch());
        if (batch.has_producer_id()) line += fmt::format(" producer {} epoch {} sequence {}..{}", batch.producer_id(), batch.producer_epoch(), batch.base_sequence(), batch.last_sequence());
        if (batch.is_transactional()) line += " transactional";
        if (batch.is_control()) line += " control";
        if (const auto horizon = batch.delete_horizon()) line += fmt::format(" delete horizon {}", horizon->value);
        print(line);
        if (!batch.crc_matches()) return wrong(path, fmt::format("at {}: the checksum does not match", at.value));
        if (options_.records || options_.values || metadata) show_records(path, at, batch, metadata);
    }

    void show_records(const io::Path& path, FilePosition at, const record::BatchView& batch, bool metadata) {
        if (const auto opened = reader_.open(batch); !opened) return wrong(path, fmt::format("at {}: {}", at.value, opened.error().message()));
        for (;;) {
            const auto next = reader_.next();
            if (!next) return wrong(path, fmt::format("at {}: {}", at.value, next.error().message()));
            if (!*next) return;
            const auto& record = **next;
            std::string line = fmt::format("    {} timestamp {}", record.offset.value, record.timestamp.value);
            if (batch.is_control()) {
                const auto type = record::control_type(record);
                line += type ? fmt::format(" {}", word(*type)) : " " + type.error().message();
            } else if (metadata && record.value) {
                const auto decoded = protocol::read_metadata_record(*record.value);
                line += decoded ? fmt::format(" {}", protocol::name_of(*decoded)) : " " + decoded.error().message();
            } else {
                line += fmt::format(" key {} value {} headers {}", record.key ? static_cast<std::int64_t>(record.key->size()) : -1, record.value ? static_cast<std::int64_t>(record.value->size()) : -1, record.header_count);
            }
            if (options_.values) line += fmt::format(" {}: {}", shown(record.key), shown(record.value));
            print(line);
        }
    }

    void show_offset_index(const io::Path& path, Offset base, const std::vector<std::byte>& content) {
        if (content.size() % 8 != 0) wrong(path, "its length is no multiple of 8");
        for (std::size_t at = 0; at + 8 <= content.size(); at += 8) {
            const auto relative = load_be<std::int32_t>(content.data() + at), position = load_be<std::int32_t>(content.data() + at + 4);
            if (at > 0 && relative == 0 && position == 0) return print(fmt::format("  … {} unused entries", (content.size() - at) / 8));
            print(fmt::format("  offset {} position {}", base.value + relative, position));
        }
    }

    void show_time_index(const io::Path& path, Offset base, const std::vector<std::byte>& content) {
        if (content.size() % 12 != 0) wrong(path, "its length is no multiple of 12");
        for (std::size_t at = 0; at + 12 <= content.size(); at += 12) {
            const auto timestamp = load_be<std::int64_t>(content.data() + at);
            const auto relative = load_be<std::int32_t>(content.data() + at + 8);
            if (timestamp == 0 && relative == 0) return print(fmt::format("  … {} unused entries", (content.size() - at) / 12));
            print(fmt::format("  timestamp {} offset {}", timestamp, base.value + relative));
        }
    }

    void show_transactions(const io::Path& path, const std::vector<std::byte>& content) {
        const auto transactions = storage::decode_transaction_index(content);
        if (!transactions) return wrong(path, transactions.error().message());
        for (const auto& t : *transactions)
            print(fmt::format("  producer {} aborted {}..{} last stable offset {}", t.producer_id, t.first_offset.value, t.last_offset.value, t.last_stable_offset.value));
    }

    void show_snapshot(const io::Path& path, const std::vector<std::byte>& content) {
        const auto producers = storage::decode_snapshot(content);
        if (!producers) return wrong(path, producers.error().message());
        for (const auto& producer : *producers) {
            std::string line = fmt::format("  producer {} epoch {} last sequence {} last timestamp {} coordinator epoch {}", producer.id, producer.epoch, producer.last_sequence(), producer.last_timestamp.value, producer.coordinator_epoch);
            if (producer.transaction_first_offset) line += fmt::format(" open transaction from {}", producer.transaction_first_offset->value);
            print(line);
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
    bool wrong_ = false;
};

}  // namespace

int dump(const DumpOptions& options) {
    Dumper dumper{options};
    for (const auto& path : options.paths) dumper.show(path);
    return dumper.exit_status();
}

}  // namespace tidemark::tool
