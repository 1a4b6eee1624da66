#include "daemon/handlers/common.h"

#include "coordinator/internal_topics.h"

namespace tidemark::daemon::handlers {

bool is_internal_topic(std::string_view name) { return name == coordinator::group_topic || name == coordinator::transaction_topic || name == "__share_group_state"; }

std::optional<TopicPartition> partition_of_group(const metadata::Image& image, std::string_view group_id) {
    const auto* offsets = image.find(coordinator::group_topic);
    if (!offsets) return std::nullopt;
    return TopicPartition{offsets->name, coordinator::partition_of(group_id, static_cast<std::int32_t>(offsets->partitions.size()))};
}

namespace {

bool is_legal_character(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-'; }

}  // namespace

bool is_legal_topic_name(std::string_view name) {
    return !name.empty() && name.size() <= 249 && name != "." && name != ".." && std::ranges::all_of(name, is_legal_character);
}

std::string illegal_topic_name_text(std::string_view name) {
    const std::string start = "Topic name is invalid: ";
    if (name.empty()) return start + "the empty string is not allowed";
    if (name == "." || name == "..") return start + "'" + std::string{name} + "' is not allowed";
    if (name.size() > 249) return start + "the length of '" + std::string{name} + "' is longer than the max allowed length 249";
    return start + "'" + std::string{name} + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
}

FoundPartition find_partition(Broker& broker, const metadata::Image& image, const TopicPartition& name, LeaderEpoch current_leader_epoch) {
    const auto* partition = image.find(name);
    if (!partition) return {.error = ErrorCode::unknown_topic_or_partition};
    if (partition->leader != broker.node_id()) return {.error = ErrorCode::not_leader_or_follower, .partition = partition};
    if (current_leader_epoch >= 0 && current_leader_epoch != partition->leader_epoch) {
        return {.error = current_leader_epoch < partition->leader_epoch ? ErrorCode::fenced_leader_epoch : ErrorCode::unknown_leader_epoch, .partition = partition};
    }
    auto log = broker.logs().find(name);
    if (!log) {
        // Its directory has failed, now or when the log should have been made; or it is being deleted, and the image that
        // says so comes after the log has gone.
        const auto failed = std::ranges::any_of(broker.logs().directories(), &storage::LogDirStats::offline);
        return {.error = failed ? ErrorCode::kafka_storage_error : ErrorCode::unknown_topic_or_partition};
    }
    return {.partition = partition, .log = std::move(log)};
}

}  // namespace tidemark::daemon::handlers
