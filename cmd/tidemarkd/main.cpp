// tidemarkd: reads its settings, starts the daemon, and waits for signals.
//
//   SIGTERM, SIGINT  stop gracefully (a second one within the drain ends it at once)
//   SIGHUP           read the settings again and open the log file anew
//
// Exit status: 0 stopped as asked, 1 could not start or stop cleanly, 2 a mistake in the settings or the command line.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/log.h"
#include "cmd/tidemarkd/daemon.h"
#include "cmd/tidemarkd/logging.h"
#include "cmd/tidemarkd/service.h"
#include "config/config.h"

namespace {

using namespace tidemark;

enum Exit : int { stopped = 0, failed = 1, mistaken = 2 };

struct Arguments {
    std::string config_file;
    std::string check_file;
    std::vector<std::string> overrides;
    bool print_config = false;
};

/// Nothing when the file cannot be read.
std::optional<config::Sources> read_sources(const std::string& file, std::vector<std::string> overrides) {
    if (file.empty()) return config::Sources{.file_name = config::built_in_name, .file_text = std::string(config::built_in_file()), .overrides = std::move(overrides)};
    std::ifstream in{file, std::ios::binary};
    std::string text{std::istreambuf_iterator<char>{in}, {}};
    if (!in) return std::nullopt;
    return config::Sources{.file_name = file, .file_text = std::move(text), .overrides = std::move(overrides)};
}

void print(const std::vector<config::Mistake>& mistakes, const char* kind) {
    for (const auto& mistake : mistakes) std::fprintf(stderr, "%s: %s\n", kind, mistake.line().c_str());
}

int check_config(const Arguments& arguments) {
    const auto sources = read_sources(arguments.check_file, arguments.overrides);
    if (!sources) {
        std::fprintf(stderr, "error: %s cannot be read\n", arguments.check_file.c_str());
        return Exit::mistaken;
    }
    const auto loaded = config::load(*sources);
    print(loaded.warnings, "warning");
    print(loaded.mistakes, "error");
    if (!loaded.mistakes.empty()) return Exit::mistaken;
    std::printf("%s is good\n", arguments.check_file.c_str());
    return Exit::stopped;
}

/// Signals are waited for in one place; every thread inherits the mask, so none is interrupted.
sigset_t block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // a peer that is gone is an error of the write
    return set;
}

void reload(Daemon& daemon, const Arguments& arguments) {
    service::reloading();
    const auto sources = read_sources(arguments.config_file, arguments.overrides);
    if (!sources) {
        log_error("settings: {} cannot be read, everything stays as it is", arguments.config_file);
    } else if (auto loaded = config::load(*sources); !loaded.mistakes.empty()) {
        for (const auto& mistake : loaded.mistakes) log_error("settings: {}", mistake.line());
        log_error("settings: {} mistakes, everything stays as it is", loaded.mistakes.size());
    } else {
        if (const auto result = set_log_target({.file = loaded.config.logging.file, .level = loaded.config.logging.level}); !result) log_error("{}", result.error().message());
        daemon.reload(std::move(loaded.config));
    }
    service::ready("serving");
}

int run(const Arguments& arguments) {
    const auto sources = read_sources(arguments.config_file, arguments.overrides);
    if (!sources) {
        std::fprintf(stderr, "error: %s cannot be read\n", arguments.config_file.c_str());
        return Exit::mistaken;
    }
    auto loaded = config::load(*sources);
    if (arguments.print_config && loaded.mistakes.empty()) {
        std::fputs(config::effective_yaml(loaded.settings).c_str(), stdout);
        return Exit::stopped;
    }
    if (!loaded.mistakes.empty()) {
        print(loaded.mistakes, "error");
        return Exit::mistaken;
    }
    if (const auto result = set_log_target({.file = loaded.config.logging.file, .level = loaded.config.logging.level}); !result) {
        std::fprintf(stderr, "error: %s\n", result.error().message().c_str());
        return Exit::failed;
    }
    for (const auto& warning : loaded.warnings) log_warning("settings: {}", warning.line());

    const auto signals = block_signals();
    Daemon daemon{std::move(loaded.config)};
    if (const auto result = daemon.start(); !result) {
        log_error("cannot start: {}", result.error().message());
        daemon.stop();
        return Exit::failed;
    }
    log_info("{}", daemon.welcome());
    service::ready("serving");

    for (int signal = 0; sigwait(&signals, &signal) == 0;) {
        if (signal != SIGHUP) {
            log_info("stopping, on signal {}", signal);
            break;
        }
        reload(daemon, arguments);
    }
    service::stopping("answering what was begun");
    // Whoever asks a second time does not want to wait: the default action of the signal ends the process.
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    const bool clean = daemon.stop();
    log_info("{}", clean ? "stopped" : "stopped, not cleanly: the next start looks closer");
    return clean ? Exit::stopped : Exit::failed;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Tidemark's daemon: keeps partitions in Apache Kafka's log format and serves Kafka's clients."};
    Arguments arguments;
    app.add_option("-c,--config", arguments.config_file, "settings, YAML with Kafka's keys; without it: data in ./data, clients of this machine only")->option_text("FILE");
    app.add_option("--set", arguments.overrides, "one setting above the file's, as often as needed")->option_text("KEY=VALUE")->allow_extra_args(false);
    auto* check = app.add_option("--check-config", arguments.check_file, "name every mistake in a file, start nothing")->option_text("FILE");
    app.add_flag("--print-config", arguments.print_config, "print the settings that hold and who set them, start nothing");
    app.set_version_flag("--version", std::string("tidemarkd ") + TIDEMARK_VERSION + ", as Apache Kafka 4.4.0");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? Exit::stopped : Exit::mistaken;
    }
    return *check ? check_config(arguments) : run(arguments);
}
