#include <boost/json.hpp>
#include <cstdio>

#include <fmt/format.h>

#include "cmd/tidemark/client.h"
#include "cmd/tidemark/commands.h"
#include "cmd/tidemark/plan.h"

namespace tidemark::tool {

namespace json = boost::json;

int plan(const PlanOptions& options) {
    if (!options.log_dirs.empty()) return plan_at_rest(options);
    if (!options.retention_only) {
        const auto cleaner = get_tcp(options.daemon.http, "/api/v1/cleaner");
        if (!cleaner) return failed(cleaner.error());
        print_cleaner(cleaner->as_object());
    }
    return options.cleaner_only ? 0 : plan_retention(options);
}

int repair_in_daemon(const RepairRequest& request) {
    const auto answer = ask_unix(request.daemon.admin_socket, "POST",
                                 fmt::format("/v1/repair?topic={}&partition={}&how={}", encoded(request.topic), request.partition, request.restore ? "restore" : "drop"));
    if (!answer) return failed(answer.error());
    const auto& done = answer->as_object();
    std::printf("%s-%d: %s batches with %s records were put back, the log ends at %s\n", request.topic.c_str(), request.partition, member_text(done, "batches").c_str(),
                member_text(done, "records").c_str(), member_text(done, "log_end_offset").c_str());
    return 0;
}

int status(const DaemonAddress& daemon) {
    const auto answer = ask_unix(daemon.admin_socket, "GET", "/v1/status");
    if (!answer) return failed(answer.error());
    const auto& broker = answer->as_object();
    std::printf("tidemarkd %s is %s: node %s of cluster %s\n", member_text(broker, "version").c_str(), member_text(broker, "state").c_str(), member_text(broker, "node_id").c_str(), member_text(broker, "cluster_id").c_str());
    for (const auto& entry : broker.at("log_directories").as_array()) {
        const auto& directory = entry.as_object();
        std::printf("  %s: %s logs, %s bytes available%s\n", member_text(directory, "path").c_str(), member_text(directory, "logs").c_str(), member_text(directory, "available_bytes").c_str(), directory.at("offline").as_bool() ? ", OFFLINE" : "");
    }
    return member_text(broker, "state") == "serving" ? 0 : 1;
}

int confirm_clock(const DaemonAddress& daemon) {
    const auto answer = ask_unix(daemon.admin_socket, "POST", "/v1/clock/confirm");
    if (!answer) return failed(answer.error());
    std::puts("the clock is trusted");
    return 0;
}

}  // namespace tidemark::tool
