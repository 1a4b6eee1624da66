/// Partition directories against the metadata (metadata-log 7). Pure.
#pragma once

#include <optional>
#include <string>

#include "metadata/image.h"

namespace tidemark::metadata {

struct Placement {
    enum class Verdict : std::uint8_t {
        ours,      ///< serve it
        adopt,     ///< serve it and write its partition.metadata, which is missing or has no id (B60); Kafka calls it stray
        stray,     ///< keep it away from clients, for the operator to look at
    };
    Verdict verdict = Verdict::ours;
    std::string reason = {};                 ///< of a stray, for the log
    std::optional<Uuid> directory = {};      ///< where the metadata says the log is; nothing: not assigned, or of no meaning
};

/// What a directory that was found on this node is. `topic_id`: of its partition.metadata, if it is there.
Placement place(const Image&, std::int32_t node_id, const TopicPartition&, const std::optional<Uuid>& topic_id);

/// The directory that a partition of this node belongs into by the metadata; nothing while it is not assigned.
std::optional<Uuid> assigned_directory(const Partition&, std::int32_t node_id);

}  // namespace tidemark::metadata
