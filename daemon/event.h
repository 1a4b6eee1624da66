/// Lets one coroutine wait until another part of the same event loop has something for it.
#pragma once

#include "daemon/asio.h"

namespace tidemark::daemon {

/// `while (queue.empty()) co_await event.wait();` Whoever changes what is waited for calls notify() afterwards.
/// Threads: the loop's only.
class Event {
public:
    explicit Event(const Executor& executor) : timer_(executor, Timer::time_point::max()) {}

    Task<> wait() {
        waited_for_ = true;
        co_await timer_.async_wait(as_value);
        waited_for_ = false;
    }
    /// Wakes who waits now; remembers nothing.
    void notify() {
        if (waited_for_) timer_.cancel();
    }

private:
    bool waited_for_ = false;
    Timer timer_;
};

}  // namespace tidemark::daemon
