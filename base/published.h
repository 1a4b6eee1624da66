/// A value that one side replaces as a whole and others read at any time.
#pragma once

#include <memory>

#include "base/mutex.h"

namespace tidemark {

/// Readers take the pointer and keep what it points to for as long as they like; a writer puts a new one up.
/// A mutex around the pointer, since GCC 12's atomic<shared_ptr> is not clean under TSan.
/// Threads: all members from any thread.
template <class T>
class Published {
public:
    Published() = default;
    explicit Published(std::shared_ptr<const T> value) : value_(std::move(value)) {}

    std::shared_ptr<const T> get() const EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        return value_;
    }
    /// Returns what stood there before, so that its last owner frees it outside the mutex.
    std::shared_ptr<const T> put(std::shared_ptr<const T> value) EXCLUDES(mutex_) {
        MutexLock lock(mutex_);
        value_.swap(value);
        return value;
    }
private:
    mutable Mutex mutex_;
    std::shared_ptr<const T> value_ GUARDED_BY(mutex_);
};

}  // namespace tidemark
