// One partition's transactions: records out, answers when they are durable, markers, time, replay.
#include "coordinator/transaction/machine.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "metadata/image.h"

namespace tidemark::coordinator {
namespace {

using enum TransactionState;
using testing::ElementsAre;

const TopicPartition data0{"data", 0};
const TopicPartition data1{"data", 1};

/// What the machine sees of a log: batches of records, of which all are durable unless they are held.
class FakeContext final : public Context {
public:
    explicit FakeContext(std::int16_t transaction_version = 2) {
        auto image = std::make_shared<metadata::Image>();
        if (transaction_version > 0) image->features["transaction.version"] = transaction_version;
        image_ = std::move(image);
    }

    Timestamp now() const override { return clock.now(); }
    Moment moment() const override { return clock.since_boot(); }
    const metadata::ImagePtr& image() const override { return image_; }
    LeaderEpoch leader_epoch() const override { return 6; }
    Result<> write(std::span<const Record> records, const WriteOptions& options) override {
        if (failure) return Error{*failure};
        if (records.size() > records_max) return Error{Errc::too_large};
        batches.emplace_back(records.begin(), records.end());
        if (!options.replay) return {};
        for (const auto& record : records) TM_TRYV(machine->replay(replayed(record)));
        return {};
    }
    Result<> write(const Marker&) override { return Error{Errc::unsupported}; }
    void when_durable(std::function<void(ErrorCode)> done) override {
        if (holds) held.push_back(std::move(done));
        else done(ErrorCode::none);
    }

    static ReplayedRecord replayed(const Record& record) { return {.key = record.key, .value = record.value ? std::optional<Bytes>{*record.value} : std::nullopt}; }
    void release(ErrorCode outcome = ErrorCode::none) {
        holds = false;
        for (auto& done : std::exchange(held, {})) done(outcome);
    }

    ManualClock clock;
    TransactionMachine* machine = nullptr;
    std::vector<std::vector<Record>> batches;
    std::optional<Errc> failure;
    std::size_t records_max = 1000;
    bool holds = false;
    std::vector<std::function<void(ErrorCode)>> held;

private:
    metadata::ImagePtr image_;
};

class FakeSurroundings final : public TransactionSurroundings {
public:
    Coded<ProducerId> new_producer_id() override { return next_id++; }
    void send_markers(DueMarkers markers) override { due.push_back(std::move(markers)); }
    void decision_delayed(std::int32_t, std::string id) override { delayed.push_back(std::move(id)); }

    ProducerId next_id = 100;
    std::vector<DueMarkers> due;
    std::vector<std::string> delayed;
};

class TransactionMachineTest : public testing::Test {
protected:
    explicit TransactionMachineTest(std::int16_t transaction_version = 2) : context(transaction_version) { start(); }

    void start() {
        gauges = std::make_shared<TransactionGauges>();
        machine = std::make_unique<TransactionMachine>(3, options, surroundings, gauges);
        context.machine = machine.get();
    }
    /// What a start makes of everything that was written.
    void restart() {
        machine->unloaded(ErrorCode::coordinator_not_available);
        start();
        for (const auto& batch : context.batches) {
            for (const auto& record : batch) ASSERT_TRUE(machine->replay(FakeContext::replayed(record)));
        }
        machine->loaded(context);
    }

    // Each gives what was answered by then; an answer that the context holds back goes nowhere later.
    ProducerAnswer init(const std::string& id, ExpectedProducer expected = {}) {
        const auto answered = std::make_shared<ProducerAnswer>();
        machine->init_producer_id(context, id, 60'000, expected, [answered](const Coded<ProducerAnswer>& answer) { keep(*answered)(answer); });
        return *answered;
    }
    ErrorCode add(const std::string& id, Producer producer, std::set<TopicPartition> partitions) {
        const auto answered = std::make_shared<ErrorCode>(ErrorCode::unknown_server_error);
        machine->add_partitions(context, id, producer, partitions, 2, false, [answered](ErrorCode error) { *answered = error; });
        return *answered;
    }
    ProducerAnswer end(const std::string& id, Producer producer, bool commit, std::int16_t version = 5) {
        const auto answered = std::make_shared<ProducerAnswer>();
        machine->end_transaction(context, id, producer, commit, version, [answered](const Coded<ProducerAnswer>& answer) { keep(*answered)(answer); });
        return *answered;
    }
    std::optional<Transaction> find(const std::string& id) {
        ListAnswer answered;
        machine->list(context, id, [&](Coded<ListAnswer> answer) { answered = *std::move(answer); });
        return answered.transactions.empty() ? std::nullopt : std::optional{answered.transactions.front().transaction};
    }
    TransactionState state(const std::string& id) { return find(id).value_or(Transaction{.state = dead}).state; }
    /// The markers that are due for `id` have been written.
    void write_markers(const std::string& id) {
        const auto due = std::ranges::find(surroundings.due, id, &DueMarkers::id);
        ASSERT_NE(due, surroundings.due.end());
        const Producer producer{due->marker.producer_id, due->marker.producer_epoch};
        surroundings.due.erase(due);
        machine->markers_written(context, id, producer);
    }
    void advance(std::chrono::milliseconds time) {
        context.clock.advance(time);
        if (const auto next = machine->next_deadline(); next && *next <= context.moment()) machine->tick(context);
    }
    Transaction last_written() {
        const auto& record = context.batches.back().back();
        return *read_transaction_record(record.key, Bytes{*record.value}).value()->transaction;
    }

    template <class Answer>
    static Reply<Answer> keep(Answer& to) {
        return [&to](Coded<Answer> answer) {
            if (answer) to = *std::move(answer);
            else to.error = answer.error().code;
        };
    }

    TransactionOptions options;
    FakeContext context;
    FakeSurroundings surroundings;
    std::shared_ptr<TransactionGauges> gauges;
    std::unique_ptr<TransactionMachine> machine;
};

TEST_F(TransactionMachineTest, CommitsThroughPrepareMarkersAndComplete) {
    EXPECT_EQ(init("tx").producer_id, 100);
    EXPECT_EQ(add("tx", {100, 0}, {data0, data1}), ErrorCode::none);
    EXPECT_EQ(gauges->open.load(), 1);
    const auto ended = end("tx", {100, 0}, true);
    EXPECT_EQ(ended.producer_epoch, 1);

    ASSERT_EQ(surroundings.due.size(), 1u);
    const auto& due = surroundings.due.front();
    EXPECT_EQ(due.partition, 3);
    EXPECT_THAT(due.to, ElementsAre(data0, data1));
    EXPECT_EQ(due.marker.producer_epoch, 1);
    EXPECT_EQ(due.marker.coordinator_epoch, 6);
    EXPECT_EQ(due.marker.transaction_version, 2);
    EXPECT_TRUE(due.marker.commit);
    EXPECT_EQ(end("tx", {100, 0}, true).error, ErrorCode::concurrent_transactions);
    EXPECT_EQ(add("tx", {100, 1}, {data0}), ErrorCode::concurrent_transactions);

    write_markers("tx");
    EXPECT_EQ(state("tx"), complete_commit);
    EXPECT_EQ(gauges->open.load(), 0);
    EXPECT_EQ(gauges->committed.load(), 1u);
    EXPECT_EQ(end("tx", {100, 0}, true).producer_epoch, 1);
    EXPECT_EQ(add("tx", {100, 1}, {data0}), ErrorCode::none);
    EXPECT_EQ(context.batches.size(), 5u);   // empty, ongoing, prepare, complete, ongoing
}

TEST_F(TransactionMachineTest, AnswersAndMarkersWaitForTheDisk) {
    init("tx");
    add("tx", {100, 0}, {data0});
    context.holds = true;
    auto answered = ErrorCode::unknown_server_error;
    machine->end_transaction(context, "tx", {100, 0}, true, 5, [&](Coded<ProducerAnswer> answer) { answered = answer->error; });
    EXPECT_EQ(answered, ErrorCode::unknown_server_error);
    EXPECT_TRUE(surroundings.due.empty());
    context.release();
    EXPECT_EQ(answered, ErrorCode::none);
    EXPECT_EQ(surroundings.due.size(), 1u);
}

TEST_F(TransactionMachineTest, SendsMarkersAlsoWhenTheDiskTookTooLong) {
    init("tx");
    add("tx", {100, 0}, {data0});
    context.holds = true;
    end("tx", {100, 0}, true);
    context.release(ErrorCode::request_timed_out);
    EXPECT_TRUE(surroundings.due.empty());
    ASSERT_THAT(surroundings.delayed, ElementsAre("tx"));
    machine->send_markers_again(context, "tx");
    EXPECT_EQ(surroundings.due.size(), 1u);
}

TEST_F(TransactionMachineTest, UnknownIdsAreMappedToNobody) {
    EXPECT_EQ(add("tx", {100, 0}, {data0}), ErrorCode::invalid_producer_id_mapping);
    EXPECT_EQ(end("tx", {100, 0}, true).error, ErrorCode::invalid_producer_id_mapping);
    VerifyAnswer verified;
    machine->verify_partitions(context, "tx", {100, 0}, {data0}, keep(verified));
    EXPECT_EQ(verified.error, ErrorCode::invalid_producer_id_mapping);
    EXPECT_TRUE(context.batches.empty());
}

TEST_F(TransactionMachineTest, VerifiesEachPartition) {
    init("tx");
    add("tx", {100, 0}, {data0});
    VerifyAnswer verified;
    machine->verify_partitions(context, "tx", {100, 0}, {data0, data1}, keep(verified));
    EXPECT_EQ(verified.error, ErrorCode::none);
    EXPECT_THAT(verified.missing, ElementsAre(data1));
    end("tx", {100, 0}, true);
    machine->verify_partitions(context, "tx", {100, 1}, {data0}, keep(verified));
    EXPECT_EQ(verified.error, ErrorCode::concurrent_transactions);
    write_markers("tx");
    machine->verify_partitions(context, "tx", {100, 1}, {data0}, keep(verified));
    EXPECT_EQ(verified.error, ErrorCode::none);
    EXPECT_THAT(verified.missing, ElementsAre(data0));
}

TEST_F(TransactionMachineTest, WritesNothingForKnownPartitions) {
    init("tx");
    add("tx", {100, 0}, {data0});
    const auto before = context.batches.size();
    EXPECT_EQ(add("tx", {100, 0}, {data0}), ErrorCode::none);
    EXPECT_EQ(context.batches.size(), before);
}

TEST_F(TransactionMachineTest, AnEpochIsBumpedTwiceByAnInitDuringATransaction) {
    init("tx");
    for (int i = 0; i < 5; ++i) init("tx");
    EXPECT_EQ(add("tx", {100, 5}, {data0}), ErrorCode::none);
    EXPECT_EQ(init("tx").error, ErrorCode::concurrent_transactions);
    EXPECT_EQ(find("tx")->producer_epoch, 6);
    EXPECT_EQ(state("tx"), prepare_abort);
    write_markers("tx");
    EXPECT_EQ(init("tx").producer_epoch, 7);
}

TEST_F(TransactionMachineTest, APatientAddWaitsForTheCompletion) {
    init("tx");
    add("tx", {100, 0}, {data0});
    end("tx", {100, 0}, true);
    std::vector<ErrorCode> answers;
    const auto patient = [&] { machine->add_partitions(context, "tx", {100, 1}, {data1}, 2, true, [&](ErrorCode error) { answers.push_back(error); }); };
    patient();
    EXPECT_TRUE(answers.empty());
    write_markers("tx");
    EXPECT_THAT(answers, ElementsAre(ErrorCode::none));
    EXPECT_EQ(state("tx"), ongoing);
}

TEST_F(TransactionMachineTest, APatientAddGivesUpInTime) {
    init("tx");
    add("tx", {100, 0}, {data0});
    end("tx", {100, 0}, true);
    std::vector<ErrorCode> answers;
    machine->add_partitions(context, "tx", {100, 1}, {data1}, 2, true, [&](ErrorCode error) { answers.push_back(error); });
    advance(std::chrono::milliseconds{99});
    EXPECT_TRUE(answers.empty());
    machine->add_partitions(context, "tx", {100, 1}, {data1}, 2, true, [&](ErrorCode error) { answers.push_back(error); });
    advance(std::chrono::milliseconds{1});
    EXPECT_THAT(answers, ElementsAre(ErrorCode::concurrent_transactions));
    advance(std::chrono::milliseconds{99});
    EXPECT_EQ(answers.size(), 2u);
    write_markers("tx");
    EXPECT_EQ(answers.size(), 2u);
}

TEST_F(TransactionMachineTest, UnloadingAnswersThoseWhoWait) {
    init("tx");
    add("tx", {100, 0}, {data0});
    end("tx", {100, 0}, true);
    auto answered = ErrorCode::none;
    machine->add_partitions(context, "tx", {100, 1}, {data1}, 2, true, [&](ErrorCode error) { answered = error; });
    machine->unloaded(ErrorCode::not_coordinator);
    EXPECT_EQ(answered, ErrorCode::not_coordinator);
}

TEST_F(TransactionMachineTest, AFailedAppendChangesNothing) {
    context.failure = Errc::io;
    EXPECT_EQ(init("tx").error, ErrorCode::not_coordinator);
    EXPECT_EQ(find("tx"), std::nullopt);
    context.failure.reset();
    init("tx");
    add("tx", {100 + 1, 0}, {data0});
    context.failure = Errc::not_found;
    EXPECT_EQ(end("tx", {101, 0}, true).error, ErrorCode::coordinator_not_available);
    context.failure = Errc::too_large;
    EXPECT_EQ(end("tx", {101, 0}, true).error, ErrorCode::unknown_server_error);
    EXPECT_EQ(state("tx"), ongoing);
    EXPECT_TRUE(surroundings.due.empty());
    context.failure.reset();
    EXPECT_EQ(end("tx", {101, 0}, true).error, ErrorCode::none);
}

TEST_F(TransactionMachineTest, ACompletionThatCannotBeWrittenIsTriedAgain) {
    init("tx");
    add("tx", {100, 0}, {data0});
    end("tx", {100, 0}, true);
    context.failure = Errc::no_space;
    write_markers("tx");
    EXPECT_EQ(state("tx"), prepare_commit);
    advance(std::chrono::seconds{1});
    EXPECT_EQ(state("tx"), prepare_commit);
    context.failure.reset();
    advance(std::chrono::seconds{1});
    EXPECT_EQ(state("tx"), complete_commit);
    const auto written = context.batches.size();
    advance(std::chrono::seconds{1});
    EXPECT_EQ(context.batches.size(), written);
}

TEST_F(TransactionMachineTest, CompletionIsWrittenOnce) {
    init("tx");
    add("tx", {100, 0}, {data0});
    end("tx", {100, 0}, true);
    write_markers("tx");
    const auto written = context.batches.size();
    machine->markers_written(context, "tx", {100, 1});   // of an earlier sender
    EXPECT_EQ(context.batches.size(), written);
}

TEST_F(TransactionMachineTest, TransactionsPastTheirTimeAreAborted) {
    init("tx");
    machine->loaded(context);
    add("tx", {100, 0}, {data0});
    advance(std::chrono::seconds{60});   // not yet: at the timeout is not past it
    EXPECT_EQ(state("tx"), ongoing);
    context.failure = Errc::no_space;
    advance(std::chrono::seconds{10});
    EXPECT_EQ(state("tx"), ongoing);
    EXPECT_EQ(find("tx")->producer_epoch, 0);
    context.failure.reset();
    advance(std::chrono::seconds{10});
    EXPECT_EQ(state("tx"), prepare_abort);
    EXPECT_EQ(gauges->timed_out.load(), 1u);
    write_markers("tx");
    EXPECT_EQ(end("tx", {100, 0}, true).error, ErrorCode::invalid_txn_state);
    EXPECT_EQ(end("tx", {100, 0}, false).producer_epoch, 1);
}

TEST_F(TransactionMachineTest, ExpiredIdsLeaveInBatchesThatFit) {
    machine->loaded(context);
    for (int i = 0; i < 5; ++i) init("tx" + std::to_string(i));
    init("running");
    add("running", {105, 0}, {data0});
    end("running", {105, 0}, true);   // its markers never come
    context.records_max = 2;
    const auto before = context.batches.size();
    advance(std::chrono::milliseconds{options.expiration_ms});
    EXPECT_EQ(gauges->ids.load(), 1);
    EXPECT_EQ(gauges->expired_ids.load(), 5u);
    EXPECT_EQ(context.batches.size() - before, 3u);
    EXPECT_EQ(add("tx0", {100, 0}, {data0}), ErrorCode::invalid_producer_id_mapping);
    EXPECT_EQ(init("tx0", {.id = 100, .epoch = 0}).producer_id, 106);
    restart();
    EXPECT_EQ(gauges->ids.load(), 2);
}

TEST_F(TransactionMachineTest, ExpiredIdsThatCannotBeRemovedStayUsable) {
    machine->loaded(context);
    init("tx");
    context.failure = Errc::io;
    advance(std::chrono::milliseconds{options.expiration_ms});
    context.failure.reset();
    EXPECT_EQ(init("tx").producer_epoch, 1);
}

TEST_F(TransactionMachineTest, ARestartKeepsWhatWasWritten) {
    init("idle");
    init("running");
    add("running", {101, 0}, {data0});
    const auto before = find("running");
    restart();
    EXPECT_EQ(find("running"), before);
    EXPECT_EQ(state("idle"), empty);
    EXPECT_TRUE(surroundings.due.empty());
    EXPECT_EQ(gauges->open.load(), 1);
    EXPECT_EQ(add("running", {101, 0}, {data0}), ErrorCode::none);
    EXPECT_EQ(end("running", {101, 0}, true).producer_epoch, 1);
}

TEST_F(TransactionMachineTest, ARestartFinishesWhatWasDecided) {
    for (const auto* id : {"commit", "abort"}) init(id);
    add("commit", {100, 0}, {data0, data1});
    add("abort", {101, 0}, {data1});
    end("commit", {100, 0}, true);
    end("abort", {101, 0}, false);
    surroundings.due.clear();
    context.clock.advance(std::chrono::seconds{5});
    const auto loaded_at = context.now();
    restart();
    ASSERT_EQ(surroundings.due.size(), 2u);
    EXPECT_EQ(init("commit").error, ErrorCode::concurrent_transactions);
    context.clock.advance(std::chrono::seconds{5});
    write_markers("commit");
    EXPECT_EQ(last_written().state, complete_commit);
    EXPECT_EQ(last_written().last_update, loaded_at);
    write_markers("abort");
    EXPECT_EQ(state("abort"), complete_abort);
    EXPECT_EQ(end("commit", {100, 0}, true).producer_epoch, 1);   // a retry whose first answer was lost
}

TEST_F(TransactionMachineTest, ARestartHonoursTheNextProducerId) {
    const Transaction decided{.producer_id = 7, .producer_epoch = 32767, .previous_producer_id = 7, .next_producer_id = 9, .timeout_ms = 1000, .state = prepare_commit,
                              .partitions = {data0}, .start = Timestamp{5}, .last_update = Timestamp{6}, .client_version = 2};
    context.batches.push_back({transaction_record("tx", decided, 2)});
    restart();
    write_markers("tx");
    EXPECT_EQ(find("tx")->producer_id, 9);
    EXPECT_EQ(find("tx")->producer_epoch, 0);
}

class TransactionMachineAtLevel1 : public TransactionMachineTest {
protected:
    TransactionMachineAtLevel1() : TransactionMachineTest(1) {}
};

TEST_F(TransactionMachineAtLevel1, AFenceThatCannotBeWrittenBumpsOnce) {
    init("tx");
    add("tx", {100, 0}, {data0});
    context.failure = Errc::io;
    init("tx");
    EXPECT_EQ(find("tx")->producer_epoch, 1);
    init("tx");
    EXPECT_EQ(find("tx")->producer_epoch, 1);
    context.failure.reset();
    EXPECT_EQ(init("tx").error, ErrorCode::concurrent_transactions);
    ASSERT_EQ(surroundings.due.size(), 1u);
    EXPECT_EQ(surroundings.due.front().marker.producer_epoch, 1);
    EXPECT_EQ(surroundings.due.front().marker.transaction_version, 0);
    write_markers("tx");
    EXPECT_EQ(init("tx").producer_epoch, 2);
}

}  // namespace
}  // namespace tidemark::coordinator
