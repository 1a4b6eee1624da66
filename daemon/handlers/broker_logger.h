/// Resource type 8: the levels of this program's log, which last until it ends. There is one logger, "root".
#pragma once

#include <string>
#include <vector>

#include "daemon/handlers/common.h"
#include "metadata/effective_config.h"

namespace tidemark::daemon::handlers {

/// The resource's name is this node's id.
Outcome check_broker_logger_name(const Broker&, const std::string& name);
std::vector<metadata::DescribedConfig> describe_broker_logger();
/// All changes or none.
Outcome alter_broker_logger(const Broker&, const metadata::AlterConfigs&, bool validate_only);

}  // namespace tidemark::daemon::handlers
