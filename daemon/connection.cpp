// How a request passes through:
//   1. read_loop() reads a frame into one buffer that grows as the bytes arrive;
//   2. start_call() reads the header, finds the handler, puts the call into the queue and starts it;
//   3. the handler finishes the call now or later, on whatever thread; done() brings it back to the loop;
//   4. write_loop() sends the answers of the finished calls at the queue's front, memory by sendmsg, records by sendfile.
#include "daemon/connection.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "daemon/broker.h"
#include "daemon/run_on.h"
#include "daemon/served_api.h"
#include "storage/segment.h"

namespace tidemark::daemon {

namespace {

constexpr std::size_t input_bytes = 4096;
constexpr std::int64_t small_slice_bytes = 16 << 10;    // cheaper to read and send with its neighbours than by sendfile
constexpr std::size_t gathered_bytes_max = 256 << 10;   // of answers that go out together
constexpr std::size_t gathered_calls_max = 64;
constexpr std::int64_t chunk_bytes = 1 << 20;           // of a file between two chances for other connections
constexpr std::int64_t probe_bytes = 128 << 10;         // one byte of so many is asked for: the kernel reads ahead as much


/// Whether the page cache holds the range, as far as sendfile would wait for it. A guess: pages may go in between.
bool is_cached(const io::File& file, std::int64_t at, std::int64_t bytes) {
    for (std::int64_t i = 0; i < bytes; i += probe_bytes) {
        std::byte byte;
        const auto got = file.read_if_cached(FilePosition{at + i}, {&byte, 1});
        if (!got || !*got) return false;
    }
    return true;
}

}  // namespace

// --- Call ------------------------------------------------------------------------------------------------------------

Call::Call(std::shared_ptr<Connection> connection, const ServedApi& api, protocol::RequestHeader header, Frame frame, std::size_t body_at, Broker& broker)
    : connection_(std::move(connection)), api_(api), header_(std::move(header)), frame_(std::move(frame)), body_at_(body_at), broker_(broker),
      counters_(broker.stats().api(api.api->key)) {
    broker_.call_begins();
}

Call::~Call() {
    frame_.release();
    answer_ = {};
    hurry_ = nullptr;
    connection_.reset();
    broker_.call_ends();   // from here on the server may go
}

Peer& Call::peer() const { return connection_->peer(); }
Executor Call::executor() const { return connection_->executor(); }

void Call::complete(Answer answer) {
    auto on_loop = [self = shared_from_this(), answer = std::move(answer)]() mutable {
        if (self->done_) return;
        self->answer_ = std::move(answer);
        self->done_ = true;
        self->hurry_ = nullptr;
        self->frame_.release();
        self->connection_->done(*self);
    };
    asio::dispatch(executor(), std::move(on_loop));
}

void Call::fail(std::string_view reason) {
    auto on_loop = [self = shared_from_this(), reason = std::string{reason}] {
        self->connection_->refuse(fmt::format("{} version {}: {}", self->api_.api->name, self->version(), reason));
        self->complete({.close = true});
    };
    asio::dispatch(executor(), std::move(on_loop));
}

void Call::fail_encoding(const Error& error) {
    log_error("[{}] the answer to {} version {} cannot be written: {}", peer().address, api_.api->name, version(), error.message());
    complete({.close = true});
}

// --- Connection: life --------------------------------------------------------------------------------------------------

Connection::Connection(Broker& broker, Socket socket, Peer peer, std::function<void(Connection&)> on_closed)
    : broker_(broker), socket_(std::move(socket)), executor_(socket_.get_executor()), peer_(std::move(peer)), on_closed_(std::move(on_closed)),
      to_write_(executor_), to_read_(executor_) {}

Connection::~Connection() {
    if (!peer_.software_name.empty()) broker_.stats().software_disconnected(peer_.software_name, peer_.software_version);
}

void Connection::start() {
    boost::system::error_code ignored;
    socket_.native_non_blocking(true, ignored);
    loops_running_ = 2;
    const auto ended = [self = shared_from_this()](const std::exception_ptr& exception) {
        if (exception) {   // no memory left, most likely: this connection goes, the others stay
            self->refuse("an exception");
            self->cut();
        }
        if (--self->loops_running_ == 0) self->on_closed_(*self);
    };
    asio::co_spawn(executor_, read_loop(shared_from_this()), ended);
    asio::co_spawn(executor_, write_loop(shared_from_this()), ended);
}

void Connection::drain() {
    if (closed_ || draining_) return;
    draining_ = true;
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_receive, ignored);   // the read that waits ends
    to_read_.notify();
}

void Connection::cut() {
    if (closed_) return;
    closed_ = true;
    reading_ended_ = true;
    boost::system::error_code ignored;
    socket_.close(ignored);
    hurry_all();
    calls_.clear();
    to_read_.notify();
    to_write_.notify();
}

void Connection::hurry_all() {
    // A copy: a call that is done at once may be the last of its kind.
    const auto calls = calls_;
    for (const auto& call : calls) {
        if (auto hurry = std::exchange(call->hurry_, nullptr)) hurry();
    }
}

void Connection::refuse(std::string_view why) {
    add(broker_.stats().closed_garbage);
    static LogLimit limit{1000};
    if (const auto held = limit.admit(); held >= 0) log_warning("[client {}] closed: {} ({} more not shown)", peer_.address, why, held);
}

bool Connection::holds_deleted_segment(std::chrono::milliseconds now_since_boot, std::chrono::milliseconds age) const {
    if (calls_.empty() || !calls_.front()->done_) return false;
    return std::ranges::any_of(calls_.front()->answer_.slices, [&](const storage::LogSlice& slice) {
        const auto since = slice.segment ? slice.segment->deleted_since() : std::nullopt;
        return since && now_since_boot - *since > age;
    });
}

// --- Connection: requests ----------------------------------------------------------------------------------------------

Task<> Connection::read_loop(Self self) {
    while (!self->draining_ && !self->closed_) {
        if (!self->has_room_for_another()) {
            co_await self->to_read_.wait();
            continue;
        }
        auto frame = co_await self->read_frame();
        if (!frame || self->closed_ || !self->start_call(std::move(*frame))) break;
    }
    self->reading_ended_ = true;
    self->hurry_all();
    self->to_write_.notify();
}

bool Connection::has_room_for_another() const {
    const auto options = broker_.options();
    const auto& limits = options->limits;
    if (calls_.size() >= limits.requests_in_flight_max || std::cmp_greater_equal(in_flight_bytes_, limits.answer_bytes_in_flight_max)) return false;
    return calls_.empty() || !calls_.back()->holds_reading_ || calls_.back()->done_;
}

Task<std::optional<Frame>> Connection::read_frame() {
    while (input_end_ - input_begin_ < protocol::frame_prefix_bytes) {
        if (!co_await fill_input()) co_return std::nullopt;
    }
    const auto prefix = std::span<const std::byte, protocol::frame_prefix_bytes>{input_.get() + input_begin_, protocol::frame_prefix_bytes};
    const auto size = protocol::frame_size(prefix, static_cast<std::size_t>(broker_.options()->limits.request_bytes_max));
    if (!size) {
        refuse(size.error().message());
        co_return std::nullopt;
    }
    input_begin_ += protocol::frame_prefix_bytes;

    const std::function<void()> retry = [weak = weak_from_this(), executor = executor_] {
        asio::post(executor, [weak] {
            if (const auto self = weak.lock()) self->to_read_.notify();
        });
    };
    while (!broker_.frame_budget().has_room(retry)) {
        co_await to_read_.wait();
        if (closed_ || draining_) co_return std::nullopt;
    }

    Frame frame{broker_.frame_budget()};
    const auto here = std::min(input_end_ - input_begin_, *size);
    frame.reserve(frame_capacity(*size, here, largest_frame_));
    frame.append({input_.get() + input_begin_, here});
    input_begin_ += here;
    while (frame.size() < *size) {
        if (frame.room().empty()) frame.reserve(frame_capacity(*size, frame.size(), largest_frame_));
        const auto room = frame.room();
        const auto [error, n] = co_await socket_.async_read_some(asio::buffer(room.data(), room.size()), as_value);
        if (error) co_return std::nullopt;
        frame.arrived(n);
        add(broker_.stats().bytes_received, n);
        touch();
    }
    largest_frame_ = std::max(largest_frame_, *size);
    co_return frame;
}

/// Moves what is left to the front and reads once behind it. False: the peer closed.
Task<bool> Connection::fill_input() {
    if (!input_) input_ = std::make_unique_for_overwrite<std::byte[]>(input_bytes);
    std::copy(input_.get() + input_begin_, input_.get() + input_end_, input_.get());
    input_end_ -= std::exchange(input_begin_, 0);
    const auto [error, n] = co_await socket_.async_read_some(asio::buffer(input_.get() + input_end_, input_bytes - input_end_), as_value);
    if (error) co_return false;
    input_end_ += n;
    add(broker_.stats().bytes_received, n);
    touch();
    co_return true;
}

/// False: the connection has to end, after the answers that are due.
bool Connection::start_call(Frame frame) {
    auto reader = protocol::Reader::of_frame(frame.bytes());
    auto header = protocol::read_request_header(reader);
    if (!header) {
        refuse(header.error().message());
        return false;
    }
    const auto* api = find_served_api(header->request_api_key);
    // ApiVersions answers every version, so that a newer client learns what there is (KIP-511).
    const bool known = api && (api->api->versions.contains(header->request_api_version) || api->api->key == protocol::ApiKey::api_versions);
    if (!known) {
        refuse(fmt::format("request key {} version {} is not served", header->request_api_key, header->request_api_version));
        return false;
    }
    const auto body_at = reader.position();
    const auto bytes = frame.size() + protocol::frame_prefix_bytes;
    const auto call = std::make_shared<Call>(shared_from_this(), *api, *std::move(header), std::move(frame), body_at, broker_);
    call->counters_.count_request(call->version());
    add(call->counters_.request_bytes, bytes);
    calls_.push_back(call);
    try {
        api->start(broker_, call);
    } catch (const std::exception& error) {
        call->fail(error.what());
    }
    if (!call->holds_reading_) call->counters_.local.record(std::chrono::steady_clock::now() - call->arrived_);
    return !(call->done_ && call->answer_.close);
}

void Connection::done(Call& call) {
    if (call.holds_reading_) call.counters_.local.record(std::chrono::steady_clock::now() - call.arrived_);
    if (closed_) return;
    in_flight_bytes_ += call.answer_.frame.bytes.size();
    if (&call == calls_.front().get()) to_write_.notify();
    if (call.holds_reading_) to_read_.notify();
}

// --- Connection: answers -----------------------------------------------------------------------------------------------

Task<> Connection::write_loop(Self self) {
    std::vector<Piece> pieces;
    while (!self->closed_) {
        if (self->calls_.empty() || !self->calls_.front()->done_) {
            if (self->calls_.empty() && self->reading_ended_) break;
            co_await self->to_write_.wait();
            continue;
        }
        if (self->calls_.front()->answer_.close) break;
        const auto calls = self->gather(pieces);
        const bool good = co_await self->send(pieces);
        self->small_slices_.clear();
        if (!good || self->closed_) break;
        self->sent(calls);
    }
    if (!self->closed_) self->discard_input();
    self->cut();
}

/// Unread bytes would make close() reset the connection, and the peer lose answers that it has not read yet.
void Connection::discard_input() {
    std::array<std::byte, 4096> nowhere;
    while (::recv(socket_.native_handle(), nowhere.data(), nowhere.size(), MSG_DONTWAIT) > 0) {}
}

/// Puts the answers of finished calls at the queue's front into pieces; returns how many calls that are.
std::size_t Connection::gather(std::vector<Piece>& pieces) {
    pieces.clear();
    std::size_t bytes = 0, calls = 0;
    for (const auto& call : calls_) {
        if (!call->done_ || call->answer_.close || calls == gathered_calls_max || (calls != 0 && bytes + call->answer_.frame.size > gathered_bytes_max)) break;
        ++calls;
        bytes += call->answer_.frame.size;
        std::size_t at = 0;
        const Bytes memory = call->answer_.frame.bytes;
        for (const auto& gap : call->answer_.frame.gaps) {
            if (gap.at != at) pieces.push_back({.bytes = memory.subspan(at, gap.at - at)});
            at = gap.at;
            if (gap.size == 0) continue;
            const auto& slice = call->answer_.slices[gap.slice];
            if (std::vector<std::byte> small; take_small(slice, small)) {
                pieces.push_back({.bytes = small_slices_.emplace_back(std::move(small))});
            } else {
                pieces.push_back({.slice = &slice});
            }
        }
        if (at != memory.size()) pieces.push_back({.bytes = memory.subspan(at)});
    }
    return calls;
}

bool Connection::take_small(const storage::LogSlice& slice, std::vector<std::byte>& into) {
    if (slice.bytes > small_slice_bytes) return false;
    into.resize(static_cast<std::size_t>(slice.bytes));
    const auto got = slice.file->read_if_cached(slice.position, into);
    return got && *got == into.size();
}

Task<bool> Connection::send(const std::vector<Piece>& pieces) {
    std::vector<Bytes> memory;
    for (const auto& piece : pieces) {
        if (!piece.slice) {
            memory.push_back(piece.bytes);
            continue;
        }
        if (!co_await send_bytes(memory, true)) co_return false;
        memory.clear();
        if (!co_await send_slice(*piece.slice)) co_return false;
    }
    co_return co_await send_bytes(memory, false);
}

Task<bool> Connection::send_bytes(std::span<const Bytes> pieces, bool more_follows) {
    constexpr std::size_t at_once = 64;
    std::size_t first = 0, skip = 0;   // pieces[first] from `skip` on is next
    while (first < pieces.size()) {
        std::array<iovec, at_once> vectors;
        std::size_t n = 0;
        for (auto i = first; i < pieces.size() && n < at_once; ++i) {
            const auto piece = pieces[i].subspan(i == first ? skip : 0);
            vectors[n++] = {.iov_base = const_cast<std::byte*>(piece.data()), .iov_len = piece.size()};
        }
        msghdr message{};
        message.msg_iov = vectors.data();
        message.msg_iovlen = n;
        const bool more = more_follows || first + n < pieces.size();
        const auto sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT | (more ? MSG_MORE : 0));
        if (sent < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) co_return false;
            const auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, as_value);
            if (error || closed_) co_return false;
            continue;
        }
        add(broker_.stats().bytes_sent, static_cast<std::uint64_t>(sent));
        touch();
        auto left = static_cast<std::size_t>(sent);
        while (first < pieces.size() && left >= pieces[first].size() - skip) {
            left -= pieces[first].size() - std::exchange(skip, 0);
            ++first;
        }
        skip += left;
    }
    co_return true;
}

Task<bool> Connection::send_slice(const storage::LogSlice& slice) {
    const auto end = slice.position.value + slice.bytes;
    const auto file = slice.file->descriptor();
    for (auto at = slice.position.value; at < end;) {
        const auto bytes = std::min(chunk_bytes, end - at);
        if (file < 0 || !is_cached(*slice.file, at, bytes)) {
            if (!co_await send_from_disk(slice, at, bytes)) co_return false;
            at += bytes;
            continue;
        }
        for (const auto chunk_end = at + bytes; at < chunk_end;) {
            off_t from = at;
            const auto sent = ::sendfile(socket_.native_handle(), file, &from, static_cast<std::size_t>(chunk_end - at));
            if (sent < 0 && errno == EINTR) continue;
            if (sent < 0 && errno == EAGAIN) {
                const auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, as_value);
                if (error || closed_) co_return false;
                continue;
            }
            // 0: the file was cut meanwhile, so that what the answer promised is not there any more.
            if (sent <= 0) co_return false;
            at += sent;
            add(broker_.stats().bytes_sent, static_cast<std::uint64_t>(sent));
            add(broker_.stats().bytes_sent_from_files, static_cast<std::uint64_t>(sent));
            touch();
        }
        if (at < end) {
            co_await asio::post(executor_, as_value);
            if (closed_) co_return false;
        }
    }
    co_return true;
}

/// What the page cache does not hold is read on the disk pool, and sent from memory.
Task<bool> Connection::send_from_disk(const storage::LogSlice& slice, std::int64_t at, std::int64_t bytes) {
    auto read = [file = slice.file, at, bytes]() -> std::vector<std::byte> {
        std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
        const auto got = file->read(FilePosition{at}, buffer);
        buffer.resize(got ? *got : 0);
        return buffer;
    };
    add(broker_.stats().cold_reads);
    add(broker_.stats().cold_read_bytes, static_cast<std::uint64_t>(bytes));
    const auto buffer = co_await run_on(broker_.disk(), std::move(read));
    if (closed_ || std::cmp_not_equal(buffer.size(), bytes)) co_return false;
    const Bytes pieces[] = {buffer};
    co_return co_await send_bytes(pieces, false);
}

void Connection::sent(std::size_t calls) {
    const auto now = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < calls; ++i) {
        auto& call = *calls_.front();
        in_flight_bytes_ -= call.answer_.frame.bytes.size();
        add(call.counters_.answer_bytes, call.answer_.frame.size);
        call.counters_.total.record(now - call.arrived_);
        calls_.pop_front();
    }
    to_read_.notify();
}

}  // namespace tidemark::daemon
