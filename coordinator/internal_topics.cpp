#include "coordinator/internal_topics.h"

#include "base/utf16.h"

namespace tidemark::coordinator {

std::int32_t java_hash(std::string_view text) {
    std::uint32_t hash = 0;
    for_each_utf16_unit(text, [&](std::uint16_t unit) { hash = 31 * hash + unit; });
    return static_cast<std::int32_t>(hash);
}

std::int32_t partition_of(std::string_view id, std::int32_t partitions) {
    const auto hash = static_cast<std::int64_t>(java_hash(id));
    const auto magnitude = hash == std::numeric_limits<std::int32_t>::min() ? 0 : hash < 0 ? -hash : hash;
    return static_cast<std::int32_t>(magnitude % partitions);
}

metadata::NewTopic group_topic_settings(const metadata::ConfigLayers& layers) {
    using metadata::broker_integer;
    return {.name = std::string{group_topic},
            .partitions = static_cast<std::int32_t>(broker_integer(layers, "offsets.topic.num.partitions")),
            .replication_factor = static_cast<std::int16_t>(broker_integer(layers, "offsets.topic.replication.factor")),
            .configs = {{"compression.type", "producer"},
                        {"cleanup.policy", "compact"},
                        {"segment.bytes", std::to_string(broker_integer(layers, "offsets.topic.segment.bytes"))}}};
}

metadata::NewTopic transaction_topic_settings(const metadata::ConfigLayers& layers) {
    using metadata::broker_integer;
    return {.name = std::string{transaction_topic},
            .partitions = static_cast<std::int32_t>(broker_integer(layers, "transaction.state.log.num.partitions")),
            .replication_factor = static_cast<std::int16_t>(broker_integer(layers, "transaction.state.log.replication.factor")),
            .configs = {{"compression.type", "uncompressed"},
                        {"cleanup.policy", "compact"},
                        {"min.insync.replicas", std::to_string(broker_integer(layers, "transaction.state.log.min.isr"))},
                        {"segment.bytes", std::to_string(broker_integer(layers, "transaction.state.log.segment.bytes"))},
                        {"unclean.leader.election.enable", "false"}}};
}

}  // namespace tidemark::coordinator
