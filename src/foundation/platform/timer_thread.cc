#include "foundation/platform/timer_thread.h"

#include <utility>

#include "foundation/platform/clock.h"

namespace foliot {

Status TimerThread::start(const ThreadOptions& options, Run run) {
  run_ = std::move(run);
  FOLIOT_ASSIGN_OR_RETURN(thread_, Thread::start(options, [this] {
                            while (!stopping_) parker_.park_until(run_(monotonic_now()));
                          }));
  return Status();
}

void TimerThread::stop() {
  stopping_ = true;
  parker_.unpark();
  thread_.join();
}

}  // namespace foliot
