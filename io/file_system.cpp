#include "io/file_system.h"

#include <algorithm>
#include <cerrno>

namespace tidemark::io {
namespace {

/// Without the slashes at the end; the root stays "/".
std::string_view trimmed(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    return path;
}

/// Writes `path` as a new file and puts it on disk; its name is not synced.
Result<> write_and_sync(FileSystem& files, const Path& path, Bytes content) {
    TM_TRY(auto file, files.open(path, OpenMode::create_truncated));
    TM_TRYV(file->write(FilePosition{0}, content));
    return file->sync();
}

}  // namespace

Path join(std::string_view directory, std::string_view name) {
    if (directory.empty()) return Path(name);
    Path path(directory);
    if (path.back() != '/') path += '/';
    return path += name;
}

std::string_view name_of(std::string_view path) {
    path = trimmed(path);
    if (path == "/") return {};
    return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string_view parent_of(std::string_view path) {
    path = trimmed(path);
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) return ".";
    return slash == 0 ? path.substr(0, 1) : trimmed(path.substr(0, slash));
}

std::vector<std::string> parts_of(std::string_view path) {
    std::vector<std::string> parts;
    while (!path.empty()) {
        const auto slash = std::min(path.find('/'), path.size());
        const auto part = path.substr(0, slash);
        if (!part.empty() && part != ".") parts.emplace_back(part);
        path.remove_prefix(std::min(slash + 1, path.size()));
    }
    return parts;
}

Error system_error(int error_number, std::string what) {
    const auto code = [&] {
        switch (error_number) {
            case ENOENT:
            case ENOTDIR: return Errc::not_found;
            case EEXIST: return Errc::already_exists;
            case ENOSPC:
            case EDQUOT: return Errc::no_space;
            default: return Errc::io;
        }
    }();
    return Error{code, std::move(what), std::error_code(error_number, std::generic_category())};
}

Result<> create_directories(FileSystem& files, const Path& path) {
    TM_TRY(const auto status, files.status(path));
    if (status.has_value()) return status->is_directory ? Result<>{} : system_error(EEXIST, "create directory " + path);
    const Path parent(parent_of(path));
    if (parent == path) return system_error(ENOENT, "create directory " + path);
    TM_TRYV(create_directories(files, parent));
    TM_TRYV(files.create_directory(path));
    return files.sync_directory(parent);
}

Result<std::vector<std::byte>> read_whole(FileSystem& files, const Path& path, std::int64_t bytes_max) {
    TM_TRY(const auto file, files.open(path, OpenMode::read));
    TM_TRY(const auto size, file->size());
    if (size > bytes_max) return Error{Errc::too_large, path + ": " + std::to_string(size) + " bytes, at most " + std::to_string(bytes_max) + " are read"};
    std::vector<std::byte> content(static_cast<std::size_t>(size));
    TM_TRY(const auto got, file->read(FilePosition{0}, content));
    content.resize(got);
    return content;
}

Result<> replace_content(FileSystem& files, const Path& path, Bytes content) {
    const Path temporary = path + ".tmp";
    auto written = write_and_sync(files, temporary, content);
    if (!written) {
        static_cast<void>(files.remove(temporary));  // the first error counts; a leftover .tmp is overwritten next time
        return written;
    }
    TM_TRYV(files.rename(temporary, path));
    if (auto synced = files.sync_directory(Path(parent_of(path))); !synced) {
        auto error = std::move(synced).error();
        error.code = Errc::io;  // a full disk, too: a sync that failed must not be tried again
        return error;
    }
    return {};
}

Result<> remove_all(FileSystem& files, const Path& directory) {
    // unlink first: it takes a symbolic link itself, and says when the name is a directory.
    auto removed = files.remove(directory);
    if (removed || removed.error().code == Errc::not_found) return {};
    if (removed.error().os != std::errc::is_a_directory) return removed;
    auto entries = files.list(directory);
    if (!entries) return entries.error().code == Errc::not_found ? Result<>{} : entries.error();
    for (const auto& entry : *entries) TM_TRYV(remove_all(files, join(directory, entry.name)));
    auto gone = files.remove_directory(directory);
    if (!gone && gone.error().code == Errc::not_found) return {};
    return gone;
}

}  // namespace tidemark::io
