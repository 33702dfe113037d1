// VirtualCluster: a controller and its workers under one VirtualLoop: the code
// that runs in production, with simulated devices and links.
#ifndef FOLIOT_VIRTUAL_WORLD_VIRTUAL_CLUSTER_H_
#define FOLIOT_VIRTUAL_WORLD_VIRTUAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/controller/controller.h"
#include "foundation/base/random.h"
#include "virtual/world/checker.h"
#include "virtual/world/event_hash.h"
#include "virtual/world/fault.h"
#include "virtual/world/simulated_device.h"
#include "virtual/world/virtual_loop.h"
#include "virtual/world/virtual_worker.h"

namespace foliot {

// Devices of one kind.
struct VirtualDevices {
  std::string kind{kDefaultKind};
  uint32_t count = 1;
  uint32_t pages = 64;  // of each
};

struct VirtualClusterOptions {
  uint64_t seed = 1;
  uint32_t devices = 1;
  uint32_t pages_per_device = 64;
  std::vector<VirtualDevices> kinds{};  // in place of these two, if there are any
  uint32_t models_max = 16384;          // ids are below
  SimulatedLanes lanes{};               // of each device
  uint32_t contexts = 1;                // likewise
  // What EXECs that run at once take of each device; null: they do not slow each other down.
  std::shared_ptr<const ResourceTable> resources{};
  DrawReading readings{};  // of visits of pipelines; empty: nothing is read
  NoiseOptions noise;
  // A message between controller and worker takes `link` plus an exponential
  // `link_jitter`; messages of one link stay in order.
  Duration link = Duration::microseconds(50);
  Duration link_jitter = Duration::microseconds(20);
  // Where it looks after the devices' health, workers send heartbeats, and the loop
  // never runs out of events.
  ControllerOptions controller;
};

class VirtualCluster : private CompletionSink,
                       private ActionSink,
                       private Observer,
                       private VirtualWorker::ControllerEnd {
 public:
  using OnCompletion = std::function<void(const Completion&)>;

  VirtualCluster(VirtualLoop& loop, const VirtualClusterOptions& options, const Controller::PolicyFactory& make_policy,
                 OnCompletion on_completion = {});
  ~VirtualCluster() override;

  void add_model(std::shared_ptr<const ModelInfo> model);
  // As add_model(), but only the smallest batch size can be run until extend_model().
  void add_unready_model(const std::shared_ptr<const ModelInfo>& model);
  void extend_model(std::shared_ptr<const ModelInfo> model);
  void remove_model(ModelId model);
  void add_pipeline(std::shared_ptr<const PipelineInfo> pipeline) { controller_.add_pipeline(std::move(pipeline)); }
  void remove_pipeline(PipelineId pipeline) { controller_.remove_pipeline(pipeline); }
  // As Controller::set_targets().
  Status set_targets(const Targets& targets);
  void submit(const Request& request);
  void cancel(RequestId request);

  // What is to go wrong, counted from now. REQUIRES: check_faults() is ok, and there
  // are none yet.
  void schedule(std::vector<Fault> faults);
  // From now on LOADs of the model fail on this device, until its process is another.
  void damage(DeviceId device, ModelId model) { workers_[device.value()]->damage(model); }

  Controller& controller() { return controller_; }
  Checker& checker() { return checker_; }
  uint64_t event_hash() const { return hash_.value(); }
  // True if what the page cache of each worker that is up holds is what the
  // controller believes.
  bool pages_agree() const;

 private:
  void complete(const Completion& completion) override;
  void send(const Action& action) override;
  void on_device(const DeviceChange& change, TimePoint now) override;
  void on_registration(DeviceId device, uint64_t session, const std::vector<ModelId>& residents) override;
  void on_report(DeviceId device, uint64_t session, const Outcome& outcome) override;
  void on_heartbeat(DeviceId device, uint64_t session) override;
  void on_leave(DeviceId device, uint64_t session) override;
  void on_close(DeviceId device, uint64_t session) override;
  void begin(const Fault& fault);
  void end(const Fault& fault);
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
  struct Place {
    std::string kind;
    uint32_t pages;
  };
  // For workers of the model's kinds.
  void give_workers(const std::shared_ptr<const ModelInfo>& model);

  std::vector<Place> places_;                            // by DeviceId
  std::vector<std::unique_ptr<VirtualWorker>> workers_;  // by DeviceId
  std::vector<uint64_t> sessions_;                       // by DeviceId; 0: none
  std::vector<DeviceId> leaving_;                        // to be let go once they are idle
  std::vector<Fault> faults_;
  bool turn_scheduled_ = false;
  uint64_t turns_ = 0;
};

}  // namespace foliot

#endif  // FOLIOT_VIRTUAL_WORLD_VIRTUAL_CLUSTER_H_
