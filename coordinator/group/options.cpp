#include "coordinator/group/options.h"

#include <algorithm>
#include <cctype>

#include "metadata/effective_config.h"

namespace tidemark::coordinator {

namespace {

MigrationPolicy migration_policy(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (text == "disabled") return MigrationPolicy::disabled;
    if (text == "downgrade") return MigrationPolicy::downgrade;
    if (text == "upgrade") return MigrationPolicy::upgrade;
    return MigrationPolicy::bidirectional;
}

}  // namespace

GroupOptions group_options(const metadata::ConfigLayers& layers) {
    const auto number = [&](std::string_view key) { return metadata::broker_integer(layers, key); };
    const auto int32 = [&](std::string_view key) { return static_cast<std::int32_t>(number(key)); };
    const auto protocols = metadata::broker_list(layers, "group.coordinator.rebalance.protocols");
    return {.commit_metadata_units_max = int32("offset.metadata.max.bytes"),
            .offsets_retention_ms = number("offsets.retention.minutes") * 60'000,
            .retention_check_interval_ms = number("offsets.retention.check.interval.ms"),
            .session_timeout_min_ms = int32("group.min.session.timeout.ms"),
            .session_timeout_max_ms = int32("group.max.session.timeout.ms"),
            .initial_rebalance_delay_ms = int32("group.initial.rebalance.delay.ms"),
            .size_max = int32("group.max.size"),
            .consumer_protocol = std::ranges::find(protocols, "consumer") != protocols.end(),
            .consumer_size_max = int32("group.consumer.max.size"),
            .session_timeout = {int32("group.consumer.session.timeout.ms"), int32("group.consumer.min.session.timeout.ms"), int32("group.consumer.max.session.timeout.ms")},
            .heartbeat_interval = {int32("group.consumer.heartbeat.interval.ms"), int32("group.consumer.min.heartbeat.interval.ms"), int32("group.consumer.max.heartbeat.interval.ms")},
            .assignment_interval = {int32("group.consumer.assignment.interval.ms"), int32("group.consumer.min.assignment.interval.ms"), int32("group.consumer.max.assignment.interval.ms")},
            .regex_refresh_interval_ms = number("group.consumer.regex.refresh.interval.ms"),
            .assignors = metadata::broker_list(layers, "group.consumer.assignors"),
            .migration_policy = migration_policy(metadata::broker_string(layers, "group.consumer.migration.policy"))};
}

}  // namespace tidemark::coordinator
