#include "cleaner/transactions.h"

#include <gtest/gtest.h>

#include "record/builder.h"

namespace tidemark::cleaner {
namespace {

using record::BatchView;
using record::ControlType;

/// One-record batches by hand; the bytes stay with the test.
class Batches {
public:
    BatchView data(std::int64_t offset, ProducerId producer, bool transactional = true) {
        record::BatchBuilder builder;
        builder.start({.base_offset = Offset{offset}, .producer_id = producer, .producer_epoch = 0, .base_sequence = 0, .transactional = transactional});
        builder.append(Offset{offset}, Timestamp{1000}, as_bytes("k"), as_bytes("v"));
        auto& bytes = kept_.emplace_back(std::make_unique<std::vector<std::byte>>());
        builder.finish(*bytes);
        return *BatchView::parse(*bytes);
    }
    BatchView marker(std::int64_t offset, ProducerId producer, ControlType type) {
        auto& bytes = kept_.emplace_back(std::make_unique<std::vector<std::byte>>());
        record::write_marker({.offset = Offset{offset}, .timestamp = Timestamp{1000}, .producer_id = producer, .producer_epoch = 0, .marker = {.type = type}}, *bytes);
        return *BatchView::parse(*bytes);
    }
private:
    std::vector<std::unique_ptr<std::vector<std::byte>>> kept_;
};

AbortedTransaction aborted(ProducerId producer, std::int64_t first, std::int64_t last) { return {producer, Offset{first}, Offset{last}, Offset{last + 1}}; }

TEST(TransactionTracker, AbortedDataGoesAndItsMarkerStaysWithItsEntry) {
    Batches b;
    TransactionTracker tracker;
    const auto entries = std::vector{aborted(7, 0, 2)};
    tracker.add(entries);
    tracker.add(entries);                          // the next segment's index lists it too
    EXPECT_TRUE(tracker.is_aborted(b.data(0, 7)));
    EXPECT_FALSE(tracker.is_aborted(b.data(1, 8)));
    const auto marker = tracker.see_control(b.marker(2, 7, ControlType::abort), ControlType::abort);
    EXPECT_FALSE(marker.discardable);
    EXPECT_EQ(marker.aborted, entries[0]);
    EXPECT_FALSE(tracker.is_aborted(b.data(3, 7)));                                  // its next transaction
    EXPECT_FALSE(tracker.see_control(b.marker(4, 7, ControlType::commit), ControlType::commit).discardable);
}

TEST(TransactionTracker, MarkersWithoutDataAreDiscardable) {
    Batches b;
    TransactionTracker tracker;
    tracker.add(std::vector{aborted(7, 0, 2)});
    const auto abort = tracker.see_control(b.marker(2, 7, ControlType::abort), ControlType::abort);
    EXPECT_TRUE(abort.discardable);                                                  // no data of it was seen
    EXPECT_FALSE(abort.aborted);
    EXPECT_TRUE(tracker.see_control(b.marker(3, 9, ControlType::commit), ControlType::commit).discardable);
    EXPECT_TRUE(tracker.see_control(b.marker(4, 9, ControlType::abort), ControlType::abort).discardable);
    EXPECT_TRUE(tracker.see_control(b.marker(5, 9, ControlType::abort), std::nullopt).discardable);    // emptied earlier
    EXPECT_FALSE(tracker.see_control(b.marker(6, 9, ControlType::abort), ControlType::leader_change).discardable);
}

TEST(TransactionTracker, ACommitUsesUpItsProducersData) {
    Batches b;
    TransactionTracker tracker;
    EXPECT_FALSE(tracker.is_aborted(b.data(0, 7)));
    EXPECT_FALSE(tracker.see_control(b.marker(1, 7, ControlType::commit), ControlType::commit).discardable);
    EXPECT_TRUE(tracker.see_control(b.marker(2, 7, ControlType::commit), ControlType::commit).discardable);
}

TEST(TransactionTracker, ProducersAreIndependentAndPlainDataIsNobodys) {
    Batches b;
    TransactionTracker tracker;
    tracker.add(std::vector{aborted(1, 0, 4), aborted(2, 1, 5), aborted(1, 6, 8)});
    EXPECT_TRUE(tracker.is_aborted(b.data(0, 1)));
    EXPECT_TRUE(tracker.is_aborted(b.data(1, 2)));
    EXPECT_FALSE(tracker.is_aborted(b.data(2, 1, false)));                           // not transactional
    EXPECT_FALSE(tracker.is_aborted(b.data(3, 3)));
    EXPECT_EQ(tracker.see_control(b.marker(4, 1, ControlType::abort), ControlType::abort).aborted, aborted(1, 0, 4));
    EXPECT_EQ(tracker.see_control(b.marker(5, 2, ControlType::abort), ControlType::abort).aborted, aborted(2, 1, 5));
    EXPECT_TRUE(tracker.is_aborted(b.data(6, 1)));
    EXPECT_EQ(tracker.see_control(b.marker(8, 1, ControlType::abort), ControlType::abort).aborted, aborted(1, 6, 8));
}

}  // namespace
}  // namespace tidemark::cleaner
