#include "cmd/tidemark/at_rest.h"

#include "config/config.h"

namespace tidemark::tool {

Result<std::unique_ptr<AtRest>> AtRest::open(const std::vector<std::string>& log_dirs, const std::string& config_file) {
    io::PosixFileSystem files;
    for (const auto& path : log_dirs) {
        // Opening would make it.
        TM_TRY(const auto status, files.status(path));
        if (!status) return Error{Errc::not_found, path + ": there is no such directory"};
    }
    TM_TRY(auto settings, TopicSettings::read(files, log_dirs, config_file));
    std::unique_ptr<AtRest> rest(new AtRest(std::move(settings)));
    auto options = config::storage_options(rest->layers());
    options.log_dirs = log_dirs;
    TM_TRY(rest->logs_, storage::LogManager::open(rest->files_, rest->clock_, std::move(options), {.cluster_id = "", .node_id = rest->settings_.node_id()}));
    TM_TRYV(rest->logs_->load([&](const storage::FoundLog& found) { return rest->settings_.shared(found); }));
    return rest;
}

AtRest::~AtRest() { (void)close(); }

Result<> AtRest::close() {
    if (!logs_) return {};
    const auto logs = std::move(logs_);
    // Whoever starts next has had no new epoch in between.
    return logs->close(logs->previous_broker_epoch().value_or(-1));
}

}  // namespace tidemark::tool
