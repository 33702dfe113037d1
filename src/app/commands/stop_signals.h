// StopSignals: interrupt and terminate, blocked in all threads and asked for by one.
#ifndef FOLIOT_APP_COMMANDS_STOP_SIGNALS_H_
#define FOLIOT_APP_COMMANDS_STOP_SIGNALS_H_

#include <csignal>

namespace foliot {

// Made before any other thread, which inherit what it blocks.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  bool arrived() {
    const timespec at_once{};
    if (!arrived_) arrived_ = sigtimedwait(&set_, nullptr, &at_once) > 0;
    return arrived_;
  }
  // Waits for one, at most so long; whether one has arrived.
  bool wait_for(timespec length) {
    if (!arrived_) arrived_ = sigtimedwait(&set_, nullptr, &length) > 0;
    return arrived_;
  }
  void wait() {
    int signal = 0;
    if (!arrived_) sigwait(&set_, &signal);
    arrived_ = true;
  }

 private:
  sigset_t set_;
  bool arrived_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_APP_COMMANDS_STOP_SIGNALS_H_
