/// The features that this program supports, and the ranges of their levels (KIP-584).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace tidemark::daemon::handlers {

struct SupportedFeature {
    std::string_view name;
    std::int16_t min = 0, max = 0;
};

/// As Kafka 4.4, except for what is not offered (D27: share and streams groups).
inline std::span<const SupportedFeature> supported_features() {
    static constexpr std::array<SupportedFeature, 7> features{{
        {"eligible.leader.replicas.version", 0, 1},
        {"group.version", 0, 1},
        {"kraft.version", 0, 1},
        {"metadata.version", 7, 33},
        {"share.version", 0, 0},
        {"streams.version", 0, 0},
        {"transaction.version", 0, 2},
    }};
    return features;
}

}  // namespace tidemark::daemon::handlers
