#include "daemon/frame.h"

#include <cstring>
#include <new>

#include "base/assert.h"

namespace tidemark::daemon {

void FrameBudget::give_back(std::int64_t bytes) {
    held_.fetch_sub(bytes);
    if (somebody_waits_.load() && !is_full()) wake_all();
}

bool FrameBudget::has_room(const std::function<void()>& retry) {
    if (!is_full()) return true;
    {
        MutexLock lock(mutex_);
        waiting_.push_back(retry);
        somebody_waits_.store(true);
    }
    if (!is_full()) wake_all();   // given back in between
    return false;
}

void FrameBudget::set_limit(std::int64_t bytes_max) {
    bytes_max_.store(bytes_max);
    if (!is_full()) wake_all();
}

void FrameBudget::wake_all() {
    std::vector<std::function<void()>> woken;
    {
        MutexLock lock(mutex_);
        woken.swap(waiting_);
        somebody_waits_.store(false);
    }
    for (const auto& retry : woken) retry();
}

void Frame::reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto* grown = static_cast<std::byte*>(std::realloc(bytes_.get(), capacity));
    if (!grown) throw std::bad_alloc{};
    static_cast<void>(bytes_.release());   // realloc() has freed or kept it
    bytes_.reset(grown);
    if (budget_) budget_->take(static_cast<std::int64_t>(capacity - capacity_));
    capacity_ = capacity;
}

void Frame::append(Bytes bytes) {
    TM_ASSERT(bytes.size() <= capacity_ - size_);
    if (!bytes.empty()) std::memcpy(bytes_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
}

void Frame::release() {
    bytes_.reset();
    if (budget_ && capacity_ != 0) budget_->give_back(static_cast<std::int64_t>(capacity_));
    size_ = capacity_ = 0;
}

}  // namespace tidemark::daemon
