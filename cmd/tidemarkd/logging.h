/// Where log lines go: a file, the journal, or the terminal. Sets spdlog's default logger, which base/log.h writes to.
#pragma once

#include <string>

#include "base/result.h"

namespace tidemark {

struct LogTarget {
    std::string file;                    ///< "": standard error
    std::string level = "info";          ///< debug, info, warning, error
};

/// Standard error gets a time in front of each line, unless systemd reads it into the journal (JOURNAL_STREAM names the
/// very descriptor): then a priority that the journal understands. May be called again: the file is opened anew.
Result<> set_log_target(const LogTarget&);

}  // namespace tidemark
