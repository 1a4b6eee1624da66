/// One client: frames in, requests started in order, answers out in order.
///
/// Two coroutines on the connection's loop: one reads frames and starts their calls, one sends the answer of the first
/// call in the queue when it is done. Between them up to Limits::requests_in_flight_max calls wait, each for its own
/// thing: a sync, records to fetch, a thread of the disk pool.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "daemon/call.h"
#include "daemon/event.h"

namespace tidemark::daemon {

class Broker;

/// Life:    start(); from then on its coroutines keep it. on_closed, given by whoever keeps the list, is called at its end.
/// Threads: the loop's only.
class Connection : public std::enable_shared_from_this<Connection> {
public:
    using Moment = std::chrono::steady_clock::time_point;

    Connection(Broker&, Socket, Peer, std::function<void(Connection&)> on_closed);
    ~Connection();

    void start();
    /// Reads nothing more, answers what was started, without waiting for more data, and closes.
    void drain();
    /// Closes at once. Answers that were not sent are lost.
    void cut();

    Peer& peer() { return peer_; }
    Executor executor() const { return executor_; }
    /// When bytes last moved, either way.
    Moment last_active() const { return last_active_; }
    /// The answer being sent reads from a segment that was deleted longer than `age` ago (D26).
    bool holds_deleted_segment(std::chrono::milliseconds now_since_boot, std::chrono::milliseconds age) const;

    // --- for Call --------------------------------------------------------------------------------------------------

    /// The call is done: its answer can be sent when its turn comes.
    void done(Call&);
    /// What came was not a request that is served: one line in the log, which names the client.
    void refuse(std::string_view why);

private:
    using Self = std::shared_ptr<Connection>;

    // A coroutine owns its connection: `self` keeps it while the coroutine is suspended.
    static Task<> read_loop(Self self);
    static Task<> write_loop(Self self);

    /// Nothing: the peer closed, or sent what no frame begins with.
    Task<std::optional<Frame>> read_frame();
    Task<bool> fill_input();
    bool start_call(Frame);
    bool has_room_for_another() const;
    void hurry_all();

    /// A run of finished answers at the queue's front, in pieces: bytes in memory, or a slice of a file.
    struct Piece {
        Bytes bytes = {};
        const storage::LogSlice* slice = nullptr;
    };
    std::size_t gather(std::vector<Piece>& pieces);
    Task<bool> send(const std::vector<Piece>& pieces);
    Task<bool> send_bytes(std::span<const Bytes> pieces, bool more_follows);
    Task<bool> send_slice(const storage::LogSlice& slice);
    Task<bool> send_from_disk(const storage::LogSlice& slice, std::int64_t at, std::int64_t bytes);
    /// Reads a small slice into memory, so that it goes out with what stands around it.
    bool take_small(const storage::LogSlice& slice, std::vector<std::byte>& into);
    void sent(std::size_t calls);
    void touch() { last_active_ = std::chrono::steady_clock::now(); }
    void discard_input();

    Broker& broker_;
    Socket socket_;
    const Executor executor_;
    Peer peer_;
    const std::function<void(Connection&)> on_closed_;

    std::deque<std::shared_ptr<Call>> calls_;   // started and not yet answered, oldest first
    std::size_t in_flight_bytes_ = 0;           // of answers in memory
    Event to_write_;                            // the first call is done, or reading has ended
    Event to_read_;                             // there is room for another call, or the one that held reading is done
    bool reading_ended_ = false;
    bool draining_ = false;
    bool closed_ = false;
    int loops_running_ = 0;

    std::unique_ptr<std::byte[]> input_;        // what was received in one go; frames are taken from its front
    std::size_t input_begin_ = 0, input_end_ = 0;
    std::size_t largest_frame_ = 0;             // of those that came whole
    std::deque<std::vector<std::byte>> small_slices_;   // of the answers being sent
    Moment last_active_ = std::chrono::steady_clock::now();
};

}  // namespace tidemark::daemon
