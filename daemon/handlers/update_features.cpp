// UpdateFeatures (57), versions 0 to 2: wire-behaviour 13.
#include "protocol/messages/update_features_request.h"
#include "protocol/messages/update_features_response.h"

#include <algorithm>

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

protocol::UpdateFeaturesResponse update_features(Broker& broker, Call& call, protocol::UpdateFeaturesRequest& request) {
    using metadata::FeatureUpdateType;
    std::vector<metadata::FeatureUpdate> updates;
    for (const auto& update : request.feature_updates) {
        const auto type = call.version() > 0 ? static_cast<FeatureUpdateType>(update.upgrade_type) : update.allow_downgrade ? FeatureUpdateType::safe_downgrade : FeatureUpdateType::upgrade;
        updates.push_back({.name = update.feature, .level = update.max_version_level, .type = type});
    }
    const auto outcomes = broker.controller().update_features(updates, request.validate_only);

    protocol::UpdateFeaturesResponse response;
    response.error_message.reset();
    if (const auto refused = std::ranges::find_if_not(outcomes, &Outcome::ok); refused != outcomes.end()) {
        response.error_code = refused->code;
        response.error_message = "The update failed for all features since the following feature had an error: " + refused->message.value_or("");
        call.count(response.error_code);
        return response;
    }
    for (const auto& update : updates) response.results.push_back({.feature = update.name, .error_code = ErrorCode::none, .error_message = "NONE"});
    return response;
}

}  // namespace tidemark::daemon::handlers
