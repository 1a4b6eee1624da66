#include "cmd/tidemark/topic_settings.h"

#include "base/clock.h"
#include "config/config.h"
#include "io/memory_file_system.h"
#include "metadata/metadata_log.h"
#include "storage/checkpoint.h"
#include "storage/directory_names.h"

namespace tidemark::tool {
namespace {

/// Files of a directory, into memory under the same names.
Result<> copy_files(io::FileSystem& from, io::FileSystem& to, const io::Path& directory) {
    TM_TRYV(io::create_directories(to, directory));
    TM_TRY(const auto entries, from.list(directory));
    for (const auto& entry : entries) {
        if (entry.is_directory) continue;
        const auto path = io::join(directory, entry.name);
        TM_TRY(const auto content, io::read_whole(from, path));
        TM_TRY(const auto copy, to.open(path, io::OpenMode::create));
        TM_TRYV(copy->write(FilePosition{0}, content));
    }
    return {};
}

/// The values of a broker's file. Errc::invalid_argument lists its mistakes.
Result<metadata::ConfigMap> read_config_file(io::FileSystem& files, const std::string& path) {
    if (path.empty()) return metadata::ConfigMap{};
    TM_TRY(const auto text, io::read_whole(files, path));
    const auto loaded = config::load({.file_name = path, .file_text = std::string(as_text(text)), .overrides = {}});
    if (loaded.mistakes.empty()) return loaded.config.file;
    std::string all;
    for (const auto& mistake : loaded.mistakes) all += (all.empty() ? "" : "\n") + mistake.line();
    return Error{Errc::invalid_argument, all};
}

}  // namespace

Result<TopicSettings> TopicSettings::read(io::FileSystem& files, const std::vector<std::string>& log_dirs, const std::string& config_file) {
    TopicSettings settings;
    TM_TRY(auto file, read_config_file(files, config_file));
    for (const auto& log_dir : log_dirs) {
        const auto directory = io::join(log_dir, std::string(storage::cluster_metadata_topic) + "-0");
        TM_TRY(const auto status, files.status(directory));
        if (!status) continue;
        TM_TRY(const auto properties, storage::read_meta_properties(files, io::join(log_dir, storage::file_name::meta_properties)));
        const SystemClock clock;
        io::MemoryFileSystem copy({.clock = &clock});
        TM_TRYV(copy_files(files, copy, directory));
        const auto node_id = properties ? properties->node_id.value_or(1) : 1;
        TM_TRY(const auto opened, metadata::MetadataLog::open(copy, clock, {.directory = log_dir, .node_id = node_id, .directory_id = properties ? properties->directory_id.value_or(Uuid{}) : Uuid{}}));
        settings.image_ = opened.image;
        settings.node_id_ = node_id;
        settings.layers_ = metadata::config_layers(*settings.image_, node_id, std::move(file));
        return settings;
    }
    return Error{Errc::not_found, "there is no metadata log (" + std::string(storage::cluster_metadata_topic) + "-0) in the directories"};
}

storage::LogConfig TopicSettings::of(const std::string& topic) const {
    return metadata::log_config(layers_, image_->overrides(metadata::ResourceType::topic, topic));
}

std::shared_ptr<const storage::LogConfig> TopicSettings::shared(const storage::FoundLog& found) const {
    const auto* const topic = image_->find(found.partition.topic);
    if (topic == nullptr || image_->find(found.partition) == nullptr) return nullptr;
    if (found.topic_id && !found.topic_id->is_zero() && *found.topic_id != topic->id) return nullptr;
    return std::make_shared<const storage::LogConfig>(of(topic->name));
}

}  // namespace tidemark::tool
