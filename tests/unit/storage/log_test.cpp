#include "storage/log.h"

#include <random>

#include "base/bytes.h"
#include "record/control.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

using test::StorageLog;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LogConfig tiny(std::int64_t segment_bytes = 1 << 20) {
    LogConfig config;
    config.segment_bytes = segment_bytes;
    config.index_interval_bytes = 100;
    config.segment_index_bytes = 1000;
    config.timestamp_after_max_ms = unlimited;
    return config;
}

std::vector<std::byte> batch_of(const record::BatchOptions& options, int records, Timestamp timestamp = Timestamp{1'700'000'000'000}) {
    record::BatchBuilder builder;
    builder.start(options);
    for (int i = 0; i < records; ++i) builder.append(options.base_offset + i, timestamp, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

// --- append and roll ---------------------------------------------------------------------------------------------------

TEST(Log, KeepsWhatIsAppendedOverAStop) {
    StorageLog log;
    log.append("a=1 [b=1 c=~] | a=2");
    EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=~] | 3:a=2");
    EXPECT_EQ(log->log_end_offset(), Offset{4});
    log.reopen();
    EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=~] | 3:a=2");
    EXPECT_EQ(log.read(Offset{0}), "0:a=1 [1:b=1 2:c=~] 3:a=2");
    log.append("d=1");
    EXPECT_EQ(log.text(), "0:a=1 [1:b=1 2:c=~] | 3:a=2 4:d=1");
    EXPECT_EQ(log.read(Offset{3}), "3:a=2 4:d=1");
}

TEST(Log, ItsFilesAreKafkas) {
    // Twelve batches of one record, segments of 400 bytes: the listing of log-directory 9.
    StorageLog log{{.config = tiny(400)}};
    for (int i = 0; i < 12; ++i) log.append("k=" + std::string(i % 2 == 0 ? "abc" : "abcd"));
    EXPECT_THAT(log.file_names(), ElementsAre("00000000000000000000.index", "00000000000000000000.log", "00000000000000000000.timeindex",
                                              "00000000000000000005.index", "00000000000000000005.log", "00000000000000000005.snapshot",
                                              "00000000000000000005.timeindex", "00000000000000000010.log", "00000000000000000010.snapshot",
                                              "leader-epoch-checkpoint", "partition.metadata"));
    const auto index = *io::read_whole(log.files(), io::join(log.path(), "00000000000000000000.index"));
    ASSERT_EQ(index.size(), 16u);
    EXPECT_EQ(load_be<std::int32_t>(index.data()), 2);
    EXPECT_EQ(load_be<std::int32_t>(index.data() + 8), 4);
    ASSERT_TRUE(log->flush());
    EXPECT_EQ(log.files().status(io::join(log.path(), "00000000000000000010.index")).value()->bytes, 1000);
    EXPECT_EQ(log.files().status(io::join(log.path(), "00000000000000000010.timeindex")).value()->bytes, 996);
    EXPECT_EQ(as_text(*io::read_whole(log.files(), io::join(log.path(), "leader-epoch-checkpoint"))), "0\n1\n0 0\n");
    EXPECT_EQ(log->recovery_point(), Offset{12});
}

TEST(Log, RollsAtAnExactFitOnlyWhenOneByteIsMissing) {
    const auto size = static_cast<std::int64_t>(batch_of({}, 1).size());
    StorageLog log{{.config = tiny(3 * size)}};
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(log.append_as_client(batch_of({}, 1)));
    EXPECT_EQ(log->segments()->size(), 1u);
    ASSERT_TRUE(log.append_as_client(batch_of({}, 1)));
    EXPECT_EQ(log->segments()->size(), 2u);
    EXPECT_EQ(log->segments()->back()->base_offset(), Offset{3});
}

TEST(Log, TheLagOfACompactedTopicRollsToo) {
    auto config = tiny();
    config.compacts = true;
    config.max_compaction_lag_ms = 1000;
    StorageLog log{{.config = config}};
    log.append("a=1@0 a=2@1000 a=3@1001");
    EXPECT_EQ(log.text(), "0:a=1 1:a=2 | 2:a=3");
}

TEST(Log, RefusesWhatIsTooLarge) {
    auto config = tiny(500);
    config.max_message_bytes = 200;
    StorageLog log{{.config = config}};
    const auto large = batch_of({}, 20);
    EXPECT_EQ(log.append_as_client(large).error().code, Errc::too_large);
    config.max_message_bytes = 10'000;
    log.set_config(config);
    EXPECT_TRUE(log.append_as_client(batch_of({}, 1)));
    auto huge = batch_of({}, 70);
    ASSERT_GT(huge.size(), 500u);
    EXPECT_EQ(log.append_as_client(huge).error().code, Errc::batch_set_too_large);
    EXPECT_EQ(log->segments()->size(), 1u);
    config.max_message_bytes = 200;
    config.segment_bytes = 10'000;
    log.set_config(config);
    EXPECT_TRUE(log.append_batch(batch_of({.base_offset = Offset{1}}, 20)));  // a follower takes it
}

TEST(Log, ACompactedTopicWantsKeys) {
    auto config = tiny();
    config.compacts = true;
    StorageLog log{{.config = config}};
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, Timestamp{1}, as_bytes("k"), as_bytes("v"));
    builder.append(Offset{1}, Timestamp{1}, std::nullopt, as_bytes("v"));
    std::vector<std::byte> batch;
    builder.finish(batch);
    std::vector<RecordError> rejected;
    const auto refused = log->append(batch, {.rejected = &rejected});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::invalid_record);
    ASSERT_EQ(rejected.size(), 1u);
    EXPECT_EQ(rejected[0].index, 1);
    EXPECT_EQ(log->log_end_offset(), Offset{0});
}

TEST(Log, AppendTimeIsTheBrokers) {
    auto config = tiny();
    config.timestamp_type = record::TimestampType::log_append_time;
    StorageLog log{{.config = config}};
    auto batch = batch_of({}, 2, Timestamp{5});
    const auto appended = log->append(batch, {});
    ASSERT_TRUE(appended);
    EXPECT_EQ(appended->log_append_time, log.clock.now());
    EXPECT_EQ(appended->max_timestamp, log.clock.now());
    EXPECT_EQ(log->offset_for_time(log.clock.now(), Isolation::log_end).value()->offset, Offset{0});
}

TEST(Log, AWrongLargestTimestampIsPutRight) {
    for (const std::int64_t lie : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{999'999}}) {
        for (const auto codec : {record::Codec::none, record::Codec::gzip}) {
            StorageLog log{{.config = tiny()}};
            record::BatchBuilder builder;
            builder.start({.codec = codec});
            for (const auto& [offset, time] : {std::pair{0, 1000}, {1, 5000}, {2, 3000}}) builder.append(Offset{offset}, Timestamp{time}, as_bytes("k"), as_bytes("v"));
            std::vector<std::byte> batch;
            builder.finish(batch);
            record::in_place::set_max_timestamp(batch, record::TimestampType::create_time, Timestamp{lie});
            ASSERT_TRUE(log.append_as_client(batch));
            EXPECT_EQ(log->offset_for_time(Timestamp{4000}, Isolation::log_end).value()->offset, Offset{1});
            EXPECT_EQ(log->offset_of_max_timestamp(Isolation::log_end).value()->timestamp, Timestamp{5000});
            EXPECT_EQ(log->segments()->front()->largest_record_timestamp().value(), Timestamp{5000});
        }
    }
}

TEST(Log, AFollowersOffsetsAreItsLeaders) {
    StorageLog log{{.config = tiny()}};
    ASSERT_TRUE(log.append_batch(batch_of({.base_offset = Offset{5}, .leader_epoch = 1}, 2)));
    EXPECT_EQ(log->log_end_offset(), Offset{7});
    EXPECT_EQ(log.append_batch(batch_of({.base_offset = Offset{6}, .leader_epoch = 1}, 2)).error().code, Errc::unexpected_offset);
    auto two = batch_of({.base_offset = Offset{20}}, 1);
    append_bytes(two, batch_of({.base_offset = Offset{10}}, 1));
    EXPECT_EQ(log.append_batch(two).error().code, Errc::unexpected_offset);
    ASSERT_TRUE(log.append_batch(batch_of({.base_offset = Offset{3'000'000'000}, .leader_epoch = 2}, 1)));  // too far: a new segment
    EXPECT_EQ(log->segments()->back()->base_offset(), Offset{3'000'000'000});
    log.reopen();
    EXPECT_EQ(log->log_end_offset(), Offset{3'000'000'001});
    EXPECT_EQ(log->end_of_epoch(1), (EpochEnd{1, Offset{3'000'000'000}}));
}

TEST(Log, ARejectedAppendDoesNotRoll) {
    StorageLog log{{.config = tiny(200)}};
    log.append_as(7, "a=1 a=2");
    const auto out_of_order = batch_of({.producer_id = 7, .producer_epoch = 0, .base_sequence = 9}, 2);
    EXPECT_EQ(log.append_as_client(out_of_order).error().code, Errc::out_of_order_sequence);
    EXPECT_EQ(log->segments()->size(), 1u);
    // Kafka's side (D15): the segment that was rolled for it stays.
    StorageLog kafka{{.config = tiny(200), .storage = {.differences = Differences::none()}}};
    kafka.append_as(7, "a=1 a=2");
    EXPECT_EQ(kafka.append_as_client(out_of_order).error().code, Errc::out_of_order_sequence);
    EXPECT_EQ(kafka->segments()->size(), 2u);
}

// --- idempotence and transactions --------------------------------------------------------------------------------------

TEST(Log, ARepeatedBatchIsAnsweredFromTheFirst) {
    StorageLog log{{.config = tiny()}};
    const auto batch = [](Sequence sequence) { return batch_of({.producer_id = 7, .producer_epoch = 0, .base_sequence = sequence}, 2); };
    for (Sequence s = 0; s < 14; s += 2) ASSERT_TRUE(log.append_as_client(batch(s)));
    for (Sequence s = 4; s < 14; s += 2) {
        const auto again = log.append_as_client(batch(s));
        ASSERT_TRUE(again) << s;
        EXPECT_TRUE(again->duplicate);
        EXPECT_EQ(again->first_offset, Offset{s});
        EXPECT_EQ(again->last_offset, Offset{s + 1});
    }
    EXPECT_EQ(log.append_as_client(batch(2)).error().code, Errc::out_of_order_sequence);  // the sixth from the end is forgotten
    EXPECT_EQ(log->log_end_offset(), Offset{14});
    log.reopen();
    EXPECT_TRUE(log.append_as_client(batch(12))->duplicate);  // a snapshot keeps the last one
    EXPECT_EQ(log.append_as_client(batch(10)).error().code, Errc::out_of_order_sequence);
    EXPECT_TRUE(log.append_as_client(batch(14)));
}

TEST(Log, ReadCommittedStopsAtTheOpenTransaction) {
    StorageLog log{{.config = tiny()}};
    log.append("p=0@0 p=1@1 p=2@2 p=3@3 p=4@4");
    log.append_in_transaction(7, "t=5@5 t=6@6 t=7@7");
    EXPECT_EQ(log->last_stable_offset(), Offset{5});
    EXPECT_EQ(log->high_watermark(), Offset{8});
    EXPECT_EQ(log->latest_offset(Isolation::read_committed).offset, Offset{5});
    EXPECT_EQ(log->latest_offset(Isolation::read_uncommitted).offset, Offset{8});
    const auto by_time = [&](Isolation isolation) { return log->offset_for_time(log.start + 6, isolation).value(); };
    EXPECT_EQ(by_time(Isolation::read_committed), std::nullopt);
    EXPECT_EQ(by_time(Isolation::read_uncommitted)->offset, Offset{6});
    EXPECT_EQ(log.read(Offset{3}, Isolation::read_committed), "3:p=3 4:p=4");
    EXPECT_EQ(log->read({.from = Offset{6}, .isolation = Isolation::read_committed}).value().bytes, 0);
    log.commit(7);
    EXPECT_EQ(log->latest_offset(Isolation::read_committed).offset, Offset{9});
    EXPECT_EQ(by_time(Isolation::read_committed)->offset, Offset{6});
    EXPECT_EQ(log.read(Offset{4}, Isolation::read_committed), "4:p=4 5:t=5 6:t=6 7:t=7 8:commit/7");
}

TEST(Log, AbortedTransactionsAreToldToReaders) {
    StorageLog log{{.config = tiny()}};
    log.append_in_transaction(1, "a=1");
    log.append_in_transaction(2, "b=1");
    log.append_in_transaction(3, "c=1");
    log.abort(2);
    log.append_in_transaction(1, "a=2");
    log.commit(3);
    log.abort(1);
    const auto slice = log->read({.from = Offset{0}, .isolation = Isolation::read_committed}).value();
    EXPECT_THAT(slice.aborted, ElementsAre(AbortedTransaction{2, Offset{1}, Offset{3}, Offset{0}}, AbortedTransaction{1, Offset{0}, Offset{6}, Offset{7}}));
    log.reopen();
    EXPECT_EQ(log->read({.from = Offset{0}, .isolation = Isolation::read_committed}).value().aborted.size(), 2u);
    EXPECT_THAT(log->read({.from = Offset{0}}).value().aborted, IsEmpty());
    EXPECT_EQ(log->aborted_between(Offset{0}, Offset{7}).size(), 2u);
}

TEST(Log, AnAbortOverSegmentsIsToldWithTheFirst) {
    StorageLog log{{.config = tiny()}};
    log.append_in_transaction(1, "a=1 | a=2 | a=3 |");
    log.abort(1);
    const auto slice = log->read({.from = Offset{0}, .bytes_max = 1, .isolation = Isolation::read_committed}).value();
    EXPECT_THAT(slice.aborted, ElementsAre(AbortedTransaction{1, Offset{0}, Offset{3}, Offset{4}}));
}

TEST(Log, AnOpenTransactionSurvivesAnyStop) {
    StorageLog log{{.config = tiny()}};
    log.append_in_transaction(1, "a=1 | a=2");
    log.append("p=1");
    EXPECT_EQ(log->last_stable_offset(), Offset{0});
    log.reopen();
    EXPECT_EQ(log->read({.from = Offset{0}, .isolation = Isolation::read_committed}).value().bytes, 0);
    EXPECT_EQ(log->last_stable_offset(), Offset{0});
    log.crash_and_reopen();
    EXPECT_EQ(log->last_stable_offset(), Offset{0});
    log.append_in_transaction(1, "a=3");
    log.abort(1);
    EXPECT_EQ(log->last_stable_offset(), Offset{5});
}

TEST(Log, AnUnverifiedTransactionIsRefused) {
    StorageLog log{{.config = tiny()}};
    auto batch = batch_of({.producer_id = 7, .producer_epoch = 0, .base_sequence = 0, .transactional = true}, 1);
    EXPECT_EQ(log->append(batch, {.transaction_verified = false}).error().code, Errc::invalid_transaction_state);
    EXPECT_TRUE(log->append(batch, {.transaction_verified = true}));
    auto next = batch_of({.producer_id = 7, .producer_epoch = 0, .base_sequence = 1, .transactional = true}, 1);
    EXPECT_TRUE(log->append(next, {.transaction_verified = false}));  // it is open already
}

VerificationId verification_of(StorageLog& log, const VerificationRequest& request) {
    const auto begun = log->begin_verification(request);
    EXPECT_TRUE(begun && *begun);
    return begun && *begun ? **begun : VerificationId{};
}

std::vector<std::byte> transactional_batch(ProducerEpoch epoch, Sequence first) {
    return batch_of({.producer_id = 7, .producer_epoch = epoch, .base_sequence = first, .transactional = true}, 1);
}

TEST(Log, AVerifiedTransactionBeginsOnce) {
    StorageLog log{{.config = tiny()}};
    const auto id = verification_of(log, {.producer_id = 7, .epoch = 0, .first_sequence = 0});
    auto batch = transactional_batch(0, 0);
    EXPECT_TRUE(log->append(batch, {.transaction_verified = false, .verification = id}));
    EXPECT_EQ(log->begin_verification({.producer_id = 7, .epoch = 0, .first_sequence = 1}).value(), std::nullopt);   // open: nobody is asked
    EXPECT_EQ(log->begin_verification({.producer_id = 7, .epoch = -1}).error().code, Errc::invalid_producer_epoch);
}

TEST(Log, AMarkerVoidsTheVerificationOfItsTransaction) {
    StorageLog log{{.config = tiny()}};
    const auto id = verification_of(log, {.producer_id = 7, .epoch = 0, .first_sequence = 0});
    log.abort(7);
    auto late = transactional_batch(0, 0);
    EXPECT_EQ(log->append(late, {.transaction_verified = false, .verification = id}).error().code, Errc::invalid_transaction_state);
    EXPECT_NE(verification_of(log, {.producer_id = 7, .epoch = 0, .first_sequence = 0}), id);
}

TEST(Log, AMarkerLeavesTheVerificationOfTheNextTransaction) {
    StorageLog log{{.config = tiny()}};
    auto first = transactional_batch(0, 0);
    ASSERT_TRUE(log->append(first, {}));
    // The client knows the next epoch before the marker with it has come here.
    const auto id = verification_of(log, {.producer_id = 7, .epoch = 1, .first_sequence = 0, .bumps_epochs = true});
    std::vector<std::byte> marker;
    record::write_marker({.producer_id = 7, .producer_epoch = 1}, marker);
    ASSERT_TRUE(log->append(marker, {.origin = Origin::coordinator, .transaction_version = 2}));
    auto next = transactional_batch(1, 0);
    EXPECT_TRUE(log->append(next, {.transaction_verified = false, .verification = id}));
}

TEST(Log, AVerifiedProducerThatIsNewHereBeginsAtItsLowestSequence) {
    StorageLog log{{.config = tiny()}};
    const auto bumping = verification_of(log, {.producer_id = 7, .epoch = 0, .first_sequence = 5, .bumps_epochs = true});
    auto batch = transactional_batch(0, 5);
    EXPECT_EQ(log->append(batch, {.verification = bumping}).error().code, Errc::out_of_order_sequence);

    StorageLog other{{.config = tiny()}};
    verification_of(other, {.producer_id = 7, .epoch = 0, .first_sequence = 3});
    const auto id = verification_of(other, {.producer_id = 7, .epoch = 0, .first_sequence = 5});
    batch = transactional_batch(0, 5);
    EXPECT_EQ(other->append(batch, {.transaction_verified = false, .verification = id}).error().code, Errc::out_of_order_sequence);
    batch = transactional_batch(0, 3);
    EXPECT_TRUE(other->append(batch, {.transaction_verified = false, .verification = id}));
}

TEST(Log, TheStableOffsetIsReplacedWhenItsRecordsAreGone) {
    StorageLog log{{.config = tiny()}};
    log.append_in_transaction(1, "a=1");
    log.append("[b=1 b=2 b=3] c=1");
    ASSERT_TRUE(log->delete_records_before(Offset{2}));
    EXPECT_EQ(log->last_stable_offset(), Offset{1});  // the batch that straddles the log start
    ASSERT_TRUE(log->delete_records_before(Offset{4}));
    EXPECT_EQ(log->last_stable_offset(), Offset{4});
}

// --- read --------------------------------------------------------------------------------------------------------------

TEST(Log, ReadsFromTheBatchThatHoldsTheOffset) {
    StorageLog log{{.codec = record::Codec::gzip, .config = tiny()}};
    log.append("a=1 [b=1 b=2 b=3] | c=1");
    EXPECT_EQ(log.read(Offset{2}), "[1:b=1 2:b=2 3:b=3] 4:c=1");
    EXPECT_EQ(log.read(Offset{4}), "4:c=1");
    EXPECT_EQ(log.read(Offset{5}), "");
    EXPECT_EQ(log->read({.from = Offset{6}}).error().code, Errc::offset_out_of_range);
    EXPECT_EQ(log->read({.from = Offset{-1}}).error().code, Errc::offset_out_of_range);
}

TEST(Log, TheFirstBatchComesWholeOrNot) {
    StorageLog log{{.config = tiny()}};
    log.append("[a=1 a=2 a=3] b=1");
    const auto whole = log->segments()->front()->batch_at(FilePosition{0}).value()->bytes;
    EXPECT_EQ(log->read({.from = Offset{0}, .bytes_max = 1}).value().bytes, whole);
    EXPECT_EQ(log->read({.from = Offset{0}, .bytes_max = 1, .first_batch_whole = false}).value().bytes, 1);
    EXPECT_EQ(log->read({.from = Offset{0}, .bytes_max = whole + 5}).value().bytes, whole + 5);  // the second is cut: clients drop it
}

TEST(Log, ReadsEndAtTheHighWatermark) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 a=2 | a=3 a=4");
    log->set_high_watermark(Offset{3});
    EXPECT_EQ(log.read(Offset{0}), "0:a=1 1:a=2 2:a=3");
    EXPECT_EQ(log->read({.from = Offset{3}}).value().bytes, 0);
    EXPECT_EQ(log.read(Offset{0}, Isolation::log_end), "0:a=1 1:a=2 2:a=3 3:a=4");
    log->set_high_watermark(Offset{99});
    EXPECT_EQ(log->high_watermark(), Offset{4});
    log->set_high_watermark(Offset{-5});
    EXPECT_EQ(log->high_watermark(), Offset{0});
    EXPECT_EQ(log.read(Offset{0}), "");
}

TEST(Log, CountsWhatAWaitingFetchWouldGet) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2 a=3");
    const auto total = log->stats().bytes;
    EXPECT_EQ(log->available(Offset{0}, 1 << 20, Isolation::read_uncommitted).value(), total);
    EXPECT_EQ(log->available(Offset{0}, 10, Isolation::read_uncommitted).value(), 10);
    EXPECT_EQ(log->available(Offset{3}, 1 << 20, Isolation::read_uncommitted).value(), 0);
    EXPECT_LT(log->available(Offset{2}, 1 << 20, Isolation::read_uncommitted).value(), total / 2);
}

TEST(Log, GapsReadOnToWhatFollows) {
    StorageLog log{{.config = tiny()}};
    for (const std::int64_t base : {0, 10, 20}) ASSERT_TRUE(log.append_batch(batch_of({.base_offset = Offset{base}}, 2)));
    ASSERT_TRUE(log->roll());
    ASSERT_TRUE(log.append_batch(batch_of({.base_offset = Offset{40}}, 1)));
    const auto first_of = [&](std::int64_t from) {
        const auto slice = log->read({.from = Offset{from}}).value();
        std::vector<std::byte> bytes(17);
        EXPECT_TRUE(slice.file->read(slice.position, bytes));
        return load_be<std::int64_t>(bytes.data());
    };
    EXPECT_EQ(first_of(1), 0);
    EXPECT_EQ(first_of(2), 10);
    EXPECT_EQ(first_of(12), 20);
    EXPECT_EQ(first_of(22), 40);  // behind the last batch of the segment
    EXPECT_EQ(first_of(40), 40);
}

// --- lookups by time ---------------------------------------------------------------------------------------------------

TEST(Log, ATimeIsFoundInsideItsBatch) {
    for (const auto codec : {record::Codec::none, record::Codec::zstd}) {
        StorageLog log{{.codec = codec, .config = tiny()}};
        log.append("[a=1@100 a=2@200 a=3@300] [b=1@250 b=2@400]");
        const auto found = [&](std::int64_t t) {
            const auto f = log->offset_for_time(log.start + t, Isolation::read_uncommitted).value();
            return f ? std::pair{f->offset.value, f->timestamp - log.start} : std::pair<std::int64_t, std::int64_t>{-1, -1};
        };
        using P = std::pair<std::int64_t, std::int64_t>;
        EXPECT_EQ(found(100), (P{0, 100}));
        EXPECT_EQ(found(150), (P{1, 200}));
        EXPECT_EQ(found(200), (P{1, 200}));
        EXPECT_EQ(found(201), (P{2, 300}));
        EXPECT_EQ(found(300), (P{2, 300}));
        EXPECT_EQ(found(301), (P{4, 400}));
        EXPECT_EQ(found(400), (P{4, 400}));
        EXPECT_EQ(found(401), (P{-1, -1}));
    }
}

TEST(Log, ATimeIsFoundBetweenIndexEntries) {
    auto config = tiny();
    config.index_interval_bytes = 100;   // every second batch
    StorageLog log{{.config = config}};
    ASSERT_TRUE(log->truncate_fully_and_start_at(Offset{40}));
    for (int offset = 40; offset < 50; ++offset) log.append("k=v@" + std::to_string(10 * offset));
    ASSERT_GT(log->segments()->front()->time_index_bytes().value(), 24);
    for (const auto& [time, offset] : std::vector<std::pair<int, int>>{{420, 42}, {421, 43}, {430, 43}, {431, 44}, {491, -1}, {401, 41}, {399, 40}}) {
        const auto found = log->offset_for_time(log.start + time, Isolation::read_uncommitted).value();
        EXPECT_EQ(found ? found->offset.value : -1, offset) << time;
    }
    ASSERT_TRUE(log->truncate_to(Offset{45}));
    EXPECT_EQ(log->offset_of_max_timestamp(Isolation::read_uncommitted).value()->offset, Offset{44}) << "the largest of what is left";
}

TEST(Log, BeyondTheLastRecordNothingIsFound) {
    StorageLog log{{.config = tiny()}};
    EXPECT_EQ(log->offset_for_time(Timestamp{0}, Isolation::read_uncommitted).value(), std::nullopt);
    EXPECT_EQ(log->offset_of_max_timestamp(Isolation::read_uncommitted).value(), std::nullopt);
    log.append("a=1@2 a=2@4 a=3@6 a=4@8");
    std::vector<std::int64_t> found;
    for (int t = 1; t <= 9; ++t) {
        const auto f = log->offset_for_time(log.start + t, Isolation::read_uncommitted).value();
        found.push_back(f ? f->offset.value : -1);
    }
    EXPECT_THAT(found, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3, -1));
    ASSERT_TRUE(log->delete_oldest_segments(1, "test"));
    EXPECT_EQ(log->offset_for_time(log.start, Isolation::read_uncommitted).value(), std::nullopt);
}

TEST(Log, LookupsEqualBruteForce) {
    std::mt19937 random(20261130);
    for (int round = 0; round < 6; ++round) {
        StorageLog log{{.codec = round % 2 == 0 ? record::Codec::none : record::Codec::lz4, .config = tiny(1500)}};
        std::map<std::int64_t, std::int64_t> time_of;  // offset → time
        std::int64_t offset = 0;
        for (int b = 0; b < 60; ++b) {
            std::string batch = "[";
            for (int r = static_cast<int>(random() % 4) + 1; r > 0; --r) {
                const auto time = static_cast<std::int64_t>(random() % (b * 20 + 50));
                batch += (batch.size() > 1 ? " k=v@" : "k=v@") + std::to_string(time);
                time_of[offset++] = time;
            }
            log.append(batch + "]");
        }
        const auto start = static_cast<std::int64_t>(random() % 20);
        ASSERT_TRUE(log->delete_records_before(Offset{start}));
        for (int i = 0; i < 200; ++i) {
            const auto t = static_cast<std::int64_t>(random() % 1300);
            std::int64_t expected = -1;
            for (auto at = time_of.lower_bound(start); at != time_of.end() && expected < 0; ++at) {
                if (at->second >= t) expected = at->first;
            }
            const auto found = log->offset_for_time(log.start + t, Isolation::read_uncommitted).value();
            ASSERT_EQ(found ? found->offset.value : -1, expected) << "round " << round << ", time " << t;
        }
        const auto largest = log->offset_of_max_timestamp(Isolation::read_uncommitted).value();
        const auto youngest = std::max_element(time_of.begin(), time_of.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        EXPECT_EQ(largest->timestamp - log.start, youngest->second);
        EXPECT_EQ(largest->offset.value, youngest->first);
    }
}

TEST(Log, TheLargestTimestampNamesItsFirstRecord) {
    for (const auto codec : {record::Codec::none, record::Codec::gzip, record::Codec::snappy, record::Codec::lz4, record::Codec::zstd}) {
        StorageLog log{{.codec = codec, .config = tiny()}};
        log.append("[a=1@0 a=2@9 a=3@5] [b=1@9 b=2@1] | c=1@9");
        const auto found = log->offset_of_max_timestamp(Isolation::read_uncommitted).value();
        ASSERT_TRUE(found);
        EXPECT_EQ(found->offset, Offset{1});
        EXPECT_EQ(found->timestamp, log.start + 9);
    }
}

TEST(Log, SegmentsWithoutTimeIndexAnswerAllTheSame) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1@10 a=2@20 | a=3@15 a=4@40 | a=5@30");
    ASSERT_TRUE(log->close());
    for (const auto* name : {"00000000000000000000.timeindex", "00000000000000000002.timeindex"}) ASSERT_TRUE(log.files().remove(io::join(log.path(), name)));
    log.open_again(true);
    EXPECT_TRUE(log->segments()->front()->time_index_is_missing());
    EXPECT_EQ(log->offset_for_time(log.start + 25, Isolation::read_uncommitted).value()->offset, Offset{3});
    EXPECT_EQ(log->offset_of_max_timestamp(Isolation::read_uncommitted).value()->offset, Offset{3});
}

TEST(Log, TheBackgroundRebuildsWhatRetentionAskedFor) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1@10 | a=2@20");
    ASSERT_TRUE(log->close());
    ASSERT_TRUE(log.files().remove(io::join(log.path(), "00000000000000000000.timeindex")));
    log.open_again(true);
    const auto first = log->segments()->front();
    log->run_background_work();
    EXPECT_TRUE(first->time_index_is_missing());  // nobody has asked
    EXPECT_EQ(first->largest_timestamp().value().source, LargestTimestamp::Source::not_yet_known);
    log->run_background_work();
    EXPECT_EQ(first->largest_timestamp().value().value, log.start + 10);
}

TEST(Log, OffsetsCarryTheirEpochs) {
    StorageLog log{{.config = tiny()}};
    auto a = batch_of({}, 2);
    ASSERT_TRUE(log->append(a, {.leader_epoch = 3}));
    ASSERT_TRUE(log->assign_epoch(5));
    auto b = batch_of({}, 2);
    ASSERT_TRUE(log->append(b, {.leader_epoch = 5}));
    EXPECT_EQ(log->latest_epoch(), 5);
    EXPECT_EQ(log->latest_offset(Isolation::log_end).leader_epoch, 5);
    EXPECT_EQ(log->earliest_offset().leader_epoch, 3);
    EXPECT_EQ(log->end_of_epoch(4), (EpochEnd{3, Offset{2}}));
    ASSERT_TRUE(log->delete_records_before(Offset{3}));
    EXPECT_EQ(log->earliest_offset().leader_epoch, 5);
    log.reopen();
    EXPECT_EQ(log->latest_epoch(), 5);
}

// --- deletion, truncation ----------------------------------------------------------------------------------------------

TEST(Log, SegmentsLeaveAtOnceAndTheirFilesLater) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2 | a=3");
    const auto gone = log->segments()->front();
    ASSERT_TRUE(log->delete_oldest_segments(2, "test"));
    EXPECT_EQ(log.text(), "2:a=3");
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(log->read({.from = Offset{1}}).error().code, Errc::offset_out_of_range);
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000001.log.deleted"));
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000001.snapshot.deleted"));
    EXPECT_TRUE(gone->deleted_since());
    log.clock.advance(std::chrono::milliseconds{59'999});
    log.directory().run_background();
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000001.log.deleted"));
    log.clock.advance(std::chrono::milliseconds{1});
    log.directory().run_background();
    EXPECT_THAT(log.file_names(), testing::Not(testing::Contains(HasSubstr("deleted"))));
}

TEST(Log, WhenAllSegmentsGoANewOneStartsAtTheEnd) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2");
    ASSERT_TRUE(log->delete_oldest_segments(99, "test"));
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(log->log_end_offset(), Offset{2});
    ASSERT_EQ(log->segments()->size(), 1u);
    ASSERT_TRUE(log->delete_oldest_segments(99, "test"));  // an empty active one stays
    EXPECT_EQ(log->segments()->front()->base_offset(), Offset{2});
    log.append("b=1");
    EXPECT_EQ(log.text(), "2:b=1");
    log.reopen();
    EXPECT_EQ(log.text(), "2:b=1");
}

TEST(Log, NothingAboveTheHighWatermarkIsDeleted) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2 | a=3");
    log->set_high_watermark(Offset{1});
    EXPECT_EQ(log->delete_oldest_segments(2, "test").error().code, Errc::invalid_argument);
    EXPECT_TRUE(log->delete_oldest_segments(1, "test"));
    EXPECT_EQ(log->log_start_offset(), Offset{1});
}

TEST(Log, TheLogStartMayLieInsideABatch) {
    StorageLog log{{.config = tiny()}};
    log.append("[a=0 a=1 a=2 a=3 a=4 a=5 a=6 a=7 a=8 a=9]");
    EXPECT_EQ(log->delete_records_before(Offset{4}).value(), Offset{4});
    EXPECT_EQ(log->read({.from = Offset{3}}).error().code, Errc::offset_out_of_range);
    EXPECT_THAT(log.read(Offset{4}), testing::StartsWith("[0:a=0"));
    EXPECT_EQ(log->earliest_offset().offset, Offset{4});
    EXPECT_EQ(log->delete_records_before(Offset{2}).value(), Offset{4});  // never back
    EXPECT_EQ(log->delete_records_before(Offset{11}).error().code, Errc::offset_out_of_range);
    EXPECT_EQ(log->delete_records_before(std::nullopt).value(), Offset{10});
}

TEST(Log, TruncatesToAnOffset) {
    StorageLog log{{.config = tiny(200)}};
    log.append_as(7, "a=1 a=2 a=3 a=4 a=5 a=6 a=7");
    const auto segments = log->segments()->size();
    ASSERT_GT(segments, 2u);
    ASSERT_TRUE(log->truncate_to(Offset{7}));  // nothing to do
    ASSERT_TRUE(log->truncate_to(Offset{3}));
    EXPECT_EQ(log->log_end_offset(), Offset{3});
    EXPECT_EQ(log->high_watermark(), Offset{3});
    EXPECT_EQ(log.read(Offset{0}), "0:a=1 1:a=2 2:a=3");
    EXPECT_EQ(log->producers().front().last_sequence, 2);
    ASSERT_TRUE(log.append_as_client(batch_of({.producer_id = 7, .producer_epoch = 0, .base_sequence = 3}, 1)));
    EXPECT_EQ(log->log_end_offset(), Offset{4});
    ASSERT_TRUE(log->truncate_to(Offset{0}));
    EXPECT_EQ(log->log_end_offset(), Offset{0});
    EXPECT_THAT(log->producers(), IsEmpty());
    log.append("b=1");
    log.reopen();
    EXPECT_EQ(log.text(), "0:b=1");
}

TEST(Log, TruncationTakesATransactionWithIt) {
    StorageLog log{{.config = tiny()}};
    log.append("p=1");
    log.append_in_transaction(7, "a=1 a=2");
    log.abort(7);
    ASSERT_TRUE(log->truncate_to(Offset{3}));  // the marker goes: it is open again
    EXPECT_EQ(log->last_stable_offset(), Offset{1});
    EXPECT_THAT(log->aborted_between(Offset{0}, Offset{9}), IsEmpty());
    ASSERT_TRUE(log->truncate_to(Offset{1}));
    EXPECT_EQ(log->last_stable_offset(), Offset{1});
    EXPECT_EQ(log->high_watermark(), Offset{1});
}

TEST(Log, StartsOverAnywhere) {
    StorageLog log{{.config = tiny()}};
    log.append_as(7, "a=1 | a=2");
    ASSERT_TRUE(log->truncate_fully_and_start_at(Offset{100}));
    EXPECT_EQ(log->log_start_offset(), Offset{100});
    EXPECT_EQ(log->log_end_offset(), Offset{100});
    EXPECT_THAT(log->producers(), IsEmpty());
    EXPECT_EQ(log->latest_epoch(), -1);
    log.append("b=1");
    EXPECT_EQ(log.text(), "100:b=1");
    ASSERT_TRUE(log->truncate_to(Offset{50}));  // below the first segment: starts over there
    EXPECT_EQ(log->log_start_offset(), Offset{50});
    log.append("c=1");
    log.reopen();
    EXPECT_EQ(log.text(), "50:c=1");
}

// --- the cleaner's swap ------------------------------------------------------------------------------------------------

TEST(Log, ASwapReplacesSegmentsUnderReaders) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 b=1 | a=2 | c=1");
    const auto before = log->segments();
    const auto old_slice = log->read({.from = Offset{0}}).value();
    auto cleaned = log->create_cleaned_segment(Offset{0}).value();
    std::vector<std::byte> kept = batch_of({.base_offset = Offset{1}}, 1);
    append_bytes(kept, batch_of({.base_offset = Offset{2}}, 1));
    ASSERT_TRUE(cleaned->append(kept, true));
    ASSERT_TRUE(cleaned->finish_cleaned(log.start - 5000));
    ASSERT_TRUE(log->replace_segments({cleaned}, {(*before)[0], (*before)[1]}));
    EXPECT_EQ(log.text(), "1:k=v 2:k=v | 3:c=1");
    EXPECT_EQ(cleaned->modified().value(), log.start - 5000);
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000000.log.deleted"));
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000002.snapshot.deleted"));
    std::vector<std::byte> bytes(static_cast<std::size_t>(old_slice.bytes));
    EXPECT_TRUE(old_slice.file->read(old_slice.position, bytes));  // a reader keeps what it has
    EXPECT_EQ(test::text_of(bytes, log.start), "0:a=1 1:b=1");
    EXPECT_TRUE(old_slice.segment->deleted_since());
    log.reopen();
    EXPECT_EQ(log.text(), "1:k=v 2:k=v | 3:c=1");
}

TEST(Log, ASwapPassesOverSegmentsThatRetentionTook) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2 | c=1");
    const auto before = log->segments();
    auto cleaned = log->create_cleaned_segment(Offset{0}).value();
    ASSERT_TRUE(cleaned->append(batch_of({.base_offset = Offset{1}}, 1), true));
    ASSERT_TRUE(cleaned->finish_cleaned(log.start));
    ASSERT_TRUE(log->delete_oldest_segments(2, "test"));
    ASSERT_TRUE(log->replace_segments({cleaned}, {(*before)[0], (*before)[1]}));
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(log.read(Offset{2}), "2:c=1");
}

TEST(Log, ASwapOfWhatWasTruncatedIsRefused) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 | a=2 | c=1");
    const auto before = log->segments();
    auto cleaned = log->create_cleaned_segment(Offset{0}).value();
    ASSERT_TRUE(cleaned->append(batch_of({.base_offset = Offset{1}}, 1), true));
    ASSERT_TRUE(cleaned->finish_cleaned(log.start));
    ASSERT_TRUE(log->truncate_to(Offset{1}));
    EXPECT_EQ(log->replace_segments({cleaned}, {(*before)[0], (*before)[1]}).error().code, Errc::aborted);
    log->discard_cleaned_segment(cleaned);
    EXPECT_EQ(log.text(), "0:a=1 |");
}

// --- opening -----------------------------------------------------------------------------------------------------------

TEST(Log, ATornTailIsCut) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1 a=2 a=3");
    const auto path = io::join(log.path(), "00000000000000000000.log");
    {
        auto file = log.files().open(path, io::OpenMode::read_write);
        ASSERT_TRUE((*file)->resize(*(*file)->size() - 10));
    }
    log.crash_and_reopen();
    EXPECT_EQ(log.text(), "0:a=1 1:a=2");
    EXPECT_GT(log.last_recovery.truncated_bytes, 0);
    log.append("b=1");
    EXPECT_EQ(log.text(), "0:a=1 1:a=2 2:b=1");
}

/// Flips one byte of the first segment's file.
void damage(StorageLog& log, std::int64_t at) {
    auto file = log.files().open(io::join(log.path(), "00000000000000000000.log"), io::OpenMode::read_write);
    std::byte b{};
    ASSERT_TRUE((*file)->read(FilePosition{at}, {&b, 1}));
    b ^= std::byte{0x55};
    ASSERT_TRUE((*file)->write(FilePosition{at}, {&b, 1}));
}

TEST(Log, DamageBeforeValidBatchesIsKeptAndRefused) {
    StorageLog log{{.config = tiny(), .verify_at_end = false}};
    log.append("a=1 a=2 a=3");
    const auto size = log->segments()->front()->batch_at(FilePosition{0}).value()->bytes;
    damage(log, size + 65);
    log.crash_and_reopen();
    ASSERT_TRUE(log.last_recovery.damaged_file);
    EXPECT_THAT(*log.last_recovery.damaged_file, HasSubstr("00000000000000000000.log.damaged-"));
    EXPECT_EQ(io::read_whole(log.files(), io::join(log.path(), *log.last_recovery.damaged_file))->size(), static_cast<std::size_t>(2 * size));
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::storage_offline);
    EXPECT_EQ(log.append_as_client(batch_of({}, 1)).error().code, Errc::storage_offline);
    log.crash_and_reopen();  // not forgotten by another start
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::storage_offline);
}

TEST(Log, WithTheSwitchDamageIsCutAsInKafka) {
    StorageLog log{{.config = tiny(), .storage = {.differences = {.keep_damaged_tail = false}}}};
    log.append("a=1 a=2 a=3");
    damage(log, log->segments()->front()->batch_at(FilePosition{0}).value()->bytes + 65);
    log.crash_and_reopen();
    EXPECT_EQ(log.text(), "0:a=1");
    EXPECT_EQ(log.last_recovery.damaged_file, std::nullopt);
}

TEST(Log, WithoutSnapshotsTheProducersAreReadFromTheRecords) {
    StorageLog log{{.config = tiny()}};
    log.append_as(7, "a=1 a=2");
    log.append_in_transaction(8, "t=1");
    ASSERT_TRUE(log->close());
    ASSERT_TRUE(log.files().remove(io::join(log.path(), "00000000000000000003.snapshot")));
    log.open_again(true);
    EXPECT_EQ(log->producers().size(), 2u);
    EXPECT_EQ(log->last_stable_offset(), Offset{2});
    EXPECT_TRUE(log.last_recovery.replayed_without_snapshot);
    // Kafka's side of D22: no producers, no open transaction.
    StorageLog kafka{{.config = tiny(), .storage = {.differences = Differences::none()}}};
    kafka.append_in_transaction(8, "t=1");
    ASSERT_TRUE(kafka->close());
    ASSERT_TRUE(kafka.files().remove(io::join(kafka.path(), "00000000000000000001.snapshot")));
    kafka.open_again(true);
    EXPECT_THAT(kafka->producers(), IsEmpty());
}

TEST(Log, ProducersExpireAtTheStartAndAtTheChecksNotWhenTheyAreRead) {
    StorageLog log{{.config = tiny(), .storage = {.producer_expiration_ms = 1000}}};
    log.append_as(7, "a=1");
    log.clock.advance(std::chrono::milliseconds{900});
    log.reopen();
    log.clock.advance(std::chrono::milliseconds{900});
    EXPECT_EQ(log->producers().size(), 1u);
    log.reopen();
    EXPECT_THAT(log->producers(), IsEmpty());

    log.append_as(8, "a=1");
    log.reopen();
    log.clock.advance(std::chrono::seconds{1});
    log->expire_producers(log.clock.now());
    EXPECT_THAT(log->producers(), IsEmpty());
}

TEST(Log, ABrokenSnapshotAtTheEndIsNoticedWhenItIsNeeded) {
    StorageLog log{{.config = tiny()}};
    log.append_as(7, "a=1 | a=2");
    ASSERT_TRUE(log->close());
    ASSERT_TRUE(io::replace_content(log.files(), io::join(log.path(), "00000000000000000002.snapshot"), as_bytes("torn")));
    log.open_again(true);
    ASSERT_EQ(log->producers().size(), 1u);
    EXPECT_EQ(log->producers().front().last_sequence, 1);
}

TEST(Log, LeftoversAreRemovedAndNothingElse) {
    StorageLog log{{.config = tiny()}};
    log.append("a=1");
    ASSERT_TRUE(log->close());
    for (const auto* name : {"00000000000000000000.log.deleted", "00000000000000000000.log.cleaned", "00000000000000000000.index.cleaned",
                             "00000000000000000000.log.swap", "00000000000000000004.snapshot.deleted", "leader-epoch-checkpoint.tmp", "notes.txt"}) {
        ASSERT_TRUE(io::replace_content(log.files(), io::join(log.path(), name), as_bytes("x")));
    }
    log.open_again(true);
    EXPECT_EQ(log.text(), "0:a=1");
    EXPECT_THAT(log.file_names(), testing::Not(testing::Contains(testing::AnyOf(HasSubstr(".deleted"), HasSubstr(".cleaned"), HasSubstr(".swap"), HasSubstr(".tmp")))));
    EXPECT_THAT(log.file_names(), testing::Contains("notes.txt"));
}

TEST(Log, ADamagedSwapIsRefusedAndTheOriginalsStay) {
    StorageLog log{{.config = tiny(), .verify_at_end = false}};
    log.append("a=1 | a=2");
    ASSERT_TRUE(log->close());
    auto content = *io::read_whole(log.files(), io::join(log.path(), "00000000000000000000.log"));
    content.resize(content.size() - 3);
    ASSERT_TRUE(io::replace_content(log.files(), io::join(log.path(), "00000000000000000000.log.swap"), content));
    const auto opened = open_log(log.directory(), {.partition = {"t", 0}, .directory = log.path(), .config = std::make_shared<LogConfig>(tiny()), .clean = false});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::corrupt);
    EXPECT_THAT(log.file_names(), testing::Contains("00000000000000000000.log"));
}

TEST(Log, AFullDiskRefusesAppendsAndHeals) {
    io::MemoryFileSystem disk;
    StorageLog log{{.config = tiny(), .files = &disk}};
    log.append("a=1");
    const auto used = disk.space("/").value();
    disk.set_capacity(used.total - used.available + 20);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(log.append_as_client(batch_of({}, 1)).error().code, Errc::no_space);
    EXPECT_FALSE(log.directory().is_offline());
    EXPECT_EQ(log.read(Offset{0}), "0:a=1");
    disk.set_capacity(1 << 20);
    log.append("b=1");
    EXPECT_EQ(log.text(), "0:a=1 1:b=1");
}

TEST(Log, AClosedOneServesNothing) {
    StorageLog log{{.config = tiny(), .verify_at_end = false}};
    log.append("a=1");
    ASSERT_TRUE(log->close());
    EXPECT_EQ(log.append_as_client(batch_of({}, 1)).error().code, Errc::not_found);
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::not_found);
}

}  // namespace
}  // namespace tidemark::storage
