/// What every mode asks a broker for besides its load: topics, leaders, offsets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/load/connection.h"
#include "protocol/error_code.h"

namespace tidemark::bench {

struct TopicOptions {
    std::string name = "load";
    std::int32_t partitions = 1;
    std::map<std::string, std::string> configs = {};
};

/// An answer's error code as an Error: Errc::invalid_argument, "what: NAME".
Error refused(const std::string& what, protocol::ErrorCode);

/// Creates the topic, unless it is there with at least so many partitions, and waits until every partition has a leader.
Result<> ensure_topic(Connection&, const TopicOptions&);

/// The offsets of partitions 0 to `partitions` - 1, in order.
enum class Position : std::int8_t { earliest = -2, latest = -1 };
Result<std::vector<std::int64_t>> offsets(Connection&, const std::string& topic, std::int32_t partitions, Position);

/// One partition's part of a fetch: from where on, and what came.
struct FetchPosition {
    std::int32_t partition = 0;
    std::int64_t offset = 0;
};
struct FetchOptions {
    std::int32_t max_wait_ms = 500;
    std::int32_t min_bytes = 1;
    std::int32_t bytes_max = 50 << 20;
    std::int32_t partition_bytes_max = 1 << 20;
};

/// Versions used, all of them with topic names and all served by Apache Kafka 2.4 and later.
inline constexpr std::int16_t produce_version = 9;
inline constexpr std::int16_t fetch_version = 12;
inline constexpr std::int16_t metadata_version = 9;

/// A fetch outside any session.
Result<protocol::Encoded> fetch_frame(std::int32_t correlation_id, const std::string& topic, const std::vector<FetchPosition>&, const FetchOptions&);

}  // namespace tidemark::bench
