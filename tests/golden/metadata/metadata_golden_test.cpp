// Data directories by Apache Kafka: every batch of their metadata logs and snapshots is read and written to the byte, the
// replay is what Kafka's own image was, from the whole log and from each snapshot with the log behind it, and a controller
// of ours opens them, changes them, and reads its changes back.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "io/memory_file_system.h"
#include "metadata/local_controller.h"
#include "metadata/replay.h"
#include "storage/batch_reader.h"
#include "tests/support/golden.h"

namespace tidemark::metadata {
namespace {

namespace fs = std::filesystem;

class GoldenMetadata : public testing::TestWithParam<std::string> {
protected:
    void SetUp() override {
        const auto golden = test::golden_directory("golden-metadata");
        if (!golden) GTEST_SKIP() << test::no_golden_data;
        case_ = *golden / GetParam();
        ASSERT_TRUE(std::filesystem::is_directory(case_)) << case_;
        expect_ = boost::json::parse(test::content_of(case_ / "expect.json")).as_object();
        test::copy_to_memory(case_ / "data", files_, "data");
    }

    std::string expected(std::string_view key) const { return std::string(expect_.at("metaProperties").as_object().at(key).as_string()); }
    Uuid directory_id() const { return *Uuid::parse(expected("directory.id")); }

    LocalControllerOptions controller_options() const {
        LocalControllerOptions options;
        options.node_id = std::stoi(expected("node.id"));
        options.log.directory = "data";
        options.directory_ids = {directory_id()};
        options.endpoints = {{.listener = "PLAINTEXT", .host = "localhost", .port = 9092}};
        return options;
    }
    MetadataLogOptions log_options() const { return {.directory = "data", .node_id = std::stoi(expected("node.id")), .directory_id = directory_id()}; }

    /// The names of the log's segments or snapshots, sorted.
    std::vector<std::string> names(std::string_view suffix) const {
        std::vector<std::string> found;
        for (const auto& entry : *files_.list("data/__cluster_metadata-0")) {
            if (entry.name.ends_with(suffix)) found.push_back(entry.name);
        }
        return found;
    }

    std::filesystem::path case_;
    boost::json::object expect_;
    ManualClock clock_;
    io::MemoryFileSystem files_;
};

// --- the image as expect.json has it --------------------------------------------------------------------------------

std::string base64url(const Uuid& id) { return id.text(); }

template <class T>
boost::json::array array_of(const std::vector<T>& values) {
    boost::json::array array;
    for (const auto& value : values) {
        if constexpr (std::is_same_v<T, Uuid>) array.push_back(boost::json::string(value.text()));
        else array.push_back(value);
    }
    return array;
}

std::string hex(const std::vector<std::byte>& bytes) {
    std::string text;
    for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
    return text;
}

boost::json::object features_of(const Image& image) {
    boost::json::object object;
    for (const auto& [name, level] : image.features) object[name] = level;
    return object;
}

boost::json::object topics_of(const Image& image) {
    boost::json::object topics;
    for (const auto& [name, topic] : image.topics) {
        boost::json::object partitions;
        for (const auto& [number, p] : topic->partitions) {
            partitions[std::to_string(number)] = {{"replicas", array_of(p.replicas)},     {"isr", array_of(p.isr)},
                                                  {"leader", p.leader},                   {"leaderEpoch", p.leader_epoch},
                                                  {"partitionEpoch", p.partition_epoch},  {"directories", array_of(p.directories)},
                                                  {"elr", array_of(p.elr)},               {"lastKnownElr", array_of(p.last_known_elr)},
                                                  {"recoveryState", p.leader_recovery_state}};
        }
        topics[name] = {{"id", base64url(topic->id)}, {"partitions", std::move(partitions)}};
    }
    return topics;
}

boost::json::object configs_of(const Image& image) {
    boost::json::object configs;
    for (const auto& [resource, overrides] : image.configs) {
        std::string type;
        switch (resource.type) {
            case ResourceType::topic: type = "topic"; break;
            case ResourceType::broker: type = "broker"; break;
            case ResourceType::client_metrics: type = "client-metrics"; break;
            case ResourceType::group: type = "group"; break;
            case ResourceType::broker_logger: type = "logger"; break;
        }
        boost::json::object values;
        for (const auto& [key, value] : overrides) values[key] = value;
        configs[type + ":" + resource.name] = std::move(values);
    }
    return configs;
}

boost::json::object scram_of(const Image& image) {
    boost::json::object scram;
    for (const auto& [key, credential] : image.kept->scram) {
        scram[key.first + (key.second == 1 ? "/SCRAM-SHA-256" : "/SCRAM-SHA-512")] = {{"salt", hex(credential.salt)},
                                                                                     {"storedKey", hex(credential.stored_key)},
                                                                                     {"serverKey", hex(credential.server_key)},
                                                                                     {"iterations", credential.iterations}};
    }
    return scram;
}

boost::json::object acls_of(const Image& image) {
    boost::json::object acls;
    for (const auto& [id, acl] : image.kept->acls) {
        acls[base64url(id)] = {{"ResourceType", acl.resource_type}, {"ResourceName", acl.resource_name}, {"PatternType", acl.pattern_type}, {"Principal", acl.principal},
                               {"Host", acl.host},                  {"Operation", acl.operation},        {"PermissionType", acl.permission_type}};
    }
    return acls;
}

boost::json::object quotas_of(const Image& image) {
    boost::json::object quotas;
    for (const auto& [entity, values] : image.kept->quotas) {
        std::string name;
        for (const auto& [type, value] : entity) name += (name.empty() ? "" : ",") + type + "=" + value.value_or("<default>");
        boost::json::object object;
        for (const auto& [key, value] : values) object[key] = value;
        quotas[name] = std::move(object);
    }
    return quotas;
}

boost::json::object brokers_of(const Image& image) {
    boost::json::object brokers;
    for (const auto& [id, broker] : image.brokers) {
        brokers[std::to_string(id)] = {{"epoch", broker.epoch},
                                       {"incarnation", base64url(broker.incarnation)},
                                       {"fenced", broker.fenced},
                                       {"inControlledShutdown", broker.in_controlled_shutdown},
                                       {"logDirs", array_of(broker.log_dirs)}};
    }
    return brokers;
}

boost::json::object controllers_of(const Image& image) {
    boost::json::object controllers;
    for (const auto& [id, controller] : image.kept->controllers) controllers[std::to_string(id)] = base64url(controller.incarnation_id);
    return controllers;
}

std::string text_of(const boost::json::value& value) { return boost::json::serialize(value); }

void expect_image(const Image& image, const boost::json::object& expect) {
    const auto same = [&](std::string_view key, const boost::json::value& ours) {
        EXPECT_TRUE(ours == expect.at(key)) << key << "\n  ours:  " << text_of(ours) << "\n  Kafka: " << text_of(expect.at(key));
    };
    same("features", features_of(image));
    same("topics", topics_of(image));
    same("configs", configs_of(image));
    same("scram", scram_of(image));
    same("acls", acls_of(image));
    same("quotas", quotas_of(image));
    same("brokers", brokers_of(image));
    same("controllers", controllers_of(image));
    const auto& next = expect.at("nextProducerId");
    EXPECT_EQ(image.next_producer_id, next.is_null() ? 0 : next.as_int64());
}

// --- the tests -------------------------------------------------------------------------------------------------------

TEST_P(GoldenMetadata, EveryBatchIsReadAndWrittenToTheByte) {
    std::size_t batches = 0;
    record::RecordReader reader;
    auto all = names(".log");
    for (auto& name : names(".checkpoint")) all.push_back(std::move(name));
    ASSERT_FALSE(all.empty());
    for (const auto& name : all) {
        SCOPED_TRACE(name);
        const auto bytes = io::read_whole(files_, "data/__cluster_metadata-0/" + name);
        ASSERT_TRUE(bytes.has_value());
        record::BatchCursor cursor{Bytes(*bytes)};
        for (;;) {
            const auto next = cursor.next();
            ASSERT_TRUE(next.has_value()) << next.error().message();
            if (!*next) break;
            const auto decoded = read_metadata_batch(**next, reader);
            ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
            const BatchPlace place{.base_offset = decoded->base_offset, .epoch = decoded->epoch, .timestamp = decoded->timestamp};
            std::vector<std::byte> written;
            if (const auto* controls = std::get_if<std::vector<ControlEntry>>(&decoded->entries)) {
                write_control_batch(place, *controls, written);
            } else {
                ASSERT_TRUE(write_metadata_batch(place, std::get<std::vector<protocol::VersionedMetadataRecord>>(decoded->entries), written).has_value());
            }
            EXPECT_TRUE(equal((*next)->bytes(), written)) << "batch at offset " << decoded->base_offset.value;
            ++batches;
        }
        EXPECT_TRUE(cursor.rest().empty());
    }
    EXPECT_GT(batches, 1u);
}

TEST_P(GoldenMetadata, ReplaysToKafkasImage) {
    const auto opened = MetadataLog::open(files_, clock_, log_options());
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    expect_image(*opened->image, expect_);
    EXPECT_EQ(opened->log->end_offset().value, expect_.at("metadataLogEndOffset").as_int64());
    EXPECT_EQ(opened->log->epoch(), expect_.at("metadataLogEpoch").as_int64());
    EXPECT_EQ(opened->image->offset + 1, opened->log->end_offset());
    EXPECT_TRUE(opened->bootstrap.empty());
    EXPECT_FALSE(opened->in_transaction);
}

TEST_P(GoldenMetadata, EachSnapshotWithTheLogBehindItIsTheSameAsTheWholeLog) {
    const auto whole = [&] {
        io::MemoryFileSystem files;
        test::copy_to_memory(case_ / "data", files, "data");
        for (const auto& name : names(".checkpoint")) EXPECT_TRUE(files.remove("data/__cluster_metadata-0/" + name).has_value());
        return MetadataLog::open(files, clock_, log_options());
    }();
    ASSERT_TRUE(whole.has_value()) << whole.error().message();
    expect_image(*whole->image, expect_);
    const auto snapshots = names(".checkpoint");
    for (std::size_t newest = 0; newest < snapshots.size(); ++newest) {
        SCOPED_TRACE(snapshots[newest]);
        io::MemoryFileSystem files;
        test::copy_to_memory(case_ / "data", files, "data");
        for (std::size_t i = newest + 1; i < snapshots.size(); ++i) ASSERT_TRUE(files.remove("data/__cluster_metadata-0/" + snapshots[i]).has_value());
        const auto opened = MetadataLog::open(files, clock_, log_options());
        ASSERT_TRUE(opened.has_value()) << opened.error().message();
        EXPECT_TRUE(opened->image->same_content(*whole->image));
    }
    // The newest one alone, if it is at the log's end or not, and no log at all.
    if (snapshots.size() > 1) {
        for (const auto& name : names(".log")) ASSERT_TRUE(files_.remove("data/__cluster_metadata-0/" + name).has_value());
        const auto opened = MetadataLog::open(files_, clock_, log_options());
        ASSERT_TRUE(opened.has_value()) << opened.error().message();
        EXPECT_EQ(opened->image->topics.size(), whole->image->topics.size());
        EXPECT_EQ(opened->log->end_offset(), opened->log->start_offset());
    }
}

TEST_P(GoldenMetadata, AnImageIsTheSameAfterItsOwnSnapshot) {
    const auto opened = MetadataLog::open(files_, clock_, log_options());
    ASSERT_TRUE(opened.has_value()) << opened.error().message();
    ImageBuilder builder;
    for (const auto& record : snapshot_records(*opened->image)) {
        // As the bytes say it, so that nothing is lost in a version that cannot hold it.
        const auto value = protocol::metadata_record_value(record, record_version(record, opened->image->metadata_version()));
        ASSERT_TRUE(value.has_value()) << value.error().message();
        const auto read = protocol::read_metadata_record(*value);
        ASSERT_TRUE(read.has_value()) << read.error().message();
        ASSERT_TRUE(builder.apply(*read, Offset{0}).has_value());
    }
    EXPECT_TRUE(builder.image().same_content(*opened->image));
}

TEST_P(GoldenMetadata, AControllerOpensChangesAndReopensIt) {
    std::map<TopicPartition, LeaderEpoch> epochs;
    std::string first_topic;
    Uuid new_id;
    {
        auto controller = LocalController::open(files_, clock_, controller_options());
        ASSERT_TRUE(controller.has_value()) << controller.error().message();
        for (const auto& [name, topic] : (*controller)->image()->topics) {
            for (const auto& [number, partition] : topic->partitions) epochs[{name, number}] = partition.leader_epoch;
        }
        first_topic = (*controller)->image()->topics.begin()->first;
        const auto started = (*controller)->start();
        ASSERT_TRUE(started.has_value()) << started.error().message();
        const auto image = (*controller)->image();
        for (const auto& [name, topic] : image->topics) {
            for (const auto& [number, partition] : topic->partitions) {
                EXPECT_EQ(partition.leader, 1);
                EXPECT_THAT(partition.isr, testing::ElementsAre(1));
                EXPECT_THAT(partition.elr, testing::IsEmpty());
                EXPECT_THAT(partition.last_known_elr, testing::IsEmpty());
                EXPECT_THAT(partition.directories, testing::ElementsAre(directory_id()));
                EXPECT_GE(partition.leader_epoch, (epochs[{name, number}]));   // B61
            }
        }
        EXPECT_FALSE(image->brokers.at(1).fenced);
        EXPECT_FALSE(image->brokers.at(1).in_controlled_shutdown);
        const auto created = (*controller)->create_topics({{.name = "made.here", .partitions = 2, .configs = {{"segment.bytes", "1048576"}}}}, false);
        ASSERT_TRUE(created.at(0).outcome.ok()) << created.at(0).outcome.message.value_or("");
        new_id = created.at(0).id;
        const auto deleted = (*controller)->delete_topics({{.name = first_topic}});
        ASSERT_TRUE(deleted.at(0).outcome.ok());
        const auto id = (*controller)->next_producer_id();
        ASSERT_TRUE(id.has_value()) << id.error().message();
        const auto& next = expect_.at("nextProducerId");
        EXPECT_EQ(*id, next.is_null() ? 0 : next.as_int64());
        const auto stopped = (*controller)->stop();
        ASSERT_TRUE(stopped.has_value()) << stopped.error().message();
        EXPECT_EQ(*stopped, (*controller)->image()->brokers.at(1).epoch);
    }
    auto again = LocalController::open(files_, clock_, controller_options());
    ASSERT_TRUE(again.has_value()) << again.error().message();
    const auto image = (*again)->image();
    EXPECT_EQ(image->find(first_topic), nullptr);
    ASSERT_NE(image->find("made.here"), nullptr);
    EXPECT_EQ(image->find("made.here")->id, new_id);
    EXPECT_EQ(image->find("made.here")->partitions.size(), 2u);
    EXPECT_EQ(image->overrides(ResourceType::topic, "made.here").at("segment.bytes"), "1048576");
    EXPECT_TRUE(image->brokers.at(1).fenced);
    // Nothing but the time has passed: the registration and all leader epochs stay.
    const auto before = (*again)->image();
    ASSERT_TRUE((*again)->start().has_value());
    const auto after = (*again)->image();
    EXPECT_EQ(after->brokers.at(1).epoch, before->brokers.at(1).epoch);
    for (const auto& [name, topic] : after->topics) EXPECT_EQ(topic->partitions, before->find(name)->partitions);
}

INSTANTIATE_TEST_SUITE_P(Directories, GoldenMetadata, testing::Values("minimal", "kafka-clean", "kafka-unclean", "kafka-4.0-clean"),
                         [](const auto& directory) {
                             std::string name;
                             for (const char c : directory.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                             return name;
                         });

}  // namespace
}  // namespace tidemark::metadata
