// Directories that Apache Kafka left behind, opened by this daemon: every transaction is what Kafka made of it, and those
// that had been decided are finished.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "tests/support/daemon/test_broker.h"

namespace tidemark::daemon {
namespace {

namespace fs = std::filesystem;
using coordinator::ListAnswer;

std::optional<fs::path> golden_directory() {
    const char* const named = std::getenv("TIDEMARK_SHARED");
    for (const fs::path candidate : {named ? named : "", "../shared"}) {   // tests run in the source root
        if (!candidate.empty() && fs::is_directory(candidate / "golden-coordinator")) return candidate / "golden-coordinator";
    }
    return std::nullopt;
}

std::string content_of(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void copy_to_memory(const fs::path& from, io::FileSystem& files, const io::Path& to) {
    ASSERT_TRUE(io::create_directories(files, to).has_value());
    for (const auto& entry : fs::directory_iterator(from)) {
        const auto path = io::join(to, entry.path().filename().string());
        if (entry.is_directory()) {
            copy_to_memory(entry.path(), files, path);
            continue;
        }
        auto file = files.open(path, io::OpenMode::create_new);
        ASSERT_TRUE(file.has_value());
        ASSERT_TRUE((*file)->write(FilePosition{0}, as_bytes(content_of(entry.path()))).has_value());
    }
}

/// "id state producer/epoch timeout start partitions", sorted.
std::vector<std::string> lines_of(const boost::json::array& transactions) {
    std::vector<std::string> lines;
    for (const auto& value : transactions) {
        const auto& t = value.as_object();
        std::string line = fmt::format("{} {} {}/{} {} {}", std::string_view{t.at("transactionalId").as_string()}, std::string_view{t.at("state").as_string()}, t.at("producerId").as_int64(),
                                       t.at("producerEpoch").as_int64(), t.at("timeoutMs").as_int64(), t.at("startTimeMs").as_int64());
        for (const auto& partition : t.at("partitions").as_array()) line += " " + std::string{partition.as_string()};
        lines.push_back(std::move(line));
    }
    std::ranges::sort(lines);
    return lines;
}

std::vector<std::string> lines_of(const ListAnswer& answer) {
    std::vector<std::string> lines;
    for (const auto& [id, t] : answer.transactions) {
        std::string line = fmt::format("{} {} {}/{} {} {}", id, coordinator::name_of(t.state), t.producer_id, t.producer_epoch, t.timeout_ms, t.start.value);
        for (const auto& partition : t.partitions) line += " " + partition.text();
        lines.push_back(std::move(line));
    }
    std::ranges::sort(lines);
    return lines;
}

class GoldenTransactions : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const auto golden = golden_directory();
        if (!golden) GTEST_SKIP() << "NO GOLDEN DATA: set TIDEMARK_SHARED";
        expect_ = boost::json::parse(content_of(*golden / GetParam() / "expect.json")).as_object();
        copy_to_memory(*golden / GetParam() / "data", files_, "/data");
        // As if it were opened right after the stop: nothing has timed out or expired.
        const auto stopped = Timestamp{1'796'022'820'000};
        clock_.jump_to(stopped);
        broker_.emplace(test::TestBrokerOptions{.files = &files_, .clock = &clock_});
    }

    ListAnswer list() {
        std::promise<ListAnswer> listed;
        broker_->broker().coordinators().transactions().list({}, [&](ListAnswer answer) { listed.set_value(std::move(answer)); });
        return listed.get_future().get();
    }
    /// Once every partition is loaded and every marker written.
    ListAnswer settled() {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
        const auto prepared = [](const ListAnswer& answer) {
            return std::ranges::any_of(answer.transactions, [](const auto& named) { return coordinator::is_prepared(named.transaction.state); });
        };
        auto answer = list();
        while ((answer.error != protocol::ErrorCode::none || prepared(answer)) && std::chrono::steady_clock::now() < end) {
            clock_.advance(std::chrono::milliseconds{1});
            answer = list();
        }
        return answer;
    }

    boost::json::object expect_;
    io::MemoryFileSystem files_;
    ManualClock clock_;
    std::optional<test::TestBroker> broker_;
};

TEST_P(GoldenTransactions, AreWhatKafkaMadeOfThem) {
    const auto answer = settled();
    const auto& state = expect_.at("state").as_object();
    EXPECT_EQ(lines_of(answer), lines_of(state.at("transactions").as_array()));

    // Each partition's producers, by id: epoch, last sequence, and where their open transaction begins.
    for (const auto& value : state.at("producers").as_array()) {
        const auto& producer = value.as_object();
        const auto& log = broker_->log(std::string{producer.at("topic").as_string()}, static_cast<std::int32_t>(producer.at("partition").as_int64()));
        const auto producers = log.producers();
        const auto found = std::ranges::find(producers, producer.at("producerId").as_int64(), &storage::ProducerSummary::producer_id);
        ASSERT_NE(found, producers.end()) << boost::json::serialize(value);
        EXPECT_EQ(found->epoch, producer.at("producerEpoch").as_int64()) << boost::json::serialize(value);
        EXPECT_EQ(found->last_sequence, producer.at("lastSequence").as_int64()) << boost::json::serialize(value);
        EXPECT_EQ(found->current_transaction_first_offset.value_or(Offset{-1}).value, producer.at("currentTransactionStartOffset").as_int64()) << boost::json::serialize(value);
    }
}

INSTANTIATE_TEST_SUITE_P(Kafka, GoldenTransactions, testing::Values("transactions-ongoing", "transactions-prepared"));

}  // namespace
}  // namespace tidemark::daemon
