// The runtime: order, durability, loading, failure; and what goes with it: where ids live, deadlines.
#include "coordinator/runtime.h"

#include <gmock/gmock.h>

#include "coordinator/deadlines.h"
#include "record/builder.h"
#include "record/control.h"
#include "tests/support/coordinator/test_groups.h"

namespace tidemark::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(InternalTopics, IdsLiveWhereKafkaPutsThem) {
    struct Case {
        const char* id;
        std::int32_t hash, of_50, of_3;
    };
    for (const auto& c : {Case{"a", 97, 47, 1}, Case{"my-group", -1906497762, 12, 0}, Case{"группа", 1749938458, 8, 1}, Case{"😀", 1772899, 49, 1},
                          Case{"polygenelubricants", std::numeric_limits<std::int32_t>::min(), 0, 0}, Case{"", 0, 0, 0}}) {
        EXPECT_EQ(java_hash(c.id), c.hash) << c.id;
        EXPECT_EQ(partition_of(c.id, 50), c.of_50) << c.id;
        EXPECT_EQ(partition_of(c.id, 3), c.of_3) << c.id;
    }
}

TEST(InternalTopics, AreMadeAsKafkaMakesThem) {
    const auto groups = group_topic_settings({});
    EXPECT_EQ(groups.partitions, 50);
    EXPECT_EQ(groups.replication_factor, 1);   // D20
    using Config = std::pair<std::string, std::optional<std::string>>;
    EXPECT_THAT(groups.configs, testing::UnorderedElementsAre(Config{"cleanup.policy", "compact"}, Config{"compression.type", "producer"}, Config{"segment.bytes", "104857600"}));
    const auto transactions = transaction_topic_settings({});
    EXPECT_EQ(transactions.partitions, 50);
    EXPECT_EQ(transactions.replication_factor, 1);
    EXPECT_THAT(transactions.configs, testing::Contains(Config{"compression.type", "uncompressed"}));
}

TEST(Deadlines, FireOnceAndInOrder) {
    Deadlines<std::string> timers;
    EXPECT_EQ(timers.next(), std::nullopt);
    timers.set("late", 30ms);
    timers.set("early", 10ms);
    timers.set("moved later", 5ms);
    timers.set("moved later", 40ms);
    timers.set("moved earlier", 50ms);
    timers.set("moved earlier", 20ms);
    timers.set("cancelled", 15ms);
    timers.cancel("cancelled");
    EXPECT_LE(*timers.next(), 10ms);
    std::vector<std::string> fired;
    while (const auto key = timers.pop_due(45ms)) fired.push_back(*key);
    EXPECT_THAT(fired, ElementsAre("early", "moved earlier", "late", "moved later"));
    EXPECT_EQ(timers.size(), 0u);
    EXPECT_EQ(timers.pop_due(1000ms), std::nullopt);
    // Set again after a cancellation, before its old place has come up.
    timers.set("again", 60ms);
    timers.cancel("again");
    timers.set("again", 70ms);
    EXPECT_EQ(timers.pop_due(65ms), std::nullopt);
    EXPECT_EQ(timers.pop_due(70ms), "again");
}

/// Counts what it is told; key "bad" cannot be replayed.
class Counter final : public StateMachine {
public:
    Result<> replay(const ReplayedRecord& record) override {
        if (as_text(record.key) == "bad") return Error{Errc::corrupt, "bad"};
        texts.push_back(std::string{as_text(record.key)} + "@" + std::to_string(record.offset.value));
        return {};
    }
    Result<> replay(const ReplayedMarker& marker) override {
        texts.push_back(marker.committed ? "commit" : "abort");
        return {};
    }
    void unloaded(ErrorCode reason) override { *ended = reason; }
    std::vector<std::string> texts;
    std::shared_ptr<ErrorCode> ended = std::make_shared<ErrorCode>(ErrorCode::none);
};

Record record(const std::string& key) { return {.key = to_vector(as_bytes(key)), .value = to_vector(as_bytes("v"))}; }

class RuntimeTest : public testing::Test {
protected:
    void open() {
        runtime = std::make_unique<Runtime<Counter>>(RuntimeOptions{.topic = "t", .load_buffer_bytes = 1}, RuntimeParts{.clock = clock, .open_journal = [this](const TopicPartition&) { return has_log ? journal : nullptr; }, .executor = [this](std::function<void()> job) {
                                                         if (later) jobs.push_back(std::move(job));
                                                         else job();
                                                     }},
                                                     [](std::int32_t) { return std::make_unique<Counter>(); });
        auto image = std::make_shared<metadata::Image>();
        auto topic = std::make_shared<metadata::Topic>(metadata::Topic{.name = "t", .id = Uuid::of(9), .partitions = {}});
        topic->partitions[0].leader = 1;
        image->topics["t"] = topic;
        image->topics_by_id[topic->id] = topic;
        runtime->image_changed(image);
    }
    void run_jobs() {
        for (auto& job : std::exchange(jobs, {})) job();
    }
    /// Appends a record; the answer's code once it is there.
    std::shared_ptr<std::optional<ErrorCode>> append(const std::string& key) {
        auto outcome = std::make_shared<std::optional<ErrorCode>>();
        runtime->submit(0, [key, outcome](Counter&, Context& context) {
            const auto one = record(key);
            if (const auto written = context.write({&one, 1}); !written) {
                *outcome = ErrorCode::unknown_server_error;
                return;
            }
            context.when_durable([outcome](ErrorCode code) { *outcome = code; });
        }, [outcome](ErrorCode why) { *outcome = why; });
        return outcome;
    }
    std::vector<std::string> texts() {
        std::vector<std::string> found;
        runtime->submit(0, [&](Counter& machine, Context&) { found = machine.texts; }, [](ErrorCode) {});
        return found;
    }

    ManualClock clock;
    std::shared_ptr<MemoryJournal> journal = std::make_shared<MemoryJournal>();
    bool has_log = true, later = false;
    std::vector<std::function<void()>> jobs;
    std::unique_ptr<Runtime<Counter>> runtime;
};

TEST_F(RuntimeTest, AnEmptyPartitionIsActiveAtOnce) {
    open();
    EXPECT_EQ(*append("a"), ErrorCode::none);
    EXPECT_THAT(texts(), ElementsAre("a@0"));
}

TEST_F(RuntimeTest, LoadsFromTheLogStartDataOfOpenTransactionsIncluded) {
    open();
    append("a");
    append("b");
    const auto one = record("c");
    runtime->submit(0, [&](Counter&, Context& context) {
        EXPECT_TRUE(context.write({&one, 1}, {.producer_id = 7, .producer_epoch = 0}).has_value());
        EXPECT_TRUE(context.write(Marker{.producer_id = 7, .producer_epoch = 0, .commit = true}).has_value());
        EXPECT_TRUE(context.write({&one, 1}, {.producer_id = 8, .producer_epoch = 0}).has_value());
    }, [](ErrorCode) {});
    runtime->stop();
    journal->start_at(Offset{1});
    open();
    EXPECT_THAT(texts(), ElementsAre("b@1", "c@2", "commit", "c@4"));
}

TEST_F(RuntimeTest, RefusesWhileItLoads) {
    later = true;
    open();
    EXPECT_EQ(*append("a"), ErrorCode::coordinator_load_in_progress);
    run_jobs();
    const auto second = append("b");
    EXPECT_FALSE(second->has_value());
    run_jobs();
    EXPECT_EQ(*second, ErrorCode::none);
    runtime->submit(1, [](Counter&, Context&) { FAIL(); }, [](ErrorCode why) { EXPECT_EQ(why, ErrorCode::not_coordinator); });
    later = false;
}

TEST_F(RuntimeTest, ARequestRunsWhereItIsAskedUnlessALongerOneIsBeforeIt) {
    open();
    later = true;
    std::vector<std::string> order;
    const auto request = [&](std::string name, std::function<void()> also = [] {}) {
        runtime->request<int>("id", [](Coded<int>) {}, [&order, name, also](Counter&, Context&, const auto&) {
            order.push_back(name);
            also();
        });
    };
    request("first");
    EXPECT_THAT(order, ElementsAre("first"));
    runtime->submit(0, [&](Counter&, Context&) { order.emplace_back("submitted"); }, [](ErrorCode) { FAIL(); });
    request("behind it");
    EXPECT_THAT(order, ElementsAre("first"));
    run_jobs();
    EXPECT_THAT(order, ElementsAre("first", "submitted", "behind it"));

    order.clear();
    request("outer", [&] {
        request("inner");
        EXPECT_THAT(order, ElementsAre("outer")) << "one at a time";
        runtime->submit(0, [&](Counter&, Context&) { order.emplace_back("submitted"); }, [](ErrorCode) { FAIL(); });
        request("last");
    });
    EXPECT_THAT(order, ElementsAre("outer", "inner")) << "what is submitted is the executor's";
    run_jobs();
    EXPECT_THAT(order, ElementsAre("outer", "inner", "submitted", "last"));
    later = false;
}

TEST_F(RuntimeTest, ACallersThreadIsNotKeptByOthersRequests) {
    open();
    later = true;
    int ran = 0;
    std::function<void()> ask = [&] {
        runtime->request<int>("id", [](Coded<int>) {}, [&](Counter&, Context&, const auto&) {
            if (++ran < 1000) ask();
        });
    };
    ask();
    EXPECT_LT(ran, 100);
    later = false;
    run_jobs();
    EXPECT_EQ(ran, 1000);
}

TEST_F(RuntimeTest, WhatCannotBeLoadedIsNotServed) {
    open();
    append("a");
    runtime->stop();
    journal->batches.front()[40] ^= std::byte{1};   // under the CRC
    open();
    EXPECT_EQ(*append("b"), ErrorCode::not_coordinator);
    journal->batches.clear();
    runtime->stop();
    has_log = false;
    open();
    EXPECT_EQ(*append("b"), ErrorCode::not_coordinator);
}

TEST_F(RuntimeTest, ARecordThatTheMachineRefusesEndsTheLoad) {
    open();
    const auto bad = record("bad");
    runtime->submit(0, [&](Counter&, Context& context) { EXPECT_TRUE(context.write({&bad, 1}, {.replay = false}).has_value()); }, [](ErrorCode) {});
    runtime->stop();
    open();
    EXPECT_EQ(*append("b"), ErrorCode::not_coordinator);
}

TEST_F(RuntimeTest, AFailedAppendChangesNothing) {
    open();
    append("a");
    journal->fail_appends = Errc::no_space;
    EXPECT_EQ(*append("b"), ErrorCode::unknown_server_error);
    EXPECT_EQ(*append("c"), ErrorCode::unknown_server_error);
    journal->fail_appends.reset();
    EXPECT_EQ(*append("d"), ErrorCode::none);
    EXPECT_THAT(texts(), ElementsAre("a@0", "d@1"));
}

TEST_F(RuntimeTest, AnswersWaitForAllThatWasWrittenBefore) {
    open();
    journal->hold_syncs = true;
    const auto written = append("a");
    auto read = std::make_shared<std::optional<ErrorCode>>();
    runtime->submit(0, [read](Counter&, Context& context) { context.when_durable([read](ErrorCode code) { *read = code; }); }, [](ErrorCode) {});
    EXPECT_FALSE(written->has_value());
    EXPECT_FALSE(read->has_value());
    journal->sync();
    EXPECT_EQ(*written, ErrorCode::none);
    EXPECT_EQ(*read, ErrorCode::none);
}

TEST_F(RuntimeTest, AnAnswerThatWaitsForTooLongTimesOut) {
    open();
    journal->hold_syncs = true;
    const auto written = append("a");
    clock.advance(4999ms);
    runtime->tick();
    EXPECT_FALSE(written->has_value());
    clock.advance(1ms);
    runtime->tick();
    EXPECT_EQ(*written, ErrorCode::request_timed_out);
    journal->sync();
    EXPECT_EQ(*written, ErrorCode::request_timed_out);
    EXPECT_THAT(texts(), ElementsAre("a@0")) << "memory stays as it is";
}

TEST_F(RuntimeTest, AFailedSyncEndsThePartition) {
    open();
    journal->hold_syncs = true;
    const auto written = append("a");
    journal->sync(Error{Errc::io, "disk"});
    EXPECT_EQ(*written, ErrorCode::kafka_storage_error);
    EXPECT_EQ(*append("b"), ErrorCode::not_coordinator);
}

TEST_F(RuntimeTest, AStopAnswersWhoWaits) {
    open();
    journal->hold_syncs = true;
    const auto written = append("a");
    std::shared_ptr<ErrorCode> ended;
    runtime->submit(0, [&](Counter& machine, Context&) { ended = machine.ended; }, [](ErrorCode) {});
    runtime->stop();
    EXPECT_EQ(*ended, ErrorCode::coordinator_not_available);
    EXPECT_EQ(*written, ErrorCode::coordinator_not_available);
    EXPECT_EQ(*append("b"), ErrorCode::coordinator_not_available);
    journal->sync();
}

TEST_F(RuntimeTest, ATopicThatGoesTakesItsStateWithIt) {
    open();
    append("a");
    runtime->image_changed(std::make_shared<const metadata::Image>());
    EXPECT_EQ(runtime->partition_of("x"), std::nullopt);
    EXPECT_EQ(*append("b"), ErrorCode::not_coordinator);
}

TEST_F(RuntimeTest, BatchesAreAsKafkasCoordinatorWritesThem) {
    open();
    append("a");
    const auto one = record("c");
    runtime->submit(0, [&](Counter&, Context& context) { EXPECT_TRUE(context.write({&one, 1}, {.producer_id = 7, .producer_epoch = 3}).has_value()); }, [](ErrorCode) {});
    const auto plain = record::BatchView::parse(journal->batches[0]).value();
    EXPECT_EQ(plain.producer_id(), -1);
    EXPECT_EQ(plain.base_sequence(), 0);
    EXPECT_FALSE(plain.is_transactional());
    EXPECT_EQ(plain.timestamp_type(), record::TimestampType::create_time);
    EXPECT_EQ(plain.max_timestamp(), clock.now());
    const auto transactional = record::BatchView::parse(journal->batches[1]).value();
    EXPECT_TRUE(transactional.is_transactional());
    EXPECT_EQ(transactional.producer_id(), 7);
    EXPECT_EQ(transactional.producer_epoch(), 3);
    EXPECT_EQ(transactional.base_sequence(), 0);
}

TEST(GroupMachineLoad, SkipsTypesThatItDoesNotKnowAndRefusesVersions) {
    const auto load = [](std::vector<std::byte> key, std::vector<std::byte> value) {
        auto journal = std::make_shared<MemoryJournal>();
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, Timestamp{1}, Bytes{key}, Bytes{value});
        std::vector<std::byte> batch;
        builder.finish(batch);
        journal->add_raw(batch);
        TestGroups groups{{}, journal};
        return groups.heartbeat("m", 1);   // unknown_member_id when it is served
    };
    std::vector<std::byte> unknown_type;
    append_be<std::int16_t>(unknown_type, 999);
    EXPECT_EQ(load(unknown_type, {std::byte{0}}), ErrorCode::unknown_member_id);
    const auto good = record_of(protocol::OffsetCommitKey{.group = "g", .topic = "t"}, protocol::OffsetCommitValue{.offset = 1}, 4);
    EXPECT_EQ(load(good.key, *good.value), ErrorCode::unknown_member_id);
    auto version = *good.value;
    version[1] = std::byte{99};
    EXPECT_EQ(load(good.key, version), ErrorCode::not_coordinator);
    auto cut_value = *good.value;
    cut_value.resize(5);
    EXPECT_EQ(load(good.key, cut_value), ErrorCode::not_coordinator);
    auto cut_key = good.key;
    cut_key.resize(5);
    EXPECT_EQ(load(cut_key, *good.value), ErrorCode::not_coordinator);
    auto legacy = good.key;
    legacy[1] = std::byte{0};
    const auto old_value = record_of(protocol::OffsetCommitKey{}, protocol::OffsetCommitValue{.offset = 1}, 0);
    EXPECT_EQ(load(legacy, *old_value.value), ErrorCode::unknown_member_id);
}

TEST(GroupMachineLoad, TellsEachKindOfRequestInItsOwnWay) {
    TestGroups groups;
    groups.commit({.offset = 7});
    groups.hold_jobs = true;
    groups.restart();
    EXPECT_EQ(groups.heartbeat("m", 1), ErrorCode::none) << "a member is not to leave because its coordinator loads";
    EXPECT_EQ(groups.describe().error_code, ErrorCode::coordinator_load_in_progress);
    EXPECT_EQ(groups.describe().group_id, "g");
    EXPECT_EQ(groups.delete_group(), ErrorCode::coordinator_load_in_progress);
    EXPECT_EQ(groups.fetch().error, ErrorCode::coordinator_load_in_progress);
    EXPECT_EQ(groups.commit({.offset = 8}), ErrorCode::coordinator_load_in_progress);
    EXPECT_EQ(groups.join({}).failure(), ErrorCode::coordinator_load_in_progress);
    Asked<protocol::ListGroupsResponse> listed;
    groups->list({}, listed.reply());
    EXPECT_EQ(listed.failure(), ErrorCode::coordinator_load_in_progress) << "a list that may lack groups is none";
    groups.run_jobs();
    EXPECT_EQ(groups.heartbeat("m", 1), ErrorCode::unknown_member_id);
    EXPECT_EQ(groups.fetch(), (FetchedOffset{.offset = 7}));
    EXPECT_THAT(groups.list(), ElementsAre("g:Empty:classic"));
}

}  // namespace
}  // namespace tidemark::test
