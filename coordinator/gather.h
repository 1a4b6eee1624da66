/// Several answers that make one: each part is filled in by whoever comes to it, the last one hands over the whole.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace tidemark::coordinator {

/// Life:    kept by whoever still has a part to fill in; the last reference to go calls `done`.
/// Threads: parts may be filled in at the same time, each by one thread.
template <class Whole>
class Gather {
public:
    static std::shared_ptr<Gather> make(Whole whole, std::function<void(Whole)> done) { return std::shared_ptr<Gather>(new Gather(std::move(whole), std::move(done))); }
    ~Gather() { done_(std::move(whole)); }
    Gather(const Gather&) = delete;
    Gather& operator=(const Gather&) = delete;

    Whole whole;

private:
    Gather(Whole start, std::function<void(Whole)> done) : whole(std::move(start)), done_(std::move(done)) {}
    std::function<void(Whole)> done_;
};

}  // namespace tidemark::coordinator
