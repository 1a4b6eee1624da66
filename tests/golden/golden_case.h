/// One golden case: a log directory before and after each action, as Apache Kafka's own classes left it, and what they
/// decided on the way. The format is the oracle's (its README.md).
#pragma once

#include <boost/json.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/memory_file_system.h"
#include "storage/checkpoint.h"
#include "storage/log_config.h"
#include "storage/log_directory.h"
#include "storage/recovery.h"

namespace tidemark::golden {

namespace json = boost::json;

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

class Case {
public:
    /// Throws std::exception on a file that is not there or not JSON: the case itself is broken then.
    explicit Case(std::string path);

    const std::string& path() const { return path_; }
    std::string name() const;
    const json::array& actions() const { return expect_.at("actions").as_array(); }
    /// The directory that the action with this index begins with: "before", or what the last one before it left.
    std::string directory_before(std::size_t action) const;
    /// Settings of an action: the case's, and its own over them.
    std::map<std::string, std::string> settings(const json::object& args) const;
    /// File times of a stored directory.
    std::map<std::string, std::int64_t> modified(const std::string& directory) const;

private:
    std::string path_;
    json::object expect_;
    json::object mtimes_;
};

/// Topic settings as a log's; unknown ones are an exception, so that no case is played with half its settings.
storage::LogConfig log_config(const std::map<std::string, std::string>& settings);
std::int64_t number_setting(const std::map<std::string, std::string>& settings, const char* key, std::int64_t otherwise);

/// A stored directory, copied into memory and opened as after an orderly stop.
class OpenCase {
public:
    OpenCase(const Case&, const std::string& directory, const std::map<std::string, std::string>& settings, Timestamp now, std::optional<Offset> high_watermark);

    ManualClock clock;
    io::MemoryFileSystem files;
    std::unique_ptr<storage::LogDirectory> directory;
    std::shared_ptr<storage::Log> log;
    std::optional<Offset> cleaner_checkpoint;

    const TopicPartition& partition() const { return partition_; }
    /// Lets the delay of deleted files pass and closes the log in order.
    Result<> close();
    /// Names, bytes and file times against the stored directory. Order of a snapshot's producers does not count, nor does
    /// what a failed pass leaves half-written.
    void compare(const Case&, const std::string& stored, Differences&) const;

private:
    TopicPartition partition_;
};

std::int64_t number(const json::value&);
std::optional<std::int64_t> number_or_null(const json::object&, const char* key);

/// What a log says of itself against `logStartOffset`, `highWatermark`, … of a stored decision or result.
void compare_offsets(const storage::Log&, const json::object& stored, Differences&);
void compare_producers(const storage::Log&, const json::array& stored, Differences&);

// Each plays one action of the case and says what differs.
Differences play_clean(const Case&, std::size_t action);
Differences play_retain(const Case&, std::size_t action);

}  // namespace tidemark::golden
