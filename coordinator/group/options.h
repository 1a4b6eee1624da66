/// What group coordinators are told by the broker's settings (group-coordinator 8). Defaults and ranges are the schema's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tidemark::metadata {
struct ConfigLayers;
}

namespace tidemark::coordinator {

enum class MigrationPolicy : std::uint8_t { disabled, downgrade, upgrade, bidirectional };

/// One of the settings that a group may have of its own, within the broker's bounds.
struct GroupSetting {
    std::int32_t value = 0, min = 0, max = 0;
    friend bool operator==(const GroupSetting&, const GroupSetting&) = default;
};

struct GroupOptions {
    std::int32_t commit_metadata_units_max = 4096;         ///< offset.metadata.max.bytes, in UTF-16 units
    std::int64_t offsets_retention_ms = 604'800'000;       ///< offsets.retention.minutes
    std::int64_t retention_check_interval_ms = 600'000;    ///< offsets.retention.check.interval.ms

    std::int32_t session_timeout_min_ms = 6000, session_timeout_max_ms = 1'800'000;   ///< of classic members
    std::int32_t initial_rebalance_delay_ms = 3000;
    std::int32_t size_max = 2'147'483'647;                 ///< group.max.size

    bool consumer_protocol = true;                         ///< group.coordinator.rebalance.protocols has consumer
    std::int32_t consumer_size_max = 2'147'483'647;
    GroupSetting session_timeout{45'000, 45'000, 60'000};
    GroupSetting heartbeat_interval{5000, 5000, 15'000};
    GroupSetting assignment_interval{1000, 0, 15'000};
    std::int64_t regex_refresh_interval_ms = 600'000;
    std::vector<std::string> assignors{"uniform", "range"};
    MigrationPolicy migration_policy = MigrationPolicy::bidirectional;
};
using GroupOptionsPtr = std::shared_ptr<const GroupOptions>;

GroupOptions group_options(const metadata::ConfigLayers&);

}  // namespace tidemark::coordinator
