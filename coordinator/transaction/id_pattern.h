/// The pattern of ListTransactions: RE2's syntax, matched against whole transactional ids (KIP-1152).
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace tidemark::coordinator {

/// Null for a pattern that is none.
std::function<bool(std::string_view id)> id_pattern(const std::string& pattern);

}  // namespace tidemark::coordinator
