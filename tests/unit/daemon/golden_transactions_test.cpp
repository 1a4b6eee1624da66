// Directories that Apache Kafka left behind, opened by this daemon: every transaction is what Kafka made of it, and those
// that had been decided are finished.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <future>

#include "coordinator/transaction/coordinator.h"
#include "daemon/coordinators.h"
#include "tests/support/daemon/test_broker.h"
#include "tests/support/golden.h"

namespace tidemark::daemon {
namespace {

using coordinator::ListAnswer;

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
        const auto golden = test::golden_directory("golden-coordinator");
        if (!golden) GTEST_SKIP() << test::no_golden_data;
        expect_ = boost::json::parse(test::content_of(*golden / GetParam() / "expect.json")).as_object();
        test::copy_to_memory(*golden / GetParam() / "data", files_, "/data");
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
