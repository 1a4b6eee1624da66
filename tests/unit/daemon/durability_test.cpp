// D10: what an answer to acks=all promises, watched at the files. A kill of the process does not test a sync; this does.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>

#include "io/faulty_file_system.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

using namespace std::chrono_literals;
using protocol::ErrorCode;
using test::batch_of;
using test::TestBroker;

/// What is certain to be on the disk: of each file the bytes, and whether its name is.
/// A write that had returned before a sync began is covered by it; a name by a sync of its directory.
class Watcher {
public:
    io::FaultOptions options() {
        return {.before = [this](const io::Call& call) { before(call); }, .after = [this](const io::Call& call, const Result<>& result) { after(call, result); }};
    }
    /// Blocks every later sync of a `.log` file of the topic until release().
    void hold_syncs_of(const std::string& topic) {
        MutexLock lock(mutex_);
        held_ = topic;
    }
    void release() {
        MutexLock lock(mutex_);
        held_.clear();
        changed_.notify_all();
    }
    void wait_until_held() {
        MutexLock lock(mutex_);
        while (!waiting_) changed_.wait(mutex_);
    }
    /// Whether the bytes of the topic's log up to the record `offset` are on disk, when each record takes `record_bytes`.
    bool covers(const std::string& directory, std::int64_t offset, std::int64_t record_bytes) {
        MutexLock lock(mutex_);
        const std::string prefix = directory + "/";
        std::int64_t base = -1;
        std::string path;
        for (const auto& [candidate, file] : files_) {
            if (!candidate.starts_with(prefix) || !candidate.ends_with(".log")) continue;
            const auto from = std::stoll(candidate.substr(prefix.size(), 20));
            if (from <= offset && from > base) base = from, path = candidate;
        }
        if (base < 0) return false;
        const auto& file = files_.at(path);
        return file.name_is_certain && file.synced >= (offset - base + 1) * record_bytes;
    }

private:
    struct File {
        std::int64_t written = 0, covered_by_running_sync = 0, synced = 0;
        bool name_is_certain = false, name_covered_by_running_sync = false;
    };
    static bool is_log_of(const io::Path& path, const std::string& topic) { return path.ends_with(".log") && path.find("/" + topic + "-") != std::string::npos; }
    /// Paths of a File's calls and of directories, with one '/' in front.
    static std::string normal(const io::Path& path) { return path.starts_with("/") ? path : "/" + path; }

    void before(const io::Call& call) {
        MutexLock lock(mutex_);
        const auto path = normal(call.path);
        if (call.operation == io::Operation::sync) {
            files_[path].covered_by_running_sync = files_[path].written;
            if (!held_.empty() && is_log_of(path, held_)) {
                waiting_ = true;
                changed_.notify_all();
                while (!held_.empty()) changed_.wait(mutex_);
                waiting_ = false;
            }
        } else if (call.operation == io::Operation::sync_directory) {
            for (auto& [name, file] : files_) {
                if (io::parent_of(name) == path) file.name_covered_by_running_sync = true;
            }
        }
    }
    void after(const io::Call& call, const Result<>& result) {
        if (!result) return;
        MutexLock lock(mutex_);
        const auto path = normal(call.path);
        switch (call.operation) {
            case io::Operation::create: files_[path] = {}; break;
            case io::Operation::write: files_[path].written = std::max(files_[path].written, call.at.value + call.bytes); break;
            case io::Operation::sync: files_[path].synced = std::max(files_[path].synced, files_[path].covered_by_running_sync); break;
            case io::Operation::sync_directory:
                for (auto& [name, file] : files_) {
                    if (io::parent_of(name) == path && file.name_covered_by_running_sync) file.name_is_certain = true;
                }
                break;
            case io::Operation::rename:
                files_[normal(call.to)] = std::exchange(files_[path], {});
                files_.erase(path);
                break;
            default: break;
        }
    }

    Mutex mutex_;
    Condition changed_;
    std::map<std::string, File> files_ GUARDED_BY(mutex_);
    std::string held_ GUARDED_BY(mutex_);
    bool waiting_ GUARDED_BY(mutex_) = false;
};

TEST(Durability, NoAnswerToAcksAllLeavesBeforeItsSyncHasReturned) {
    Watcher watcher;
    io::FaultyFileSystem disk{watcher.options()};
    TestBroker broker{{.files = &disk}};
    const auto id = broker.create_topic("t");
    auto client = broker.client();
    auto records = batch_of({"a"});

    watcher.hold_syncs_of("t");
    const auto waits = client.send(test::produce_request("t", id, 0, records, -1));
    watcher.wait_until_held();
    EXPECT_EQ(broker.log("t").log_end_offset(), Offset{1}) << "it is appended, and may be read";
    EXPECT_FALSE(client.receive_frame(100ms)) << "but not acknowledged";
    watcher.release();
    const auto answer = client.receive<protocol::ProduceResponse>(waits);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->responses.at(0).partition_responses.at(0).error_code, ErrorCode::none);
}

TEST(Durability, AnswersOfPipelinedProducersAreCoveredByASync) {
    Watcher watcher;
    io::FaultyFileSystem disk{watcher.options()};
    TestBroker broker{{.files = &disk}};
    // Small segments, so that rolls happen: the bytes before a roll and the new file's name belong to the promise.
    const auto id = broker.create_topic("t", 2, {{"segment.bytes", "1048576"}});
    auto records = batch_of({std::string(100'000, 'x')});
    const auto bytes = static_cast<std::int64_t>(records.size());
    constexpr int producers = 4, rounds = 12, pipelined = 5;

    std::vector<std::thread> threads;
    std::atomic<int> answers{0}, uncovered{0};
    for (int p = 0; p < producers; ++p) {
        threads.emplace_back([&, p] {
            auto client = broker.client();
            const auto partition = p % 2;
            auto mine = records;
            for (int round = 0; round < rounds; ++round) {
                std::vector<std::int32_t> sent;
                for (int i = 0; i < pipelined; ++i) sent.push_back(client.send(test::produce_request("t", id, partition, mine, -1)));
                for (const auto correlation : sent) {
                    const auto answer = client.receive<protocol::ProduceResponse>(correlation);
                    if (!answer || answer->responses.at(0).partition_responses.at(0).error_code != ErrorCode::none) continue;
                    ++answers;
                    const auto offset = answer->responses.at(0).partition_responses.at(0).base_offset;
                    if (!watcher.covers("/data/t-" + std::to_string(partition), offset, bytes)) ++uncovered;
                }
            }
        });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(answers, producers * rounds * pipelined);
    EXPECT_EQ(uncovered, 0);
    EXPECT_GT(broker.log("t").stats().segments, 2u) << "the test needs rolls";
}

struct Setting {
    storage::Durability durability;
    std::int16_t acks;
    bool waits;
};

class DurabilitySetting : public testing::TestWithParam<Setting> {};

TEST_P(DurabilitySetting, DecidesWhoWaits) {
    Watcher watcher;
    io::FaultyFileSystem disk{watcher.options()};
    test::TestBrokerOptions options{.files = &disk};
    options.daemon.durability = GetParam().durability;
    TestBroker broker{std::move(options)};
    const auto id = broker.create_topic("t");
    auto client = broker.client();
    auto records = batch_of({"a"});
    watcher.hold_syncs_of("t");
    const auto correlation = client.send(test::produce_request("t", id, 0, records, GetParam().acks));
    if (GetParam().waits) {
        EXPECT_FALSE(client.receive_frame(100ms));
        watcher.release();
    }
    EXPECT_TRUE(client.receive<protocol::ProduceResponse>(correlation));
    watcher.release();
}

std::string setting_name(const testing::TestParamInfo<Setting>& tested) {
    static constexpr std::array names{"page_cache", "acks_all", "always"};
    return names[static_cast<std::size_t>(tested.param.durability)] + std::string{tested.param.acks == 1 ? "_acks_1" : "_acks_all"};
}

INSTANTIATE_TEST_SUITE_P(Durability, DurabilitySetting,
                         testing::Values(Setting{storage::Durability::acks_all, -1, true}, Setting{storage::Durability::acks_all, 1, false},
                                         Setting{storage::Durability::always, 1, true}, Setting{storage::Durability::always, -1, true},
                                         Setting{storage::Durability::page_cache, -1, false}, Setting{storage::Durability::page_cache, 1, false}),
                         setting_name);

TEST(Durability, FailedSyncIsAStorageErrorAndNoPromise) {
    io::FaultyFileSystem disk;
    TestBroker broker{{.files = &disk}};
    const auto id = broker.create_topic("t");
    auto client = broker.client();
    auto records = batch_of({"a"});
    disk.inject({.fail_at = 0, .fail_calls = 1 << 30, .counted = [](const io::Call& call) { return call.operation == io::Operation::sync && call.path.ends_with(".log"); }});
    const auto failed = client.ask<protocol::ProduceResponse>(test::produce_request("t", id, 0, records, -1)).responses.at(0).partition_responses.at(0);
    EXPECT_EQ(failed.error_code, ErrorCode::kafka_storage_error);
    EXPECT_EQ(failed.base_offset, -1);
    const auto later = client.ask<protocol::ProduceResponse>(test::produce_request("t", id, 0, records, 1)).responses.at(0).partition_responses.at(0);
    EXPECT_EQ(later.error_code, ErrorCode::kafka_storage_error) << "its directory serves no more (D12)";
    disk.inject({});
}

}  // namespace
}  // namespace tidemark::daemon
