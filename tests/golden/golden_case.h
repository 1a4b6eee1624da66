/// One golden case: a log directory before and after each action, as Apache Kafka's own classes left it, and what they
/// decided on the way. The format is the oracle's (its README.md).
#pragma once

#include <boost/json.hpp>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cleaner/options.h"
#include "io/memory_file_system.h"
#include "retention/options.h"
#include "storage/checkpoint.h"
#include "storage/log_config.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"

namespace tidemark::golden {

namespace json = boost::json;

template <class T>
T must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message());
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// What differs, one line each; empty is what everybody wants.
class Differences {
public:
    void add(std::string line) { lines_.push_back(std::move(line)); }
    template <class A, class B>
    void expect_equal(const char* what, const A& ours, const B& kafkas) {
        if (!(ours == kafkas)) add(fmt::format("{}: {}, Kafka has {}", what, ours, kafkas));
    }
    void fail(const std::string& what, const Error& error) { add(what + ": " + error.message()); }
    const std::vector<std::string>& lines() const { return lines_; }
private:
    std::vector<std::string> lines_;
};

/// The switches of docs/differences.md, of all folders.
struct Switches {
    storage::Differences storage;
    cleaner::Differences cleaner;
    retention::Differences retention;

    static Switches kafkas() { return {storage::Differences::none(), cleaner::Differences::none(), retention::Differences::none()}; }
    static Switches ours() { return {}; }
};

class Case {
public:
    /// Throws std::exception on a file that is not there or not JSON: the case itself is broken then. With an `expectation`,
    /// the project's own file (docs: differences/README.md), its values take the place of what Kafka did.
    explicit Case(std::string path, const Switches& = Switches::kafkas(), const std::string& expectation = {});

    const std::string& path() const { return path_; }
    std::string name() const;
    const Switches& switches() const { return switches_; }
    TopicPartition partition() const;
    const json::array& actions() const { return expect_.at("actions").as_array(); }
    /// What became of the script's `build`, and the script; nothing when there is none to be played.
    const json::object& build() const { return expect_.at("build").as_object(); }
    const json::object& script() const { return script_; }
    /// The directory that the action with this index begins with: "before", or what the last one before it left.
    std::string directory_before(std::size_t action) const;
    /// Settings of an action: the case's, its own over them, and the expectation's over both.
    std::map<std::string, std::string> settings(const json::object& args) const;
    /// File times of a stored directory.
    std::map<std::string, std::int64_t> modified(const std::string& directory) const;
    /// What the expectation says of the files that a step ("build", "1", …) leaves; nothing for most.
    const json::object* own_files(const std::string& step) const;

private:
    std::string path_;
    Switches switches_;
    json::object expect_;
    json::object script_;
    json::object mtimes_;
    json::object own_;
};

/// Topic settings as a log's; unknown ones are an exception, so that no case is played with half its settings.
storage::LogConfig log_config(const std::map<std::string, std::string>& settings);
std::int64_t number_setting(const std::map<std::string, std::string>& settings, const char* key, std::int64_t otherwise);

/// A log directory in memory with one partition, and the log that is open there.
class OpenCase {
public:
    struct How {
        bool clean = true;
        std::optional<Offset> high_watermark = {};   ///< instead of the checkpointed one
        bool producers_now = false;
    };
    /// Nothing but directories.
    OpenCase(const Case&, std::map<std::string, std::string> settings, Timestamp now);
    /// A stored directory, opened as after an orderly stop. Throws when that fails.
    OpenCase(const Case&, const std::string& directory, std::map<std::string, std::string> settings, Timestamp now, std::optional<Offset> high_watermark);

    ManualClock clock;
    io::MemoryFileSystem files;
    std::map<std::string, std::string> settings;
    std::unique_ptr<storage::LogDirectory> directory;
    std::shared_ptr<storage::Log> log;

    const TopicPartition& partition() const { return partition_; }
    const Switches& switches() const { return switches_; }
    io::Path path() const { return io::join("/logs", partition_.text()); }
    void copy(const Case&, const std::string& stored);
    std::optional<Offset> checkpoint(std::string_view file) const;
    void write_checkpoint(std::string_view file, std::optional<Offset>);
    /// With a topic id: a new partition.
    Result<> open(const How&, std::optional<Uuid> new_topic = {});
    /// Lets the delay of deleted files pass, closes the log in order and writes the checkpoints.
    Result<> close();
    /// As when the process dies: the files as they are, the checkpoints of the last periodic write.
    void crash();
    /// Names, bytes and file times against the stored directory, or what the case's expectation says of `step`. Order of a
    /// snapshot's producers does not count, nor does what a failed pass leaves half-written.
    void compare(const Case&, const std::string& stored, const std::string& step, Differences&) const;
    /// Everything, with its times, into a directory of the disk.
    void write_to(const std::string& directory) const;

private:
    void write_checkpoints();
    TopicPartition partition_;
    Switches switches_;
};

std::int64_t number(const json::value&);
std::optional<std::int64_t> number_or_null(const json::object&, const char* key);

/// What a log says of itself against `logStartOffset`, `highWatermark`, … of a stored decision or result.
void compare_offsets(const storage::Log&, const json::object& stored, Differences&);
void compare_producers(const storage::Log&, const json::array& stored, Differences&);

// Each plays one action of the case and says what differs.
Differences play_clean(const Case&, std::size_t action);
Differences play_retain(const Case&, std::size_t action);
Differences play_recover(const Case&, std::size_t action);
Differences play_lookup(const Case&, std::size_t action);
Differences play_extend(const Case&, std::size_t action);

/// Whether the script builds its log with steps alone: not from bytes written by hand, nor damaged afterwards.
bool has_playable_build(const Case&);
Differences play_build(const Case&);
/// Plays the steps of the script into `open`, which has just been opened. Throws on a step that fails.
void play_steps(OpenCase& open, const json::array& steps, LeaderEpoch leader_epoch);
/// What the cleaner's thread does in one round, its checkpoint included. Throws when a part of it fails.
void run_clean_round(OpenCase& open);

}  // namespace tidemark::golden
