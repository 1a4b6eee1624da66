// The controller's side of run.py: makes a data directory and changes it, or shows what a directory says.
//
//     metadata_interop make DIRECTORY METADATA_VERSION     formats it, creates, changes and deletes, stops
//     metadata_interop visit DIRECTORY                     opens what Kafka left, creates "tidemark.again", stops
//     metadata_interop show DIRECTORY                      its image as JSON, without changing anything
#include <cstdio>
#include <cstdlib>
#include <string>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "io/file_system.h"
#include "io/posix_file_system.h"
#include "metadata/local_controller.h"

namespace tidemark::metadata {
namespace {

template <class T>
T must(Result<T> result) {
    if (!result.has_value()) {
        std::fprintf(stderr, "%s\n", result.error().message().c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

void must(const Outcome& outcome) {
    if (outcome.ok()) return;
    std::fprintf(stderr, "error code %d: %s\n", static_cast<int>(outcome.code), outcome.message.value_or("").c_str());
    std::exit(1);
}

/// The directory.id of meta.properties.
Uuid directory_id(io::FileSystem& files, const std::string& directory) {
    const auto content = must(io::read_whole(files, io::join(directory, "meta.properties")));
    const std::string text(as_text(content));
    const std::string key = "directory.id=";
    const auto at = text.find(key);
    const auto id = at == std::string::npos ? std::nullopt : Uuid::parse(std::string_view(text).substr(at + key.size(), 22));
    if (!id) {
        std::fprintf(stderr, "no directory.id in meta.properties\n");
        std::exit(1);
    }
    return *id;
}

LocalControllerOptions options_for(io::FileSystem& files, const std::string& directory) {
    LocalControllerOptions options;
    options.log.directory = directory;
    options.log.segment_bytes = 4096;      // several segments
    options.log.snapshot_bytes = 6000;     // and snapshots
    options.directory_ids = {directory_id(files, directory)};
    options.endpoints = {{.listener = "PLAINTEXT", .host = "127.0.0.1", .port = 9092}};
    return options;
}

void make(io::FileSystem& files, const SystemClock& clock, const std::string& directory, int metadata_version) {
    must(io::create_directories(files, directory));
    must(io::replace_content(files, io::join(directory, "meta.properties"),
                             as_bytes(fmt::format("version=1\ncluster.id={}\nnode.id=1\ndirectory.id={}\n", Uuid::random().text(), Uuid::random().text()))));
    auto options = options_for(files, directory);
    if (metadata_version != 33) {
        using Feature = protocol::FeatureLevelRecord;
        options.bootstrap = {Feature{.name = "metadata.version", .feature_level = static_cast<std::int16_t>(metadata_version)}, Feature{.name = "group.version", .feature_level = 1},
                             Feature{.name = "transaction.version", .feature_level = 2}};
    }
    const auto controller = must(LocalController::open(files, clock, options));
    must(controller->start());
    using Configs = std::vector<std::pair<std::string, std::optional<std::string>>>;
    const auto create = [&](const std::string& name, int partitions, Configs configs) {
        must(controller->create_topics({{.name = name, .partitions = partitions, .replication_factor = 1, .configs = std::move(configs)}}, false).at(0).outcome);
    };
    create("orders", 3, {{"segment.bytes", "1048576"}, {"retention.ms", "-1"}});
    create("compacted", 1, {{"cleanup.policy", "compact"}, {"max.compaction.lag.ms", "60000"}, {"log.retention.mintimestamp", "1700000000000"}, {"min.insync.replicas", "1"}});
    create("goner", 2, {});
    for (int n = 0; n < 40; ++n) create(fmt::format("many.{}", n), 2, {{"segment.ms", "3600000"}});
    const auto set = [&](std::int8_t type, const std::string& name, const std::string& key, const std::string& value) {
        must(controller->alter_configs({{.resource_type = type, .resource_name = name, .changes = {{.key = key, .op = 0, .value = value}}}}, false).at(0));
    };
    set(4, "", "log.retention.ms", "1000000000");
    set(4, "1", "log.cleaner.threads", "2");
    set(2, "orders", "max.message.bytes", "200000");
    set(16, "cm1", "interval.ms", "60000");
    set(32, "g1", "consumer.session.timeout.ms", "50000");
    must(controller->create_partitions({{.topic = "orders", .count = 4}}, false).at(0));
    must(controller->delete_topics({{.name = "goner"}}).at(0).outcome);
    must(controller->next_producer_id());
    must(controller->raise_leader_epochs({{"orders", 1}}));
    must(controller->stop());
}

void visit(io::FileSystem& files, const SystemClock& clock, const std::string& directory) {
    const auto controller = must(LocalController::open(files, clock, options_for(files, directory)));
    must(controller->start());
    must(controller->create_topics({{.name = "tidemark.again", .partitions = 1, .replication_factor = 1, .configs = {{"retention.bytes", "12345"}}}}, false).at(0).outcome);
    must(controller->next_producer_id());
    must(controller->stop());
}

void show(io::FileSystem& files, const SystemClock& clock, const std::string& directory) {
    const auto opened = must(MetadataLog::open(files, clock, options_for(files, directory).log));
    const Image& image = *opened.image;
    boost::json::object topics, configs, features;
    for (const auto& [name, topic] : image.topics) {
        boost::json::object partitions;
        for (const auto& [number, partition] : topic->partitions) {
            partitions[std::to_string(number)] = {{"leader", partition.leader}, {"leaderEpoch", partition.leader_epoch}, {"directory", partition.directories.at(0).text()}};
        }
        topics[name] = {{"id", topic->id.text()}, {"partitions", std::move(partitions)}};
    }
    for (const auto& [resource, overrides] : image.configs) {
        boost::json::object values;
        for (const auto& [key, value] : overrides) values[key] = value;
        configs[fmt::format("{}:{}", static_cast<int>(resource.type), resource.name)] = std::move(values);
    }
    for (const auto& [name, level] : image.features) features[name] = level;
    const boost::json::object all{{"topics", std::move(topics)}, {"configs", std::move(configs)}, {"features", std::move(features)}, {"nextProducerId", image.next_producer_id},
                                  {"epoch", opened.log->epoch()}, {"endOffset", opened.log->end_offset().value}};
    std::puts(boost::json::serialize(all).c_str());
}

}  // namespace
}  // namespace tidemark::metadata

int main(int argc, char** argv) {
    using namespace tidemark;
    io::PosixFileSystem files;
    const SystemClock clock;
    const std::string command = argc > 2 ? argv[1] : "";
    if (command == "make" && argc == 4) metadata::make(files, clock, argv[2], std::atoi(argv[3]));
    else if (command == "visit" && argc == 3) metadata::visit(files, clock, argv[2]);
    else if (command == "show" && argc == 3) metadata::show(files, clock, argv[2]);
    else {
        std::fprintf(stderr, "usage: metadata_interop make|visit|show DIRECTORY [METADATA_VERSION]\n");
        return 2;
    }
    return 0;
}
