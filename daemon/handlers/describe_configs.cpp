// DescribeConfigs (32), versions 1 to 4, and ListConfigResources (74), versions 0 to 1: wire-behaviour 11. What the values
// are is metadata's to say (effective_config.h).
#include "protocol/messages/describe_configs_request.h"
#include "protocol/messages/describe_configs_response.h"
#include "protocol/messages/list_config_resources_request.h"
#include "protocol/messages/list_config_resources_response.h"

#include <charconv>
#include <set>

#include "daemon/handlers/broker_logger.h"
#include "daemon/handlers/common.h"
#include "daemon/handlers/handlers.h"
#include "metadata/effective_config.h"

namespace tidemark::daemon::handlers {

namespace {

using metadata::DescribedConfig;
using metadata::ResourceType;
using protocol::describe_configs_response::DescribeConfigsResult;

struct Described {
    Outcome outcome;
    std::vector<DescribedConfig> configs;
};

Described refuse(ErrorCode code, std::string text) { return {.outcome = {code, std::move(text)}, .configs = {}}; }

Described describe_broker_resource(const Broker& broker, const metadata::ConfigLayers& layers, const std::string& name) {
    if (name.empty()) return {.outcome = {}, .configs = metadata::describe_cluster_default(layers)};
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc{} || end != name.data() + name.size()) return refuse(ErrorCode::invalid_request, "Broker id must be an integer, but it is: " + name);
    if (id != broker.node_id()) {
        return refuse(ErrorCode::invalid_request, fmt::format("Unexpected broker id, expected {} or empty string, but received {}", broker.node_id(), name));
    }
    return {.outcome = {}, .configs = metadata::describe_broker(layers)};
}

Described describe(const Broker& broker, const metadata::Image& image, const metadata::ConfigLayers& layers, std::int8_t type, const std::string& name) {
    switch (static_cast<ResourceType>(type)) {
        case ResourceType::topic:
            if (!is_legal_topic_name(name)) return refuse(ErrorCode::invalid_topic_exception, illegal_topic_name_text(name));
            if (!image.find(name)) return refuse(ErrorCode::unknown_topic_or_partition, std::string{unknown_partition_text});
            return {.outcome = {}, .configs = metadata::describe_topic(layers, image.overrides(ResourceType::topic, name))};
        case ResourceType::broker: return describe_broker_resource(broker, layers, name);
        case ResourceType::broker_logger:
            if (const auto wrong = check_broker_logger_name(broker, name); !wrong.ok()) return {.outcome = wrong, .configs = {}};
            return {.outcome = {}, .configs = describe_broker_logger()};
        case ResourceType::client_metrics:
            if (name.empty()) return refuse(ErrorCode::invalid_request, "Client metrics subscription name must not be empty");
            return {.outcome = {}, .configs = metadata::describe_client_metrics(image.overrides(ResourceType::client_metrics, name))};
        case ResourceType::group:
            if (name.empty()) return refuse(ErrorCode::invalid_request, "Group name must not be empty");
            return {.outcome = {}, .configs = metadata::describe_group(layers, image.overrides(ResourceType::group, name))};
    }
    return refuse(ErrorCode::invalid_request, "Unsupported resource type: " + std::to_string(type));
}

protocol::describe_configs_response::DescribeConfigsResourceResult to_entry(DescribedConfig config, bool with_synonyms, bool with_documentation) {
    protocol::describe_configs_response::DescribeConfigsResourceResult entry{.name = std::move(config.name),
                                                                             .value = std::move(config.value),
                                                                             .read_only = config.read_only,
                                                                             .config_source = static_cast<std::int8_t>(config.source),
                                                                             .is_sensitive = config.sensitive};
    entry.config_type = config.type_known ? static_cast<std::int8_t>(config.type) : std::int8_t{0};
    entry.documentation = with_documentation ? std::optional<std::string>{config.documentation} : std::nullopt;
    if (!with_synonyms) return entry;
    for (auto& synonym : config.synonyms) {
        entry.synonyms.push_back({.name = std::move(synonym.name), .value = std::move(synonym.value), .source = static_cast<std::int8_t>(synonym.source)});
    }
    return entry;
}

}  // namespace

protocol::DescribeConfigsResponse describe_configs(Broker& broker, Call& call, protocol::DescribeConfigsRequest& request) {
    const auto image = broker.image();
    const auto layers = metadata::config_layers(*image, broker.node_id(), *broker.file_config());
    protocol::DescribeConfigsResponse response;
    for (const auto& resource : request.resources) {
        auto described = describe(broker, *image, layers, resource.resource_type, resource.resource_name);
        DescribeConfigsResult result{.error_code = described.outcome.code,
                                     .error_message = described.outcome.message.value_or(""),
                                     .resource_type = resource.resource_type,
                                     .resource_name = resource.resource_name};
        call.count(described.outcome.code);
        // Null and an empty list both ask for all; keys that do not exist are left out.
        const auto& keys = resource.configuration_keys;
        const std::set<std::string_view> wanted = keys ? std::set<std::string_view>(keys->begin(), keys->end()) : std::set<std::string_view>{};
        for (auto& config : described.configs) {
            if (wanted.empty() || wanted.contains(config.name)) result.configs.push_back(to_entry(std::move(config), request.include_synonyms, request.include_documentation));
        }
        response.results.push_back(std::move(result));
    }
    return response;
}

protocol::ListConfigResourcesResponse list_config_resources(Broker& broker, Call& call, protocol::ListConfigResourcesRequest& request) {
    const auto image = broker.image();
    protocol::ListConfigResourcesResponse response;
    std::vector<std::int8_t> types = request.resource_types;
    if (call.version() == 0) types = {static_cast<std::int8_t>(ResourceType::client_metrics)};
    else if (types.empty()) types = {32, 16, 8, 4, 2};
    const std::set<std::int8_t> wanted(types.begin(), types.end());
    const auto add_configured = [&](ResourceType type) {
        for (const auto& [resource, configs] : image->configs) {
            if (resource.type == type && !configs.empty()) response.config_resources.push_back({.resource_name = resource.name, .resource_type = static_cast<std::int8_t>(type)});
        }
    };
    for (const auto type : wanted) {
        switch (static_cast<ResourceType>(type)) {
            case ResourceType::topic:
                for (const auto& [name, topic] : image->topics) response.config_resources.push_back({.resource_name = name, .resource_type = type});
                break;
            case ResourceType::broker:
            case ResourceType::broker_logger:
                response.config_resources.push_back({.resource_name = std::to_string(broker.node_id()), .resource_type = type});
                break;
            case ResourceType::client_metrics:
            case ResourceType::group: add_configured(static_cast<ResourceType>(type)); break;
            default:
                call.count(ErrorCode::unsupported_version);
                return {.error_code = ErrorCode::unsupported_version};
        }
    }
    return response;
}

}  // namespace tidemark::daemon::handlers
