#include "tests/golden/golden_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "storage/producer_snapshots.h"
#include "storage/segment.h"

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

/// The partition's directory within a stored log directory.
fs::path partition_directory(const fs::path& stored) {
    for (const auto& entry : fs::directory_iterator(stored)) {
        if (entry.is_directory()) return entry.path();
    }
    throw std::runtime_error("no partition in " + stored.string());
}

template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    if constexpr (!std::is_void_v<T>) return *std::move(result);
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

/// Where two files begin to differ.
std::string where(Bytes ours, Bytes kafkas) {
    const auto [a, b] = std::ranges::mismatch(ours, kafkas);
    return fmt::format("{} bytes, Kafka {}; they differ at {}", ours.size(), kafkas.size(), a - ours.begin());
}

}  // namespace

std::int64_t number(const json::value& value) { return value.is_double() ? static_cast<std::int64_t>(value.as_double()) : value.to_number<std::int64_t>(); }

std::optional<std::int64_t> number_or_null(const json::object& object, const char* key) {
    const auto* value = object.if_contains(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return number(*value);
}

Case::Case(std::string path) : path_(std::move(path)) {
    while (path_.ends_with('/')) path_.pop_back();
    expect_ = read_json(fs::path(path_) / "expect.json");
    if (fs::exists(fs::path(path_) / "mtimes.json")) mtimes_ = read_json(fs::path(path_) / "mtimes.json");
}

std::string Case::name() const { return fs::path(path_).filename().string(); }

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
    const auto unlimited_if_negative = [](const std::string& text) {
        const auto value = std::stoll(text);
        return value < 0 ? std::nullopt : std::optional<std::int64_t>{value};
    };
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
        else if (key == "file.delete.delay.ms") config.file_delete_delay_ms = std::stoll(value);
        else if (key == "compression.type") config.compression.codec = value == "producer" ? std::nullopt
                                                : std::optional{value == "gzip" ? record::Codec::gzip : value == "snappy" ? record::Codec::snappy
                                                                : value == "lz4" ? record::Codec::lz4 : value == "zstd" ? record::Codec::zstd : record::Codec::none};
        else if (!key.starts_with("log.cleaner.") && key != "producer.id.expiration.ms" && key != "message.max.bytes" && key != "transaction.max.timeout.ms") {
            throw std::runtime_error("unknown setting " + key);
        }
    }
    return config;
}

OpenCase::OpenCase(const Case& golden, const std::string& name, const std::map<std::string, std::string>& settings, Timestamp now, std::optional<Offset> high_watermark)
    : clock(now), files({.clock = &clock}) {
    const auto stored = fs::path(golden.path()) / name;
    const auto source = partition_directory(stored);
    const auto directory_name = source.filename().string();
    const auto dash = directory_name.rfind('-');
    partition_ = {directory_name.substr(0, dash), std::stoi(directory_name.substr(dash + 1))};
    const auto target = io::join("/logs", directory_name);
    must(io::create_directories(files, target));
    const auto copy = [&](const fs::path& from, const io::Path& to) {
        const auto file = must(files.open(to, io::OpenMode::create));
        must(file->write(FilePosition{0}, read_file(from)));
    };
    const auto times = golden.modified(name);
    for (const auto& entry : fs::directory_iterator(source)) {
        const auto file = entry.path().filename().string();
        copy(entry.path(), io::join(target, file));
        if (const auto time = times.find(file); time != times.end()) must(files.set_modified(io::join(target, file), Timestamp{time->second}));
    }
    for (const auto& entry : fs::directory_iterator(stored)) {
        if (entry.is_regular_file()) copy(entry.path(), io::join("/logs", entry.path().filename().string()));
    }
    const auto checkpoint = [&](const char* file) -> std::optional<Offset> {
        const auto all = must(storage::read_offset_checkpoint(files, io::join("/logs", file)));
        const auto found = all.find(partition_);
        return found == all.end() ? std::nullopt : std::optional{found->second};
    };
    cleaner_checkpoint = checkpoint("cleaner-offset-checkpoint");
    storage::StorageOptions options;
    options.log_dirs = {"/logs"};
    options.differences = storage::Differences::none();
    options.producer_expiration_ms = number_setting(settings, "producer.id.expiration.ms", options.producer_expiration_ms);
    options.transaction_max_timeout_ms = number_setting(settings, "transaction.max.timeout.ms", options.transaction_max_timeout_ms);
    directory = std::make_unique<storage::LogDirectory>(files, clock, "/logs", options);
    log = must(storage::open_log(*directory, {.partition = partition_, .directory = target, .config = std::make_shared<const storage::LogConfig>(log_config(settings)),
                                              .recovery_point = checkpoint("recovery-point-offset-checkpoint").value_or(Offset{0}),
                                              .log_start = checkpoint("log-start-offset-checkpoint").value_or(Offset{0}),
                                              .high_watermark = high_watermark ? high_watermark : checkpoint("replication-offset-checkpoint"), .clean = true}));
}

Result<> OpenCase::close() {
    clock.advance(std::chrono::milliseconds{log->config()->file_delete_delay_ms + 1});
    directory->run_background();
    return log->close();
}

void OpenCase::compare(const Case& golden, const std::string& name, Differences& differences) const {
    const auto stored = partition_directory(fs::path(golden.path()) / name);
    const auto ours = io::join("/logs", partition_.text());
    std::map<std::string, std::vector<std::byte>> here, there;
    for (const auto& entry : must(files.list(ours))) {
        if (!is_half_written(entry.name)) here[entry.name] = must(io::read_whole(const_cast<io::MemoryFileSystem&>(files), io::join(ours, entry.name)));
    }
    for (const auto& entry : fs::directory_iterator(stored)) {
        const auto file = entry.path().filename().string();
        if (!is_half_written(file)) there[file] = read_file(entry.path());
    }
    for (const auto& [file, bytes] : there) {
        const auto found = here.find(file);
        if (found == here.end()) differences.add(file + ": missing, Kafka has it");
        else if (!equal(found->second, bytes) && !(file.ends_with(".snapshot") && same_snapshot(found->second, bytes))) differences.add(file + ": " + where(found->second, bytes));
    }
    for (const auto& [file, bytes] : here) {
        if (!there.contains(file)) differences.add(file + ": Kafka does not have it");
    }
    for (const auto& [file, time] : golden.modified(name)) {
        if (!here.contains(file)) continue;
        const auto status = must(files.status(io::join(ours, file)));
        if (status->modified.value != time) differences.add(fmt::format("{}: modified {}, Kafka {}", file, status->modified.value, time));
    }
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
