/// The broker side of the sockets: accepts, hands each connection to an event loop, stops gracefully.
///
///   auto applier = ImageApplier{…};                       // before the metadata log is replayed (apply_image.h)
///   TM_TRY(auto server, Server::open({.logs = …, .controller = …, .clock = …}, options));   // binds; nobody is served yet
///   server->start();                                      // now everything is ready for the first request
///   …
///   server->stop(std::chrono::seconds{30});
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "daemon/options.h"
#include "daemon/stats.h"
#include "metadata/controller.h"
#include "storage/log_manager.h"

namespace tidemark::daemon {

class Broker;

/// What the handlers work on. All of it outlives the Server.
struct Parts {
    storage::LogManager& logs;
    metadata::Controller& controller;
    const Clock& clock;
    /// Told from an event loop, about every Options::loop_beat_ms, while all loops are alive: feeds systemd's watchdog.
    std::function<void()> alive = {};
    /// What the configuration file said, for DescribeConfigs.
    metadata::ConfigMap file_config = {};
};

/// Life:    open() binds, start() serves, stop() or the destructor ends it. Once.
/// Threads: the owner calls start() and stop(); everything else from any thread.
///          Inside: one io_context per network thread, a connection stays on its own; a pool for what may wait for the disk.
class Server {
public:
    /// Listens on every listener. Errc::invalid_argument: a host that cannot be resolved, no listener; Errc::io: the
    /// system refused (address in use, no permission), named in the text.
    static Result<std::unique_ptr<Server>> open(Parts, const Options&);
    ~Server();

    /// Accepts from now on; registers as the logs' observer.
    void start();

    /// Accepts nothing more, reads no further request, answers what was started (waiting fetches at once, with what there
    /// is), closes. Connections that are not done by then are cut. True when none had to be.
    bool stop(std::chrono::milliseconds deadline);

    /// The listeners with the ports that were bound.
    std::vector<Listener> listeners() const;
    ServerStats stats() const;
    /// Groups and how far they are behind. May wait a second.
    std::vector<GroupStats> group_stats() const;

    /// To be told of every change, before Controller::image() shows it, from start() on: opens the coordinators' partitions.
    void image_changed(const metadata::ImagePtr&);
    /// The configuration file was read again.
    void set_file_config(metadata::ConfigMap);
    /// What may change while it runs: limits, auto_create_topics, delete_topics, verify_transactions. The rest is ignored.
    void set_options(const Options&);

    /// The context of the handlers, for those who serve APIs from outside (the coordinators' timers) and for tests.
    Broker& broker();

private:
    class Impl;
    explicit Server(std::unique_ptr<Impl>);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::daemon
