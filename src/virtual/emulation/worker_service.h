// WorkerService: emulated workers as clients of a controller, one connection each. Each
// keeps the controller's clock known, registers, obeys its actions, and reports, in the
// controller's time. One that loses its controller ends its actions, finds it again,
// and registers with what its pages hold.
//
// Threading: belongs to the loop that drives it.
#ifndef FOLIOT_VIRTUAL_EMULATION_WORKER_SERVICE_H_
#define FOLIOT_VIRTUAL_EMULATION_WORKER_SERVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/transport/link_loop.h"
#include "cluster/transport/link_timeouts.h"
#include "foundation/core/model_info.h"
#include "virtual/emulation/emulated_worker.h"
#include "virtual/emulation/emulation_clock.h"

namespace foliot {

struct WorkerServiceOptions {
  std::string name = "worker";  // of the first; the others have a number behind it
  std::string kind{kDefaultKind};
  uint32_t page_count = 0;  // of each worker
  std::vector<ModelInfo> models;
  NoiseOptions noise;
  uint64_t seed = 1;
  Duration pong_timeout = kLinkTimeouts.pong;  // after which the controller is given up
};

class WorkerService : public LinkHandler {
 public:
  // `on_ready` is called when more workers have been registered than ever before, with
  // how many; `on_lost` when none was ever, and one has lost its controller. `connect`
  // makes another connection to the controller; without it every loss is passed to
  // `on_lost`, and final.
  struct Watch {
    std::function<void(size_t workers)> on_ready;
    std::function<void(const Status& reason)> on_lost;
    std::function<Status()> connect{};
  };

  WorkerService(WorkerServiceOptions options, Watch watch);
  ~WorkerService() override;

  Result<std::unique_ptr<Session>> on_open(Connection& connection, Role peer, TimePoint now) override;
  void on_no_greeting(const std::string& peer, const Status& reason) override;
  TimePoint on_turn_end(TimePoint now) override;

 private:
  struct Emulated;
  class ControllerSession;

  void on_welcomed();
  void on_gone(bool welcomed, const Status& reason);
  void find_controller(TimePoint now);

  WorkerServiceOptions options_;
  const Watch watch_;
  EmulationClock clock_;
  std::vector<ControllerSession*> sessions_;
  std::vector<std::unique_ptr<Emulated>> emulated_;
  TimePoint next_keep_;
  TimePoint next_connect_;
  Duration connect_interval_;
  uint32_t missing_ = 0;  // connections to be made again
  size_t ready_ = 0;
  size_t ready_max_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_EMULATION_WORKER_SERVICE_H_
