/// Names in a log directory and in a partition's: made and read here only (log-directory 1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/topic_partition.h"
#include "base/types.h"
#include "base/uuid.h"

namespace tidemark::storage {

inline constexpr std::string_view cluster_metadata_topic = "__cluster_metadata";

namespace file_name {
inline constexpr std::string_view lock = ".lock";
inline constexpr std::string_view clean_shutdown = ".kafka_cleanshutdown";
inline constexpr std::string_view meta_properties = "meta.properties";
inline constexpr std::string_view recovery_point_checkpoint = "recovery-point-offset-checkpoint";
inline constexpr std::string_view log_start_checkpoint = "log-start-offset-checkpoint";
inline constexpr std::string_view high_watermark_checkpoint = "replication-offset-checkpoint";
inline constexpr std::string_view cleaner_checkpoint = "cleaner-offset-checkpoint";
inline constexpr std::string_view leader_epoch_checkpoint = "leader-epoch-checkpoint";
inline constexpr std::string_view partition_metadata = "partition.metadata";
inline constexpr std::string_view segments = "tidemark-segments";        ///< ours (D5), Kafka leaves it alone
inline constexpr std::string_view reserve = "tidemark-reserve";          ///< ours (D12)
inline constexpr std::string_view audit_trail = "tidemark-audit.jsonl";   ///< ours, and .1, .2 …
inline constexpr std::string_view move_complete = "tidemark-move-complete";   ///< ours, in the partition's directory (log_move.h)
inline constexpr std::string_view remote_index_cache = "remote-log-index-cache";
}  // namespace file_name

// --- directories -----------------------------------------------------------------------------------------------------

enum class DirectoryKind : std::uint8_t { live, deleted, future, stray };

struct ParsedDirectory {
    TopicPartition partition;
    DirectoryKind kind = DirectoryKind::live;
};

std::string live_directory_name(const TopicPartition&);
/// `<topic>-<partition>.<32 hex>-delete`, at most 255 characters: the topic is cut, never the rest.
std::string deleted_directory_name(const TopicPartition&, Uuid unique);
std::string stray_directory_name(const TopicPartition&, Uuid unique);
/// `<topic>-<partition>.<32 hex>-future`, not cut.
std::string future_directory_name(const TopicPartition&, Uuid unique);
/// Errc::invalid_argument: not a partition's directory.
Result<ParsedDirectory> parse_directory_name(std::string_view name);

// --- files of a partition --------------------------------------------------------------------------------------------

enum class FileKind : std::uint8_t { log, offset_index, time_index, transaction_index, snapshot, other };
/// What comes behind the normal extension: written by a cleaning, being swapped in, waiting to be unlinked.
enum class FileSuffix : std::uint8_t { none, cleaned, swap, deleted };

std::string_view extension(FileKind);     ///< ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
std::string_view suffix_text(FileSuffix); ///< "", ".cleaned", ".swap", ".deleted"

/// "00000000000000000042.timeindex.swap".
std::string segment_file_name(Offset, FileKind, FileSuffix = FileSuffix::none);

struct ParsedFile {
    FileKind kind = FileKind::other;
    FileSuffix suffix = FileSuffix::none;
    Offset offset{};           ///< the number before the first '.'; of kind other: nothing is known
};
/// Anything that is not a segment's file or a snapshot is FileKind::other (its suffix is told nevertheless).
ParsedFile parse_file_name(std::string_view name);

/// D21: "<base offset>.log.damaged-<ms>", what recovery cut off a log and kept.
std::string damaged_file_name(Offset base, Timestamp now);
/// Its base offset; nothing for any other name.
std::optional<Offset> parse_damaged_file_name(std::string_view name);

}  // namespace tidemark::storage
