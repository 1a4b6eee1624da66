#include "storage/log_manager.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "record/builder.h"
#include "storage/checkpoint.h"
#include "storage/delete_records.h"
#include "storage/recovery.h"
#include "storage/segments_file.h"

namespace tidemark::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const Uuid topic_id = Uuid::of(9);

std::vector<std::byte> one_record() {
    record::BatchBuilder builder;
    builder.start({});
    builder.append(Offset{0}, Timestamp{1'700'000'000'000}, as_bytes("k"), as_bytes("v"));
    std::vector<std::byte> bytes;
    builder.finish(bytes);
    return bytes;
}

class LogManagerTest : public testing::Test {
protected:
    ManualClock clock;
    io::MemoryFileSystem files{io::MemoryOptions{.clock = &clock}};
    StorageOptions options;
    std::unique_ptr<LogManager> manager;
    std::set<std::string> strangers;  // topics that metadata does not know
    std::shared_ptr<LogConfig> config = std::make_shared<LogConfig>();
    LoadReport report;

    void SetUp() override {
        options.log_dirs = {"/a"};
        options.reserve_bytes = 0;
    }
    Result<> open(LogManager::Identity identity = {.cluster_id = "c", .node_id = 1}) {
        manager.reset();
        TM_TRY(manager, LogManager::open(files, clock, options, std::move(identity)));
        TM_TRY(report, manager->load([&](const FoundLog& found) { return strangers.contains(found.partition.topic) ? nullptr : config; }));
        return {};
    }
    std::shared_ptr<Log> create(const std::string& topic, std::int32_t partition = 0) {
        auto log = manager->create({topic, partition}, topic_id, config);
        EXPECT_TRUE(log) << log.error().message();
        return log ? *log : nullptr;
    }
    void append(Log& log) {
        auto batch = one_record();
        ASSERT_TRUE(log.append(batch, {.leader_epoch = 0}));
    }
    std::string text(const io::Path& path) {
        const auto content = io::read_whole(files, path);
        return content ? std::string(as_text(*content)) : "(" + content.error().message() + ")";
    }
    std::vector<std::string> names(const io::Path& directory) {
        std::vector<std::string> all;
        const auto entries = files.list(directory);
        if (!entries) return all;
        for (const auto& e : *entries) all.push_back(e.name);
        return all;
    }
    void put(const io::Path& path, std::string_view content) { ASSERT_TRUE(io::replace_content(files, path, as_bytes(content))); }
};

TEST_F(LogManagerTest, ANewDirectoryIsFormatted) {
    ASSERT_TRUE(open());
    const auto properties = read_meta_properties(files, "/a/meta.properties").value();
    ASSERT_TRUE(properties);
    EXPECT_EQ(properties->cluster_id, "c");
    EXPECT_EQ(properties->node_id, 1);
    EXPECT_FALSE(manager->was_clean());
    const auto id = manager->directories().front().directory_id;
    ASSERT_TRUE(manager->close(7));
    ASSERT_TRUE(open({}));  // nothing expected: what the directory says
    EXPECT_EQ(manager->identity().cluster_id, "c");
    EXPECT_EQ(manager->directories().front().directory_id, id);
    EXPECT_TRUE(manager->was_clean());
    EXPECT_EQ(manager->previous_broker_epoch(), 7);
}

TEST_F(LogManagerTest, ADirectoryOfAnotherIsRefused) {
    ASSERT_TRUE(open());
    ASSERT_TRUE(manager->close(-1));
    manager.reset();
    EXPECT_THAT(open({.cluster_id = "other", .node_id = 1}).error().context, HasSubstr("belongs to cluster c, not other"));
    EXPECT_THAT(open({.cluster_id = "c", .node_id = 2}).error().context, HasSubstr("belongs to node 1"));
    options.log_dirs = {"/a", "/b"};
    ASSERT_TRUE(io::create_directories(files, "/b"));
    put("/b/meta.properties", text("/a/meta.properties"));
    EXPECT_THAT(open().error().context, HasSubstr("has the directory.id of another log directory"));
    options.log_dirs = {"/a", "/a"};
    EXPECT_THAT(open().error().context, HasSubstr("twice"));
}

TEST_F(LogManagerTest, TwoCannotOwnOne) {
    ASSERT_TRUE(open());
    const auto second = LogManager::open(files, clock, options, {.cluster_id = "c"});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::locked);
}

TEST_F(LogManagerTest, LogsComeBackWithTheirSettings) {
    ASSERT_TRUE(open());
    append(*create("orders", 1));
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(open());
    EXPECT_EQ(report.logs, 1u);
    EXPECT_EQ(report.record_bytes_read, 0);
    const auto log = manager->find({"orders", 1});
    ASSERT_TRUE(log);
    EXPECT_EQ(log->log_end_offset(), Offset{1});
    EXPECT_EQ(log->topic_id(), topic_id);
    EXPECT_EQ(manager->find({"orders", 0}), nullptr);
    EXPECT_EQ(manager->create({"orders", 1}, topic_id, config).value(), log);
    EXPECT_EQ(manager->create({"orders", 1}, Uuid::of(1), config).error().code, Errc::already_exists);
}

TEST_F(LogManagerTest, TheCleanMarkerIsGoneWhileItRuns) {
    ASSERT_TRUE(open());
    create("orders");
    ASSERT_TRUE(manager->close(42));
    EXPECT_EQ(text("/a/.kafka_cleanshutdown"), "{\"version\":0,\"brokerEpoch\":42}");
    ASSERT_TRUE(open());
    EXPECT_FALSE(files.status("/a/.kafka_cleanshutdown").value().has_value());
    ASSERT_TRUE(open());  // killed
    EXPECT_FALSE(manager->was_clean());
    EXPECT_EQ(manager->previous_broker_epoch(), std::nullopt);
}

TEST(LostRecords, AreWhatAnUncleanStopMayHaveTaken) {
    const StopTraces nothing{.end = Offset{10}, .recovery_point = Offset{5}, .high_watermark = Offset{10}};
    const auto with = [&](auto change) {
        auto traces = nothing;
        change(traces);
        return may_have_lost_records(traces);
    };
    EXPECT_FALSE(may_have_lost_records(nothing));
    EXPECT_TRUE(with([](auto& t) { t.truncated_bytes = 1; }));
    EXPECT_TRUE(with([](auto& t) { t.high_watermark = Offset{11}; }));
    EXPECT_TRUE(with([](auto& t) { t.recovery_point = Offset{11}; }));
    EXPECT_TRUE(with([](auto& t) { t.machine_restarted = true; }));
    EXPECT_FALSE(with([](auto& t) { t.high_watermark.reset(); }));
    EXPECT_FALSE(with([](auto& t) {
        t.high_watermark = Offset{11};
        t.clean = true;
    }));
}

TEST_F(LogManagerTest, PartitionsThatLostRecordsAreNamed) {
    ASSERT_TRUE(open());
    for (const auto* topic : {"whole", "cut", "short", "empty"}) create(topic);
    for (const auto* topic : {"whole", "cut", "short"}) {
        append(*manager->find({topic, 0}));
        append(*manager->find({topic, 0}));
    }
    ASSERT_TRUE(manager->write_checkpoints());
    const auto cut_to = [&](const char* path, std::int64_t bytes) { ASSERT_TRUE(files.open(path, io::OpenMode::read_write).value()->resize(bytes)); };
    const auto batch = static_cast<std::int64_t>(one_record().size());
    cut_to("/a/cut-0/00000000000000000000.log", 2 * batch - 1);
    cut_to("/a/short-0/00000000000000000000.log", batch);  // of whole batches: only the checkpoint tells
    ASSERT_TRUE(open());
    EXPECT_THAT(report.lost_records, ElementsAre(TopicPartition{"cut", 0}, TopicPartition{"short", 0}));
    EXPECT_EQ(manager->find({"short", 0})->log_end_offset(), Offset{1});

    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(open());
    EXPECT_THAT(report.lost_records, IsEmpty());
}

TEST_F(LogManagerTest, ARestartOfTheMachineMayHaveTakenRecords) {
    ASSERT_TRUE(open());
    append(*create("orders"));
    clock.jump_to(clock.now() + 3'600'000);  // started an hour after the log was written to
    ASSERT_TRUE(open());
    EXPECT_THAT(report.lost_records, ElementsAre(TopicPartition{"orders", 0}));
}

TEST_F(LogManagerTest, CheckpointsHoldWhatTheyShould) {
    ASSERT_TRUE(open());
    auto orders = create("orders", 0), trimmed = create("trimmed", 3);
    for (int i = 0; i < 3; ++i) append(*orders), append(*trimmed);
    ASSERT_TRUE(orders->flush());
    ASSERT_TRUE(trimmed->delete_records_before(Offset{2}));
    ASSERT_TRUE(manager->write_checkpoints());
    EXPECT_EQ(text("/a/recovery-point-offset-checkpoint"), "0\n2\norders 0 3\ntrimmed 3 2\n");
    EXPECT_EQ(text("/a/log-start-offset-checkpoint"), "0\n1\ntrimmed 3 2\n");  // only where it is above the first segment
    EXPECT_EQ(text("/a/replication-offset-checkpoint"), "0\n2\norders 0 3\ntrimmed 3 3\n");
    ASSERT_TRUE(open());
    EXPECT_EQ(manager->find({"trimmed", 3})->log_start_offset(), Offset{2});
}

TEST_F(LogManagerTest, DeletedRecordsStayDeletedWhateverHappens) {
    ASSERT_TRUE(open());
    auto log = create("orders");
    for (int i = 0; i < 3; ++i) append(*log);
    ASSERT_TRUE(log->delete_records_before(Offset{2}));
    ASSERT_TRUE(open());  // killed
    EXPECT_EQ(manager->find({"orders", 0})->log_start_offset(), Offset{2});
}

TEST_F(LogManagerTest, ManyDeletionsOfRecordsCostACheckpointPerDirectory) {
    options.log_dirs = {"/a", "/b"};
    io::FaultyFileSystem disk{{.clock = &clock}};
    auto m = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
    ASSERT_TRUE(m->load([&](const FoundLog&) { return config; }));
    std::vector<RecordDeletion> deletions;
    for (int p = 0; p < 40; ++p) {
        deletions.push_back({m->create({"t", p}, topic_id, config).value(), Offset{2}});
        for (int i = 0; i < 3; ++i) append(*deletions.back().log);
    }
    deletions[5].before = Offset{4};    // above the high watermark
    deletions[6].before.reset();        // the high watermark itself
    std::vector<std::string> renamed;
    const auto count = [&](io::FaultOptions faults) {
        renamed.clear();
        faults.counted = [&](const io::Call& c) { return c.operation == io::Operation::rename; };
        faults.before = [&](const io::Call& c) {
            if (c.operation == io::Operation::rename) renamed.push_back(c.to);
        };
        faults.clock = &clock;
        disk.inject(faults);
    };
    count({});
    const auto starts = delete_records(deletions);
    for (std::size_t p = 0; p < starts.size(); ++p) {
        if (p == 5) {
            EXPECT_EQ(starts[p].error().code, Errc::offset_out_of_range);
        } else {
            EXPECT_EQ(starts[p].value(), Offset{p == 6 ? 3 : 2});
        }
    }
    EXPECT_THAT(renamed, UnorderedElementsAre("/a/log-start-offset-checkpoint", "/b/log-start-offset-checkpoint"));
    count({});
    EXPECT_EQ(delete_records({deletions[0]}).front().value(), Offset{2});
    EXPECT_THAT(renamed, IsEmpty()) << "it is on the disk";

    // A disk without room: what could not be made durable is not promised, neither now nor when it is asked for again.
    const auto in_a = deletions[0].log->log_dir().path() == "/a" ? 0 : 1;
    const std::vector<RecordDeletion> more = {{deletions[in_a].log, Offset{3}}, {deletions[1 - in_a].log, Offset{3}}};
    for (int attempt = 0; attempt < 2; ++attempt) {
        count({.fail_at = 0, .fail_calls = 2, .fault = io::Fault::no_space});
        const auto refused = delete_records(more);
        EXPECT_EQ(refused[0].error().code, Errc::no_space);
        EXPECT_EQ(refused[1].value(), Offset{3}) << "the other directory has room";
    }
    count({});
    EXPECT_EQ(delete_records(more).front().value(), Offset{3});
    EXPECT_THAT(renamed, ElementsAre("/a/log-start-offset-checkpoint"));
}

TEST_F(LogManagerTest, TasksRunByTheirIntervals) {
    ASSERT_TRUE(open());
    append(*create("orders"));
    manager->tick();
    EXPECT_EQ(text("/a/replication-offset-checkpoint"), "0\n1\norders 0 1\n");  // at once
    EXPECT_FALSE(files.status("/a/recovery-point-offset-checkpoint").value().has_value());
    clock.advance(std::chrono::milliseconds{30'000});
    manager->tick();
    EXPECT_EQ(text("/a/recovery-point-offset-checkpoint"), "0\n1\norders 0 0\n");
    ASSERT_TRUE(manager->find({"orders", 0})->flush());
    clock.advance(std::chrono::milliseconds{59'999});
    manager->tick();
    EXPECT_EQ(text("/a/recovery-point-offset-checkpoint"), "0\n1\norders 0 0\n");
    clock.advance(std::chrono::milliseconds{1});
    manager->tick();
    EXPECT_EQ(text("/a/recovery-point-offset-checkpoint"), "0\n1\norders 0 1\n");
}

TEST_F(LogManagerTest, ABadCheckpointMeansUnknown) {
    for (const auto* bad : {"0\n5\norders 0 1\n", "1\n0\n", "0\n1\norders zero 1\n", "x"}) {
        ASSERT_TRUE(open());
        append(*create("orders"));
        ASSERT_TRUE(manager->close(1));
        for (const auto* name : {"recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint", "cleaner-offset-checkpoint",
                                 "tidemark-segments"}) {
            put(io::join("/a", name), bad);
        }
        ASSERT_TRUE(open()) << bad;
        EXPECT_EQ(manager->find({"orders", 0})->log_start_offset(), Offset{0});
        EXPECT_THAT(manager->read_cleaner_checkpoints().value(), IsEmpty());
        ASSERT_TRUE(manager->close(1));
    }
}

TEST_F(LogManagerTest, ADeletedPartitionIsRenamedAndGoesLater) {
    ASSERT_TRUE(open());
    const std::string longest(249, 't');
    append(*create("a.b"));
    append(*create(longest));
    const auto log = manager->find({"a.b", 0});
    ASSERT_TRUE(manager->remove({"a.b", 0}));
    ASSERT_TRUE(manager->remove({longest, 0}));
    EXPECT_EQ(manager->find({"a.b", 0}), nullptr);
    EXPECT_EQ(log->read({.from = Offset{0}}).error().code, Errc::not_found);
    EXPECT_EQ(manager->remove({"a.b", 0}).error().code, Errc::not_found);
    const auto deleted = [&] {
        const auto all = names("/a");
        return std::count_if(all.begin(), all.end(), [](const auto& n) { return n.ends_with("-delete"); });
    };
    EXPECT_EQ(deleted(), 2);
    clock.advance(std::chrono::milliseconds{59'999});
    manager->tick();
    EXPECT_EQ(deleted(), 2);
    append(*create("a.b"));  // the name is free
    clock.advance(std::chrono::milliseconds{1});
    manager->tick();
    EXPECT_EQ(deleted(), 0);
    EXPECT_EQ(manager->find({"a.b", 0})->log_end_offset(), Offset{1});
}

TEST_F(LogManagerTest, ADeletedTopicCostsACheckpointPerDirectory) {
    options.log_dirs = {"/a", "/b"};
    io::FaultyFileSystem disk{{.clock = &clock}};
    auto m = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
    ASSERT_TRUE(m->load([&](const FoundLog&) { return config; }));
    std::vector<TopicPartition> topic;
    for (int p = 0; p < 20; ++p) {
        append(*m->create({"t", p}, topic_id, config).value());
        ASSERT_TRUE(m->write_cleaner_checkpoint({"t", p}, Offset{1}));
        topic.push_back({"t", p});
    }
    append(*m->create({"stays", 0}, topic_id, config).value());
    ASSERT_TRUE(m->write_checkpoints());
    std::map<std::string, int> written, synced;
    disk.inject({.before = [&](const io::Call& c) {
                     if (c.operation == io::Operation::rename && c.to.ends_with("-checkpoint")) ++written[c.to];
                     if (c.operation == io::Operation::sync_directory) ++synced[c.path];
                 },
                 .clock = &clock});
    topic.push_back({"nobody", 0});
    const auto results = m->remove(topic);
    ASSERT_EQ(results.size(), 21u);
    EXPECT_EQ(results.back().error().code, Errc::not_found);
    for (int p = 0; p < 20; ++p) EXPECT_TRUE(results[static_cast<std::size_t>(p)]);
    for (const auto& [path, times] : written) EXPECT_EQ(times, 1) << path;
    EXPECT_EQ(written.count("/a/cleaner-offset-checkpoint") + written.count("/b/cleaner-offset-checkpoint"), 2u);
    for (const auto& [path, times] : synced) EXPECT_LE(times, 5) << path;   // the names, then each checkpoint
    EXPECT_EQ(m->logs().size(), 1u);
    EXPECT_THAT(m->read_cleaner_checkpoints().value(), IsEmpty());
}

TEST_F(LogManagerTest, APartitionIsMadeWhereItWasAskedFor) {
    options.log_dirs = {"/a", "/b"};
    ASSERT_TRUE(open());
    const auto first = manager->directories()[0].directory_id;
    EXPECT_EQ(manager->move({"orders", 0}, "/a").error().code, Errc::not_found);
    EXPECT_EQ(manager->move({"orders", 0}, "/b").error().code, Errc::not_found);
    EXPECT_EQ(manager->move({"orders", 0}, "/c").error().code, Errc::invalid_argument);
    const auto made = manager->create({"orders", 0}, topic_id, config, first);
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->log_dir().path(), "/b") << "the last that was asked for, before what the metadata say";
    ASSERT_TRUE(manager->remove({"orders", 0}));
    EXPECT_EQ(manager->create({"orders", 0}, topic_id, config, first).value()->log_dir().path(), "/a") << "once";
}

TEST_F(LogManagerTest, WhatWasBeingDeletedGoesAfterARestart) {
    ASSERT_TRUE(open());
    append(*create("orders"));
    ASSERT_TRUE(manager->remove({"orders", 0}));
    ASSERT_TRUE(open());
    EXPECT_EQ(report.logs, 0u);
    clock.advance(std::chrono::minutes{1});
    manager->tick();
    EXPECT_THAT(names("/a"), testing::Not(testing::Contains(HasSubstr("orders"))));
}

TEST_F(LogManagerTest, StrangersAreSetAside) {
    ASSERT_TRUE(open());
    append(*create("gone"));
    append(*create("orders"));
    ASSERT_TRUE(manager->close(1));
    strangers = {"gone"};
    ASSERT_TRUE(open());
    EXPECT_EQ(report.strays, 1u);
    EXPECT_EQ(report.logs, 1u);
    EXPECT_THAT(names("/a"), testing::Contains(testing::MatchesRegex("gone-0\\..*-stray")));
    ASSERT_TRUE(open());
    EXPECT_EQ(report.strays, 1u);  // left alone from then on
}

TEST_F(LogManagerTest, ForeignDirectoriesDoNotStopTheStart) {
    ASSERT_TRUE(open());
    append(*create("orders"));
    for (const auto* name : {"/a/lost+found", "/a/.snapshot", "/a/backup", "/a/remote-log-index-cache", "/a/__cluster_metadata-0"}) ASSERT_TRUE(files.create_directory(name));
    put("/a/notes.txt", "x");
    ASSERT_TRUE(open());
    EXPECT_EQ(report.logs, 1u);
    EXPECT_THAT(names("/a"), testing::IsSupersetOf({"lost+found", ".snapshot", "backup", "__cluster_metadata-0", "notes.txt"}));
}

TEST_F(LogManagerTest, ALogThatCannotBeOpenedLeavesTheOthers) {
    ASSERT_TRUE(open());
    append(*create("bad"));
    append(*create("good"));
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(files.remove("/a/tidemark-segments"));
    {
        auto file = files.open("/a/bad-0/00000000000000000000.log", io::OpenMode::read_write);
        ASSERT_TRUE((*file)->write(FilePosition{0}, std::vector<std::byte>(40)));
    }
    ASSERT_TRUE(open());
    EXPECT_EQ(report.failed, 1u);
    EXPECT_EQ(manager->find({"bad", 0}), nullptr);
    EXPECT_EQ(manager->find({"good", 0})->log_end_offset(), Offset{1});
    EXPECT_EQ(manager->create({"bad", 0}, topic_id, config).error().code, Errc::storage_offline);
}

TEST_F(LogManagerTest, SeveralDirectoriesShareTheLogs) {
    options.log_dirs = {"/a", "/b"};
    ASSERT_TRUE(open());
    for (int i = 0; i < 6; ++i) append(*create("orders", i));
    const auto in = [&](const io::Path& path) {
        const auto all = names(path);
        return std::count_if(all.begin(), all.end(), [](const auto& n) { return n.starts_with("orders-"); });
    };
    EXPECT_EQ(in("/a"), 3);
    EXPECT_EQ(in("/b"), 3);
    const auto second = manager->directories()[1].directory_id;
    ASSERT_TRUE(manager->create({"chosen", 0}, topic_id, config, second));
    EXPECT_TRUE(files.status("/b/chosen-0").value().has_value());
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(open());
    EXPECT_EQ(report.logs, 7u);
    ASSERT_TRUE(manager->close(1));
    ASSERT_TRUE(files.create_directory("/a/chosen-0"));
    EXPECT_EQ(open().error().code, Errc::already_exists);
}

TEST_F(LogManagerTest, ManyAreCreatedAtOnceEachWithItsOwnOutcome) {
    options.log_dirs = {"/a", "/b"};
    ASSERT_TRUE(open());
    const auto known = create("known");
    ASSERT_TRUE(files.create_directory("/a/in the way-0"));
    ASSERT_TRUE(files.create_directory("/b/in the way-0"));
    std::vector<NewLog> wanted{{.partition = {"known", 0}, .topic_id = topic_id, .config = config},
                               {.partition = {"in the way", 0}, .topic_id = topic_id, .config = config},
                               {.partition = {"nowhere", 0}, .topic_id = topic_id, .config = config, .directory_id = Uuid::of(77)}};
    for (int p = 0; p < 40; ++p) wanted.push_back({.partition = {"t", p}, .topic_id = topic_id, .config = config});
    const auto made = manager->create(wanted);
    ASSERT_EQ(made.size(), wanted.size());
    EXPECT_EQ(made[0].value(), known);
    EXPECT_EQ(made[1].error().code, Errc::already_exists);
    EXPECT_EQ(made[2].error().code, Errc::storage_offline);
    for (std::size_t i = 3; i < made.size(); ++i) {
        ASSERT_TRUE(made[i]) << made[i].error().message();
        EXPECT_EQ((*made[i])->partition(), wanted[i].partition);
        EXPECT_EQ(manager->find(wanted[i].partition), *made[i]);
        append(**made[i]);
    }
    const auto in_a = std::ranges::count_if(manager->logs(), [](const auto& log) { return log->directory().starts_with("/a/"); });
    EXPECT_NEAR(static_cast<double>(in_a), 20.5, 1) << "both directories have as many";
    EXPECT_TRUE(manager->create(std::vector<NewLog>{}).empty());
}

TEST(LogManagerWithoutPower, WhatWasCreatedIsThereWheneverItWasLost) {
    const auto config = std::make_shared<LogConfig>();
    const auto keep_all = [&](const FoundLog&) { return config; };
    const StorageOptions options{.log_dirs = {"/a"}, .reserve_bytes = 0};
    std::vector<NewLog> wanted;
    for (int p = 0; p < 5; ++p) wanted.push_back({.partition = {"t", p}, .topic_id = topic_id, .config = config});
    ManualClock clock;
    for (int step = 0;; ++step) {
        SCOPED_TRACE("power lost at step " + std::to_string(step));
        io::FaultyFileSystem disk{{.clock = &clock}};
        std::vector<TopicPartition> created;
        {
            auto manager = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
            ASSERT_TRUE(manager->load(keep_all));
            disk.inject({.lose_power_at = step, .clock = &clock});
            for (const auto& made : manager->create(wanted)) {
                if (made) created.push_back((*made)->partition());
            }
        }
        const bool finished = !disk.tripped();
        auto after = disk.after_restart({.seed = static_cast<std::uint64_t>(step)});
        auto manager = LogManager::open(after, clock, options, {.cluster_id = "c"}).value();
        const auto loaded = manager->load(keep_all);
        ASSERT_TRUE(loaded);
        EXPECT_EQ(loaded->failed, 0u);
        for (const auto& partition : created) {
            const auto log = manager->find(partition);
            ASSERT_NE(log, nullptr) << partition.text();
            EXPECT_EQ(log->topic_id(), topic_id);
        }
        for (const auto& made : manager->create(wanted)) EXPECT_TRUE(made) << made.error().message();   // the rest is made now
        if (finished) break;
        ASSERT_LT(step, 1000);
    }
}

TEST_F(LogManagerTest, OneDirectoryFailsAndTheOthersServe) {
    options.log_dirs = {"/a", "/b"};
    io::FaultyFileSystem disk{{.clock = &clock}};
    auto opened = LogManager::open(disk, clock, options, {.cluster_id = "c"});
    ASSERT_TRUE(opened);
    auto& m = **opened;
    ASSERT_TRUE(m.load([&](const FoundLog&) { return config; }));
    auto first = m.create({"t", 0}, topic_id, config).value(), second = m.create({"t", 1}, topic_id, config).value();
    ASSERT_NE(&first->log_dir(), &second->log_dir());
    struct Observer final : LogObserver {
        void end_offset_moved(const TopicPartition&) override { ++moved; }
        void start_offset_moved(const TopicPartition&) override {}
        void log_gone(const TopicPartition& p) override { gone.push_back(p); }
        int moved = 0;
        std::vector<TopicPartition> gone;
    } observer;
    m.set_observer(&observer);
    const auto prefix = first->directory();
    disk.inject({.fail_at = 0, .fail_calls = 1'000'000, .counted = [&](const io::Call& c) { return c.path.starts_with(prefix); }, .clock = &clock});
    auto batch = one_record();
    EXPECT_EQ(first->append(batch, {}).error().code, Errc::storage_offline);
    EXPECT_EQ(first->append(batch, {}).error().code, Errc::storage_offline);
    batch = one_record();
    EXPECT_TRUE(second->append(batch, {}));
    m.tick();
    EXPECT_THAT(observer.gone, ElementsAre(TopicPartition{"t", 0}));
    EXPECT_EQ(observer.moved, 1);
    EXPECT_TRUE(m.directories()[0].offline != m.directories()[1].offline);
    EXPECT_TRUE(m.create({"t", 2}, topic_id, config));  // in the one that is left
    m.tick();
    m.set_observer(nullptr);
}

TEST_F(LogManagerTest, TheCleanersCheckpointIsTheOwners) {
    options.log_dirs = {"/a", "/b"};
    ASSERT_TRUE(open());
    create("x"), create("y");
    ASSERT_TRUE(manager->write_cleaner_checkpoint({"x", 0}, Offset{5}));
    ASSERT_TRUE(manager->write_cleaner_checkpoint({"y", 0}, Offset{6}));
    EXPECT_THAT(manager->read_cleaner_checkpoints().value(), UnorderedElementsAre(testing::Pair(TopicPartition{"x", 0}, Offset{5}), testing::Pair(TopicPartition{"y", 0}, Offset{6})));
    put("/a/cleaner-offset-checkpoint", "0\n3\nx 0 5\ny 0 99\nnobody 0 1\n");
    EXPECT_EQ(manager->read_cleaner_checkpoints().value().at({"y", 0}), Offset{6});
    ASSERT_TRUE(manager->write_cleaner_checkpoint({"x", 0}, Offset{7}));
    EXPECT_EQ(text("/a/cleaner-offset-checkpoint"), "0\n1\nx 0 7\n");
    put("/a/cleaner-offset-checkpoint", "torn");
    EXPECT_EQ(manager->read_cleaner_checkpoints().value().size(), 1u);
    ASSERT_TRUE(manager->write_cleaner_checkpoint({"x", 0}, Offset{8}));  // made anew
    EXPECT_EQ(text("/a/cleaner-offset-checkpoint"), "0\n1\nx 0 8\n");
    ASSERT_TRUE(manager->write_cleaner_checkpoint({"x", 0}, std::nullopt));
    EXPECT_EQ(text("/a/cleaner-offset-checkpoint"), "0\n0\n");
    EXPECT_EQ(manager->write_cleaner_checkpoint({"nobody", 0}, Offset{1}).error().code, Errc::not_found);
}

TEST_F(LogManagerTest, ACleanStartReadsNoRecords) {
    io::FaultyFileSystem disk{{.clock = &clock}};
    {
        auto m = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
        ASSERT_TRUE(m->load([&](const FoundLog&) { return config; }));
        for (int p = 0; p < 5; ++p) {
            auto log = m->create({"t", p}, topic_id, config).value();
            for (int i = 0; i < 20; ++i) {
                auto batch = one_record();
                ASSERT_TRUE(log->append(batch, {}));
                if (i % 7 != 6) continue;
                ASSERT_TRUE(log->roll());
            }
        }
        ASSERT_TRUE(m->close(1));
    }
    std::vector<std::string> reads;
    disk.inject({.counted = [](const io::Call& c) { return c.operation == io::Operation::read; },
                 .before =
                     [&](const io::Call& c) {
                         if (c.operation == io::Operation::read && parse_file_name(io::name_of(c.path)).kind != FileKind::other) reads.push_back(c.text());
                     },
                 .clock = &clock});
    auto m = LogManager::open(disk, clock, options, {.cluster_id = "c"}).value();
    const auto loaded = m->load([&](const FoundLog&) { return config; });
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->logs, 5u);
    EXPECT_THAT(reads, IsEmpty());
    EXPECT_EQ(m->find({"t", 0})->log_end_offset(), Offset{20});
    EXPECT_EQ(m->find({"t", 0})->segments()->front()->largest_record_timestamp().value(), Timestamp{1'700'000'000'000});
    EXPECT_THAT(reads, IsEmpty());
    ASSERT_TRUE(m->find({"t", 0})->read({.from = Offset{5}}));
    EXPECT_THAT(reads, testing::Not(IsEmpty()));
}

TEST(SegmentsFile, ComesBackAndRefusesWhatIsTorn) {
    SegmentsFile logs;
    logs[{"orders", 0}][Offset{0}] = {.bytes = 100, .modified = Timestamp{5}, .next_offset = Offset{9}, .largest = {Timestamp{-1}, Offset{0}}, .first_append = {}, .earliest_delete_horizon = {}};
    logs[{"orders", 0}][Offset{9}] = {.bytes = 7, .modified = Timestamp{6}, .next_offset = Offset{12}, .largest = {Timestamp{77}, Offset{10}}, .first_append = Timestamp{3},
                                      .earliest_delete_horizon = std::optional<Timestamp>{}};
    logs[{"x.y", 3}][Offset{1}] = {.bytes = 7, .modified = Timestamp{6}, .next_offset = Offset{12}, .largest = {Timestamp{77}, Offset{10}}, .first_append = Timestamp{3},
                                   .earliest_delete_horizon = std::optional(Timestamp{88})};
    const auto text = format_segments_file(logs);
    EXPECT_EQ(parse_segments_file(text).value(), logs);
    for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(parse_segments_file(text.substr(0, n))) << n;
    for (std::size_t at = 0; at < text.size(); ++at) {
        auto bad = text;
        bad[at] = static_cast<char>(bad[at] ^ 1);
        EXPECT_FALSE(parse_segments_file(bad)) << at;
    }
}

}  // namespace
}  // namespace tidemark::storage
