#include "cmd/tidemarkd/logging.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include <fmt/format.h>

namespace tidemark {
namespace {

constexpr const char* pattern_with_time = "%Y-%m-%dT%H:%M:%S.%e%z %-7l %v";

/// The `<6>` that sd-daemon(3) reads a line's priority from.
class JournalPriority final : public spdlog::custom_flag_formatter {
public:
    void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
        const char* priority = "<6>";
        if (message.level >= spdlog::level::err) priority = "<3>";
        else if (message.level == spdlog::level::warn) priority = "<4>";
        else if (message.level <= spdlog::level::debug) priority = "<7>";
        to.append(priority, priority + 3);
    }
    std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JournalPriority>(); }
};

bool standard_error_is_the_journal() {
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat status {};
    if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
    return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

spdlog::level::level_enum level_of(const std::string& level) {
    if (level == "debug") return spdlog::level::debug;
    if (level == "warning") return spdlog::level::warn;
    if (level == "error") return spdlog::level::err;
    return spdlog::level::info;
}

}  // namespace

Result<> set_log_target(const LogTarget& target) {
    std::shared_ptr<spdlog::logger> logger;
    try {
        if (!target.file.empty()) {
            auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(target.file);
            sink->set_pattern(pattern_with_time);
            logger = std::make_shared<spdlog::logger>("tidemarkd", std::move(sink));
        } else {
            auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
            if (standard_error_is_the_journal()) {
                auto formatter = std::make_unique<spdlog::pattern_formatter>();
                formatter->add_flag<JournalPriority>('*').set_pattern("%*%v");
                sink->set_formatter(std::move(formatter));
            } else {
                sink->set_pattern(pattern_with_time);
            }
            logger = std::make_shared<spdlog::logger>("tidemarkd", std::move(sink));
        }
    } catch (const spdlog::spdlog_ex& e) {
        return Error{Errc::io, "logging.file " + target.file + ": " + e.what()};
    }
    logger->set_level(level_of(target.level));
    logger->flush_on(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
    return {};
}

}  // namespace tidemark
