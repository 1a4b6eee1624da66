/// What the cleaner makes of one batch when some of its records go (cleaner 7.4).
#pragma once

#include <vector>

#include "record/builder.h"
#include "record/record.h"

namespace tidemark::record {

/// What becomes of a batch none of whose records stay, and whether its records are looked at (cleaner 7.1).
enum class Retention : std::uint8_t {
    remove,             ///< goes without being decoded (Kafka: DELETE)
    remove_when_empty,  ///< records decide (Kafka: DELETE_EMPTY)
    keep_when_empty,    ///< records decide; its header stays in any case (Kafka: RETAIN_EMPTY)
};

/// Says which records stay. The order of questions is the order of the records; each record is asked for once.
class RecordJudge {
public:
    virtual ~RecordJudge() = default;
    virtual bool keeps(const BatchView& batch, const RecordView& record) = 0;
};

struct FilterOptions {
    Retention retention = Retention::remove_when_empty;
    bool marker_of_empty_transaction = false;   ///< a marker whose data are gone gets a horizon too
    Timestamp now{};                            ///< of the pass
    std::int64_t delete_retention_ms = 0;
};

struct FilterOutcome {
    enum class Output : std::uint8_t {
        nothing,     ///< the batch goes
        unchanged,   ///< nothing was written: the source's bytes are the output, from whatever buffer holds them
        rebuilt,     ///< a new batch was appended
        empty,       ///< a header without records was appended
    };
    Output output = Output::nothing;
    std::int64_t records_read = 0;   ///< 0 for Retention::remove
    std::int64_t records_kept = 0;
    std::size_t bytes_kept = 0;      ///< of the output
};

/// Filters batches one after another; keeps its buffers. Decides on a first walk over the records and writes on a
/// second, for which small compressed batches stay decompressed in memory.
///
/// Threads: one at a time.
class BatchFilter {
public:
    static constexpr std::size_t rewind_bytes_max = 4 * 1024 * 1024;

    explicit BatchFilter(std::int32_t record_bytes_max = ReadLimits{}.record_bytes_max)
        : reader_({.record_bytes_max = record_bytes_max, .rewind_bytes_max = rewind_bytes_max}) {}

    /// Appends what remains of `batch` to `to`, as magic 2. Survivors keep offset, timestamp, key, value and headers; the
    /// batch keeps its offsets, producer, sequence, epoch and codec, and is compressed at the codec's default level. A
    /// surviving null value gives it a delete horizon of now + delete_retention_ms, unless it has one (KIP-534).
    /// Errors, all with `to` unchanged: what RecordReader reports; Errc::invalid_record for a batch that cannot be built
    /// again (offsets that do not rise, negative timestamps, a producer id without epoch or sequence, a legacy batch that
    /// should stay empty); Errc::too_large when the survivors need 2 GiB.
    Result<FilterOutcome> filter(const BatchView& batch, const FilterOptions&, RecordJudge&, std::vector<std::byte>& to);

private:
    struct Walk {
        std::int64_t read = 0;
        std::int64_t kept = 0;
        bool tombstone_kept = false;
        Offset first_kept{};
        Offset last_kept{};
    };
    Result<Walk> judge(const BatchView& batch, RecordJudge& judge);
    Result<> rebuild(const BatchView& batch, const Walk& walk, std::optional<Timestamp> horizon, std::vector<std::byte>& to);

    RecordReader reader_;
    BatchBuilder builder_;
    std::vector<bool> kept_;  // one per record of the batch at hand
};

}  // namespace tidemark::record
