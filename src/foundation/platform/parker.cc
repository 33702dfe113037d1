#include "foundation/platform/parker.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "foundation/platform/clock.h"

namespace foliot {
namespace {

constexpr uint32_t kAwake = 0;
constexpr uint32_t kToken = 1;
constexpr uint32_t kAsleep = 2;

// Sleeps while `word` is kAsleep, at most until `deadline` (absolute, on
// CLOCK_MONOTONIC, which is what FUTEX_WAIT_BITSET measures against).
void futex_wait(std::atomic<uint32_t>& word, TimePoint deadline) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  timespec timeout{};
  timespec* timeout_pointer = nullptr;
  if (!deadline.is_infinite()) {
    timeout.tv_sec = deadline.nanoseconds() / 1'000'000'000;
    timeout.tv_nsec = deadline.nanoseconds() % 1'000'000'000;
    timeout_pointer = &timeout;
  }
  // Every way to return (woken, too late, interrupted) means: look again.
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, kAsleep, timeout_pointer, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_one(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, nullptr, nullptr, 0);
}

void relax_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Parker::park_until(TimePoint deadline, Duration spin) {
  const TimePoint sleep_until = deadline - spin;
  uint32_t expected = kAwake;
  if (monotonic_now() < sleep_until && state_.compare_exchange_strong(expected, kAsleep)) {
    futex_wait(state_, sleep_until);
  }
  if (state_.exchange(kAwake) == kToken || deadline.is_infinite()) return;
  while (monotonic_now() < deadline) {
    if (state_.load(std::memory_order_relaxed) == kToken) {
      state_.exchange(kAwake);
      return;
    }
    relax_core();
  }
}

void Parker::unpark() {
  if (state_.exchange(kToken) == kAsleep) futex_wake_one(state_);
}

}  // namespace foliot
