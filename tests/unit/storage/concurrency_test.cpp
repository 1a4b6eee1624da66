// Everything at once on one log: for the thread sanitizer, and for what readers may never see.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "base/bytes.h"
#include "tests/support/storage_log.h"

namespace tidemark::storage {
namespace {

using test::StorageLog;

std::vector<std::byte> numbered(std::int64_t first, int records) {
    record::BatchBuilder builder;
    builder.start({});
    for (int i = 0; i < records; ++i) {
        std::vector<std::byte> value(8);
        store_be(value.data(), first + i);
        builder.append(Offset{i}, Timestamp{first + i}, as_bytes("k"), Bytes(value));
    }
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

TEST(Concurrency, ReadersSeeWholeBatchesWhateverHappensToTheLog) {
    LogConfig config;
    config.segment_bytes = 4000;
    config.index_interval_bytes = 200;
    config.segment_index_bytes = 2000;
    config.file_delete_delay_ms = 0;
    config.timestamp_after_max_ms = unlimited;
    StorageLog log{{.config = config}};
    log.directory().start();
    constexpr std::int64_t records = 6000;
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> durable{0};

    std::vector<std::jthread> readers;
    for (int r = 0; r < 3; ++r) {
        readers.emplace_back([&, r] {
            std::mt19937 random(static_cast<unsigned>(r));
            record::RecordReader reader;
            Offset from{0};
            while (!stop) {
                const auto slice = log->read({.from = from, .bytes_max = 2000 + static_cast<std::int64_t>(random() % 4000)});
                if (!slice) {
                    ASSERT_EQ(slice.error().code, Errc::offset_out_of_range) << slice.error().message();
                    from = log->log_start_offset();
                    continue;
                }
                if (slice->bytes == 0) {
                    std::this_thread::yield();
                    if (random() % 4 == 0) from = log->log_start_offset();
                    continue;
                }
                std::vector<std::byte> bytes(static_cast<std::size_t>(slice->bytes));
                ASSERT_EQ(slice->file->read(slice->position, bytes).value(), bytes.size());
                record::BatchCursor cursor(bytes);
                for (auto batch = cursor.next(); batch && *batch; batch = cursor.next()) {
                    ASSERT_TRUE((*batch)->crc_matches());
                    ASSERT_LE((*batch)->next_offset(), slice->high_watermark);
                    ASSERT_TRUE(reader.open(**batch));
                    for (auto record = reader.next(); record && *record; record = reader.next()) {
                        ASSERT_EQ(load_be<std::int64_t>((*record)->value->data()), (*record)->offset.value);
                    }
                    from = (*batch)->next_offset();
                }
            }
        });
    }
    readers.emplace_back([&] {  // lookups
        std::mt19937 random(99);
        while (!stop) {
            const auto end = log->log_end_offset().value;
            const auto at = static_cast<std::int64_t>(random() % static_cast<unsigned>(end + 1));
            const auto found = log->offset_for_time(Timestamp{at}, Isolation::read_uncommitted);
            ASSERT_TRUE(found) << found.error().message();
            if (*found) {
                ASSERT_GE((*found)->offset.value, at);
            }
            (void)log->stats();
            (void)log->available(Offset{at}, 1000, Isolation::read_uncommitted);
            (void)log->latest_offset(Isolation::read_committed);
            std::this_thread::yield();
        }
    });
    readers.emplace_back([&] {  // retention
        std::mt19937 random(7);
        while (!stop) {
            if (log->segments()->size() > 6) {
                ASSERT_TRUE(log->delete_oldest_segments(1 + random() % 2, "test"));
            }
            std::this_thread::yield();
        }
    });
    std::int64_t next = 0;
    std::mt19937 random(1);
    while (next < records) {
        const auto n = 1 + static_cast<int>(random() % 4);
        auto batch = numbered(next, n);
        auto appended = log->append(batch, {.leader_epoch = static_cast<LeaderEpoch>(next / 1000)});
        ASSERT_TRUE(appended) << appended.error().message();
        ASSERT_EQ(appended->first_offset.value, next);
        next += n;
        if (random() % 5 == 0) {
            log->when_durable(log->log_end_offset(), [&durable, next](Result<> done) {
                ASSERT_TRUE(done);
                durable = std::max(durable.load(), next);
            });
        }
        if (random() % 50 == 0) {
            ASSERT_TRUE(log->flush());
        }
    }
    stop = true;
    readers.clear();
    log.directory().stop();
    EXPECT_GT(durable, 0);
    EXPECT_EQ(log->log_end_offset().value, next);
}

}  // namespace
}  // namespace tidemark::storage
