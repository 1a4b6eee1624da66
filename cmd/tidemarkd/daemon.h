/// The whole daemon: every room started in its order, stopped in reverse.
///
///     settings → storage → metadata → cleaner, retention → server → http
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "config/config.h"

namespace tidemark {

/// Life:    start() once; reload() any number of times; stop() once, also after a start that failed half way.
/// Threads: all members from main's thread.
class Daemon {
public:
    explicit Daemon(config::Config);
    ~Daemon();
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    /// Returns when clients can connect. The error's text says what to do.
    Result<> start();
    /// Takes over what may change while it runs from `config`; what may not is logged and waits for the next start.
    void reload(config::Config);
    /// Answers what was begun, closes every log and leaves the clean marker. False when connections had to be cut or
    /// something could not be written: the next start will look closer.
    bool stop();

    /// What to try first, for the terminal: addresses, and commands that can be copied.
    std::string welcome() const;

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace tidemark
