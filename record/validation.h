/// What a leader checks and changes in one partition's record set before it appends it (append-and-read, sections 2.A, 3).
///
/// Three steps, each a function over plain bytes, so that the append lock is held for the last one only:
///
///     analyze()         headers, sizes, CRCs: every origin                             outside the lock
///     validate()        records: keys, timestamps, counts; rewrites what must be       outside the lock, leaders only
///     assign_offsets()  base offset and leader epoch, outside the CRC                  under the lock, a few stores
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "record/builder.h"
#include "record/record.h"

namespace tidemark::record {

enum class Origin : std::uint8_t { client, coordinator, replication, raft_leader };

struct AnalysisOptions {
    Origin origin = Origin::client;
    /// Ours: raft_leader batches must carry it; replication stops before the first batch of a later one.
    LeaderEpoch leader_epoch = no_leader_epoch;
    /// max.message.bytes of a whole entry; nothing where sizes are not checked (followers, internal logs).
    std::optional<std::int32_t> batch_bytes_max = {};
};

/// A record set by its headers.
struct RecordSetInfo {
    std::size_t valid_bytes = 0;                 ///< whole entries from the front; a cut last one is not among them
    std::int32_t batches = 0;
    std::optional<Offset> first_offset = {};     ///< when the first entry is v2
    Offset first_batch_last_offset{-1};          ///< what a legacy set is judged by instead
    Offset last_offset{-1};
    LeaderEpoch last_leader_epoch = no_leader_epoch;
    Timestamp max_timestamp = no_timestamp;      ///< as the headers claim
    Offset offset_of_max_timestamp{-1};          ///< last offset of the first batch that claims it
    bool offsets_rise = true;                    ///< of the batches' last offsets; otherwise an error unless they are assigned
    Codec source_codec = Codec::none;            ///< of the last compressed batch
};

/// Looks at every header and checks every CRC, once for the whole append.
/// Errc::invalid_record (a client's base offset, a raft batch's epoch), too_large, corrupt (size, magic, CRC).
Result<RecordSetInfo> analyze(Bytes records, const AnalysisOptions&);

struct ValidationOptions {
    Origin origin = Origin::client;
    /// compression.type; nothing for `producer`.
    std::optional<Codec> codec = {};
    std::optional<int> level = {};               ///< of the target codec; used when a batch is compressed anew
    bool compacted = false;                      ///< cleanup.policy has compact: a key is needed
    TimestampType timestamp_type = TimestampType::create_time;
    std::int64_t before_max_ms = std::numeric_limits<std::int64_t>::max();
    std::int64_t after_max_ms = 3'600'000;
    Timestamp now{};                             ///< judges timestamps, and is the append time
    /// A batch that is compressed anew, or not at all, lies in memory whole: Errc::too_large above this.
    std::size_t rebuild_bytes_max = 256 * 1024 * 1024;
};

/// A record that was refused, as the produce answer lists it.
struct RecordError {
    std::int32_t index = 0;                      ///< in its batch
    std::string message;
    friend bool operator==(const RecordError&, const RecordError&) = default;
};

/// A record set that only lacks its offsets. Holds a view of the caller's buffer when nothing had to be rebuilt.
class ValidatedRecords {
public:
    /// What to write: the caller's bytes, changed in place, or the rebuilt ones.
    MutableBytes bytes() { return rebuilt_ ? MutableBytes{*rebuilt_} : in_place_; }
    Bytes bytes() const { return rebuilt_ ? Bytes{*rebuilt_} : Bytes{in_place_}; }
    bool rebuilt() const { return rebuilt_.has_value(); }

    std::int32_t record_count() const { return record_count_; }
    Timestamp max_timestamp() const { return max_timestamp_; }
    std::optional<Timestamp> log_append_time() const { return log_append_time_; }
    /// Valid after assign_offsets(); the set is one batch, whose last offset is also that of its largest timestamp.
    Offset first_offset() const { return first_offset_; }
    Offset last_offset() const { return first_offset_ + (record_count_ - 1); }
    Offset next_offset() const { return first_offset_ + record_count_; }

private:
    friend class Validator;
    friend void assign_offsets(ValidatedRecords&, Offset, LeaderEpoch);
    MutableBytes in_place_;
    std::optional<std::vector<std::byte>> rebuilt_;
    std::int32_t record_count_ = 0;
    Timestamp max_timestamp_ = no_timestamp;
    std::optional<Timestamp> log_append_time_;
    Offset first_offset_{};
};

/// Checks records and makes them what the topic wants. Reuse one for many record sets: it keeps reader and builder.
///
/// Threads: one at a time.
class Validator {
public:
    explicit Validator(ReadLimits limits = {}) : reader_(limits) {}

    /// `records` is what analyze() called valid. On success its header (timestamp type, largest timestamp, CRC) has been
    /// changed where the topic says so; on an error nothing has.
    /// Errc::invalid_record and invalid_timestamp for what a client did wrong: when single records are to blame,
    /// `rejected` (if given) lists them, at most `rejected_max` of them, and no record of the set is to be appended.
    /// Errc::corrupt for an inner legacy message's CRC; unsupported_compression.
    Result<ValidatedRecords> validate(MutableBytes records, const RecordSetInfo&, const ValidationOptions&,
                                      std::vector<RecordError>* rejected = nullptr);

    static constexpr std::size_t rejected_max = 10'000;

private:
    class Pass;
    RecordReader reader_;
    BatchBuilder builder_;
};

/// Gives the records the offsets from `first` on, and the leader's epoch. Neither is under the CRC: a few stores.
void assign_offsets(ValidatedRecords&, Offset first, LeaderEpoch);

}  // namespace tidemark::record
