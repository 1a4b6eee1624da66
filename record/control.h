/// Control batches: transaction markers, and the raft records of the metadata log (record-format, section 3).
#pragma once

#include <array>
#include <vector>

#include "record/batch.h"
#include "record/record.h"

namespace tidemark::record {

enum class ControlType : std::int16_t {
    abort = 0, commit = 1, leader_change = 2, snapshot_header = 3, snapshot_footer = 4, kraft_version = 5, kraft_voters = 6,
    unknown = -1,                  ///< a later one: to be skipped
};

/// The type in a control record's key. Errc::invalid_record: shorter than 4 bytes, negative version.
Result<ControlType> control_type(const RecordView&);

struct TransactionMarker {
    ControlType type = ControlType::abort;   ///< abort or commit
    std::int32_t coordinator_epoch = 0;
};
/// The value of an abort or commit record. Errc::invalid_record as above.
Result<TransactionMarker> transaction_marker(const RecordView&);

struct MarkerOptions {
    Offset offset{0};
    Timestamp timestamp{};
    LeaderEpoch leader_epoch = no_leader_epoch;
    ProducerId producer_id = no_producer_id;
    ProducerEpoch producer_epoch = -1;
    TransactionMarker marker = {};
};
/// A marker's batch: 78 bytes when nothing is unusual.
void write_marker(const MarkerOptions&, std::vector<std::byte>& to);

/// Key of a control record of `type`, version 0.
std::array<std::byte, 4> control_key(ControlType type);

}  // namespace tidemark::record
