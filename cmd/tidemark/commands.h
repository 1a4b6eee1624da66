/// The operator's tool: one function per subcommand, each in a file of its own. They print to standard output, complain
/// to standard error, and return the exit status: 0 all is well, 1 something is wrong with what was looked at, 2 a mistake
/// of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace tidemark::tool {

struct DumpOptions {
    std::vector<std::string> paths;      ///< files of any kind, or directories whose files are all shown
    bool records = false;                ///< every record, not only the batches
    bool values = false;                 ///< their keys and values too
};
/// What is in logs, indexes, producer snapshots, checkpoints and the metadata log. Reads only.
int dump(const DumpOptions&);

struct VerifyToolOptions {
    std::vector<std::string> paths;      ///< log directories or partitions' directories
    bool in_use = false;                 ///< a daemon has them open, or was not stopped cleanly
    bool records = true;                 ///< every record, not only the batches
};
/// Whether directories are what they claim to be. Reads only, and everything.
int verify(const VerifyToolOptions&);

struct DaemonAddress {
    std::string http = "127.0.0.1:9404";
    std::string admin_socket = "/run/tidemark/admin.socket";
};

struct PlanOptions {
    DaemonAddress daemon;
    bool cleaner_only = false, retention_only = false;
    std::string topic;                                              ///< retention of this one only
    std::vector<std::pair<std::string, std::string>> settings;      ///< tried out instead of what holds
};
/// What a running daemon will clean and delete next, and why.
int plan(const PlanOptions&);
/// Its second part.
int plan_retention(const PlanOptions&);

struct CleanOptions {
    DaemonAddress daemon;
    std::string topic;
    std::int32_t partition = 0;
};
/// Asks a running daemon to clean a log at its next round.
int clean(const CleanOptions&);

/// Says who a running daemon is and how it does.
int status(const DaemonAddress&);

/// D23: tells a running daemon that the wall clock is right.
int confirm_clock(const DaemonAddress&);

}  // namespace tidemark::tool
