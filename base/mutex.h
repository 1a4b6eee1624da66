/// std::mutex with the annotations that clang's thread-safety analysis checks.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TM_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TM_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) TM_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY TM_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) TM_THREAD_ATTRIBUTE(guarded_by(x))
#define PT_GUARDED_BY(x) TM_THREAD_ATTRIBUTE(pt_guarded_by(x))
#define ACQUIRED_BEFORE(...) TM_THREAD_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define REQUIRES(...) TM_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) TM_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) TM_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) TM_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) TM_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS TM_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace tidemark {

class CAPABILITY("mutex") Mutex {
public:
    void lock() ACQUIRE() { mutex_.lock(); }
    void unlock() RELEASE() { mutex_.unlock(); }
    bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
private:
    std::mutex mutex_;
};

/// Holds a Mutex for a scope.
class SCOPED_CAPABILITY MutexLock {
public:
    explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~MutexLock() RELEASE() { mutex_.unlock(); }
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;
private:
    Mutex& mutex_;
};

/// Waits with a Mutex held: `while (!ready) condition.wait(mutex);`
class Condition {
public:
    void wait(Mutex& mutex) REQUIRES(mutex) { condition_.wait(mutex); }
    /// False when the time is over.
    template <class Rep, class Period>
    bool wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> time) REQUIRES(mutex) {
        return condition_.wait_for(mutex, time) == std::cv_status::no_timeout;
    }
    void notify_one() { condition_.notify_one(); }
    void notify_all() { condition_.notify_all(); }
private:
    std::condition_variable_any condition_;
};

}  // namespace tidemark
