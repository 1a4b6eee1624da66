#include "coordinator/group/consumer/topic_regex.h"

#include <re2/re2.h>

#include "metadata/image.h"

namespace tidemark::coordinator {

namespace {

// What one pattern may take, 256 KiB: a client's pattern must not cost more than its topics.
re2::RE2::Options regex_options() {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(256 << 10);
    return options;
}

}  // namespace

std::optional<std::string> regex_problem(const std::string& pattern) {
    const re2::RE2 regex(pattern, regex_options());
    return regex.ok() ? std::nullopt : std::optional{regex.error()};
}

std::vector<std::string> matching_topics(const std::string& pattern, const metadata::Image& image) {
    const re2::RE2 regex(pattern, regex_options());
    std::vector<std::string> topics;
    if (!regex.ok()) return topics;
    for (const auto& [name, topic] : image.topics) {
        if (re2::RE2::FullMatch(name, regex)) topics.push_back(name);
    }
    return topics;
}

}  // namespace tidemark::coordinator
