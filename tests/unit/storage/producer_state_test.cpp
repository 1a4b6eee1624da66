#include "storage/producer_state.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "io/memory_file_system.h"
#include "record/builder.h"
#include "storage/producer_snapshots.h"

namespace tidemark::storage {
namespace {

using record::Origin;
using testing::ElementsAre;

constexpr ProducerId pid = 42;

struct Batch {
    std::int64_t offset = 0;
    Sequence sequence = 0;
    int records = 1;
    ProducerEpoch epoch = 0;
    bool transactional = false;
    std::int64_t timestamp = 1000;
    ProducerId id = pid;
};

std::vector<std::byte> bytes_of(const Batch& b) {
    record::BatchBuilder builder;
    builder.start({.base_offset = Offset{b.offset}, .producer_id = b.id, .producer_epoch = b.epoch, .base_sequence = b.sequence, .transactional = b.transactional});
    for (int i = 0; i < b.records; ++i) builder.append(Offset{b.offset + i}, Timestamp{b.timestamp}, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

std::vector<std::byte> marker(std::int64_t offset, record::ControlType type, ProducerEpoch epoch = 0, std::int32_t coordinator_epoch = 0, ProducerId id = pid) {
    std::vector<std::byte> bytes;
    record::write_marker({.offset = Offset{offset}, .timestamp = Timestamp{2000}, .producer_id = id, .producer_epoch = epoch,
                          .marker = {.type = type, .coordinator_epoch = coordinator_epoch}}, bytes);
    return bytes;
}

class ProducerStateTest : public testing::Test {
protected:
    /// Checks, applies and completes, as an append does. Errc of the refusal, nothing when it was taken.
    std::optional<Errc> add(const std::vector<std::byte>& bytes, Origin origin = Origin::client, std::int16_t transaction_version = 0) {
        const auto batch = record::BatchView::parse(bytes).value();
        ProducerChanges changes(state, origin, transaction_version);
        if (auto added = changes.add(batch); !added) return added.error().code;
        const auto completed = changes.completed();
        state.apply(std::move(changes));
        for (const auto& c : completed) {
            last_completed = c;
            last_stable = state.last_stable_offset_after(c);
            state.complete(c);
        }
        state.set_end_offset(batch.next_offset());
        return std::nullopt;
    }
    std::optional<Errc> append(const Batch& b, Origin origin = Origin::client) { return add(bytes_of(b), origin); }

    ProducerState state;
    std::optional<CompletedTransaction> last_completed;
    Offset last_stable{-1};
};

TEST_F(ProducerStateTest, SequencesFollowEachOther) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 1, .records = 3}), std::nullopt);
    EXPECT_EQ(append({.offset = 4, .sequence = 5}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 4, .sequence = 3}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 4, .sequence = 4}), std::nullopt);
    EXPECT_EQ(state.find(pid)->last_sequence(), 4);
}

TEST_F(ProducerStateTest, AnUnknownProducerMayBeginAnywhere) {
    EXPECT_EQ(append({.offset = 0, .sequence = 17, .epoch = 3}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 18, .epoch = 3}), std::nullopt);
}

TEST_F(ProducerStateTest, SequencesWrap) {
    EXPECT_EQ(append({.offset = 0, .sequence = 2147483646, .records = 2}), std::nullopt);
    EXPECT_EQ(append({.offset = 2, .sequence = 1}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 2, .sequence = 0}), std::nullopt);
    ProducerState other;
    std::swap(state, other);
    EXPECT_EQ(append({.offset = 0, .sequence = 2147483646, .records = 4}), std::nullopt);  // over the end within one batch
    EXPECT_EQ(state.find(pid)->last_sequence(), 1);
    EXPECT_EQ(append({.offset = 4, .sequence = 2}), std::nullopt);
}

TEST_F(ProducerStateTest, ANewEpochStartsAtZero) {
    EXPECT_EQ(append({.offset = 0, .sequence = 5, .epoch = 1}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 6, .epoch = 2}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 1, .sequence = 0, .epoch = 2}), std::nullopt);
    EXPECT_EQ(append({.offset = 2, .sequence = 6, .epoch = 1}), Errc::invalid_producer_epoch);
    EXPECT_EQ(state.find(pid)->batches.size(), 1u);
}

TEST_F(ProducerStateTest, RemembersFiveBatches) {
    for (int i = 0; i < 7; ++i) ASSERT_EQ(append({.offset = i * 2, .sequence = i * 2, .records = 2}), std::nullopt);
    const auto* entry = state.find(pid);
    const auto duplicate = [&](Sequence sequence, int records) {
        return entry->duplicate_of(record::BatchView::parse(bytes_of({.offset = 0, .sequence = sequence, .records = records})).value());
    };
    for (int i = 2; i < 7; ++i) {
        ASSERT_TRUE(duplicate(i * 2, 2)) << i;
        EXPECT_EQ(duplicate(i * 2, 2)->first_offset(), Offset{i * 2});
        EXPECT_EQ(duplicate(i * 2, 2)->last_offset, Offset{i * 2 + 1});
    }
    EXPECT_FALSE(duplicate(2, 2));   // the sixth from the end
    EXPECT_FALSE(duplicate(12, 1));  // other sequences
}

TEST_F(ProducerStateTest, AFollowerTakesWhatTheLeaderTook) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .epoch = 5}, Origin::replication), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 77, .epoch = 5}, Origin::replication), std::nullopt);
    EXPECT_EQ(append({.offset = 2, .sequence = 0, .epoch = 4}, Origin::replication), std::nullopt);
}

TEST_F(ProducerStateTest, TheCoordinatorsOwnLogHasNoSequenceCheck) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0}, Origin::coordinator), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 100}, Origin::coordinator), std::nullopt);
}

TEST_F(ProducerStateTest, ATransactionIsOpenUntilItsMarker) {
    EXPECT_EQ(append({.offset = 9, .sequence = 0, .transactional = true}), std::nullopt);
    EXPECT_EQ(append({.offset = 10, .sequence = 1, .transactional = true}), std::nullopt);
    EXPECT_TRUE(state.has_open_transaction(pid, 0));
    EXPECT_FALSE(state.has_open_transaction(pid, 1));
    EXPECT_EQ(state.first_unstable_offset(), Offset{9});
    EXPECT_EQ(add(marker(11, record::ControlType::abort), Origin::coordinator), std::nullopt);
    ASSERT_TRUE(last_completed);
    EXPECT_EQ(last_completed->first_offset, Offset{9});
    EXPECT_EQ(last_completed->marker_offset, Offset{11});
    EXPECT_TRUE(last_completed->aborted);
    EXPECT_EQ(last_stable, Offset{12});
    EXPECT_EQ(state.first_unstable_offset(), Offset{9});  // until the high watermark has passed the marker
    state.forget_completed_below(Offset{11});
    EXPECT_EQ(state.first_unstable_offset(), Offset{9});
    state.forget_completed_below(Offset{12});
    EXPECT_EQ(state.first_unstable_offset(), std::nullopt);
}

TEST_F(ProducerStateTest, AnotherOpenTransactionHoldsTheStableOffset) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .transactional = true, .id = 1}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 0, .transactional = true, .id = 2}), std::nullopt);
    EXPECT_EQ(add(marker(2, record::ControlType::commit, 0, 0, 2), Origin::coordinator), std::nullopt);
    EXPECT_EQ(last_stable, Offset{0});
    EXPECT_EQ(add(marker(3, record::ControlType::abort, 0, 0, 1), Origin::coordinator), std::nullopt);
    EXPECT_EQ(last_stable, Offset{4});
}

TEST_F(ProducerStateTest, APlainBatchInsideATransactionIsRefusedFromEverybody) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .transactional = true}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 1}), Errc::invalid_transaction_state);
    EXPECT_EQ(append({.offset = 1, .sequence = 1}, Origin::replication), Errc::invalid_transaction_state);
    EXPECT_EQ(state.find(pid)->last_sequence(), 0);  // a refused change leaves no trace
}

TEST_F(ProducerStateTest, AMarkerWithoutATransactionOnlyMovesEpochs) {
    EXPECT_EQ(add(marker(0, record::ControlType::commit, 3, 7), Origin::coordinator), std::nullopt);
    EXPECT_FALSE(last_completed);
    EXPECT_EQ(state.find(pid)->epoch, 3);
    EXPECT_EQ(state.find(pid)->coordinator_epoch, 7);
    EXPECT_EQ(state.first_unstable_offset(), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 1, .epoch = 3}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 1, .sequence = 0, .epoch = 3}), std::nullopt);
}

TEST_F(ProducerStateTest, ZombieMarkersAreFenced) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .epoch = 5, .transactional = true}), std::nullopt);
    EXPECT_EQ(add(marker(1, record::ControlType::commit, 4), Origin::coordinator), Errc::invalid_producer_epoch);
    EXPECT_EQ(add(marker(1, record::ControlType::commit, 5, 9), Origin::coordinator), std::nullopt);
    EXPECT_EQ(add(marker(2, record::ControlType::abort, 5, 8), Origin::coordinator), Errc::coordinator_fenced);
    EXPECT_EQ(add(marker(2, record::ControlType::abort, 5, 8), Origin::replication), std::nullopt);  // only noted
}

TEST_F(ProducerStateTest, VersionTwoMarkersCarryABumpedEpoch) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .epoch = 5, .transactional = true}), std::nullopt);
    EXPECT_EQ(add(marker(1, record::ControlType::commit, 5), Origin::coordinator, 2), Errc::invalid_producer_epoch);
    EXPECT_EQ(add(marker(1, record::ControlType::commit, 6), Origin::coordinator, 2), std::nullopt);
    EXPECT_EQ(add(marker(2, record::ControlType::commit, 6), Origin::coordinator, 2), std::nullopt);  // asked again
    EXPECT_EQ(append({.offset = 3, .sequence = 1, .epoch = 6}), Errc::out_of_order_sequence);
    EXPECT_EQ(append({.offset = 3, .sequence = 0, .epoch = 6}), std::nullopt);
}

TEST_F(ProducerStateTest, AnEmptiedControlBatchChangesNothing) {
    std::vector<std::byte> empty;
    record::write_empty_batch(record::BatchView::parse(marker(5, record::ControlType::commit, 9)).value(), empty);
    EXPECT_EQ(add(empty, Origin::replication), std::nullopt);
    const auto* entry = state.find(pid);
    EXPECT_TRUE(entry == nullptr || entry->epoch == -1);
}

TEST_F(ProducerStateTest, ExpiresByRecordTimeButNeverAnOpenTransaction) {
    EXPECT_EQ(append({.offset = 0, .sequence = 0, .timestamp = 1000, .id = 1}), std::nullopt);
    EXPECT_EQ(append({.offset = 1, .sequence = 0, .transactional = true, .timestamp = 1000, .id = 2}), std::nullopt);
    EXPECT_EQ(append({.offset = 2, .sequence = 0, .timestamp = 5000, .id = 3}), std::nullopt);
    state.expire(Timestamp{1999}, 1000);
    EXPECT_EQ(state.entries().size(), 3u);
    state.expire(Timestamp{2000}, 1000);
    EXPECT_EQ(state.find(1), nullptr);
    EXPECT_NE(state.find(2), nullptr);
    EXPECT_NE(state.find(3), nullptr);
}

// --- snapshots ---------------------------------------------------------------------------------------------------------

TEST_F(ProducerStateTest, ASnapshotKeepsTheLastBatchAndTheTransaction) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(append({.offset = i, .sequence = i, .epoch = 4, .transactional = true, .timestamp = 100 + i}), std::nullopt);
    ASSERT_EQ(add(marker(3, record::ControlType::commit, 2, 8, 7), Origin::coordinator), std::nullopt);
    const auto decoded = decode_snapshot(encode_snapshot(state));
    ASSERT_TRUE(decoded) << decoded.error().message();
    ASSERT_EQ(decoded->size(), 2u);
    const auto& marked = (*decoded)[0];
    EXPECT_EQ(marked.id, 7);
    EXPECT_EQ(marked.coordinator_epoch, 8);
    EXPECT_TRUE(marked.batches.empty());
    const auto& writer = (*decoded)[1];
    EXPECT_EQ(writer.id, pid);
    EXPECT_EQ(writer.epoch, 4);
    EXPECT_EQ(writer.transaction_first_offset, Offset{0});
    EXPECT_EQ(writer.last_timestamp, Timestamp{102});
    EXPECT_THAT(writer.batches, ElementsAre(ProducerBatch{2, Offset{2}, 0, Timestamp{102}}));
}

TEST(ProducerSnapshot, AnEmptyOneIsKafkasTenBytes) {
    std::string hex;
    for (const auto b : encode_snapshot(ProducerState{})) hex += fmt::format("{:02x}", std::to_integer<int>(b));
    EXPECT_EQ(hex, "000148674bc700000000");
}

TEST(ProducerSnapshot, RefusesWhatIsTornOrWrong) {
    ProducerState state;
    state.load({.id = 1, .epoch = 0, .last_timestamp = Timestamp{5}});
    const auto good = encode_snapshot(state);
    ASSERT_TRUE(decode_snapshot(good));
    for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(decode_snapshot(Bytes(good).first(n))) << n;
    for (std::size_t at = 0; at < good.size(); ++at) {
        auto bad = good;
        bad[at] ^= std::byte{0x55};
        EXPECT_FALSE(decode_snapshot(bad)) << at;
    }
}

class SnapshotFiles : public testing::Test {
protected:
    io::MemoryFileSystem files;
    ProducerSnapshots snapshots{files, std::make_shared<DirectoryPath>("/")};
    ProducerState state;

    void take_at(std::int64_t offset) {
        state.set_end_offset(Offset{offset});
        ASSERT_TRUE(snapshots.take(state));
    }
    std::vector<std::int64_t> offsets() const {
        std::vector<std::int64_t> all;
        for (const auto o : snapshots.offsets()) all.push_back(o.value);
        return all;
    }
    bool on_disk(std::int64_t offset) { return files.status("/" + segment_file_name(Offset{offset}, FileKind::snapshot)).value().has_value(); }
};

TEST_F(SnapshotFiles, OneIsTakenOnlyWhenItIsNewer) {
    take_at(0);
    EXPECT_THAT(offsets(), ElementsAre());  // never at 0
    take_at(5);
    take_at(5);
    take_at(3);
    EXPECT_THAT(offsets(), ElementsAre(5));
}

TEST_F(SnapshotFiles, ABrokenOneGivesWayToTheOneBefore) {
    state.load({.id = 1, .epoch = 3, .last_timestamp = Timestamp{10}});
    take_at(4);
    take_at(9);
    ASSERT_TRUE(io::replace_content(files, "/" + segment_file_name(Offset{9}, FileKind::snapshot), as_bytes("torn")));
    ProducerState loaded;
    ASSERT_TRUE(snapshots.load_latest(loaded, Offset{0}, Timestamp{20}, 1000));
    EXPECT_EQ(loaded.end_offset(), Offset{4});
    EXPECT_EQ(loaded.find(1)->epoch, 3);
    EXPECT_FALSE(on_disk(9));
    EXPECT_THAT(offsets(), ElementsAre(4));
}

TEST_F(SnapshotFiles, ExpiredProducersAreNotLoaded) {
    state.load({.id = 1, .epoch = 0, .last_timestamp = Timestamp{10}});
    state.load({.id = 2, .epoch = 0, .last_timestamp = Timestamp{10}, .transaction_first_offset = Offset{1}});
    take_at(4);
    ProducerState loaded;
    ASSERT_TRUE(snapshots.load_latest(loaded, Offset{0}, Timestamp{1010}, 1000));
    EXPECT_EQ(loaded.find(1), nullptr);
    EXPECT_NE(loaded.find(2), nullptr);
    EXPECT_EQ(loaded.first_unstable_offset(), Offset{1});
}

TEST_F(SnapshotFiles, StraysGoButForTheOneOfACleanStop) {
    for (const auto offset : {1, 2, 3, 4}) take_at(offset);
    ASSERT_TRUE(snapshots.remove_strays({Offset{0}, Offset{1}, Offset{2}}));
    EXPECT_THAT(offsets(), ElementsAre(1, 2, 4));
    EXPECT_FALSE(on_disk(3));
    ASSERT_TRUE(snapshots.remove_strays({Offset{0}, Offset{1}, Offset{2}, Offset{5}}));
    EXPECT_THAT(offsets(), ElementsAre(1, 2));
}

TEST_F(SnapshotFiles, TruncationDropsWhatLiesOutside) {
    for (const auto offset : {2, 4, 6, 8}) take_at(offset);
    ASSERT_TRUE(snapshots.truncate_and_reload(state, Offset{2}, Offset{6}, Timestamp{0}, 1000));
    EXPECT_THAT(offsets(), ElementsAre(4, 6));
    EXPECT_EQ(state.end_offset(), Offset{6});
}

TEST_F(SnapshotFiles, MarkedOnesAreRenamed) {
    take_at(4);
    EXPECT_TRUE(snapshots.mark_deleted(Offset{4}).value());
    EXPECT_FALSE(snapshots.mark_deleted(Offset{4}).value());
    EXPECT_FALSE(on_disk(4));
    EXPECT_TRUE(files.status("/" + segment_file_name(Offset{4}, FileKind::snapshot, FileSuffix::deleted)).value().has_value());
}

}  // namespace
}  // namespace tidemark::storage
