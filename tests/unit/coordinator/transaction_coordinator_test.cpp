// The transaction coordinator as handlers see it: what it refuses by itself, and what it says for a partition that cannot answer.
#include "coordinator/transaction/coordinator.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "coordinator/internal_topics.h"
#include "metadata/image.h"
#include "tests/support/coordinator/memory_journal.h"

namespace tidemark::coordinator {
namespace {

using testing::_;
using testing::Each;
using testing::Pair;
using namespace std::chrono_literals;

class TransactionCoordinatorTest : public testing::Test {
protected:
    void open(const TransactionOptions& options = {}, bool with_topic = true) {
        auto next = std::make_shared<metadata::Image>();
        next->features["transaction.version"] = 2;
        if (with_topic) {
            auto topic = std::make_shared<metadata::Topic>(metadata::Topic{.name = std::string{transaction_topic}, .id = Uuid::of(9), .partitions = {}});
            topic->partitions[0].leader = 1;
            next->topics[topic->name] = topic;
            next->topics_by_id[topic->id] = topic;
        }
        image = std::move(next);
        coordinator = std::make_unique<TransactionCoordinator>(options, RuntimeOptions{.topic = std::string{transaction_topic}},
                                                               TransactionCoordinator::Parts{.runtime = {.clock = clock,
                                                                                                         .open_journal = [this](const TopicPartition&) { return journal; },
                                                                                                         .executor = [this](std::function<void()> job) {
                                                                                                             if (holds_jobs) jobs.push_back(std::move(job));
                                                                                                             else job();
                                                                                                         }},
                                                                                             .image = [this] { return image; },
                                                                                             .next_producer_id = [this] { return next_id; },
                                                                                             .write_group_marker = {}});
        coordinator->image_changed(image);
    }
    void run_jobs() {
        holds_jobs = false;
        for (auto& job : std::exchange(jobs, {})) job();
    }
    ErrorCode init(InitTransactions asked) {
        auto told = ErrorCode::unknown_server_error;
        coordinator->init_producer_id(std::move(asked), [&](const ProducerAnswer& answer) { told = answer.error; });
        return told;
    }
    /// What each kind of request is told.
    std::map<std::string, ErrorCode> told_to_all() {
        std::map<std::string, ErrorCode> told{{"init", init({.id = "tx", .timeout_ms = 1000})}};
        coordinator->add_partitions("tx", {7, 0}, {{"data", 0}}, 2, false, [&](ErrorCode error) { told["add"] = error; });
        coordinator->verify_partitions("tx", {7, 0}, {{"data", 0}}, [&](const VerifyAnswer& answer) { told["verify"] = answer.error; });
        coordinator->end_transaction("tx", {7, 0}, true, 5, [&](const ProducerAnswer& answer) { told["end"] = answer.error; });
        coordinator->describe("tx", [&](const ListAnswer& answer) { told["describe"] = answer.error; });
        coordinator->list({}, [&](const ListAnswer& answer) { told["list"] = answer.error; });
        EXPECT_EQ(told.size(), 6u);
        return told;
    }

    ManualClock clock;
    std::shared_ptr<test::MemoryJournal> journal = std::make_shared<test::MemoryJournal>();
    metadata::ImagePtr image;
    Result<ProducerId> next_id = ProducerId{7};
    bool holds_jobs = false;
    std::vector<std::function<void()>> jobs;
    std::unique_ptr<TransactionCoordinator> coordinator;
};

TEST_F(TransactionCoordinatorTest, ChecksWhatInitProducerIdAsksFor) {
    open();
    const std::pair<InitTransactions, ErrorCode> cases[] = {
        {{.id = "", .timeout_ms = 1000}, ErrorCode::invalid_request},
        {{.id = "tx", .timeout_ms = 0}, ErrorCode::invalid_transaction_timeout},
        {{.id = "tx", .timeout_ms = 900'001}, ErrorCode::invalid_transaction_timeout},
        {{.id = "tx", .timeout_ms = 900'000}, ErrorCode::none},
        {{.id = "tx", .timeout_ms = 1000, .two_phase_commit = true}, ErrorCode::transactional_id_authorization_failed},
        {{.id = "tx", .timeout_ms = 1000, .keep_prepared = true}, ErrorCode::unsupported_version},
    };
    for (const auto& [asked, told] : cases) EXPECT_EQ(init(asked), told) << asked.id << " " << asked.timeout_ms;

    open({.two_phase_commit = true});
    EXPECT_EQ(init({.id = "tx", .timeout_ms = 0, .two_phase_commit = true}), ErrorCode::none);
    coordinator->describe("tx", [](const ListAnswer& answer) { EXPECT_EQ(answer.transactions.at(0).transaction.timeout_ms, timeout_never); });
}

TEST_F(TransactionCoordinatorTest, SaysWhyThereIsNoProducerId) {
    open();
    next_id = Error{Errc::io, "no block could be written"};
    EXPECT_EQ(init({.id = "tx", .timeout_ms = 1000}), ErrorCode::coordinator_load_in_progress);
    next_id = Error{Errc::unsupported, "all have been given out"};
    EXPECT_EQ(init({.id = "tx", .timeout_ms = 1000}), ErrorCode::unknown_server_error);
}

TEST_F(TransactionCoordinatorTest, IsNotHereBeforeItsTopicIs) {
    open({}, false);
    auto told = told_to_all();
    EXPECT_EQ(told.extract("list").mapped(), ErrorCode::none);
    EXPECT_THAT(told, Each(Pair(_, ErrorCode::not_coordinator)));
}

TEST_F(TransactionCoordinatorTest, TellsEveryoneThatItLoads) {
    holds_jobs = true;
    open();
    EXPECT_THAT(told_to_all(), Each(Pair(_, ErrorCode::coordinator_load_in_progress)));
    run_jobs();
    EXPECT_EQ(init({.id = "tx", .timeout_ms = 1000}), ErrorCode::none);
    coordinator->list({}, [](const ListAnswer& answer) { EXPECT_EQ(answer.transactions.size(), 1u); });
}

TEST_F(TransactionCoordinatorTest, HidesAPartitionThatCannotBeRead) {
    journal = nullptr;
    open();
    auto told = told_to_all();
    EXPECT_EQ(told.extract("list").mapped(), ErrorCode::none);
    EXPECT_THAT(told, Each(Pair(_, ErrorCode::not_coordinator)));
}

TEST_F(TransactionCoordinatorTest, AnswersWhoseRecordsAreNotOnDisk) {
    open();
    const auto late = std::make_shared<std::optional<ErrorCode>>(), lost = std::make_shared<std::optional<ErrorCode>>();
    journal->hold_syncs = true;
    coordinator->init_producer_id({.id = "late", .timeout_ms = 1000}, [late](const ProducerAnswer& answer) { *late = answer.error; });
    EXPECT_EQ(*late, std::nullopt);
    clock.advance(30s);
    coordinator->tick();
    EXPECT_EQ(*late, ErrorCode::coordinator_not_available);
    coordinator->init_producer_id({.id = "lost", .timeout_ms = 1000}, [lost](const ProducerAnswer& answer) { *lost = answer.error; });
    journal->sync(Error{Errc::io, "told to fail"});
    EXPECT_EQ(*lost, ErrorCode::not_coordinator);
}

}  // namespace
}  // namespace tidemark::coordinator
