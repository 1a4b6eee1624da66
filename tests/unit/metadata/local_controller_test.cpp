// The controller of a node alone: life, changes, listeners, what survives.
#include "metadata/local_controller.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include "base/bytes.h"
#include "io/faulty_file_system.h"
#include "io/memory_file_system.h"
#include "metadata/replay.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Uuid directory = Uuid::of(9), other_directory = Uuid::of(8);

LocalControllerOptions options_for(std::vector<Uuid> directories = {directory}) {
    LocalControllerOptions options;
    options.log.directory = "data";
    options.directory_ids = std::move(directories);
    options.endpoints = {{.listener = "PLAINTEXT", .host = "localhost", .port = 9092}};
    return options;
}

class Recorder final : public ImageListener {
public:
    void image_changed(const ImagePtr& before, const ImagePtr& after) override {
        EXPECT_LT(before->offset, after->offset);
        EXPECT_EQ(last_.value_or(before->offset), before->offset) << "a change was not told";
        last_ = after->offset;
        topics.push_back(after->topics.size());
    }
    std::vector<std::size_t> topics;
private:
    std::optional<Offset> last_;
};

class LocalControllerTest : public testing::Test {
protected:
    std::unique_ptr<LocalController> started(LocalControllerOptions options = options_for()) {
        auto controller = LocalController::open(files_, clock_, std::move(options));
        EXPECT_TRUE(controller.has_value()) << controller.error().message();
        const auto started = (*controller)->start();
        EXPECT_TRUE(started.has_value()) << started.error().message();
        return *std::move(controller);
    }
    static Uuid create(LocalController& controller, const std::string& name, std::vector<std::pair<std::string, std::optional<std::string>>> configs = {}) {
        const auto created = controller.create_topics({{.name = name, .partitions = 1, .replication_factor = 1, .configs = std::move(configs)}}, false);
        EXPECT_TRUE(created.at(0).outcome.ok()) << created.at(0).outcome.message.value_or("");
        return created.at(0).id;
    }
    static Outcome set(LocalController& controller, std::int8_t type, const std::string& name, const std::string& key, std::optional<std::string> value) {
        const std::int8_t op = value ? 0 : 1;
        return controller.alter_configs({{.resource_type = type, .resource_name = name, .changes = {{.key = key, .op = op, .value = std::move(value)}}}}, false).at(0);
    }
    std::string text(const io::Path& path) {
        const auto content = io::read_whole(files_, path);
        return content.has_value() ? std::string(as_text(*content)) : std::string();
    }

    ManualClock clock_;
    io::MemoryFileSystem files_;
};

TEST_F(LocalControllerTest, ANewDirectoryHasItsFeaturesAndItsBroker) {
    const auto controller = started();
    const auto image = controller->image();
    EXPECT_THAT(image->features, ElementsAre(std::pair("eligible.leader.replicas.version", 1), std::pair("group.version", 1), std::pair("metadata.version", 33),
                                             std::pair("transaction.version", 2)));   // share and streams stay at 0: D27
    EXPECT_EQ(image->overrides(ResourceType::broker, "").at("min.insync.replicas"), "1");
    const auto& broker = image->brokers.at(1);
    EXPECT_FALSE(broker.fenced);
    EXPECT_EQ(broker.epoch, controller->broker_epoch());
    EXPECT_THAT(broker.log_dirs, ElementsAre(directory));
    EXPECT_EQ(broker.endpoints.at(0).port, 9092);
    EXPECT_EQ(controller->quorum().epoch, 1);
    EXPECT_EQ(controller->quorum().end_offset, image->offset + 1);
}

TEST_F(LocalControllerTest, ARestartKeepsRegistrationAndLeaderEpochs) {
    std::int64_t epoch = 0;
    Uuid id;
    {
        auto controller = started();
        id = create(*controller, "t");
        epoch = controller->broker_epoch();
        EXPECT_EQ(*controller->stop(), epoch);
        EXPECT_FALSE(controller->create_topics({{.name = "late"}}, false).at(0).outcome.ok());
    }
    for (int restart = 0; restart < 3; ++restart) {
        auto controller = started();
        EXPECT_EQ(controller->broker_epoch(), epoch);
        EXPECT_FALSE(controller->image()->brokers.at(1).fenced);
        EXPECT_EQ(controller->image()->find("t")->id, id);
        EXPECT_EQ(controller->image()->find(TopicPartition{"t", 0})->leader_epoch, 0);
        if (restart == 1) continue;   // not stopped: a crash
        ASSERT_TRUE(controller->stop().has_value());
    }
    // Another endpoint is another registration.
    auto options = options_for();
    options.endpoints.front().port = 9093;
    const auto moved = started(options);
    EXPECT_GT(moved->broker_epoch(), epoch);
    EXPECT_EQ(moved->image()->brokers.at(1).epoch, moved->broker_epoch());
    EXPECT_EQ(moved->image()->brokers.at(1).endpoints.at(0).port, 9093);
}

TEST_F(LocalControllerTest, LostDataRaisesTheLeaderEpoch) {
    auto controller = started();
    create(*controller, "t");
    create(*controller, "u");
    ASSERT_TRUE(controller->raise_leader_epochs({{"t", 0}, {"gone", 0}, {"t", 7}}).has_value());
    EXPECT_EQ(controller->image()->find(TopicPartition{"t", 0})->leader_epoch, 1);
    EXPECT_EQ(controller->image()->find(TopicPartition{"t", 0})->leader, 1);
    EXPECT_EQ(controller->image()->find(TopicPartition{"u", 0})->leader_epoch, 0);
}

TEST_F(LocalControllerTest, ValidateOnlyChangesNothing) {
    auto controller = started();
    create(*controller, "t");
    const auto before = controller->image();
    EXPECT_TRUE(controller->create_topics({{.name = "u", .partitions = 3}}, true).at(0).outcome.ok());
    EXPECT_TRUE(controller->create_partitions({{.topic = "t", .count = 4}}, true).at(0).ok());
    EXPECT_TRUE(controller->alter_configs({{.resource_type = 2, .resource_name = "t", .changes = {{.key = "segment.ms", .op = 0, .value = "5"}}}}, true).at(0).ok());
    EXPECT_EQ(controller->image(), before);
}

TEST_F(LocalControllerTest, ListenersHearEveryChangeInOrder) {
    auto controller = started();
    Recorder recorder;
    controller->add_listener(&recorder);
    create(*controller, "a");
    create(*controller, "b");
    ASSERT_TRUE(set(*controller, 2, "a", "segment.ms", "5").ok());
    EXPECT_EQ(controller->create_topics({{.name = "a"}}, false).at(0).outcome.code, ErrorCode::topic_already_exists);   // no change, no call
    ASSERT_TRUE(controller->delete_topics({{.name = "a"}}).at(0).outcome.ok());
    EXPECT_THAT(recorder.topics, ElementsAre(1, 2, 2, 1));
}

TEST_F(LocalControllerTest, ProducerIdsComeInBlocksThatARestartSkips) {
    {
        auto controller = started();
        for (int n = 0; n < 1001; ++n) EXPECT_EQ(*controller->next_producer_id(), n);
        EXPECT_EQ(controller->image()->next_producer_id, 2000);
    }
    EXPECT_EQ(*started()->next_producer_id(), 2000);
}

TEST_F(LocalControllerTest, BrokerSettingsSurviveAndBecomeTopicDefaults) {
    auto options = options_for();
    options.file = {{"log.retention.ms", "7"}, {"num.partitions", "3"}};
    {
        auto controller = started(options);
        EXPECT_EQ(broker_integer(controller->layers(), "log.retention.ms"), 7);
        ASSERT_TRUE(set(*controller, 4, "", "log.retention.ms", "60000").ok());
        ASSERT_TRUE(set(*controller, 4, "1", "log.cleaner.threads", "2").ok());
        EXPECT_EQ(controller->create_topics({{.name = "t"}}, false).at(0).partitions, 3);
    }
    const auto controller = started(options);
    EXPECT_EQ(log_config(controller->layers(), {}).retention_ms, 60'000);
    EXPECT_EQ(broker_integer(controller->layers(), "log.cleaner.threads"), 2);
}

TEST_F(LocalControllerTest, SnapshotsByTimeAndCleaning) {
    auto options = options_for();
    options.log.snapshot_ms = 10'000;
    auto controller = started(options);
    create(*controller, "t");
    const auto snapshots = [&] {
        int n = 0;
        for (const auto& entry : *files_.list("data/__cluster_metadata-0")) n += entry.name.ends_with(".checkpoint") ? 1 : 0;
        return n;
    };
    controller->tick();
    EXPECT_EQ(snapshots(), 1);
    clock_.advance(std::chrono::seconds{10});
    controller->tick();
    EXPECT_EQ(snapshots(), 2);
    clock_.advance(std::chrono::milliseconds{options.log.retention_ms + 1});
    controller->tick();
    EXPECT_EQ(snapshots(), 1);
    const auto before = controller->image();
    EXPECT_TRUE(LocalController::open(files_, clock_, options).value()->image()->same_content(*before));
}

// --- settings that Apache Kafka does not know --------------------------------------------------------------------------

TEST_F(LocalControllerTest, OwnSettingsSurviveAVisitToKafka) {
    Uuid id;
    {
        auto controller = started();
        id = create(*controller, "t", {{"log.retention.mintimestamp", " 1700 "}, {"segment.ms", "5"}});
        EXPECT_EQ(text("data/tidemark-topic-settings"), id.text() + "\tt\tlog.retention.mintimestamp\t1700\n");
        ASSERT_TRUE(controller->stop().has_value());
    }
    // Kafka leaves such settings out of its snapshots; here it is taken out of the log.
    {
        auto opened = MetadataLog::open(files_, clock_, {.directory = "data", .node_id = 1});
        ASSERT_TRUE(opened->log->begin_epoch().has_value());
        const std::vector<protocol::MetadataRecord> lost{protocol::ConfigRecord{.resource_type = 2, .resource_name = "t", .name = "log.retention.mintimestamp", .value = std::nullopt}};
        ASSERT_TRUE(opened->log->append(lost, 33).has_value());
    }
    {
        auto controller = started();
        EXPECT_EQ(controller->image()->overrides(ResourceType::topic, "t").at("log.retention.mintimestamp"), "1700");
        ASSERT_TRUE(set(*controller, 2, "t", "log.retention.mintimestamp", "1800").ok());
        EXPECT_THAT(text("data/tidemark-topic-settings"), HasSubstr("\t1800\n"));
        // Taken back for good.
        ASSERT_TRUE(set(*controller, 2, "t", "log.retention.mintimestamp", std::nullopt).ok());
        EXPECT_EQ(text("data/tidemark-topic-settings"), "");
    }
    EXPECT_FALSE(started()->image()->overrides(ResourceType::topic, "t").contains("log.retention.mintimestamp"));
}

TEST_F(LocalControllerTest, OwnSettingsOfADeletedTopicAreForgotten) {
    {
        auto controller = started();
        create(*controller, "t", {{"log.retention.mintimestamp", "1700"}});
        ASSERT_TRUE(controller->delete_topics({{.name = "t"}}).at(0).outcome.ok());
        EXPECT_EQ(text("data/tidemark-topic-settings"), "");
        create(*controller, "t");
    }
    EXPECT_THAT(started()->image()->overrides(ResourceType::topic, "t"), IsEmpty());
}

// --- directories -------------------------------------------------------------------------------------------------------

TEST_F(LocalControllerTest, LogsStayWhereTheyAreFound) {
    {
        auto controller = started(options_for({directory, other_directory}));
        for (const char* name : {"a", "b", "c"}) create(*controller, name);
        EXPECT_THAT(controller->image()->find(TopicPartition{"a", 0})->directories, ElementsAre(directory));
        EXPECT_THAT(controller->image()->find(TopicPartition{"b", 0})->directories, ElementsAre(other_directory));
    }
    auto controller = LocalController::open(files_, clock_, options_for({directory, other_directory})).value();
    controller->assign_directories({{{"a", 0}, other_directory}});
    ASSERT_TRUE(controller->start().has_value());
    EXPECT_THAT(controller->image()->find(TopicPartition{"a", 0})->directories, ElementsAre(other_directory));
    EXPECT_THAT(controller->image()->find(TopicPartition{"b", 0})->directories, ElementsAre(other_directory));
    EXPECT_EQ(controller->image()->find(TopicPartition{"a", 0})->leader_epoch, 0);
    // A directory whose id was made anew.
    const auto renewed = started(options_for({Uuid::of(7)}));
    for (const char* name : {"a", "b", "c"}) EXPECT_THAT(renewed->image()->find(TopicPartition{name, 0})->directories, ElementsAre(Uuid::of(7)));
    EXPECT_THAT(renewed->image()->brokers.at(1).log_dirs, ElementsAre(Uuid::of(7)));
}

// --- refusals ----------------------------------------------------------------------------------------------------------

TEST_F(LocalControllerTest, PartitionsOnOtherBrokersAreRefused) {
    { create(*started(), "t"); }
    auto options = options_for();
    options.node_id = 2;
    const auto refused = LocalController::open(files_, clock_, options);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::unsupported);
    EXPECT_THAT(refused.error().context, HasSubstr("t-0 is on the brokers [1]"));
}

TEST_F(LocalControllerTest, AnInvalidTopicSettingIsRefused) {
    { create(*started(), "t"); }
    {
        auto opened = MetadataLog::open(files_, clock_, {.directory = "data", .node_id = 1});
        ASSERT_TRUE(opened->log->begin_epoch().has_value());
        const std::vector<protocol::MetadataRecord> bad{protocol::ConfigRecord{.resource_type = 2, .resource_name = "t", .name = "segment.bytes", .value = "5"},
                                                        protocol::ConfigRecord{.resource_type = 2, .resource_name = "t", .name = "of.kafka.9", .value = "5"}};
        ASSERT_TRUE(opened->log->append(bad, 33).has_value());
    }
    const auto refused = LocalController::open(files_, clock_, options_for());
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().context, HasSubstr("topic t: Invalid value 5 for configuration segment.bytes"));
}

TEST_F(LocalControllerTest, AnOpenTransactionIsAborted) {
    { auto controller = started(); }
    {
        auto opened = MetadataLog::open(files_, clock_, {.directory = "data", .node_id = 1});
        ASSERT_TRUE(opened->log->begin_epoch().has_value());
        const std::vector<protocol::MetadataRecord> begun{protocol::BeginTransactionRecord{.name = "x"}, protocol::TopicRecord{.name = "void", .topic_id = Uuid::of(100)}};
        ASSERT_TRUE(opened->log->append(begun, 33).has_value());
    }
    auto controller = started();
    EXPECT_THAT(controller->image()->topics, IsEmpty());
    create(*controller, "void");
    EXPECT_EQ(started()->image()->topics.size(), 1u);
}

TEST_F(LocalControllerTest, AnOlderFormatForAnOlderKafka) {
    auto options = options_for();
    options.bootstrap = {protocol::FeatureLevelRecord{.name = "metadata.version", .feature_level = 25}, protocol::FeatureLevelRecord{.name = "group.version", .feature_level = 1}};
    {
        auto controller = started(options);
        create(*controller, "t", {{"min.insync.replicas", "1"}});
        EXPECT_EQ(controller->image()->metadata_version(), 25);
        EXPECT_THAT(controller->image()->overrides(ResourceType::broker, ""), IsEmpty());
        EXPECT_TRUE(set(*controller, 4, "1", "min.insync.replicas", "1").ok());   // no ELR
    }
    EXPECT_EQ(started(options)->image()->topics.size(), 1u);
}

// --- faults ------------------------------------------------------------------------------------------------------------

/// Power is lost at every step of a life with changes of every kind: what was answered holds after the restart.
TEST(LocalControllerFaults, WhatWasAnsweredSurvivesAPowerLossAtEveryStep) {
    ManualClock clock;
    auto options = options_for();
    options.log.segment_bytes = 800;
    options.log.snapshot_bytes = 900;
    struct Promised {
        std::map<std::string, bool> topics;                    // whether they exist
        std::optional<std::string> segment_ms, min_timestamp;  // of topic "a"
        bool min_timestamp_removed = false;
        std::int64_t next_producer_id = -1;
        std::size_t partitions = 0;                            // of "b"
    };
    const auto work = [&](io::FileSystem& files, Promised& promised) {
        auto opened = LocalController::open(files, clock, options);
        if (!opened.has_value()) return;
        LocalController& controller = **opened;
        if (!controller.start().has_value()) return;
        const auto alter = [&](const std::string& key, std::optional<std::string> value) {
            const std::int8_t op = value ? 0 : 1;
            return controller.alter_configs({{.resource_type = 2, .resource_name = "a", .changes = {{.key = key, .op = op, .value = value}}}}, false).at(0).ok();
        };
        for (const char* name : {"a", "b", "c"}) {
            if (!controller.create_topics({{.name = name}}, false).at(0).outcome.ok()) return;
            promised.topics[name] = true;
        }
        if (!alter("segment.ms", "12345")) return;
        promised.segment_ms = "12345";
        if (!alter("log.retention.mintimestamp", "77")) return;
        promised.min_timestamp = "77";
        if (!controller.create_partitions({{.topic = "b", .count = 3}}, false).at(0).ok()) return;
        promised.partitions = 3;
        promised.topics.erase("c");                            // from here on either is right
        if (!controller.delete_topics({{.name = "c"}}).at(0).outcome.ok()) return;
        promised.topics["c"] = false;
        const auto id = controller.next_producer_id();
        if (!id.has_value()) return;
        promised.next_producer_id = *id;
        promised.min_timestamp.reset();
        if (!alter("log.retention.mintimestamp", std::nullopt)) return;
        promised.min_timestamp_removed = true;
        if (controller.stop().has_value()) return;
    };
    int steps = 0;
    for (int step = 0;; ++step, ++steps) {
        io::FaultyFileSystem disk{{.lose_power_at = step}};
        Promised promised;
        work(disk, promised);
        if (!disk.tripped()) break;
        for (const std::uint64_t seed : {1u, 2u}) {
            SCOPED_TRACE(fmt::format("step {}, seed {}", step, seed));
            auto after = disk.after_restart({.seed = seed});
            auto opened = LocalController::open(after, clock, options);
            ASSERT_TRUE(opened.has_value()) << opened.error().message();
            ASSERT_TRUE((*opened)->start().has_value());
            const auto image = (*opened)->image();
            for (const auto& [name, exists] : promised.topics) EXPECT_EQ(image->find(name) != nullptr, exists) << name;
            const auto& a = image->overrides(ResourceType::topic, "a");
            if (promised.segment_ms) {
                ASSERT_TRUE(a.contains("segment.ms"));
                EXPECT_EQ(a.at("segment.ms"), *promised.segment_ms);
            }
            if (promised.min_timestamp) {
                ASSERT_TRUE(a.contains("log.retention.mintimestamp"));
                EXPECT_EQ(a.at("log.retention.mintimestamp"), *promised.min_timestamp);
            }
            EXPECT_FALSE(promised.min_timestamp_removed && a.contains("log.retention.mintimestamp"));
            if (promised.partitions > 0) {
                EXPECT_EQ(image->find("b")->partitions.size(), promised.partitions);
            }
            const auto id = (*opened)->next_producer_id();
            ASSERT_TRUE(id.has_value());
            EXPECT_GT(*id, promised.next_producer_id);
            for (const auto& [name, topic] : image->topics) {
                for (const auto& [number, partition] : topic->partitions) EXPECT_EQ(partition.leader, 1);
            }
        }
    }
    EXPECT_GT(steps, 60);
}

TEST(LocalControllerFaults, AChangeThatCannotBeWrittenIsAnsweredSo) {
    ManualClock clock;
    io::FaultyFileSystem disk;
    auto controller = LocalController::open(disk, clock, options_for()).value();
    ASSERT_TRUE(controller->start().has_value());
    const auto before = controller->image();
    disk.inject({.fail_at = 0, .fail_calls = 1, .fault = io::Fault::no_space});
    const auto refused = controller->create_topics({{.name = "t"}, {.name = "bad/name"}}, false);
    EXPECT_EQ(refused[0].outcome.code, ErrorCode::kafka_storage_error);
    EXPECT_TRUE(refused[0].id.is_zero());
    EXPECT_EQ(refused[1].outcome.code, ErrorCode::invalid_topic_exception);
    EXPECT_EQ(controller->image(), before);
    disk.inject({});
    EXPECT_TRUE(controller->create_topics({{.name = "t"}}, false).at(0).outcome.ok());   // there is room again
    disk.inject({.fail_at = 0, .fail_calls = 1, .counted = [](const io::Call& call) { return call.operation == io::Operation::sync; }});
    EXPECT_FALSE(controller->create_topics({{.name = "u"}}, false).at(0).outcome.ok());
    disk.inject({});
    EXPECT_FALSE(controller->create_topics({{.name = "v"}}, false).at(0).outcome.ok());   // a failed sync is for ever
    EXPECT_EQ(controller->image()->topics.size(), 1u);
}

}  // namespace
}  // namespace tidemark::metadata
