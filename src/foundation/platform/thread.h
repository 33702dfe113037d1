// Thread: a named thread that is joined when its owner goes. Its timers are as precise,
// and its waking as prompt, as the kernel can make them, unless it is a background
// thread (nice > 0).
//
// Real-time priorities are not offered on purpose: the kernel throttles such
// threads for whole milliseconds when they use up their share of a core.
#ifndef FOLIOT_FOUNDATION_PLATFORM_THREAD_H_
#define FOLIOT_FOUNDATION_PLATFORM_THREAD_H_

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "foundation/base/status.h"
#include "foundation/platform/core_set.h"

namespace foliot {

struct ThreadOptions {
  std::string name{};  // 1 to 15 characters, as debuggers and top show it
  // The cores that it and the threads that it starts run on; empty: any.
  CoreSet cores{};
  // Where what they touch first is taken from (memory_node.h); nullopt: where they run.
  std::optional<uint32_t> memory_node{};
  // -20 (runs before everything else; without the right to it: as 0) to 19 (runs after
  // everything else).
  int nice = 0;
};

// Threading: owned by one thread at a time.
class Thread {
 public:
  // Runs `body` on a new thread; it must not throw. Errors: kInvalidArgument if
  // this process may use none of these cores, kResourceExhausted if there can be no more
  // threads.
  static Result<Thread> start(const ThreadOptions& options, std::function<void()> body);

  Thread() = default;
  ~Thread() { join(); }
  Thread(Thread&& other) noexcept;
  // Joins what it held before.
  Thread& operator=(Thread&& other) noexcept;

  // Waits until the body has returned; nothing if there is no thread.
  // REQUIRES: not called by the thread itself.
  void join();
  bool is_current() const;

 private:
  explicit Thread(pthread_t handle) : handle_(handle) {}
  std::optional<pthread_t> handle_;
};

// Gives the calling thread what a Thread that is no background thread has: precise timers and prompt waking. For
// threads that are no Thread.
void wake_promptly();

// Gives the calling thread the kernel's own time slices, in place of the short ones that a process inherits from the
// serving thread that starts it. Its priority stays.
void use_default_slices();

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PLATFORM_THREAD_H_
