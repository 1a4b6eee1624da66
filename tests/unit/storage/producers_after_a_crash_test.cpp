#include "tests/support/storage_log.h"

namespace tidemark {
namespace {

using test::StorageLog;

constexpr ProducerId producer = 7;

/// One record as the producer first sent it, in a batch of its own.
Result<storage::AppendInfo> send(StorageLog& log, Sequence sequence) {
    record::BatchBuilder builder;
    builder.start({.producer_id = producer, .producer_epoch = 0, .base_sequence = sequence});
    builder.append(Offset{0}, log.clock.now(), std::nullopt, as_bytes("again"));
    std::vector<std::byte> batch;
    builder.finish(batch);
    return log.append_as_client(batch);
}

void expect_duplicates(StorageLog& log, Sequence first, Sequence last) {
    const auto before = log.text();
    for (Sequence sequence = first; sequence <= last; ++sequence) {
        const auto sent = send(log, sequence);
        ASSERT_TRUE(sent) << "sequence " << sequence << ": " << sent.error().message();
        EXPECT_TRUE(sent->duplicate) << "sequence " << sequence;
    }
    EXPECT_EQ(log.text(), before);
}

TEST(ProducersAfterACrash, AllFiveLastBatchesAreRecognised) {
    StorageLog log;
    log.append_as(producer, "a=0 a=1 a=2 a=3 a=4 a=5");
    log.crash_and_reopen();
    expect_duplicates(log, 1, 5);
    EXPECT_EQ(send(log, 0).error().code, Errc::out_of_order_sequence);
    EXPECT_TRUE(send(log, 6));
}

TEST(ProducersAfterACrash, BatchesBeforeARollAreRecognisedToo) {
    StorageLog log;
    log.append_as(producer, "a=0 a=1 a=2 | a=3 | a=4");
    log.crash_and_reopen(Offset{4});
    expect_duplicates(log, 0, 4);
}

TEST(ProducersAfterACrash, BatchesBelowManyOthersAreRecognisedToo) {
    StorageLog log;
    log.append_as(producer, "a=0 a=1 a=2");
    const std::string large(100'000, 'x');
    for (int i = 0; i < 30; ++i) log.append_as(8, (i == 15 ? "| b=" : "b=") + large);
    log.crash_and_reopen();
    expect_duplicates(log, 0, 2);
}

TEST(ProducersAfterACrash, AnEpochThatHasPassedIsNotRemembered) {
    StorageLog log;
    log.append_as(producer, "a=0 a=1", 0);
    log.append_as(producer, "a=2 a=3", 1);
    log.crash_and_reopen();
    EXPECT_EQ(send(log, 0).error().code, Errc::invalid_producer_epoch);
}

TEST(ProducersAfterACrash, KafkaKnowsTheLastOneOnly) {
    StorageLog log{{.storage = {.log_dirs = {}, .differences = {.recall_batches = false}}}};
    log.append_as(producer, "a=0 a=1 a=2");
    log.crash_and_reopen();
    expect_duplicates(log, 2, 2);
    EXPECT_EQ(send(log, 1).error().code, Errc::out_of_order_sequence);
}

}  // namespace
}  // namespace tidemark
