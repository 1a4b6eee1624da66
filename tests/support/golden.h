/// What Apache Kafka wrote, for tests to read: it lies beside the project, in $TIDEMARK_SHARED or ../shared.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "io/file_system.h"

namespace tidemark::test {

/// One of its directories, if it is there: a test without its data skips itself.
inline std::optional<std::filesystem::path> golden_directory(const std::filesystem::path& name) {
    const char* const named = std::getenv("TIDEMARK_SHARED");
    const auto directory = std::filesystem::path{named != nullptr ? named : "../shared"} / name;   // tests run in the source root
    return std::filesystem::is_directory(directory) ? std::optional{directory} : std::nullopt;
}
inline constexpr auto no_golden_data = "NO GOLDEN DATA: set TIDEMARK_SHARED";

inline std::string content_of(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>(file), {}};
}

/// A directory with all below it.
inline void copy_to_memory(const std::filesystem::path& from, io::FileSystem& files, const io::Path& to) {
    ASSERT_TRUE(io::create_directories(files, to).has_value());
    for (const auto& entry : std::filesystem::directory_iterator(from)) {
        const auto path = io::join(to, entry.path().filename().string());
        if (entry.is_directory()) {
            copy_to_memory(entry.path(), files, path);
            continue;
        }
        auto file = files.open(path, io::OpenMode::create_new);
        ASSERT_TRUE(file.has_value());
        ASSERT_TRUE((*file)->write(FilePosition{0}, as_bytes(content_of(entry.path()))).has_value());
    }
}

}  // namespace tidemark::test
