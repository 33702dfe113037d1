// WorkerService: emulated workers as guests of a controller, one connection each.
// Each keeps the controller's clock known, registers, does what it is told, and
// reports, in the controller's time.
//
// Threading: belongs to the loop that drives it.
#ifndef FOLIOT_APP_WORKER_SERVICE_H_
#define FOLIOT_APP_WORKER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/model_info.h"
#include "emulation/emulated_worker.h"
#include "emulation/emulation_clock.h"
#include "transport/link_loop.h"

namespace foliot {

struct WorkerServiceOptions {
  std::string name = "worker";  // with a number, if there are several
  uint32_t page_count = 0;      // of each worker
  std::vector<ModelInfo> models;
  NoiseOptions noise;
  uint64_t seed = 1;
};

class WorkerService : public LinkHost {
 public:
  // `on_ready` is called when a worker has been taken in, with how many are now;
  // `on_lost` when one has lost its controller, or found none.
  struct Watch {
    std::function<void(size_t workers)> on_ready;
    std::function<void(const Status& reason)> on_lost;
  };

  WorkerService(WorkerServiceOptions options, Watch watch);
  ~WorkerService() override;

  Result<std::unique_ptr<Conversation>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  TimePoint on_turn_end(TimePoint now) override;

 private:
  struct Emulated;
  class ControllerConversation;

  const WorkerServiceOptions options_;
  const Watch watch_;
  EmulationClock clock_;
  std::vector<ControllerConversation*> conversations_;
  // Workers that lost their controller; the clock may still speak of them.
  std::vector<std::unique_ptr<Emulated>> retired_;
  TimePoint next_keep_;
  uint64_t opened_ = 0;
  size_t ready_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_APP_WORKER_SERVICE_H_
