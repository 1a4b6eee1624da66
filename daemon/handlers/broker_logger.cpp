#include "daemon/handlers/broker_logger.h"

#include <array>

namespace tidemark::daemon::handlers {

namespace {

constexpr std::string_view root = "root";

struct Level {
    std::string_view name;
    LogLevel level;
};
/// log4j's names: TRACE and FATAL are their neighbours here.
constexpr std::array<Level, 6> levels{{{"DEBUG", LogLevel::debug}, {"TRACE", LogLevel::debug}, {"INFO", LogLevel::info},
                                       {"WARN", LogLevel::warning}, {"ERROR", LogLevel::error}, {"FATAL", LogLevel::error}}};

std::string_view current_level() {
    for (const auto& level : levels) {
        if (log_enabled(level.level)) return level.name;
    }
    return "ERROR";
}

}  // namespace

Outcome check_broker_logger_name(const Broker& broker, const std::string& name) {
    if (name.empty()) return {ErrorCode::invalid_request, "Broker id must not be empty"};
    if (name != std::to_string(broker.node_id())) return {ErrorCode::invalid_request, fmt::format("Unexpected broker id, expected {} but received {}", broker.node_id(), name)};
    return {};
}

std::vector<metadata::DescribedConfig> describe_broker_logger() {
    metadata::DescribedConfig config;
    config.name = root;
    config.value = std::string{current_level()};
    config.source = metadata::ConfigSource::broker_logger;
    return {config};
}

Outcome alter_broker_logger(const Broker& broker, const metadata::AlterConfigs& alter, bool validate_only) {
    if (auto wrong = check_broker_logger_name(broker, alter.resource_name); !wrong.ok()) return wrong;
    std::optional<LogLevel> wanted;
    for (const auto& change : alter.changes) {
        const auto op = static_cast<metadata::AlterOp>(change.op);
        if (change.key != root) return {ErrorCode::invalid_config, "Logger " + change.key + " does not exist!"};
        if (op == metadata::AlterOp::remove) {
            wanted = LogLevel::info;
            continue;
        }
        if (op != metadata::AlterOp::set) {
            return {ErrorCode::invalid_request, fmt::format("{} operation is not allowed for the BROKER_LOGGER resource", op == metadata::AlterOp::append ? "APPEND" : "SUBTRACT")};
        }
        const auto level = std::ranges::find(levels, change.value.value_or(""), &Level::name);
        if (level == levels.end()) return {ErrorCode::invalid_config, fmt::format("Cannot set the log level of {} to {} as it is not a supported log level.", change.key, change.value.value_or(""))};
        wanted = level->level;
    }
    if (wanted && !validate_only) set_log_level(*wanted);
    return {};
}

}  // namespace tidemark::daemon::handlers
