/// What our errors are called on the wire. Only here.
#pragma once

#include "base/result.h"
#include "protocol/error_code.h"

namespace tidemark::daemon {

constexpr protocol::ErrorCode to_error_code(Errc code) {
    using protocol::ErrorCode;
    switch (code) {
        case Errc::io:
        case Errc::no_space:
        case Errc::storage_offline: return ErrorCode::kafka_storage_error;
        case Errc::corrupt: return ErrorCode::corrupt_message;
        case Errc::invalid_argument: return ErrorCode::invalid_request;
        // The log was closed or removed after the image that named it was taken.
        case Errc::not_found: return ErrorCode::unknown_topic_or_partition;
        case Errc::already_exists: return ErrorCode::topic_already_exists;
        case Errc::timed_out: return ErrorCode::request_timed_out;
        case Errc::unsupported: return ErrorCode::unsupported_version;
        case Errc::invalid_record: return ErrorCode::invalid_record;
        case Errc::invalid_timestamp: return ErrorCode::invalid_timestamp;
        case Errc::too_large: return ErrorCode::message_too_large;
        case Errc::batch_set_too_large: return ErrorCode::record_list_too_large;
        case Errc::unsupported_compression: return ErrorCode::unsupported_compression_type;
        case Errc::out_of_order_sequence: return ErrorCode::out_of_order_sequence_number;
        case Errc::invalid_producer_epoch: return ErrorCode::invalid_producer_epoch;
        case Errc::invalid_transaction_state: return ErrorCode::invalid_txn_state;
        case Errc::coordinator_fenced: return ErrorCode::transaction_coordinator_fenced;
        case Errc::offset_out_of_range: return ErrorCode::offset_out_of_range;
        case Errc::offset_not_available: return ErrorCode::offset_not_available;
        case Errc::fenced_leader_epoch: return ErrorCode::fenced_leader_epoch;
        case Errc::unknown_leader_epoch: return ErrorCode::unknown_leader_epoch;
        case Errc::aborted:
        case Errc::locked:
        case Errc::unexpected_offset:
        case Errc::offset_overflow: return ErrorCode::unknown_server_error;
    }
    return ErrorCode::unknown_server_error;
}

inline protocol::ErrorCode to_error_code(const Error& error) { return to_error_code(error.code); }

}  // namespace tidemark::daemon
