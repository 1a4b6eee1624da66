// Situations in which brokers deleted too much, too little or the wrong thing in public.
#include <gmock/gmock.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "io/faulty_file_system.h"
#include "metadata/effective_config.h"
#include "record/builder.h"
#include "retention/apply.h"
#include "storage/log_directory.h"
#include "storage/segment.h"
#include "tests/support/storage_log.h"

namespace tidemark::retention {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using storage::LogConfig;
using test::StorageLog;

LogConfig seven_days() {
    LogConfig config;
    config.retention_ms = 604'800'000;
    config.timestamp_after_max_ms = storage::unlimited;
    return config;
}

std::vector<SegmentReport> apply(StorageLog& log, Timestamp now) {
    std::vector<SegmentReport> reports;
    EXPECT_TRUE(apply_retention(*log, now, {}, true, [&](const SegmentReport& report) { reports.push_back(report); }));
    return reports;
}

/// Changes a file while the log is cleanly stopped.
void change(StorageLog& log, const std::string& name, const std::function<void(io::File&)>& what) {
    const auto file = log.files().open(log.path() + "/" + name, io::OpenMode::read_write);
    ASSERT_TRUE(file) << file.error().message();
    what(**file);
}

// KAFKA-10207: an index that nobody trimmed ends in zeros; read as timestamp 0 they make the segment decades old.
TEST(Cases, ZerosBehindATimeIndexDeleteNothing) {
    for (const std::int64_t zeros : {12, 24, 120, 7, 10'485'756}) {
        StorageLog log({.config = seven_days()});
        log.append("[a=1 b=1] | [c=1 d=1] | [e=1 f=1]");
        ASSERT_TRUE(log->close());
        change(log, "00000000000000000002.timeindex", [&](io::File& file) { ASSERT_TRUE(file.resize(*file.size() + zeros)); });
        log.open_again(true);
        EXPECT_THAT(apply(log, log.clock.now() + 1000), IsEmpty()) << zeros;
        EXPECT_EQ(log.text(), "[0:a=1 1:b=1] | [2:c=1 3:d=1] | [4:e=1 5:f=1]");
        EXPECT_EQ(log->segments()->at(1)->largest_record_timestamp().value(), log.start);
        EXPECT_EQ(log->segments()->at(1)->time_index_bytes().value(), 12) << "rebuilt: one entry";
        EXPECT_EQ(log->offset_for_time(log.start, storage::Isolation::read_uncommitted).value()->offset, Offset{0});
    }   // each log is verified when it goes
}

// 32-bit relative times wrapped for records older than the segment's first and moved its maximum weeks ahead.
TEST(Cases, TimesFarApartInOneSegment) {
    constexpr std::int64_t day = 86'400'000, end_of_9999 = 253'402'300'799'999;
    auto config = seven_days();
    config.index_interval_bytes = 0;
    config.segment_ms = storage::unlimited;
    StorageLog log({.config = config});
    const auto now = log.start.value;
    const std::vector<std::int64_t> times = {now, now - 40 * day, now + day, 0, end_of_9999, now};
    for (const auto t : times) log.append("k=v@" + std::to_string(t - now));
    const auto check = [&](std::size_t count) {
        for (const auto target : {std::int64_t{0}, std::int64_t{1}, now - 40 * day, now, now + 1, now + day, now + day + 1, end_of_9999, end_of_9999 + 1}) {
            const auto found = log->offset_for_time(Timestamp{target}, storage::Isolation::read_uncommitted).value();
            const auto wanted = std::find_if(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count), [&](auto t) { return t >= target; });
            ASSERT_EQ(found.has_value(), wanted != times.begin() + static_cast<std::ptrdiff_t>(count)) << target;
            if (found) {
                EXPECT_EQ(found->offset.value, wanted - times.begin()) << target;
            }
        }
        EXPECT_EQ(log->segments()->back()->largest_record_timestamp().value(), Timestamp{*std::max_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count))});
    };
    check(6);
    log.reopen();
    check(6);
    EXPECT_THAT(apply(log, log.start + 30 * day), IsEmpty()) << "the youngest record counts";
    // The tail is torn inside the batch with the largest time.
    ASSERT_TRUE(log->close());
    change(log, "00000000000000000000.log", [&](io::File& file) { ASSERT_TRUE(file.resize(*file.size() / 6 * 4 + 30)); });
    log.open_again(false);
    EXPECT_EQ(log->log_end_offset(), Offset{4});
    check(4);
    EXPECT_EQ(apply(log, log.start + 8 * day + 604'800'000).size(), 1u);
}

// KAFKA-3163, KAFKA-7283: data from before there were time indexes.
TEST(Cases, OldSegmentsWithoutTimeIndex) {
    StorageLog log({.config = seven_days()});
    constexpr int segments = 60;
    for (int i = 0; i < segments; ++i) {
        record::BatchBuilder builder;
        builder.start({.magic = static_cast<std::int8_t>(i % 2), .codec = i % 3 == 0 ? record::Codec::gzip : record::Codec::none, .base_offset = Offset{2 * i}});
        for (int n = 0; n < 2; ++n) builder.append(Offset{2 * i + n}, log.start + i * 1000 + n, as_bytes("k"), as_bytes("v"));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        ASSERT_TRUE(log.append_batch(std::move(bytes)));
        log.append("|");
        log.clock.advance(1s);
    }
    ASSERT_TRUE(log->close());
    for (const auto& name : log.file_names()) {
        if (!name.ends_with(".timeindex")) continue;
        ASSERT_TRUE(log.files().remove(log.path() + "/" + name));
    }
    log.open_again(true);

    // A first look does not read them, and deletes nothing by what it does not know.
    const auto late = log.start + 3600'000 + 604'800'000;
    EXPECT_THAT(apply(log, late), IsEmpty());
    EXPECT_TRUE(log->segments()->front()->time_index_is_missing());
    // A lookup needs them, and is answered all the same: every other segment has times, that of its second record too.
    for (int i = 1; i < segments; i += 2) EXPECT_EQ(log->offset_for_time(log.start + i * 1000 + 1, storage::Isolation::read_uncommitted).value()->offset, Offset{2 * i + 1});
    // The background has read them: those without times by the file's, those with times by theirs.
    log->run_background_work();
    const auto gone = apply(log, log.start + 9'500 + 604'800'000);
    ASSERT_EQ(gone.size(), 10u);
    for (std::size_t i = 0; i < gone.size(); ++i) EXPECT_EQ(gone[i].deletion.by_file_time, i % 2 == 0) << gone[i].text();
}

// Seconds read as milliseconds: acknowledged records of 1970 go at the next look; with a younger one beside them they stay.
TEST(Cases, TimestampsInSeconds) {
    auto config = seven_days();
    config.segment_ms = storage::unlimited;
    StorageLog log({.config = config});
    const auto seconds = std::to_string(log.start.value / 1000 - log.start.value);
    log.append("[a=1@" + seconds + " b=1@" + seconds + "]");
    log.append("c=1");
    EXPECT_EQ(log->stats().expired_records, 2u);
    EXPECT_THAT(apply(log, log.clock.now()), IsEmpty());
    log.append("| [d=1@" + seconds + " e=1@" + seconds + "]");
    log.append("|");
    ASSERT_TRUE(log->delete_records_before(Offset{3}));
    const auto gone = apply(log, log.clock.now());
    ASSERT_EQ(gone.size(), 2u);
    EXPECT_EQ(gone[1].text(), "segment 3 to 4 (" + std::to_string(gone[1].bytes) + " bytes, 2 records, largest timestamp 1700000000): retention.ms 604800000: largest timestamp 1700000000");
    EXPECT_EQ(log->log_start_offset(), log->log_end_offset());
    EXPECT_EQ(log->segments()->size(), 1u);

    config.timestamp_before_max_ms = 604'800'000;
    log.set_config(config);
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, log.start - 604'800'001, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    EXPECT_EQ(log.append_as_client(bytes).error().code, Errc::invalid_timestamp);
}

// Clients that leave the header's largest timestamp out, or invent one: the records decide when the segment is old.
TEST(Cases, ALargestTimestampThatTheClientLeftOutOrInvented) {
    for (const auto type : {record::TimestampType::create_time, record::TimestampType::log_append_time}) {
        for (const auto codec : {record::Codec::none, record::Codec::gzip}) {
            for (const std::int64_t claimed : {-1, 0, 999'999}) {
                auto config = seven_days();
                config.timestamp_type = type;
                config.segment_ms = storage::unlimited;
                StorageLog log({.config = config});
                record::BatchBuilder builder;
                builder.start({.codec = codec});
                std::int64_t offset = 0;
                for (const auto t : {1000, 5000, 3000}) builder.append(Offset{offset++}, Timestamp{t}, as_bytes("k"), as_bytes("v"));
                std::vector<std::byte> bytes;
                builder.finish(bytes);
                store_be(bytes.data() + 35, claimed);
                store_be(bytes.data() + 17, crc32c(Bytes(bytes).subspan(21)));
                ASSERT_TRUE(log.append_as_client(bytes));
                const auto largest = type == record::TimestampType::create_time ? Timestamp{5000} : log.start;
                EXPECT_THAT(apply(log, largest + 604'800'000), IsEmpty()) << claimed;
                const auto gone = apply(log, largest + 604'800'001);
                ASSERT_EQ(gone.size(), 1u) << claimed;
                EXPECT_EQ(gone[0].largest_record_timestamp, largest);
            }
        }
    }
}

// -1 was subtracted from the clock, or fell back to seven days: every level's value, ten years later.
TEST(Cases, UnlimitedIsUnlimitedWhereverItIsSaid) {
    constexpr auto longest = "9223372036854775807";
    constexpr std::int64_t ten_years = 315'576'000'000;
    struct Row {
        metadata::ConfigMap broker, topic;
        std::int64_t kept_ms;                               // how long a record stays; -1: for ever
    };
    const std::vector<Row> rows = {
        {{}, {}, 604'800'000},
        {{{"log.retention.hours", "1"}}, {}, 3'600'000},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "2"}}, {}, 120'000},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "2"}, {"log.retention.ms", "1"}}, {}, 1},
        {{{"log.retention.hours", "-1"}}, {}, -1},
        {{{"log.retention.hours", "1"}, {"log.retention.minutes", "-1"}}, {}, -1},
        {{{"log.retention.minutes", "1"}, {"log.retention.ms", "-1"}}, {}, -1},
        {{{"log.retention.ms", longest}}, {}, -1},
        {{{"log.retention.ms", "-1"}}, {{"retention.ms", "1"}}, 1},
        {{{"log.retention.ms", "1"}}, {{"retention.ms", "-1"}}, -1},
        {{{"log.retention.ms", "1"}}, {{"retention.ms", longest}}, -1},
        {{{"log.retention.ms", "1"}}, {{"retention.ms", "0"}}, 0},
        {{{"log.retention.ms", "-1"}, {"log.retention.bytes", "-1"}}, {}, -1},
        {{{"log.retention.ms", "-1"}, {"log.retention.bytes", longest}}, {}, -1},
        {{{"log.retention.ms", "-1"}, {"log.retention.bytes", "1"}}, {{"retention.bytes", "-1"}}, -1},
    };
    for (const auto& row : rows) {
        auto config = metadata::log_config({.broker = {}, .cluster = {}, .file = row.broker}, row.topic);
        StorageLog log({.config = config});
        log.append("a=1 | b=1");
        const auto where = testing::PrintToString(row.broker) + testing::PrintToString(row.topic);
        if (row.kept_ms < 0) {
            EXPECT_THAT(apply(log, log.start + ten_years), IsEmpty()) << where;
        } else {
            EXPECT_THAT(apply(log, log.start + row.kept_ms), IsEmpty()) << where;
            EXPECT_EQ(apply(log, log.start + row.kept_ms + 1).size(), 2u) << where << ": the active segment too";
        }
    }
    for (const auto& [bytes, left] : std::vector<std::pair<const char*, std::size_t>>{{"1", 1}, {"0", 0}, {"70", 1}, {"71", 2}, {"-1", 2}}) {
        StorageLog log({.config = metadata::log_config({.broker = {}, .cluster = {}, .file = {{"log.retention.bytes", "5"}}}, {{"retention.ms", "-1"}, {"retention.bytes", bytes}})});
        log.append("a=1 | b=1");
        EXPECT_EQ(apply(log, log.start + ten_years).size(), 2 - left) << bytes;
    }
}

// B36: nothing but such records, in the active segment only: they were accepted and are gone, and the reason is told.
TEST(Cases, TimestampsInSecondsInTheOnlySegment) {
    auto config = seven_days();
    config.segment_ms = storage::unlimited;
    StorageLog log({.config = config});
    const auto seconds = std::to_string(log.start.value / 1000 - log.start.value);
    log.append("a=1@" + seconds + " b=1@" + seconds);
    EXPECT_EQ(log->stats().expired_records, 2u) << "they came already expired";
    const auto gone = apply(log, log.clock.now());
    ASSERT_EQ(gone.size(), 1u);
    EXPECT_EQ(gone[0].text(), "segment 0 to 1 (" + std::to_string(gone[0].bytes) + " bytes, 2 records, largest timestamp 1700000000): retention.ms 604800000: largest timestamp 1700000000");
    EXPECT_EQ(log->log_start_offset(), Offset{2});
    EXPECT_EQ(log->log_end_offset(), Offset{2});
    EXPECT_EQ(log.text(), "");

    // A limit to how old they may be refuses them, and nothing is counted.
    config.timestamp_before_max_ms = 86'400'000;
    log.set_config(config);
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, Timestamp{log.start.value / 1000}, as_bytes("c"), as_bytes("1"));
    std::vector<std::byte> batch;
    builder.finish(batch);
    EXPECT_EQ(log.append_as_client(batch).error().code, Errc::invalid_timestamp);
    EXPECT_EQ(log->stats().expired_records, 2u);
}

// A reader that planned its read before the log start moved has its bytes; the next one is told, and nobody else notices.
TEST(Cases, AReadThatWasPlannedOutlivesItsSegment) {
    auto config = seven_days();
    config.retention_ms = 0;
    config.file_delete_delay_ms = 1000;
    StorageLog log({.config = config});
    log.append("a=1 | b=1 | c=1@10000");
    const auto planned = log->read({.from = Offset{0}}).value();
    ASSERT_EQ(apply(log, log.start + 1).size(), 2u);
    std::vector<std::byte> bytes(static_cast<std::size_t>(planned.bytes));
    const auto readable = [&] {
        const auto got = planned.file->read(planned.position, bytes);
        return got && *got == bytes.size() && test::text_of(bytes, log.start) == "0:a=1";
    };
    EXPECT_TRUE(readable()) << "renamed";
    log.clock.advance(2s);
    log.directory().run_background();
    EXPECT_TRUE(readable()) << "unlinked";
    EXPECT_TRUE(planned.segment->deleted_since());
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::offset_out_of_range);
    EXPECT_EQ(log->read({.from = Offset{1}}).error().code, Errc::offset_out_of_range);
    EXPECT_EQ(log.read(Offset{2}), "2:c=1");
    EXPECT_EQ(log->earliest_offset().offset, Offset{2});
}

// A disk that fails half way: what has left the log is reported all the same, and comes back at the next start at worst.
TEST(Cases, ADiskThatFailsWhileSegmentsGo) {
    int failed = 0;
    for (int step = 0; step < 12; ++step) {
        ManualClock clock;
        io::FaultyFileSystem disk{{.clock = &clock}};
        auto config = seven_days();
        config.retention_bytes = 0;
        StorageLog log({.config = config, .files = &disk, .verify_at_end = false});
        log.append("a=1 | b=1 | c=1 |");
        disk.inject({.fail_at = step, .fault = io::Fault::io_error, .clock = &clock});
        std::vector<SegmentReport> reports;
        const auto applied = apply_retention(*log, log.start, {}, true, [&](const SegmentReport& report) { reports.push_back(report); });
        if (applied) {
            EXPECT_EQ(reports.size(), 3u);
            continue;
        }
        ++failed;
        EXPECT_TRUE(log.directory().is_offline());
        EXPECT_EQ(reports.size(), static_cast<std::size_t>(log->log_start_offset().value)) << "step " << step;
    }
    EXPECT_GT(failed, 2);
}

}  // namespace
}  // namespace tidemark::retention
