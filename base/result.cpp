#include "base/result.h"

#include <stdexcept>

namespace tidemark {

const char* to_string(Errc code) noexcept {
    switch (code) {
        case Errc::io: return "io";
        case Errc::no_space: return "no_space";
        case Errc::storage_offline: return "storage_offline";
        case Errc::corrupt: return "corrupt";
        case Errc::invalid_argument: return "invalid_argument";
        case Errc::not_found: return "not_found";
        case Errc::already_exists: return "already_exists";
        case Errc::aborted: return "aborted";
        case Errc::timed_out: return "timed_out";
        case Errc::unsupported: return "unsupported";
        case Errc::locked: return "locked";
        case Errc::invalid_record: return "invalid_record";
        case Errc::invalid_timestamp: return "invalid_timestamp";
        case Errc::too_large: return "too_large";
        case Errc::batch_set_too_large: return "batch_set_too_large";
        case Errc::unsupported_compression: return "unsupported_compression";
        case Errc::out_of_order_sequence: return "out_of_order_sequence";
        case Errc::invalid_producer_epoch: return "invalid_producer_epoch";
        case Errc::invalid_transaction_state: return "invalid_transaction_state";
        case Errc::coordinator_fenced: return "coordinator_fenced";
        case Errc::unexpected_offset: return "unexpected_offset";
        case Errc::offset_out_of_range: return "offset_out_of_range";
        case Errc::offset_not_available: return "offset_not_available";
        case Errc::fenced_leader_epoch: return "fenced_leader_epoch";
        case Errc::unknown_leader_epoch: return "unknown_leader_epoch";
        case Errc::offset_overflow: return "offset_overflow";
    }
    return "unknown";
}

std::string Error::message() const {
    std::string text = to_string(code);
    if (!context.empty()) text += ": " + context;
    if (os) text += ": " + os.message();
    return text;
}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
    throw std::runtime_error(error.message());
}

Error in_context(Error error, std::string_view where) {
    error.context = error.context.empty() ? std::string(where) : std::string(where) + ": " + error.context;
    return error;
}

}  // namespace tidemark
