// ApiVersions (18), versions 0 to 5: wire-behaviour 2. Any other version is answered in version 0 (KIP-511).
#include "protocol/messages/api_versions_request.h"
#include "protocol/messages/api_versions_response.h"

#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "daemon/served_api.h"
#include "metadata/features.h"

namespace tidemark::daemon::handlers {

namespace {

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// KIP-511: letters and digits, inside also '-' and '.'.
bool is_software_name(std::string_view text) {
    return !text.empty() && is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
           std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; });
}

/// What is wrong with the request, if anything (KIP-1242 for the cluster and node that a client of version 5 expects).
ErrorCode check(const Broker& broker, const protocol::ApiVersionsRequest& request, std::int16_t version) {
    if (version >= 3 && (!is_software_name(request.client_software_name) || !is_software_name(request.client_software_version))) return ErrorCode::invalid_request;
    if (version < 5) return ErrorCode::none;
    if (request.cluster_id.has_value() != (request.node_id != -1)) return ErrorCode::invalid_request;
    if (request.cluster_id && (*request.cluster_id != broker.cluster_id() || request.node_id != broker.node_id())) return ErrorCode::rebootstrap_required;
    return ErrorCode::none;
}

void add_features(protocol::ApiVersionsResponse& response, const metadata::Image& image, std::int16_t version) {
    for (const auto& feature : metadata::supported_features()) {
        // Clients of version 3 take a minimum of 0 for a broken answer (KAFKA-17011).
        if (version >= 4 || feature.min != 0) response.supported_features.push_back({.name = std::string{feature.name}, .min_version = feature.min, .max_version = feature.max});
    }
    for (const auto& [name, level] : image.features) {
        if (level != 0) response.finalized_features.push_back({.name = name, .max_version_level = level, .min_version_level = level});
    }
    response.finalized_features_epoch = image.offset.value;
}

}  // namespace

void api_versions(Broker& broker, const std::shared_ptr<Call>& call) {
    protocol::ApiVersionsResponse response;
    const auto* api = call->api().api;
    const auto advertise = [&](const protocol::Api& served) {
        const auto range = served.advertised();
        response.api_keys.push_back({.api_key = static_cast<std::int16_t>(served.key), .min_version = range.min, .max_version = range.max});
    };
    if (!api->versions.contains(call->version())) {
        response.error_code = ErrorCode::unsupported_version;
        advertise(*api);
        call->count(response.error_code);
        return call->finish_version(response, 0);
    }
    const auto request = call->parse<protocol::ApiVersionsRequest>();
    if (!request) return;
    response.error_code = check(broker, *request, call->version());
    call->count(response.error_code);
    if (response.error_code == ErrorCode::none) {
        for (const auto& served : served_apis()) advertise(*served.api);
        add_features(response, *broker.image(), call->version());
        if (auto& peer = call->peer(); call->version() >= 3 && peer.software_name.empty()) {
            peer.software_name = request->client_software_name;
            peer.software_version = request->client_software_version;
            broker.stats().software_connected(peer.software_name, peer.software_version);
        }
    }
    call->finish(response);
}

}  // namespace tidemark::daemon::handlers
