// VirtualWorker: a worker process, its simulated device and its link with the
// controller, under a VirtualLoop; and all that can go wrong with them (virtual/world/fault.h).
//
// Its messages belong to a session, which ends when either side closes it; messages of
// an ended session are ignored. A worker that has lost its session ends its actions,
// and then registers for a new one, with what its pages hold.
#ifndef FOLIOT_VIRTUAL_WORLD_VIRTUAL_WORKER_H_
#define FOLIOT_VIRTUAL_WORLD_VIRTUAL_WORKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/worker/worker.h"
#include "foundation/base/time.h"
#include "foundation/core/action.h"
#include "foundation/core/model_info.h"
#include "foundation/core/ports.h"
#include "virtual/world/checker.h"
#include "virtual/world/executor_driver.h"
#include "virtual/world/simulated_device.h"
#include "virtual/world/virtual_loop.h"

namespace foliot {

// One direction of a link: messages arrive in order, each after its delay.
template <typename Message>
class VirtualLine {
 public:
  using Delay = std::function<Duration()>;
  using Deliver = std::function<void(const Message&)>;
  VirtualLine(VirtualLoop& loop, Delay delay, Deliver deliver)
      : loop_(loop), delay_(std::move(delay)), deliver_(std::move(deliver)) {}

  void send(const Message& message) {
    last_arrival_ = std::max(last_arrival_, loop_.now() + delay_());
    messages_.push_back(message);
    loop_.at(last_arrival_, [this] {
      ++due_;
      flush();
    });
  }
  // What arrives while it is blocked is delivered when it no longer is.
  void set_blocked(bool blocked) {
    blocked_ = blocked;
    flush();
  }

 private:
  void flush() {
    for (; !blocked_ && due_ > 0; --due_) {
      deliver_(messages_.front());
      messages_.pop_front();
    }
  }

  VirtualLoop& loop_;
  const Delay delay_;
  const Deliver deliver_;
  std::deque<Message> messages_;
  TimePoint last_arrival_;
  uint64_t due_ = 0;
  bool blocked_ = false;
};

class VirtualWorker : private OutcomeSink {
 public:
  // The controller's end of the link.
  class ControllerEnd {
   public:
    virtual ~ControllerEnd() = default;
    virtual void on_registration(DeviceId device, uint64_t session, const std::vector<ModelId>& residents) = 0;
    virtual void on_report(DeviceId device, uint64_t session, const Outcome& outcome) = 0;
    virtual void on_heartbeat(DeviceId device, uint64_t session) = 0;
    virtual void on_leave(DeviceId device, uint64_t session) = 0;
    virtual void on_close(DeviceId device, uint64_t session) = 0;
  };
  struct Options {
    WorkerOptions worker;
    NoiseOptions noise;
    SimulatedLanes lanes{};
    std::shared_ptr<const ResourceTable> resources{};
    DrawReading readings{};
    bool heartbeats = false;
    std::function<Duration()> link_delay;
    std::function<uint64_t()> seed;  // of the noise of the next process
  };
  static constexpr uint64_t kFirstSession = 1;

  // It runs, and has its first session.
  VirtualWorker(VirtualLoop& loop, Checker& checker, DeviceId device, Options options, ControllerEnd& controller);
  ~VirtualWorker() override;

  void add_model(std::shared_ptr<const ModelInfo> model);

  // From the controller.
  void send(const Action& action, uint64_t session) { to_worker_.send({session, false, action}); }
  void close(uint64_t session) { to_worker_.send({session, true, {}}); }

  // What may go wrong, and how it is over.
  void kill();
  void start();  // a process in place of one that is gone, or of one that is about to leave once it has
  void freeze();
  void resume();
  void set_slowdown(double factor);
  void set_failing(bool loads, bool execs);
  void damage(ModelId model);
  void set_extra_delay(Duration delay) { extra_delay_ = delay; }
  void set_link_up(bool up);
  void leave();

  uint32_t free_pages() const;  // REQUIRES: it runs
  bool runs() const { return process_ != nullptr; }

 private:
  struct Process;
  struct ToWorker {
    uint64_t session;
    bool close;
    Action action;
  };
  enum class Kind : uint8_t { kRegistration, kOutcome, kHeartbeat, kLeave, kClose };
  struct ToController {
    Kind kind;
    uint64_t session;
    Outcome outcome;
  };

  std::unique_ptr<Process> make_process();
  void report(const Outcome& outcome) override;
  void receive(const ToWorker& message);
  void deliver(const ToController& message);
  void say(Kind kind) { to_controller_.send({kind, session_, {}}); }
  void block_lines();
  void connect_after(Duration wait);
  void connect();
  void beat();

  VirtualLoop& loop_;
  Checker& checker_;
  const DeviceId device_;
  const Options options_;
  ControllerEnd& controller_;
  std::vector<std::shared_ptr<const ModelInfo>> models_;
  VirtualLine<ToWorker> to_worker_;
  VirtualLine<ToController> to_controller_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<Process>> dead_;  // the loop may still speak of them
  uint64_t last_session_ = kFirstSession;
  uint64_t session_ = kFirstSession;  // 0: none
  uint64_t in_flight_ = 0;            // actions without an outcome, of whatever session
  Duration extra_delay_;
  bool frozen_ = false;
  bool link_up_ = true;
  bool leaving_ = false;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_VIRTUAL_WORKER_H_
