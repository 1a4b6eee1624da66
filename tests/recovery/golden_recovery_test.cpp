// Directories that Apache Kafka left behind, opened by us as Kafka opened them: what it found, and every byte that stood
// there after a clean stop, must be the same (the switches of docs/differences.md on Kafka's side). And lookups by time.
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "io/memory_file_system.h"
#include "storage/checkpoint.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"

namespace tidemark::storage {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

fs::path golden_root() {
    const auto* shared = std::getenv("TIDEMARK_SHARED");
    return fs::path(shared != nullptr ? shared : "../shared") / "golden";
}

json::value read_json(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
}

std::vector<std::byte> read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return to_vector(as_bytes(text.str()));
}

std::int64_t number_of(const json::value& value) { return value.is_string() ? std::stoll(std::string(value.as_string())) : value.to_number<std::int64_t>(); }

/// The settings of a case that opening and closing a log look at.
LogConfig config_of(const json::object& settings) {
    LogConfig config;
    const auto set = [&](const char* key, auto& to) {
        if (const auto* value = settings.if_contains(key)) to = static_cast<std::remove_reference_t<decltype(to)>>(number_of(*value));
    };
    set("segment.bytes", config.segment_bytes);
    set("segment.ms", config.segment_ms);
    set("segment.index.bytes", config.segment_index_bytes);
    set("index.interval.bytes", config.index_interval_bytes);
    set("max.message.bytes", config.max_message_bytes);
    return config;
}

/// A case's directory on a disk in memory, with the file times that it had.
class CaseDisk {
public:
    CaseDisk(const fs::path& directory, const json::object* mtimes, Timestamp now, const Differences& differences) : clock(now) {
        std::error_code missing;  // an empty directory, which a checkout leaves out
        for (const auto& entry : fs::directory_iterator(directory, missing)) {
            if (entry.is_directory()) {
                topic_partition = entry.path().filename().string();
                copy_partition(entry.path(), mtimes);
            } else {
                put(io::join("/", entry.path().filename().string()), read_file(entry.path()));
            }
        }
        if (topic_partition.empty()) topic_partition = "t-0";
        EXPECT_TRUE(io::create_directories(disk, partition_path()));
        StorageOptions options;
        options.differences = differences;
        options.reserve_bytes = 0;
        directory_ = std::make_unique<LogDirectory>(disk, clock, "/", options);
    }

    io::Path partition_path() const { return io::join("/", topic_partition); }
    std::optional<Offset> checkpointed(std::string_view name) const {
        const auto read = read_offset_checkpoint(const_cast<io::MemoryFileSystem&>(disk), io::join("/", name));
        if (!read) return std::nullopt;
        const auto found = read->find(parse_directory_name(topic_partition)->partition);
        return found == read->end() ? std::nullopt : std::optional(found->second);
    }
    Result<std::shared_ptr<Log>> open(const LogConfig& config, bool clean) {
        return open_log(*directory_, {.partition = parse_directory_name(topic_partition)->partition,
                                      .directory = partition_path(),
                                      .config = std::make_shared<LogConfig>(config),
                                      .recovery_point = checkpointed(file_name::recovery_point_checkpoint).value_or(Offset{0}),
                                      .log_start = checkpointed(file_name::log_start_checkpoint).value_or(Offset{0}),
                                      .high_watermark = checkpointed(file_name::high_watermark_checkpoint),
                                      .clean = clean,
                                      .load_producers_now = true});
    }
    std::map<std::string, std::vector<std::byte>> files() {
        std::map<std::string, std::vector<std::byte>> found;
        const auto listed = disk.list(partition_path());
        for (const auto& entry : *listed) found[entry.name] = *io::read_whole(disk, io::join(partition_path(), entry.name));
        return found;
    }
    void let_delays_pass() {
        clock.advance(std::chrono::hours{1});
        directory_->run_background();
    }

    ManualClock clock;
    io::MemoryFileSystem disk{io::MemoryOptions{.clock = &clock}};
    std::string topic_partition;

private:
    void put(const io::Path& path, Bytes content) {
        auto file = disk.open(path, io::OpenMode::create_truncated);
        ASSERT_TRUE(file);
        ASSERT_TRUE((*file)->write(FilePosition{0}, content));
    }
    void copy_partition(const fs::path& from, const json::object* mtimes) {
        ASSERT_TRUE(disk.create_directory(partition_path()));
        for (const auto& entry : fs::directory_iterator(from)) {
            const auto name = entry.path().filename().string();
            put(io::join(partition_path(), name), read_file(entry.path()));
            const auto* time = mtimes != nullptr ? mtimes->if_contains(name) : nullptr;
            if (time == nullptr) continue;
            ASSERT_TRUE(disk.set_modified(io::join(partition_path(), name), Timestamp{number_of(*time)}));
        }
    }
    std::unique_ptr<LogDirectory> directory_;
};

std::map<std::string, std::vector<std::byte>> files_of(const fs::path& directory) {
    std::map<std::string, std::vector<std::byte>> found;
    for (const auto& entry : fs::directory_iterator(directory)) {
        if (entry.is_regular_file()) found[entry.path().filename().string()] = read_file(entry.path());
    }
    return found;
}

/// Producers in any order: Kafka's is that of its hash table.
std::vector<std::string> sorted_entries(const std::vector<std::byte>& snapshot) {
    std::vector<std::string> entries;
    for (std::size_t at = 10; at + 46 <= snapshot.size(); at += 46) entries.emplace_back(as_text(Bytes(snapshot).subspan(at, 46)));
    std::sort(entries.begin(), entries.end());
    return entries;
}

void expect_same_files(const std::map<std::string, std::vector<std::byte>>& ours, const std::map<std::string, std::vector<std::byte>>& kafkas) {
    for (const auto& [name, content] : kafkas) {
        const auto found = ours.find(name);
        if (found == ours.end()) {
            ADD_FAILURE() << name << " is missing";
            continue;
        }
        if (name.ends_with(".snapshot")) {
            EXPECT_EQ(sorted_entries(found->second), sorted_entries(content)) << name;
            EXPECT_EQ(found->second.size(), content.size()) << name;
        } else if (found->second != content) {
            const auto differs = std::mismatch(content.begin(), content.end(), found->second.begin(), found->second.end());
            ADD_FAILURE() << name << ": " << found->second.size() << " bytes, Kafka's has " << content.size() << ", the first difference at "
                          << differs.first - content.begin();
        }
    }
    for (const auto& [name, content] : ours) EXPECT_TRUE(kafkas.contains(name)) << name << " (" << content.size() << " bytes) should not be there";
}

json::object result_of(const Log& log) {
    json::array segments, sizes;
    const auto list = log.segments();
    for (const auto& segment : *list) {
        segments.push_back(segment->base_offset().value);
        sizes.push_back(segment->bytes());
    }
    return {{"logStartOffset", log.log_start_offset().value},
            {"highWatermark", log.high_watermark().value},
            {"lastStableOffset", log.last_stable_offset().value},
            {"logEndOffset", log.log_end_offset().value},
            {"recoveryPoint", log.recovery_point().value},
            {"activeSegmentBaseOffset", log.segments()->back()->base_offset().value},
            {"segments", segments},
            {"segmentSizes", sizes}};
}

void expect_result(const Log& log, const json::object& expected) {
    for (const auto& [key, value] : result_of(log)) {
        const auto* kafkas = expected.if_contains(key);
        if (kafkas == nullptr) continue;
        EXPECT_EQ(json::serialize(value), json::serialize(*kafkas)) << key;
    }
}

void expect_producers(const Log& log, const json::array& expected) {
    std::map<std::int64_t, std::string> ours, kafkas;
    const auto last_records = log.last_producer_records();
    for (const auto& p : log.producers()) {
        const auto open = p.current_transaction_first_offset ? std::to_string(p.current_transaction_first_offset->value) : "null";
        const auto last = last_records.at(p.producer_id).last_data_offset;
        ours[p.producer_id] = fmt::format("epoch {} coordinator {} timestamp {} open {} last {} at {}", p.epoch, p.coordinator_epoch, p.last_timestamp.value,
                                          open, p.last_sequence, last ? last->value : -1);
    }
    for (const auto& p : expected) {
        const auto& batches = p.at("batches").as_array();
        const auto open = p.at("currentTxnFirstOffset").is_null() ? "null" : std::to_string(number_of(p.at("currentTxnFirstOffset")));
        kafkas[number_of(p.at("producerId"))] =
            fmt::format("epoch {} coordinator {} timestamp {} open {} last {} at {}", number_of(p.at("producerEpoch")), number_of(p.at("coordinatorEpoch")),
                        number_of(p.at("lastTimestamp")), open, batches.empty() ? -1 : number_of(batches.back().at("lastSeq")),
                        batches.empty() ? -1 : number_of(batches.back().at("lastOffset")));
    }
    EXPECT_EQ(ours, kafkas);
}

void expect_lookups(const Log& log, const json::array& results) {
    for (const auto& r : results) {
        const auto query = number_of(r.at("query"));
        std::optional<FoundOffset> found;
        if (query == -1) {
            found = log.latest_offset(Isolation::log_end);
        } else if (query == -2 || query == -4) {
            found = log.earliest_offset();
        } else {
            auto looked_up = query == -3 ? log.offset_of_max_timestamp(Isolation::log_end) : log.offset_for_time(Timestamp{query}, Isolation::log_end);
            ASSERT_TRUE(looked_up) << looked_up.error().message();
            found = *looked_up;
        }
        const auto text = [](bool any, std::int64_t offset, std::int64_t timestamp, std::int64_t epoch) {
            return any ? fmt::format("{} at {} epoch {}", offset, timestamp, epoch) : std::string("none");
        };
        const auto& kafkas = r.as_object();
        const bool any = !kafkas.at("offset").is_null();
        const auto number = [&](const char* key) {
            const auto* value = kafkas.if_contains(key);
            return value == nullptr || value->is_null() ? -1 : number_of(*value);
        };
        EXPECT_EQ(found ? text(true, found->offset.value, found->timestamp.value, found->leader_epoch) : "none",
                  text(any, number("offset"), number("timestamp"), number("leaderEpoch")))
            << "query " << query;
    }
}

class GoldenRecovery : public testing::TestWithParam<std::string> {};

TEST_P(GoldenRecovery, OpensAsKafkaDoes) {
    const auto root = golden_root() / GetParam();
    const auto expected = read_json(root / "expect.json").as_object();
    const auto mtimes = fs::exists(root / "mtimes.json") ? read_json(root / "mtimes.json").as_object() : json::object{};
    std::string before = "before";
    for (const auto& action : expected.at("actions").as_array()) {
        const auto dir = std::string(action.at("dir").as_string());
        const auto& outcome = action.at("outcome").as_object();
        const auto kind = std::string(outcome.at("action").as_string());
        if (kind == "recover" || kind == "lookup") {
            SCOPED_TRACE(GetParam() + ", " + kind + " from " + before);
            auto settings = expected.at("config").as_object();
            if (const auto* more = action.at("args").as_object().if_contains("config")) {
                for (const auto& [key, value] : more->as_object()) settings[key] = value;
            }
            const auto* times = mtimes.if_contains(before);
            CaseDisk disk(root / before, times != nullptr ? &times->as_object() : nullptr, Timestamp{number_of(action.at("args").at("now"))}, Differences::none());
            const bool clean = kind == "lookup" || outcome.at("clean").as_bool();
            auto log = disk.open(config_of(settings), clean);
            if (outcome.contains("failed")) {
                EXPECT_FALSE(log) << "Kafka: " << json::serialize(outcome.at("failed"));
            } else {
                ASSERT_TRUE(log) << log.error().message();
                if (kind == "recover") {
                    expect_result(**log, outcome.at("result").as_object());
                    expect_producers(**log, outcome.at("producers").as_array());
                    ASSERT_TRUE((*log)->close());
                    disk.let_delays_pass();
                    expect_same_files(disk.files(), files_of(root / dir / disk.topic_partition));
                } else {
                    expect_lookups(**log, outcome.at("results").as_array());
                }
            }
        }
        before = dir;
    }
}

std::vector<std::string> cases() {
    std::vector<std::string> names;
    if (!fs::exists(golden_root())) return names;
    for (const auto& entry : fs::directory_iterator(golden_root())) {
        if (!fs::exists(entry.path() / "expect.json")) continue;
        const auto expected = read_json(entry.path() / "expect.json");
        for (const auto& action : expected.at("actions").as_array()) {
            const auto& kind = action.at("outcome").at("action").as_string();
            if (kind != "recover" && kind != "lookup") continue;
            names.push_back(entry.path().filename().string());
            break;
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    auto name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenRecovery, testing::ValuesIn(cases()), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenRecovery);

TEST(GoldenRecovery, HasItsCases) {
    if (!fs::exists(golden_root())) GTEST_SKIP() << "no golden data at " << golden_root();
    EXPECT_GE(cases().size(), 50u);
}

}  // namespace
}  // namespace tidemark::storage
