/// What a data directory says of its topics. Nothing on the disk changes and no lock is taken: a daemon may be at work there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "metadata/effective_config.h"
#include "storage/log_manager.h"

namespace tidemark::tool {

class TopicSettings {
public:
    /// From the metadata log in one of `log_dirs` and the broker's file; `config_file` empty: the defaults.
    static Result<TopicSettings> read(io::FileSystem&, const std::vector<std::string>& log_dirs, const std::string& config_file);

    /// Those of a topic, or of any topic without settings of its own when it is not known.
    storage::LogConfig of(const std::string& topic) const;
    /// Those of a directory that was found; nothing when no topic claims it.
    std::shared_ptr<const storage::LogConfig> shared(const storage::FoundLog&) const;
    const metadata::ConfigLayers& layers() const { return layers_; }
    std::int32_t node_id() const { return node_id_; }

private:
    std::shared_ptr<const metadata::Image> image_;
    metadata::ConfigLayers layers_;
    std::int32_t node_id_ = 1;
};

}  // namespace tidemark::tool
