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
    bool json = false;                   ///< one object a line
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

struct AuditOptions {
    std::vector<std::string> paths;      ///< log directories, all of a broker's; of the trail: it or its directory
    std::string topic;                   ///< "": all
    std::vector<std::string> keys;
    std::string key_file;                ///< one key a line
    std::string config_file;             ///< the broker's, for its defaults; "": none
    std::optional<std::int64_t> grace_ms;   ///< beyond a deadline before it is missed; nothing: two backoffs and five seconds
    bool json = false;
    bool trail = false;                  ///< show the audit trail instead
};
/// Where values of keys still are, what removes them and by when. Reads only; a daemon may run. 1: something is past its deadline.
int audit(const AuditOptions&);

struct RepairToolOptions {
    std::vector<std::string> paths;      ///< log directories that no daemon uses
    bool restore = false, drop = false;  ///< neither: only says what there is
};
/// D21: shows what starts kept of damaged logs, and decides what becomes of it.
int repair(const RepairToolOptions&);

struct DaemonAddress {
    std::string http = "127.0.0.1:9404";
    std::string admin_socket = "/run/tidemark/admin.socket";
};

struct PlanOptions {
    DaemonAddress daemon;
    std::vector<std::string> log_dirs;   ///< of a directory at rest, instead of a daemon
    std::string config_file;             ///< the broker's, for that; "": its defaults
    bool cleaner_only = false, retention_only = false;
    std::string topic;                                              ///< retention of this one only
    std::vector<std::pair<std::string, std::string>> settings;      ///< tried out instead of what holds
};
/// What a running daemon will clean and delete next, and why; or would, when it ran over a directory at rest.
int plan(const PlanOptions&);
/// Its second part.
int plan_retention(const PlanOptions&);

struct CleanOptions {
    DaemonAddress daemon;
    std::vector<std::string> log_dirs;   ///< of a directory at rest, instead of a daemon
    std::string config_file;             ///< the broker's, for that; "": its defaults
    std::string topic;
    std::optional<std::int32_t> partition;   ///< nothing: all
    bool roll = false;                   ///< the active segment, too
    bool wait = false;                   ///< until it is done, with progress
};
/// Cleans logs whatever their dirty ratio: has a running daemon do it, or does it, under the daemon's lock.
int clean(const CleanOptions&);

struct RepairRequest {
    DaemonAddress daemon;
    std::string topic;
    std::int32_t partition = 0;
    bool restore = false;
};
/// Has a running daemon repair a damaged log.
int repair_in_daemon(const RepairRequest&);

/// Says who a running daemon is and how it does.
int status(const DaemonAddress&);

/// D23: tells a running daemon that the wall clock is right.
int confirm_clock(const DaemonAddress&);

}  // namespace tidemark::tool
