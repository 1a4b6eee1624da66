/// The features that this program supports, the ranges of their levels (KIP-584), and what may become of a level.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidemark::metadata {

struct SupportedFeature {
    std::string_view name;
    std::int16_t min = 0, max = 0;
};

/// Sorted by name. As Kafka 4.4, except for what is not offered (D27: share and streams groups).
std::span<const SupportedFeature> supported_features();

/// Whether going down from one metadata.version to another gives up a kind or a field of records.
bool loses_metadata(std::int16_t from, std::int16_t to);

}  // namespace tidemark::metadata
