#include "coordinator/errors.h"

namespace tidemark::coordinator {

using protocol::ErrorCode;

ErrorCode coordinator_error(Errc code) {
    switch (code) {
        case Errc::io:
        case Errc::no_space:
        case Errc::storage_offline: return coordinator_error(ErrorCode::kafka_storage_error);
        case Errc::not_found: return coordinator_error(ErrorCode::unknown_topic_or_partition);
        case Errc::timed_out: return coordinator_error(ErrorCode::request_timed_out);
        case Errc::too_large: return coordinator_error(ErrorCode::message_too_large);
        case Errc::batch_set_too_large: return coordinator_error(ErrorCode::record_list_too_large);
        case Errc::invalid_producer_epoch: return ErrorCode::invalid_producer_epoch;
        case Errc::invalid_transaction_state: return ErrorCode::invalid_txn_state;
        case Errc::coordinator_fenced: return ErrorCode::transaction_coordinator_fenced;
        default: return ErrorCode::unknown_server_error;
    }
}

ErrorCode coordinator_error(ErrorCode code) {
    switch (code) {
        case ErrorCode::unknown_topic_or_partition:
        case ErrorCode::not_enough_replicas:
        case ErrorCode::request_timed_out: return ErrorCode::coordinator_not_available;
        case ErrorCode::not_leader_or_follower:
        case ErrorCode::kafka_storage_error: return ErrorCode::not_coordinator;
        case ErrorCode::message_too_large:
        case ErrorCode::record_list_too_large:
        case ErrorCode::invalid_fetch_size: return ErrorCode::unknown_server_error;
        case ErrorCode::network_exception: return ErrorCode::coordinator_load_in_progress;
        default: return code;
    }
}

}  // namespace tidemark::coordinator
