/// The bytes of one request. They grow as they arrive: what a frame's size claims is not believed.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"

namespace tidemark::daemon {

/// queued.max.request.bytes: what the requests of all connections may hold together before no further one is begun.
/// Threads: all members from any thread.
class FrameBudget {
public:
    /// -1: no limit.
    explicit FrameBudget(std::int64_t bytes_max) : bytes_max_(bytes_max) {}

    void take(std::int64_t bytes) { held_.fetch_add(bytes); }
    void give_back(std::int64_t bytes) EXCLUDES(mutex_);
    std::int64_t held() const { return held_.load(std::memory_order_relaxed); }
    /// False: `retry` is called from some thread when there may be room; ask again then.
    bool has_room(const std::function<void()>& retry) EXCLUDES(mutex_);
    void set_limit(std::int64_t bytes_max) EXCLUDES(mutex_);

private:
    bool is_full() const {
        const auto bytes_max = bytes_max_.load();
        return bytes_max > 0 && held_.load() >= bytes_max;
    }
    void wake_all() EXCLUDES(mutex_);

    std::atomic<std::int64_t> bytes_max_;
    std::atomic<std::int64_t> held_{0};
    std::atomic<bool> somebody_waits_{false};
    Mutex mutex_;
    std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
};

/// Bytes that a budget counts for as long as they are held.
class Frame {
public:
    Frame() = default;
    explicit Frame(FrameBudget& budget) : budget_(&budget) {}
    Frame(Frame&& other) noexcept
        : budget_(other.budget_), bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)), capacity_(std::exchange(other.capacity_, 0)) {}
    Frame& operator=(Frame&& other) noexcept {
        std::swap(budget_, other.budget_);
        bytes_.swap(other.bytes_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~Frame() { release(); }

    MutableBytes bytes() { return {bytes_.get(), size_}; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }

    /// Room for that many in all; what is there stays.
    void reserve(std::size_t capacity);
    void append(Bytes bytes);
    /// The room behind what has arrived, and that `n` bytes have been put there.
    MutableBytes room() { return {bytes_.get() + size_, capacity_ - size_}; }
    void arrived(std::size_t n) { size_ += n; }
    void release();

private:
    struct Free {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    FrameBudget* budget_ = nullptr;
    std::unique_ptr<std::byte[], Free> bytes_;   // malloc's, since realloc() moves large ones without copying
    std::size_t size_ = 0, capacity_ = 0;
};

/// How much room to make for a frame of `size` bytes of which `received` have arrived: never more than twice that, or
/// than the largest frame that this connection has sent to the end.
constexpr std::size_t frame_capacity(std::size_t size, std::size_t received, std::size_t largest_completed) {
    constexpr std::size_t least = 4096;
    const auto trusted = std::max({least, 2 * received, largest_completed});
    return std::min(size, trusted);
}

}  // namespace tidemark::daemon
