/// Sets of partitions as consumer groups keep them: by topic id, ascending, no topic without a partition.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/uuid.h"

namespace tidemark::coordinator {

/// What a member should have, or says that it has: partition numbers by topic.
using Partitions = std::map<Uuid, std::vector<std::int32_t>>;

/// What a member holds: the member epoch at which each partition came to it, by topic and partition (KIP-1251).
using HeldPartitions = std::map<Uuid, std::map<std::int32_t, std::int32_t>>;

inline Partitions without_epochs(const HeldPartitions& held) {
    Partitions result;
    for (const auto& [topic, partitions] : held) {
        auto& numbers = result[topic];
        numbers.reserve(partitions.size());
        for (const auto& [partition, epoch] : partitions) numbers.push_back(partition);
    }
    return result;
}

inline bool holds(const HeldPartitions& held, const Uuid& topic, std::int32_t partition) {
    const auto found = held.find(topic);
    return found != held.end() && found->second.contains(partition);
}

}  // namespace tidemark::coordinator
