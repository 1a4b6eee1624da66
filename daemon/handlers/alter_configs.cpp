// AlterConfigs (33), versions 0 to 2, and IncrementalAlterConfigs (44), versions 0 to 1: wire-behaviour 11. The controller
// decides and stores; a resource that is named twice is refused before it is asked, the log's levels stay here.
#include "protocol/messages/alter_configs_request.h"
#include "protocol/messages/alter_configs_response.h"
#include "protocol/messages/incremental_alter_configs_request.h"
#include "protocol/messages/incremental_alter_configs_response.h"

#include <map>

#include "daemon/handlers/broker_logger.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"

namespace tidemark::daemon::handlers {

namespace {

std::vector<Outcome> alter(Broker& broker, const std::vector<metadata::AlterConfigs>& changes, bool validate_only) {
    std::map<std::pair<std::int8_t, std::string>, int> times;
    for (const auto& change : changes) ++times[{change.resource_type, change.resource_name}];

    std::vector<Outcome> outcomes(changes.size());
    std::vector<metadata::AlterConfigs> wanted;
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const auto& change = changes[i];
        if (times[{change.resource_type, change.resource_name}] > 1) {
            outcomes[i].code = ErrorCode::invalid_request;
            outcomes[i].message = "Each resource must appear at most once.";
        } else if (static_cast<metadata::ResourceType>(change.resource_type) == metadata::ResourceType::broker_logger) {
            outcomes[i] = alter_broker_logger(broker, change, validate_only);
        } else {
            wanted.push_back(change);
            indexes.push_back(i);
        }
    }
    if (wanted.empty()) return outcomes;
    const auto altered = broker.controller().alter_configs(wanted, validate_only);
    for (std::size_t i = 0; i < altered.size(); ++i) outcomes[indexes[i]] = altered[i];
    return outcomes;
}

template <class Response>
Response to_response(Call& call, const std::vector<metadata::AlterConfigs>& changes, const std::vector<Outcome>& outcomes) {
    Response response;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        response.responses.push_back({.error_code = outcomes[i].code, .error_message = outcomes[i].message, .resource_type = changes[i].resource_type, .resource_name = changes[i].resource_name});
        call.count(outcomes[i].code);
    }
    return response;
}

}  // namespace

protocol::AlterConfigsResponse alter_configs(Broker& broker, Call& call, protocol::AlterConfigsRequest& request) {
    std::vector<metadata::AlterConfigs> changes;
    for (auto& resource : request.resources) {
        auto& change = changes.emplace_back(metadata::AlterConfigs{.resource_type = resource.resource_type, .resource_name = resource.resource_name, .changes = {}, .replace_all = true});
        for (auto& config : resource.configs) change.changes.push_back({.key = config.name, .op = static_cast<std::int8_t>(metadata::AlterOp::set), .value = config.value});
    }
    return to_response<protocol::AlterConfigsResponse>(call, changes, alter(broker, changes, request.validate_only));
}

protocol::IncrementalAlterConfigsResponse incremental_alter_configs(Broker& broker, Call& call, protocol::IncrementalAlterConfigsRequest& request) {
    std::vector<metadata::AlterConfigs> changes;
    for (auto& resource : request.resources) {
        auto& change = changes.emplace_back(metadata::AlterConfigs{.resource_type = resource.resource_type, .resource_name = resource.resource_name, .changes = {}, .replace_all = false});
        for (auto& config : resource.configs) change.changes.push_back({.key = config.name, .op = config.config_operation, .value = config.value});
    }
    return to_response<protocol::IncrementalAlterConfigsResponse>(call, changes, alter(broker, changes, request.validate_only));
}

}  // namespace tidemark::daemon::handlers
