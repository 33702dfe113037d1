// PeriodicYield: while it lives, the calling thread, which works in the background,
// yields its processor every half millisecond.
//
// Priorities alone are not enough. When a thread wakes up that has lately had more than
// its share, even by a microsecond, Linux (EEVDF, since 6.6) lets the running one
// continue, whatever the priorities of the two. It reconsiders at a tick: 4 ms later
// where there are 250 a second, or 8 if the slice has not ended by then. Serving
// threads have had more than their share as soon as others are as busy as they are.
//
// Yielding has a price: where another thread always wants the processor, too, the
// yielding one gets about half of its share by priority (docs/decisions/0064).
//
// It is a timer's signal, whose handler yields. System calls that it interrupts are
// restarted by the kernel, except for those that wait, which end early with EINTR. A
// thread that waits meanwhile blocks kYieldSignal, and the timer rests.
//
// The handler has a stack of its own: while they run, kernels of oneDNN (its AVX2 products)
// let the stack pointer point into their buffers, where a signal's frame would overwrite
// what lies before them.
//
// Threading: begins and ends on one thread.
#ifndef FOLIOT_FOUNDATION_PROCESS_PERIODIC_YIELD_H_
#define FOLIOT_FOUNDATION_PROCESS_PERIODIC_YIELD_H_

#include <csignal>
#include <cstddef>
#include <ctime>
#include <optional>
#include <vector>

namespace foliot {

// By default nothing happens when it comes.
inline constexpr int kYieldSignal = SIGURG;

// Handles the signal from now on, for the whole process. Of programs, not of rooms: without
// it a PeriodicYield does nothing.
void handle_yield_signal();

class PeriodicYield {
 public:
  // Where there are no more timers to be had, the work goes on without.
  PeriodicYield();
  ~PeriodicYield();
  PeriodicYield(const PeriodicYield&) = delete;
  PeriodicYield& operator=(const PeriodicYield&) = delete;

 private:
  std::optional<timer_t> timer_;
  std::vector<std::byte> stack_;  // of the handler
  stack_t stack_before_{};
};

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_PROCESS_PERIODIC_YIELD_H_
