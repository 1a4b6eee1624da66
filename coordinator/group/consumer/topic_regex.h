/// Subscriptions by regular expression: RE2's syntax, as Kafka's brokers use it (KIP-848), matched against whole names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace tidemark::metadata {
class Image;
}

namespace tidemark::coordinator {

/// Which topics a regular expression matches, and what was known then: record type 16.
struct ResolvedRegex {
    std::vector<std::string> topics = {};   ///< sorted
    Offset image{-1};                       ///< offset of the metadata image it was matched against
    Timestamp at{0};
    friend bool operator==(const ResolvedRegex&, const ResolvedRegex&) = default;
};

/// Why the pattern is none, in RE2's words; nothing when it is one.
std::optional<std::string> regex_problem(const std::string& pattern);

/// The names of all topics, internal ones included, that the pattern matches as a whole; sorted. None for a pattern that is
/// none. Linear in the names' length, whatever the pattern.
std::vector<std::string> matching_topics(const std::string& pattern, const metadata::Image&);

}  // namespace tidemark::coordinator
