// What Apache Kafka's own suites ask of a cleaner, played on this one: the walk that builds the map, duplicates after a pass,
// transactions over passes and segments, and what is left at the end.
#include <gmock/gmock.h>
#include <zlib.h>

#include "cleaner/cleaning.h"
#include "record/compression.h"
#include "record/control.h"
#include "storage/segment.h"
#include "tests/support/log/test_log.h"

namespace tidemark::cleaner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using test::TestLog;
using test::TestLogOptions;

void ok(const auto& result) { ASSERT_TRUE(result) << result.error().message(); }

TestLogOptions delete_retention(std::chrono::milliseconds time, TestLogOptions options = {}) {
    options.config.delete_retention_ms = time.count();
    return options;
}

Result<PassStats> clean_range(TestLog& log, Offset first_dirty, Offset end, std::int64_t buffer_bytes = 262'144) {
    Throttle throttle(log.clock);
    return run_pass(*log.log, {.first_dirty = first_dirty, .cleanable_end = end}, {.buffer_bytes = buffer_bytes}, log.work, throttle, log.clock, [] { return Result<>{}; });
}

std::vector<std::byte> content(TestLog& log, const std::string& name) {
    const auto file = log.disk.open("/logs/t-0/" + name, io::OpenMode::read).value();
    std::vector<std::byte> bytes(static_cast<std::size_t>(log.disk.status("/logs/t-0/" + name).value()->bytes));
    EXPECT_EQ(file->read(FilePosition{0}, bytes).value(), bytes.size());
    return bytes;
}

std::int64_t closed_bytes(const TestLog& log) {
    std::int64_t bytes = 0;
    const auto segments = *log.log->segments();
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) bytes += segments[i]->bytes();
    return bytes;
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST(Mirrored, ObsoleteKeysVanishAndAllBytesAreRead) {
    TestLog log;
    ok(log.append("0=a 1=a 2=a | 3=a 4=a 5=a | 6=a 7=a 8=a 9=a | 1=b 3=b 5=b 7=b 9=b | z=1"));
    const auto bytes = closed_bytes(log);
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "0:0=a 2:2=a 4:4=a 6:6=a 8:8=a 10:1=b 11:3=b 12:5=b 13:7=b 14:9=b | 15:z=1");
    EXPECT_EQ(stats.bytes_read, bytes);
    EXPECT_EQ(stats.map_bytes_read, bytes);
    EXPECT_EQ(stats.bytes_written, closed_bytes(log));
}

TEST(Mirrored, DeletedKeysAreAbsentHoweverOldTheirTombstones) {
    TestLog log(delete_retention(60s));
    std::string script;
    for (int key = 0; key < 10; ++key) script += std::to_string(key) + "=v ";
    for (int key = 0; key < 10; key += 2) script += std::to_string(key) + "=~@1 ";   // their own times are long ago
    ok(log.append(script + "| z=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:1=v 3:3=v 5:5=v 7:7=v 9:9=v 10:0=~@h60s 11:2=~@h60s 12:4=~@h60s 13:6=~@h60s 14:8=~@h60s | 15:z=1");
    log.clock.advance(60s);
    ok(log.append("|"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:1=v 3:3=v 5:5=v 7:7=v 9:9=v 15:z=1 | ");
}

TEST(Mirrored, APreallocatedTopicsCleanedFileIsAsLongAsWhatStays) {
    TestLogOptions options;
    options.config.preallocate = true;
    options.config.segment_bytes = 1 << 20;
    TestLog log(options);
    ok(log.append("a=1 a=2 b=1 | z=1"));
    EXPECT_EQ(log.disk.status("/logs/t-0/00000000000000000003.log").value()->bytes, 1 << 20);
    ok(log.clean());
    EXPECT_EQ(log.disk.status("/logs/t-0/00000000000000000000.log").value()->bytes, log.log->segments()->front()->bytes());
    EXPECT_EQ(log.text(), "1:a=2 2:b=1 | 3:z=1");
}

TEST(Mirrored, ARecordWithAMarkersKeyIsNoMarker) {
    TestLog log;
    ok(log.append("t1:a=1 c1"));
    const auto key = record::control_key(record::ControlType::commit);
    for (const char* value : {"old", "new"}) {
        record::BatchBuilder builder;
        builder.start({});
        builder.append(Offset{0}, log.clock.now(), Bytes(key), as_bytes(std::string_view{value}));
        std::vector<std::byte> bytes;
        builder.finish(bytes);
        ok(log.log->append(bytes, {}));
    }
    ok(log.append("t1:b=1 c1 | z=1"));
    const auto stats = log.clean().value();
    EXPECT_EQ(stats.superseded, 1);
    EXPECT_THAT(log.text(), HasSubstr("0:a=1 1:commit1 3:"));
    EXPECT_THAT(log.text(), HasSubstr("4:b=1 5:commit1"));
}

TEST(Mirrored, ALegacyWrapperAroundStillOlderMessages) {
    // KAFKA-4298: format 1 outside, format 0 inside, as an old cleaner wrote it.
    const auto wrapper = [](std::int64_t last, std::initializer_list<const char*> values) {
        std::vector<std::byte> inner, value;
        std::int64_t offset = 0;
        for (const char* v : values) {
            record::BatchBuilder builder;
            builder.start({.magic = 0, .base_offset = Offset{offset}});
            builder.append(Offset{offset++}, no_timestamp, as_bytes(std::string_view{v}), as_bytes(std::string_view{v}));
            builder.finish(inner);
        }
        record::compress(record::Codec::gzip, inner, value, {}, {.magic = 1});
        std::vector<std::byte> bytes(34);
        store_be(bytes.data(), last);
        bytes[16] = bytes[17] = std::byte{1};
        store_be(bytes.data() + 18, std::int64_t{1000});
        store_be(bytes.data() + 26, std::int32_t{-1});
        store_be(bytes.data() + 30, static_cast<std::int32_t>(value.size()));
        append_bytes(bytes, value);
        store_be(bytes.data() + 8, static_cast<std::int32_t>(bytes.size() - record::log_overhead));
        store_be(bytes.data() + 12, static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data() + 16), bytes.size() - 16)));
        return bytes;
    };
    TestLog log;
    for (auto bytes : {wrapper(2, {"a", "b", "c"}), wrapper(5, {"d", "a", "e"})}) ok(log.log->append(bytes, {.origin = storage::Origin::replication}));
    ok(log.append("| z=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:b=b 2:c=c 3:d=d 4:a=a 5:e=e | 6:z=1");
}

// --- the map ---------------------------------------------------------------------------------------------------------

TEST(Mirrored, TheMapHoldsWhatFits) {
    TestLog log({.map_slots = 3, .map_load = 0.75});          // two keys
    ok(log.append("0=a 1=a 2=a 3=a 4=a | z=1"));
    log.checkpoint = Offset{2};
    const auto stats = log.clean().value();
    const auto offset_of = [&](std::string_view key) { return log.work.map.get(log.work.map.hash(as_bytes(key))); };
    EXPECT_EQ(offset_of("2"), Offset{2});
    EXPECT_EQ(offset_of("3"), Offset{3});
    EXPECT_EQ(offset_of("4"), std::nullopt);
    EXPECT_EQ(log.work.map.latest_offset(), Offset{3});
    EXPECT_EQ(stats.map_messages_read, 4) << "those below the first dirty offset too, but not the one that found no room";
    EXPECT_EQ(stats.end_offset, Offset{4});
}

TEST(Mirrored, TheMapSpeaksForTheGapsBehindItsSegments) {
    TestLogOptions options;
    options.config.segment_bytes = 250;                        // a group each
    TestLog log(options);
    ok(log.append("keep=1 a=1 b=1 | a=2 b=2 | c=1 c=2 | a=3 b=3 c=3 | z=1"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "0:keep=1 | | | 7:a=3 8:b=3 9:c=3 | 10:z=1");
    for (const std::int64_t end : {3, 5, 7, 10}) {
        EXPECT_EQ(clean_range(log, Offset{0}, Offset{end}).value().end_offset, Offset{end});
        EXPECT_EQ(log.work.map.latest_offset(), Offset{end - 1});
        EXPECT_EQ(log.work.map.size(), end == 10 ? 4 : 1);
    }
    TestLog far;
    ok(far.append("a=1 >7206178 b=1 a=2 | z=1"));
    const auto stats = far.clean().value();
    EXPECT_EQ(stats.end_offset, Offset{7'206'180});
    EXPECT_EQ(far.text(), "7206178:b=1 7206179:a=2 | 7206180:z=1");
}

TEST(Mirrored, SegmentsAreMappedByRange) {
    TestLogOptions options;
    options.config.segment_bytes = 250;
    for (const auto& [first, end, keys] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{{0, 2, 2}, {2, 4, 2}, {0, 4, 4}, {1, 4, 3}, {3, 6, 3}}) {
        TestLog log(options);
        ok(log.append("a=1 b=1 | c=1 d=1 | e=1 f=1 | z=1"));
        ok(clean_range(log, Offset{first}, Offset{end}));
        EXPECT_EQ(log.work.map.size(), keys) << first << " to " << end;
        EXPECT_EQ(log.work.map.get(log.work.map.hash(as_bytes("b"))).has_value(), first <= 1) << first << " to " << end;
    }
}

TEST(Mirrored, WhateverTheBuffersTheFilesAreTheSame) {
    std::string script;
    for (int i = 0; i < 60; ++i) script += "[k" + std::to_string(i % 7) + "=" + std::string(static_cast<std::size_t>(i), 'x') + " u" + std::to_string(i) + "=1 k" + std::to_string(i % 5) + "=~] ";
    std::map<std::string, std::vector<std::byte>> expected;
    for (const std::int64_t buffer : {262'144, 1, 61, 100, 150, 999, 5000}) {
        TestLogOptions options;
        options.buffer_bytes = buffer;
        options.config.index_interval_bytes = 200;
        options.codec = record::Codec::zstd;
        TestLog log(options);
        ok(log.append(script + "| z=1"));
        ok(log.clean());
        std::map<std::string, std::vector<std::byte>> files;
        for (const auto& name : log.files()) {
            if (name.starts_with("00000000000000000000.") && !name.ends_with(".deleted")) files[name] = content(log, name);
        }
        EXPECT_THAT(files, testing::Contains(testing::Key("00000000000000000000.timeindex")));
        if (expected.empty()) expected = files;
        EXPECT_EQ(files, expected) << buffer;
    }
}

TEST(Mirrored, WhatCannotBeCleanedStaysByteForByte) {
    TestLog log;
    ok(log.append("a=1 | a=2 | t1:b=1 a=3 | a=4 | a=5"));
    const auto bytes = [&] {
        std::map<std::string, std::vector<std::byte>> files;
        for (const char* name : {"00000000000000000002.log", "00000000000000000004.log", "00000000000000000005.log"}) files[name] = content(log, name);
        return files;
    };
    const auto before = bytes();
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:a=2 | 2:b=1 3:a=3 | 4:a=4 | 5:a=5");
    EXPECT_EQ(bytes(), before);
}

TEST(Mirrored, MinCompactionLagInEveryCodec) {
    for (const auto codec : {record::Codec::none, record::Codec::gzip, record::Codec::snappy, record::Codec::lz4, record::Codec::zstd}) {
        TestLogOptions options;
        options.codec = codec;
        options.config.min_compaction_lag_ms = 60'000;
        TestLog log(options);
        ok(log.append("[a=1 b=1] a=2 |"));
        log.clock.advance(59'999ms);
        ok(log.append("[a=3 c=1 c=2] | z=1"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "0:a=1 1:b=1 2:a=2 | 3:a=3 4:c=1 5:c=2 | 6:z=1");
        log.clock.advance(1ms);
        ok(log.clean());
        EXPECT_EQ(log.text(), "1:b=1 2:a=2 | 3:a=3 4:c=1 5:c=2 | 6:z=1") << "up to what was active when the lag began";
        EXPECT_EQ(log.checkpoint, Offset{3});
    }
}

// --- producers -------------------------------------------------------------------------------------------------------

/// A batch that producer sent before, sent again.
storage::AppendInfo send_again(TestLog& log, ProducerId producer, const std::vector<std::string>& keys) {
    record::BatchBuilder builder;
    builder.start({.producer_id = producer, .producer_epoch = 0, .base_sequence = 0});
    for (std::size_t i = 0; i < keys.size(); ++i) builder.append(Offset{static_cast<std::int64_t>(i)}, log.clock.now(), as_bytes(keys[i]), as_bytes("again"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    const auto info = log.log->append(bytes, {});
    EXPECT_TRUE(info) << info.error().message();
    return info ? *info : storage::AppendInfo{};
}

TEST(Mirrored, DuplicatesAreAnsweredWithTheirFirstOffsetsAfterAnyPass) {
    TestLog log;
    ok(log.append("p1:[1=a 2=a 3=a] p2:[3=b 1=b 4=b] p3:[1=c 4=c] |"));
    const auto expect_duplicates = [&] {
        for (const bool clean : {true, false}) {
            for (const auto& name : log.files()) {
                if (!clean && name.ends_with(".snapshot")) ok(log.disk.remove("/logs/t-0/" + name));
            }
            log.reopen(clean);
            const std::vector<std::tuple<ProducerId, std::vector<std::string>, std::int64_t>> batches = {{1, {"1", "2", "3"}, 0}, {2, {"3", "1", "4"}, 3}, {3, {"1", "4"}, 6}};
            for (const auto& [producer, keys, first] : batches) {
                const auto info = send_again(log, producer, keys);
                EXPECT_TRUE(info.duplicate) << producer;
                EXPECT_EQ(info.first_offset, Offset{first});
                EXPECT_EQ(info.last_offset, Offset{first + static_cast<std::int64_t>(keys.size()) - 1});
            }
        }
    };
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:2=a 3:3=b 6:1=c 7:4=c | ");
    expect_duplicates();
    ok(log.append("p4:2=d |"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "2:(p1) 3:3=b 6:1=c 7:4=c 8:2=d | ");
    expect_duplicates();
}

TEST(Mirrored, BatchesOfWhichNothingIsLeftDoNotStopTheReader) {
    for (const std::int64_t buffer : {1, 75, 200, 4096}) {
        TestLog log({.buffer_bytes = buffer});
        std::string script;
        for (int i = 0; i < 50; ++i) script += "t1:k=" + std::to_string(i) + " ";
        for (int i = 0; i < 50; ++i) script += "t2:q=" + std::to_string(i) + " ";
        ok(log.append(script + "x1 c2 t1:last=1 c1 t2:q=new c2 | z=1"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "100:abort1 101:commit2 102:last=1 103:commit1 104:q=new 105:commit2 | 106:z=1") << buffer;
    }
}

// --- transactions ----------------------------------------------------------------------------------------------------

TEST(Mirrored, AbortedAndCommittedDataBesideEachOther) {
    TestLog log;
    ok(log.append("t1:[a=1 b=1] t2:[a=2 c=2] x1 c2 t1:b=3 t2:[c=4 d=4] c1 x2 | z=1"));
    const auto aborted = log.log->aborted_between(Offset{0}, Offset{100});
    EXPECT_THAT(aborted, SizeIs(2));
    const auto bytes = closed_bytes(log);
    const auto stats = log.clean().value();
    EXPECT_EQ(log.text(), "2:a=2 3:c=2 4:abort1 5:commit2 6:b=3 8:(p2) 9:commit1 10:abort2 | 11:z=1");
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
    EXPECT_EQ(stats.bytes_read, bytes) << "what is dropped whole is read";
    EXPECT_EQ(stats.messages_read, 9) << "but not decoded";
    EXPECT_EQ(log.committed(), (std::map<std::string, std::string>{{"a", "2"}, {"b", "3"}, {"c", "2"}, {"z", "1"}}));
}

TEST(Mirrored, OfATransactionOverSegmentsGoesWhatLiesInTheRange) {
    TestLog log;
    ok(log.append("t1:a=1 | t1:b=1 x1 | z=1"));
    const auto aborted = log.log->aborted_between(Offset{0}, Offset{100});
    ok(clean_range(log, Offset{0}, Offset{1}));
    EXPECT_EQ(log.text(), "| 1:b=1 2:abort1 | 3:z=1");
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
    ok(clean_range(log, Offset{1}, Offset{3}));
    EXPECT_EQ(log.text(), "1:(p1) 2:abort1 | 3:z=1");
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
}

TEST(Mirrored, DataAndMarkerInDifferentSegments) {
    for (const bool commit : {true, false}) {
        TestLog log;
        ok(log.append(std::string{"t1:a=1 | "} + (commit ? "c1" : "x1") + " | z=1"));
        for (int pass = 0; pass < 2; ++pass) {
            log.checkpoint = Offset{0};
            ok(log.clean());
            EXPECT_EQ(log.text(), commit ? "0:a=1 1:commit1 | 2:z=1" : "0:(p1) 1:abort1 | 2:z=1");
        }
    }
}

TEST(Mirrored, AbortsOverPartialPasses) {
    // A map of four keys. First the aborted data goes, then the index entry, and after delete.retention.ms the marker.
    TestLog log(delete_retention(10s, {.map_slots = 5, .map_load = 0.8}));
    ok(log.append("t1:a=1 t2:b=1 t1:e=1 x1 t2:d=1 c2 f=1 g=1 h=1 i=1 t1:j=1 c1 | z=1"));
    const auto aborted = log.log->aborted_between(Offset{0}, Offset{100});
    EXPECT_THAT(aborted, SizeIs(1));
    ok(log.clean());
    EXPECT_EQ(log.checkpoint, Offset{8});
    EXPECT_EQ(log.text(), "1:b=1 3:abort1 4:d=1 5:commit2 6:f=1 7:g=1 8:h=1 9:i=1 10:j=1 11:commit1 | 12:z=1");
    EXPECT_EQ(log.log->aborted_between(Offset{0}, Offset{100}), aborted);
    ok(log.clean());
    EXPECT_EQ(log.checkpoint, Offset{12});
    EXPECT_EQ(log.text(), "1:b=1 3:abort1@h10s 4:d=1 5:commit2 6:f=1 7:g=1 8:h=1 9:i=1 10:j=1 11:commit1 | 12:z=1");
    EXPECT_THAT(log.log->aborted_between(Offset{0}, Offset{100}), IsEmpty());
    log.clock.advance(10s);
    ok(log.append("|"));
    ok(log.clean());
    EXPECT_EQ(log.text(), "1:b=1 4:d=1 5:commit2 6:f=1 7:g=1 8:h=1 9:i=1 10:j=1 11:commit1 12:z=1 | ");
}

TEST(Mirrored, AnEmptyBatchKeepsItsMarkerUntilItsProducerWritesAgain) {
    for (const bool commit : {true, false}) {
        TestLog log(delete_retention(10s));
        const std::string marker = commit ? "commit1" : "abort1";
        ok(log.append(std::string{"t1:a=1 "} + (commit ? "c1" : "x1") + " a=2 |"));
        for (int pass = 0; pass < 3; ++pass) {
            log.checkpoint = Offset{0};
            ok(log.clean());
            EXPECT_EQ(log.text(), "0:(p1) 1:" + marker + " 2:a=2 | ");
            EXPECT_THAT(log.log->aborted_between(Offset{0}, Offset{100}), SizeIs(commit ? 0 : 1));
            log.clock.advance(10s);
        }
        ok(log.append("t1:b=1 c1 |"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "1:" + marker + " 2:a=2 3:b=1 4:commit1 | ");
        EXPECT_THAT(log.log->aborted_between(Offset{0}, Offset{100}), SizeIs(commit ? 0 : 1)) << "this pass has still seen its data";
        log.checkpoint = Offset{0};
        ok(log.clean());
        EXPECT_EQ(log.text(), "1:" + marker + "@h10s 2:a=2 3:b=1 4:commit1 | ");
        EXPECT_THAT(log.log->aborted_between(Offset{0}, Offset{100}), IsEmpty());
        log.clock.advance(10s);
        log.checkpoint = Offset{0};
        ok(log.clean());
        EXPECT_EQ(log.text(), "2:a=2 3:b=1 4:commit1 | ");
    }
}

TEST(Mirrored, AMarkerWithoutDataStaysEmptyWhileItIsAllThatItsProducerLeft) {
    for (const bool crash : {true, false}) {
        TestLog log(delete_retention(10s));
        ok(log.append("c1 z=1 |"));
        ok(log.clean());
        EXPECT_EQ(log.text(), "0:commit1@h10s 1:z=1 | ");
        log.clock.advance(10s);
        for (int pass = 0; pass < 3; ++pass) {
            log.checkpoint = Offset{0};
            ok(log.clean());
            EXPECT_EQ(log.text(), "0:(marker1) 1:z=1 | ");
            log.reopen();
        }
        if (crash) {
            // Whoever rebuilds the producers from the records does not learn of this one any more.
            for (const auto& name : log.files()) {
                if (name.ends_with(".snapshot")) ok(log.disk.remove("/logs/t-0/" + name));
            }
            log.reopen(false);
        } else {
            ok(log.append("t1:d=1 c1 |"));
        }
        log.checkpoint = Offset{0};
        ok(log.clean());
        EXPECT_EQ(log.text(), crash ? "1:z=1 | " : "1:z=1 2:d=1 3:commit1 | ");
    }
}

}  // namespace
}  // namespace tidemark::cleaner
