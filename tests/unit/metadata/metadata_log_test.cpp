// The metadata log on a disk: format, replay, damage, snapshots, retention.
#include "metadata/metadata_log.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "io/memory_file_system.h"
#include "metadata/quorum_state.h"
#include "metadata/replay.h"
#include "protocol/messages/kraft_version_record.h"
#include "protocol/messages/snapshot_footer_record.h"
#include "protocol/messages/snapshot_header_record.h"
#include "protocol/messages/voters_record.h"
#include "record/builder.h"

namespace tidemark::metadata {
namespace {

using namespace protocol;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int16_t version = metadata_version_max;
const std::string log_directory = "data/__cluster_metadata-0";

class MetadataLogTest : public testing::Test {
protected:
    Result<MetadataLog::Opened> open() { return MetadataLog::open(files_, clock_, options_); }
    /// A formatted log whose leader has written the bootstrap records.
    MetadataLog::Opened begun() {
        EXPECT_TRUE(MetadataLog::format(files_, clock_, "data", default_bootstrap()).has_value());
        auto opened = open();
        EXPECT_TRUE(opened.has_value()) << opened.error().message();
        EXPECT_TRUE(opened->log->begin_epoch().has_value());
        append(*opened, opened->bootstrap);
        return *std::move(opened);
    }
    /// Appends and applies, as a controller does.
    void append(MetadataLog::Opened& opened, const std::vector<MetadataRecord>& records) {
        const auto appended = opened.log->append(records, version);
        ASSERT_TRUE(appended.has_value()) << appended.error().message();
        ImageBuilder builder(opened.image);
        const Offset first = opened.log->end_offset() - static_cast<std::int64_t>(records.size());
        builder.pass(first - 1);
        for (std::size_t i = 0; i < records.size(); ++i) ASSERT_TRUE(builder.apply(records[i], first + static_cast<std::int64_t>(i)).has_value());
        opened.image = std::move(builder).build();
    }
    static MetadataRecord topic(int n) { return TopicRecord{.name = fmt::format("topic-{}", n), .topic_id = Uuid::of(static_cast<unsigned char>(100 + n))}; }
    std::vector<std::string> names(std::string_view suffix) const {
        std::vector<std::string> found;
        for (const auto& entry : *files_.list(log_directory)) {
            if (entry.name.ends_with(suffix)) found.push_back(entry.name);
        }
        return found;
    }
    std::string text(const std::string& name) const {
        const auto content = io::read_whole(const_cast<io::MemoryFileSystem&>(files_), io::join(log_directory, name));
        return content.has_value() ? std::string(as_text(*content)) : content.error().message();
    }
    void write(const std::string& name, std::int64_t at, std::string_view bytes) {
        auto file = files_.open(io::join(log_directory, name), io::OpenMode::create);
        ASSERT_TRUE(file.has_value());
        ASSERT_TRUE((*file)->write(FilePosition{at}, as_bytes(bytes)).has_value());
    }
    std::int64_t size_of(const std::string& name) const { return (*files_.status(io::join(log_directory, name)))->bytes; }
    void resize(const std::string& name, std::int64_t bytes) {
        auto file = files_.open(io::join(log_directory, name), io::OpenMode::read_write);
        ASSERT_TRUE((*file)->resize(bytes).has_value());
    }

    ManualClock clock_;
    io::MemoryFileSystem files_;
    MetadataLogOptions options_{.directory = "data", .node_id = 1};
};

const std::string first_segment = "00000000000000000000.log";

TEST_F(MetadataLogTest, FormatWritesTheBootstrapSnapshotOnce) {
    ASSERT_TRUE(MetadataLog::format(files_, clock_, "data", default_bootstrap()).has_value());
    EXPECT_THAT(names(".checkpoint"), ElementsAre("00000000000000000000-0000000000.checkpoint"));
    EXPECT_EQ(text("partition.metadata"), "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ");
    const auto before = text("00000000000000000000-0000000000.checkpoint");
    clock_.advance(std::chrono::seconds{5});
    ASSERT_TRUE(MetadataLog::format(files_, clock_, "data", {}).has_value());
    EXPECT_EQ(text("00000000000000000000-0000000000.checkpoint"), before);
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_EQ(opened->bootstrap, default_bootstrap());
    EXPECT_EQ(opened->image->metadata_version(), 0);
    EXPECT_EQ(opened->log->end_offset(), Offset{0});
}

TEST_F(MetadataLogTest, AnEmptyDirectoryBeginsWithTheNewestVersionAlone) {
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_THAT(opened->bootstrap, ElementsAre(MetadataRecord{FeatureLevelRecord{.name = "metadata.version", .feature_level = 33}}));
}

TEST_F(MetadataLogTest, EpochsAndQuorumState) {
    { auto log = begun(); }
    EXPECT_EQ(text("quorum-state"), R"({"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0})");
    EXPECT_EQ(text("leader-epoch-checkpoint"), "0\n1\n1 0\n");
    auto again = open();
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->log->epoch(), 1);
    EXPECT_THAT(again->bootstrap, IsEmpty());
    const Offset end = again->log->end_offset();
    ASSERT_TRUE(again->log->begin_epoch().has_value());
    EXPECT_EQ(again->log->epoch(), 2);
    EXPECT_EQ(again->log->end_offset(), end + 1);
    EXPECT_EQ(text("leader-epoch-checkpoint"), fmt::format("0\n2\n1 0\n2 {}\n", end.value));
    // Lost or behind the log, it does not count; ahead of it, it does.
    ASSERT_TRUE(files_.remove(log_directory + "/quorum-state").has_value());
    EXPECT_EQ(open()->log->epoch(), 2);
    write("quorum-state", 0, R"({"leaderId":1,"leaderEpoch":7,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1})");
    EXPECT_EQ(open()->log->epoch(), 7);
    ASSERT_TRUE(files_.remove(log_directory + "/quorum-state").has_value());
    write("quorum-state", 0, R"({"leaderId":1,"leaderEpoch":7,"votedId":-1,"data_version":2})");
    EXPECT_EQ(open().error().code, Errc::corrupt);
}

TEST_F(MetadataLogTest, RecordsComeBack) {
    {
        auto log = begun();
        append(log, {topic(1), topic(2)});
        clock_.advance(std::chrono::seconds{1});
        append(log, {topic(3)});
    }
    const auto opened = open();
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(opened->image->topics.size(), 3u);
    EXPECT_EQ(opened->image->offset + 1, opened->log->end_offset());
    EXPECT_EQ(opened->image->features.at("transaction.version"), 2);
}

TEST_F(MetadataLogTest, ATransactionThatDidNotEndIsVoid) {
    {
        auto log = begun();
        ASSERT_TRUE(log.log->append(std::vector<MetadataRecord>{BeginTransactionRecord{.name = "x"}, topic(1)}, version).has_value());
    }
    const auto opened = open();
    ASSERT_TRUE(opened.has_value());
    EXPECT_TRUE(opened->in_transaction);
    EXPECT_THAT(opened->image->topics, IsEmpty());
}

// --- damage ----------------------------------------------------------------------------------------------------------

TEST_F(MetadataLogTest, AnIncompleteLastBatchIsCutOff) {
    std::int64_t whole = 0, end = 0;
    {
        auto log = begun();
        append(log, {topic(1)});
        whole = size_of(first_segment);
        append(log, {topic(2)});
        end = size_of(first_segment);
    }
    const std::string content = text(first_segment);
    for (std::int64_t cut = whole; cut < end; cut += 7) {
        resize(first_segment, cut);
        const auto opened = open();
        ASSERT_TRUE(opened.has_value()) << cut << ": " << opened.error().message();
        EXPECT_EQ(opened->image->topics.size(), 1u);
        EXPECT_EQ(size_of(first_segment), whole);
        write(first_segment, 0, content);
    }
    // A last batch of which a piece never reached the disk, and zeros where the file had grown only.
    write(first_segment, end - 10, std::string(10, '\0'));
    EXPECT_EQ(open()->image->topics.size(), 1u);
    write(first_segment, 0, content);
    write(first_segment, end, std::string(4096, '\0'));
    EXPECT_EQ(open()->image->topics.size(), 2u);
    EXPECT_EQ(size_of(first_segment), end);
}

TEST_F(MetadataLogTest, DamageBeforeValidBatchesIsRefused) {
    std::int64_t at = 0;
    {
        auto log = begun();
        at = size_of(first_segment);
        append(log, {topic(1)});
        append(log, {topic(2)});
        append(log, {topic(3)});
    }
    const std::string content = text(first_segment);
    for (const std::int64_t offset : {std::int64_t{8}, std::int64_t{12}, std::int64_t{17}, std::int64_t{70}}) {   // the size, the epoch's neighbour, the CRC, a record
        if (offset == 12) continue;   // the epoch is outside the CRC: nobody can tell
        auto damaged = content;
        damaged[static_cast<std::size_t>(at + offset)] = static_cast<char>(damaged[static_cast<std::size_t>(at + offset)] ^ 0x40);
        write(first_segment, 0, damaged);
        const auto opened = open();
        ASSERT_FALSE(opened.has_value()) << offset;
        EXPECT_EQ(opened.error().code, Errc::corrupt);
        EXPECT_THAT(opened.error().context, HasSubstr(fmt::format("{} at {}", first_segment, at)));
        EXPECT_EQ(text(first_segment), damaged) << "a refused log was changed";
    }
}

TEST_F(MetadataLogTest, DamageInAnEarlierSegmentIsRefused) {
    options_.segment_bytes = 200;   // a batch each
    {
        auto log = begun();
        append(log, {topic(1)});
        append(log, {topic(2)});
    }
    ASSERT_GE(names(".log").size(), 3u);
    const auto name = names(".log")[1];
    resize(name, size_of(name) - 1);
    const auto opened = open();
    ASSERT_FALSE(opened.has_value());
    EXPECT_THAT(opened.error().context, HasSubstr("later segments follow"));
}

TEST_F(MetadataLogTest, RecordsOfALaterVersionAreRefused) {
    std::int64_t at = 0;
    {
        auto log = begun();
        at = size_of(first_segment);
    }
    const auto opened = open();
    std::vector<std::byte> batch;
    record::BatchBuilder builder;
    builder.start({.base_offset = opened->log->end_offset(), .leader_epoch = 1});
    const std::vector<std::byte> unknown{std::byte{1}, std::byte{120}, std::byte{0}, std::byte{0}};   // frame 1, type 120
    builder.append(opened->log->end_offset(), clock_.now(), std::nullopt, Bytes(unknown));
    builder.finish(batch);
    write(first_segment, at, as_text(batch));
    const auto refused = open();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::unsupported);
    EXPECT_THAT(refused.error().context, HasSubstr("120"));
}

TEST_F(MetadataLogTest, RecordsWithoutAMetadataVersionAreRefused) {
    auto opened = open();
    ASSERT_TRUE(opened->log->begin_epoch().has_value());
    ASSERT_TRUE(opened->log->append(std::vector<MetadataRecord>{topic(1)}, version).has_value());
    EXPECT_THAT(open().error().context, HasSubstr("no metadata.version"));
}

// --- snapshots -------------------------------------------------------------------------------------------------------

TEST_F(MetadataLogTest, SnapshotsAreDueBySizeAndByTime) {
    options_.snapshot_bytes = 2000;
    options_.snapshot_ms = 10'000;
    auto log = begun();
    EXPECT_FALSE(log.log->snapshot_is_due());
    for (int n = 1; !log.log->snapshot_is_due(); ++n) append(log, {topic(n)});
    EXPECT_GE(size_of(first_segment), 2000);
    ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
    EXPECT_FALSE(log.log->snapshot_is_due());
    clock_.advance(std::chrono::seconds{20});
    EXPECT_FALSE(log.log->snapshot_is_due());   // nothing new
    append(log, {topic(99)});
    EXPECT_TRUE(log.log->snapshot_is_due());
    ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
    ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());   // the second one of an offset is skipped
    EXPECT_EQ(names(".checkpoint").size(), 3u);
}

TEST_F(MetadataLogTest, TheNewestSnapshotAndTheLogBehindItGiveTheState) {
    {
        auto log = begun();
        append(log, {topic(1)});
        ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
        append(log, {topic(2)});
    }
    EXPECT_EQ(open()->image->topics.size(), 2u);
    // The log before it is not needed, the log behind it neither.
    const auto snapshot = names(".checkpoint").back();
    ASSERT_TRUE(files_.remove(io::join(log_directory, first_segment)).has_value());
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_EQ(opened->image->topics.size(), 1u);
    EXPECT_EQ(snapshot, fmt::format("{:020}-{:010}.checkpoint", opened->log->end_offset().value, opened->log->epoch()));
    EXPECT_TRUE(opened->log->begin_epoch().has_value());
    EXPECT_EQ(open()->image->topics.size(), 1u);
}

TEST_F(MetadataLogTest, ALogBehindTheSnapshotIsDiscarded) {
    std::string early;
    {
        auto log = begun();
        early = text(first_segment);
        append(log, {topic(1)});
        ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
    }
    resize(first_segment, 0);
    write(first_segment, 0, early);
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_EQ(opened->image->topics.size(), 1u);
    EXPECT_THAT(names(".log"), IsEmpty());
}

TEST_F(MetadataLogTest, ADamagedSnapshotIsMadeUpForByTheLog) {
    {
        auto log = begun();
        append(log, {topic(1)});
        ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
        append(log, {topic(2)});
    }
    const auto snapshot = names(".checkpoint").back();
    resize(snapshot, size_of(snapshot) - 3);
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_EQ(opened->image->topics.size(), 2u);
    EXPECT_THAT(names(".damaged"), ElementsAre(snapshot + ".damaged"));
    EXPECT_EQ(open()->image->topics.size(), 2u);
}

TEST_F(MetadataLogTest, ADamagedSnapshotOfWhatTheLogHasLostIsRefused) {
    {
        auto log = begun();
        append(log, {topic(1)});
        ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
    }
    const auto snapshot = names(".checkpoint").back();
    ASSERT_TRUE(files_.remove(io::join(log_directory, first_segment)).has_value());
    resize(snapshot, size_of(snapshot) - 3);
    EXPECT_EQ(open().error().code, Errc::corrupt);
    EXPECT_THAT(names(".damaged"), IsEmpty());
}

TEST_F(MetadataLogTest, ALogThatBeginsLateNeedsASnapshot) {
    options_.segment_bytes = 200;
    {
        auto log = begun();
        append(log, {topic(1)});
    }
    ASSERT_TRUE(files_.remove(io::join(log_directory, first_segment)).has_value());
    const auto opened = open();
    ASSERT_FALSE(opened.has_value());
    EXPECT_THAT(opened.error().context, HasSubstr("no snapshot"));
}

TEST_F(MetadataLogTest, LeftoversGoAway) {
    { auto log = begun(); }
    for (const char* name : {"00000000000000000005-0000000001-1.checkpoint.part", "00000000000000000003-0000000001.checkpoint.deleted", "quorum-state.tmp"}) write(name, 0, "x");
    ASSERT_TRUE(open().has_value());
    for (const char* suffix : {".part", ".deleted", ".tmp"}) EXPECT_THAT(names(suffix), IsEmpty());
}

TEST_F(MetadataLogTest, OldSegmentsAndSnapshotsLeaveWhenSizeOrAgeAskForIt) {
    options_.segment_bytes = 400;
    options_.retention_bytes = 3000;
    auto log = begun();
    for (int n = 1; n <= 20; ++n) {
        append(log, {topic(n)});
        if (n % 5 != 0) continue;
        ASSERT_TRUE(log.log->write_snapshot(*log.image).has_value());
    }
    const auto before = log.log->bytes();
    ASSERT_GT(before, 3000);
    ASSERT_TRUE(log.log->clean_up().has_value());
    EXPECT_LT(log.log->bytes(), before);
    EXPECT_GT(log.log->start_offset(), Offset{0});
    EXPECT_GE(names(".checkpoint").size(), 1u);
    const auto opened = open();
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    EXPECT_TRUE(opened->image->same_content(*log.image));
    // By age: all but the newest snapshot.
    clock_.advance(std::chrono::milliseconds{options_.retention_ms + 1});
    ASSERT_TRUE(log.log->clean_up().has_value());
    EXPECT_EQ(names(".checkpoint").size(), 1u);
    EXPECT_TRUE(open()->image->same_content(*log.image));
}

TEST_F(MetadataLogTest, SegmentsRollBySizeAndAge) {
    options_.segment_ms = 1000;
    auto log = begun();
    append(log, {topic(1)});
    EXPECT_EQ(names(".log").size(), 1u);
    clock_.advance(std::chrono::milliseconds{1001});
    append(log, {topic(2)});
    EXPECT_EQ(names(".log").size(), 2u);
    EXPECT_EQ(open()->image->topics.size(), 2u);
}

TEST_F(MetadataLogTest, ABatchTooLargeIsRefusedWhole) {
    auto log = begun();
    std::vector<MetadataRecord> large;
    for (int n = 0; n < 200; ++n) large.emplace_back(ConfigRecord{.resource_type = 2, .resource_name = "t", .name = "k", .value = std::string(65'000, 'x')});
    const auto before = size_of(first_segment);
    EXPECT_EQ(log.log->append(large, version).error().code, Errc::too_large);
    EXPECT_EQ(size_of(first_segment), before);
    append(log, {topic(1)});
}

TEST_F(MetadataLogTest, OtherVotersAreRefused) {
    // A snapshot of a quorum with dynamic voters, of which this node is one of two.
    VotersRecord voters;
    voters.voters.push_back({.voter_id = 1, .voter_directory_id = Uuid::of(9), .endpoints = {{.name = "CONTROLLER", .host = "a", .port = 1}}, .kraft_version_feature = {.min_supported_version = 0, .max_supported_version = 1}});
    const auto write_with = [&](const VotersRecord& record) {
        std::vector<std::byte> bytes;
        const BatchPlace place{.base_offset = Offset{0}, .epoch = 0, .timestamp = clock_.now()};
        const auto encoded = [](const auto& message) { return *protocol::encode(message, 0); };
        std::vector<ControlEntry> header{{record::ControlType::snapshot_header, encoded(SnapshotHeaderRecord{})},
                                         {record::ControlType::kraft_version, encoded(KRaftVersionRecord{.kraft_version = 1})},
                                         {record::ControlType::kraft_voters, encoded(record)}};
        write_control_batch(place, header, bytes);
        ASSERT_TRUE(write_metadata_batch({.base_offset = Offset{3}, .epoch = 0, .timestamp = clock_.now()}, default_bootstrap(), version, bytes).has_value());
        std::vector<ControlEntry> footer{{record::ControlType::snapshot_footer, encoded(SnapshotFooterRecord{})}};
        write_control_batch({.base_offset = Offset{7}, .epoch = 0, .timestamp = clock_.now()}, footer, bytes);
        ASSERT_TRUE(io::create_directories(files_, log_directory).has_value());
        ASSERT_TRUE(io::replace_content(files_, io::join(log_directory, "00000000000000000000-0000000000.checkpoint"), bytes).has_value());
    };
    options_.directory_id = Uuid::of(9);
    write_with(voters);
    auto alone = open();
    ASSERT_TRUE(alone.has_value()) << alone.error().message();
    // Alone it may lead; the first batch of its epoch carries the voters on, and quorum-state has the other form.
    ASSERT_TRUE(alone->log->begin_epoch().has_value());
    EXPECT_EQ(alone->log->end_offset(), Offset{3});
    EXPECT_THAT(text("quorum-state"), HasSubstr("\"data_version\":1"));
    EXPECT_TRUE(open().has_value());
    voters.voters.push_back(voters.voters.front());
    voters.voters.back().voter_id = 2;
    ASSERT_TRUE(io::remove_all(files_, log_directory).has_value());
    write_with(voters);
    EXPECT_EQ(open().error().code, Errc::unsupported);
    EXPECT_THAT(open().error().context, HasSubstr("node 2 votes"));
}

// --- faults ----------------------------------------------------------------------------------------------------------

/// Whenever power is lost: what append() had answered is there, and at most the one record more that was being written.
TEST(MetadataLogFaults, EveryAnsweredRecordSurvivesAPowerLoss) {
    ManualClock clock;
    const MetadataLogOptions options{.directory = "data", .node_id = 1, .segment_bytes = 400, .snapshot_bytes = 600, .retention_bytes = 1500};
    const auto name = [](int n) { return fmt::format("topic-{}", n); };
    // Adds topics one by one, with snapshots and cleaning in between; returns how many were answered.
    const auto work = [&](io::FileSystem& files) {
        if (!MetadataLog::format(files, clock, "data", default_bootstrap()).has_value()) return -1;
        auto opened = MetadataLog::open(files, clock, options);
        if (!opened.has_value() || !opened->log->begin_epoch().has_value()) return -1;
        ImageBuilder builder(opened->image);
        const auto add = [&](const std::vector<MetadataRecord>& records) {
            Offset offset = opened->log->end_offset();
            if (!opened->log->append(records, version).has_value()) return false;
            for (const auto& record : records) {
                EXPECT_TRUE(builder.apply(record, offset).has_value());
                ++offset;
            }
            return true;
        };
        if (!opened->bootstrap.empty() && !add(opened->bootstrap)) return -1;
        int answered = static_cast<int>(opened->image->topics.size());
        for (int n = answered; n < 10; ++n) {
            if (!add({TopicRecord{.name = name(n), .topic_id = Uuid::of(static_cast<unsigned char>(100 + n))}})) return answered;
            ++answered;
            if (!opened->log->snapshot_is_due()) continue;
            if (!opened->log->write_snapshot(builder.image()).has_value()) return answered;
            if (!opened->log->clean_up().has_value()) return answered;
        }
        return answered;
    };
    int steps = 0;
    for (int step = 0;; ++step, ++steps) {
        io::FaultyFileSystem disk{{.lose_power_at = step}};
        const int answered = work(disk);
        if (!disk.tripped()) break;
        for (const std::uint64_t seed : {1u, 2u, 3u}) {
            auto after = disk.after_restart({.seed = seed});
            const auto formatted = MetadataLog::format(after, clock, "data", default_bootstrap());
            ASSERT_TRUE(formatted.has_value()) << "step " << step << ": " << formatted.error().message();
            auto opened = MetadataLog::open(after, clock, options);
            ASSERT_TRUE(opened.has_value()) << "step " << step << " seed " << seed << ": " << opened.error().message();
            const int found = static_cast<int>(opened->image->topics.size());
            EXPECT_GE(found, answered) << "step " << step << " seed " << seed;
            EXPECT_LE(found, std::max(answered, 0) + 1) << "step " << step << " seed " << seed;
            for (int n = 0; n < found; ++n) EXPECT_NE(opened->image->find(name(n)), nullptr);
            // And it goes on from there.
            EXPECT_EQ(work(after), 10) << "step " << step << " seed " << seed;
        }
    }
    EXPECT_GT(steps, 50);
}

TEST(MetadataLogFaults, WhatMakesRoomIsAskedBeforeAnythingIsRefused) {
    for (int step = 0;; ++step) {
        ManualClock clock;
        io::FaultyFileSystem disk;
        ASSERT_TRUE(MetadataLog::format(disk, clock, "data", default_bootstrap()).has_value());
        int asked = 0;
        auto opened = MetadataLog::open(disk, clock, {.directory = "data", .node_id = 1, .make_room = [&] { ++asked; }});
        disk.inject({.fail_at = step, .fault = io::Fault::short_write, .counted = [](const io::Call& call) {
                         return call.operation == io::Operation::write || call.operation == io::Operation::create;
                     }});
        ASSERT_TRUE(opened->log->begin_epoch().has_value()) << step;
        ASSERT_TRUE(opened->log->append(opened->bootstrap, version).has_value()) << step;
        ASSERT_TRUE(MetadataLog::open(disk, clock, {.directory = "data", .node_id = 1}).has_value());
        EXPECT_EQ(asked, disk.tripped() ? 1 : 0);
        if (!disk.tripped()) {
            EXPECT_GT(step, 4);
            break;
        }
    }
}

TEST(MetadataLogFaults, AFullDiskRefusesAndHeals) {
    ManualClock clock;
    io::FaultyFileSystem disk;
    ASSERT_TRUE(MetadataLog::format(disk, clock, "data", default_bootstrap()).has_value());
    auto opened = MetadataLog::open(disk, clock, {.directory = "data", .node_id = 1});
    ASSERT_TRUE(opened->log->begin_epoch().has_value());
    ASSERT_TRUE(opened->log->append(opened->bootstrap, version).has_value());
    const Offset end = opened->log->end_offset();
    disk.inject({.fail_at = 0, .fail_calls = 1, .fault = io::Fault::short_write});
    EXPECT_EQ(opened->log->append(std::vector<MetadataRecord>{TopicRecord{.name = "a", .topic_id = Uuid::of(100)}}, version).error().code, Errc::no_space);
    EXPECT_EQ(opened->log->end_offset(), end);
    disk.inject({});
    ASSERT_TRUE(opened->log->append(std::vector<MetadataRecord>{TopicRecord{.name = "b", .topic_id = Uuid::of(101)}}, version).has_value());
    const auto again = MetadataLog::open(disk, clock, {.directory = "data", .node_id = 1});
    ASSERT_TRUE(again.has_value()) << again.error().message();
    EXPECT_EQ(again->image->topics.size(), 1u);
    EXPECT_NE(again->image->find("b"), nullptr);
}

TEST(MetadataLogFaults, AFailedSyncEndsIt) {
    ManualClock clock;
    io::FaultyFileSystem disk;
    ASSERT_TRUE(MetadataLog::format(disk, clock, "data", default_bootstrap()).has_value());
    auto opened = MetadataLog::open(disk, clock, {.directory = "data", .node_id = 1});
    ASSERT_TRUE(opened->log->begin_epoch().has_value());
    disk.inject({.fail_at = 0, .fail_calls = 1, .counted = [](const io::Call& call) { return call.operation == io::Operation::sync; }});
    EXPECT_FALSE(opened->log->append(opened->bootstrap, version).has_value());
    disk.inject({});
    EXPECT_EQ(opened->log->append(opened->bootstrap, version).error().code, Errc::storage_offline);
    EXPECT_FALSE(opened->log->snapshot_is_due());
}

// --- quorum-state ----------------------------------------------------------------------------------------------------

TEST(QuorumStateText, ReadsWhatItWrites) {
    for (const int data_version : {0, 1}) {
        const auto state = parse_quorum_state(quorum_state_text({.data_version = data_version, .leader_id = 3, .leader_epoch = 9, .voted_id = -1}));
        ASSERT_TRUE(state.has_value());
        EXPECT_EQ(state->data_version, data_version);
        EXPECT_EQ(state->leader_id, 3);
        EXPECT_EQ(state->leader_epoch, 9);
    }
    EXPECT_EQ(quorum_state_text({.data_version = 1, .leader_id = 1, .leader_epoch = 2}),
              R"({"leaderId":1,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1})");
    for (const char* bad : {"", "[]", "{}", R"({"leaderId":1,"leaderEpoch":2,"votedId":-1})", R"({"leaderId":1,"leaderEpoch":"x","votedId":-1,"data_version":0})"}) {
        EXPECT_EQ(parse_quorum_state(bad).error().code, Errc::corrupt) << bad;
    }
}

}  // namespace
}  // namespace tidemark::metadata
