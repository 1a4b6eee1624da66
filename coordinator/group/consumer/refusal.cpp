#include "coordinator/group/consumer/refusal.h"

#include <stdexcept>

#include "coordinator/errors.h"

namespace tidemark::coordinator {

void throw_exception_from_error(const Refusal& refusal, const boost::source_location&) { throw std::runtime_error(refusal.message); }

Refusal append_refusal(const Error& error) { return {coordinator_error(error.code), error.message()}; }

}  // namespace tidemark::coordinator
