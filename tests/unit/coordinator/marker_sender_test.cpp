// Markers on their way: to each partition once, again where it is away, never where it refuses (transaction-coordinator 9).
#include "coordinator/transaction/markers.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "coordinator/internal_topics.h"
#include "metadata/image.h"
#include "record/control.h"
#include "tests/support/coordinator/memory_journal.h"

namespace tidemark::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

const TopicPartition data0{"data", 0};
const TopicPartition data1{"data", 1};
const TopicPartition offsets2{std::string{group_topic}, 2};

TEST(MarkerFate, IsTheOneOfItsError) {
    using enum ErrorCode;
    EXPECT_EQ(fate_of(none), MarkerFate::written);
    for (const auto error : {unknown_topic_or_partition, not_leader_or_follower, not_enough_replicas, not_enough_replicas_after_append, request_timed_out, kafka_storage_error,
                             coordinator_load_in_progress, coordinator_not_available, not_coordinator}) {
        EXPECT_EQ(fate_of(error), MarkerFate::again) << protocol::to_string(error);
    }
    for (const auto error : {unsupported_for_message_format, unsupported_version}) EXPECT_EQ(fate_of(error), MarkerFate::dropped) << protocol::to_string(error);
    for (const auto error : {invalid_producer_epoch, transaction_coordinator_fenced, corrupt_message, message_too_large}) {
        EXPECT_EQ(fate_of(error), MarkerFate::given_up) << protocol::to_string(error);
    }
}

class Markers : public testing::Test {
protected:
    Markers() { topics({{"data", 2}, {std::string{group_topic}, 3}}); }

    void topics(const std::map<std::string, std::int32_t>& partitions_of) {
        auto next = std::make_shared<metadata::Image>();
        for (const auto& [name, count] : partitions_of) {
            auto topic = std::make_shared<metadata::Topic>(metadata::Topic{.name = name, .id = Uuid::random(), .partitions = {}});
            for (std::int32_t i = 0; i < count; ++i) topic->partitions[i].leader = 1;
            next->topics[name] = topic;
            next->topics_by_id[topic->id] = topic;
        }
        image = std::move(next);
    }
    void send(const std::string& id, std::set<TopicPartition> to, ProducerId producer = 7, bool commit = true) {
        sender.send({.partition = 0, .id = id, .to = std::move(to), .marker = {.producer_id = producer, .producer_epoch = 3, .coordinator_epoch = 5, .transaction_version = 2, .commit = commit}},
                    [this](const DueMarkers& due) { done.push_back(due.id); });
    }
    /// Lets the pause before another attempt pass, whatever it is.
    void try_again() {
        clock.advance(10s);
        sender.tick();
    }
    /// "commit of 7/3 by 5" for each marker in a partition.
    std::vector<std::string> markers_in(const TopicPartition& partition) {
        std::vector<std::string> texts;
        for (auto& bytes : journals.at(partition)->batches) {
            const auto batch = record::BatchView::parse(bytes).value();
            EXPECT_TRUE(batch.is_control() && batch.is_transactional());
            record::RecordReader reader;
            EXPECT_TRUE(reader.open(batch));
            const auto record = reader.next().value();
            const auto marker = record::transaction_marker(*record).value();
            texts.push_back(std::string{record::control_type(*record).value() == record::ControlType::commit ? "commit" : "abort"} + " of " + std::to_string(batch.producer_id()) + "/" +
                            std::to_string(batch.producer_epoch()) + " by " + std::to_string(marker.coordinator_epoch));
        }
        return texts;
    }

    ManualClock clock;
    metadata::ImagePtr image;
    std::map<TopicPartition, std::shared_ptr<test::MemoryJournal>> journals{{data0, std::make_shared<test::MemoryJournal>()}, {data1, std::make_shared<test::MemoryJournal>()}};
    std::vector<std::pair<std::int32_t, Marker>> group_markers;
    ErrorCode group_answer = ErrorCode::none;
    std::vector<std::string> done;
    MarkerSender sender{{.clock = clock,
                         .image = [this] { return image; },
                         .open_journal = [this](const TopicPartition& partition) -> std::shared_ptr<Journal> { return journals[partition]; },
                         .write_group_marker = [this](std::int32_t partition, const Marker& marker, std::function<void(ErrorCode)> written) {
                             group_markers.emplace_back(partition, marker);
                             written(group_answer);
                         },
                         .executor = [this](std::function<void()> job) {
                             if (holds_jobs) jobs.push_back(std::move(job));
                             else job();
                         }}};
    bool holds_jobs = false;
    std::vector<std::function<void()>> jobs;
};

TEST_F(Markers, GoToEachPartitionOnceAndAreDoneWhenAllAreDurable) {
    journals.at(data1)->hold_syncs = true;
    send("tx", {data0, data1, offsets2});
    EXPECT_THAT(markers_in(data0), ElementsAre("commit of 7/3 by 5"));
    EXPECT_THAT(markers_in(data1), ElementsAre("commit of 7/3 by 5"));
    ASSERT_EQ(group_markers.size(), 1u);
    EXPECT_EQ(group_markers[0].first, 2);
    EXPECT_TRUE(group_markers[0].second.commit);
    EXPECT_THAT(done, IsEmpty());
    EXPECT_EQ(sender.outstanding(), 1u);
    journals.at(data1)->sync();
    EXPECT_THAT(done, ElementsAre("tx"));
    EXPECT_EQ(sender.outstanding(), 0u);
    try_again();
    EXPECT_EQ(journals.at(data0)->batches.size(), 1u);
}

TEST_F(Markers, OfGroupsAreWithTheirCoordinatorBeforeTheTransactionIsAnswered) {
    holds_jobs = true;
    send("tx", {data0, offsets2});
    EXPECT_EQ(group_markers.size(), 1u);
    EXPECT_THAT(journals.at(data0)->batches, IsEmpty());
    EXPECT_THAT(done, IsEmpty());
    for (auto& job : std::exchange(jobs, {})) job();
    EXPECT_EQ(group_markers.size(), 1u);
    EXPECT_EQ(journals.at(data0)->batches.size(), 1u);
    EXPECT_THAT(done, ElementsAre("tx"));
    send("offsets only", {offsets2});
    EXPECT_THAT(done, ElementsAre("tx", "offsets only"));
    EXPECT_THAT(jobs, IsEmpty());
}

TEST_F(Markers, OfTwoTransactionsDoNotWaitForEachOther) {
    journals.at(data1)->hold_syncs = true;
    send("slow", {data1}, 7, true);
    send("quick", {data0}, 8, false);
    EXPECT_THAT(done, ElementsAre("quick"));
    EXPECT_THAT(markers_in(data0), ElementsAre("abort of 8/3 by 5"));
    journals.at(data1)->sync();
    EXPECT_THAT(done, ElementsAre("quick", "slow"));
}

TEST_F(Markers, OfNothingAreDoneAtOnce) {
    send("empty", {});
    EXPECT_THAT(done, ElementsAre("empty"));
}

TEST_F(Markers, WaitForAPartitionThatIsAwayWithGrowingPauses) {
    const auto journal = std::exchange(journals[data1], nullptr);
    send("tx", {data0, data1});
    EXPECT_EQ(sender.outstanding(), 1u);
    clock.advance(19ms);
    sender.tick();
    clock.advance(1ms);
    sender.tick();   // still away; the next attempt is after twice the pause
    journals[data1] = journal;
    clock.advance(39ms);
    sender.tick();
    EXPECT_THAT(done, IsEmpty());
    clock.advance(1ms);
    sender.tick();
    EXPECT_THAT(done, ElementsAre("tx"));
    EXPECT_THAT(markers_in(data1), ElementsAre("commit of 7/3 by 5"));
    EXPECT_EQ(journals.at(data0)->batches.size(), 1u) << "what is written is not written again";
}

TEST_F(Markers, WaitForAFullDiskAndForALoadingGroupCoordinator) {
    journals.at(data0)->fail_appends = Errc::no_space;
    group_answer = ErrorCode::coordinator_load_in_progress;
    send("tx", {data0, offsets2});
    try_again();
    EXPECT_THAT(done, IsEmpty());
    journals.at(data0)->fail_appends.reset();
    group_answer = ErrorCode::none;
    try_again();
    EXPECT_THAT(done, ElementsAre("tx"));
    EXPECT_EQ(group_markers.size(), 3u);
}

TEST_F(Markers, AreWrittenAgainWhenTheirSyncFailed) {
    journals.at(data0)->hold_syncs = true;
    send("tx", {data0});
    journals.at(data0)->sync(Error{Errc::io, "told to fail"});
    EXPECT_THAT(done, IsEmpty());
    try_again();
    EXPECT_THAT(done, ElementsAre("tx"));
}

TEST_F(Markers, SkipATopicThatIsGone) {
    const auto journal = std::exchange(journals[data1], nullptr);
    send("tx", {data0, data1});
    topics({});
    try_again();
    EXPECT_THAT(done, ElementsAre("tx"));
    EXPECT_THAT(journal->batches, IsEmpty());
}

TEST_F(Markers, ThatAreRefusedLeaveTheTransactionUndecided) {
    for (const auto refusal : {Errc::invalid_producer_epoch, Errc::coordinator_fenced}) {
        journals.at(data0)->fail_appends = refusal;
        send("tx", {data0, data1});
        journals.at(data0)->fail_appends.reset();
        try_again();
        EXPECT_THAT(journals.at(data0)->batches, IsEmpty());
    }
    EXPECT_EQ(journals.at(data1)->batches.size(), 2u);
    EXPECT_THAT(done, IsEmpty());
    EXPECT_EQ(sender.outstanding(), 0u);
}

TEST_F(Markers, AreNotWrittenAfterAStop) {
    const auto journal = std::exchange(journals[data1], nullptr);
    send("waiting", {data1});
    sender.stop();
    journals[data1] = journal;
    try_again();
    send("late", {data0});
    EXPECT_THAT(done, IsEmpty());
    EXPECT_THAT(journal->batches, IsEmpty());
    EXPECT_THAT(journals.at(data0)->batches, IsEmpty());
}

}  // namespace
}  // namespace tidemark::coordinator
