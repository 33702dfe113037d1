#include "foundation/process/periodic_yield.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace foliot {
namespace {

constexpr long kNanosecondsBetweenOffers = 500'000;
constexpr long kStackBytesMin = 64 << 10;

// The processor time of the thread when it last yielded.
thread_local int64_t used_at_offer_nanoseconds = 0;

int64_t used_nanoseconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

// A thread that had to wait finds a signal that came meanwhile, and would never make
// progress if it yielded again for that.
void offer_processor(int /*signal*/) {
  const int interrupted = errno;
  const int64_t used = used_nanoseconds();
  if (used - used_at_offer_nanoseconds >= kNanosecondsBetweenOffers / 2) {
    used_at_offer_nanoseconds = used;
    sched_yield();
  }
  errno = interrupted;
}

std::atomic<bool> handled{false};

}  // namespace

void handle_yield_signal() {
  struct sigaction action {};
  action.sa_handler = &offer_processor;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  handled = sigaction(kYieldSignal, &action, nullptr) == 0;
}

PeriodicYield::PeriodicYield()
    // A frame holds all registers, of which processors have more and more.
    : stack_(static_cast<size_t>(std::max(sysconf(_SC_SIGSTKSZ), kStackBytesMin))) {
  const stack_t stack{.ss_sp = stack_.data(), .ss_flags = 0, .ss_size = stack_.size()};
  if (sigaltstack(&stack, &stack_before_) != 0) return;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kYieldSignal;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  timer_t timer{};
  if (!handled || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return;
  timer_ = timer;
  const timespec period{.tv_sec = 0, .tv_nsec = kNanosecondsBetweenOffers};
  const itimerspec forever{.it_interval = period, .it_value = period};
  timer_settime(timer, 0, &forever, nullptr);
}

PeriodicYield::~PeriodicYield() {
  if (timer_) timer_delete(*timer_);
  sigset_t yield_signal, before;
  sigemptyset(&yield_signal);
  sigaddset(&yield_signal, kYieldSignal);
  // One that is pending still is handled now, before its stack is gone.
  pthread_sigmask(SIG_UNBLOCK, &yield_signal, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  sigaltstack(&stack_before_, nullptr);
}

}  // namespace foliot
