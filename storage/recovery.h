/// Opening a log after any stop (log-directory 7): leftovers, interrupted swaps, damaged tails, indexes, producer state.
///
/// What goes and what stays is decided by functions over plain listings; open_log() acts.
#pragma once

#include <functional>

#include "storage/log.h"
#include "storage/log_directory.h"
#include "storage/log_state.h"

namespace tidemark::storage {

// --- decisions ---------------------------------------------------------------------------------------------------------

/// What becomes of the files that a stop left behind.
struct Leftovers {
    std::vector<std::string> discard_first;     ///< `.swap` files of a swap that had not got far enough
    std::vector<std::string> discard;           ///< `*.deleted`, `*.cleaned`, `*.tmp`, the mark of a finished move
    std::vector<std::string> finish;            ///< `.swap` files that become final
};
/// While any `.cleaned` exists, `.swap` files at or above the smallest such base belong to a swap that is undone
/// (log-directory 6). `*.checkpoint.deleted` are another file's business.
Leftovers plan_leftovers(const std::vector<std::string>& names);

/// Offsets that a finished swap covers.
struct SwapRange {
    Offset base{};
    Offset next{};
};
/// The files that the swap replaces: not `.swap` themselves, their number inside the envelope of the ranges.
std::vector<std::string> replaced_by_swap(const std::vector<std::string>& names, const std::vector<SwapRange>& ranges);

/// The v2 batch that begins at `at`, when one does, valid to the last bit and not below `expected`. A CRC is computed only
/// while `crc_tries` lasts.
std::optional<record::BatchView> valid_batch_at(Bytes bytes, std::size_t at, Offset expected, int& crc_tries);

/// How a `.log` goes on behind the last batch that is valid.
enum class Damage : std::uint8_t {
    none,
    torn,        ///< what a power loss or a kill leaves: nothing valid follows, or what is missing was never synced
    damaged,     ///< valid batches follow (D21)
};
/// `tail`: the file from the first invalid byte on, which stands at `position`. `expected`: the next offset.
Damage classify_damage(Bytes tail, FilePosition position, Offset expected);

/// What a stop left of a log, compared with what was known of it before.
struct StopTraces {
    bool clean = false;
    std::int64_t truncated_bytes = 0;
    Offset end{};                                    ///< of the log, once it is loaded
    Offset recovery_point{};                         ///< as checkpointed; 0 when unknown
    std::optional<Offset> high_watermark = {};       ///< as checkpointed
    bool machine_restarted = false;                  ///< since the log was last written to
};
/// D10: whether an unclean stop may have taken records that somebody had read: bytes were cut, the end is below what was
/// checkpointed, or the machine went down, which takes what was in its memory without a trace.
bool may_have_lost_records(const StopTraces&);

// --- opening -----------------------------------------------------------------------------------------------------------

/// What `tidemark-segments` remembers of a sealed segment (D5).
struct SegmentMemory {
    std::int64_t bytes = 0;
    Timestamp modified{};
    Offset next_offset{};
    TimeIndex::Entry largest;
    std::optional<Timestamp> first_append;
    std::optional<std::optional<Timestamp>> earliest_delete_horizon;
    friend bool operator==(const SegmentMemory&, const SegmentMemory&) = default;
};
using LogMemory = std::map<Offset, SegmentMemory>;

struct OpenLogOptions {
    TopicPartition partition;
    io::Path directory;                              ///< of the partition; it exists
    std::shared_ptr<const LogConfig> config;
    Offset recovery_point{};                         ///< as checkpointed; 0 when unknown
    Offset log_start{};
    std::optional<Offset> high_watermark = {};       ///< as checkpointed; nothing: the log end (a single replica)
    std::optional<Offset> reached = {};              ///< what the log is known to have reached: its checkpointed high watermark
    bool clean = false;                              ///< the directory had its clean marker
    bool load_producers_now = false;                 ///< also when they could wait
    bool serve_damaged = false;                      ///< although a kept tail waits for a decision: whoever repairs it (D21)
    const LogMemory* memory = nullptr;
};

struct RecoveryReport {
    std::int64_t segments_recovered = 0;
    std::int64_t truncated_bytes = 0;
    std::int64_t record_bytes_read = 0;
    bool replayed_without_snapshot = false;          ///< D22
    std::optional<std::string> damaged_file;         ///< D21: what was cut is kept here
    bool may_have_lost_records = false;              ///< D10
};

/// Errc::corrupt where Kafka's loader gives up, too; the directory is as it was then, but for leftovers.
/// The LogDirectory must outlive the log. Threads: any number of logs at the same time.
Result<std::shared_ptr<Log>> open_log(LogDirectory&, const OpenLogOptions&, RecoveryReport* report = nullptr);

/// A new, empty partition at `directory`, which does not exist; durable when this returns.
Result<std::shared_ptr<Log>> create_log(LogDirectory&, const OpenLogOptions&, std::optional<Uuid> topic_id);

// --- producer state (7.4) ----------------------------------------------------------------------------------------------

struct ProducerRebuild {
    Offset log_start{};
    Offset end{};
    bool clean = false;
    bool trust_missing_snapshots = false;            ///< D22
    Timestamp now{};
    std::int64_t expiration_ms = 0;
    std::string_view partition_text = {};
};
/// Brings the state to `end` from the newest readable snapshot and the records behind it, writing snapshots at the last two
/// segment bases and at the end. Returns whether records had to be read although the stop was clean (D22).
Result<bool> rebuild_producers(ProducerState&, ProducerSnapshots&, const SegmentMap&, const ProducerRebuild&);

}  // namespace tidemark::storage
