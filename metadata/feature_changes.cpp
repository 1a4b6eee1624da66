// UpdateFeatures: wire-behaviour 13. Nothing is applied when one update is refused.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "metadata/changes.h"
#include "metadata/features.h"
#include "metadata/replay.h"

namespace tidemark::metadata {
namespace {

using protocol::ErrorCode;

constexpr std::string_view metadata_version_name = "metadata.version", elr_name = "eligible.leader.replicas.version", kraft_version_name = "kraft.version";
constexpr std::string_view min_isr = "min.insync.replicas";
constexpr std::int16_t elr_from = 23;   // metadata.version

/// Why the level cannot be, in Kafka's words; nothing when it can.
std::optional<std::string> objection(const ChangeContext& context, const FeatureUpdate& update, std::int16_t metadata_version) {
    const bool upgrades = update.type == FeatureUpdateType::upgrade;
    if (!upgrades && update.type != FeatureUpdateType::safe_downgrade && update.type != FeatureUpdateType::unsafe_downgrade) return "The controller does not support the given upgrade type.";
    if (update.level < 0) return "A feature version cannot be less than 0.";
    const auto features = supported_features();
    const auto feature = std::ranges::find(features, update.name, &SupportedFeature::name);
    if (feature == features.end()) return fmt::format("Local controller {} does not support this feature.", context.node_id);
    if (update.level < feature->min || update.level > feature->max) return fmt::format("Local controller {} only supports versions {}-{}", context.node_id, feature->min, feature->max);
    const std::int16_t current = context.image.feature(update.name);
    if (update.level < current && upgrades) return "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.";
    if (update.level > current && !upgrades) return "Can't downgrade to a newer version.";
    if (update.name == kraft_version_name && update.level != current) return "The quorum of this node alone has static voters.";
    if (update.name == elr_name && update.level > 0 && metadata_version < elr_from) return fmt::format("{} could not be set to {} because it depends on {} level {}", elr_name, update.level, metadata_version_name, elr_from);
    if (update.name == metadata_version_name && loses_metadata(current, update.level)) {
        return update.type == FeatureUpdateType::unsafe_downgrade ? "Unsafe metadata downgrade is not supported in this version."
                                                                  : "Refusing to perform the requested downgrade because it might delete metadata information.";
    }
    return std::nullopt;
}

/// With eligible leader replicas, min.insync.replicas is a matter of the cluster and always set.
void settle_min_isr(const ChangeContext& context, std::vector<protocol::MetadataRecord>& records) {
    const auto record = [&](const std::string& broker, std::optional<std::string> value) {
        records.emplace_back(protocol::ConfigRecord{.resource_type = static_cast<std::int8_t>(ResourceType::broker), .resource_name = broker, .name = std::string(min_isr), .value = std::move(value)});
    };
    const auto layers = config_layers(context.image, context.node_id, context.file);
    if (!context.image.overrides(ResourceType::broker, "").contains(std::string(min_isr))) record("", std::to_string(broker_integer(layers, min_isr)));
    for (const auto& [resource, overrides] : context.image.configs) {
        if (resource.type == ResourceType::broker && !resource.name.empty() && overrides.contains(std::string(min_isr))) record(resource.name, std::nullopt);
    }
}

}  // namespace

std::span<const SupportedFeature> supported_features() {
    static constexpr std::array<SupportedFeature, 7> features{{
        {elr_name, 0, 1},
        {"group.version", 0, 1},
        {kraft_version_name, 0, 1},
        {metadata_version_name, metadata_version_min, metadata_version_max},
        {"share.version", 0, 0},
        {"streams.version", 0, 0},
        {"transaction.version", 0, 2},
    }};
    return features;
}

bool loses_metadata(std::int16_t from, std::int16_t to) {
    // The levels that brought a record or a field which an older one cannot say.
    static constexpr std::array<std::int16_t, 10> changed{8, 11, 13, 14, 15, 17, 23, 30, 32, 33};
    return std::ranges::any_of(changed, [&](std::int16_t level) { return to < level && level <= from; });
}

Plan<Outcome> plan_update_features(const ChangeContext& context, const std::vector<FeatureUpdate>& updates) {
    Plan<Outcome> plan;
    std::int16_t metadata_version = context.image.metadata_version();
    for (const auto& update : updates) {
        if (update.name == metadata_version_name) metadata_version = update.level;
    }
    for (const auto& update : updates) {
        const auto refused = objection(context, update, metadata_version);
        plan.answers.push_back(refused ? Outcome{ErrorCode::invalid_update_version, fmt::format("Invalid update version {} for feature {}. {}", update.level, update.name, *refused)} : Outcome{});
    }
    if (std::ranges::any_of(plan.answers, [](const Outcome& outcome) { return !outcome.ok(); })) return plan;
    for (const auto& update : updates) {
        if (update.level == context.image.feature(update.name)) continue;
        plan.records.emplace_back(protocol::FeatureLevelRecord{.name = update.name, .feature_level = update.level});
        if (update.name == elr_name && update.level > 0) settle_min_isr(context, plan.records);
    }
    return plan;
}

}  // namespace tidemark::metadata
