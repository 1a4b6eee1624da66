/// What the tests of io share: a directory that is gone afterwards, and short ways to write and read.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "io/file_system.h"
#include "io/posix_file_system.h"

namespace tidemark::io {

/// A new empty directory below $TMPDIR, with all that is in it removed at the end.
class TemporaryDirectory {
public:
    TemporaryDirectory() {
        const char* base = std::getenv("TMPDIR");
        path_ = join(base != nullptr ? base : "/tmp", "tidemark-io-XXXXXX");
        if (::mkdtemp(path_.data()) == nullptr) std::abort();
    }
    ~TemporaryDirectory() {
        PosixFileSystem files;
        EXPECT_TRUE(remove_all(files, path_)) << path_;
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const Path& path() const { return path_; }
private:
    Path path_;
};

/// "ok", or what went wrong: compares well and prints well.
template <class T>
std::string outcome(const Result<T>& result) {
    return result ? "ok" : to_string(result.error().code);
}

/// The text of a file, or nothing when there is no such file.
inline std::optional<std::string> content(FileSystem& files, const Path& path) {
    auto bytes = read_whole(files, path);
    if (!bytes) {
        EXPECT_EQ(bytes.error().code, Errc::not_found) << bytes.error().message();
        return std::nullopt;
    }
    return std::string(as_text(*bytes));
}

/// Puts `text` at `at`, into a new file when there is none.
inline Result<> put(FileSystem& files, const Path& path, std::string_view text, std::int64_t at = 0) {
    TM_TRY(const auto file, files.open(path, OpenMode::create));
    return file->write(FilePosition{at}, as_bytes(text));
}

inline Result<> sync(FileSystem& files, const Path& path) {
    TM_TRY(const auto file, files.open(path, OpenMode::read_write));
    return file->sync();
}

/// "a b/" : names in order, a slash after directories.
inline std::string names(const FileSystem& files, const Path& directory) {
    const auto entries = files.list(directory);
    if (!entries) return entries.error().message();
    std::string text;
    for (const auto& entry : *entries) text += (text.empty() ? "" : " ") + entry.name + (entry.is_directory ? "/" : "");
    return text;
}

}  // namespace tidemark::io
