// Mutex, SharedMutex, their scoped locks, and Condition: the standard ones, annotated, so that clang checks that
// what a mutex guards is used only where it is held (thread_annotations.h). They cost what the standard ones cost.
//
//   class Account {
//    public:
//     void add(int64_t cents) {
//       const MutexLock lock(mutex_);
//       cents_ += cents;
//       changed_.notify_all();
//     }
//     void wait_for_money() {
//       const MutexLock lock(mutex_);
//       changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return cents_ > 0; });
//     }
//
//    private:
//     Mutex mutex_;
//     Condition changed_;
//     int64_t cents_ GUARDED_BY(mutex_) = 0;
//   };
//
// Not on the path of an EXEC, which takes no lock at all.
#ifndef FOLIOT_FOUNDATION_BASE_MUTEX_H_
#define FOLIOT_FOUNDATION_BASE_MUTEX_H_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "foundation/base/thread_annotations.h"
#include "foundation/base/time.h"

namespace foliot {

// A Mutex is held by one thread at a time, and not twice by the same.
class FOLIOT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRES() { mutex_.lock(); }
  void unlock() RELEASES() { mutex_.unlock(); }
  bool try_lock() FOLIOT_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }
  // Shows the analysis that the caller holds this, where it knows it by another name; without effect.
  void assert_held() const FOLIOT_THREAD_ANNOTATION(assert_capability(this)) {}

 private:
  friend class Condition;
  std::mutex mutex_;
};

// A SharedMutex is held by one thread exclusively, or by any number shared.
class FOLIOT_THREAD_ANNOTATION(capability("mutex")) SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() ACQUIRES() { mutex_.lock(); }
  void unlock() RELEASES() { mutex_.unlock(); }
  void lock_shared() FOLIOT_THREAD_ANNOTATION(acquire_shared_capability()) { mutex_.lock_shared(); }
  void unlock_shared() FOLIOT_THREAD_ANNOTATION(release_shared_capability()) { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// A RecursiveMutex is held by one thread at a time, which may lock it again: for callbacks that come back to their
// caller.
class FOLIOT_THREAD_ANNOTATION(capability("mutex")) RecursiveMutex {
 public:
  RecursiveMutex() = default;
  RecursiveMutex(const RecursiveMutex&) = delete;
  RecursiveMutex& operator=(const RecursiveMutex&) = delete;

  void lock() ACQUIRES() { mutex_.lock(); }
  void unlock() RELEASES() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

// A MutexLock holds a mutex, a SharedMutex exclusively, until it goes, or from lock() to unlock(). One thread uses it.
template <typename AnyMutex>
class FOLIOT_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(AnyMutex& mutex) ACQUIRES(mutex) : mutex_(mutex) { mutex_.lock(); }
  // Takes over a mutex that its thread holds already.
  MutexLock(AnyMutex& mutex, std::adopt_lock_t /*held*/) REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() RELEASES() {
    if (is_held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // REQUIRES: it is not held.
  void lock() ACQUIRES() {
    mutex_.lock();
    is_held_ = true;
  }
  // REQUIRES: it is held.
  void unlock() RELEASES() {
    is_held_ = false;
    mutex_.unlock();
  }

 private:
  AnyMutex& mutex_;
  bool is_held_ = true;
};

// A ReaderLock holds a SharedMutex shared until it goes.
class FOLIOT_THREAD_ANNOTATION(scoped_lockable) ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) FOLIOT_THREAD_ANNOTATION(acquire_shared_capability(mutex)) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ~ReaderLock() FOLIOT_THREAD_ANNOTATION(release_generic_capability()) { mutex_.unlock_shared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

// Threads that hold a Mutex wait for a Condition; it is free while they wait. A wait may also end without a
// notification, so it stands in a loop, or has a predicate, which is called with the mutex held. All threads that wait
// at one time hold the same mutex. Durations are real time, on the monotonic clock: not for policies, which take time
// as an argument.
class Condition {
 public:
  Condition() = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  void wait(Mutex& mutex) REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait(held.lock);
  }
  // Waits at most for `duration`, and not at all if that is not above 0.
  void wait_for(Mutex& mutex, Duration duration) REQUIRES(mutex) {
    Held held(mutex);
    condition_.wait_for(held.lock, chrono(duration));
  }

  // clang cannot know that a predicate's mutex is `mutex`, hence the exceptions from its analysis.
  template <typename Predicate>
  void wait(Mutex& mutex, Predicate predicate) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex);
    condition_.wait(held.lock, std::move(predicate));
  }
  // Returns the predicate's last value.
  template <typename Predicate>
  bool wait_for(Mutex& mutex, Duration duration, Predicate predicate) REQUIRES(mutex) NO_THREAD_SAFETY_ANALYSIS {
    Held held(mutex);
    return condition_.wait_for(held.lock, chrono(duration), std::move(predicate));
  }

 private:
  // The standard's lock of a mutex that is held before and after.
  struct Held {
    explicit Held(Mutex& mutex) : lock(mutex.mutex_, std::adopt_lock) {}
    ~Held() { lock.release(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    std::unique_lock<std::mutex> lock;
  };
  // The standard adds the duration to the present instant, which must not overflow.
  static std::chrono::nanoseconds chrono(Duration duration) {
    return std::chrono::nanoseconds(std::min(duration, Duration::seconds(int64_t{1} << 32)).nanoseconds());
  }

  std::condition_variable condition_;
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_MUTEX_H_
