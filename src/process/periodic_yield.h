// PeriodicYield: while it lives, the calling thread, which does work in the background,
// offers its processor to others every half millisecond that it has had.
//
// Priorities alone do not do that. When a thread wakes up that has had more than its
// share of late, even if only by a microsecond, Linux (EEVDF, since 6.6) lets the one
// that runs go on, whatever the priorities of the two, and looks again at a tick: 4 ms
// later where there are 250 a second, or 8 if its slice has not ended by then. Those
// who serve have had more than their share as soon as others are as busy as they are.
//
// An offer is not free: where somebody else always wants the processor, too, the thread
// gets about half of its share by priority (docs/decisions/0064).
//
// It is a timer's signal, whose handler yields. System calls that it interrupts go on
// by themselves, but for those that wait, which end early with EINTR: who waits
// meanwhile blocks kYieldSignal, and the timer rests.
//
// Threading: begins and ends on one thread.
#ifndef FOLIOT_PROCESS_PERIODIC_YIELD_H_
#define FOLIOT_PROCESS_PERIODIC_YIELD_H_

#include <csignal>
#include <ctime>
#include <optional>

namespace foliot {

// By default nothing happens when it comes.
inline constexpr int kYieldSignal = SIGURG;

class PeriodicYield {
 public:
  // Where there are no more timers to be had, the work goes on without.
  PeriodicYield();
  ~PeriodicYield();
  PeriodicYield(const PeriodicYield&) = delete;
  PeriodicYield& operator=(const PeriodicYield&) = delete;

 private:
  std::optional<timer_t> timer_;
};

}  // namespace foliot

#endif  // FOLIOT_PROCESS_PERIODIC_YIELD_H_
