// EmulatedWorker: a worker whose device only takes the time that a profile gives
// (Clockwork, section 6.6). Its queueing logic is worker/'s own, so
// windows, refusals and page counts are those of a real worker; only the threads
// are missing, so that one process can be hundreds of workers.
//
// Threading: belongs to one thread, with its clock.
#ifndef FOLIOT_VIRTUAL_EMULATION_EMULATED_WORKER_H_
#define FOLIOT_VIRTUAL_EMULATION_EMULATED_WORKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/worker/executor.h"
#include "engine/worker/worker.h"
#include "foundation/core/model_info.h"
#include "foundation/core/ports.h"
#include "virtual/emulation/emulation_clock.h"
#include "virtual/world/simulated_device.h"

namespace foliot {

// Drives one executor on an EmulationClock, as a thread of its own does in real
// time (node/threads/executor_thread.h).
class EmulatedExecutor : public Waker, private EmulationClock::Alarm {
 public:
  EmulatedExecutor(EmulationClock& clock, SimulatedDevice& device) : clock_(clock), device_(device) {}
  // Before the first wake().
  void set_executor(Executor& executor) { executor_ = &executor; }
  void wake() override;

 private:
  void ring(uint64_t ticket) override;
  void poll();

  EmulationClock& clock_;
  SimulatedDevice& device_;
  Executor* executor_ = nullptr;
  bool waking_ = false;
  bool running_ = false;
  TimePoint start_;      // running_: when the piece of work began
  Status status_;        //   and what will come of it
  uint64_t ticket_ = 0;  // alarms with an older one mean nothing any more
};

struct EmulatedWorkerOptions {
  uint32_t page_count = 0;
  NoiseOptions noise;
  uint64_t seed = 1;
};

class EmulatedWorker : public ActionSink {
 public:
  // `models`: all that it will ever run. `clock` and `outcomes` outlive it; so must
  // it outlive whatever has been asked of the clock.
  EmulatedWorker(const EmulatedWorkerOptions& options, const std::vector<ModelInfo>& models, EmulationClock& clock,
                 OutcomeSink& outcomes);

  // An action arrives, at clock.now().
  void send(const Action& action) override { worker_.send(action); }

  const Worker& worker() const { return worker_; }

 private:
  SimulatedDevice device_;
  EmulatedExecutor load_;
  EmulatedExecutor input_;
  EmulatedExecutor exec_;
  EmulatedExecutor output_;
  Worker worker_;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EMULATION_EMULATED_WORKER_H_
