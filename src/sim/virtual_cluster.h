// VirtualCluster: a controller and its workers under one VirtualLoop: the code
// that runs in production, with simulated devices and links.
#ifndef FOLIOT_SIM_VIRTUAL_CLUSTER_H_
#define FOLIOT_SIM_VIRTUAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "controller/controller.h"
#include "sim/checker.h"
#include "sim/event_hash.h"
#include "sim/executor_driver.h"
#include "sim/simulated_device.h"
#include "sim/virtual_loop.h"
#include "worker/worker.h"

namespace foliot {

struct VirtualClusterOptions {
  uint64_t seed = 1;
  uint32_t devices = 1;
  uint32_t pages_per_device = 64;
  uint32_t models_max = 16384;  // ids are below
  NoiseOptions noise;
  // A message between controller and worker takes `link` plus an exponential
  // `link_jitter`; messages of one link stay in order.
  Duration link = Duration::microseconds(50);
  Duration link_jitter = Duration::microseconds(20);
  ControllerOptions controller;
};

class VirtualCluster : private CompletionSink, private ActionSink {
 public:
  using OnCompletion = std::function<void(const Completion&)>;

  VirtualCluster(VirtualLoop& loop, const VirtualClusterOptions& options,
                 const Controller::SchedulerFactory& make_scheduler, OnCompletion on_completion = {});
  ~VirtualCluster() override;

  void add_model(std::shared_ptr<const ModelInfo> model);
  void remove_model(ModelId model);
  void submit(const Request& request);
  void cancel(RequestId request);

  Controller& controller() { return controller_; }
  Checker& checker() { return checker_; }
  uint64_t event_hash() const { return hash_.value(); }
  // True if what each worker's page cache holds is what the controller believes.
  bool pages_agree() const;

 private:
  struct Node;
  void complete(const Completion& completion) override;
  void send(const Action& action) override;
  // Lets the controller decide at this instant, once, after all events of it.
  void schedule_turn();
  void turn();
  Duration link_delay();

  VirtualLoop& loop_;
  VirtualClusterOptions options_;
  OnCompletion on_completion_;
  Random random_;
  Checker checker_;
  EventHash hash_;
  Controller controller_;
  std::vector<std::unique_ptr<Node>> nodes_;
  bool turn_scheduled_ = false;
  uint64_t turns_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_SIM_VIRTUAL_CLUSTER_H_
