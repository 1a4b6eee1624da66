/// Time comes in from outside: main hands down the system's clock, tests one that moves when told to.
#pragma once

#include <atomic>
#include <chrono>

#include "base/types.h"

namespace tidemark {

/// Threads: all members from any thread.
class Clock {
public:
    virtual ~Clock() = default;
    /// The wall clock, milliseconds since the epoch. May jump; whoever deletes by it asks whether it can be trusted (D23).
    virtual Timestamp now() const = 0;
    /// Never goes back and runs through suspend (CLOCK_BOOTTIME); its zero means nothing.
    virtual std::chrono::milliseconds since_boot() const = 0;
};

class SystemClock final : public Clock {
public:
    Timestamp now() const override;
    std::chrono::milliseconds since_boot() const override;
};

/// Stands still until told otherwise.
class ManualClock final : public Clock {
public:
    explicit ManualClock(Timestamp start = Timestamp{1'700'000'000'000}) : now_(start.value) {}
    Timestamp now() const override { return Timestamp{now_.load()}; }
    std::chrono::milliseconds since_boot() const override { return std::chrono::milliseconds{boot_.load()}; }
    /// Both clocks move on together.
    void advance(std::chrono::milliseconds by) { now_ += by.count(); boot_ += by.count(); }
    /// The wall clock alone jumps.
    void jump_to(Timestamp to) { now_ = to.value; }
private:
    std::atomic<std::int64_t> now_;
    std::atomic<std::int64_t> boot_{0};
};

}  // namespace tidemark
