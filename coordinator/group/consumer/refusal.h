/// Why a group operation answers with an error.
#pragma once

#include <string>

#include <boost/system/result.hpp>

#include "base/result.h"
#include "protocol/error_code.h"

namespace tidemark::coordinator {

struct Refusal {
    protocol::ErrorCode code = protocol::ErrorCode::none;
    std::string message = {};
};

[[noreturn]] void throw_exception_from_error(const Refusal&, const boost::source_location&);

template <class T = void>
using Refusable = boost::system::result<T, Refusal>;

/// What a client of a group is told when its records could not be appended (group-coordinator 2, table).
Refusal append_refusal(const Error&);

}  // namespace tidemark::coordinator
