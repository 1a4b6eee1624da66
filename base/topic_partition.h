/// The name of a log.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include <fmt/format.h>

namespace tidemark {

struct TopicPartition {
    std::string topic;
    std::int32_t partition = 0;

    friend bool operator==(const TopicPartition&, const TopicPartition&) = default;
    friend auto operator<=>(const TopicPartition&, const TopicPartition&) = default;
    /// "orders-3", the name of its directory and what log lines begin with.
    std::string text() const { return topic + "-" + std::to_string(partition); }
};

}  // namespace tidemark

template <>
struct std::hash<tidemark::TopicPartition> {
    std::size_t operator()(const tidemark::TopicPartition& p) const noexcept {
        return std::hash<std::string>{}(p.topic) * 31 + static_cast<std::size_t>(p.partition);
    }
};

template <>
struct fmt::formatter<tidemark::TopicPartition> : fmt::formatter<std::string> {
    template <class Context>
    auto format(const tidemark::TopicPartition& p, Context& context) const {
        return fmt::format_to(context.out(), "{}-{}", p.topic, p.partition);
    }
};
