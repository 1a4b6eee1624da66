// DescribeLogDirs (35), versions 1 to 5, and AlterReplicaLogDirs (34), versions 1 to 2: wire-behaviour 12 (KIP-113).
//
// A move goes on in the background; until it is done the copy is shown as a future replica. A choice for a partition that does
// not exist yet is answered with that, and remembered for its creation.
#include "protocol/messages/alter_replica_log_dirs_request.h"
#include "protocol/messages/alter_replica_log_dirs_response.h"
#include "protocol/messages/describe_log_dirs_request.h"
#include "protocol/messages/describe_log_dirs_response.h"

#include <map>
#include <set>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "storage/log_directory.h"

namespace tidemark::daemon::handlers {

protocol::DescribeLogDirsResponse describe_log_dirs(Broker& broker, Call&, protocol::DescribeLogDirsRequest& request) {
    // Null asks for everything.
    std::optional<std::map<std::string, std::set<std::int32_t>>> asked;
    if (request.topics) {
        asked.emplace();
        for (const auto& topic : *request.topics) (*asked)[topic.topic].insert(topic.partitions.begin(), topic.partitions.end());
    }
    const auto is_asked = [&](const TopicPartition& partition) {
        if (!asked) return true;
        const auto topic = asked->find(partition.topic);
        return topic != asked->end() && topic->second.contains(partition.partition);
    };
    using Replica = protocol::describe_log_dirs_response::DescribeLogDirsPartition;
    std::map<std::string, std::map<std::string, std::map<std::int32_t, Replica>>> replicas;   // directory → topic → partition
    for (const auto& move : broker.logs().moves()) {
        const auto& partition = move.partition;
        if (!is_asked(partition)) continue;
        replicas[move.to][partition.topic][partition.partition] = {
            .partition_index = partition.partition, .partition_size = move.bytes, .offset_lag = move.offset_lag, .is_future_key = true};
    }
    for (const auto& log : broker.logs().logs()) {
        const auto& partition = log->partition();
        if (!is_asked(partition)) continue;
        replicas[log->log_dir().path()][partition.topic][partition.partition] = {.partition_index = partition.partition, .partition_size = log->stats().bytes};
    }
    protocol::DescribeLogDirsResponse response;
    for (const auto& directory : broker.logs().directories()) {
        auto& answer = response.results.emplace_back();
        answer.log_dir = directory.path;
        if (directory.offline) {
            answer.error_code = ErrorCode::kafka_storage_error;
            continue;
        }
        answer.total_bytes = directory.total_bytes;
        answer.usable_bytes = directory.usable_bytes;
        for (const auto& [name, partitions] : replicas[directory.path]) {
            auto& topic = answer.topics.emplace_back();
            topic.name = name;
            for (const auto& [index, replica] : partitions) topic.partitions.push_back(replica);
        }
    }
    return response;
}

protocol::AlterReplicaLogDirsResponse alter_replica_log_dirs(Broker& broker, Call& call, protocol::AlterReplicaLogDirsRequest& request) {
    const auto image = broker.image();
    const auto directories = broker.logs().directories();
    const auto judge = [&](const std::string& path, const TopicPartition& name) {
        const auto directory = std::ranges::find(directories, path, &storage::LogDirStats::path);
        if (directory == directories.end()) return ErrorCode::log_dir_not_found;
        if (directory->offline) return ErrorCode::kafka_storage_error;
        const auto moves = broker.logs().move(name, path);
        const auto found = find_partition(broker, *image, name);
        if (found.error != ErrorCode::none) return found.error;
        return moves ? ErrorCode::none : to_error_code(moves.error());
    };
    protocol::AlterReplicaLogDirsResponse response;
    std::map<std::string, std::size_t> at;   // a topic that stands below two directories is answered once
    for (const auto& directory : request.dirs) {
        for (const auto& topic : directory.topics) {
            const auto [place, is_new] = at.emplace(topic.name, response.results.size());
            if (is_new) response.results.emplace_back().topic_name = topic.name;
            for (const auto index : topic.partitions) {
                const auto error = judge(directory.path, {topic.name, index});
                response.results[place->second].partitions.push_back({.partition_index = index, .error_code = error});
                call.count(error);
            }
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
