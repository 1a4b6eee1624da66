/// The small text files beside the data (log-directory 3). Parsers are strict: what they cannot read is Errc::corrupt, and
/// the caller knows what "unknown" means for this file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/topic_partition.h"
#include "base/uuid.h"
#include "io/file_system.h"
#include "storage/leader_epochs.h"

namespace tidemark::storage {

using OffsetCheckpoint = std::map<TopicPartition, Offset>;

///     0                  version
///     2                  number of entries
///     orders 0 4711      topic, partition, offset
///     orders 1 0
/// An empty file is valid and has no entries.
Result<OffsetCheckpoint> parse_offset_checkpoint(std::string_view text);
std::string format_offset_checkpoint(const OffsetCheckpoint&);
/// A missing file has no entries.
Result<OffsetCheckpoint> read_offset_checkpoint(io::FileSystem&, const io::Path&);
/// Replaces the file atomically and durably.
Result<> write_offset_checkpoint(io::FileSystem&, const io::Path&, const OffsetCheckpoint&);

/// The same frame with `epoch start` lines.
Result<std::vector<EpochStart>> parse_leader_epochs(std::string_view text);
std::string format_leader_epochs(const std::vector<EpochStart>&);
Result<std::optional<std::vector<EpochStart>>> read_leader_epochs(io::FileSystem&, const io::Path&);
Result<> write_leader_epochs(io::FileSystem&, const io::Path&, const std::vector<EpochStart>&);

/// partition.metadata: the topic's id. Errc::corrupt: another version, no id, the zero id.
Result<Uuid> parse_partition_metadata(std::string_view text);
std::string format_partition_metadata(Uuid topic_id);
/// Nothing when the file is missing.
Result<std::optional<Uuid>> read_partition_metadata(io::FileSystem&, const io::Path&);
Result<> write_partition_metadata(io::FileSystem&, const io::Path&, Uuid topic_id);

/// meta.properties: whose directory this is (log-directory 3.4). Version 0 has `broker.id` for `node.id`.
struct MetaProperties {
    int version = 1;
    std::optional<std::string> cluster_id;
    std::optional<std::int32_t> node_id;
    std::optional<Uuid> directory_id;
};
Result<MetaProperties> parse_meta_properties(std::string_view text);
std::string format_meta_properties(const MetaProperties&);
Result<std::optional<MetaProperties>> read_meta_properties(io::FileSystem&, const io::Path&);
Result<> write_meta_properties(io::FileSystem&, const io::Path&, const MetaProperties&);

/// .kafka_cleanshutdown. That it exists is what counts; nothing when its content cannot be read.
std::string format_clean_shutdown(std::int64_t broker_epoch);
std::optional<std::int64_t> parse_clean_shutdown(std::string_view text);

}  // namespace tidemark::storage
