// plan for a directory that no daemon has open: the same decisions, made here.
#include <boost/json.hpp>

#include "cmd/cleaner_json.h"
#include "cmd/retention_json.h"
#include "cmd/tidemark/at_rest.h"
#include "cmd/tidemark/client.h"
#include "cmd/tidemark/plan.h"
#include "config/config.h"

namespace tidemark::tool {
namespace {

namespace json = boost::json;

json::object cleaner_of(AtRest& rest) {
    const cleaner::CleanerPool pool(rest.logs(), rest.clock(), config::cleaner_options(rest.layers()), {});
    json::array logs;
    for (const auto& planned : pool.plan()) logs.push_back(to_json(planned));
    return {{"logs", std::move(logs)}};
}

Result<json::object> retention_of(AtRest& rest, const std::string& topic) {
    const auto differences = config::retention_options(rest.layers()).differences;
    json::array logs;
    for (const auto& log : rest.logs().logs()) {
        if (!topic.empty() && log->partition().topic != topic) continue;
        TM_TRY(const auto plan, retention::plan(*log, *log->config(), rest.clock().now(), differences));
        logs.push_back(to_json(plan, true));
    }
    return json::object{{"clock_trusted", true}, {"clock_reason", ""}, {"next_run", nullptr}, {"logs", std::move(logs)}};
}

}  // namespace

int plan_at_rest(const PlanOptions& options) {
    if (!options.settings.empty()) return failed(Error{Errc::invalid_argument, "--set is for a running daemon"});
    auto rest = AtRest::open(options.log_dirs, options.config_file);
    if (!rest) return failed(rest.error());
    if (!options.retention_only) print_cleaner(cleaner_of(**rest));
    if (!options.cleaner_only) {
        const auto retention = retention_of(**rest, options.topic);
        if (!retention) return failed(retention.error());
        print_retention(*retention);
    }
    const auto closed = (*rest)->close();
    return closed ? 0 : failed(closed.error());
}

}  // namespace tidemark::tool
