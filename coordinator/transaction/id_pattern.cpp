#include "coordinator/transaction/id_pattern.h"

#include <re2/re2.h>

#include <memory>

namespace tidemark::coordinator {

std::function<bool(std::string_view)> id_pattern(const std::string& pattern) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(256 << 10);   // what a client's pattern may take
    const auto regex = std::make_shared<const re2::RE2>(pattern, options);
    if (!regex->ok()) return {};
    return [regex](std::string_view id) { return re2::RE2::FullMatch(re2::StringPiece{id.data(), id.size()}, *regex); };
}

}  // namespace tidemark::coordinator
