#include "daemon/server.h"

#include <netinet/in.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "base/log.h"
#include "base/thread.h"
#include "coordinator/internal_topics.h"
#include "daemon/broker.h"
#include "daemon/connection.h"
#include "daemon/coordinators.h"
#include "daemon/served_api.h"

namespace tidemark::daemon {

namespace {

using Moment = std::chrono::steady_clock::time_point;
Moment now() { return std::chrono::steady_clock::now(); }

/// One thread that runs an io_context, and the connections that live on it.
struct Loop {
    asio::io_context io{1};
    std::thread thread;
    std::unordered_set<std::shared_ptr<Connection>> connections;   // the loop's thread only
    std::atomic<std::size_t> connection_count{0};
    std::atomic<std::int64_t> last_beat_ns{0};                     // of the steady clock
    std::atomic<std::int64_t> lag_ns{0}, lag_ns_max{0};
};

/// Counts connections against the limits (max.connections, max.connections.per.ip).
class ConnectionCount {
public:
    enum class Verdict : std::uint8_t { admitted, too_many_of_host };

    Verdict admit(const std::string& host, const Limits& limits) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        const auto override = limits.connections_per_ip_overrides.find(host);
        const auto most = override == limits.connections_per_ip_overrides.end() ? limits.connections_per_ip_max : override->second;
        auto& of_host = by_host_[host];
        if (std::cmp_greater_equal(of_host, most)) {
            if (of_host == 0) by_host_.erase(host);
            return Verdict::too_many_of_host;
        }
        ++of_host;
        ++all_;
        return Verdict::admitted;
    }
    void closed(const std::string& host) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        --all_;
        if (const auto at = by_host_.find(host); --at->second == 0) by_host_.erase(at);
        none_.notify_all();
    }
    std::size_t all() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return all_;
    }
    bool wait_until_none(Moment deadline) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        while (all_ != 0) {
            const auto left = deadline - now();
            if (left <= Moment::duration::zero()) return false;
            none_.wait_for(mutex_, left);
        }
        return true;
    }

private:
    mutable Mutex mutex_;
    Condition none_;
    std::size_t all_ GUARDED_BY(mutex_) = 0;
    std::unordered_map<std::string, std::size_t> by_host_ GUARDED_BY(mutex_);
};

/// The address to bind: IPv4 first where a name has both, every address of both kinds for "".
Result<tcp::endpoint> resolve(asio::io_context& io, const Listener& listener) {
    if (listener.host.empty()) return tcp::endpoint{tcp::v6(), listener.port};
    tcp::resolver resolver{io};
    boost::system::error_code error;
    auto host = listener.host;
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    const auto found = resolver.resolve(host, std::to_string(listener.port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.empty()) return Error{Errc::invalid_argument, "listener " + listener.name + ": host " + listener.host + " is not known: " + error.message()};
    const auto v4 = std::ranges::find_if(found, [](const auto& entry) { return entry.endpoint().protocol() == tcp::v4(); });
    return (v4 == found.end() ? found.begin() : v4)->endpoint();
}

std::string host_text(const tcp::endpoint& endpoint) {
    auto address = endpoint.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped()) address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
    return address.to_string();
}

template <class Option>
void set(Socket& socket, const Option& option) {
    boost::system::error_code ignored;
    socket.set_option(option, ignored);
}

}  // namespace

class Server::Impl {
public:
    Impl(Parts parts, const Options& options) : broker_(std::move(parts), options) {
        const auto threads = options.network_threads > 0 ? static_cast<unsigned>(options.network_threads) : std::max(std::thread::hardware_concurrency(), 1u);
        for (unsigned i = 0; i < threads; ++i) loops_.push_back(std::make_unique<Loop>());
        topics_changed_ = std::make_unique<Event>(loops_.front()->io.get_executor());
    }
    ~Impl() { stop(std::chrono::milliseconds{0}); }

    Result<> listen();
    void start();
    bool stop(std::chrono::milliseconds deadline);
    ServerStats stats();
    void image_changed(const metadata::ImagePtr&);
    Broker& broker() { return broker_; }

private:
    struct Door {
        std::size_t listener;
        Acceptor acceptor;
    };

    Task<> accept_loop(Door& door);
    Task<> beat_loop(Loop& loop);
    Task<> timer_loop();
    void take_in(Loop& loop, Socket socket, const tcp::endpoint& peer, std::size_t listener);
    void open_connection(Loop& loop, Socket socket, Peer peer);
    void sweep(Loop& loop);
    bool all_alive(std::int64_t now_ns) const;
    void on_every_loop(const std::function<void(Loop&)>& what);

    Broker broker_;
    std::vector<std::unique_ptr<Loop>> loops_;
    std::vector<std::unique_ptr<Door>> doors_;   // on the first loop
    std::unique_ptr<Event> room_;                // a connection was closed; on the first loop
    std::unique_ptr<Event> topics_changed_;      // perhaps; on the first loop
    ConnectionCount count_;
    std::size_t next_loop_ = 0;                  // the first loop only
    std::atomic<bool> stopping_{false};
    bool started_ = false, stopped_ = false;
};

Result<> Server::Impl::listen() {
    const auto options = broker_.options();
    if (options->listeners.empty()) return Error{Errc::invalid_argument, "no listener"};
    auto& io = loops_.front()->io;
    for (std::size_t i = 0; i < options->listeners.size(); ++i) {
        const auto& listener = options->listeners[i];
        TM_TRY(auto endpoint, resolve(io, listener));
        boost::system::error_code error;
        auto acceptor = Acceptor{io.get_executor()};
        acceptor.open(endpoint.protocol(), error);
        if (error && listener.host.empty()) {   // a machine without IPv6
            endpoint = {tcp::v4(), listener.port};
            acceptor.open(endpoint.protocol(), error);
        }
        if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
        if (!error && endpoint.protocol() == tcp::v6() && listener.host.empty()) acceptor.set_option(asio::ip::v6_only(false), error);
        // Before listen(): accepted sockets inherit it, and the window scale is agreed on while connecting.
        if (!error && options->receive_buffer_bytes >= 0) acceptor.set_option(Acceptor::receive_buffer_size(options->receive_buffer_bytes), error);
        if (!error) acceptor.bind(endpoint, error);
        if (error) {
            return Error{Errc::io, fmt::format("listener {}://{}:{} cannot be bound", listener.name, listener.host, listener.port), error};
        }
        broker_.set_bound_port(i, acceptor.local_endpoint().port());
        doors_.push_back(std::make_unique<Door>(Door{i, std::move(acceptor)}));
    }
    return {};
}

void Server::Impl::start() {
    TM_ASSERT(!started_);
    started_ = true;
    // sendfile to a peer that went away raises it; the error code tells us enough.
    std::signal(SIGPIPE, SIG_IGN);
    broker_.logs().set_observer(&broker_.delayed_fetches());
    room_ = std::make_unique<Event>(loops_.front()->io.get_executor());
    for (std::size_t i = 0; i < loops_.size(); ++i) {
        auto& loop = *loops_[i];
        loop.last_beat_ns = now().time_since_epoch().count();
        asio::co_spawn(loop.io, beat_loop(loop), asio::detached);
        loop.thread = std::thread{[&loop, i] {
            name_this_thread("network-" + std::to_string(i));
            loop.io.run();
        }};
    }
    broker_.coordinators().image_changed(broker_.image());
    asio::co_spawn(loops_.front()->io, timer_loop(), asio::detached);
    for (auto& door : doors_) {
        boost::system::error_code error;
        door->acceptor.listen(broker_.options()->backlog, error);
        if (error) log_error("listener {}: {}", broker_.options()->listeners[door->listener].name, error.message());
        asio::co_spawn(loops_.front()->io, accept_loop(*door), asio::detached);
    }
}

Task<> Server::Impl::accept_loop(Door& door) {
    while (!stopping_) {
        const auto options = broker_.options();
        if (std::cmp_greater_equal(count_.all(), options->limits.connections_max)) {
            co_await room_->wait();
            continue;
        }
        auto& loop = *loops_[next_loop_];
        next_loop_ = (next_loop_ + 1) % loops_.size();
        tcp::endpoint peer;
        auto [error, socket] = co_await door.acceptor.async_accept(loop.io.get_executor(), peer, as_value);
        if (error == asio::error::operation_aborted) break;
        if (error) {   // no descriptor left, most likely: others that close make room
            static LogLimit limit{10'000};
            if (const auto held = limit.admit(); held >= 0) log_error("accept failed: {} ({} more not shown)", error.message(), held);
            Timer pause{co_await asio::this_coro::executor, std::chrono::milliseconds{50}};
            co_await pause.async_wait(as_value);
            continue;
        }
        take_in(loop, std::move(socket), peer, door.listener);
    }
}

void Server::Impl::take_in(Loop& loop, Socket socket, const tcp::endpoint& peer, std::size_t listener) {
    const auto options = broker_.options();
    const auto host = host_text(peer);
    if (count_.admit(host, options->limits) != ConnectionCount::Verdict::admitted) {
        add(broker_.stats().connections_refused);
        static LogLimit limit{10'000};
        if (const auto held = limit.admit(); held >= 0) log_warning("[client {}] closed: too many connections from this address ({} more not shown)", host, held);
        return;   // the socket closes
    }
    add(broker_.stats().connections_accepted);
    set(socket, tcp::no_delay(true));
    set(socket, tcp::socket::keep_alive(true));
    if (options->send_buffer_bytes >= 0) set(socket, tcp::socket::send_buffer_size(options->send_buffer_bytes));

    auto shared = std::make_shared<Socket>(std::move(socket));
    auto described = Peer{.listener = listener, .address = host + ":" + std::to_string(peer.port()), .host = host};
    asio::dispatch(loop.io, [this, &loop, shared, described = std::move(described)]() mutable { open_connection(loop, std::move(*shared), std::move(described)); });
}

void Server::Impl::open_connection(Loop& loop, Socket socket, Peer peer) {
    const auto closed = [this, &loop](Connection& connection) {
        count_.closed(connection.peer().host);
        loop.connection_count.fetch_sub(1);
        asio::post(loops_.front()->io, [this] { room_->notify(); });
        loop.connections.erase(connection.shared_from_this());
    };
    auto connection = std::make_shared<Connection>(broker_, std::move(socket), std::move(peer), closed);
    loop.connections.insert(connection);
    loop.connection_count.fetch_add(1);
    connection->start();
    if (stopping_) connection->drain();
}

/// Measures how late the loop is, looks after its connections, and says that all is well.
Task<> Server::Impl::beat_loop(Loop& loop) {
    Timer timer{loop.io.get_executor()};
    while (!stopping_) {
        const auto due = now() + std::chrono::milliseconds{broker_.options()->loop_beat_ms};
        timer.expires_at(due);
        const auto [error] = co_await timer.async_wait(as_value);
        if (error) break;
        const auto lag = std::chrono::nanoseconds{now() - due}.count();
        loop.lag_ns = lag;
        if (lag > loop.lag_ns_max) loop.lag_ns_max = lag;
        loop.last_beat_ns = now().time_since_epoch().count();
        sweep(loop);
        if (&loop == loops_.front().get() && broker_.parts().alive && all_alive(loop.last_beat_ns)) broker_.parts().alive();
    }
}

/// The coordinators' timers, which count in seconds; there are none before there is a topic to keep a group or transaction in.
Task<> Server::Impl::timer_loop() {
    Timer timer{loops_.front()->io.get_executor()};
    while (!stopping_) {
        const auto image = broker_.image();
        if (image->find(coordinator::group_topic) == nullptr && image->find(coordinator::transaction_topic) == nullptr) {
            co_await topics_changed_->wait();
            continue;
        }
        timer.expires_after(std::chrono::milliseconds{50});
        const auto [error] = co_await timer.async_wait(as_value);
        if (error) break;
        broker_.coordinators().tick();
    }
}

void Server::Impl::image_changed(const metadata::ImagePtr& image) {
    broker_.coordinators().image_changed(image);
    asio::post(loops_.front()->io, [this] { topics_changed_->notify(); });
}

bool Server::Impl::all_alive(std::int64_t now_ns) const {
    const auto options = broker_.options();
    const auto late_ns = (options->loop_beat_ms + options->loop_stalled_ms) * 1'000'000;
    return std::ranges::all_of(loops_, [&](const auto& loop) { return now_ns - loop->last_beat_ns < late_ns; });
}

/// Closes connections that were idle too long (connections.max.idle.ms), or that are so slow to take their answer that
/// they keep the bytes of a deleted segment (D26).
void Server::Impl::sweep(Loop& loop) {
    const auto options = broker_.options();
    const auto idle_max = std::chrono::milliseconds{options->limits.idle_ms_max};
    const auto held_max = std::chrono::milliseconds{options->limits.slice_held_ms_max};
    const auto since_boot = broker_.clock().since_boot();
    std::vector<std::shared_ptr<Connection>> idle, slow;
    for (const auto& connection : loop.connections) {
        if (now() - connection->last_active() > idle_max) idle.push_back(connection);
        else if (connection->holds_deleted_segment(since_boot, held_max)) slow.push_back(connection);
    }
    for (const auto& connection : idle) connection->cut();
    for (const auto& connection : slow) {
        log_warning("[client {}] closed: it still held records of a segment deleted {} ms ago", connection->peer().address, options->limits.slice_held_ms_max);
        connection->cut();
    }
    add(broker_.stats().closed_idle, idle.size());
    add(broker_.stats().closed_slow, slow.size());
}

void Server::Impl::on_every_loop(const std::function<void(Loop&)>& what) {
    for (auto& loop : loops_) asio::post(loop->io, [what, &loop = *loop] { what(loop); });
}

bool Server::Impl::stop(std::chrono::milliseconds deadline) {
    if (!started_ || stopped_) return true;
    stopped_ = true;
    stopping_ = true;
    const auto until = now() + deadline;
    asio::post(loops_.front()->io, [this] {
        boost::system::error_code ignored;
        for (auto& door : doors_) door->acceptor.close(ignored);
        room_->notify();
        topics_changed_->notify();
    });
    // Copies: a connection that ends at once takes itself out of the list.
    on_every_loop([](Loop& loop) {
        for (const auto& connection : std::vector(loop.connections.begin(), loop.connections.end())) connection->drain();
    });
    const bool drained = count_.wait_until_none(until);
    if (!drained) {
        log_warning("{} connections cut at the end of the time to stop", count_.all());
        on_every_loop([](Loop& loop) {
            for (const auto& connection : std::vector(loop.connections.begin(), loop.connections.end())) connection->cut();
        });
    }
    // Whoever is parked in a group is answered, though its connection has gone.
    broker_.coordinators().stop();
    // What was started ends, on the disk pool and in the group commit, before the loops that it comes back to.
    while (!broker_.wait_until_no_calls(now() + std::chrono::seconds{10})) log_warning("stopping: calls are still at work");
    while (!count_.wait_until_none(now() + std::chrono::seconds{10})) log_warning("stopping: connections are still open");
    broker_.logs().set_observer(nullptr);
    for (auto& loop : loops_) loop->io.stop();
    for (auto& loop : loops_) loop->thread.join();
    return drained;
}

ServerStats Server::Impl::stats() {
    auto& counters = broker_.stats();
    const auto sessions = broker_.fetch_sessions().stats();
    const auto load = broker_.disk().load();
    ServerStats stats{.connections = count_.all(),
                      .connections_accepted = counters.connections_accepted,
                      .connections_refused = counters.connections_refused,
                      .connections_closed_idle = counters.closed_idle,
                      .connections_closed_garbage = counters.closed_garbage,
                      .connections_closed_slow = counters.closed_slow,
                      .bytes_received = counters.bytes_received,
                      .bytes_sent = counters.bytes_sent,
                      .bytes_sent_from_files = counters.bytes_sent_from_files,
                      .cold_reads = counters.cold_reads,
                      .cold_read_bytes = counters.cold_read_bytes,
                      .queued_request_bytes = broker_.frame_budget().held(),
                      .fetches_waiting = broker_.delayed_fetches().waiting(),
                      .fetch_sessions = sessions.sessions,
                      .fetch_session_partitions = sessions.partitions,
                      .fetch_sessions_evicted = sessions.evicted,
                      .disk_jobs_waiting = load.waiting,
                      .disk_jobs_running = load.running,
                      .transactions = broker_.coordinators().transactions().stats()};
    for (auto& loop : loops_) {
        stats.loops.push_back({.lag_seconds = static_cast<double>(loop->lag_ns) / 1e9,
                               .lag_seconds_max = static_cast<double>(loop->lag_ns_max.exchange(0)) / 1e9,
                               .connections = loop->connection_count});
    }
    for (const auto& served : served_apis()) {
        ApiStats api{.key = static_cast<std::int16_t>(served.api->key), .name = served.api->name};
        counters.api(served.api->key).read(api);
        stats.apis.push_back(std::move(api));
    }
    const auto image = broker_.image();
    stats.topics = counters.topics([&](const std::string& name) { return image->find(name) != nullptr; });
    stats.client_software = counters.client_software();
    return stats;
}

// --- Server ------------------------------------------------------------------------------------------------------------

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(Parts parts, const Options& options) {
    auto impl = std::make_unique<Impl>(std::move(parts), options);
    TM_TRYV(impl->listen());
    return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::start() { impl_->start(); }
void Server::image_changed(const metadata::ImagePtr& image) { impl_->image_changed(image); }
bool Server::stop(std::chrono::milliseconds deadline) { return impl_->stop(deadline); }
std::vector<Listener> Server::listeners() const { return impl_->broker().options()->listeners; }
ServerStats Server::stats() const { return impl_->stats(); }
std::vector<GroupStats> Server::group_stats() const { return impl_->broker().coordinators().group_stats(); }
void Server::set_file_config(metadata::ConfigMap file) { impl_->broker().set_file_config(std::move(file)); }
void Server::set_options(const Options& options) { impl_->broker().set_options(options); }
Broker& Server::broker() { return impl_->broker(); }

}  // namespace tidemark::daemon
