/// A data directory that no daemon has open: locked as a daemon does, its logs loaded with the settings that its metadata
/// log holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cmd/tidemark/topic_settings.h"
#include "io/posix_file_system.h"
#include "storage/log_manager.h"

namespace tidemark::tool {

/// Life: open(), then close(), which leaves the directory as a clean stop does; after a crash opening has repaired it, as a
///       start would have. Delayed deletes that are due run at close().
class AtRest {
public:
    /// Errc::locked: a daemon has it open. `config_file`: the broker's, for its defaults; empty for none.
    static Result<std::unique_ptr<AtRest>> open(const std::vector<std::string>& log_dirs, const std::string& config_file);
    ~AtRest();

    storage::LogManager& logs() { return *logs_; }
    const Clock& clock() const { return clock_; }
    const metadata::ConfigLayers& layers() const { return settings_.layers(); }
    Result<> close();

private:
    explicit AtRest(TopicSettings settings) : settings_(std::move(settings)) {}

    io::PosixFileSystem files_;
    SystemClock clock_;
    TopicSettings settings_;
    std::unique_ptr<storage::LogManager> logs_;
};

}  // namespace tidemark::tool
