/// The table of APIs: what a request's key means, which versions exist, who serves them.
#pragma once

#include <span>
#include <string_view>

#include "protocol/api_key.h"
#include "protocol/wire_types.h"

namespace tidemark::protocol {

struct Api {
    ApiKey key = {};
    std::string_view name = {};       ///< Kafka's, for example "ListOffsets"
    /// The versions that a request may have. The newest version of an API with `has_unstable_version` is not among them:
    /// brokers offer it only when told to (unstable.api.versions.enable).
    VersionRange versions = {};
    std::int16_t flexible_from = never_flexible;
    bool has_unstable_version = false;
    bool on_broker = false;           ///< served on broker listeners
    bool on_controller = false;       ///< served on controller listeners

    bool is_flexible(std::int16_t version) const { return version >= flexible_from; }
    /// What an ApiVersions response says. The same as `versions`, except for Produce: librdkafka before 2.8 compresses
    /// only if version 0 is offered, so Kafka offers 0 to 2 and refuses them when used (KAFKA-18659).
    VersionRange advertised() const { return {key == ApiKey::produce ? std::int16_t{0} : versions.min, versions.max}; }
};

/// By ascending key.
std::span<const Api> apis();
/// Null if no API has that key.
const Api* find_api(std::int16_t key);
inline const Api* find_api(ApiKey key) { return find_api(static_cast<std::int16_t>(key)); }

// Behind apis(): generated.
extern const Api api_table[];
extern const std::size_t api_table_size;

}  // namespace tidemark::protocol
