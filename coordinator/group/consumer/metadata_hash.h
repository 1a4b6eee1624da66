/// What a consumer group last saw of the topics it subscribes to, in one number (group-coordinator 3, "Metadata hash"):
/// when it differs, the group needs a new assignment. Kafka's own numbers, so that a change of coordinator is no rebalance.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/uuid.h"

namespace tidemark::coordinator {

struct TopicFacts {
    Uuid id;
    std::string_view name;                            ///< UTF-8
    std::vector<std::vector<std::string>> racks;      ///< per partition, of the brokers that hold a replica, sorted; none where unset
};

/// XXH3-64 over id, name, number of partitions and racks.
std::int64_t topic_hash(const TopicFacts&);

/// Over the hashes of the subscribed topics that exist, ordered by topic name; 0 when there are none.
std::int64_t group_hash(std::span<const std::int64_t> topic_hashes);

}  // namespace tidemark::coordinator
