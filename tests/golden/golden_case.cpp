#include "tests/golden/golden_case.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "base/crc32c.h"
#include "storage/directory_names.h"
#include "storage/producer_snapshots.h"
#include "storage/segment.h"
#include "tests/golden/batches.h"

namespace tidemark::golden {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path.string());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return to_vector(as_bytes(text));
}

json::object read_json(const fs::path& path) {
    const auto bytes = read_file(path);
    return json::parse(json::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())).as_object();
}

/// An empty directory is left out by a checkout.
std::vector<fs::directory_entry> entries_of(const fs::path& directory) {
    if (!fs::exists(directory)) return {};
    return {fs::directory_iterator(directory), fs::directory_iterator()};
}

/// Kafka rolls an empty segment by deleting it and making it again under the same name; here it stays as it is. What is left
/// until file.delete.delay.ms is over is nothing to compare.
void leave_out_empty_rolls(std::map<std::string, std::vector<std::byte>>& files) {
    using storage::FileKind;
    using storage::FileSuffix;
    std::set<Offset> rolled;
    for (const auto& [name, bytes] : files) {
        const auto file = storage::parse_file_name(name);
        if (file.kind == FileKind::log && file.suffix == FileSuffix::deleted && bytes.empty() &&
            files.contains(storage::segment_file_name(file.offset, FileKind::log))) rolled.insert(file.offset);
    }
    std::erase_if(files, [&](const auto& entry) {
        const auto file = storage::parse_file_name(entry.first);
        return file.kind != FileKind::other && file.suffix == FileSuffix::deleted && rolled.contains(file.offset);
    });
}

/// Two snapshots with the same producers, in whatever order (Kafka's is that of a hash map).
bool same_snapshot(Bytes a, Bytes b) {
    constexpr std::size_t header_bytes = 10, entry_bytes = 46;
    if (!storage::decode_snapshot(a) || !storage::decode_snapshot(b) || a.size() != b.size()) return equal(a, b);
    const auto entries = [&](Bytes snapshot) {
        std::vector<std::string> out;
        for (auto at = header_bytes; at < snapshot.size(); at += entry_bytes) out.emplace_back(as_text(snapshot.subspan(at, entry_bytes)));
        std::ranges::sort(out);
        return out;
    };
    return entries(a) == entries(b);
}

bool is_half_written(const std::string& name) { return name.ends_with(".cleaned"); }

/// A file as the expectations of differences/ name it.
std::string checksum(Bytes content) { return fmt::format("{:08x}", crc32c(content)); }

/// Where two files begin to differ.
std::string where(Bytes ours, Bytes kafkas) {
    const auto [a, b] = std::ranges::mismatch(ours, kafkas);
    return fmt::format("{} bytes ({}), Kafka {}; they differ at {}", ours.size(), checksum(ours), kafkas.size(), a - ours.begin());
}

/// As RFC 7396; an object changes single elements of a list, which its keys name from 0 on.
void merge(json::value& target, const json::value& patch) {
    if (patch.is_object() && target.is_array()) {
        for (const auto& [index, value] : patch.as_object()) merge(target.as_array().at(std::stoul(std::string{index})), value);
    } else if (patch.is_object()) {
        if (!target.is_object()) target = json::object{};
        for (const auto& [key, value] : patch.as_object()) {
            if (value.is_null()) target.as_object().erase(key);
            else merge(target.as_object()[key], value);
        }
    } else {
        target = patch;
    }
}

/// "-1" of a setting that counts down to no limit.
std::optional<std::int64_t> unlimited_if_negative(const std::string& text) {
    const auto value = std::stoll(text);
    return value < 0 ? std::nullopt : std::optional<std::int64_t>{value};
}

std::optional<record::Codec> codec_setting(const std::string& text) {
    if (text == "producer") return std::nullopt;
    return codec_of(text == "uncompressed" ? "none" : text);
}

}  // namespace

std::int64_t number(const json::value& value) { return value.is_double() ? static_cast<std::int64_t>(value.as_double()) : value.to_number<std::int64_t>(); }

std::optional<std::int64_t> number_or_null(const json::object& object, const char* key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return number(*value);
}

Case::Case(std::string path, const Switches& switches, const std::string& expectation) : path_(std::move(path)), switches_(switches) {
    while (path_.ends_with('/')) path_.pop_back();
    expect_ = read_json(fs::path(path_) / "expect.json");
    if (fs::exists(fs::path(path_) / "script.json")) script_ = read_json(fs::path(path_) / "script.json");
    if (fs::exists(fs::path(path_) / "mtimes.json")) mtimes_ = read_json(fs::path(path_) / "mtimes.json");
    if (expectation.empty()) return;
    own_ = read_json(expectation);
    if (const auto* config = own_.if_contains("config")) {
        const auto asks_for = [&](const char* key) { return config->as_object().contains(key); };
        switches_.retention.future_timestamps_use_file_time = asks_for("log.retention.future.timestamps");
        switches_.retention.min_timestamp_uses_file_time = asks_for("log.retention.mintimestamp.fallback");
    }
    for (const auto& [step, own] : own_.at("steps").as_object()) {
        const auto* outcome = own.as_object().if_contains("outcome");
        if (outcome == nullptr) continue;
        merge(step == "build" ? expect_.at("build") : expect_.at("actions").as_array().at(std::stoul(std::string{step}) - 1).at("outcome"), *outcome);
    }
}

std::string Case::name() const { return fs::path(path_).filename().string(); }

TopicPartition Case::partition() const { return must(storage::parse_directory_name(std::string_view{expect_.at("partition").as_string()})).partition; }

const json::object* Case::own_files(const std::string& step) const {
    if (own_.empty()) return nullptr;
    const auto* own = own_.at("steps").as_object().if_contains(step);
    const auto* files = own == nullptr ? nullptr : own->as_object().if_contains("files");
    return files == nullptr ? nullptr : &files->as_object();
}

std::string Case::directory_before(std::size_t action) const {
    for (auto i = action; i-- > 0;) {
        if (const auto* directory = actions().at(i).as_object().if_contains("dir")) return std::string{directory->as_string()};
    }
    return "before";
}

std::map<std::string, std::string> Case::settings(const json::object& args) const {
    std::map<std::string, std::string> out;
    const auto take = [&](const json::value* config) {
        if (config == nullptr) return;
        for (const auto& [key, value] : config->as_object()) out[std::string{key}] = std::string{value.as_string()};
    };
    take(expect_.if_contains("config"));
    take(args.if_contains("config"));
    take(own_.if_contains("config"));
    return out;
}

std::map<std::string, std::int64_t> Case::modified(const std::string& directory) const {
    std::map<std::string, std::int64_t> out;
    if (const auto* times = mtimes_.if_contains(directory)) {
        for (const auto& [name, time] : times->as_object()) out[std::string{name}] = number(time);
    }
    return out;
}

std::int64_t number_setting(const std::map<std::string, std::string>& settings, const char* key, std::int64_t otherwise) {
    const auto found = settings.find(key);
    return found == settings.end() ? otherwise : std::stoll(found->second);
}

storage::LogConfig log_config(const std::map<std::string, std::string>& settings) {
    storage::LogConfig config;
    for (const auto& [key, value] : settings) {
        if (key == "cleanup.policy") {
            config.compacts = value.find("compact") != std::string::npos;
            config.deletes = value.find("delete") != std::string::npos;
        } else if (key == "segment.bytes") config.segment_bytes = std::stoll(value);
        else if (key == "segment.ms") config.segment_ms = std::stoll(value);
        else if (key == "segment.index.bytes") config.segment_index_bytes = std::stoll(value);
        else if (key == "index.interval.bytes") config.index_interval_bytes = std::stoll(value);
        else if (key == "delete.retention.ms") config.delete_retention_ms = std::stoll(value);
        else if (key == "min.cleanable.dirty.ratio") config.min_cleanable_dirty_ratio = std::stod(value);
        else if (key == "min.compaction.lag.ms") config.min_compaction_lag_ms = std::stoll(value);
        else if (key == "max.compaction.lag.ms") config.max_compaction_lag_ms = std::stoll(value);
        else if (key == "max.message.bytes") config.max_message_bytes = std::stoll(value);
        else if (key == "message.timestamp.type") config.timestamp_type = value == "LogAppendTime" ? record::TimestampType::log_append_time : record::TimestampType::create_time;
        else if (key == "message.timestamp.after.max.ms") config.timestamp_after_max_ms = std::stoll(value);
        else if (key == "message.timestamp.before.max.ms") config.timestamp_before_max_ms = std::stoll(value);
        else if (key == "retention.ms") config.retention_ms = unlimited_if_negative(value);
        else if (key == "retention.bytes") config.retention_bytes = unlimited_if_negative(value);
        else if (key == "log.retention.mintimestamp") config.retention_min_timestamp = Timestamp{std::stoll(value)};
        else if (key == "file.delete.delay.ms") config.file_delete_delay_ms = std::stoll(value);
        else if (key == "compression.type") config.compression.codec = codec_setting(value);
        else if (!key.starts_with("log.cleaner.") && !key.starts_with("log.retention.") && key != "producer.id.expiration.ms" && key != "message.max.bytes" && key != "transaction.max.timeout.ms") {
            throw std::runtime_error("unknown setting " + key);
        }
    }
    return config;
}

OpenCase::OpenCase(const Case& golden, std::map<std::string, std::string> with, Timestamp now)
    : clock(now), files({.clock = &clock}), settings(std::move(with)), partition_(golden.partition()), switches_(golden.switches()) {
    must(io::create_directories(files, "/logs"));
}

OpenCase::OpenCase(const Case& golden, const std::string& name, std::map<std::string, std::string> with, Timestamp now, std::optional<Offset> high_watermark)
    : OpenCase(golden, std::move(with), now) {
    copy(golden, name);
    must(open({.high_watermark = high_watermark}));
}

void OpenCase::copy(const Case& golden, const std::string& name) {
    const auto stored = fs::path(golden.path()) / name;
    const auto put = [&](const fs::path& from, const io::Path& to) {
        const auto file = must(files.open(to, io::OpenMode::create));
        must(file->write(FilePosition{0}, read_file(from)));
    };
    must(io::create_directories(files, path()));
    const auto times = golden.modified(name);
    for (const auto& entry : entries_of(stored / partition_.text())) {
        const auto file = entry.path().filename().string();
        put(entry.path(), io::join(path(), file));
        if (const auto time = times.find(file); time != times.end()) must(files.set_modified(io::join(path(), file), Timestamp{time->second}));
    }
    for (const auto& entry : entries_of(stored)) {
        if (entry.is_regular_file()) put(entry.path(), io::join("/logs", entry.path().filename().string()));
    }
}

std::optional<Offset> OpenCase::checkpoint(std::string_view file) const {
    const auto all = must(storage::read_offset_checkpoint(const_cast<io::MemoryFileSystem&>(files), io::join("/logs", file)));
    const auto found = all.find(partition_);
    return found == all.end() ? std::nullopt : std::optional{found->second};
}

Result<> OpenCase::open(const How& how, std::optional<Uuid> new_topic) {
    log.reset();
    storage::StorageOptions options;
    options.log_dirs = {"/logs"};
    options.differences = switches_.storage;
    options.producer_expiration_ms = number_setting(settings, "producer.id.expiration.ms", options.producer_expiration_ms);
    options.transaction_max_timeout_ms = number_setting(settings, "transaction.max.timeout.ms", options.transaction_max_timeout_ms);
    directory = std::make_unique<storage::LogDirectory>(files, clock, "/logs", options);
    const storage::OpenLogOptions open{.partition = partition_,
                                       .directory = path(),
                                       .config = std::make_shared<const storage::LogConfig>(log_config(settings)),
                                       .recovery_point = checkpoint(storage::file_name::recovery_point_checkpoint).value_or(Offset{0}),
                                       .log_start = checkpoint(storage::file_name::log_start_checkpoint).value_or(Offset{0}),
                                       .high_watermark = how.high_watermark ? how.high_watermark : checkpoint(storage::file_name::high_watermark_checkpoint),
                                       .clean = how.clean,
                                       .load_producers_now = how.producers_now};
    const bool is_new = !must(files.status(path()));
    auto opened = is_new ? storage::create_log(*directory, open, new_topic) : storage::open_log(*directory, open);
    if (!opened) return std::move(opened).error();
    log = *std::move(opened);
    return {};
}

void OpenCase::write_checkpoint(std::string_view file, std::optional<Offset> offset) {
    const auto at = io::join("/logs", file);
    auto all = must(storage::read_offset_checkpoint(files, at));
    all.erase(partition_);
    if (offset) all[partition_] = *offset;
    must(storage::write_offset_checkpoint(files, at, all));
}

void OpenCase::write_checkpoints() {
    const auto start = log->log_start_offset();
    write_checkpoint(storage::file_name::recovery_point_checkpoint, log->recovery_point());
    write_checkpoint(storage::file_name::log_start_checkpoint, start > log->segments()->front()->base_offset() ? std::optional{start} : std::nullopt);
    write_checkpoint(storage::file_name::high_watermark_checkpoint, log->high_watermark());
}

Result<> OpenCase::close() {
    const auto now = clock.now();
    clock.advance(std::chrono::milliseconds{log->config()->file_delete_delay_ms + 1});
    directory->run_background();
    clock.jump_to(now);
    TM_TRYV(log->close());
    write_checkpoints();
    return {};
}

void OpenCase::crash() {
    write_checkpoints();
    log.reset();
}

void OpenCase::compare(const Case& golden, const std::string& name, const std::string& step, Differences& differences) const {
    std::map<std::string, std::vector<std::byte>> here, there;
    for (const auto& entry : must(files.list(path()))) {
        if (!is_half_written(entry.name)) here[entry.name] = must(io::read_whole(const_cast<io::MemoryFileSystem&>(files), io::join(path(), entry.name)));
    }
    for (const auto& entry : entries_of(fs::path(golden.path()) / name / partition_.text())) {
        const auto file = entry.path().filename().string();
        if (!is_half_written(file)) there[file] = read_file(entry.path());
    }
    leave_out_empty_rolls(there);
    if (const auto* own = golden.own_files(step)) {
        for (const auto& [file, expected] : *own) {
            const auto found = here.find(file);
            if (expected.is_null()) {
                if (found != here.end()) differences.add(std::string{file} + ": should not be there");
            } else if (found == here.end()) {
                differences.add(std::string{file} + ": missing");
            } else {
                differences.expect_equal(std::string{file}.c_str(), fmt::format("{} bytes, {}", found->second.size(), checksum(found->second)),
                                         fmt::format("{} bytes, {}", number(expected.at("bytes")), std::string_view{expected.at("crc32c").as_string()}));
            }
            here.erase(file);
            there.erase(file);
        }
    }
    for (const auto& [file, bytes] : there) {
        const auto found = here.find(file);
        if (found == here.end()) differences.add(file + ": missing, Kafka has it");
        else if (!equal(found->second, bytes) && !(file.ends_with(".snapshot") && same_snapshot(found->second, bytes))) differences.add(file + ": " + where(found->second, bytes));
    }
    for (const auto& [file, bytes] : here) {
        if (!there.contains(file)) differences.add(fmt::format("{}: {} bytes ({}), Kafka does not have it", file, bytes.size(), checksum(bytes)));
    }
    for (const auto& [file, time] : golden.modified(name)) {
        if (!here.contains(file)) continue;
        const auto status = must(files.status(io::join(path(), file)));
        if (status->modified.value != time) differences.add(fmt::format("{}: modified {}, Kafka {}", file, status->modified.value, time));
    }
}

void OpenCase::write_to(const std::string& directory_path) const {
    const auto write = [&](const io::Path& from, const fs::path& to) {
        const auto content = must(io::read_whole(const_cast<io::MemoryFileSystem&>(files), from));
        std::ofstream(to, std::ios::binary).write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
        const auto status = must(files.status(from));
        fs::last_write_time(to, std::chrono::file_clock::from_sys(std::chrono::sys_time<std::chrono::milliseconds>{std::chrono::milliseconds{status->modified.value}}));
    };
    const auto to = fs::path(directory_path);
    fs::create_directories(to / partition_.text());
    for (const auto& entry : must(files.list("/logs"))) {
        if (!entry.is_directory) write(io::join("/logs", entry.name), to / entry.name);
    }
    for (const auto& entry : must(files.list(path()))) write(io::join(path(), entry.name), to / partition_.text() / entry.name);
}

void compare_offsets(const storage::Log& log, const json::object& stored, Differences& differences) {
    if (const auto loaded = log.load_producers(); !loaded) differences.fail("loading the producers", loaded.error());
    differences.expect_equal("log start offset", log.log_start_offset().value, number(stored.at("logStartOffset")));
    differences.expect_equal("high watermark", log.high_watermark().value, number(stored.at("highWatermark")));
    differences.expect_equal("last stable offset", log.last_stable_offset().value, number(stored.at("lastStableOffset")));
    differences.expect_equal("log end offset", log.log_end_offset().value, number(stored.at("logEndOffset")));
    differences.expect_equal("recovery point", log.stats().recovery_point.value, number(stored.at("recoveryPoint")));
    differences.expect_equal("active segment", log.segments()->back()->base_offset().value, number(stored.at("activeSegmentBaseOffset")));
}

void compare_producers(const storage::Log& log, const json::array& stored, Differences& differences) {
    auto ours = log.producers();
    std::ranges::sort(ours, {}, &storage::ProducerSummary::producer_id);
    if (ours.size() != stored.size()) {
        differences.expect_equal("producers", ours.size(), stored.size());
        return;
    }
    for (const auto& ours_one : ours) {
        const auto found = std::ranges::find_if(stored, [&](const json::value& p) { return number(p.at("producerId")) == ours_one.producer_id; });
        if (found == stored.end()) {
            differences.add(fmt::format("producer {}: Kafka does not have it", ours_one.producer_id));
            continue;
        }
        const auto& p = found->as_object();
        differences.expect_equal("producer epoch", ours_one.epoch, number(p.at("producerEpoch")));
        differences.expect_equal("coordinator epoch", ours_one.coordinator_epoch, number(p.at("coordinatorEpoch")));
        differences.expect_equal("last timestamp", ours_one.last_timestamp.value, number(p.at("lastTimestamp")));
        const auto& batches = p.at("batches").as_array();
        differences.expect_equal("last sequence", ours_one.last_sequence, batches.empty() ? -1 : number(batches.back().at("lastSeq")));
        const auto open = number_or_null(p, "currentTxnFirstOffset");
        differences.expect_equal("open transaction", ours_one.current_transaction_first_offset.value_or(Offset{-1}).value, open.value_or(-1));
    }
}

}  // namespace tidemark::golden
