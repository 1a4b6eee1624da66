/// The topics that coordinators keep their state in: their names, who lives where, and how they come to be.
#pragma once

#include <cstdint>
#include <string_view>

#include "metadata/controller.h"
#include "metadata/effective_config.h"

namespace tidemark::coordinator {

inline constexpr std::string_view group_topic = "__consumer_offsets";
inline constexpr std::string_view transaction_topic = "__transaction_state";

/// Java's String.hashCode() of a text in UTF-8: over its UTF-16 code units.
std::int32_t java_hash(std::string_view text);
/// Partition of a group or transactional id: |hash| modulo `partitions`, where |-2147483648| is 0.
std::int32_t partition_of(std::string_view id, std::int32_t partitions);

/// What the topics are created with when they are first needed (group-coordinator 1, transaction-coordinator 1).
metadata::NewTopic group_topic_settings(const metadata::ConfigLayers&);
metadata::NewTopic transaction_topic_settings(const metadata::ConfigLayers&);

}  // namespace tidemark::coordinator
